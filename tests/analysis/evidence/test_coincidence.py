"""Equal numbers: when they are chance, and when they are copies of one run."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.analysis.evidence.units import distinct_among, expected_ties, step_of


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([0.9123, 0.9456, 0.9001], 1e-4),
        ([300 / 1797, 17 / 1797, 25 / 1797], 1 / 1797),
        ([0.1, 0.2, 0.3], 0.1),
        ([91.2, 90.3], 0.1),
        ([50.0, 95.5, 100 / 3 * 2], 100 / 600),
        ([487.0, 500.0, 492.0], 1.0),
        ([2.0, 4.0, 7.0], 1.0),
        ([0.0, 0.0], 0.0),
        ([5400.0, 5100.0, 4700.0], 100.0),
        ([-510.0, 480.0, 470.0, 455.0], 5.0),
        ([300 * 1024.0, 311 * 1024.0, 290 * 1024.0], 1024.0),
        ([12e-6, 13e-6, 9e-6], 1e-6),
        ([1.2e9, 1.35e9, 0.98e9], 1e7),
    ],
)
def test_the_step_of_rounded_numbers_is_found(values, step):
    assert step_of(np.array(values)) == pytest.approx(step, rel=1e-6)


def test_numbers_without_a_common_step_have_the_finest():
    values = np.random.default_rng(1).normal(size=20)
    assert step_of(values) < 1e-5


@pytest.mark.parametrize("unit", [1e-9, 1e-6, 1e-3, 10.0, 100.0, 1e6])
def test_whether_numbers_are_copies_does_not_depend_on_the_unit_they_are_written_in(unit):
    rng = np.random.default_rng(8)
    for _ in range(30):
        runs = rng.normal(50, 3, 20).round()
        assert distinct_among(runs * unit).size == distinct_among(runs).size == 20
        copies = np.repeat(rng.normal(50, 3, 4).round(4), 5)
        assert distinct_among(copies * unit).size == distinct_among(copies).size == 4


@given(st.integers(20, 20_000), st.data(), st.sampled_from([1.0, 100.0]))
def test_the_step_of_shares_divides_all_of_them(examples, data, scale):
    counts = data.draw(st.lists(st.integers(1, examples), min_size=4, max_size=30, unique=True))
    values = np.array(counts) * scale / examples
    steps = values / step_of(values)
    assert np.allclose(steps, np.rint(steps), atol=0.02)


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


@pytest.mark.parametrize("decimals", [3, 4, 5, 6, 8])
@pytest.mark.parametrize(("draws", "copies"), [(3, 10), (6, 5)])
def test_copies_are_known_by_their_number_however_they_are_rounded(decimals, draws, copies):
    rng = np.random.default_rng(decimals)
    samples = [np.repeat(rng.normal(0.9, 0.01, draws).round(decimals), copies) for _ in range(200)]
    found = [distinct_among(runs).size == np.unique(runs).size for runs in samples]
    assert np.mean(found) > (0.97 if decimals > 3 else 0.75)  # three draws may lie within a few steps of each other


@pytest.mark.parametrize(
    "values",
    [
        [500.0] * 9 + [20.0],
        [500.0] * 20 + [101.5, 230.25, 399.125, 180.0625, 222.5, 310.75, 290.5, 150.25, 175.5, 205.125],
        [0.5] * 7 + [0.91234567, 0.92345678, 0.90123456, 0.93456789, 0.91111111, 0.92222222, 0.94444444, 0.95555555],
    ],
)
def test_a_place_where_many_runs_end_is_no_copy(values):
    """A ceiling, or a failure that always looks the same."""
    assert distinct_among(np.array(values)).size == len(values)


def test_rewards_with_a_ceiling_are_not_taken_for_copies():
    rng = np.random.default_rng(6)
    for _ in range(200):
        rewards = np.minimum(rng.normal(470, 40, 30).round(), 500)
        assert distinct_among(rewards).size == 30


@pytest.mark.parametrize("examples", [1000, 10_000])
@pytest.mark.parametrize("runs", [10, 30])
def test_accuracies_in_single_precision_are_not_taken_for_copies(examples, runs):
    rng = np.random.default_rng(examples + runs)
    for _ in range(200):
        counts = rng.binomial(examples, np.clip(rng.normal(0.9, 0.003, runs), 0, 1))
        accuracies = (counts / examples).astype(np.float32).astype(np.float64)
        assert distinct_among(accuracies).size == runs


@pytest.mark.parametrize("noise", [1e-12, 1e-9, 1e-8])
def test_copies_with_a_little_rounding_are_copies(noise):
    rng = np.random.default_rng(7)
    runs = np.repeat(rng.normal(0.9, 0.01, 4), 5)
    assert distinct_among(runs + noise * rng.normal(size=20)).size <= 5


def test_values_that_do_not_vary_tell_nothing_of_chance():
    assert expected_ties(np.full(5, 0.95)) == np.inf
