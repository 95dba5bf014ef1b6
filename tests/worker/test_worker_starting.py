"""Pythons that another one starts without isorun's variables."""

import os
import sys

import pytest

from isorun.worker import levels, recorder, starting
from isorun.worker.recorder import Recorder

REACHED = {"ISORUN_RUN_DIR": "x", "PYTHONPATH": f"{levels.site_folder()}:/else"}


@pytest.fixture
def noted(tmp_path, monkeypatch):
    one = Recorder(tmp_path)
    monkeypatch.setattr(recorder, "_active", one)
    return lambda: one.has_noted("python-unreached")


@pytest.mark.parametrize("words", [["train.py", "--lr", "1"], ["-u", "-X", "dev", "train.py"], ["-m", "mypackage.fit"]])
def test_a_training_in_an_environment_without_isorun_is_noted(noted, words):
    starting.told((None, [sys.executable, *words], None, {"PATH": "/bin"}))
    assert noted()


@pytest.mark.parametrize(
    ("words", "environment"),
    [
        ([sys.executable, "train.py"], None),
        ([sys.executable, "train.py"], REACHED),
        ([os.fsencode(sys.executable), b"train.py"], {os.fsencode(k): os.fsencode(v) for k, v in REACHED.items()}),
        ([sys.executable, "-c", "print(1)"], {}),
        ([sys.executable, "-I", "train.py"], {}),
        ([sys.executable, "-m", "pip", "list"], {}),
        ([sys.executable, "/env/lib/python3.11/site-packages/tool/ask.py"], {}),
        ([sys.executable], {}),
        (["git", "status"], {}),
        ("python train.py", {}),
    ],
)
def test_what_is_reached_or_trains_nothing_is_not(noted, words, environment):
    starting.told((None, words, None, environment))
    assert not noted()
