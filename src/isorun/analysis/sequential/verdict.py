"""The verdict of a comparison while runs come in, and the sentences that tell it.

Sentences: what a decision says in plain English.

The verdict: is A better, is B better, are they equivalent, or is it undecided, and what to do next.

`decide` holds its error rate: by default it is a sequential rank test that may be consulted after every run, of the
question whether a new run of A beats a new run of B more often than not. It is a pure function of the runs in the order
in which they were made, so that the same runs always get the same answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from isorun.analysis.evidence import Condition, some
from isorun.analysis.pairwise import levene
from isorun.analysis.pairwise.effects import PairingEffect, pairing_effect
from isorun.analysis.samples import FloatArray, Interval, finite_sample, is_constant, oriented, snapped
from isorun.analysis.sequential import (
    DEFAULT_MAX_RUNS,
    FEWEST_RUNS,
    METHODS,
    Decision,
    Looks,
    NextAction,
    PathPoint,
    Plan,
    Verdict,
    looks_within,
    next_action,
)
from isorun.analysis.sequential.rules import Rule, planned_rule
from isorun.analysis.sequential.trace import DecisionTrace, Estimate, estimate_under, observed_path, planned_path, trace
from isorun.errors import InputError

if TYPE_CHECKING:
    from isorun.analysis.sequential.projection import Projection

__all__ = [
    "METHODS",
    "Decision",
    "NextAction",
    "PathPoint",
    "PlanOptions",
    "Verdict",
    "decide",
    "decide_by",
    "next_action",
    "plan_of",
]

_SPOKEN_EFFECTS = {0.0: "if there is no difference", 0.5: "for half a standard deviation", 1.0: "for one"}


def _why_claimed(verdict: Verdict, rule: Rule, point: PathPoint, margin: float | None) -> str:
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


def _why_constant(value: float, *, paired: bool) -> str:
    """Why runs that are all the same decide nothing."""
    same = "both runs of every pair gave the same value" if paired else f"every run of both sides gave {value:g}"
    return (
        f"{same}: there is no difference to judge, and more runs are unlikely to show one; state a margin to call this "
        "equivalent"
    )


def _why_open(rule: Rule, point: PathPoint, projection: Projection, *, hopeless: bool, exhausted: bool) -> str:
    """Why there is no verdict yet, or why there will be none."""
    so_far = f"undecided after {_runs(rule, point)}: {_evidence(rule, point)}"
    if hopeless:
        return f"{so_far}; stopped, because a difference is unlikely to show in the runs that are left"
    if exhausted:
        return f"{so_far}{_ended(rule, projection)}"
    return f"{so_far}{_more(rule, projection)}{_chance(rule, projection)}"


def _why_too_few(n_a: int, n_b: int, fewest: int) -> str:
    """Why no verdict is given from so few runs."""
    made = f"{some(n_a, 'run')} of A and {n_b} of B"
    return f"undecided: {made} are too few for a verdict, which takes at least {fewest} of each"


def _surplus(extra_a: int, extra_b: int) -> str:
    """A warning that some runs wait for the other side."""
    return (
        f"{some(extra_a, 'run')} of A and {extra_b} of B are not looked at yet, because looks compare as many "
        "runs of A as the schedule says with as many of B"
    )


def _unused(extra_a: int, extra_b: int) -> str:
    """A warning that there are more runs than were planned."""
    return (
        f"{some(extra_a, 'run')} of A and {extra_b} of B lie beyond the last planned look and are not used: "
        "a maximum that moves after the fact would not hold the error rate"
    )


def _error_statement(rule: Rule, alpha: float) -> str:
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


def _estimate_of(rule: Rule) -> str:
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
        return f"{some(point.n_a, 'run')} a side"
    return f"{some(point.n_a, 'run')} of A and {point.n_b} of B"


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


_PROJECTION_SEED = 7_919


class PlanOptions(TypedDict, total=False):
    """What `decide` takes besides runs and direction; see there."""

    max_runs: int | Sequence[int] | None
    stages: Sequence[int]
    margin: float | None
    min_runs: int
    spending: str
    alpha: float
    futility: bool
    method: str | None
    looks: Looks
    test: str | None
    paired: bool


def decide(a: ArrayLike, b: ArrayLike, *, direction: str, **options: Unpack[PlanOptions]) -> Decision:
    """Compare the runs of A with those of B, given in the order in which they were made (or planned, as by seed).

    direction: "higher" or "lower" is better. margin: the largest difference that does not matter, in units of the
    metric; with it the verdict may be "equivalent". max_runs: the most runs a side, 30 if not said; 0 for no maximum.
    stages: the maxima to which the plan may be taken if need be, max_runs one of them; max_runs=(30, 60, 120) declares
    them and begins with the first. method: "sequential" (default), "e-process" (default without a maximum), "naive" (a
    plain U test at every look, with its true error rate), "fixed" (one test of all runs). test: "brunner-munzel"
    (default), "mann-whitney" (exact for sides of the same law), "signed-rank" (of pairs). paired: the i-th runs belong
    together. looks: a look every so many runs a side, or the list of looks, as runs a side or as pairs (runs of A,
    runs of B); to be declared before the runs are made. futility: give up a hopeless comparison early; not binding, so
    going on is allowed. min_runs: before the first look, 5 if not said. alpha: the error rate, 0.05 if not said, and
    spending: how it is spread over the looks.
    """
    return decide_by(plan_of(**options), a, b, direction=direction)


def plan_of(**options: Unpack[PlanOptions]) -> Plan:
    """The plan that the options of `decide` declare."""
    most = options.get("max_runs", DEFAULT_MAX_RUNS)
    stages = options.get("stages", ())
    if most is not None and not isinstance(most, int):
        if not most:
            raise InputError("a plan with stages needs one", found="max_runs is an empty list", allowed="30, [30, 60]")
        stages, most = most, min(most)
    return Plan(**{**options, "max_runs": most or None, "stages": tuple(stages)})  # type: ignore[arg-type]


def decide_by(plan: Plan, a: ArrayLike, b: ArrayLike, *, direction: str) -> Decision:
    """The decision under a plan."""
    sides = _sides(plan, finite_sample(a, "A"), finite_sample(b, "B"), direction)
    rule = planned_rule(plan, sides.a, sides.b)
    seen = looks_within(rule.schedule, len(sides.a), len(sides.b))
    if min(len(sides.a), len(sides.b)) < FEWEST_RUNS or not seen:
        return _too_few(rule, plan, sides)
    return _judged(rule, plan, sides, trace(rule, sides.a[:, None], sides.b[:, None], seen))


@dataclass(frozen=True, slots=True)
class _Sides:
    """Both sides, turned so that higher is better; of pairs, a holds the differences and b zeros."""

    a: FloatArray
    b: FloatArray
    direction: str
    pairing: PairingEffect | None = None

    @property
    def constant(self) -> bool:
        """Whether all runs of both sides gave the same value."""
        return is_constant(np.concatenate([self.a, self.b]))

    @property
    def example(self) -> float:
        """A value as it was given."""
        return float(oriented(self.a[:1], self.direction)[0])

    def as_given(self, estimate: Estimate) -> tuple[float, Interval | None]:
        """The estimate of A minus B in the metric's own direction."""
        if self.direction == "higher" or estimate.ci95 is None:
            return float(oriented(np.array([estimate.difference]), self.direction)[0]), estimate.ci95
        low, high = estimate.ci95
        return -estimate.difference, (-high, -low)


def _sides(plan: Plan, a: FloatArray, b: FloatArray, direction: str) -> _Sides:
    first, second = oriented(a, direction), oriented(b, direction)
    effect = None
    if plan.paired:
        if first.size != second.size:
            raise InputError("paired runs must be equally many", found=f"{first.size} and {second.size}")
        effect = pairing_effect(first, second)
        largest = float(max(np.abs(first).max(), np.abs(second).max()))
        first, second = snapped(first - second, largest), np.zeros(first.size)
    if plan.effective_method == "fixed":  # so that the order of the runs does not even show in the last digit of a sum
        first, second = np.sort(first), np.sort(second)
    return _Sides(first, second, direction, effect)


def _judged(rule: Rule, plan: Plan, sides: _Sides, traced: DecisionTrace) -> Decision:
    path = observed_path(rule, traced, sides.a, sides.b)
    verdict, at = _first_claim(traced)
    if verdict is not Verdict.UNDECIDED:
        why = _why_claimed(verdict, rule, path[at], plan.margin)
        return _decision(rule, plan, sides, verdict, why, path=path, at=at, stop=True)
    if sides.constant:
        why = _why_constant(sides.example, paired=plan.paired)
        return _decision(rule, plan, sides, verdict, why, path=path, at=at, stop=True)
    exhausted = len(path) == len(rule.schedule) and not rule.open_ended
    hopeless = bool(traced.hopeless[-1, 0]) and not exhausted
    from isorun.analysis.sequential.projection import project

    projection = project(rule, sides.a, sides.b, np.random.default_rng(_PROJECTION_SEED))
    why = _why_open(rule, path[-1], projection, hopeless=hopeless, exhausted=exhausted)
    stop = hopeless or exhausted
    return _decision(rule, plan, sides, verdict, why, path=path, at=at, stop=stop, projection=projection)


def _first_claim(traced: DecisionTrace) -> tuple[Verdict, int]:
    """The first claim on the path. Hopeless looks before it do not matter: the futility stop is not binding."""
    claims = (traced.favours[:, 0] != 0) | traced.equivalent[:, 0]
    if not claims.any():
        return Verdict.UNDECIDED, len(claims) - 1
    at = int(claims.argmax())
    if traced.equivalent[at, 0]:
        return Verdict.EQUIVALENT, at
    return (Verdict.A_BETTER if traced.favours[at, 0] > 0 else Verdict.B_BETTER), at


def _too_few(rule: Rule, plan: Plan, sides: _Sides) -> Decision:
    why = _why_too_few(len(sides.a), len(sides.b), min(rule.schedule[0]))
    warning = Condition("too-few", why, "make more runs; isorun power says how many are needed")
    return _decision(rule, plan, sides, Verdict.UNDECIDED, why, stop=False, conditions=(warning,))


def _decision(
    rule: Rule,
    plan: Plan,
    sides: _Sides,
    verdict: Verdict,
    why: str,
    *,
    path: tuple[PathPoint, ...] = (),
    at: int | None = None,
    stop: bool,
    projection: Projection | None = None,
    conditions: tuple[Condition, ...] = (),
) -> Decision:
    estimate, interval = sides.as_given(estimate_under(rule, sides.a, sides.b, at))
    return Decision(
        verdict=verdict,
        stop=stop,
        why=why,
        method=rule.method,
        direction=sides.direction,
        alpha=plan.alpha,
        margin=plan.margin,
        n_a=len(sides.a),
        n_b=len(sides.b),
        about_more_runs=projection.more_runs if projection else None,
        chance=projection.chance if projection else None,
        error_rate=rule.error_rate,
        error_statement=_error_statement(rule, plan.alpha),
        path=path + planned_path(rule, len(path)),
        conditions=(*(conditions or _unlooked(rule, len(path), sides)), *_conditions(rule, sides)),
        test=rule.test,
        paired=plan.paired,
        estimate=estimate,
        estimate_of=_estimate_of(rule),
        ci95=interval,
        chances=projection.chances if projection else (),
        pairing=sides.pairing,
    )


def _conditions(rule: Rule, sides: _Sides) -> tuple[Condition, ...]:
    """What a reader must know about these runs before trusting this test."""
    if sides.pairing is not None:
        return sides.pairing.conditions()
    p = levene([sides.a, sides.b]).p if rule.test == "mann-whitney" else None
    if p is None or p >= 0.05:
        return ()
    message = (
        f"the sides spread differently (Levene p = {p:.3g}), and the Mann-Whitney test also claims a difference where "
        "only the spreads differ"
    )
    return (Condition("spread-differs", message, "use the test brunner-munzel, which lets spreads differ"),)


def _unlooked(rule: Rule, seen: int, sides: _Sides) -> tuple[Condition, ...]:
    """A warning when some runs are not part of the last look."""
    last = rule.schedule[seen - 1]
    extra = len(sides.a) - last.n_a, len(sides.b) - last.n_b
    if not any(extra):
        return ()
    if seen < len(rule.schedule):
        return (
            Condition(
                "unlooked",
                _surplus(*extra),
                "make more runs of the other side, or declare other looks beforehand",
            ),
        )
    return (Condition("beyond-the-plan", _unused(*extra), "declare stages beforehand in the next comparison"),)
