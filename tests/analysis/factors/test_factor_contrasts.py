"""Differences between values of a factor: known answers, what counts as a unit, and what cannot be tested."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from isorun.analysis.evidence.units import Counting
from isorun.analysis.factors.contrasts import (
    QuestionValues,
    RunValues,
    aliased,
    crossed_shares,
    interaction_weights,
    main_weights,
    neighbours,
)
from isorun.analysis.measurements import read_table
from isorun.analysis.mixed.checks import model_that_fits
from isorun.analysis.mixed.model import mixed_model
from isorun.analysis.samples import adjusted

SEEDS = Counting("unit", "seed", recorded=True)


def runs(values, *, paired=True, units=None):
    """Values by point, one a seed, as the runs of a study."""
    rows = [
        {"environment": point, "seed": str(seed), "unit": (units or {}).get(seed, str(seed)), "score": value}
        for point, by_seed in values.items()
        for seed, value in enumerate(by_seed)
        if value is not None
    ]
    table = read_table(rows)
    groups = {group.name: group for group in table.groups("score", ["environment"])}
    return RunValues(table, groups, SEEDS if paired else Counting(None, "run", recorded=True), paired)


def cube(names="TCK"):
    """The points of a two-level design, each called by its signs."""
    return {
        "".join(signs): dict(zip(names, signs, strict=True)) for signs in itertools.product("-+", repeat=len(names))
    }


# Box, Hunter and Hunter, Statistics for Experimenters: a pilot plant, temperature, concentration, catalyst (10.1).
YIELD = {"---": 60, "+--": 72, "-+-": 54, "++-": 68, "--+": 52, "+-+": 83, "-++": 45, "+++": 80}
PUBLISHED = {"T": 23.0, "C": -5.0, "K": 1.5, "TC": 1.5, "TK": 10.0, "CK": 0.0}


def effect_of(points, name):
    if len(name) == 1:
        return main_weights(points, name, "+", "-"), 1.0
    return interaction_weights(points, (name[0], "+", "-"), (name[1], "+", "-")), 0.5


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_effects_of_a_published_two_level_design(name):
    plant = runs({point: [float(value), value + 1.0] for point, value in YIELD.items()})
    weights, half = effect_of(cube(), name)
    assert plant.tested(weights).difference * half == pytest.approx(PUBLISHED[name])


def test_one_at_a_time_is_the_paired_t_test_and_its_interval():
    low, high = [0.91, 0.94, 0.90, 0.95, 0.93], [0.92, 0.96, 0.90, 0.97, 0.95]
    found = runs({"baseline": low, "threads=2": high}).tested({"threads=2": 1.0, "baseline": -1.0})
    known = scipy_stats.ttest_rel(high, low)
    assert found.p == pytest.approx(known.pvalue)
    assert found.interval95 == pytest.approx(tuple(known.confidence_interval(0.95)))
    assert (found.units, found.test) == (5, "paired t")


def test_runs_without_seeds_are_tested_as_welch_does():
    low, high = [0.91, 0.94, 0.90, 0.95], [0.92, 0.99, 0.90, 0.97, 0.95, 0.96]
    found = runs({"baseline": low, "b": high}, paired=False).tested({"b": 1.0, "baseline": -1.0})
    known = scipy_stats.ttest_ind(high, low, equal_var=False)
    assert found.p == pytest.approx(known.pvalue)
    assert found.interval95 == pytest.approx(tuple(known.confidence_interval(0.95)))
    assert (found.units, found.test) == (4, "Welch")


def test_a_factorial_effect_is_that_of_the_mixed_model_in_which_seeds_act_in_their_own_way():
    random = np.random.default_rng(3)
    points, seeds = cube("AB"), 6
    common, own = random.normal(0, 2, seeds), {name: random.normal(0, 1, (2, seeds)) for name in "AB"}
    values = {
        point: common
        + own["A"][int(signs["A"] == "+")]
        + own["B"][int(signs["B"] == "+")]
        + random.normal(0, 0.3, seeds)
        for point, signs in points.items()
    }
    found = runs({point: list(map(float, side)) for point, side in values.items()}).tested(
        main_weights(points, "A", "+", "-")
    )
    rows = [
        (points[point]["A"], points[point]["B"], f"s{seed}", y)
        for point in points
        for seed, y in enumerate(values[point])
    ]
    a, b, seed, y = (np.array(column, dtype=object) for column in zip(*rows, strict=True))
    table = {"A": a, "B": b, "seed": seed, "y": y.astype(float)}
    model = model_that_fits(mixed_model(table, "y ~ A * B + (1|seed)"), "seed")
    [row] = [row for row in model.differences if row.factor == "A"]
    assert abs(row.estimate) == pytest.approx(abs(found.difference))
    assert row.p == pytest.approx(found.p, rel=1e-4)


def test_repeats_of_a_seed_and_seeds_that_took_no_effect_are_one_unit():
    low, high = [0.90, 0.92, 0.91, 0.95], [0.91, 0.94, 0.93, 0.95]
    weights = {"b": 1.0, "a": -1.0}
    assert runs({"a": low, "b": high}).tested(weights).units == 4
    merged = runs({"a": low, "b": high}, units={0: "0", 1: "0", 2: "2", 3: "2"}).tested(weights)
    assert merged.units == 2
    assert merged.difference == pytest.approx(np.mean(np.subtract(high, low)))


def test_one_seed_gives_a_difference_and_no_test():
    found = runs({"a": [0.90], "b": [0.93]}).tested({"b": 1.0, "a": -1.0})
    assert found.difference == pytest.approx(0.03)
    assert (found.p, found.interval95, found.units, found.test) == (None, None, 1, "")


def test_the_same_difference_in_every_seed_is_rounding_and_no_spread():
    low = [0.1, 0.2, 0.3, 0.7, 0.8]
    few = runs({"a": low, "b": [value + 0.1 for value in low]}).tested({"b": 1.0, "a": -1.0})
    assert (few.p, few.interval95) == (None, None)
    more = runs({"a": [*low, 0.9], "b": [value + 0.1 for value in (*low, 0.9)]}).tested({"b": 1.0, "a": -1.0})
    assert more.p == 2.0**-5
    assert more.interval95 == pytest.approx((0.1, 0.1))


def test_no_difference_at_all_is_zero_without_a_test():
    low = [0.1, 0.2, 0.3, 0.7, 0.8, 0.9, 0.95]
    found = runs({"a": low, "b": low}).tested({"b": 1.0, "a": -1.0})
    assert (found.difference, found.p, found.interval95) == (0.0, None, None)


def test_seeds_without_a_partner_are_named_and_left_out():
    found = runs({"a": [0.90, 0.91, 0.92], "b": [0.91, None, 0.95]}).tested({"b": 1.0, "a": -1.0})
    assert found.units == 2
    assert found.unmatched == ("1",)


def test_a_point_without_runs_gives_nothing():
    found = runs({"a": [0.90, 0.91]}).tested({"b": 1.0, "a": -1.0})
    assert (found.difference, found.units, found.unmatched) == (None, 0, ("0", "1"))


def test_questions_count_once_whatever_the_seeds():
    right = {"1": np.array([1.0, 0, 1, 1]), "2": np.array([1.0, 0, 0, 1])}
    more = {"1": np.array([1.0, 1, 1, 1]), "2": np.array([1.0, 1, 1, 1]), "3": np.zeros(4)}
    found = QuestionValues({"baseline": right, "b": more}).tested({"b": 1.0, "baseline": -1.0})
    known = scipy_stats.ttest_rel([1, 1, 1, 1], [1, 0, 0.5, 1])
    assert (found.units, found.unmatched) == (4, ("3",))
    assert found.p == pytest.approx(known.pvalue)


def test_a_half_fraction_does_not_tell_pairs_of_interactions_apart():
    half = {point: signs for point, signs in cube("ABCD").items() if point.count("-") % 2 == 0}
    pairs = {
        a + b: interaction_weights(half, (a, "+", "-"), (b, "+", "-")) for a, b in itertools.combinations("ABCD", 2)
    }
    assert aliased(pairs)["AB"] == ("CD",)
    assert aliased(pairs)["AC"] == ("BD",)
    assert aliased({name: weights for name, weights in pairs.items() if name != "CD"})["AB"] == ()


def test_neighbours_differ_in_one_factor_alone():
    assert list(neighbours(cube("AB"), "A", "+", "-")) == [("--", "+-"), ("-+", "++")]
    half = {point: signs for point, signs in cube().items() if point.count("+") % 2}
    assert list(neighbours(half, "T", "+", "-")) == []


numbers = st.floats(-1e3, 1e3, allow_nan=False).map(lambda value: round(value, 3))


@given(st.lists(st.tuples(numbers, numbers), min_size=2, max_size=8))
@settings(max_examples=60, deadline=None)
def test_interval_and_p_agree_and_turning_the_sides_turns_the_sign(pairs):
    low, high = (list(side) for side in zip(*pairs, strict=True))
    found = runs({"a": low, "b": high}).tested({"b": 1.0, "a": -1.0})
    turned = runs({"a": high, "b": low}).tested({"b": 1.0, "a": -1.0})
    assert turned.difference == pytest.approx(-found.difference, abs=1e-9)
    assert turned.p == pytest.approx(found.p) if found.p is not None else turned.p is None
    if found.p is not None and abs(found.p - 0.05) > 1e-6:
        low_end, high_end = found.interval95
        assert (found.p < 0.05) == (low_end > 0.0 or high_end < 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("own", [0.0, 1.0])
def test_the_false_rate_of_factorial_effects_holds_where_seeds_act_in_their_own_way(own):
    """Copies among points are the worst case: a switch that moves nothing doubles every run."""
    random, points = np.random.default_rng(11), cube("AB")
    weights = {
        "A": main_weights(points, "A", "+", "-"),
        "AB": interaction_weights(points, ("A", "+", "-"), ("B", "+", "-")),
    }
    rejected = dict.fromkeys(weights, 0)
    trials, seeds = 2000, 5
    for _ in range(trials):
        of_a = own * random.normal(0, 1, (2, seeds))
        values = {p: list(map(float, of_a[int(s["A"] == "+")] + random.normal(0, 1, seeds))) for p, s in points.items()}
        found = runs(values)
        for name, weight in weights.items():
            rejected[name] += found.tested(weight).p < 0.05
    # Three standard errors of a share of 0.05 among 2,000.
    assert all(abs(count / trials - 0.05) < 0.015 for count in rejected.values()), rejected


DRAWS = {
    "normal": lambda drawn, size: drawn.normal(size=size),
    "heavy tails": lambda drawn, size: drawn.standard_t(2, size=size),
    "skewed": lambda drawn, size: drawn.exponential(size=size) ** 2,
    "whole numbers": lambda drawn, size: np.round(drawn.normal(size=size)),
}


@pytest.mark.slow
@pytest.mark.parametrize("factors", [2, 3, 4])
@pytest.mark.parametrize("seeds", [5, 8, 20])
@pytest.mark.parametrize("values", DRAWS)
def test_of_studies_without_interactions_at_most_5_percent_tell_one(values, seeds, factors):
    drawn, draw, studies = np.random.default_rng([factors, seeds, len(values)]), DRAWS[values], 2000
    levels = list(itertools.product("01", repeat=factors))
    points = {"".join(one): {f"f{place}": value for place, value in enumerate(one)} for one in levels}
    varied = [(f"f{place}", "1", "0") for place in range(factors)]
    weights = [interaction_weights(points, a, b) for a, b in itertools.combinations(varied, 2)]
    told = 0
    for _ in range(studies):
        seed = draw(drawn, seeds)
        found = QuestionValues({point: {"": seed + draw(drawn, seeds)} for point in points})
        p = [found.tested(one).p for one in weights]
        corrected = adjusted(np.array([np.nan if one is None else one for one in p]), "holm")
        told += bool((corrected < 0.05).any())
    assert told / studies <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / studies)


def crossed(rng, levels, seeds, spreads):
    """A value for each level and seed, made of both and a rest with these sds."""
    level, seed = (place.ravel() for place in np.indices((levels, seeds)))
    parts = (rng.normal(0, sd, size) for sd, size in zip(spreads, (levels, seeds, levels * seeds), strict=True))
    of_level, of_seed, rest = parts
    labels = {"f": [f"v{place}" for place in level], "s": [f"s{place}" for place in seed]}
    return of_level[level] + of_seed[seed] + rest, labels


def test_shares_of_crossed_values_are_known_well_from_many():
    values, labels = crossed(np.random.default_rng(1), 60, 60, (2.0, 1.0, 1.0))
    found = crossed_shares(values, labels)
    for source, share in {"f": 4 / 6, "s": 1 / 6, "": 1 / 6}.items():
        lower, upper = found[source]
        assert lower < share < upper
        assert upper - lower < 0.25
    assert crossed_shares(values, labels) == found, "the same every time"
    fewer = {name: own[1:] for name, own in labels.items()}
    assert crossed_shares(values[1:], fewer) is None, "a cell is missing"


def test_a_factor_that_does_nothing_may_have_no_share_and_one_that_does_all_has_nearly_all():
    values, labels = crossed(np.random.default_rng(2), 3, 10, (0.0, 1.0, 1.0))
    assert crossed_shares(values, labels)["f"][0] == 0.0
    values, labels = crossed(np.random.default_rng(2), 3, 10, (1.0, 0.0, 0.001))
    assert crossed_shares(values, labels)["f"][0] > 0.99


@pytest.mark.slow
@pytest.mark.parametrize(("levels", "seeds", "spreads"), [(3, 10, (1.0, 1.0, 1.0)), (3, 5, (3**0.5, 1.0, 0.3**0.5))])
def test_intervals_of_crossed_shares_hold_the_truth_in_95_of_100(levels, seeds, spreads):
    rng, held = np.random.default_rng(3), 0
    truth = spreads[0] ** 2 / sum(spread**2 for spread in spreads)
    for _ in range(600):
        lower, upper = crossed_shares(*crossed(rng, levels, seeds, spreads))["f"]
        held += lower <= truth <= upper
    assert 555 <= held <= 588
