"""Churn: pairs of runs that disagree, counted by hand, over all pairs, and in reports."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.analysis.spreads.churn import churn
from isorun.errors import InputError


def test_three_runs_by_hand():
    found = churn([[0, 1, 2, 2], [0, 1, 2, 1], [0, 2, 2, 0]], [0, 1, 1, 2])
    assert (found.runs, found.examples) == (3, 4)
    # Example 1: one of three pairs agrees; example 3: none.
    assert found.mean == pytest.approx((0 + 2 / 3 + 0 + 1) / 4)
    assert (found.flipping, found.wrong_in_turn) == (2, 2)
    assert [(one.place, one.label, one.votes) for one in found.most] == [
        (3, 2, ((0, 1), (1, 1), (2, 1))),
        (1, 1, ((1, 2), (2, 1))),
    ]


VOTES = st.integers(2, 6).flatmap(
    lambda runs: st.lists(st.lists(st.integers(-3, 3), min_size=runs, max_size=runs), min_size=1, max_size=12)
)


@given(VOTES)
def test_it_is_the_mean_over_all_pairs_of_the_share_of_examples_they_disagree_on(columns):
    votes = np.asarray(columns).T
    pairs = [float((a != b).mean()) for a, b in combinations(votes, 2)]
    found = churn(votes)
    assert found.mean == pytest.approx(np.mean(pairs), abs=1e-12)
    assert found.flipping == sum(len(set(column)) > 1 for column in columns)
    assert found.wrong_in_turn is None
    assert [one.disagreement for one in found.most] == sorted((one.disagreement for one in found.most), reverse=True)


def test_runs_of_equal_accuracy_may_disagree_on_all_that_is_wrong():
    found = churn([[0, 0, 1, 1], [1, 1, 0, 0]], [0, 1, 0, 1])
    assert found.mean == 1.0


@pytest.mark.parametrize("votes", [[[1, 2]], [1, 2], [[], []]])
def test_what_has_no_pairs_or_no_examples_is_refused(votes):
    with pytest.raises(InputError, match="between runs"):
        churn(votes)


def test_labels_of_another_length_are_refused():
    with pytest.raises(InputError, match="do not fit"):
        churn([[1, 2], [1, 2]], [1])
