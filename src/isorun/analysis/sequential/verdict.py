"""The verdict: is A better, is B better, are they equivalent, or is it undecided, and what to do next.

`decide` holds its error rate: by default it is a sequential rank test that may be consulted after every run. It is a
pure function of the runs in the order in which they were made, so that the same runs always get the same answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from isorun.analysis.inputs.samples import FloatArray, finite_sample, is_constant, oriented
from isorun.analysis.sequential import sentences
from isorun.analysis.sequential.decision import Decision, NextAction, PathPoint, Verdict, next_action
from isorun.analysis.sequential.looks import FEWEST_RUNS, looks_within
from isorun.analysis.sequential.observed import observed_path, planned_path
from isorun.analysis.sequential.plan import METHODS, Plan, planned_rule
from isorun.analysis.sequential.projection import Projection, project
from isorun.analysis.sequential.rules import Rule
from isorun.analysis.sequential.trace import Trace, trace

__all__ = ["METHODS", "Decision", "NextAction", "PathPoint", "Verdict", "decide", "next_action"]

_PROJECTION_SEED = 7_919


def decide(
    a: ArrayLike,
    b: ArrayLike,
    *,
    direction: str,
    margin: float | None = None,
    max_runs: int | None = 30,
    min_runs: int = FEWEST_RUNS,
    spending: str = "power-1.5",
    alpha: float = 0.05,
    futility: bool = True,
    method: str | None = None,
    looks: int | Sequence[int | Sequence[int]] = 1,
) -> Decision:
    """Compare the runs of A with those of B, given in the order in which they were made (or planned, as by seed).

    direction: "higher" or "lower" is better. margin: the largest difference that does not matter, in units of the
    metric; with it the verdict may be "equivalent". max_runs: the most runs a side; None for no maximum.
    method: "sequential" (default), "e-process" (default without a maximum), "naive" (a plain U test at every look, with
    its true error rate), "fixed" (one exact U test of all runs). looks: a look every so many runs a side, or the
    list of looks, as runs a side or as pairs (runs of A, runs of B); to be declared before the runs are made.
    futility: give up a hopeless comparison early; not binding, so going on is allowed.
    """
    sides = _Sides(oriented(finite_sample(a, "A"), direction), oriented(finite_sample(b, "B"), direction), direction)
    plan = Plan(method, max_runs, min_runs, spending, alpha, futility, looks, margin)
    rule = planned_rule(plan, sides.a, sides.b)
    seen = looks_within(rule.schedule, len(sides.a), len(sides.b))
    if min(len(sides.a), len(sides.b)) < FEWEST_RUNS or not seen:
        return _too_few(rule, plan, sides)
    return _judged(rule, plan, sides, trace(rule, sides.a[:, None], sides.b[:, None], seen))


@dataclass(frozen=True, slots=True)
class _Sides:
    """Both sides, turned so that higher is better."""

    a: FloatArray
    b: FloatArray
    direction: str

    @property
    def constant(self) -> bool:
        """Whether all runs of both sides gave the same value."""
        return is_constant(np.concatenate([self.a, self.b]))

    @property
    def example(self) -> float:
        """A value as it was given."""
        return float(oriented(self.a[:1], self.direction)[0])


def _judged(rule: Rule, plan: Plan, sides: _Sides, traced: Trace) -> Decision:
    path = observed_path(rule, traced)
    verdict, at = _first_claim(traced)
    if verdict is not Verdict.UNDECIDED:
        why = sentences.claim(verdict, rule.method, path[at], plan.margin)
        return _decision(rule, plan, sides, verdict, why, path=path, stop=True)
    if sides.constant:
        return _decision(rule, plan, sides, verdict, sentences.constant(sides.example), path=path, stop=True)
    exhausted = len(path) == len(rule.schedule) and not rule.open_ended
    hopeless = bool(traced.hopeless[-1, 0]) and not exhausted
    projection = project(rule, sides.a, sides.b, np.random.default_rng(_PROJECTION_SEED))
    why = sentences.still_open(rule.method, path[-1], projection, hopeless=hopeless, exhausted=exhausted)
    return _decision(rule, plan, sides, verdict, why, path=path, stop=hopeless or exhausted, projection=projection)


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
    return _decision(rule, plan, sides, Verdict.UNDECIDED, why, stop=False, warnings=(why,))


def _decision(
    rule: Rule,
    plan: Plan,
    sides: _Sides,
    verdict: Verdict,
    why: str,
    *,
    path: tuple[PathPoint, ...] = (),
    stop: bool,
    projection: Projection | None = None,
    warnings: tuple[str, ...] = (),
) -> Decision:
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
        error_statement=sentences.error_statement(rule.method, rule.error_rate, plan.alpha, len(rule.schedule)),
        path=path + planned_path(rule, len(path)),
        warnings=warnings or _unlooked(rule, len(path), sides),
    )


def _unlooked(rule: Rule, seen: int, sides: _Sides) -> tuple[str, ...]:
    """A warning when some runs are not part of the last look."""
    last = rule.schedule[seen - 1]
    extra_a, extra_b = len(sides.a) - last.n_a, len(sides.b) - last.n_b
    if not extra_a and not extra_b:
        return ()
    say = sentences.unused if seen == len(rule.schedule) else sentences.surplus
    return (say(extra_a, extra_b),)
