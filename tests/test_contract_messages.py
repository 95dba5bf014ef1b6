"""A promise that is broken says what was found."""

import re
import subprocess
import sys

import pytest

BROKEN = """
from isorun.testing.memory_store import MemoryStore
from isorun.testing.store_contract import StoreContract

class Forgetful(MemoryStore):
    def finished(self, *_):
        return set()

class TestForgetful(StoreContract):
    def open(self, place, **_):
        return Forgetful()
"""


NEGLIGENT = """
import threading
from isorun.execution import RunEnded
from isorun.execution.local import LocalExecutor
from isorun.execution.assemble import lost_record
from isorun.study.records import RunState
from isorun.testing.executor_contract import ExecutorContract

class Negligent(LocalExecutor):  # says that runs were ended, and ends none
    def submit(self, job, tell):
        self.jobs = {**getattr(self, "jobs", {}), job.run_id: (job, tell)}
        super().submit(job, lambda event: self.heard(job.run_id, event, tell))

    def heard(self, run_id, event, tell):
        if run_id in self.jobs and (not isinstance(event, RunEnded) or self.jobs.pop(run_id)):
            tell(event)

    def stop(self, run_id=None):
        for job, tell in [self.jobs.pop(name) for name in list(self.jobs) if run_id in (None, name)]:
            tell(RunEnded(job.run_id, lost_record(job, "stopped", state=RunState.INTERRUPTED)))

    def close(self):
        self.stop()
        threading.Timer(1, super().close).start()

class TestNegligent(ExecutorContract):
    def make_executor(self, runs):
        return Negligent(runs, 2, launch="fresh", grace_seconds=0.1)

class Late(LocalExecutor):  # tells when it finds the time
    def submit(self, job, tell):
        super().submit(job, lambda event: threading.Timer(0.2, tell, [event]).start())

class TestLate(ExecutorContract):
    def make_executor(self, runs):
        return Late(runs, launch="fresh")
"""
FOUND_OUT = (
    "test_what_was_ended_has_gone_with_all_its_children_when_its_end_is_told[stop one]",
    "test_what_was_ended_has_gone_with_all_its_children_when_its_end_is_told[stop all]",
    "test_what_was_ended_has_gone_with_all_its_children_when_its_end_is_told[close]",
    "test_a_run_that_is_stopped_is_asked_first_and_then_killed",
    "test_nothing_is_told_after_closing_returned",
)


def pytest_says(folder, text, *words):
    """What pytest says of a test file with this text."""
    (folder / "test_it.py").write_text(text)
    words = ["-q", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", str(folder), str(folder), *words]
    done = subprocess.run([sys.executable, "-m", "pytest", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_a_broken_contract_shows_the_values(tmp_path):
    said = pytest_says(tmp_path, BROKEN)
    assert re.search(r"^E +(AssertionError: )?assert .*set\(\)", said, re.MULTILINE), said[-3000:]


@pytest.mark.long
def test_an_executor_that_ends_nothing_is_found_out(tmp_path):
    said = pytest_says(tmp_path, NEGLIGENT, "-k", "(Negligent and (has_gone or asked)) or (Late and after_closing)")
    failed = re.findall(r"^FAILED .*::(test_\w+(?:\[.*?\])?)", said, re.MULTILINE)
    assert sorted(failed) == sorted(FOUND_OUT), said[-3000:]
    assert re.search(r"^E +(AssertionError: )?assert \['python", said, re.MULTILINE), said[-3000:]
