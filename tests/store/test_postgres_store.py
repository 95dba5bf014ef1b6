"""The store of many machines, on a real server: the promises of every store, and its own."""

from __future__ import annotations

import errno
import os
import re
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from unittest.mock import Mock

import pytest
from postgres_server import Proxy, Server

from isorun import session, workflow
from isorun.errors import MissingExtra, StoreBusy, StoreConflict, StoreDamaged, StoreError, StoreMissing, StoreTooNew
from isorun.store import STUDIES, AbstractStore, given_place, shown_place
from isorun.store.copying import copy
from isorun.store.folder import FolderStore
from isorun.study.design import Study
from isorun.study.records import RunState
from isorun.testing.made_records import content, make_cell, make_record
from isorun.testing.store_contract import StoreContract


def opened(url: str, **options) -> AbstractStore:
    from isorun.store.postgres import PostgresStore

    return PostgresStore(url, **options)


class TestPostgresStore(StoreContract):
    @pytest.fixture(autouse=True)
    def _server(self, database: str) -> None:
        self.url = database

    def open(self, place: Path, *, create: bool = True) -> AbstractStore:
        return opened(self.url, create=create)


def claimed_within(store: AbstractStore, cell_id: str, seconds: float = 20.0):
    """The claim, as soon as it can be taken."""
    deadline = time.monotonic() + seconds
    while (claim := store.claim(cell_id)) is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return claim


def test_a_claim_that_is_renewed_holds_and_one_that_is_not_lapses(database: str):
    with opened(database, lease_seconds=0.4) as holder, opened(database, lease_seconds=0.4) as other:
        held = holder.claim("a")
        time.sleep(0.9)
        assert other.claim("a") is None
        assert [item.cell_id for item in other.holders()] == ["a"]
        holder._claims._ended.set()  # as of a process that was stopped
        taken = claimed_within(other, "a")
        assert taken.attempt == held.attempt + 1
        held.release()
        assert other.claim("a") is None, "what was taken over is not given back by who had it before"


def test_two_that_extend_a_study_at_once_lose_nothing_of_each_other(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """As two commands do, each with a line of its own to the server."""
    both_read = threading.Barrier(2)
    real = workflow.together

    def slow(study: Study, kept: Study) -> Study:
        with suppress(threading.BrokenBarrierError):
            both_read.wait(0.5)
        return real(study, kept)

    monkeypatch.setattr(workflow, "together", slow)
    asked = [
        Study("s", approaches={"a": "python a.py"}, levels=[level], folder=tmp_path)
        for level in ("default", "fixed-seed", "deterministic")
    ]
    workflow.remember(asked[0], store=database)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda study: workflow.remember(study, store=database), asked[1:]))
    with opened(database) as store:
        assert set(store.documents(STUDIES).read("s")["levels"]) == {"default", "fixed-seed", "deterministic"}
        assert not store.holders()


def test_whoever_was_taken_over_is_told_and_cannot_finish(database: str):
    cell = make_cell(1)
    with opened(database, lease_seconds=0.4) as holder, opened(database) as other:
        held = holder.claim(cell.id)
        other._do(
            "x", lambda connection: connection.execute("UPDATE isorun.cells SET until = now() - interval '1 day'")
        )
        other._claims._lease = 0.0
        taken = claimed_within(other, cell.id)
        with pytest.raises(StoreConflict, match="claimed again after it, as attempt 2"):
            holder.finish(make_record(cell, attempt=held.attempt))
        other.finish(make_record(cell, attempt=taken.attempt))
        deadline = time.monotonic() + 20
        while not holder.notes():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert [note.code for note in holder.notes()] == ["store-claim-lost"]


def test_a_claim_that_looks_lapsed_is_its_holders_for_another_half_lease(database: str):
    """As after a cut network or a step of the clock: all is lapsed, and the holder about to renew."""
    lapse = "UPDATE isorun.cells SET until = pg_postmaster_start_time() - interval '1 day'"
    with opened(database, lease_seconds=1000.0) as holder, opened(database, lease_seconds=1.2) as other:
        other._claims._lease = 1.2
        held = holder.claim("a")
        holder._do("x", lambda connection: connection.execute(lapse))
        time.sleep(max(0.0, 1.3 - seconds_since_start(other)))
        assert other.claim("a") is None
        assert other.claim("a") is None, "two looks at once are one"
        holder._claims._renew(holder._line)
        time.sleep(0.7)
        assert other.claim("a") is None, "it was renewed"
        holder._do("x", lambda connection: connection.execute(lapse))
        begun = time.monotonic()
        assert claimed_within(other, "a").attempt == held.attempt + 1
        assert 0.6 <= time.monotonic() - begun < 5


def seconds_since_start(store: AbstractStore) -> float:
    asked = "SELECT extract(epoch FROM now() - pg_postmaster_start_time())::float8"
    return store._do("x", lambda connection: connection.execute(asked).fetchone()[0])


@pytest.mark.parametrize("error", [OSError(errno.EIO, "the terminal has gone"), ValueError("closed file")])
def test_claims_are_renewed_where_nobody_can_be_told_anything(postgres: Server, database: str, monkeypatch, error):
    """The server is away long enough for something to be said of it, and stderr takes nothing any more."""
    from isorun.store.postgres import line

    stderr = Mock(write=Mock(side_effect=error))
    monkeypatch.setattr(line, "_SAID_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(sys, "stderr", stderr)
    proxy = Proxy(postgres.port)
    with opened(postgres.url(port=proxy.port), lease_seconds=0.8) as store, opened(database) as other:
        store.claim("a")
        proxy.cut()
        time.sleep(1.5)
        assert store._claims._thread.is_alive()
        assert other.claim("a") is None
        assert store.notes() == (), "a moment on the line that renews claims is nothing to know"
    assert stderr.write.called
    monkeypatch.undo()
    proxy.close()


def test_whatever_goes_wrong_when_renewing_is_told_and_tried_again(database: str, monkeypatch):
    with opened(database, lease_seconds=0.4) as store:
        renewing, wrong = store._claims._renew, [RuntimeError("once")]

        def renew(line):
            if wrong:
                raise wrong.pop()
            renewing(line)

        monkeypatch.setattr(store._claims, "_renew", renew)
        store.claim("a")
        time.sleep(0.9)
        assert not wrong
        assert [item.cell_id for item in store.holders()] == ["a"]
        assert [note.code for note in store.notes()] == ["store-renewing"]
        assert "RuntimeError: once" in store.notes()[0].message


def test_many_take_each_cell_once(database: str):
    cells = [f"{number:016x}" for number in range(300)]
    taken: list[str] = []
    with ExitStack() as stack:
        stores = [stack.enter_context(opened(database)) for _ in range(4)]

        def work(store: AbstractStore) -> None:
            while claims := store.claim_any(cells, 3):
                taken.extend(claim.cell_id for claim in claims)

        workers = [threading.Thread(target=work, args=[store]) for store in stores]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert Counter(taken) == Counter(cells)


def test_a_lost_reply_to_a_claim_or_a_record_changes_nothing(postgres: Server, database: str):
    """The server has done it, and the line was cut before it could say so."""
    cell, proxy = make_cell(1), Proxy(postgres.port)
    with opened(postgres.url(port=proxy.port)) as store:
        proxy.swallow = b"INSERT 0 1\x00"
        claim = store.claim(cell.id)
        assert claim is not None
        assert claim.attempt == 2, "the first was taken, and nobody knew"
        proxy.swallow = b"INSERT 0 1\x00"
        store.finish(make_record(cell, attempt=claim.attempt))
        proxy.swallow = b"COMMIT\x00"
        store.finish(make_record(copied := make_cell(2)))  # which nobody claimed: it is looked at first
        other = store.claim("other")
        proxy.swallow = b"UPDATE 1\x00"
        other.release()
        assert proxy.swallowed == 4
        assert store.run_ids() == {f"{cell.id}-2", f"{copied.id}-1"}
        assert list(store.holders()) == []
        assert [note.code for note in store.notes()] == ["store-waited"]
    proxy.close()


def test_a_server_that_is_started_again_is_waited_for(postgres: Server, database: str):
    with opened(database) as store:
        store.finish(make_record(make_cell(1)))
        claim = store.claim("a")
        postgres.kill()
        back = threading.Timer(0.3, postgres.start)
        back.start()
        store.finish(make_record(make_cell(2)))
        back.join()
        assert len(store.records()) == 2
        assert [(holder.cell_id, holder.attempt) for holder in store.holders()] == [("a", claim.attempt)]
        assert [note.code for note in store.notes()] == ["store-waited"]
        assert " 0 seconds" not in store.notes()[0].message


def test_how_long_a_server_was_away_is_told_though_nothing_was_asked_of_it_meanwhile(postgres: Server, database: str):
    """The line that renews claims waits all the time; the other one finds the server back at once."""
    with opened(database, lease_seconds=0.8) as store:
        store.claim("a")
        postgres.kill()
        time.sleep(2.2)
        postgres.start()
        store.finish(make_record(make_cell(2)))
        deadline = time.monotonic() + 20
        while not (told := re.search(r"was away for about (\d+) seconds in all", store.notes()[0].message)):
            assert time.monotonic() < deadline, store.notes()
            time.sleep(0.05)
        assert 2 <= int(told[1]) < 15


def test_outages_that_several_lines_saw_count_once():
    outages = pytest.importorskip("isorun.store.postgres.line", reason="needs psycopg").Outages()
    for begin, end in [(10.0, 12.0), (11.0, 15.0), (11.5, 11.7), (20.0, 21.0)]:
        outages.begin(begin)[1] = end
    assert outages.seconds == 6.0


def test_patience_ends_and_the_message_has_no_password(postgres: Server, database: str, capfd):
    proxy = Proxy(postgres.port)
    url = f"postgresql://isorun:ge-heim7@127.0.0.1:{proxy.port}/postgres"
    store = opened(url, patience_seconds=2.5)
    proxy.close()
    proxy.cut()
    with pytest.raises(StoreBusy, match="has not answered for 2 seconds") as raised:
        store.finish(make_record())
    assert "pg_isready -h 127.0.0.1" in raised.value.hint
    said = capfd.readouterr().err
    assert "does not answer; waiting for up to 2 seconds" in said
    assert "ge-heim7" not in f"{said}{raised.value}{store.place}{store.looked_over_by}"
    store.close()


def test_those_who_open_a_new_store_at_once_get_the_same_one(database: str):
    keys, errors = [], []

    def open_and_close() -> None:
        try:
            with opened(database) as store:
                keys.append(store.key)
        except StoreError as error:
            errors.append(error)

    threads = [threading.Thread(target=open_and_close) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(keys) == 4
    assert len(set(keys)) == 1


def test_what_is_no_store_or_a_newer_or_altered_one_is_refused(postgres: Server, database: str):
    postgres.ask("CREATE SCHEMA isorun; CREATE TABLE isorun.theirs (a int)")
    with pytest.raises(StoreError, match="is not a store of isorun"):
        opened(database)
    postgres.ask("DROP TABLE isorun.theirs")
    with pytest.raises(StoreMissing):
        opened(database, create=False)
    opened(database).close()  # an empty schema that somebody made for it
    postgres.ask("UPDATE isorun.migrations SET checksum = 'x'")
    with pytest.raises(StoreError, match="another schema than this isorun expects"):
        opened(database)
    postgres.ask("INSERT INTO isorun.migrations (number, name, checksum) VALUES (99, 'later', 'x')")
    with pytest.raises(StoreTooNew, match="was written by a newer isorun"):
        opened(database, create=False)


def test_what_cannot_be_opened_says_what_to_do(postgres: Server, database: str):
    postgres.ask("DROP ROLE IF EXISTS poor; CREATE ROLE poor LOGIN")
    with pytest.raises(StoreError, match="permission denied") as raised:
        opened(postgres.url(user="poor"))
    assert "GRANT CREATE ON DATABASE postgres TO poor" in raised.value.hint
    opened(database).close()
    with pytest.raises(StoreError, match="permission denied") as raised:
        opened(postgres.url(user="poor"))
    assert "GRANT USAGE ON SCHEMA isorun TO poor" in raised.value.hint
    postgres.ask("GRANT USAGE ON SCHEMA isorun TO poor; GRANT SELECT ON ALL TABLES IN SCHEMA isorun TO poor")
    with opened(postgres.url(user="poor")) as readable:
        assert readable.records() == []
        with pytest.raises(StoreError, match="permission denied for table cells"):
            readable.claim("a")
    for url, hint in {
        postgres.url("nowhere"): f"createdb -h 127.0.0.1 -p {postgres.port} -U isorun nowhere",
        postgres.url(user="nobody"): "~/.pgpass",
        postgres.url(user="nobody:geheim"): "user and password of the address do not fit",
        postgres.url(port=1): "pg_isready -h 127.0.0.1 -p 1",
        f"{postgres.url()}?sslmode=require": "?sslmode=",
    }.items():
        with pytest.raises(StoreError, match="cannot be opened") as raised:
            opened(url)
        assert hint in raised.value.hint
    with pytest.raises(StoreError) as raised:
        opened(postgres.url(port="first"))
    assert raised.value.allowed == "postgresql://user@host:5432/database"
    for wrong in ("postgresql://u:ge%heim@h/db", "postgresql://u:geheim@[h/db", "postgresql://u:geheim@h/db?what=1"):
        with pytest.raises(StoreError, match="cannot be opened") as raised:
            opened(wrong)
        assert "heim" not in str(raised.value)
    with pytest.raises(StoreError, match="cannot be opened") as raised:
        opened("postgresql://u:ge@h@127.0.0.1:1/db")
    assert "h@" not in str(raised.value)
    assert "@ as %40" in raised.value.hint


def test_an_old_server_is_refused(database: str, monkeypatch):
    from isorun.store.postgres import line

    monkeypatch.setattr(line, "_OLDEST", 99)
    with pytest.raises(StoreError, match="too old"):
        opened(database)


def test_a_missing_driver_is_named_with_what_installs_it(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("isorun.store.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"isorun\[postgres\]"):
        session.open_store("postgresql://lab/isorun")


def test_a_commit_is_on_the_disk_whatever_the_database_was_told(postgres: Server, database: str):
    from isorun.store.postgres.recording import DURABLE

    def setting(connection):
        with connection.transaction():
            connection.execute(DURABLE)
            return connection.execute("SHOW synchronous_commit").fetchone()[0]

    try:
        for told, found in {"off": "on", "remote_apply": "remote_apply"}.items():
            postgres.ask(f"ALTER DATABASE postgres SET synchronous_commit = {told}")
            with opened(database) as store:
                assert store._do("asking", setting) == found
    finally:
        postgres.ask("ALTER DATABASE postgres RESET synchronous_commit")


def test_a_record_is_on_the_disk_when_it_is_acknowledged_whatever_the_database_was_told(
    postgres: Server, database: str
):
    not_yet = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), pg_current_wal_flush_lsn())"
    try:
        postgres.ask("ALTER DATABASE postgres SET synchronous_commit = off")
        with opened(database) as store:
            for seed in range(5):
                record = make_record(make_cell(seed))
                store.claim(record.cell.id)
                store.finish(record)
                assert store._do("asking", lambda connection: connection.execute(not_yet).fetchone()[0]) == 0
    finally:
        postgres.ask("ALTER DATABASE postgres RESET synchronous_commit")


def test_behind_a_pooler_that_knows_no_prepared_statements_all_goes_on_without_them(database: str):
    forget = "DO $$ BEGIN EXECUTE 'DEALLOCATE ALL'; END $$"  # which psycopg does not see, as it sees no other session
    with opened(database) as store:
        for seed in range(12):
            record = make_record(make_cell(seed))
            assert store.claim(record.cell.id).attempt == 1
            store.finish(record)
            if seed in {6, 9}:
                assert bool(prepared(store)) == (seed == 6)
                store._do("forgetting", lambda connection: connection.execute(forget, prepare=False))
        assert len(store.finished()) == 12
        assert not store.notes()


def prepared(store):
    asked = "SELECT name FROM pg_prepared_statements"
    return store._do("asking", lambda connection: connection.execute(asked, prepare=False).fetchall())


def test_parts_that_another_connection_does_not_find_are_written_again(postgres: Server, database: str):
    """As after the server was restored from a backup, or a standby took its place."""
    with opened(database) as store:
        store.finish(make_record(make_cell(1)))
        postgres.ask("DELETE FROM isorun.parts")
        store._line.hang_up()
        store.claim((record := make_record(make_cell(2))).cell.id)
        store.finish(record)
        assert [found.cell for found in store.records([record.cell.id])] == [record.cell]


def test_what_was_changed_is_found_and_the_rest_can_be_copied(postgres: Server, database: str, tmp_path: Path):
    with opened(database) as store:
        for seed in range(4):
            store.finish(make_record(make_cell(seed)))
        store.documents(STUDIES).write("mine", {"a": 1})
        assert store.verify().damage == ()
        assert store.verify().sound == 4
    damaged = make_record(make_cell(2)).run_id
    for change in (
        "UPDATE isorun.runs SET body = replace(body, '0.9', '0.8') WHERE cell = %s",
        "UPDATE isorun.runs SET series = '\\x00'::bytea || series WHERE cell = %s",
        "UPDATE isorun.runs SET attempt = 7 WHERE cell = %s",
    ):
        postgres.ask(change, make_cell(2).id)
        with opened(database) as store:
            with pytest.raises(StoreDamaged, match="checksum") as raised:
                store.records()
            assert "isorun store verify" in raised.value.hint
            assert any(item.run_id.startswith(make_cell(2).id) for item in store.verify().damage)
    postgres.ask("UPDATE isorun.documents SET content = '{}'")
    with opened(database) as store, FolderStore(tmp_path / "folder") as folder:
        done = copy(store, folder, ("a", "b"))
        assert (done.records, [what for what, _ in done.damaged]) == (3, [f"cell {make_cell(2).id}", "studies/mine"])
    postgres.ask("DELETE FROM isorun.runs WHERE cell = %s", make_cell(2).id)
    with opened(database) as store:
        assert store.verify().lost == (damaged,)
    postgres.ask("UPDATE isorun.parts SET content = '{}'")
    with opened(database) as store, pytest.raises(StoreDamaged, match="shares with others"):
        store.records()


def test_a_damaged_attempt_keeps_nobody_from_saving_the_other_ones_of_its_cell(postgres, database, tmp_path):
    cell = make_cell(1)
    with opened(database) as store:
        store.finish(make_record(cell, attempt=1, state=RunState.FAILED))
        store.finish(make_record(cell, attempt=2))
        store.claim("held")
        postgres.ask("UPDATE isorun.runs SET body = body || ' ' WHERE attempt = 1")
        with FolderStore(tmp_path / "folder") as folder:
            done = copy(store, folder, ("a", "b"))
            assert (done.records, [what for what, _ in done.damaged]) == (1, [f"cell {cell.id}"])
            assert f"{cell.id}-1 is damaged" in done.damaged[0][1]
            assert folder.finished() == {cell.id}
            assert done.to_json()["going_on"] == 1


def test_a_copy_is_the_same_goes_on_and_tells_what_contradicts(database: str, tmp_path: Path):
    records = [make_record(make_cell(seed), attempt=2, points=30) for seed in range(5)]
    with FolderStore(tmp_path / "first") as first, opened(database) as server, FolderStore(tmp_path / "last") as last:
        for record in records:
            first.finish(make_record(record.cell, state=RunState.FAILED))
            first.finish(record)
        first.documents(STUDIES).write("older", {"a": 1})
        first.documents(STUDIES).write("newer", {"a": 2})
        cells = [record.cell.id for record in records[:2]]
        part = copy(first, server, ("a", "b"), cell_ids=cells, documents={(STUDIES, "newer")})
        assert (part.records, part.documents) == (4, 1)
        whole = copy(first, server, ("a", "b"))
        assert (whole.records, whole.records_there, whole.documents, whole.documents_there) == (6, 4, 1, 1)
        assert copy(server, last, ("b", "c")).records == 10
        assert [*map(content, last.records())] == [*map(content, server.records())] == [*map(content, first.records())]
        last.finish(make_record(make_cell(9), accuracy=0.1))
        server.finish(make_record(make_cell(9), accuracy=0.2))
        last.documents(STUDIES).write("older", {"a": 3})
        again = copy(server, last, ("b", "c"))
        assert (again.records, again.records_there) == (0, 10)
        assert [what for what, _ in again.conflicts] == [f"run {make_cell(9).id}-1", "studies/older"]
        assert last.documents(STUDIES).read("older") == {"a": 3}


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("postgresql://lab/isorun", "postgresql://lab/isorun"),
        ("postgresql://u@lab:5432/isorun", "postgresql://u@lab:5432/isorun"),
        ("postgresql://u:p@lab/isorun", "postgresql://u:***@lab/isorun"),
        ("postgres://u:p%40:/?w@x@lab/isorun?a=b", "postgres://u:***@lab/isorun?a=b"),
        ("postgresql://lab/isorun?user=u&password=p%26&x=1", "postgresql://lab/isorun?user=u&password=***&x=1"),
        ("postgresql://lab/isorun?sslpassword=p", "postgresql://lab/isorun?sslpassword=***"),
        ("/data/a:b@c", "/data/a:b@c"),
        ("redis://:p@lab/0", "redis://:***@lab/0"),
    ],
)
def test_a_place_is_shown_without_its_password_and_opened_with_it(given: str, shown: str):
    assert shown_place(given) == shown
    assert shown_place(shown) == shown
    assert given_place(shown) == given


def test_a_forked_process_opens_the_store_anew(database: str):
    with opened(database) as store:
        pid = os.fork()
        if pid == 0:
            try:
                store.claim("a")
            except StoreError as error:
                os._exit(7 if "anew" in error.hint else 8)
            os._exit(9)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        assert store.claim("a") is not None, "the line of the parent is still whole"
