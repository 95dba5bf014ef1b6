"""The Brunner-Munzel test: its parts against SciPy, its laws by simulation."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from isorun.analysis import pairwise as module
from isorun.analysis.pairwise import brunner_munzel, superiority_law, superiority_score
from isorun.analysis.sequential import Look
from isorun.analysis.sequential.paths import superiority_scores

values = st.sampled_from([5, 7]).flatmap(
    lambda n: st.lists(st.integers(-9, 9).map(float), min_size=n, max_size=n).map(np.array)
)


@pytest.mark.parametrize("sizes", [(8, 8), (12, 20), (40, 25)])
@pytest.mark.parametrize("digits", [0, 3])
def test_without_added_placements_the_score_is_that_of_scipys_t(monkeypatch, sizes, digits):
    monkeypatch.setattr(module, "_END_WEIGHT", 0.0)
    rng = np.random.default_rng(sum(sizes) + digits)
    a, b = (np.round(rng.normal(0.4, 2, size), digits) for size in sizes)
    expected = stats.brunnermunzel(b, a)
    z = superiority_score(a, b)[1]
    assert math.copysign(1, z) == math.copysign(1, expected.statistic)
    assert 2 * stats.norm.sf(abs(z)) == pytest.approx(expected.pvalue, abs=5e-4)


def test_many_runs_need_no_help_from_added_placements():
    rng = np.random.default_rng(1)
    a, b = rng.normal(0.1, 1, 900), rng.normal(0, 2, 700)
    assert brunner_munzel(a, b).p == pytest.approx(stats.brunnermunzel(a, b).pvalue, rel=0.02)


@given(values, values)
@settings(deadline=None)
def test_swapping_the_sides_turns_the_sign_and_nothing_else(a, b):
    there, back = brunner_munzel(a, b), brunner_munzel(b, a)
    assert back.superiority == pytest.approx(1 - there.superiority)
    assert back.z == pytest.approx(-there.z, abs=1e-12)
    assert back.p == pytest.approx(there.p)


@given(values, values, st.floats(1e-6, 1e6), st.floats(-1e3, 1e3))
@settings(deadline=None)
def test_any_scale_gives_the_same(a, b, scale, offset):
    assert brunner_munzel(scale * a, scale * b).z == pytest.approx(brunner_munzel(a, b).z, abs=1e-12)
    assert brunner_munzel(np.exp(a / 4), np.exp(b / 4)) == brunner_munzel(a, b)
    assert brunner_munzel(a + round(offset), b + round(offset)) == brunner_munzel(a, b)


@given(st.integers(0, 2**32), st.sampled_from([3, 10**6]))
@settings(deadline=None, max_examples=25)
def test_the_score_at_each_look_is_that_of_the_runs_so_far(seed, distinct):
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(0, distinct, (size, 3)).astype(float) for size in (12, 150))
    schedule = (Look(5, 5), Look(6, 5), Look(6, 9), Look(12, 150))
    scores = superiority_scores(a, b, schedule)
    for k, (n_a, n_b) in enumerate(schedule):
        expected = [superiority_score(a[:n_a, c], b[:n_b, c])[1] for c in range(3)]
        assert scores[k] == pytest.approx(expected, abs=1e-12)


def test_sides_that_do_not_overlap_or_do_not_vary_have_their_p():
    apart = brunner_munzel(np.arange(5.0) + 10, np.arange(5.0))
    assert apart.superiority == 1.0
    assert 0.03 < apart.p < 0.05  # with spreads of 1:10 so much happens in 4 of 100 comparisons
    assert brunner_munzel(np.full(9, 2.0), np.full(9, 1.0)).p < 0.01
    assert brunner_munzel(np.full(9, 2.0), np.full(9, 2.0)).p == 1.0


def test_one_run_has_no_p():
    found = brunner_munzel(np.array([1.0]), np.array([0.0, 2.0]))
    assert (found.superiority, found.z, found.p) == (0.5, None, None)


@pytest.mark.parametrize("sizes", [(5, 5), (7, 12), (9, 400)])
@pytest.mark.parametrize("level", [0.001, 0.01, 0.05, 0.2])
def test_a_score_reaches_the_critical_one_exactly_when_its_p_is_small_enough(sizes, level):
    law = superiority_law(*sizes)
    critical = law.critical(level)
    for score in np.unique(np.round(law.draws, 12))[::50]:
        assert (score >= critical) == (law.p_value(score) <= level)


def test_many_runs_have_the_normal_law():
    assert superiority_law(16, 40).critical(0.05) == pytest.approx(1.959964, abs=1e-6)
    assert superiority_law(16, 40).p_value(1.959964) == pytest.approx(0.05, abs=1e-6)


def test_fifty_thousand_runs_take_no_second():
    a, b = np.random.default_rng(1).normal(size=(2, 25_000))
    begin = time.process_time()
    brunner_munzel(a, b)
    assert time.process_time() - begin < 1.0


SIZES = [(5, 5), (5, 25), (25, 5), (6, 30), (30, 6), (8, 8), (10, 10), (10, 50), (15, 75), (20, 100), (30, 30)]
LAWS = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "skewed": lambda rng, shape: rng.exponential(1.0, shape) - math.log(2),
    "heavy-tailed": lambda rng, shape: rng.standard_t(3, shape),
}


@pytest.mark.slow
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("law", LAWS)
def test_equal_chances_to_win_are_told_apart_in_at_most_five_and_a_half_percent(sizes, law):
    """Spreads from 1:10 to 10:1; the median of the differences is subtracted where the law is skewed."""
    rng = np.random.default_rng([5, *sizes])
    look = Look(*sizes)
    critical = superiority_law(*sizes).critical(0.05) * (1 - 1e-9)
    for ratio in (1, 2, 4, 10, 1 / 2, 1 / 4, 1 / 10):
        middle = np.median(ratio * LAWS[law](rng, 1_000_000) - LAWS[law](rng, 1_000_000))
        a, b = ratio * LAWS[law](rng, (sizes[0], 20_000)) - middle, LAWS[law](rng, (sizes[1], 20_000))
        claimed = (np.abs(superiority_scores(a, b, (look,))[0]) >= critical).mean()
        assert claimed <= 0.055 + 2.5 * math.sqrt(0.05 * 0.95 / 20_000), ratio
