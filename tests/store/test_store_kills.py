"""The recording path under SIGKILL at random moments, watched from outside the killed process."""

from __future__ import annotations

import os
import random
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from store_children import Nursery, kill

from isorun.store.content import stored_form
from isorun.store.folder import FolderStore
from isorun.testing.made_records import content, make_record

KILLS_A_STORE = 50

RECORDING = """
    folder, first = task.rsplit(" ", 1)
    store = FolderStore(Path(folder))
    os.write(1, b"open\\n")
    number = int(first)
    while True:
        claim = store.claim(make_cell(number).id)
        if claim is not None:
            os.write(1, f"producing {number} {claim.attempt}\\n".encode())
            store.finish(make_record(make_cell(number), attempt=claim.attempt, accuracy=number + claim.attempt / 100))
            os.write(1, f"acknowledged {number} {claim.attempt}\\n".encode())
            claim.release()
        if number % 4 == 0:
            store.pack()
        number += 1
"""


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    opened = Nursery(RECORDING)
    yield opened
    opened.close()


class Oracle:
    """What the children said they were about to record, and what they were told is safe."""

    def __init__(self) -> None:
        self.producing: set[tuple[int, int]] = set()
        self.acknowledged: set[tuple[int, int]] = set()

    def watch(self, nursery: Nursery, kill_soon: Callable[[], None]) -> None:
        """Listen until the child has gone; kill it soon after it has opened the store, unless that is under way."""
        while not (line := nursery.line()).startswith("gone"):
            if line == "open":
                kill_soon()
                continue
            word, number, attempt = line.split()
            getattr(self, word).add((int(number), int(attempt)))
        assert line == "gone -9"

    @property
    def next(self) -> int:
        """Where the next child starts: some way back, so that it meets what was interrupted."""
        return max(0, max((number for number, _ in self.producing), default=0) - 2)

    def check(self, folder: Path) -> None:
        """Acknowledged exactly once, nothing never produced, nothing half-written; before and after packing."""
        with FolderStore(folder) as store:
            for _ in range(2):
                records = store.records()
                found = [(record.cell.seed, record.attempt) for record in records]
                assert len({number for number, _ in found}) == len(found)
                assert self.acknowledged <= set(found) <= self.producing
                for record in records:
                    accuracy = record.cell.seed + record.attempt / 100
                    expected = stored_form(make_record(record.cell, attempt=record.attempt, accuracy=accuracy))
                    assert content(record) == content(expected)
                store.pack()
            assert store.notes() == ()
            assert list((folder / "inbox").iterdir()) == []


class Killer:
    """Kills one child once, at a random moment: while it opens the store, or while it records."""

    def __init__(self, pid: int, generator: random.Random) -> None:
        self._pid = pid
        self._while_recording = generator.uniform(0.0, 0.05)
        self._timer: threading.Timer | None = None
        if generator.random() < 0.2:
            self._start(generator.uniform(0.0, 0.005))

    def soon(self) -> None:
        if self._timer is None:
            self._start(self._while_recording)

    def join(self) -> None:
        assert self._timer is not None
        self._timer.join()

    def _start(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, kill, [self._pid])
        self._timer.start()


@pytest.fixture
def places(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """In memory and on the disk: one meets more operations a second, the other shows real fsync."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as quick:
        yield Path(quick), tmp_path


@pytest.mark.long
@pytest.mark.chaos
@pytest.mark.parametrize("kills", [100, pytest.param(1_000, marks=pytest.mark.slow)])
def test_kills_lose_double_and_halve_nothing(places: tuple[Path, Path], nursery: Nursery, kills: int):
    generator = random.Random(20260301)
    acknowledged = 0
    for folder in (places[number % 2] / str(number) for number in range(kills // KILLS_A_STORE)):
        oracle = Oracle()
        for _ in range(KILLS_A_STORE):
            killer = Killer(nursery.start(f"{folder} {oracle.next}"), generator)
            oracle.watch(nursery, killer.soon)
            killer.join()
        oracle.check(folder)
        acknowledged += len(oracle.acknowledged)
    assert acknowledged > kills // 2  # it was records that the kills met; on a busy machine fewer come about
