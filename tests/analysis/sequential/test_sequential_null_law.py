import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from isorun.analysis.pairwise import continuous_law, law_given_ties, mann_whitney

PRINTED_CRITICAL_U = {(5, 5): 2, (8, 8): 13, (10, 10): 23, (15, 15): 64, (20, 20): 127, (30, 30): 317, (8, 12): 22}


@pytest.mark.parametrize(("sizes", "largest_u"), PRINTED_CRITICAL_U.items())
def test_critical_values_equal_the_printed_tables(sizes, largest_u):
    assert sizes[0] * sizes[1] / 2 - continuous_law(*sizes).critical(0.05) == largest_u


@given(st.integers(2, 12), st.integers(2, 12), st.integers(0, 2**32))
@settings(deadline=None)
def test_p_values_without_ties_equal_scipy(n_a, n_b, seed):
    a, b = np.split(np.random.default_rng(seed).random(n_a + n_b), [n_a])
    expected = stats.mannwhitneyu(a, b, method="exact")
    distance = abs(expected.statistic - n_a * n_b / 2)
    assert continuous_law(n_a, n_b).p_value(distance) == pytest.approx(expected.pvalue)


@given(st.lists(st.integers(0, 3), min_size=3, max_size=4), st.lists(st.integers(0, 3), min_size=3, max_size=4))
@settings(deadline=None)
def test_p_values_with_ties_equal_the_count_of_all_regroupings(a, b):
    pooled = np.array([*a, *b], dtype=float)
    ranks = stats.rankdata(pooled)
    middle = len(a) * (len(pooled) + 1) / 2
    distances = [
        abs(ranks[list(chosen)].sum() - middle) for chosen in itertools.combinations(range(len(pooled)), len(a))
    ]
    observed = abs(ranks[: len(a)].sum() - middle)
    expected = np.mean([distance >= observed - 1e-9 for distance in distances])
    law = law_given_ties(np.array(a, dtype=float), np.array(b, dtype=float))
    assert law.p_value(observed) == pytest.approx(expected)


@pytest.mark.parametrize("sizes", [(12, 15), (60, 70)])
def test_the_law_and_the_printed_test_give_the_same_p(sizes):
    rng = np.random.default_rng(3)
    a, b = (rng.integers(80, 95, size).astype(float) for size in sizes)
    result = mann_whitney(a, b)
    distance = abs(result.u - sizes[0] * sizes[1] / 2)
    assert law_given_ties(a, b).p_value(distance) == pytest.approx(result.p)


@pytest.mark.parametrize("sizes", [(9, 7), (60, 55)])
def test_the_critical_distance_is_the_first_that_is_significant(sizes):
    law = continuous_law(*sizes)
    critical = law.critical(0.01)
    assert law.p_value(critical) <= 0.01 < law.p_value(critical - 1)


def test_too_few_runs_have_no_critical_distance():
    assert continuous_law(3, 3).critical(0.05) == math.inf
    assert continuous_law(3, 3).p_value(math.inf) == 0.0


def test_runs_that_are_all_tied_have_p_one():
    for size in (6, 80):
        law = law_given_ties(np.ones(size), np.ones(size))
        assert law.p_value(0.0) == 1.0
        assert law.critical(0.05) == math.inf
