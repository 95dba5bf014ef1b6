"""What every executor promises, checked on a real cluster of Ray."""

import pytest

from isorun.execution.ray import RayExecutor
from isorun.testing.executor_contract import ExecutorContract

pytestmark = pytest.mark.engines


class TestTheRayExecutor(ExecutorContract):
    @pytest.fixture(autouse=True)
    def _on_a_cluster(self, ray_cluster, no_token):
        self.address = ray_cluster.address

    def make_executor(self, runs):
        return RayExecutor(runs, 2, url=f"ray:{self.address}", grace_seconds=1.0)
