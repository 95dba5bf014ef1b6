"""`isorun worker` as people start it, while workers, the server and the line are killed: nothing lost or doubled."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres_server import Proxy, Server
from worker_processes import LEASE, Workers, told

pytestmark = [pytest.mark.chaos, pytest.mark.alone]
KILLS = pytest.mark.parametrize("kills", [1, pytest.param(50, marks=pytest.mark.slow)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def opened() -> Iterator[list[Workers]]:
    made: list[Workers] = []
    yield made
    for workers in made:
        workers.end()


@KILLS
def test_a_killed_worker_loses_and_doubles_nothing(database: str, folder: Path, opened: list, kills: int):
    generator = random.Random(kills)
    workers = Workers(folder, database, repeats=6 * kills + 4)
    opened.append(workers)
    at_work = [workers.start("--jobs", "2") for _ in range(2)]
    done = 0
    for _ in range(kills):
        done = workers.wait_for_more(done)
        time.sleep(generator.uniform(0.0, 0.2))
        victim = at_work.pop(generator.randrange(2))
        victim.kill()
        victim.wait()
        at_work.append(workers.start("--jobs", "2"))
    for worker in at_work:
        worker.wait(timeout=120)
    workers.check(killed=2 * kills)


@KILLS
def test_a_worker_that_was_stopped_and_wakes_up_after_a_takeover_records_nothing_twice(
    database: str, folder: Path, opened: list, kills: int
):
    """SIGSTOP reaches the worker alone: its training goes on, and comes to its end before it is taken over."""
    workers = Workers(folder, database, repeats=60)
    opened.append(workers)
    taken_over = 0
    for _ in range(kills):
        workers.queue(workers.finished() + 60)  # a quick machine makes dozens until what was held has lapsed
        stopped = workers.start()
        before = workers.wait_for_more(workers.finished())
        stopped.send_signal(signal.SIGSTOP)
        held = {holder for holder in holders(database) if holder[1] == stopped.pid}
        other = workers.start("--idle", "60")
        deadline = time.monotonic() + 60
        while held & holders(database):  # until they have lapsed
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(2 * float(LEASE))  # what has lapsed is watched for half a lease before the other takes it over
        workers.wait_for_more(before)
        stopped.send_signal(signal.SIGCONT)
        other.send_signal(signal.SIGTERM)
        stopped.send_signal(signal.SIGTERM)
        other.wait(timeout=60)
        answer = told(stopped)
        taken_over += sum(warning["code"] in {"made-elsewhere", "store-claim-lost"} for warning in answer["warnings"])
    # The other comes to what has lapsed when it has been through all else: of one stop it may not have been yet.
    assert taken_over > 0 or kills == 1
    workers.check(killed=2 * kills + kills)


def holders(url: str) -> set[tuple[str, int, int]]:
    """Who holds cells, and as which attempt."""
    from isorun.store.postgres import PostgresStore

    with PostgresStore(url, lease_seconds=1) as store:
        found = store.holders()
    return {(one.cell_id, one.pid, one.attempt) for one in found if not one.cell_id.startswith("worker-")}


@KILLS
def test_a_killed_server_loses_and_doubles_nothing(
    postgres: Server, database: str, folder: Path, opened: list, kills: int
):
    generator = random.Random(kills)
    workers = Workers(folder, database, repeats=6 * kills + 4)
    opened.append(workers)
    at_work = [workers.start() for _ in range(2)]
    done = 0
    for _ in range(kills):
        done = workers.wait_for_more(done)
        time.sleep(generator.uniform(0.0, 0.2))
        postgres.kill()
        postgres.start()
    for worker in at_work:
        assert worker.wait(timeout=180) == 0, workers.said()
    workers.check(killed=2 * kills)


@KILLS
def test_a_line_that_is_cut_loses_and_doubles_nothing(
    postgres: Server, database: str, folder: Path, opened: list, kills: int
):
    """Between what a statement did and its reply, and at whatever moment comes."""
    generator, proxy = random.Random(kills), Proxy(postgres.port)
    workers = Workers(folder, database, repeats=3 * kills + 4)
    opened.append(workers)
    at_work = [workers.start(url=postgres.url(port=proxy.port)) for _ in range(2)]
    cuts, done = 0, 0
    while cuts < kills:
        done = workers.wait_for_more(done)
        if generator.random() < 0.6:
            before, proxy.swallow = proxy.swallowed, b"INSERT 0 1\x00"
            deadline = time.monotonic() + 60
            while proxy.swallowed == before and time.monotonic() < deadline:
                time.sleep(0.01)
        else:
            threading.Timer(generator.uniform(0.0, 0.1), proxy.cut).start()
        cuts += 1
    for worker in at_work:
        assert worker.wait(timeout=180) == 0, workers.said()
    assert proxy.swallowed > 0
    workers.check(killed=2 * kills)
    proxy.close()
