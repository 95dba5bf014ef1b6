"""A study that begins here, is copied to a database, is taken by workers and comes back: every cell once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from isorun.session import open_store
from travelling_study import made_project, travel
from typed_commands import typed


def test_a_study_goes_from_a_folder_to_a_database_to_a_worker_and_back(database: str, tmp_path: Path):
    """`tests/engines/test_travelling.py` takes it to the engines of clusters as well."""
    travel(database, tmp_path)


@pytest.mark.long
def test_two_workers_and_a_run_share_a_study_of_which_each_cell_is_made_once(database: str, tmp_path: Path):
    """At the same time, as three processes, one of which is the command that declared it."""
    project = made_project(tmp_path / "project")
    assert typed("run", "study.toml", "--store", database, "--queue", cwd=project).returncode == 0
    command = [sys.executable, "-m", "isorun"]
    words = (["worker", database, "--json"], ["worker", database, "--json"])
    words = (*words, ["run", "study.toml", "--store", database, "--json"])
    together = [subprocess.Popen([*command, *one], cwd=project, stdout=subprocess.PIPE, text=True) for one in words]
    answers = [json.loads(process.communicate(timeout=120)[0]) for process in together]
    assert [process.returncode for process in together] == [0, 0, 0]
    assert sum(answer["finished"] for answer in answers) == 24
    begun = (tmp_path / "trainings").read_text().splitlines()
    assert len(begun) == len(set(begun)) == 24
    with open_store(database) as store:
        assert len(store.finished()) == len(store.records()) == 24
