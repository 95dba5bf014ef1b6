"""The verdict: is A better, is B better, are they equivalent, or is it undecided, and what to do next.

`decide` holds its error rate: by default it is a sequential rank test that may be consulted after every run, of the
question whether a new run of A beats a new run of B more often than not. It is a pure function of the runs in the order
in which they were made, so that the same runs always get the same answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isorun.analysis.evidence.condition import Condition
from isorun.analysis.inputs.ranks import snapped
from isorun.analysis.inputs.samples import FloatArray, Interval, finite_sample, is_constant, oriented
from isorun.analysis.pairwise.pairing_effect import PairingEffect, pairing_effect
from isorun.analysis.pairwise.variance_tests import levene
from isorun.analysis.sequential import sentences
from isorun.analysis.sequential.decision import Decision, NextAction, PathPoint, Verdict, next_action
from isorun.analysis.sequential.interval import Estimate, estimate_under
from isorun.analysis.sequential.looks import FEWEST_RUNS, looks_within
from isorun.analysis.sequential.observed import observed_path, planned_path
from isorun.analysis.sequential.plan import METHODS, Looks, Plan, planned_rule
from isorun.analysis.sequential.projection import Projection, project
from isorun.analysis.sequential.rules import Rule
from isorun.analysis.sequential.trace import Trace, trace
from isorun.errors import InputError

__all__ = ["METHODS", "Decision", "NextAction", "PathPoint", "Verdict", "decide", "decide_by", "next_action", "plan_of"]

_PROJECTION_SEED = 7_919
_NOTHING = Projection(None, None, (), 0)


def decide(
    a: ArrayLike,
    b: ArrayLike,
    *,
    direction: str,
    margin: float | None = None,
    max_runs: int | Sequence[int] | None = 30,
    stages: Sequence[int] = (),
    min_runs: int = FEWEST_RUNS,
    spending: str = "power-1.5",
    alpha: float = 0.05,
    futility: bool = True,
    method: str | None = None,
    looks: Looks = 1,
    test: str | None = None,
    paired: bool = False,
) -> Decision:
    """Compare the runs of A with those of B, given in the order in which they were made (or planned, as by seed).

    direction: "higher" or "lower" is better. margin: the largest difference that does not matter, in units of the
    metric; with it the verdict may be "equivalent". max_runs: the most runs a side; None for no maximum.
    stages: the maxima to which the plan may be taken if need be, max_runs one of them; max_runs=(30, 60, 120) declares
    them and begins with the first. method: "sequential" (default), "e-process" (default without a maximum), "naive" (a
    plain U test at every look, with its true error rate), "fixed" (one test of all runs). test: "brunner-munzel"
    (default), "mann-whitney" (exact for sides of the same law), "signed-rank" (of pairs). paired: the i-th runs belong
    together. looks: a look every so many runs a side, or the list of looks, as runs a side or as pairs (runs of A,
    runs of B); to be declared before the runs are made. futility: give up a hopeless comparison early; not binding, so
    going on is allowed.
    """
    plan = plan_of(
        method=method,
        max_runs=max_runs,
        stages=stages,
        min_runs=min_runs,
        spending=spending,
        alpha=alpha,
        futility=futility,
        looks=looks,
        margin=margin,
        test=test,
        paired=paired,
    )
    return decide_by(plan, a, b, direction=direction)


def plan_of(*, max_runs: int | Sequence[int] | None = 30, stages: Sequence[int] = (), **others: Any) -> Plan:
    """The plan that the options of `decide` declare."""
    if max_runs is not None and not isinstance(max_runs, int):
        stages, max_runs = max_runs, min(max_runs, default=None)
    return Plan(max_runs=max_runs, stages=tuple(stages), **others)


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


def _judged(rule: Rule, plan: Plan, sides: _Sides, traced: Trace) -> Decision:
    path = observed_path(rule, traced, sides.a, sides.b)
    verdict, at = _first_claim(traced)
    if verdict is not Verdict.UNDECIDED:
        why = sentences.claim(verdict, rule, path[at], plan.margin)
        return _decision(rule, plan, sides, verdict, why, path=path, at=at, stop=True)
    if sides.constant:
        why = sentences.constant(sides.example, paired=plan.paired)
        return _decision(rule, plan, sides, verdict, why, path=path, at=at, stop=True)
    exhausted = len(path) == len(rule.schedule) and not rule.open_ended
    hopeless = bool(traced.hopeless[-1, 0]) and not exhausted
    projection = project(rule, sides.a, sides.b, np.random.default_rng(_PROJECTION_SEED))
    why = sentences.still_open(rule, path[-1], projection, hopeless=hopeless, exhausted=exhausted)
    stop = hopeless or exhausted
    return _decision(rule, plan, sides, verdict, why, path=path, at=at, stop=stop, projection=projection)


def _first_claim(traced: Trace) -> tuple[Verdict, int]:
    """The first claim on the path. Hopeless looks before it do not matter: the futility stop is not binding."""
    claims = (traced.favours[:, 0] != 0) | traced.equivalent[:, 0]
    if not claims.any():
        return Verdict.UNDECIDED, len(claims) - 1
    at = int(claims.argmax())
    if traced.equivalent[at, 0]:
        return Verdict.EQUIVALENT, at
    return (Verdict.A_BETTER if traced.favours[at, 0] > 0 else Verdict.B_BETTER), at


def _too_few(rule: Rule, plan: Plan, sides: _Sides) -> Decision:
    why = sentences.too_few(len(sides.a), len(sides.b), min(rule.schedule[0]))
    warning = Condition("too-few", why, "make more runs; isorun power says how many are needed")
    return _decision(rule, plan, sides, Verdict.UNDECIDED, why, stop=False, warnings=(warning,))


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
    projection: Projection = _NOTHING,
    warnings: tuple[Condition, ...] = (),
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
        about_more_runs=projection.more_runs,
        chance=projection.chance,
        error_rate=rule.error_rate,
        error_statement=sentences.error_statement(rule, plan.alpha),
        path=path + planned_path(rule, len(path)),
        warnings=(*(warnings or _unlooked(rule, len(path), sides)), *_conditions(rule, sides)),
        test=rule.test,
        paired=plan.paired,
        estimate=estimate,
        estimate_of=sentences.estimate_of(rule),
        ci95=interval,
        chances=projection.chances,
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
                sentences.surplus(*extra),
                "make more runs of the other side, or declare other looks beforehand",
            ),
        )
    return (Condition("beyond-the-plan", sentences.unused(*extra), "declare stages beforehand in the next comparison"),)
