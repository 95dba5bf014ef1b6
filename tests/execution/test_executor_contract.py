"""What every executor promises, checked for each of them."""

import time

from isorun.execution.local import LocalExecutor
from isorun.study.records import Series
from isorun.testing.executor_contract import FAILS, HANGS, ExecutorContract
from isorun.testing.instant_executor import Computed, InstantExecutor


def compute(job):
    """The trainings of the contract without a process."""
    text = (job.working_folder / job.command[1]).read_text()
    if text == FAILS:
        raise ValueError("no data")
    if text == HANGS:
        time.sleep(0.3)  # long enough to be stopped meanwhile
        return Computed(wall_seconds=30.0)
    return Computed(results={"test_acc": 0.5}, series={"acc": Series((1.0, 2.0), (0.0, 0.0), (0.25, 0.5))})


class TestTheInstantExecutor(ExecutorContract):
    processes_here = False  # it starts none

    def make_executor(self, runs):
        return InstantExecutor(compute)


class TestTheLocalExecutorFresh(ExecutorContract):
    def make_executor(self, runs):
        return LocalExecutor(runs, launch="fresh", grace_seconds=1.0)


class TestTheLocalExecutorWarm(ExecutorContract):
    def make_executor(self, runs):
        return LocalExecutor(runs, launch="warm", grace_seconds=1.0)
