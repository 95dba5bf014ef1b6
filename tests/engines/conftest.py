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
