"""Sentences: what a decision says in plain English."""

from __future__ import annotations

import math

from isorun.analysis.sequential.decision import PathPoint, Verdict
from isorun.analysis.sequential.projection import Projection
from isorun.analysis.sequential.rules import Rule

__all__ = ["claim", "constant", "error_statement", "estimate_of", "still_open", "surplus", "too_few", "unused"]

_SPOKEN_EFFECTS = {0.0: "if there is no difference", 0.5: "for half a standard deviation", 1.0: "for one"}


def claim(verdict: Verdict, rule: Rule, point: PathPoint, margin: float | None) -> str:
    """Why a claim is made at this look."""
    after = f"after {_runs(rule, point)}"
    if verdict is not Verdict.EQUIVALENT:
        return f"{verdict} {after}: {_evidence(rule, point)}"
    assert point.equivalence is not None
    if math.isinf(point.equivalence):
        varies = "their differences do not vary" if rule.paired else "the runs of a side do not vary"
        return f"equivalent {after}: {varies}, and the sides differ by less than {margin:g}"
    return (
        f"equivalent {after}: the mean difference lies within ±{margin:g}, {point.equivalence:.2f} standard errors "
        f"from the nearer border where {point.equivalence_boundary:.2f} are needed (t tests, for nearly normal runs)"
    )


def constant(value: float, *, paired: bool) -> str:
    """Why runs that are all the same decide nothing."""
    same = "both runs of every pair gave the same value" if paired else f"every run of both sides gave {value:g}"
    return (
        f"{same}: there is no difference to judge, and more runs are unlikely to show one; state a margin to call this "
        "equivalent"
    )


def still_open(rule: Rule, point: PathPoint, projection: Projection, *, hopeless: bool, exhausted: bool) -> str:
    """Why there is no verdict yet, or why there will be none."""
    so_far = f"undecided after {_runs(rule, point)}: {_evidence(rule, point)}"
    if hopeless:
        return f"{so_far}; stopped, because a difference is unlikely to show in the runs that are left"
    if exhausted:
        return f"{so_far}{_ended(rule, projection)}"
    return f"{so_far}{_more(rule, projection)}{_chance(rule, projection)}"


def too_few(n_a: int, n_b: int, fewest: int) -> str:
    """Why no verdict is given from so few runs."""
    return f"undecided: {n_a} runs of A and {n_b} of B are too few for a verdict, which takes at least {fewest} of each"


def surplus(extra_a: int, extra_b: int) -> str:
    """A warning that some runs wait for the other side."""
    return (
        f"{extra_a} runs of A and {extra_b} of B are not looked at yet, because looks compare as many runs of A as the "
        "schedule says with as many of B"
    )


def unused(extra_a: int, extra_b: int) -> str:
    """A warning that there are more runs than were planned."""
    return (
        f"{extra_a} runs of A and {extra_b} of B lie beyond the last planned look and are not used: a maximum that "
        "moves after the fact would not hold the error rate"
    )


def error_statement(rule: Rule, alpha: float) -> str:
    """How often this rule claims a difference where there is none, and what that means."""
    if rule.method == "naive":
        return (
            f"claims a difference between equals in {rule.error_rate:.1%} of comparisons (simulated for these "
            f"{len(rule.schedule)} looks), although every single test uses {alpha:.1%}"
        )
    when = {
        "sequential": "over all its looks",
        "e-process": "however often one looks",
        "fixed": "if the number of runs was fixed before they were made",
    }[rule.method]
    return f"claims a difference in at most {alpha:.1%} of comparisons {when}, where {_null(rule)}{_simulated(rule)}"


def estimate_of(rule: Rule) -> str:
    """What is estimated."""
    what = "mean of the paired differences, A minus B" if rule.paired else "mean of A minus mean of B"
    looked = rule.method in {"sequential", "naive"}
    return f"{what}, corrected for stopping when it looked good" if looked else what


def _null(rule: Rule) -> str:
    """What it means for a test that there is nothing to find."""
    if rule.test == "student-t":
        return "differences are normal around 0" if rule.paired else "runs are normal with equal mean and spread"
    return {
        "brunner-munzel": "a new run of either side beats a new run of the other as often as not, with spreads of up "
        "to 1:10",
        "mann-whitney": "the runs of both sides have the same law (where only their spreads differ it claims more)",
        "signed-rank": "the differences of pairs are symmetric about 0",
    }[rule.test]


def _simulated(rule: Rule) -> str:
    if rule.method != "sequential":
        return ""
    worst = "for normal runs at the worst ratio" if rule.test == "brunner-munzel" else "without ties"
    stages = " by the end of this stage" if rule.stages else ""
    return f" (simulated {worst}: {rule.error_rate:.2%}{stages})"


def _runs(rule: Rule, point: PathPoint) -> str:
    if rule.paired:
        return f"{point.n_a} pairs of runs"
    if point.n_a == point.n_b:
        return f"{point.n_a} runs a side"
    return f"{point.n_a} runs of A and {point.n_b} of B"


def _evidence(rule: Rule, point: PathPoint) -> str:
    assert point.statistic is not None
    if rule.method == "e-process":
        needed = "no t could be enough yet" if point.upper is None else f"±{point.upper:.2f} is needed"
        return f"t = {point.statistic:.2f} where {needed}"
    assert point.wins is not None
    pairs = point.n_a if rule.paired else point.n_a * point.n_b
    of_pairs = "pairs" if rule.paired else "pairs of runs"
    ahead = f"A is better in {_count(point.wins * pairs)} of {_count(pairs)} {of_pairs}"
    if point.upper is None:
        return f"{ahead}, where even all of them would make no claim"
    if rule.test != "mann-whitney":
        return f"{ahead}, a score of {point.statistic:.2f} where ±{point.upper:.2f} makes a claim"
    low, high = pairs / 2 - point.upper, pairs / 2 + point.upper
    return f"{ahead}, where {_count(low)} or fewer, or {_count(high)} or more, make a claim"


def _count(number: float) -> str:
    """A whole or half number with all its digits."""
    return f"{round(2 * number) / 2:,.12g}"


def _ended(rule: Rule, projection: Projection) -> str:
    """What is left to do when no look is."""
    if rule.method == "fixed":
        more = _more(rule, projection, "an even chance of a verdict would take")
        return f"{more}, in a plan that is set beforehand" if more else ""
    if rule.stages:
        return (
            f"; this stage ends here, and going on to {rule.stages[0]} runs a side keeps the error rate, because it "
            "was declared beforehand"
        )
    return (
        "; no look is left and the whole error rate is spent, so that more runs of this comparison cannot lead to a "
        "claim at that rate; it takes a new comparison of new runs, with a larger maximum or with stages from the start"
    )


def _more(rule: Rule, projection: Projection, lead: str = "") -> str:
    if projection.more_runs is None:
        return ""
    unit = "pair" if rule.paired else "run"
    many = unit if projection.more_runs == 1 else f"{unit}s"
    about = f"about {projection.more_runs} more {many}{'' if rule.paired else ' a side'}"
    return f"; {lead} {about}" if lead else f"; {about}"


def _chance(rule: Rule, projection: Projection) -> str:
    if projection.chance is None:
        return ""
    parts = [
        f"{chance:.0%} {_SPOKEN_EFFECTS[effect]}" for effect, chance in projection.chances if effect in _SPOKEN_EFFECTS
    ]
    within = f"{projection.horizon} {'pairs' if rule.paired else 'runs a side'}"
    return f" (a verdict within {within} is {projection.chance:.0%} likely: {', '.join(parts)})"
