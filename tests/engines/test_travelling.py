"""A study that begins here goes on with the engines of clusters, then with a worker, and back: every cell once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from travelling_study import travel

sys.path.insert(0, str(Path(__file__).parents[1] / "store"))
from postgres_server import Server, needed

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server(needed())
    yield made
    made.close()


@pytest.fixture
def database(server: Server) -> Iterator[str]:
    yield server.url()
    server.empty()


@pytest.mark.usefixtures("slurm")
def test_a_study_goes_to_slurm_to_a_worker_and_back(database: str, tmp_path: Path):
    travel(database, tmp_path, ["slurm"])


@pytest.mark.usefixtures("slurm", "no_token")
def test_a_study_goes_to_ray_to_slurm_to_a_worker_and_back(database: str, ray_cluster, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", ray_cluster.address)
    travel(database, tmp_path, ["ray", "slurm"])
