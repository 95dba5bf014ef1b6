"""The version of the code: commit, and a hash that follows the code and nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from isorun.worker.codeversion import code_version


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    root.mkdir()
    git(root, "init", "-q")
    (root / "train.py").write_text("print(1)\n")
    git(root, "add", "train.py")
    git(root, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "first")
    return root


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def test_a_clean_repository_is_its_commit(repository):
    version = code_version(repository)
    assert version == {"commit": git(repository, "rev-parse", "HEAD"), "dirty": False, "diff_sha256": ""}


def test_a_change_shows_and_its_undoing_too(repository):
    clean = code_version(repository)
    (repository / "train.py").write_text("print(2)\n")
    changed = code_version(repository)
    assert changed["dirty"]
    assert changed["commit"] == clean["commit"]
    (repository / "train.py").write_text("print(3)\n")
    assert code_version(repository)["diff_sha256"] != changed["diff_sha256"]
    (repository / "train.py").write_text("print(1)\n")
    assert code_version(repository) == clean


def test_new_source_files_count_and_results_of_runs_do_not(repository):
    clean = code_version(repository)
    (repository / "model.pt").write_bytes(b"weights")
    (repository / ".isorun").mkdir()
    (repository / ".isorun" / "study.toml").write_text("x")
    assert code_version(repository) == clean
    (repository / "model.py").write_text("x = 1\n")
    first = code_version(repository)
    (repository / "model.py").write_text("x = 2\n")
    assert first["dirty"]
    assert code_version(repository)["diff_sha256"] != first["diff_sha256"]


@pytest.mark.parametrize(
    "left",
    [
        "outputs/2024-01-01/12-00-00/.hydra/config.yaml",
        "lightning_logs/version_3/hparams.yaml",
        "wandb/run-3/files/code/train.py",
        "mlruns/0/meta.yaml",
        "torchinductor_me/ab/cab.py",
        "work_dirs/run/config.py",
    ],
)
def test_settings_and_code_that_tools_leave_do_not_count(repository, left):
    clean = code_version(repository)
    file = repository / left
    file.parent.mkdir(parents=True)
    file.write_text("x: 1\n")
    assert code_version(repository) == clean


def test_a_folder_inside_has_the_version_of_its_repository(repository):
    (repository / "inner").mkdir()
    assert code_version(repository / "inner") == code_version(repository)


def test_without_a_repository_there_is_no_version(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert code_version(tmp_path) == {}
    assert code_version(tmp_path / "missing") == {}


def test_programs_named_in_the_repository_settings_are_not_run(repository):
    trap = repository / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {repository}/sprung\n")
    trap.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(trap))
    git(repository, "config", "diff.external", str(trap))
    (repository / "train.py").write_text("print(2)\n")
    assert code_version(repository)["dirty"]
    assert not (repository / "sprung").exists()
