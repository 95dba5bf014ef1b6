"""Faults for tests of what survives: file operations that fail, kill, or forget, and databases that were altered."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from isorun.errors import StoreError
from isorun.store.content import stored_form
from isorun.store.files import Files
from isorun.store.folder import FolderStore
from isorun.study.records import RunState, sealed_and_gzipped
from isorun.testing.made_records import content, make_cell, make_record

CELLS = [make_cell(number) for number in range(3)]
ERRORS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO}


class FaultyFiles(Files):
    """Real operations, of which the n-th that changes something fails.

    fault: "ENOSPC" or "EIO" to raise, "SIGKILL" to end the process. after: whether the operation is carried out (a
    write by half) before it fails. `count` says how many operations there were.
    """

    def __init__(self, number: int, fault: str = "EIO", *, after: bool = False) -> None:
        self.number = number
        self.fault = fault
        self.after = after
        self.count = 0

    def create(self, path: Path) -> int:
        descriptor = -1 if self._is_due() and not self.after else super().create(path)
        if self._is_due_now():
            if descriptor >= 0:
                super().close(descriptor)
            self._fail()
        return descriptor

    def write(self, descriptor: int, *pieces: bytes) -> None:
        data = b"".join(pieces)
        if self._is_due() and self.after:
            super().write(descriptor, data[: len(data) // 2])
        self._step()
        super().write(descriptor, data)

    def fsync(self, descriptor: int) -> None:
        self._around(lambda: super(FaultyFiles, self).fsync(descriptor))

    def rename(self, source: Path, target: Path) -> None:
        self._around(lambda: super(FaultyFiles, self).rename(source, target))

    def fsync_folder(self, folder: Path) -> None:
        self._around(lambda: super(FaultyFiles, self).fsync_folder(folder))

    def unlink(self, path: Path) -> None:
        self._around(lambda: super(FaultyFiles, self).unlink(path))

    def ensure_folder(self, path: Path) -> None:
        self._around(lambda: super(FaultyFiles, self).ensure_folder(path))

    def _around(self, operation) -> None:
        due = self._is_due()
        if not due or self.after:
            operation()
        self._step()

    def _is_due(self) -> bool:
        return self.count + 1 == self.number

    def _is_due_now(self) -> bool:
        self.count += 1
        return self.count == self.number

    def _step(self) -> None:
        if self._is_due_now():
            self._fail()

    def _fail(self) -> None:
        if self.fault == "SIGKILL":
            os.kill(os.getpid(), signal.SIGKILL)
        code = ERRORS[self.fault]
        raise OSError(code, os.strerror(code))


class ForgetfulFiles(Files):
    """Files in memory that remember what has reached the disk.

    `after_power_loss` is the worst the disk may hold: content that was not synchronised is cut, and names that were
    not synchronised with their folder are as they were before. syncs: whether fsync does anything, to check the test.
    """

    def __init__(self, *, syncs: bool = True) -> None:
        self.syncs = syncs
        self._next = 3
        self._open: dict[int, list[bytes]] = {}
        self._names: dict[Path, list[bytes]] = {}
        self._durable_names: dict[Path, list[bytes]] = {}
        self._durable_content: dict[int, bytes] = {}

    def create(self, path: Path) -> int:
        if path in self._names:
            raise FileExistsError(path)
        self._next += 1
        self._names[path] = self._open[self._next] = [b""]
        return self._next

    def write(self, descriptor: int, *pieces: bytes) -> None:
        self._open[descriptor][0] += b"".join(pieces)

    def fsync(self, descriptor: int) -> None:
        if self.syncs:
            file = self._open[descriptor]
            self._durable_content[id(file)] = file[0]

    def close(self, descriptor: int) -> None:
        del self._open[descriptor]

    def rename(self, source: Path, target: Path) -> None:
        self._names[target] = self._names.pop(source)

    def fsync_folder(self, folder: Path) -> None:
        if self.syncs:
            kept = {path: file for path, file in self._durable_names.items() if path.parent != folder}
            self._durable_names = {**kept, **{path: f for path, f in self._names.items() if path.parent == folder}}

    def unlink(self, path: Path) -> None:
        self._names.pop(path, None)

    def names(self, folder: Path) -> list[str]:
        return [path.name for path in self._names if path.parent == folder]

    def read(self, path: Path) -> bytes:
        if path not in self._names:
            raise FileNotFoundError(path)
        return self._names[path][0]

    def lock(self, descriptor: int) -> bool:
        return descriptor in self._open

    def is_abandoned(self, path: Path) -> bool:
        return not any(file is self._names.get(path) for file in self._open.values())

    def after_power_loss(self, *, names_kept: bool) -> ForgetfulFiles:
        """What is there after the machine comes back; names that were not synchronised may or may not be kept."""
        found = ForgetfulFiles(syncs=self.syncs)
        for path, file in (self._names if names_kept else self._durable_names).items():
            found._names[path] = found._durable_names[path] = [self._durable_content.get(id(file), b"")]
        return found


def record_all(folder: Path, files: Files, say: Callable[[str], object] = str) -> set[str]:
    """Claim, record and pack three cells, going on after each error; the run ids that were acknowledged, also said."""
    acknowledged: set[str] = set()
    try:
        with FolderStore(folder, files=files) as store:
            for cell in CELLS:
                try:
                    claim = store.claim(cell.id)
                    if claim is not None:
                        record = make_record(cell, attempt=claim.attempt)
                        store.finish(record)
                        acknowledged.add(record.run_id)
                        say(record.run_id)
                        claim.release()
                except StoreError:
                    continue
            store.pack()
    except StoreError:
        return acknowledged
    return acknowledged


def filled(folder: Path, runs: int = 6) -> dict[str, str]:
    """A store with finished and failed runs; the content of each."""
    truth = {}
    with FolderStore(folder) as store:
        for number in range(runs):
            for attempt, state in ((1, RunState.FAILED), (2, RunState.FINISHED)):
                record = make_record(make_cell(number), attempt=attempt, state=state, accuracy=number / 8, points=40)
                store.finish(record)
                truth[record.run_id] = content(stored_form(record))
    return truth


def alter(folder: Path, change: Callable[[bytearray], bytearray | None]) -> None:
    path = folder / "store.sqlite"
    data = bytearray(path.read_bytes())
    path.write_bytes(change(data) or data)


def change_a_value(data: bytearray) -> bytearray:
    assert data.count(b'"accuracy":0.375') == 2
    return data.replace(b'"accuracy":0.375', b'"accuracy":0.975')


def keep_run_folders(folder: Path) -> None:
    with FolderStore(folder) as store:
        for record in store.records():
            (folder / "runs" / record.run_id).mkdir(parents=True)
            (folder / "runs" / record.run_id / "record.json.gz").write_bytes(b"".join(sealed_and_gzipped(record)))


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """A hang is a failure, not a wait."""

    def ring(*_: object) -> None:
        raise AssertionError(f"no answer in {seconds} seconds")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
