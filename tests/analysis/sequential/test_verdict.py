import dataclasses
import json
import math

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from isorun.analysis.pairwise import brunner_munzel, mann_whitney
from isorun.analysis.sequential import against_stored
from isorun.analysis.sequential.verdict import METHODS, Verdict, decide, next_action
from isorun.errors import InputError

SWAPPED = {
    Verdict.A_BETTER: Verdict.B_BETTER,
    Verdict.B_BETTER: Verdict.A_BETTER,
    Verdict.EQUIVALENT: Verdict.EQUIVALENT,
    Verdict.UNDECIDED: Verdict.UNDECIDED,
}
FASTEST = {"max_runs": 12}
values = st.integers(-30, 30).map(float)
sides = st.integers(5, 12).flatmap(lambda n: st.tuples(*[st.lists(values, min_size=n, max_size=n)] * 2))


def runs(effect, n, seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    return spread * (rng.standard_normal(n) + effect), spread * rng.standard_normal(n)


def summary(decision):
    return decision.verdict, decision.stop, [point.statistic for point in decision.path]


@pytest.mark.long
@pytest.mark.parametrize("method", METHODS)
@given(sides)
@settings(deadline=None, max_examples=30)
def test_swapping_a_and_b_swaps_the_verdict(method, sides):
    a, b = sides
    there = decide(a, b, direction="higher", method=method, margin=4.0, **FASTEST)
    back = decide(b, a, direction="higher", method=method, margin=4.0, **FASTEST)
    assert back.verdict is SWAPPED[there.verdict]
    assert back.stop == there.stop
    assert_mirrored(there, back)


@pytest.mark.parametrize("method", ["sequential", "fixed", "e-process"])
@given(sides)
@settings(deadline=None, max_examples=30)
def test_swapping_a_and_b_of_pairs_swaps_the_verdict(method, sides):
    a, b = sides
    there = decide(a, b, direction="higher", method=method, paired=True, **FASTEST)
    back = decide(b, a, direction="higher", method=method, paired=True, **FASTEST)
    assert back.verdict is SWAPPED[there.verdict]
    assert_mirrored(there, back)


@given(st.lists(values, min_size=3, max_size=12), st.lists(values, min_size=3, max_size=9))
@example([6.0, 0.0, 0.0, 0.0, 0.0, 0.0], [6.0, 0.0, 0.0, 0.0, 0.0, 0.0])  # the looks alone tell the sides apart
@settings(deadline=None, max_examples=30)
def test_swapping_sides_of_unequal_size_mirrors_the_looks_too(a, b):
    looks = [(6, 5), (9, 6), (12, 9), (15, 12)]
    there = decide(a, b, direction="lower", looks=looks, margin=4.0)
    back = decide(b, a, direction="lower", looks=[look[::-1] for look in looks], margin=4.0)
    assert back.verdict is SWAPPED[there.verdict]
    assert_mirrored(there, back)


def assert_mirrored(there, back):
    """What is told of the one is told of the other, with A and B in each other's place."""
    assert (back.about_more_runs, back.chance, back.chances) == (there.about_more_runs, there.chance, there.chances)
    assert (back.stop, back.error_rate) == (there.stop, there.error_rate)
    assert back.estimate == pytest.approx(-there.estimate, abs=1e-6)
    assert (back.ci95 is None) is (there.ci95 is None)
    if there.ci95 is not None:
        assert back.ci95 == pytest.approx((-there.ci95[1], -there.ci95[0]), abs=1e-6)


@pytest.mark.parametrize("method", METHODS)
@given(sides)
@settings(deadline=None, max_examples=30)
def test_lower_is_better_is_higher_is_better_with_the_signs_turned(method, sides):
    a, b = (np.array(side) for side in sides)
    assert summary(decide(a, b, direction="lower", method=method, **FASTEST)) == summary(
        decide(-a, -b, direction="higher", method=method, **FASTEST)
    )


@pytest.mark.parametrize("method", ["sequential", "naive", "fixed"])
@given(sides)
@settings(deadline=None, max_examples=30)
def test_a_rank_verdict_does_not_change_when_the_metric_is_bent(method, sides):
    a, b = (np.array(side) for side in sides)
    straight = decide(a, b, direction="higher", method=method, **FASTEST)
    bent = decide(np.exp(a / 5), np.exp(b / 5), direction="higher", method=method, **FASTEST)
    assert summary(straight) == summary(bent)


@pytest.mark.parametrize("method", METHODS)
@given(sides, st.integers(-1000, 1000))
@settings(deadline=None, max_examples=30)
@pytest.mark.long
def test_adding_a_constant_changes_nothing(method, sides, constant):
    a, b = (np.array(side) for side in sides)
    here = decide(a, b, direction="higher", method=method, margin=3.0, **FASTEST)
    there = decide(a + constant, b + constant, direction="higher", method=method, margin=3.0, **FASTEST)
    assert (here.verdict, here.stop) == (there.verdict, there.stop)


@given(sides, st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=30)
def test_a_fixed_verdict_does_not_depend_on_the_order_of_runs(sides, random):
    a, b = ([*side] for side in sides)
    first = decide(a, b, direction="higher", method="fixed")
    random.shuffle(a)
    random.shuffle(b)
    assert first.verdict is decide(a, b, direction="higher", method="fixed").verdict


def test_order_matters_only_as_the_order_of_looks():
    a, b = runs(1.0, 12, seed=5)
    early = decide(a, b, direction="higher", looks=[6, 12], max_runs=12)
    turned = np.r_[a[:6][::-1], a[6:][::-1]]
    assert summary(decide(turned, b, direction="higher", looks=[6, 12], max_runs=12)) == summary(early)


@given(sides)
@settings(deadline=None, max_examples=50)
def test_a_fixed_verdict_agrees_with_the_printed_p(sides):
    a, b = (np.array(side) for side in sides)
    for test, p in (("mann-whitney", mann_whitney(a, b).p), ("brunner-munzel", brunner_munzel(a, b).p)):
        assume(abs(p - 0.05) > 1e-9)
        decision = decide(a, b, direction="higher", method="fixed", test=test)
        assert (decision.verdict is not Verdict.UNDECIDED) == (p < 0.05)
        assert decision.path[0].p_value == pytest.approx(p)


def test_runs_after_a_claim_do_not_take_it_back():
    a, b = runs(3.0, 30)
    early = decide(a[:8], b[:8], direction="higher")
    a[8:] -= 100
    assert early.verdict is Verdict.A_BETTER
    assert decide(a, b, direction="higher").verdict is Verdict.A_BETTER


@pytest.mark.long
def test_consulting_after_every_run_gives_the_same_as_consulting_once():
    for seed in range(10):
        a, b = runs(0.9, 30, seed)
        one_by_one = [decide(a[:n], b[:n], direction="higher", futility=False).verdict for n in range(5, 31)]
        first = next((verdict for verdict in one_by_one if verdict is not Verdict.UNDECIDED), Verdict.UNDECIDED)
        assert decide(a, b, direction="higher", futility=False).verdict is first


def test_tens_of_thousands_of_runs_are_judged_at_once():
    a, b = runs(0.05, 25_000, seed=1)
    decision = decide(a, b, direction="higher", method="fixed", margin=0.01)
    assert decision.verdict is Verdict.A_BETTER
    assert decision.path[0].p_value == pytest.approx(brunner_munzel(a, b).p)
    assert "of 625,000,000 pairs" in decision.why
    exact = decide(a, b, direction="higher", method="fixed", test="mann-whitney")
    assert exact.path[0].p_value == pytest.approx(mann_whitney(a, b).p)


@pytest.mark.parametrize("looks", [1, 4])
@pytest.mark.long
def test_following_the_next_action_ends_in_a_stop_within_the_maximum(looks):
    for seed in range(12):
        a, b = runs(0.7, 30, seed)
        n_a = n_b = 0
        decision = decide(a[:1], b[:1], direction="higher", looks=looks)
        while not next_action(decision).stop:
            action = next_action(decision)
            n_a, n_b = decision.n_a + action.runs_a, decision.n_b + action.runs_b
            assert decision.n_a < n_a <= 30
            decision = decide(a[:n_a], b[:n_b], direction="higher", looks=looks)
        assert (n_a, n_b) == (decision.n_a, decision.n_b)
        assert decision.stop


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sizes", [(1, 1), (4, 4), (30, 4), (3, 8)])
def test_fewer_than_five_runs_get_a_warning_instead_of_a_verdict(method, sizes):
    decision = decide(np.arange(sizes[0]) + 100.0, np.arange(sizes[1]), direction="higher", method=method)
    assert decision.verdict is Verdict.UNDECIDED
    assert not decision.stop
    assert [warning.code for warning in decision.conditions][:1] == ["too-few"]
    assert "too few" in decision.why
    action = next_action(decision)
    assert (action.runs_a, action.runs_b) == tuple(max(0, 5 - size) for size in sizes)


@pytest.mark.parametrize("method", METHODS)
def test_runs_that_are_all_the_same_decide_nothing_and_with_a_margin_are_equivalent(method):
    constant = [0.5] * 8
    decision = decide(constant, constant, direction="lower", method=method)
    assert (decision.verdict, decision.stop) == (Verdict.UNDECIDED, True)
    assert "every run of both sides gave 0.5" in decision.why
    with_margin = decide(constant, constant, direction="lower", method=method, margin=0.01)
    assert with_margin.verdict is Verdict.EQUIVALENT
    json.dumps(with_margin.to_json(), allow_nan=False)


@pytest.mark.parametrize("method", METHODS)
def test_sides_that_do_not_vary_but_differ_are_told_apart(method):
    assert decide([1.0] * 9, [2.0] * 9, direction="lower", method=method).verdict is Verdict.A_BETTER


def test_the_path_shows_looks_made_and_looks_planned():
    a, b = runs(0.2, 7)
    path = decide(a, b, direction="higher", test="mann-whitney").path
    assert [(point.n_a, point.planned) for point in path] == [(n, n > 7) for n in range(5, 31)]
    assert path[0].upper is None
    assert path[2].lower == -path[2].upper == -22.5
    assert path[0].statistic is not None
    assert path[-1].statistic is None
    assert path[-1].futility is not None


def test_an_undecided_comparison_says_about_how_many_more_runs():
    decision = decide(*runs(1.2, 9, seed=5), direction="higher")
    assert decision.verdict is Verdict.UNDECIDED
    assert decision.about_more_runs is not None
    assert decision.about_more_runs >= 1
    assert f"about {decision.about_more_runs} more run" in decision.why
    assert decision.chance is not None


def test_a_hopeless_comparison_stops_and_may_be_continued():
    rng = np.random.default_rng(1)
    values = rng.standard_normal(24)
    a, b = values, values + 1e-3 * rng.standard_normal(24)
    assert decide(a, b, direction="higher").stop
    assert "unlikely to show" in decide(a, b, direction="higher").why
    assert not decide(a, b, direction="higher", futility=False).stop
    gone_on = decide(np.r_[a, np.full(6, 50.0)], np.r_[b, np.full(6, -50.0)], direction="higher", max_runs=30)
    assert gone_on.verdict is Verdict.A_BETTER


def test_the_last_planned_look_stops():
    decision = decide(*runs(0.4, 30, seed=8), direction="higher", futility=False)
    assert (decision.verdict, decision.stop) == (Verdict.UNDECIDED, True)
    assert "no look is left and the whole error rate is spent" in decision.why
    assert decision.about_more_runs is None


def test_the_naive_rule_shows_its_true_error_rate():
    decision = decide(*runs(2.0, 10), direction="higher", method="naive")
    assert decision.error_rate == pytest.approx(0.205, abs=0.005)
    assert "20." in decision.error_statement


def test_without_a_maximum_the_e_process_is_used_and_never_runs_out_of_looks():
    a, b = runs(0.0, 80, seed=2)
    decision = decide(a, b, direction="higher", max_runs=None)
    assert decision.method == "e-process"
    assert not decision.stop
    assert next_action(decision).runs_a == 1
    assert decide(a + 2, b, direction="higher", max_runs=None).verdict is Verdict.A_BETTER


def test_next_action_goes_to_the_next_declared_look():
    decision = decide(*runs(0.1, 7), direction="higher", looks=5)
    action = next_action(decision)
    assert (action.stop, action.runs_a, action.runs_b) == (False, 3, 3)
    assert next_action(decide(*runs(4.0, 10), direction="higher")).stop


def test_a_side_that_is_behind_is_filled_up_first_and_the_surplus_is_said():
    a, b = runs(0.1, 12)
    decision = decide(a, b[:9], direction="higher")
    assert decision.conditions[0].code == "unlooked"
    assert "3 runs of A and 0 of B" in decision.conditions[0].message
    action = next_action(decision)
    assert (action.runs_a, action.runs_b) == (0, 1)


def test_a_stored_baseline_is_used_whole_at_every_look():
    rng = np.random.default_rng(4)
    baseline, new = rng.standard_normal(30), rng.standard_normal(7) + 2.5
    decision = decide(new, baseline, direction="higher", looks=against_stored(30, max_runs=30))
    assert decision.verdict is Verdict.A_BETTER
    assert not decision.conditions
    assert decision.path[0].n_b == 30


def test_runs_beyond_the_maximum_are_not_used_and_that_is_said():
    a, b = runs(0.0, 40, seed=6)
    decision = decide(a, b, direction="higher", futility=False)
    assert [point.statistic for point in decision.path] == [
        point.statistic for point in decide(a[:30], b[:30], direction="higher", futility=False).path
    ]
    assert decision.conditions[0].code == "beyond-the-plan"
    assert "beyond the last planned look" in decision.conditions[0].message


def test_a_real_but_small_difference_is_equivalent_when_the_margin_says_so():
    a, b = runs(0.0, 30, seed=9, spread=0.01)
    decision = decide(a + 0.002, b, direction="higher", margin=0.02)
    assert decision.verdict is Verdict.EQUIVALENT
    assert "within ±0.02" in decision.why


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [3, 9, 30])
def test_a_decision_travels_as_strict_json(method, n):
    decision = decide(*runs(0.4, n), direction="higher", method=method, margin=0.5)
    data = json.loads(json.dumps(decision.to_json(), allow_nan=False))
    named = {field.name for field in dataclasses.fields(decision)} - {"conditions"} | {"warnings"}
    assert set(data) == named
    assert data["verdict"] in {str(verdict) for verdict in Verdict}
    assert {"n_a", "n_b", "statistic", "lower", "upper", "futility", "p_value", "level"} <= set(data["path"][0])


def test_not_a_number_is_counted_and_named():
    with pytest.raises(InputError, match=r"B has values.*\n.*1 NaN and 2 infinite of 6"):
        decide([1, 2, 3, 4, 5, 6], [1, math.nan, math.inf, 2, -math.inf, 3], direction="higher")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"direction": "up"}, "higher or lower"),
        ({"method": "sequentail"}, "did you mean 'sequential'"),
        ({"spending": "linear"}, "power-1.5, pocock"),
        ({"alpha": 0.0}, "between 0 and 0.5"),
        ({"alpha": 5}, "between 0 and 0.5"),
        ({"margin": -1.0}, "above 0"),
        ({"margin": math.nan}, "above 0"),
        ({"min_runs": 3}, "at least 5 runs"),
        ({"max_runs": 4}, "at least 5 runs"),
        ({"looks": 0}, "a step of 1 or more"),
        ({"max_runs": None, "method": "naive"}, "needs a maximum"),
    ],
    ids=str,
)
def test_a_plan_that_cannot_be_is_refused_with_what_is_allowed(wrong, says):
    with pytest.raises(InputError, match=says):
        decide(range(6), range(6), **{"direction": "higher", **wrong})


def test_no_runs_at_all_are_refused():
    with pytest.raises(InputError, match="too few values"):
        decide([], [1.0], direction="higher")
