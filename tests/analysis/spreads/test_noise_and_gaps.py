from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from isorun.analysis.spreads import outliers
from isorun.analysis.spreads.class_gaps import class_gaps, range_tail
from isorun.analysis.spreads.noise import correctness, noise_shares
from isorun.errors import InputError


def simulated(rng, runs, examples, run_sd):
    """Runs whose true accuracy on unlimited data is 0.8 + N(0, run_sd²), on examples of unequal difficulty."""
    difficulty = rng.beta(4, 1, examples)
    shift = rng.normal(0, run_sd, (runs, 1))
    return (rng.random((runs, examples)) < np.clip(difficulty + shift, 0, 1)).astype(float)


@pytest.mark.parametrize("run_sd", [0.0, 0.02])
def test_the_remaining_variance_is_unbiased_and_does_not_depend_on_the_test_set(run_sd):
    rng = np.random.default_rng(1)
    truth = np.mean([simulated(rng, 60, 4000, run_sd).mean(axis=1).var(ddof=1) for _ in range(8)]) - 0.1 / 4000
    for examples in (50, 400):
        found = [noise_shares(simulated(rng, 12, examples, run_sd)).run_variance for _ in range(400)]
        assert np.mean(found) == pytest.approx(truth, abs=4 * np.std(found) / 20 + 2e-6)


def test_with_nothing_but_test_set_noise_the_p_is_uniform_and_intervals_reach_zero():
    rng = np.random.default_rng(2)
    found = [noise_shares(simulated(rng, 10, 300, 0.0)) for _ in range(300)]
    rejected = np.mean([one.p < 0.05 for one in found])
    assert 0.02 <= rejected <= 0.09
    assert np.mean([one.run_variance_ci95[0] == 0.0 for one in found]) > 0.93


def test_the_interval_of_the_remaining_variance_covers_it():
    rng = np.random.default_rng(3)
    truth = np.var([np.clip(rng.beta(4, 1, 4000) + shift, 0, 1).mean() for shift in rng.normal(0, 0.03, 4000)])
    found = [noise_shares(simulated(rng, 10, 400, 0.03)).run_variance_ci95 for _ in range(400)]
    assert 0.91 <= np.mean([low <= truth <= high for low, high in found]) <= 0.98


def test_the_closed_form_is_the_mean_covariance_of_different_examples():
    matrix = simulated(np.random.default_rng(4), 6, 9, 0.1)
    covariance = np.cov(matrix.T)
    off_diagonal = covariance[~np.eye(9, dtype=bool)].mean()
    assert noise_shares(matrix).run_variance == pytest.approx(off_diagonal)


def test_the_parts_add_up_and_the_sentence_says_them():
    shares = noise_shares(simulated(np.random.default_rng(5), 8, 200, 0.05))
    assert shares.run_variance + shares.test_set_variance == pytest.approx(shares.variance)
    assert "unlimited test set" in shares.sentence
    assert "200 examples" in shares.sentence
    json.dumps(shares.to_json(), allow_nan=False)


def test_identical_runs_have_nothing_to_share():
    shares = noise_shares(np.ones((3, 5)))
    assert shares.remaining_share is None
    assert shares.p is None
    assert "same accuracy" in shares.sentence


@pytest.mark.parametrize(("right", "examples"), [(324, 350), (333, 350), (1, 3), (7, 11)])
def test_identical_runs_are_not_told_of_as_if_rounding_were_noise(right, examples):
    shares = noise_shares(np.tile([1.0] * right + [0.0] * (examples - right), (5, 1)))
    assert (shares.variance, shares.run_variance, shares.remaining_share) == (0.0, 0.0, None)
    assert shares.sentence == f"All 5 runs have the same accuracy on these {examples} examples."


def test_predictions_become_correctness():
    assert correctness([[1, 2], [0, 2]], [1, 2]).tolist() == [[1.0, 1.0], [0.0, 1.0]]
    with pytest.raises(InputError, match="do not fit"):
        correctness([[1, 2]], [1])
    with pytest.raises(InputError, match="several runs"):
        noise_shares([[1, 0, 1]])
    with pytest.raises(InputError, match="1 of 4"):
        noise_shares([[1, 0], [np.nan, 1]])


@given(st.integers(1, 12), st.floats(0, 1), st.integers(2, 4))
@settings(deadline=None)
def test_the_law_of_the_range_is_that_of_simulated_counts(examples, accuracy, runs):
    counts = np.random.default_rng(6).binomial(examples, accuracy, (4000, runs))
    ranges = np.ptp(counts, axis=1)
    tail = range_tail(examples, accuracy, runs)
    simulated_tail = [np.mean(ranges >= gap) for gap in range(examples + 1)]
    assert tail == pytest.approx(np.array(simulated_tail), abs=0.045)


def test_a_gap_that_chance_gives_is_told_from_one_that_it_does_not():
    rng = np.random.default_rng(7)
    chance = rng.binomial(21, 0.9, 16) / 21
    moved = np.array([0.95] * 8 + [0.55] * 8)
    usual, large = class_gaps({"rare": chance, "unstable": moved}, {"rare": 21, "unstable": 100})
    assert not usual.exceeds_chance
    assert large.exceeds_chance
    assert usual.step == pytest.approx(0.0476, abs=1e-4)
    assert "chance explains it" in usual.sentence
    assert "40.0 points;" in large.sentence
    assert "more than chance explains" in large.sentence


def test_chance_alone_rarely_exceeds_the_floor():
    rng = np.random.default_rng(8)
    found = [
        class_gaps({str(k): rng.binomial(40, 0.8, 10) / 40 for k in range(5)}, dict.fromkeys(map(str, range(5)), 40))
        for _ in range(150)
    ]
    assert np.mean([any(gap.exceeds_chance for gap in gaps) for gaps in found]) <= 0.08


def test_bad_class_tables_are_refused():
    with pytest.raises(InputError, match="divide percentages"):
        class_gaps({"a": [90.0, 91.0]}, {"a": 10})
    with pytest.raises(InputError, match="'a' has is not known"):
        class_gaps({"a": [0.9, 0.8]}, {})
    with pytest.raises(InputError, match="too few"):
        class_gaps({"a": [0.9]}, {"a": 10})


def test_outliers_are_found_even_when_they_stretch_the_standard_deviation():
    found = outliers([0.90, 0.91, 0.92, 0.90, 0.91, 0.10, 0.11])
    assert [outlier.position for outlier in found] == [5, 6]
    assert found[0].score < -3.5


def test_equal_values_have_no_outliers_and_one_that_differs_from_many_equal_ones_is_found():
    assert outliers([1.0, 1.0, 1.0]) == ()
    assert [outlier.position for outlier in outliers([1.0] * 9 + [2.0])] == [9]


@given(st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=20), st.floats(-1e3, 1e3))
@example([0.0, 1.0, 2.2250738585e-313], 0.0)
@settings(deadline=None)
def test_shifting_all_runs_moves_no_outlier_far(values, constant):
    assert len(outliers(values)) <= len(values) / 2
    assert outliers([constant] * 4) == ()
