"""Fractions beside percents, and margins in points of values that are fractions: told, or no claim is made."""

import numpy as np
import pytest

from isorun.analysis.comparison import compare
from isorun.analysis.evidence.scales import unlike_scales
from isorun.analysis.sequential import Verdict
from isorun.questions import rank
from isorun.report.leaderboards import leaderboard_view

BETTER = [0.92, 0.93, 0.91, 0.925, 0.915, 0.92, 0.93, 0.91]
WORSE = [0.90, 0.91, 0.89, 0.905, 0.895, 0.90, 0.91, 0.89]


def table(first, second, metric="test_acc"):
    rows = [("a", value) for value in first] + [("b", value) for value in second]
    return {"model": [name for name, _ in rows], metric: [value for _, value in rows]}


def percents(values):
    return [100 * value for value in values]


def codes(result):
    return [one.code for one in result.conditions]


def test_fractions_beside_percents_make_no_claim():
    """The worse one was called better, by a hundredfold."""
    told = compare(table(BETTER, percents(WORSE)), value="test_acc", by="model")
    assert told.decision.verdict is Verdict.UNDECIDED
    assert "other-scale" in codes(told)
    for alike in (table(BETTER, WORSE), table(percents(BETTER), percents(WORSE))):
        told = compare(alike, value="test_acc", by="model")
        assert told.decision.verdict is Verdict.A_BETTER
        assert "other-scale" not in codes(told)


@pytest.mark.parametrize(
    ("metric", "second"),
    [
        ("reward", [90.0, 91.0]),  # no share of anything
        ("test_acc", [90.0, 0.4]),  # a run that learnt nothing, in percent
        ("test_acc", [190.0, 240.0]),  # no share, whatever its name says
        ("test_acc", [0.4, 1.0]),
        ("test_acc", [1.01, 1.02]),
        ("test_loss", [2.0, 3.0]),
    ],
)
def test_what_may_be_one_scale_is_taken_for_one(metric, second):
    assert not unlike_scales(metric, {"a": np.array([0.5, 0.9]), "b": np.array(second)})


def test_a_margin_in_points_of_values_that_are_fractions_is_told():
    points = compare(table(BETTER, WORSE), value="test_acc", by="model", margin=0.5)
    assert "margin-wide" in codes(points)
    pairs = compare(BETTER, WORSE, paired=True, margin=0.5)
    assert "margin-wide" in codes(pairs)
    assert "margin-wide" not in codes(compare(table(BETTER, WORSE), value="test_acc", by="model", margin=0.05))
    assert "margin-wide" not in codes(compare([0.0, 0.0, 0.0], [0.0, 0.0, 0.0], margin=0.05))


@pytest.mark.parametrize("task", [None, "data"])
def test_fractions_beside_percents_are_not_ranked(task):
    runs = {**table(BETTER, percents(WORSE)), "data": ["cifar"] * 16}
    told = leaderboard_view(rank(runs, value="test_acc", by="model", task=task)).text()
    assert "[other-scale]" in told
    assert "ranks first" not in told
    alike = {**table(BETTER, WORSE), "data": ["cifar"] * 16}
    alike = leaderboard_view(rank(alike, value="test_acc", by="model", task=task)).text()
    assert "[other-scale]" not in alike
