"""isorun price as people type it."""

import json

import pytest

from isorun.cli.main import main

TRAIN = """
import random
print("loss:", sum(random.random() for _ in range(1000)))
"""


def test_a_training_without_a_framework_and_the_same_again(shell):
    shell.write("train.py", TRAIN)
    done = shell("price", "--runs", "4", "--json", "--", "python", "train.py")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["recommended"] == ["seed"]
    (step,) = told["steps"]
    assert (step["name"], step["sd"], step["distinct"]) == ("seed", 0.0, 1)
    assert step["interval95"][0] <= step["time_ratio"] <= step["interval95"][1]
    assert told["as_it_is"]["distinct"] == 4
    assert told["judged_by"] == "numbers"
    assert len(told["not_applicable"]) == 5
    again = shell("price", "--runs", "4", "--", "python", "train.py")
    assert again.returncode == 0
    assert "runs to do" not in again.stderr, "all was measured"
    assert again.stdout.startswith("Cheapest set that gives runs with the same numbers here: seed")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["price"], "a command is needed"),
        (["price", "--level", "default", "--", "true"], "--level is what is measured"),
        (["price", "--runs", "2", "--", "true"], "4 to 99"),
    ],
)
def test_what_makes_no_sense_is_one_message(words, why, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(words) in {1, 2}
    assert why in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["price", "run"])
def test_a_program_that_does_not_exist_is_told_before_any_plan(command, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([command, "--", "nosuchprogram"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("isorun: the command 'nosuchprogram' does not exist")
    assert "to do" not in told
