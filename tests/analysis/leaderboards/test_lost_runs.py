"""Approaches whose runs did not all leave a result: nobody leads by those alone that did."""

import numpy as np
import pytest

import isorun

NAN = float("nan")


def board(runs, **options):
    rows = [(name, task, value) for name, tasks in runs.items() for task, values in tasks.items() for value in values]
    names, tasks, values = (list(column) for column in zip(*rows, strict=True))
    table = {"model": names, "game": tasks, "reward": values}
    return isorun.rank(table, value="reward", by="model", direction="higher", drop_missing=True, **options)


def drawn(count, mean, seed):
    return np.random.default_rng(seed).normal(mean, 1.0, count).tolist()


def told(result):
    return {one.code: one for one in result.conditions}


@pytest.mark.parametrize("statistic", ["iqm", "mean"])
def test_nobody_is_called_the_best_by_the_half_of_its_runs_that_left_a_result(statistic):
    runs = {
        "old": {"go": drawn(10, 50, 1), "chess": drawn(10, 50, 2)},
        "new": {"go": drawn(10, 53, 3), "chess": [*drawn(5, 53, 4), *[NAN] * 5]},
        "bad": {"go": drawn(10, 30, 5), "chess": drawn(10, 30, 6)},
    }
    result = board(runs, task="game", statistic=statistic)
    assert result.standings[0].approach == "new"
    assert told(result)["survivors-only"].voids
    assert told(result)["survivors-only"].groups == ("new",)
    assert str(result).startswith("Nobody is called the best: some runs of new left no result")


def test_a_lead_that_holds_with_the_lost_run_as_the_worst_stands():
    runs = {"old": {"go": drawn(20, 50, 1)}, "new": {"go": [*drawn(19, 60, 2), NAN]}}
    result = board(runs)
    assert "survivors-only" not in told(result)
    assert result.standings[0].ranked.interval == (1, 1)


def test_what_others_than_the_leader_lost_leaves_the_lead_alone():
    runs = {
        "old": {"go": drawn(10, 50, 1)},
        "new": {"go": drawn(10, 60, 2)},
        "third": {"go": [*drawn(5, 51.5, 3), *[NAN] * 5]},
    }
    result = board(runs)
    assert not told(result)["survivors-only"].voids
    assert str(result).startswith("new ranks first")
