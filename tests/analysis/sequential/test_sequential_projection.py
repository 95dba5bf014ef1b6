import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.analysis.sequential.looks import every
from isorun.analysis.sequential.projection import noether_runs, project, smoothed_resample
from isorun.analysis.sequential.rules import sequential_rule

RULE = sequential_rule(every(1, min_runs=5, max_runs=30), "power-1.5", 0.05, futility=True, test="mann-whitney")


def test_resampled_runs_keep_mean_and_sd():
    values = np.array([1.0, 2.0, 2.5, 7.0, 3.0, 1.5])
    drawn = smoothed_resample(values, (400, 1_000), np.random.default_rng(0))
    assert drawn.mean() == pytest.approx(values.mean(), rel=0.01)
    assert drawn.std() == pytest.approx(values.std(ddof=1), rel=0.01)


def test_runs_that_do_not_vary_are_resampled_as_they_are():
    assert (smoothed_resample(np.full(5, 3.0), (4, 3), np.random.default_rng(0)) == 3.0).all()


def test_noether_asks_for_the_runs_of_his_equation():
    """(1.645 + 1.282)^2 / (12 x 1/4 x 0.2^2) runs together to see P(A > B) = .7 with power .9 at one-sided .05."""
    assert 2 * noether_runs(0.7, alpha=0.10, power=0.9) == pytest.approx((1.645 + 1.282) ** 2 / 0.12, rel=1e-3)
    assert noether_runs(0.5, 0.05, 0.8) == math.inf


@given(st.floats(0.01, 0.49))
def test_noether_is_symmetric(distance):
    assert noether_runs(0.5 + distance, 0.05, 0.8) == pytest.approx(noether_runs(0.5 - distance, 0.05, 0.8))


def test_a_clear_difference_needs_few_more_runs_and_a_small_one_more():
    rng = np.random.default_rng(2)
    b, noise = rng.standard_normal(6), rng.standard_normal(6)
    near = project(RULE, noise + 0.8, b, np.random.default_rng(1))
    far = project(RULE, noise + 2.5, b, np.random.default_rng(1))
    assert far.chance is not None
    assert near.chance is not None
    assert far.chance > near.chance
    assert far.more_runs is not None
    assert near.more_runs is None or far.more_runs < near.more_runs


def test_the_projected_number_is_about_what_it_takes():
    """Comparisons of d = 1.3 that are open at 8 a side: half of them should end within the projected runs, roughly."""
    rng = np.random.default_rng(3)
    within = []
    for _ in range(60):
        a, b = rng.standard_normal(30) + 1.3, rng.standard_normal(30)
        distance = np.abs([_u(a[:n], b[:n]) for n in range(5, 31)])
        if (distance[:4] >= RULE.critical[:4]).any():
            continue
        projection = project(RULE, a[:8], b[:8], np.random.default_rng(0))
        took = int((distance >= RULE.critical).argmax()) + 5 - 8 if (distance >= RULE.critical).any() else 99
        if projection.more_runs is not None:
            within.append(took <= projection.more_runs)
    assert len(within) > 20
    assert 0.25 <= np.mean(within) <= 0.75


def _u(a, b):
    return (a[:, None] > b).sum() - a.size * b.size / 2


def test_no_sensible_number_is_given_for_sides_that_look_the_same():
    a = np.arange(30.0)
    projection = project(RULE, a, a.copy(), np.random.default_rng(0))
    assert projection.more_runs is None
    assert projection.chance is None
