"""Trainings in real interpreters, watched by the worker."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from worker_trainings import Trained, run_environment


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Trained]:
    """Run a Python command as an executor would, and give what it left."""
    monkeypatch.setenv("ISORUN_CACHE", str(tmp_path / "cache"))
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
        env = {**run_environment(folder, level, seed, extra), "ISORUN_CACHE": str(tmp_path / "cache")}
        done = subprocess.run(
            [python, *arguments], env=env, cwd=cwd, capture_output=True, text=True, timeout=120, check=False
        )
        return Trained(done.returncode, done.stdout, done.stderr, folder)

    return run
