"""Variance between and within groups against known answers, another method of this package, and simulated coverage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.analysis.mixed.model import mixed_model
from isorun.analysis.spreads.nested import nested_variance

JUDGES = ([9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7])
"""Six targets, four judges: Shrout and Fleiss, Psychological Bulletin 86, 1979, table 2."""


def test_the_example_of_shrout_and_fleiss():
    found = nested_variance(JUDGES)
    # R's psych::ICC and pingouin 0.5 print 0.166, F 1.795, p 0.165, interval -0.133 to 0.723 for ICC1
    assert found.share == pytest.approx(0.165742, abs=1e-6)
    assert (found.f, found.p) == (pytest.approx(1.794678, abs=1e-6), pytest.approx(0.164769, abs=1e-6))
    assert found.share_interval == (0.0, pytest.approx(0.7226, abs=1e-4))
    assert (found.groups, found.values) == (6, 24)


def test_with_equal_groups_it_is_what_a_mixed_model_finds():
    generator = np.random.default_rng(5)
    values = generator.normal(size=(8, 1)) * 2 + generator.normal(size=(8, 6))
    rows = [{"y": value, "seed": str(seed)} for seed, row in enumerate(values) for value in row]
    table = {name: [row[name] for row in rows] for name in ("y", "seed")}
    model = mixed_model(table, "y ~ 1 + (1|seed)")
    found = nested_variance(values)
    assert found.between == pytest.approx(model.random[0].variance, rel=1e-4)


def test_groups_that_differ_less_than_chance_have_no_variance_of_their_own():
    found = nested_variance([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0], [2.0, 3.0, 1.0]])
    assert (found.between, found.share, found.within_share) == (0.0, 0.0, 1.0)
    assert found.share_interval[0] == 0.0
    assert found.within_share_interval[1] == 1.0


def test_repeats_that_are_all_the_same_leave_the_groups_alone():
    found = nested_variance([[0.1, 0.1], [0.3, 0.3], [0.2, 0.2]])
    assert (found.within, found.share, found.share_interval) == (0.0, 1.0, None)


@pytest.mark.parametrize("groups", [[], [[1.0, 2.0]], [[1.0], [2.0], [3.0]]])
def test_without_repeats_or_groups_there_is_no_answer(groups):
    assert nested_variance(groups) is None


def test_groups_of_unequal_size_count_by_their_means():
    # means 2 and 4, sizes 2 and 4: harmonic mean 8/3, mean square between 8/3 * 2, within (2 + 20) / 4
    found = nested_variance([[1.0, 3.0], [1.0, 3.0, 5.0, 7.0]])
    assert found.within == pytest.approx(22 / 4)
    assert found.f == pytest.approx((8 / 3 * 2) / (22 / 4))


@given(
    st.lists(st.lists(st.floats(-1, 1).map(lambda x: round(x, 3)), min_size=2, max_size=5), min_size=2, max_size=5),
    st.sampled_from((0.001, 100.0)),
    st.floats(-5, 5),
)
def test_the_share_has_no_unit(groups, factor, shift):
    one, other = nested_variance(groups), nested_variance([[shift + factor * value for value in row] for row in groups])
    if one.within > 1e-5 and one.share_interval is not None:
        assert other.share == pytest.approx(one.share, abs=1e-5)
        assert other.share_interval == pytest.approx(one.share_interval, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_the_interval_covers_the_share_in_95_of_100_studies(share):
    generator = np.random.default_rng(7)
    hits = 0
    for _ in range(4_000):
        between, within = generator.normal(size=(8, 1)), generator.normal(size=(8, 6))
        low, high = nested_variance(np.sqrt(share) * between + np.sqrt(1 - share) * within).share_interval
        hits += low <= share <= high
    assert 0.94 <= hits / 4_000 <= 0.962
