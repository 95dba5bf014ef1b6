"""Every file operation of recording is made to fail in turn, also while recovering from the first failure."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from store_children import PRELUDE, Nursery
from store_faults import CELLS, FaultyFiles, ForgetfulFiles, record_all

from isorun.errors import IsorunError, StoreError
from isorun.store.content import stored_form
from isorun.store.files import Files
from isorun.store.folder import FolderStore
from isorun.store.inbox import Inbox
from isorun.testing.made_records import content, make_cell, make_record

pytestmark = pytest.mark.long


@pytest.fixture
def folder() -> Iterator[Path]:
    """A new place in memory, since errors of operations do not depend on the disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as made:
        yield Path(made) / "store"


def check(folder: Path, acknowledged: set[str]) -> None:
    """After one resume: each cell finished once, everything acknowledged there, every record whole."""
    resumed = record_all(folder, Files())
    with FolderStore(folder) as store:
        records = store.records()
        assert acknowledged | resumed <= {record.run_id for record in records}
        assert sorted(record.cell.id for record in records) == sorted(cell.id for cell in CELLS)
        for record in records:
            assert content(record) == content(stored_form(make_record(record.cell, attempt=record.attempt)))
        assert store.finished() == {cell.id for cell in CELLS}
        assert list((folder / "inbox").iterdir()) == []


def operations(folder: Path) -> int:
    files = FaultyFiles(0)
    record_all(folder, files)
    shutil.rmtree(folder)
    return files.count


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("fault", ["ENOSPC", "EIO"])
def test_any_operation_may_fail(folder: Path, fault: str, after: bool):
    total = operations(folder)
    assert total > 20
    for number in range(1, total + 1):
        acknowledged = record_all(folder, FaultyFiles(number, fault, after=after))
        check(folder, acknowledged)
        shutil.rmtree(folder)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("strides", [(3, 7), pytest.param((1, 1), marks=pytest.mark.slow)], ids=["some", "all"])
def test_any_operation_may_fail_while_recovering_from_any_other(folder: Path, after: bool, strides: tuple[int, int]):
    total = operations(folder)
    pairs = itertools.product(*(range(1, total + 1, stride) for stride in strides))
    for first, second in pairs:
        acknowledged = record_all(folder, FaultyFiles(first, "EIO", after=after))
        acknowledged |= record_all(folder, FaultyFiles(second, "ENOSPC", after=after))
        check(folder, acknowledged)
        shutil.rmtree(folder)


KILLED = """
    from store_faults import FaultyFiles, record_all
    folder, number, after = task.rsplit(" ", 2)
    say = lambda run_id: os.write(1, f"acknowledged {run_id}\\n".encode())
    record_all(Path(folder), FaultyFiles(int(number), "SIGKILL", after=after == "True"), say)
"""


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_the_process_may_be_killed_in_any_operation_and_again_in_recovery(folder: Path, after: bool):
    total = operations(folder)
    nursery = Nursery(KILLED)
    kills = 0
    for number in range(1, total + 1):
        acknowledged = set()
        for again in (number, max(1, total - number)):
            nursery.start(f"{folder} {again} {after}")
            while not (line := nursery.line()).startswith("gone"):
                acknowledged.add(line.removeprefix("acknowledged "))
            kills += line == "gone -9"
        check(folder, acknowledged)
        shutil.rmtree(folder)
    nursery.close()
    assert kills > total


class TestPowerLoss:
    """The inbox on a disk that forgets what was not synchronised."""

    @staticmethod
    def acknowledged_then_lost(files: ForgetfulFiles, *, names_kept: bool) -> list[str]:
        folder = Path("/inbox")
        for cell in CELLS:
            Inbox(folder, files).put(make_record(cell))
        lost = Inbox(folder, files.after_power_loss(names_kept=names_kept))
        return [item.record.cell.id for item in lost.read_all()]

    @pytest.mark.parametrize("names_kept", [False, True])
    def test_what_was_acknowledged_is_there(self, names_kept: bool):
        found = self.acknowledged_then_lost(ForgetfulFiles(), names_kept=names_kept)
        assert sorted(found) == sorted(cell.id for cell in CELLS)

    @pytest.mark.parametrize("names_kept", [False, True])
    def test_without_fsync_it_would_not_be(self, names_kept: bool):
        assert self.acknowledged_then_lost(ForgetfulFiles(syncs=False), names_kept=names_kept) == []


def test_a_record_whose_acknowledgement_failed_is_written_again(tmp_path: Path):
    """After a failed fsync the system may believe that a file is safe which is not, so it must not be trusted."""
    FolderStore(tmp_path).close()
    written = FaultyFiles(0, "EIO")
    with FolderStore(tmp_path, files=written) as store:
        written.number = written.count + 5
        with pytest.raises(StoreError, match="recording run"):
            store.finish(make_record())
        assert len(store.records()) == 1
        before = written.count
        store.finish(make_record())
        assert written.count - before == 5


STRACED = """
folder = Path(sys.argv[1])
with FolderStore(folder) as store:
    for number in range(3):
        store.finish(make_record(make_cell(number)))
        os.mkdir(f"{folder}.acknowledged-{number}")  # not by a write, which may be the call that fails
        store.pack()
"""


def straced(folder: Path, call: str, fault: str, when: int) -> subprocess.CompletedProcess[str]:
    """Record three runs while the n-th call of one kind fails; faults in SQLite's own calls are reached only so."""
    inject = ["-e", f"trace={call}", "-e", f"inject={call}:{fault}:when={when}"]
    program = [sys.executable, "-c", PRELUDE + textwrap.dedent(STRACED), str(folder)]
    done = subprocess.run(
        ["strace", "-f", "-o", f"{folder}.trace", *inject, *program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if "ptrace" in done.stderr.lower():
        pytest.skip("this machine does not allow strace")
    return done


def survives(folder: Path, call: str, fault: str, when: int) -> bool:
    """Check the invariant after one fault; whether the fault happened."""
    FolderStore(folder).close()
    done = straced(folder, call, fault, when)
    acknowledged = {make_cell(n).id for n in range(3) if Path(f"{folder}.acknowledged-{n}").exists()}
    assert done.returncode in {0, -9, 137} or "StoreError" in done.stderr, done.stderr
    with FolderStore(folder) as store:
        assert acknowledged <= store.finished()
        store.pack()
        records = store.records()
        assert len({record.cell.id for record in records}) == len(records)
        assert acknowledged <= {record.cell.id for record in records}
        for record in records:
            assert content(record) == content(stored_form(make_record(record.cell)))
    trace = Path(f"{folder}.trace").read_text()
    return "(INJECTED)" in trace or "killed by SIGKILL" in trace


needs_strace = pytest.mark.skipif(
    shutil.which("strace") is None, reason="strace is not installed; it injects faults into SQLite's own calls"
)
calls = pytest.mark.parametrize("call", ["pwrite64", "fdatasync", "unlink", "write", "fsync", "rename"])
faults = pytest.mark.parametrize("fault", ["error=ENOSPC", "error=EIO", "signal=SIGKILL"])


@needs_strace
@calls
def test_a_system_call_may_fail(tmp_path: Path, call: str):
    fault, when = {"write": ("error=ENOSPC", 1), "rename": ("signal=SIGKILL", 2)}.get(call, ("error=EIO", 2))
    assert survives(tmp_path / "store", call, fault, when)


@needs_strace
@pytest.mark.slow
@calls
@faults
def test_every_system_call_may_fail(tmp_path: Path, call: str, fault: str):
    count = 0
    while survives(tmp_path / str(count + 1), call, fault, count + 1):
        count += 1
    assert count > 0


LIMITED = """
import resource, signal
folder, limit = task.rsplit(" ", 1)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
from isorun.errors import StoreError
with FolderStore(Path(folder)) as store:
    try:
        store.pack()
    except StoreError as error:
        assert "packing records" in str(error), str(error)
"""


def test_packing_into_a_file_that_cannot_grow_changes_nothing(folder: Path):
    with FolderStore(folder) as store:
        for number in range(40):
            store.finish(make_record(make_cell(number), points=200))
    size = (folder / "store.sqlite").stat().st_size
    nursery = Nursery(LIMITED)
    for limit in range(size, size + 400_000, 40_000):
        nursery.start(f"{folder} {limit}")
        assert nursery.line() == "gone 0"
        with FolderStore(folder) as store:
            assert len(store.records()) == 40
    nursery.close()
    with FolderStore(folder) as store:
        store.pack()
        assert len(store.finished()) == 40


def test_an_error_of_the_file_system_is_an_error_of_isorun(folder: Path):
    FolderStore(folder).close()
    files = FaultyFiles(0, "EIO")
    with FolderStore(folder, files=files) as store:
        files.number = files.count + 2
        with pytest.raises(IsorunError, match="check the disk"):
            store.finish(make_record())
