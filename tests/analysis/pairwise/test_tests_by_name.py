"""Bayesian tests with a ROPE and almost stochastic order, against baycomp and deepsig (tests/reference/by_name)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isorun.analysis.pairwise.by_name import (
    FALSE_CLAIMS,
    almost_stochastic_order,
    bayesian_correlated_t,
    bayesian_signed_rank,
)
from isorun.errors import InputError

REFERENCE = json.loads((Path(__file__).parents[2] / "reference" / "by_name" / "by_name.json").read_text())
BAYES = [(name, answer) for name, found in REFERENCE["bayes"].items() for answer in found["answers"]]
whole_numbers = st.lists(st.integers(-20, 20), min_size=2, max_size=12)


def generator():
    return np.random.default_rng(5)


def differences(name):
    found = REFERENCE["bayes"][name]
    return np.array(found["a"]) - np.array(found["b"])


def beliefs(found):
    """In baycomp's order: B, within, A; without a ROPE B and A."""
    return [found.b_better, found.equivalent, found.a_better] if found.rope else [found.b_better, found.a_better]


@pytest.mark.parametrize(("name", "answer"), BAYES)
def test_the_bayesian_signed_rank_test_equals_baycomp(name, answer):
    found = bayesian_signed_rank(differences(name), answer["rope"], generator(), repetitions=100_000)
    assert beliefs(found) == pytest.approx(answer["signed_rank"], abs=0.008)


@pytest.mark.parametrize(("name", "answer"), BAYES)
def test_the_bayesian_correlated_t_test_equals_baycomp(name, answer):
    gained = differences(name)
    for folds, expected in ((gained.size, answer["one_run"]), (10, answer["folds_10"])):
        if expected is not None:
            found = bayesian_correlated_t(gained, answer["rope"], 1.0 / folds)
            assert beliefs(found) == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("name", REFERENCE["aso"])
def test_almost_stochastic_order_equals_deepsig(name):
    expected = REFERENCE["aso"][name]
    found = almost_stochastic_order(expected["a"], expected["b"], generator(), repetitions=8000)
    assert found.violation == pytest.approx(expected["violation"], abs=1e-12)
    assert found.eps_min == pytest.approx(expected["eps_min"], abs=0.01 + 2 * expected["sd"])


def test_sides_and_directions_turn_round():
    gained = differences("seeds")
    one = bayesian_signed_rank(gained, 0.01, generator(), a="new", b="old")
    other = bayesian_signed_rank(-gained, 0.01, generator(), direction="lower", a="new", b="old")
    assert one == other
    turned = bayesian_correlated_t(-gained, 0.01, 0.1)
    assert turned.a_better == pytest.approx(bayesian_correlated_t(gained, 0.01, 0.1).b_better)
    a, b = ([5.0, 6.0, 7.0, 8.0], [0.0, 1.0, 2.0, 2.5])
    assert almost_stochastic_order(a, b, generator()).eps_min == 0.0
    assert almost_stochastic_order(a, b, generator(), direction="lower").eps_min > 0.97


@given(whole_numbers, st.sampled_from([0.0, 2.0]), st.sampled_from([100.0, 0.01, 1 / 3]))
@settings(max_examples=30, deadline=None)
def test_beliefs_do_not_depend_on_the_unit(gained, rope, unit):
    values = np.array(gained, dtype=float)
    plain = bayesian_signed_rank(values, rope, generator(), repetitions=500)
    scaled = bayesian_signed_rank(values * unit, rope * unit, generator(), repetitions=500)
    assert beliefs(plain) == beliefs(scaled)
    t, of_unit = bayesian_correlated_t(values, rope, 0.1), bayesian_correlated_t(values * unit, rope * unit, 0.1)
    assert beliefs(t) == pytest.approx(beliefs(of_unit), abs=1e-9)
    assert sum(beliefs(plain)) == pytest.approx(1.0)
    assert sum(beliefs(t)) == pytest.approx(1.0)


@given(whole_numbers, whole_numbers, st.sampled_from([100.0, 0.25]), st.sampled_from([0.0, 64.0]))
@settings(max_examples=30, deadline=None)
def test_almost_stochastic_order_does_not_depend_on_the_unit(a, b, unit, offset):
    x, y = np.array(a, dtype=float), np.array(b, dtype=float)
    plain = almost_stochastic_order(x, y, generator(), repetitions=100)
    scaled = almost_stochastic_order(x * unit + offset, y * unit + offset, generator(), repetitions=100)
    assert (scaled.violation, scaled.eps_min) == pytest.approx((plain.violation, plain.eps_min), abs=1e-9)
    assert 0.0 <= plain.eps_min <= 1.0


def test_equal_results_say_nothing_either_way():
    same = bayesian_signed_rank([0.0, 0.0, 0.0], 0.5, generator())
    assert same.equivalent == 1.0
    assert bayesian_correlated_t([0.0, 0.0, 0.0], 0.0, 0.1).a_better == 0.5
    assert bayesian_correlated_t([0.2, 0.2], 0.1, 0.1).a_better == 1.0
    assert almost_stochastic_order([1.0, 1.0], [1.0, 1.0], generator()).violation == 0.5


def test_sentences_name_both_sides_and_say_what_is_not_bounded():
    belief = bayesian_signed_rank(differences("seeds"), 0.01, generator(), a="wide", b="deep")
    order = almost_stochastic_order([1.0, 2.0, 3.0], [0.0, 1.5, 2.0], generator(), a="wide", b="deep")
    for found in (belief, order):
        assert "wide" in found.sentence
        assert "deep" in found.sentence
        assert "bound" in found.sentence
        assert found.to_json()["sentence"] == found.sentence
        json.dumps(found.to_json(), allow_nan=False)
    assert "20%" in order.sentence


def test_bad_options_get_a_message():
    with pytest.raises(InputError, match="positive"):
        bayesian_signed_rank([1.0], -1.0, generator())
    with pytest.raises(InputError, match="prior"):
        bayesian_signed_rank([1.0], 0.0, generator(), prior=0.0)
    with pytest.raises(InputError, match="correlation"):
        bayesian_correlated_t([1.0, 2.0], 0.0, 1.0)
    with pytest.raises(InputError, match="too few"):
        bayesian_correlated_t([1.0], 0.0, 0.1)
    with pytest.raises(InputError, match="ASO"):
        almost_stochastic_order([1.0], [2.0], generator(), step=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("runs", FALSE_CLAIMS)
def test_almost_stochastic_order_claims_falsely_as_often_as_stated(runs):
    rng = np.random.default_rng(runs)
    found = [
        almost_stochastic_order(rng.normal(size=runs), rng.normal(size=runs), rng, repetitions=300).eps_min
        for _ in range(1500)
    ]
    stated = FALSE_CLAIMS[runs]
    assert np.mean(np.array(found) < 0.5) == pytest.approx(stated[0], abs=0.035)
    assert np.mean(np.array(found) < 0.2) == pytest.approx(stated[1], abs=0.02)
