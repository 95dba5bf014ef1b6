"""Trainings in real interpreters, watched by the worker."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from worker_trainings import Trained, run_environment


@pytest.fixture(scope="session")
def kept_hashes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A cache for all trainings of the tests: to hash the libraries of a framework takes a second each time."""
    own = tmp_path_factory.getbasetemp()
    return str((own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "kept-hashes")


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept_hashes: str) -> Callable[..., Trained]:
    """Run a Python command as an executor would, and give what it left."""
    monkeypatch.setenv("ISORUN_CACHE", kept_hashes)
    count = iter(range(1000))

    def run(
        *arguments: str,
        level: str = "default",
        seed: int | None = None,
        python: str = sys.executable,
        extra: Mapping[str, str] = {},
        cwd: Path = tmp_path,
    ) -> Trained:
        folder = tmp_path / f"run-{next(count)}"
        folder.mkdir()
        env = {**run_environment(folder, level, seed, extra), "ISORUN_CACHE": kept_hashes}
        done = subprocess.run(
            [python, *arguments], env=env, cwd=cwd, capture_output=True, text=True, timeout=120, check=False
        )
        return Trained(done.returncode, done.stdout, done.stderr, folder)

    return run
