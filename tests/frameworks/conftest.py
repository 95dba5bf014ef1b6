"""Trainings with real frameworks, run by isorun as anybody would."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable

import pytest

import isorun
from isorun.study.design import adhoc_study
from isorun.study.records import RunRecord

PYTHONS = [sys.executable, *filter(None, os.environ.get("ISORUN_TEST_PYTHONS", "").split(":"))]


@functools.cache
def python_with(*modules: str) -> str:
    """An interpreter that has them: this one, or one of those that ISORUN_TEST_PYTHONS names; most have no isorun."""
    for python in PYTHONS:
        question = f"import importlib.util as u; assert all(map(u.find_spec, {modules!r}))"
        if subprocess.run([python, "-c", question], capture_output=True, check=False).returncode == 0:
            return python
    return ""


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., RunRecord]:
    """The record of one run of a script; the same script runs once, as a framework takes long to import.

    launch: what stands before the script (`-m torch.distributed.run …`).
    """

    @functools.cache
    def run(script: str, *modules: str, launch: tuple[str, ...] = (), words: tuple[str, ...] = ()) -> RunRecord:
        python = python_with(*modules)
        if not python:
            pytest.skip(f"not installed here: {', '.join(modules)}")
        folder = tmp_path_factory.mktemp("trained")
        (folder / "train.py").write_text(textwrap.dedent(script))
        variables = {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
        command = [python, *launch, "train.py", *words]
        study = adhoc_study([command], name="tried", environment={"env": variables}, folder=folder)
        [record] = isorun.run(study, store=folder / "store", launch="fresh").records
        assert record.state == "finished", f"{record.reason}\n{record.log_tail}"
        return record

    return run
