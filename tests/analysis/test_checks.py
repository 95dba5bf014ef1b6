"""A change against its baseline: verdicts, what counts, and both error rates by simulation."""

import numpy as np
import pytest
from scipy import stats

from isorun.analysis.checks import Check, CheckedSide, CheckVerdict, GroupEvidence, Margin, judge_changes
from isorun.analysis.evidence import Condition
from isorun.analysis.pairwise import brunner_munzel
from isorun.errors import InputError


def side(values, **changes):
    values = np.asarray(values, dtype=np.float64)
    return CheckedSide(values, tuple(str(place) for place in range(values.size)), values.size, **changes)


def judged(new, baseline, margin=0.0, *, direction="higher", paired=False, alpha=0.05, conditions=()):
    item = GroupEvidence("net", side_of(new), side_of(baseline), paired, conditions)
    (group,) = judge_changes([item], direction=direction, margin=Margin(margin, margin), alpha=alpha)
    return group


def side_of(values):
    return values if isinstance(values, CheckedSide) else side(values)


BASE = [0.90, 0.91, 0.92, 0.93, 0.94, 0.95, 0.96, 0.97]
LOW = [value - 0.2 for value in BASE]


def test_a_clear_drop_is_worse_and_its_p_is_half_of_brunner_and_munzels():
    group = judged(LOW, BASE, 0.05)
    expected = brunner_munzel(np.add(LOW, 0.05), BASE)
    assert group.verdict is CheckVerdict.WORSE
    assert group.p_worse == pytest.approx(expected.p / 2)
    assert group.p_not_worse == pytest.approx(1 - expected.p / 2)
    assert group.difference == pytest.approx(-0.2)


def test_a_drop_within_the_margin_is_not_worse_and_without_a_margin_it_is():
    slight = [value - 0.02 for value in BASE]
    assert judged(slight, BASE, 0.2).verdict is CheckVerdict.NOT_WORSE
    assert judged(slight, BASE, 0.2, direction="lower").verdict is CheckVerdict.NOT_WORSE
    shifted = [value - 0.06 for value in BASE]
    assert judged(shifted, BASE).verdict is CheckVerdict.WORSE
    assert judged(shifted, BASE, 0.2).verdict is CheckVerdict.NOT_WORSE


def test_a_gain_is_not_worse_in_either_direction():
    assert judged(BASE, LOW).verdict is CheckVerdict.NOT_WORSE
    assert judged(LOW, BASE, direction="lower").verdict is CheckVerdict.NOT_WORSE
    assert judged(BASE, LOW, direction="lower").verdict is CheckVerdict.WORSE


def test_what_is_not_shown_is_undecided_and_says_how_many_more_runs():
    group = judged([value - 0.01 for value in BASE], BASE, 0.01)
    assert group.verdict is CheckVerdict.UNDECIDED
    assert group.more_runs is not None
    assert f"about {group.more_runs} more runs a side" in group.why


def test_too_few_runs_are_undecided_and_one_draw_is_not_judged():
    few = judged(BASE[:4], LOW)
    assert (few.verdict, few.more_runs) == (CheckVerdict.UNDECIDED, 1)
    assert judged(BASE[:1], LOW).verdict is CheckVerdict.NOT_JUDGED


def test_pairs_of_the_same_seeds_are_judged_by_their_differences():
    wide = np.array([0.1, 0.3, 0.5, 0.7, 0.9, 1.1])
    new = wide - np.array([0.01, 0.02, 0.03, 0.015, 0.025, 0.035])
    assert judged(new, wide).verdict is CheckVerdict.UNDECIDED
    group = judged(new, wide, paired=True)
    assert group.verdict is CheckVerdict.WORSE
    assert group.p_worse == pytest.approx(1 / 64)
    low, high = group.interval
    expected = stats.ttest_rel(new, wide).confidence_interval(0.9)
    assert (low, high) == pytest.approx((expected.low, expected.high))


def test_a_run_without_a_finite_value_counts_as_the_worst_and_is_in_no_mean():
    diverged = [BASE[1], *[np.nan] * 7]
    group = judged(diverged, BASE, 0.1)
    assert group.verdict is CheckVerdict.WORSE
    assert group.new.mean == pytest.approx(0.91)
    assert [condition.code for condition in group.conditions] == ["diverged"]
    assert judged([np.nan] * 8, BASE, 0.1).verdict is CheckVerdict.WORSE
    assert judged([np.inf] * 8, BASE, 0.1, direction="lower").verdict is CheckVerdict.WORSE


def test_failed_runs_keep_a_check_from_passing_and_not_from_failing():
    assert judged(side(BASE, failed=2), LOW).verdict is CheckVerdict.UNDECIDED
    assert judged(side(LOW, failed=2), BASE).verdict is CheckVerdict.WORSE


def test_the_same_bits_of_every_seed_are_unchanged_however_few_there_are():
    weights = {"1": frozenset({"ab"})}
    same = judged(side([0.9], weights=weights), side([0.9], weights=weights))
    assert (same.verdict, same.same_bits.same) == (CheckVerdict.UNCHANGED, 1)
    other = judged(side([0.9], weights=weights), side([0.9], weights={"1": frozenset({"cd"})}))
    assert other.verdict is CheckVerdict.NOT_JUDGED
    torn = {"1": frozenset({"ab", "cd"})}
    assert judged(side([0.9], weights=torn), side([0.9], weights=torn)).verdict is CheckVerdict.NOT_JUDGED
    failed = judged(side([0.9], weights=weights, failed=1), side([0.9], weights=weights))
    assert failed.verdict is CheckVerdict.UNDECIDED


def test_a_condition_that_voids_the_error_rate_withholds_the_claim():
    void = Condition("seeds-missing", "who belongs together is unknown", "fill the column", voids=True)
    assert judged(LOW, BASE, conditions=(void,)).verdict is CheckVerdict.UNDECIDED


def test_sums_that_differ_only_by_rounding_tie():
    group = judged([0.85] * 8, [0.9] * 8, 0.05)  # 0.85 + 0.05 is not 0.9 as a double
    assert group.verdict is CheckVerdict.UNDECIDED


def test_worse_is_corrected_over_the_groups_and_not_worse_has_to_hold_in_each():
    base = np.arange(8.0)
    barely = base - 2.6
    (alone,) = judge_changes([GroupEvidence("a", side(barely), side(base))], direction="higher", margin=Margin(0, 0))
    many = [GroupEvidence(str(n), side(barely if n == 0 else base + 20), side(base)) for n in range(5)]
    first, *others = judge_changes(many, direction="higher", margin=Margin(0, 0))
    assert alone.p_worse < 0.05 < 5 * alone.p_worse
    assert first.p_worse == pytest.approx(min(1.0, 5 * alone.p_worse))
    assert all(group.verdict is CheckVerdict.NOT_WORSE for group in others)


def check_of(*verdicts, failed=0):
    groups = tuple(_group(verdict, failed) for verdict in verdicts)
    return Check("s", "main", "acc", "higher", "", Margin(0, 0), 0.05, groups)


def _group(verdict, failed):
    from dataclasses import replace

    return replace(judged(side(BASE, failed=failed), BASE), verdict=verdict)


@pytest.mark.parametrize(
    ("verdicts", "overall", "code", "strict"),
    [
        (("worse", "not worse"), "worse", 3, 3),
        (("not worse", "unchanged"), "not worse", 0, 0),
        (("unchanged", "unchanged"), "unchanged", 0, 0),
        (("not worse", "undecided"), "undecided", 0, 3),
        (("not worse", "not judged"), "not worse", 0, 0),
        (("not judged",), "undecided", 0, 3),
    ],
)
def test_the_verdict_on_all_groups_and_its_exit_code(verdicts, overall, code, strict):
    result = check_of(*map(CheckVerdict, verdicts))
    assert (str(result.verdict), result.exit_code(), result.exit_code(strict=True)) == (overall, code, strict)


def test_failed_runs_exit_with_1_unless_it_is_worse():
    assert check_of(CheckVerdict.UNDECIDED, failed=1).exit_code() == 1
    assert check_of(CheckVerdict.WORSE, failed=1).exit_code() == 3


@pytest.mark.parametrize(("margin", "alpha"), [(-1.0, 0.05), (float("nan"), 0.05), (0.1, 0.0), (0.1, 0.5)])
def test_margins_and_error_rates_that_mean_nothing_are_refused(margin, alpha):
    with pytest.raises(InputError):
        judged(BASE, BASE, margin, alpha=alpha)


def test_a_margin_as_large_as_the_value_itself_is_told():
    assert [one.code for one in judged(BASE, BASE, 0.5).conditions] == ["margin-wide"]


# Both claims at the border: a change that is worse by exactly the margin may be called worse, or not worse, in 5 %.


LAWS = {
    "normal": lambda rng, size: rng.standard_normal(size),
    "skewed": lambda rng, size: rng.exponential(size=size),
    "heavy": lambda rng, size: rng.standard_t(3, size=size),
    "rounded": lambda rng, size: np.round(rng.standard_normal(size), 1),
}


def claims(law, new, baseline, *, paired=False, groups=1, spread=1.0, repetitions=1000):
    """How often a check of changes that are all worse by the margin says worse anywhere, and not worse everywhere."""
    rng = np.random.default_rng(20261117)
    draw, margin = LAWS[law], Margin(1.0, 1.0)
    worse = fine = 0
    for _ in range(repetitions):
        evidence = []
        for number in range(groups):
            old = draw(rng, baseline)
            ahead = old * 0.5 if paired else 0.0
            made = spread * draw(rng, new) * (0.8 if paired else 1.0) + ahead - 1.0
            if paired:
                old = 0.8 * draw(rng, baseline) + ahead
            evidence.append(GroupEvidence(str(number), side(made), side(old), paired))
        verdicts = [group.verdict for group in judge_changes(evidence, direction="higher", margin=margin)]
        worse += CheckVerdict.WORSE in verdicts
        fine += all(verdict is CheckVerdict.NOT_WORSE for verdict in verdicts)
    return worse / repetitions, fine / repetitions


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "new", "baseline", "more"),
    [
        ("normal", 5, 5, {}),
        ("normal", 8, 30, {}),
        ("normal", 5, 20, {"spread": 4.0}),
        ("skewed", 8, 8, {}),
        ("skewed", 6, 20, {}),
        ("heavy", 8, 8, {}),
        ("rounded", 10, 10, {}),
        ("normal", 8, 8, {"groups": 4}),
        ("normal", 8, 8, {"paired": True}),
        ("rounded", 10, 10, {"paired": True}),
    ],
)
def test_both_claims_hold_their_error_rate_where_the_drop_is_the_margin_itself(law, new, baseline, more):
    worse, fine = claims(law, new, baseline, **more)
    limit = stats.binom.ppf(0.999, 1000, 0.05) / 1000
    assert worse <= limit
    assert fine <= limit
