"""Runs that left no result: no claim rests on those alone that left one."""

import numpy as np
import pytest

import isorun

NAN = float("nan")


def compared(base, new, **options):
    rows = [("base", place, value) for place, value in enumerate(base)]
    rows += [("new", place, value) for place, value in enumerate(new)]
    names, seeds, values = zip(*rows, strict=True)
    table = {"model": list(names), "seed": list(seeds), "acc": list(values)}
    given = {"direction": "higher", "drop_missing": True} | options
    return isorun.compare(table, value="acc", by="model", a="base", b="new", **given)


def runs(count, mean, seed):
    return np.random.default_rng(seed).normal(mean, 0.01, count).tolist()


def code_of_void(result):
    return [one.code for one in result.conditions if one.voids]


@pytest.mark.parametrize("options", [{}, {"pair": "seed"}, {"test": "mann-whitney"}])
def test_a_training_that_diverges_in_half_of_its_runs_is_not_called_better_by_the_others(options):
    base, new = runs(20, 0.90, 1), [*runs(10, 0.93, 2), *[NAN] * 10]
    result = compared(base, new, **options)
    assert str(result.verdict) == "undecided"
    assert code_of_void(result) == ["survivors-only"]
    assert "10 of 20 seeds of new left no result" in result.decision.why
    mirrored = compared([-value for value in base], [-value for value in new], direction="lower", **options)
    assert code_of_void(mirrored) == ["survivors-only"]


def test_a_claim_that_holds_with_the_lost_runs_as_the_worst_is_made():
    assert str(compared(runs(20, 0.90, 1), [*runs(19, 0.95, 2), NAN]).verdict) == "B better"


def test_runs_that_the_loser_lost_take_nothing_from_the_winner():
    assert str(compared([*runs(10, 0.90, 1), *[NAN] * 10], runs(20, 0.93, 2)).verdict) == "B better"


def test_a_seed_of_which_one_repeat_diverged_counts_as_lost():
    rows = [("base", seed, 0.90 + seed / 1000) for seed in range(8) for _ in range(2)]
    rows += [
        ("new", seed, NAN if repeat and seed < 6 else 0.95 + seed / 1000) for seed in range(8) for repeat in (0, 1)
    ]
    names, seeds, values = (list(column) for column in zip(*rows, strict=True))
    table = {"model": names, "seed": seeds, "acc": values}
    result = isorun.compare(table, value="acc", by="model", direction="higher", drop_missing=True)
    assert code_of_void(result) == ["survivors-only"]
    assert "6 of 8 seeds of new left no result" in result.decision.why


def test_means_of_survivors_are_not_called_equivalent():
    base, new = runs(20, 0.90, 1), runs(20, 0.90, 2)
    assert str(compared(base, new, margin=0.05).verdict) == "equivalent"
    result = compared(base, [*new[:-1], NAN], margin=0.05)
    assert (str(result.verdict), code_of_void(result)) == ("undecided", ["survivors-only"])


def test_where_diverging_evens_out_what_the_others_gain_false_claims_are_few():
    """Half of the new runs win every time and half diverge: a new run wins as often as not."""
    rng = np.random.default_rng(5)
    claims = 0
    for _ in range(300):
        new = rng.normal(0.95, 0.005, 16)
        new[rng.random(16) < 0.5] = NAN
        result = compared(rng.normal(0.90, 0.005, 16).tolist(), new.tolist())
        claims += str(result.verdict) == "B better"
    assert claims <= 0.025 * 300 + 8  # a one-sided claim, and its error in so many comparisons
