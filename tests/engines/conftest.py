import pytest


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
