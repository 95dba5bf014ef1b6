from __future__ import annotations

import json
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isorun.analysis.agreements.agreement import agreement, agreements
from isorun.analysis.agreements.shared_runs import RankChange, rank_changes, rounded, supported_digits
from isorun.errors import InputError


def test_perfect_agreement_of_six_seeds_has_the_exact_p():
    found = agreement(range(6), range(6), a="AP", b="RR")
    assert found.kendall.estimate == 1.0
    assert found.kendall.p == pytest.approx(2 / 720)
    assert found.spearman.p == pytest.approx(2 / 720)
    assert found.spearman.exact
    json.dumps(found.to_json(), allow_nan=False)


@given(st.permutations(range(7)))
@settings(deadline=None)
def test_reversing_one_side_turns_the_sign_and_keeps_p(order):
    forth, back = agreement(range(7), order), agreement(range(7), [-value for value in order])
    assert forth.kendall.estimate == pytest.approx(-back.kendall.estimate)
    assert forth.kendall.p == pytest.approx(back.kendall.p)
    assert forth.spearman.p == pytest.approx(back.spearman.p)


def test_all_pairs_of_metrics_and_devices_are_compared():
    rng = np.random.default_rng(1)
    found = agreements({name: rng.normal(size=12) for name in ("AP cpu", "RR cpu", "AP gpu")})
    assert [(one.a, one.b) for one in found] == [("AP cpu", "RR cpu"), ("AP cpu", "AP gpu"), ("RR cpu", "AP gpu")]


def test_constant_results_agree_with_nothing():
    found = agreement([1.0, 1.0, 1.0], [1.0, 2.0, 3.0])
    assert found.kendall.estimate is None
    assert found.spearman.p is None


def test_different_seeds_are_refused():
    with pytest.raises(InputError, match="same seeds"):
        agreement([1.0, 2.0, 3.0], [1.0, 2.0])
    with pytest.raises(InputError, match="3 or more"):
        agreement([1.0, 2.0], [1.0, 2.0])


def test_the_digits_given_end_where_the_standard_error_begins():
    rng = np.random.default_rng(2)
    runs = 0.9 + 0.01 * rng.normal(size=16)
    found = supported_digits(runs)
    assert found.decimals == 3  # the standard error is about 0.0025
    assert found.single_run_decimals in {2, 3}
    assert found.text == f"{runs.mean():.3f}"


def test_repeating_is_as_likely_as_simulated():
    found = supported_digits([0.70, 0.72, 0.74, 0.71, 0.73])
    rng = np.random.default_rng(3)
    centres = rng.random(200_000)
    repeats = np.round((centres + rng.normal(0, found.standard_error, (2, centres.size))) * 10**found.decimals)
    assert found.repeats == pytest.approx(np.mean(repeats[0] == repeats[1]), abs=0.005)
    assert found.repeats_with_one_more < found.repeats


def test_a_constant_metric_supports_every_digit():
    found = supported_digits([0.5, 0.5])
    assert (found.decimals, found.repeats, found.text) == (None, 1.0, "0.5")


def test_large_values_lose_digits_before_the_point():
    found = supported_digits([12_000.0, 15_000.0, 11_000.0])
    assert found.decimals == -3
    assert found.text == "13000"


def test_halves_are_rounded_as_people_do_it():
    assert rounded(0.7485, 3) == Decimal("0.749")
    assert rounded(0.5, 0) == Decimal("1")


def test_rounding_ties_results_that_were_apart():
    results = {"ours": 0.7487, "theirs": 0.7485, "old": 0.70}
    assert rank_changes(results, 4) == ()
    assert rank_changes(results, 3) == (RankChange("ours", "theirs", "tied"),)


def test_different_roundings_turn_an_order_round():
    changes = rank_changes({"new": 0.7489, "baseline": 0.7486}, {"new": 4, "baseline": 3})
    assert changes == (RankChange("new", "baseline", "reversed"),)
    assert rank_changes({"a": 0.1, "b": 0.14}, 1, direction="lower") == (RankChange("a", "b", "tied"),)
    with pytest.raises(InputError, match="'b' was rounded"):
        rank_changes({"a": 0.1, "b": 0.2}, {"a": 1})


@given(st.dictionaries(st.text(max_size=3), st.floats(0, 1), max_size=6), st.integers(0, 6))
@settings(deadline=None)
def test_one_rounding_for_all_never_turns_an_order_round(results, decimals):
    if not results:
        return
    assert all(change.kind == "tied" for change in rank_changes(results, decimals))
