"""What starts a training does not matter: levels and digests are those of the process that trains."""

import gzip
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

TRAIN = """
import isorun
import numpy
weights = numpy.random.rand(3)
isorun.digest("weights.final", weights)
print("acc:", weights[0])
"""
NOTEBOOK = {
    "nbformat": 4,
    "nbformat_minor": 5,
    "metadata": {"kernelspec": {"name": "python3", "display_name": "p", "language": "python"}},
    "cells": [
        {
            "cell_type": "code",
            "id": "a",
            "metadata": {"tags": ["parameters"]},
            "execution_count": None,
            "outputs": [],
            "source": TRAIN,
        }
    ],
}
PYTHON = shutil.which(sys.executable) or sys.executable
WRAPPERS = {
    "shell": ("sh", "-c", "true && python train.py"),
    "make": ("make", "train"),
    "env": ("env", "X=1", "python", "train.py"),
    "uv": ("uv", "run", "--no-project", "--offline", "--python", PYTHON, "train.py"),
    "poetry": ("poetry", "run", "python", "train.py"),
    "nbconvert": ("jupyter", "nbconvert", "--to", "notebook", "--execute", "--stdout", "train.ipynb"),
    "papermill": ("papermill", "train.ipynb", "out.ipynb"),
}
SLOW = ("uv", "poetry", "nbconvert", "papermill")


def records(shell):
    paths = sorted((shell.folder / ".isorun" / "runs").glob("*/record.json.gz"))
    return [json.loads(gzip.decompress(path.read_bytes()))["record"] for path in paths]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in WRAPPERS]
)
def test_a_training_is_the_same_whatever_starts_it(shell, name):
    words = WRAPPERS[name]
    if shutil.which(words[0]) is None:
        pytest.skip(f"no {words[0]} here")
    shell.write("train.py", TRAIN)
    shell.write("Makefile", "train:\n\tpython train.py\n")
    shell.write("pyproject.toml", '[project]\nname = "x"\nversion = "0"\n[tool.poetry]\npackage-mode = false\n')
    shell.write("train.ipynb", json.dumps(NOTEBOOK))
    env = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "POETRY_VIRTUALENVS_CREATE": "false"}
    options = ("--level", "fixed-seed", "--launch", "fresh")
    for command in (("python", "train.py"), words):
        done = shell("run", *options, "--", *command, env=env)
        assert done.returncode == 0, done.stdout + done.stderr
    plain, wrapped = records(shell)
    assert plain["digests"]["weights.final"] == wrapped["digests"]["weights.final"]
    assert "no-worker" not in json.dumps(wrapped["notes"])


def test_a_wrapper_that_becomes_the_training_leaves_its_place_to_it(shell):
    shell.write("wrap.py", "import os, sys; os.execv(sys.executable, [sys.executable, 'train.py'])")
    shell.write("train.py", "import random; print('acc:', random.random())")
    done = shell("run", "--level", "fixed-seed", "--launch", "fresh", "--", "python", "wrap.py")
    assert done.returncode == 0, done.stdout + done.stderr
    (record,) = records(shell)
    assert record["environment"]["effective"]["python"]
    (events,) = (shell.folder / ".isorun" / "runs").glob("*/events.jsonl")
    assert "train.py" in events.read_text().partition("\n")[0]


def test_a_script_that_asks_gets_the_same_answers_in_every_run_and_without_them_is_told_how(shell):
    shell.write("ask.py", "print('acc:', float(input('lr? ')))")
    done = shell("run", "-n", 2, "--", "python", "ask.py", stdin="0.25\n")
    assert done.returncode == 0, done.stdout + done.stderr
    done = shell("run", "--name", "none", "--store", "other", "--", "python", "ask.py")
    assert done.returncode == 1
    assert "it asked for a line of input: give its answers to every run: isorun run … < FILE" in done.stdout.replace(
        "\n    ", " "
    )
