"""Many approaches, and the same seeds in several places, as people type it."""

import csv
import json
import random

import pytest


def write(shell, header, rows):
    with (shell.folder / "runs.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return shell


@pytest.fixture
def games(shell):
    """Three models on four games, six runs each; the second is better by far, the first and third are equals."""
    generator = random.Random(5)
    gains = {"a": 0.0, "b": 0.5, "c": 0.0}
    rows = [
        (model, game, seed, f"{place + gain + generator.gauss(0, 0.05):.6f}")
        for model, gain in gains.items()
        for place, game in enumerate(("go", "chess", "shogi", "hex"))
        for seed in range(6)
    ]
    return write(shell, ("model", "game", "seed", "score"), rows)


RANK = ("rank", "runs.csv", "--value", "score", "--by", "model")


def test_rank_over_tasks_has_the_documented_keys_and_the_right_order(games):
    result = json.loads(games(*RANK, "--task", "game", "--json").stdout)
    keys = (
        "direction tasks statistic best_of repetitions approaches test post_hoc correction critical_difference pairs "
        "notes unit warnings interval"
    )
    assert list(result) == keys.split()
    assert result["approaches"][0]["approach"] == "b"
    assert result["approaches"][0]["rank_ci95"] == [1, 1]
    assert result["approaches"][0]["expected_best"] > result["approaches"][0]["mean"]
    assert result["test"]["test"] == "friedman"
    wins = {(pair["a"], pair["b"]): pair["probability_of_improvement"]["estimate"] for pair in result["pairs"]}
    assert wins["a", "b"] == 0.0
    assert 0.2 < wins["a", "c"] < 0.8


def test_rank_without_tasks_tests_all_runs(games):
    result = json.loads(games(*RANK, "--where", "game=go", "--adjust", "bh", "--json").stdout)
    assert (result["test"]["test"], result["post_hoc"], result["correction"]) == (
        "kruskal-wallis",
        "brunner-munzel",
        "bh",
    )
    paired = json.loads(games(*RANK, "--where", "game=go", "--pair", "seed", "--post-hoc", "conover", "--json").stdout)
    assert (paired["test"]["test"], paired["post_hoc"]) == ("friedman", "conover")


def test_rank_turns_round_when_lower_is_better(games):
    result = json.loads(games(*RANK, "--task", "game", "--direction", "lower", "--json").stdout)
    assert result["approaches"][-1]["approach"] == "b"
    assert result["approaches"][-1]["expected_best"] < result["approaches"][-1]["mean"]


def test_rank_speaks_and_draws(games):
    files = [word for name in ("figure", "matrix", "profiles") for word in (f"--{name}", f"{name}.svg")]
    done = games(*RANK, "--task", "game", *files)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("b ranks first by iqm, and its runs tell it apart from")
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert all(
        (games.folder / f"{name}.svg").read_text().startswith("<svg") for name in ("figure", "matrix", "profiles")
    )


def test_an_approach_with_single_runs_is_not_ranked(shell):
    rows = [("a", s, s / 10) for s in range(5)] + [("b", s, 1 + s / 10) for s in range(5)] + [("c", 0, 9)]
    done = write(shell, ("model", "seed", "score"), rows)(*RANK, "--json")
    last = json.loads(done.stdout)["approaches"][-1]
    assert (last["approach"], last["rank"], last["rank_ci95"]) == ("c", None, None)
    assert "single run" in last["why_unranked"]


@pytest.fixture
def devices(shell):
    """Ten seeds on two devices, in the same order but for one, and an eleventh on one device only."""
    values = [0.9 + seed / 1000 for seed in range(10)]
    other = [value + 0.0001 for value in values]
    other[8], other[9] = other[9], other[8]
    rows = [("cpu", seed, value) for seed, value in enumerate(values)]
    rows += [("gpu", seed, value) for seed, value in enumerate(other)] + [("gpu", 10, 0.905)]
    return write(shell, ("device", "seed", "score"), rows)


AGREE = ("agree", "runs.csv", "--value", "score", "--by", "device", "--pair", "seed")


def test_agree_has_the_documented_keys_and_exact_correlations(devices):
    result = json.loads(devices(*AGREE, "--json").stdout)
    assert list(result) == ["sides", "unit", "agreements", "decimals", "rank_changes", "notes", "warnings"]
    (found,) = result["agreements"]
    assert (found["a"], found["b"], found["n"], found["unmatched"]) == ("cpu", "gpu", 10, ["10"])
    assert found["kendall"]["estimate"] == pytest.approx(43 / 45)
    assert found["kendall"]["p"] == pytest.approx(2 * 10 / 3628800)
    assert found["spearman"]["estimate"] == pytest.approx(1 - 6 * 2 / 990)


def test_rounding_as_published_hides_an_order(devices):
    result = json.loads(devices(*AGREE, "--decimals", "2", "--json").stdout)
    assert result["rank_changes"] == [{"better": "gpu", "worse": "cpu", "kind": "tied"}]
    assert json.loads(devices(*AGREE, "--decimals", "6", "--json").stdout)["rank_changes"] == []


def test_agree_speaks_and_draws(devices):
    done = devices(*AGREE, "--figure", "change.svg")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("cpu and gpu order 10 runs with Kendall's tau 0.96")
    assert "without a partner" in done.stdout
    assert (devices.folder / "change.svg").read_text().startswith("<svg")


def test_metrics_of_the_same_runs_agree_without_an_order_among_them(shell):
    rows = [(seed, seed / 10, -seed) for seed in range(5)]
    done = write(shell, ("seed", "dev", "loss"), rows)("agree", "runs.csv", "--value", "dev,loss", "--json")
    result = json.loads(done.stdout)
    assert result["agreements"][0]["kendall"] == {"estimate": -1.0, "p": pytest.approx(2 / 120), "exact": True}
    assert (result["decimals"], result["rank_changes"]) == (None, [])


def test_equals_share_the_first_rank(shell):
    rows = [(model, seed, 1) for model in "ab" for seed in range(5)]
    done = write(shell, ("model", "seed", "score"), rows)(*RANK)
    assert done.stdout.startswith("a and b share the first rank by iqm.")
    assert "nothing to test" in done.stdout


def test_equals_are_told_apart_from_no_more_than_their_runs_allow(shell):
    rows = [(model, seed, value) for model in "ab" for seed, value in enumerate((0.7, 0.8))]
    rows += [("c", 0, 0.69), ("c", 1, 0.8), ("d", 0, 0.68), ("d", 1, 0.8)]
    done = write(shell, ("model", "seed", "score"), rows)(*RANK)
    said = " ".join(done.stdout.split())
    assert "share the first rank by iqm, but their runs do not tell them apart from 2 of 2 others (95 % " in said
    assert "intervals of their ranks: 1 to 4)." in said
