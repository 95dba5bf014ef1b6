"""Real engines, each started once for all tests of a process."""

from collections.abc import Iterator

import pytest
import slurm_cluster


@pytest.fixture(scope="session")
def slurm_daemons() -> Iterator[slurm_cluster.Cluster]:
    """A SLURM cluster; the tests that need one are skipped where SLURM is not installed."""
    slurm_cluster.needed()
    cluster = slurm_cluster.Cluster()
    yield cluster
    cluster.close()


@pytest.fixture
def slurm(slurm_daemons, monkeypatch) -> Iterator[slurm_cluster.Cluster]:
    """The cluster, found by SLURM's commands and as if new, with nothing of the test left in it afterwards."""
    for name, value in slurm_daemons.variables.items():
        monkeypatch.setenv(name, value)
    yield slurm_daemons
    slurm_daemons.recover()


@pytest.fixture(scope="session")
def ray_cluster():
    """A cluster of Ray that many tests use; nobody kills any of it."""
    pytest.importorskip("ray", reason="Ray is not installed: make test-engines installs it")
    from ray_clusters import Clusters

    made = Clusters(cpus=4)
    yield made
    made.close()


@pytest.fixture
def no_token(monkeypatch):
    """The clusters of the tests ask for none: who can reach 127.0.0.1 is on this machine."""
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)


@pytest.fixture
def ray_executor(tmp_path, ray_cluster, no_token):
    """A function that makes executors on the cluster; they are closed when the test is over."""
    from isorun.execution.ray import RayExecutor

    made = []

    def make(runs=tmp_path / "runs", jobs=None, **options):
        options.setdefault("url", f"ray:{ray_cluster.address}")
        made.append(RayExecutor(runs, jobs, **options))
        return made[-1]

    yield make
    for executor in made:
        executor.close()
