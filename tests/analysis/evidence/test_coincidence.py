"""Equal numbers: when they are chance, and when they are copies of one run."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.analysis.evidence.coincidence import distinct_among, expected_ties, step_of


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([0.9123, 0.9456, 0.9001], 1e-4),
        ([300 / 1797, 17 / 1797, 25 / 1797], 1 / 1797),
        ([0.1, 0.2, 0.3], 0.1),
        ([91.2, 90.3], 0.3),
        ([2.0, 4.0, 7.0], 1.0),
        ([0.0, 0.0], 0.0),
    ],
)
def test_the_step_of_rounded_numbers_is_found(values, step):
    assert step_of(np.array(values)) == pytest.approx(step, rel=1e-6)


def test_numbers_without_a_common_step_have_the_finest():
    values = np.random.default_rng(1).normal(size=20)
    assert step_of(values) < 1e-8


@given(st.integers(2, 5000), st.lists(st.integers(1, 4000), min_size=2, max_size=30), st.sampled_from([1.0, 100.0]))
def test_the_step_divides_every_value(examples, counts, scale):
    values = np.array([count * scale / examples for count in counts])
    steps = values / step_of(values)
    assert np.allclose(steps, np.rint(steps), atol=1e-3)


@pytest.mark.parametrize("examples", [100, 1000, 1797, 10_000, 50_000])
@pytest.mark.parametrize("runs", [5, 10, 30])
def test_accuracies_of_independent_runs_are_not_taken_for_copies(examples, runs):
    rng = np.random.default_rng(examples + runs)
    for _ in range(200):
        accuracies = rng.binomial(examples, np.clip(rng.normal(0.9, 0.003, runs), 0, 1)) / examples
        assert distinct_among(accuracies).size == runs


def test_one_run_that_went_astray_does_not_turn_ties_into_copies():
    rng = np.random.default_rng(3)
    for _ in range(200):
        runs = np.append(rng.binomial(10_000, 0.91, 9) / 10_000, 0.1)
        assert distinct_among(runs).size == 10


def test_three_runs_copied_ten_times_are_three():
    runs = np.repeat(np.random.default_rng(4).normal(0.9, 0.01, 3), 10)
    assert distinct_among(runs).tolist() == [0, 10, 20]


@pytest.mark.parametrize("decimals", [4, 5, 6, 8])
@pytest.mark.parametrize(("draws", "copies"), [(3, 10), (6, 5)])
def test_copies_are_known_by_their_number_however_they_are_rounded(decimals, draws, copies):
    rng = np.random.default_rng(decimals)
    for _ in range(100):
        runs = np.repeat(rng.normal(0.9, 0.01, draws).round(decimals), copies)
        assert distinct_among(runs).size == np.unique(runs).size


def test_a_ceiling_that_many_runs_reach_is_no_copy():
    assert distinct_among(np.array([500.0] * 9 + [20.0])).size == 10


def test_values_that_do_not_vary_tell_nothing_of_chance():
    assert expected_ties(np.full(5, 0.95)) == np.inf
