"""Sentences: what a decision says in plain English."""

from __future__ import annotations

import math

from isorun.analysis.sequential.decision import PathPoint, Verdict
from isorun.analysis.sequential.projection import Projection

__all__ = ["claim", "constant", "error_statement", "still_open", "surplus", "too_few", "unused"]


def claim(verdict: Verdict, method: str, point: PathPoint, margin: float | None) -> str:
    """Why a claim is made at this look."""
    after = f"after {_runs(point)}"
    if verdict is not Verdict.EQUIVALENT:
        return f"{verdict} {after}: {_evidence(method, point)}"
    assert point.equivalence is not None
    if math.isinf(point.equivalence):
        return f"equivalent {after}: the runs of a side do not vary, and the sides differ by less than {margin:g}"
    return (
        f"equivalent {after}: the mean difference lies within ±{margin:g}, {point.equivalence:.2f} standard errors "
        f"from the nearer border where {point.equivalence_boundary:.2f} are needed"
    )


def constant(value: float) -> str:
    """Why runs that are all the same decide nothing."""
    return (
        f"every run of both sides gave {value:g}: there is no difference to judge, and more runs are unlikely to show "
        "one; state a margin to call this equivalent"
    )


def still_open(method: str, point: PathPoint, projection: Projection, *, hopeless: bool, exhausted: bool) -> str:
    """Why there is no verdict yet, or why there will be none."""
    so_far = f"undecided after {_runs(point)}: {_evidence(method, point)}"
    if hopeless:
        return f"{so_far}; stopped, because a difference is unlikely to show in the runs that are left"
    if exhausted:
        return f"{so_far}; no look is left{_more(projection, '; an even chance of a verdict would take')}"
    return f"{so_far}{_more(projection, ';')}{_chance(projection)}"


def too_few(n_a: int, n_b: int, fewest: int) -> str:
    """Why no verdict is given from so few runs."""
    return f"undecided: {n_a} runs of A and {n_b} of B are too few for a verdict, which takes at least {fewest} of each"


def surplus(extra_a: int, extra_b: int) -> str:
    """A warning that some runs wait for the other side."""
    return (
        f"{extra_a} runs of A and {extra_b} of B are not looked at yet, because looks compare as many runs of A as the "
        "schedule says with as many of B; make more of the other side, or declare other looks beforehand"
    )


def unused(extra_a: int, extra_b: int) -> str:
    """A warning that there are more runs than were planned."""
    return (
        f"{extra_a} runs of A and {extra_b} of B lie beyond the last planned look and are not used: a maximum that "
        "moves after the fact would not hold the error rate"
    )


def error_statement(method: str, error_rate: float, alpha: float, looks: int) -> str:
    """How often this rule claims a difference between equals."""
    return {
        "sequential": f"claims a difference between equals in at most {alpha:.1%} of comparisons over all its looks, "
        f"for any metric (simulated without ties: {error_rate:.2%}; with ties fewer)",
        "e-process": f"claims a difference between equals in at most {alpha:.1%} of comparisons however often one "
        "looks, for runs that are normal with equal spread",
        "naive": f"claims a difference between equals in {error_rate:.1%} of comparisons (simulated for these {looks} "
        f"looks), although every single test uses {alpha:.1%}",
        "fixed": f"claims a difference between equals in at most {alpha:.1%} of comparisons, if the number of runs was "
        "fixed before they were made",
    }[method]


def _runs(point: PathPoint) -> str:
    if point.n_a == point.n_b:
        return f"{point.n_a} runs a side"
    return f"{point.n_a} runs of A and {point.n_b} of B"


def _evidence(method: str, point: PathPoint) -> str:
    assert point.statistic is not None
    if method == "e-process":
        needed = "no t could be enough yet" if point.upper is None else f"±{point.upper:.2f} is needed"
        return f"t = {point.statistic:.2f} where {needed}"
    pairs = point.n_a * point.n_b
    wins = point.statistic + pairs / 2
    ahead = f"A is better in {_count(wins)} of {_count(pairs)} pairs of runs"
    if point.upper is None:
        return f"{ahead}, where even all of them would make no claim"
    low, high = pairs / 2 - point.upper, pairs / 2 + point.upper
    return f"{ahead}, where {_count(low)} or fewer, or {_count(high)} or more, make a claim"


def _count(number: float) -> str:
    """A whole or half number with all its digits."""
    return f"{number:,.12g}"


def _more(projection: Projection, lead: str) -> str:
    if projection.more_runs is None:
        return ""
    runs = "run" if projection.more_runs == 1 else "runs"
    return f"{lead} about {projection.more_runs} more {runs} a side"


def _chance(projection: Projection) -> str:
    if projection.chance is None:
        return ""
    return f" (a verdict within {projection.horizon} runs a side is {projection.chance:.0%} likely)"
