"""What runs are worth, as people meet it at the command line: copies, repeats, edited scripts, other studies' runs."""

import csv
import json
import random

import pytest

SELF_SEEDED = """
import random, sys
random.seed(1337)
gain = float(sys.argv[1])
for epoch in range(3):
    print(f"epoch {epoch} test_acc: {0.8 + gain + random.random() / 10:.6f}")
"""
DRAWN = """
import random, sys
print("test_acc:", random.gauss(0.9 + float(sys.argv[1]), 0.01))
"""


@pytest.fixture
def repeated(shell):
    """Three seeds with ten repeats a side: all that differs is between seeds."""
    rng = random.Random(1)
    with (shell.folder / "runs.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["model", "seed", "repeat", "acc"])
        for model in ("base", "new"):
            for seed in range(3):
                level = rng.gauss(0.9 if model == "base" else 0.95, 0.02)
                for repeat in range(10):
                    writer.writerow([model, seed, repeat, rng.gauss(level, 0.0005)])
    return shell


COMPARE = ("compare", "runs.csv", "--value", "acc", "--by", "model")


def test_repeats_of_three_seeds_decide_nothing(repeated):
    result = json.loads(repeated(*COMPARE, "--json").stdout)
    assert (result["n_a"], result["units_a"], result["unit"], result["verdict"]) == (30, 3, "seed", "undecided")
    text = repeated(*COMPARE).stdout
    assert text.startswith("Undecided")
    assert "30 runs of 3 seeds count as 3" in text
    ranked = repeated("rank", *COMPARE[1:])
    assert "surely" not in ranked.stdout
    assert "60 runs of 6 seeds count as 6" in ranked.stdout


def test_the_repeats_of_one_seed_can_be_asked_about_and_the_answer_says_so(repeated):
    done = repeated(*COMPARE, "--unit", "repeat", "--where", "seed=1")
    assert done.stdout.startswith("new is better")
    assert "This is about seed 1 alone" in done.stdout


def test_every_judging_command_returns_runs_and_units(repeated):
    summary = json.loads(repeated("summarize", *COMPARE[1:], "--json").stdout)[0]
    assert (summary["n"], summary["units"], summary["unit"], summary["sd_ci90"]) == (30, 3, "seed", None)
    ranked = json.loads(repeated("rank", *COMPARE[1:], "--json").stdout)
    assert [(one["n"], one["units"]) for one in ranked["approaches"]] == [(30, 3), (30, 3)]
    agreed = json.loads(repeated("agree", *COMPARE[1:], "--pair", "seed", "--json").stdout)
    assert [(one["n"], one["units"]) for one in agreed["sides"]] == [(30, 3), (30, 3)]
    planned = json.loads(repeated("power", *COMPARE[1:], "--a", "base", "--difference", "0.05", "--json").stdout)
    assert (planned["n_a"], planned["units_a"], planned["unit"]) == (30, 3, "seed")


def test_agreement_over_labels_that_share_draws_is_told(repeated):
    words = ("agree", *COMPARE[1:], "--pair", "repeat", "--json")
    assert [one["code"] for one in json.loads(repeated(*words).stdout)["warnings"]][-1] == "pairs-share-draws"
    assert repeated(*words, "--unit", "nonsense").returncode == 1


def test_a_table_without_seeds_counts_its_rows_and_says_so(shell):
    rows = ["model,acc", *(f"a,{0.9 + i / 1000}" for i in range(8)), *(f"b,{0.8 + i / 1000}" for i in range(8))]
    shell.write("runs.csv", "\n".join(rows))
    assert "Every row counts as an independent run" in shell(*COMPARE).stdout
    assert json.loads(shell(*COMPARE, "--json").stdout)["unit"] == "row"


def test_copies_of_one_run_decide_nothing_and_the_way_out_is_named(shell):
    shell.write("train.py", SELF_SEEDED)
    words = ("decide", "--json", "--", "python", "train.py", "0", "--vs-", "python", "train.py", "0.05")
    done = shell(*words)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["verdict"] == "undecided"
    assert (result["units_a"], result["units_b"]) == (1, 1)
    assert result["runs_made"] == 4  # two a side show it; more would be made for nothing
    warnings = {warning["code"]: warning for warning in result["warnings"]}
    assert "random.seed(1337)" in warnings["default-not-independent"]["message"]
    assert "--take-seeds" in warnings["default-not-independent"]["next"]
    assert warnings["too-few-units"]["voids"]
    compared = json.loads(shell("compare", _only_study(shell), "--json").stdout)
    assert (compared["verdict"], compared["units_a"]) == ("undecided", 1)


@pytest.mark.long
def test_two_commands_are_decided_between_without_a_file(shell):
    shell.write("train.py", DRAWN)
    words = ("--", "python", "train.py", "0", "--vs-", "python", "train.py", "0.1")
    result = json.loads(shell("decide", "--metric", "test_acc:higher", "--json", *words).stdout)
    assert (result["a"], result["b"], result["verdict"]) == ("train 0", "train 0.1", "B better")
    text = shell("decide", "--metric", "test_acc:higher", *words).stdout
    assert text.startswith("train 0.1 is better")
    assert "0 to do" not in text


@pytest.mark.parametrize(
    "words", [("python", "a.py"), ("python", "a.py", "--vs-"), ("a", "--vs-", "b", "--vs-", "c"), ("a", "--vs-", "a")]
)
def test_anything_but_two_commands_is_answered_with_the_form(shell, words):
    done = shell("decide", "--", *words)
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    assert "--vs-" in done.stderr or "the same" in done.stderr


def test_an_edited_script_is_told_before_its_runs_are_mixed(shell):
    shell.write("train.py", DRAWN)
    shell("run", "-n", 3, "--", "python", "train.py", "0")
    shell.write("train.py", DRAWN + "# edited\n")
    again = shell("run", "-n", 3, "--", "python", "train.py", "0")
    assert "train.py changed since" in again.stdout
    mixed = shell("run", "-n", 6, "--json", "--", "python", "train.py", "0")
    assert "would mix both versions" in mixed.stderr
    result = json.loads(mixed.stdout)
    assert result["warnings"][0]["code"] == "code-changed"
    assert [run["reused"] for run in result["runs"]] == [False] * 3 + [True] * 3
    assert all(run["values"].keys() == {"test_acc"} for run in result["runs"])


def test_runs_of_another_study_are_not_used_without_a_word(shell):
    shell.write("train.py", DRAWN)
    shell("run", "-n", 2, "--name", "first", "--", "python", "train.py", "0")
    other = shell("run", "-n", 2, "--name", "second", "--", "python", "train.py", "0")
    assert "made before by the study first" in " ".join(other.stdout.split())
    assert "changed since" not in other.stdout


def _only_study(shell):
    (path,) = (shell.folder / ".isorun" / "studies").glob("*.json")
    return path.stem
