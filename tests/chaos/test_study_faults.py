"""Every operation of a small study is made to fail in turn; after the fault, one resume makes everything whole."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from instant_study import carry_out, three_runs, token
from oracle import Oracle, Workplace, later_attempts, only_once
from store_children import Nursery
from store_faults import FaultyFiles

from isorun import workflow
from isorun.store.files import Files
from isorun.study.records import RunState

pytestmark = [pytest.mark.chaos, pytest.mark.long]

before_or_after = pytest.mark.parametrize("after", [False, True], ids=["before", "after"])


@pytest.fixture
def folder() -> Iterator[Path]:
    """A new place in memory, since errors of operations do not depend on the disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as made:
        yield Path(made) / "study"


def resume_and_check(folder: Path, said: list[str]) -> None:
    """After one resume: each cell finished once and whole, all that was acknowledged is there, nothing ran again.

    The next run starts before the last record is on the disk, so a fault may stop one: that is a record, too.
    """
    resumed: list[str] = []
    assert carry_out(folder, Files(), resumed.append) == ""
    study = three_runs(folder)
    records = workflow.records(study)
    acknowledged = {line.split()[1] for line in [*said, *resumed] if line.startswith("acknowledged")}
    began = [line.split()[1] for line in [*said, *resumed] if line.startswith("began")]
    assert only_once(began)
    assert acknowledged <= {record.run_id for record in records}
    finished = [record for record in records if record.state is not RunState.INTERRUPTED]
    assert len(records) - len(finished) <= 1
    assert sorted(record.cell.id for record in finished) == sorted(cell.id for cell in workflow.cells(study))
    for record in finished:
        assert (record.state, record.results) == (RunState.FINISHED, {"token": token(record.run_id)})
        assert record.series["acc"].values == (0.25, 0.5)
        assert not later_attempts(record, began)
    assert list((folder / ".isorun" / "inbox").iterdir()) == []


def operations(folder: Path) -> int:
    files = FaultyFiles(0)
    assert carry_out(folder, files, str) == ""
    shutil.rmtree(folder)
    assert files.count > 20
    return files.count


@before_or_after
@pytest.mark.parametrize("fault", ["ENOSPC", "EIO"])
def test_any_operation_of_a_study_may_fail(folder: Path, fault: str, after: bool):
    for number in range(1, operations(folder) + 1):
        said: list[str] = []
        message = carry_out(folder, FaultyFiles(number, fault, after=after), said.append)
        assert not message or "  next:    " in message
        resume_and_check(folder, said)
        shutil.rmtree(folder)


KILLED = f"""
    sys.path.insert(0, {str(Path(__file__).parent)!r})
    from instant_study import carry_out
    from store_faults import FaultyFiles
    folder, number, after = task.rsplit(" ", 2)
    say = lambda line: os.write(1, (line + "\\n").encode())
    carry_out(Path(folder), FaultyFiles(int(number), "SIGKILL", after=after == "True"), say)
"""


@before_or_after
@pytest.mark.parametrize("stride", [3, pytest.param(1, marks=pytest.mark.slow)], ids=["some", "all"])
def test_a_study_may_be_killed_in_any_operation_and_again_while_it_is_resumed(folder: Path, after: bool, stride: int):
    total = operations(folder)
    numbers = range(1 + after, total + 1, stride) if stride > 1 else range(1, total + 1)
    nursery = Nursery(KILLED)
    kills = 0
    for number in numbers:
        said: list[str] = []
        for again in (number, max(1, total - number)):
            nursery.start(f"{folder} {again} {after}")
            while not (line := nursery.line()).startswith("gone"):
                said.append(line)
            kills += line == "gone -9"
        resume_and_check(folder, said)
        shutil.rmtree(folder)
    nursery.close()
    assert kills > len(numbers)


CALLS = {"write": 32, "pwrite64": 70, "fsync": 8, "fdatasync": 11, "rename": 4, "mkdir": 4, "unlink": 6}
SOME = [
    ("write", "error=ENOSPC", 1),
    ("pwrite64", "error=ENOSPC", 30),
    ("fsync", "error=EIO", 2),
    ("rename", "signal=SIGKILL", 2),
]
needs_strace = pytest.mark.skipif(
    shutil.which("strace") is None, reason="strace is not installed; it injects faults into system calls"
)


def survives(folder: Path, call: str, fault: str, when: int) -> bool:
    """Check the invariant after the n-th call of one kind failed in each process; whether any did."""
    trace = folder.with_name(f"{folder.name}.trace")
    oracle = Oracle(Workplace(folder, repeats=1))
    words = ["strace", "-f", "-o", trace, "-e", f"trace={call}", "-e"]
    hurt = oracle.workplace.start("--launch", "fresh", under=[*words, f"inject={call}:{fault}:when={when}"])
    hurt.wait()
    if "ptrace" in hurt.stderr.lower():
        pytest.skip("this machine does not allow strace")
    assert hurt.process.returncode in {0, 1, -9, 137}, hurt.stderr
    oracle.hear(hurt)
    oracle.check()
    oracle.check_completed(oracle.workplace.run("--launch", "fresh"))
    told = trace.read_text()
    return "(INJECTED)" in told or "killed by SIGKILL" in told


@needs_strace
@pytest.mark.parametrize(("call", "fault", "when"), SOME)
def test_a_system_call_of_a_real_study_may_fail(call: str, fault: str, when: int, tmp_path: Path):
    assert survives(tmp_path / "study", call, fault, when)


@needs_strace
@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("fault", ["error=ENOSPC", "error=EIO", "signal=SIGKILL"])
def test_every_system_call_of_a_real_study_may_fail(call: str, fault: str, tmp_path: Path):
    failed = [survives(tmp_path / f"{when}", call, fault, when) for when in range(1, CALLS[call])]
    assert sum(failed) >= CALLS[call] / 2
