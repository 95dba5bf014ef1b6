"""What every executor promises, and what SLURM's promises beyond that, on a real cluster."""

import pytest

from isorun.execution.slurm import SlurmExecutor
from isorun.testing.executor_contract import ExecutorContract

pytestmark = pytest.mark.engines


@pytest.mark.usefixtures("cluster")
class TestTheSlurmExecutor(ExecutorContract):
    def make_executor(self, runs):
        return SlurmExecutor(runs, {"at-once": "3"})
