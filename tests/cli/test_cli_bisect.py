"""`isorun bisect` as people type it, on a real history with real runs."""

import json
import sys

import pytest

from git_history import git, history
from isorun.cli.main import main

CONSTANT = "import conf\nprint('loss:', conf.base)\n"
TRAINING = """
import numpy as np
import conf

rng = np.random.default_rng()
truth = np.array([2.0, -1.0, 0.5, 1.5])
inputs = rng.normal(size=(400, 4)) * [1, 5, 1, 20]
labels = (inputs / [1, 5, 1, 20] @ truth + rng.normal(scale=0.5, size=400) > 0).astype(float)
scaled = conf.prepared(inputs)
weights = rng.normal(scale=0.1, size=4)
for step in range(conf.steps):
    batch = rng.integers(300, size=32)
    predicted = 1 / (1 + np.exp(-np.clip(scaled[batch] @ weights, -30, 30)))
    weights -= conf.rate * scaled[batch].T @ (predicted - labels[batch]) / 32
right = ((scaled[300:] @ weights > 0) == labels[300:]).mean()
print(f"val_acc: {right:.4f}")
"""


@pytest.fixture
def typed(tmp_path, monkeypatch, capsys):
    """Type a command in the repository; its exit code and what it printed."""
    monkeypatch.setenv("ISORUN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)

    def run(*words):
        monkeypatch.chdir(tmp_path / "repository")
        code = main(["bisect", *words])
        return code, capsys.readouterr()

    return run


@pytest.mark.long
def test_bits_that_changed_are_found_and_typed_again_nothing_is_run(tmp_path, typed):
    folder = history(
        tmp_path / "repository", [f"base = {1 if n < 3 else 2}  # {n}" for n in range(5)], {"t.py": CONSTANT}
    )
    words = ("c1..main", "--what", "bits", "--json", "--launch", "fresh", "--", sys.executable, "t.py")
    code, said = typed(*words)
    told = json.loads(said.out)
    assert (code, told["verdict"], told["first_bad"]["subject"], told["runs"]) == (3, "found", "step 4", 6 + 8)
    assert {probe["verdict"] for probe in told["probes"]} == {"good end", "bad end", "like good", "like bad"}
    code, said = typed(*words)
    assert (code, json.loads(said.out)["runs_made"]) == (3, 0)
    assert git(folder, "status", "--porcelain") == "", "nothing is left in the user's own folder"
    code, said = typed("c1..c3", "--what", "bits", "--", sys.executable, "t.py")
    assert (code, "same bits" in said.out) == (0, True)


@pytest.mark.long
def test_a_dry_run_runs_nothing_and_mistakes_are_told_with_the_next_step(tmp_path, typed):
    history(tmp_path / "repository", [f"base = 1  # {n}" for n in range(9)], {"t.py": CONSTANT})
    code, said = typed("c1..main", "--dry-run", "--json", "--", "python", "t.py")
    told = json.loads(said.out)
    assert (code, told["verdict"], told["commits"], told["planned"]["probes"]) == (0, "planned", 8, 3)
    assert not (tmp_path / "repository" / ".isorun").exists()
    for words, said_, number in (
        (("c1..main",), "what trains is needed", 2),
        (("c1..main", "--level", "default", "--level", "fixed-seed", "--", "python", "t.py"), "one level", 2),
        (("c1..mian", "--", "python", "t.py"), "write 'main'", 1),
        (("main..c1", "--", "python", "t.py"), "c1..main", 1),
        (("c1..main", "--max-runs", "5", "--alpha", "0.001", "--", "python", "t.py"), "--max-runs", 1),
        (("c1..main", "--alpha", "2", "--", "python", "t.py"), "alpha", 1),
    ):
        code, said = typed(*words)
        assert (code, said_ in said.err) == (number, True), (words, said.err)
        assert "Traceback" not in said.err


def lines(number):
    """What `conf.py` holds at each commit of a training's history: a bug among many changes that matter little."""
    steps = 200 + 5 * (number % 4)
    rate = 0.5 if number < 12 else 0.4
    scaled = "inputs / inputs.std(axis=0)" if number < 22 else "inputs / inputs.std()"
    return f"steps = {steps}\nrate = {rate}\n# {number}\ndef prepared(inputs):\n    return {scaled}\n"


@pytest.mark.slow
def test_a_bug_in_the_history_of_a_numpy_training_is_found(tmp_path, typed):
    history(tmp_path / "repository", [lines(number) for number in range(1, 37)], {"train.py": TRAINING})
    code, said = typed("c1..main", "--metric", "val_acc:higher", "--json", "--", sys.executable, "train.py")
    told = json.loads(said.out)
    assert (code, told["verdict"]) == (3, "found"), told
    assert told["first_bad"]["subject"] == "step 22"
    assert told["difference"] < 0
    assert told["interval95"][1] < 0
    assert told["runs"] <= 30 * 8
