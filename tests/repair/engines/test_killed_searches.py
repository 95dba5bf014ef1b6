"""Searches whose process is killed at any moment, and trials that end their process or hang: nothing is lost."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from isorun.repair.engines import open_engine, read_search

os.environ.setdefault("KERAS_BACKEND", "torch")
pytestmark = [pytest.mark.slow, pytest.mark.chaos]
KILLS = 20

TRAINING = """
import numpy as np

def trained(lr, units):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 8))
    y = (x.sum(1) > 0).astype(float)
    first, last = rng.normal(size=(8, units)) / 3, np.zeros(units)
    for _ in range(40):
        hidden = np.tanh(x @ first)
        wrong = 1 / (1 + np.exp(-hidden @ last)) - y
        first -= lr * x.T @ (np.outer(wrong, last) * (1 - hidden**2)) / 200
        last -= lr * hidden.T @ wrong / 200
    return float(((np.tanh(x @ first) @ last > 0) == (y > 0)).mean())
"""
OPTUNA = (
    TRAINING
    + """
import math, os, signal, time

def objective(trial):
    return trained(trial.suggest_float("lr", 1e-3, 10.0, log=True), trial.suggest_int("units", 2, 32))

def faulty(trial):
    score = objective(trial)
    fault = {12: "raise", 13: "memory", 14: "kill", 15: "nan", 16: "hang", 17: "exit"}.get(trial.number)
    if fault == "raise":
        raise ValueError("no such column")
    if fault == "memory":
        bytearray(10**15)
    if fault == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "hang":
        time.sleep(3600)
    if fault == "exit":
        os._exit(1)
    return math.nan if fault == "nan" else score
"""
)
KERAS = """
import os, warnings
os.environ.setdefault("KERAS_BACKEND", "torch")
warnings.simplefilter("ignore")
import keras, numpy, keras_tuner as kt

rng = numpy.random.default_rng(0)
x = rng.normal(size=(64, 8)).astype("float32")
y = (x.sum(1) > 0).astype("int32")

def build(hp):
    hidden = keras.layers.Dense(hp.Int("units", 2, 32), hp.Choice("activation", ["relu", "tanh"]))
    model = keras.Sequential([keras.Input((8,)), hidden, keras.layers.Dense(2)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    rate = hp.Float("lr", 1e-3, 1.0, sampling="log")
    model.compile(keras.optimizers.SGD(rate), loss, metrics=["accuracy"])
    return model

def tuner():
    made = kt.RandomSearch(build, "val_accuracy", max_trials=1000, project_name="project", seed=1)
    return made, {"x": x, "y": y, "epochs": 1, "validation_data": (x, y), "verbose": 0}
"""


def finished(where):
    """The scores of finished trials by number; all that have begun have a number."""
    trials = read_search(open_engine(where), None).trials
    assert [trial.number for trial in trials] == list(range(len(trials)))
    return {trial.number: trial.score for trial in trials if trial.has_score}


def killed_again_and_again(where, words, folder, kills=KILLS):
    """Go on with a search, kill it at a random moment once it has begun, and so on. Trials that finished."""
    known = finished(where)
    for _ in range(kills):
        command = [sys.executable, "-m", "isorun", "repair", where, "--in-process", "--continue", "500", *words]
        child = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and len(finished(where)) <= len(known) and child.poll() is None:
            time.sleep(0.1)
        time.sleep(random.random() / 2)
        assert child.poll() is None, "the search ended by itself"
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        now = finished(where)
        assert known.items() < now.items()
        known = now
    return known


def is_alive(process):
    """Whether a process still does something: one that ended and that nobody asked for stays listed."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def went_on(where, words, folder):
    """What is told after a few trials more."""
    command = [sys.executable, "-m", "isorun", "repair", where, "--json", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode in (0, 3), done.stderr[-2000:]
    return json.loads(done.stdout), done.stderr


def optuna_search(folder, trials):
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    (folder / "train.py").write_text(OPTUNA)
    where = f"sqlite:///{folder}/s.db"
    study = optuna.create_study(storage=where, study_name="s", direction="maximize")
    study.optimize(lambda trial: trial.suggest_float("lr", 1e-3, 10.0, log=True) / 20, n_trials=trials)
    return where


def test_an_optuna_search_that_is_killed_at_twenty_moments_loses_no_trial(tmp_path):
    where = optuna_search(tmp_path, 3)
    objective = ["--objective", "train.py:objective"]
    known = killed_again_and_again(where, objective, tmp_path)
    before = read_search(open_engine(where), None).trials
    cut_off = [trial for trial in before if trial.state == "running"]
    begun = [trial for trial in cut_off if trial.parameters]
    told, _ = went_on(where, ["--continue", "3", "--requeue", *objective], tmp_path)
    assert known.items() < finished(where).items()
    assert "running" not in told["states"]
    assert told["states"].get("failed", 0) == len(cut_off)
    assert told["states"].get("waiting", 0) == max(len(begun) - 3, 0)
    after = read_search(open_engine(where), None).trials
    assert {after[trial.number].state for trial in cut_off} <= {"failed"}
    for trial, again in zip(begun, after[len(before) : len(before) + 3], strict=False):
        assert again.has_score
        assert trial.parameters.items() <= again.parameters.items()


def test_a_keras_tuner_search_that_is_killed_at_twenty_moments_loses_no_trial(tmp_path):
    pytest.importorskip("keras_tuner")
    (tmp_path / "train.py").write_text(KERAS)
    begun = "from train import tuner\nmade, given = tuner()\nmade.oracle.max_trials = 3\nmade.search(**given)"
    subprocess.run([sys.executable, "-c", begun], cwd=tmp_path, check=True, capture_output=True)
    where, words = f"keras-tuner:{tmp_path}/project", ["--tuner", "train.py:tuner"]
    known = killed_again_and_again(where, words, tmp_path)
    told, _ = went_on(where, ["--continue", "2", *words], tmp_path)
    assert known.items() < finished(where).items()
    assert "running" not in told["states"]


def test_whatever_a_trial_does_to_its_process_is_told_and_the_search_goes_on(tmp_path):
    where = optuna_search(tmp_path, 12)
    told, said = went_on(where, ["--continue", "8", "--objective", "train.py:faulty"], tmp_path)
    trials = read_search(open_engine(where), None).trials
    assert len(trials) == told["trials"] == 20
    assert [trial.state for trial in trials[12:]] == ["failed"] * 6 + ["finished"] * 2
    why = [trial.why_failed for trial in trials[12:18]]
    assert why[0] == "ValueError: no such column"
    assert why[1].startswith("MemoryError")
    assert why[2] == "its process was ended by SIGKILL, as when memory runs out"
    assert why[3] == "the score is not a number (NaN)"
    assert why[4].startswith("stalled: it took longer than")
    assert why[5] == "its process ended with exit code 1"
    assert "isorun: trial 14 has failed: its process was ended by SIGKILL" in said


def test_trials_end_with_the_command_that_attends_them(tmp_path):
    where = optuna_search(tmp_path, 3)
    command = [sys.executable, "-m", "isorun", "repair", where, "--continue", "5000", "--objective"]
    parent = subprocess.Popen([*command, "train.py:objective"], cwd=tmp_path, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and len(finished(where)) <= 3:
        time.sleep(0.2)
    (process,) = {trial.process for trial in read_search(open_engine(where), None).trials if trial.process}
    assert is_alive(process)
    known = finished(where)
    assert len(known) > 3
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and is_alive(process):
        time.sleep(0.05)
    assert not is_alive(process)  # so nobody is left who could write
    assert known.items() <= finished(where).items()
