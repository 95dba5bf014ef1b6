"""The store of many machines while servers, clients and the line between them are killed: nothing lost or doubled."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from postgres_server import Proxy, Server
from store_children import Nursery, kill

from isorun.store import AbstractStore
from isorun.testing.made_records import make_cell, make_record

FIRST = "from isorun.errors import StoreConflict\nfrom isorun.store.postgres import PostgresStore"
RECORDING = """
    url, first, patience = task.split()
    store = PostgresStore(url, lease_seconds=0.5, patience_seconds=float(patience))
    os.write(1, b"open\\n")
    number = int(first)
    while True:
        claim = store.claim(make_cell(number).id)
        if claim is not None:
            os.write(1, f"producing {number} {claim.attempt}\\n".encode())
            store.finish(make_record(make_cell(number), attempt=claim.attempt, accuracy=number + claim.attempt / 100))
            os.write(1, f"acknowledged {number} {claim.attempt}\\n".encode())
            claim.release()
        number += 1
"""
STOPPED = """
    url, number = task.split()
    store = PostgresStore(url, lease_seconds=0.3)
    claim = store.claim(make_cell(int(number)).id)
    os.write(1, f"claimed {claim.attempt}\\n".encode())
    sys.stdin.readline()
    try:
        store.finish(make_record(make_cell(int(number)), attempt=claim.attempt, accuracy=0.1))
    except StoreConflict:
        os.write(1, b"refused\\n")
    else:
        os.write(1, b"accepted\\n")
    store.close()
"""
KILLS = pytest.mark.parametrize("kills", [3, pytest.param(60, marks=pytest.mark.slow)])
pytestmark = pytest.mark.chaos


def opened(url: str, **options) -> AbstractStore:
    from isorun.store.postgres import PostgresStore

    return PostgresStore(url, **options)


@contextmanager
def children(body: str, postgres: Server) -> Iterator[Nursery]:
    """Forked from a process that is started only where there is a server."""
    nursery = Nursery(body, FIRST)
    try:
        yield nursery
    finally:
        _, errors = nursery.process.communicate(timeout=60)
        assert all("does not answer; waiting" in line for line in errors.splitlines()), errors


class Oracle:
    """What the children said they were about to record, and what they were told is safe."""

    def __init__(self) -> None:
        self.said: dict[str, set[tuple[int, int]]] = {"producing": set(), "acknowledged": set()}

    def hear(self, line: str) -> None:
        word, number, attempt = line.split()
        self.said[word].add((int(number), int(attempt)))

    @property
    def next(self) -> int:
        """Where the next child starts: some way back, so that it meets what was interrupted."""
        return max(0, max((number for number, _ in self.said["producing"]), default=0) - 2)

    def check(self, url: str) -> None:
        with opened(url) as store:
            records = store.records()
            found = [(record.cell.seed, record.attempt) for record in records]
            assert len({number for number, _ in found}) == len(found), "a cell was finished twice"
            assert self.said["acknowledged"] <= set(found) <= self.said["producing"]
            for record in records:
                expected = make_record(
                    record.cell, attempt=record.attempt, accuracy=record.cell.seed + record.attempt / 100
                )
                assert record.results == expected.results
            assert store.verify().damage == ()


@KILLS
def test_a_killed_client_loses_and_doubles_nothing(postgres: Server, database: str, kills: int):
    generator, oracle = random.Random(kills), Oracle()
    with children(RECORDING, postgres) as nursery:
        for _ in range(kills):
            pid = nursery.start(f"{database} {oracle.next} 10")
            timer = threading.Timer(generator.uniform(0.05, 0.3), kill, [pid])
            while not (line := nursery.line()).startswith("gone"):
                if line == "open":
                    timer.start()
                else:
                    oracle.hear(line)
            assert line == "gone -9"
            timer.join()
    oracle.check(database)
    assert len(oracle.said["acknowledged"]) > kills // 2


@KILLS
def test_a_killed_server_loses_and_doubles_nothing(postgres: Server, database: str, kills: int):
    """SIGKILL to the server while a client records, which goes on when it is back."""
    generator, oracle = random.Random(kills), Oracle()
    with children(RECORDING, postgres) as nursery:
        pid = nursery.start(f"{database} 0 60")
        assert nursery.line() == "open"
        heard = threading.Event()

        def listen() -> None:
            while not (line := nursery.line()).startswith("gone"):
                oracle.hear(line)
                heard.set()

        listener = threading.Thread(target=listen)
        listener.start()
        for _ in range(kills):
            heard.clear()
            assert heard.wait(60), "the client does not go on"
            time.sleep(generator.uniform(0.0, 0.1))
            postgres.kill()
            postgres.start()
        heard.clear()
        assert heard.wait(60)
        kill(pid)
        listener.join()
    oracle.check(database)
    assert len(oracle.said["acknowledged"]) > kills // 2


@KILLS
def test_who_was_stopped_and_wakes_up_after_a_takeover_cannot_finish(postgres: Server, database: str, kills: int):
    with children(STOPPED, postgres) as nursery, opened(database, lease_seconds=0.3) as store:
        for number in range(kills):
            cell = make_cell(number)
            pid = nursery.start(f"{database} {number}")
            assert nursery.line() == "claimed 1"
            os.kill(pid, signal.SIGSTOP)
            deadline = time.monotonic() + 60
            while (taken := store.claim(cell.id)) is None:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            assert taken.attempt == 2
            if number % 2:  # it wakes up while the other is at it, or when the other is done
                store.finish(make_record(cell, attempt=2))
            os.kill(pid, signal.SIGCONT)
            nursery.process.stdin.write("go on\n")
            nursery.process.stdin.flush()
            assert nursery.line() == "refused"
            assert nursery.line() == "gone 0"
            store.finish(make_record(cell, attempt=2))
            taken.release()
        found = [(record.cell.seed, record.attempt, record.results["accuracy"]) for record in store.records()]
        assert sorted(found) == [(number, 2, 0.9) for number in range(kills)]


@KILLS
def test_a_line_cut_between_commit_and_its_reply_loses_and_doubles_nothing(postgres: Server, database: str, kills: int):
    proxy, generator = Proxy(postgres.port), random.Random(kills)
    with opened(postgres.url(port=proxy.port), patience_seconds=30) as store:
        for number in range(kills):
            claim = store.claim(make_cell(number).id)
            assert claim is not None
            if generator.random() < 0.5:
                proxy.swallow = b"INSERT 0 1\x00"
            else:  # cut at whatever moment comes
                threading.Timer(generator.uniform(0.0, 0.005), proxy.cut).start()
            store.finish(make_record(make_cell(number), attempt=claim.attempt, accuracy=float(number)))
            claim.release()
        records = store.records()
        assert sorted((record.cell.seed, record.results["accuracy"]) for record in records) == [
            (number, float(number)) for number in range(kills)
        ]
        assert store.verify().damage == ()
    assert proxy.swallowed > 0
    proxy.close()
