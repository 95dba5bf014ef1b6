"""What a search is made of: values within a space, labels that two searches share, and what counts as better."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_searches import ACTIVATION, DROPOUT, LAYERS, LR, OPERATIONS, UNITS, of_scores, search

from isorun.diagnose import Symptoms
from isorun.repair.actions import size_of
from isorun.repair.searches import Parameter, Trial, known_noise, repeated_noise


@pytest.mark.parametrize(
    ("parameter", "value", "label"),
    [
        (LR, 1e-3, "1e-3"),
        (LR, 0.0031, "3e-3"),
        (LR, 1.0, "1e0"),
        (UNITS, 100, "1e2"),
        (LAYERS, 3, "3"),
        (DROPOUT, 0.27, "0.3"),
        (ACTIVATION, "ReLU", "relu"),
        (Parameter("x", "float", low=-10, high=10), 9.9, "5/5"),
        (Parameter("x", "float", low=-10, high=10), -10, "1/5"),
    ],
)
def test_a_value_is_known_by_a_label(parameter, value, label):
    assert parameter.label(value) == label


@given(st.floats(-1e6, 1e6), st.sampled_from([LR, DROPOUT, LAYERS, UNITS]))
def test_the_nearest_value_lies_within_the_space(number, parameter):
    value = parameter.valid(number)
    assert parameter.holds(value)
    assert parameter.valid(float(value)) == value
    assert isinstance(value, int) == (parameter.kind == "int")


def test_true_is_no_number_and_one_is_not_true():
    switch = Parameter("bn", "category", choices=(True, False))
    assert switch.holds(True)
    assert not switch.holds(1)
    assert not LAYERS.holds(True)
    assert not LR.holds(math.nan)


def test_a_space_is_as_large_as_its_dimensions_make_it():
    assert size_of(OPERATIONS) == 4**4
    assert size_of([LAYERS, ACTIVATION]) == 12
    assert size_of([LAYERS, DROPOUT]) == math.inf
    assert Parameter("x", "float", low=0, high=1, step=0.25).size == 5


def test_the_best_is_the_first_with_the_best_score_in_either_direction():
    assert of_scores([1.0, 3.0, 3.0, 2.0]).best.number == 1
    assert of_scores([1.0, 3.0, 0.5], direction="lower").best.number == 2
    assert of_scores([None, math.nan, math.inf]).best is None


def test_an_improvement_is_one_above_noise():
    scores = [1.0, 1.05, 1.5, 1.6]
    assert [trial.number for trial in of_scores(scores).improvements] == [0, 1, 2, 3]
    assert [trial.number for trial in of_scores(scores, noise=0.1).improvements] == [0, 2]


def test_noise_is_the_pooled_spread_of_what_was_repeated():
    same, other = {"lr": 0.1}, {"lr": 0.2}
    scores = [(same, 1.0), (same, 3.0), (other, 5.0), (other, 5.0), (other, 8.0), ({"lr": 0.3}, 99.0)]
    trials = [Trial(number, "finished", score, parameters) for number, (parameters, score) in enumerate(scores)]
    assert repeated_noise(trials) == pytest.approx(math.sqrt((2 + 6) / 3))
    assert repeated_noise(trials[-1:]) is None


@pytest.mark.parametrize(("times", "noise"), [(2, 0.00559), (3, 0.0), (5, 0.0), (6, 0.0)])
@pytest.mark.parametrize("score", [0.99638, 0.1, 1e-12, 0.0])
def test_repeats_that_agree_exactly_show_that_nothing_varies_and_two_of_them_nothing(times, noise, score):
    trials = [Trial(number, "finished", score, {"lr": 0.5}) for number in range(times)]
    found, source = known_noise(repeated_noise(trials), 0.00559)
    assert found == noise
    assert source == ("the prior" if times == 2 else "trials that were repeated and agreed exactly")


def test_noise_is_found_in_simulated_repeats():
    rng = np.random.default_rng(1)
    trials = [Trial(i, "finished", rng.normal(i // 3, 0.5), {"x": i // 3}) for i in range(600)]
    assert repeated_noise(trials) == pytest.approx(0.5, rel=0.1)
    assert search(trials, ()).margin == 0


def test_better_is_above_noise_and_not_where_both_got_nowhere():
    found = of_scores([0.5, 0.6, None], noise=0.1 / math.sqrt(2) * 0.99)
    worse, better, failed = found.trials
    assert found.is_better(better, worse)
    assert not found.is_better(worse, better)
    assert not found.is_better(failed, worse)
    noisy = dataclasses.replace(found, noise=0.1 / math.sqrt(2) * 1.01)
    assert not noisy.is_better(better, worse)
    dead, too = (dataclasses.replace(one, symptoms=Symptoms(convergence="slow")) for one in (worse, better))
    assert not found.is_better(too, dead)
    assert found.is_better(better, dead)


def test_how_short_of_a_target_a_search_is_goes_by_its_direction():
    assert of_scores([0.5, 0.75]).short_of(1.0) == 0.25
    assert of_scores([0.5, 0.75], direction="lower").short_of(0.25) == 0.25
    assert of_scores([0.5, 0.75]).short_of(0.75) == 0.0
    assert of_scores([0.5, 0.75], direction="lower").short_of(0.6) < 0
    assert of_scores([None]).short_of(0.0) == math.inf
