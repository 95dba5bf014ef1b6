"""Plans: everything that is declared before the runs are made, and the rule that follows from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from isorun.analysis.inputs.samples import FloatArray
from isorun.analysis.sequential.equivalence import (
    EquivalenceRule,
    e_process_equivalence,
    plain_equivalence,
    spending_equivalence,
)
from isorun.analysis.sequential.looks import FEWEST_RUNS, Look, Schedule, declared_looks
from isorun.analysis.sequential.null_law import continuous_law, law_given_ties
from isorun.analysis.sequential.rules import Rule, e_process_rule, fixed_rule, naive_rule, rank_rule
from isorun.analysis.sequential.spending import DEFAULT_SPENDING, spending_function
from isorun.errors import InputError, known_names

__all__ = ["METHODS", "Plan", "planned_rule"]

METHODS = ("sequential", "e-process", "naive", "fixed")
_HORIZON = 100  # how far ahead an open-ended comparison is projected, in runs a side


@dataclass(frozen=True, slots=True)
class Plan:
    """What `decide` takes besides the runs; see there."""

    method: str | None = None
    max_runs: int | None = 30
    min_runs: int = FEWEST_RUNS
    spending: str = DEFAULT_SPENDING
    alpha: float = 0.05
    futility: bool = True
    looks: int | Sequence[int | Sequence[int]] = 1
    margin: float | None = None

    def __post_init__(self) -> None:
        spending_function(self.spending)
        if self.method is not None and self.method not in METHODS:
            raise InputError(
                f"there is no method {self.method!r}", found=self.method, allowed=known_names(self.method, METHODS)
            )
        if not 0 < self.alpha < 0.5:
            raise InputError("alpha cannot be used", found=f"{self.alpha}", allowed="a number between 0 and 0.5")
        if self.margin is not None and not (self.margin > 0 and math.isfinite(self.margin)):
            raise InputError("the margin cannot be used", found=f"{self.margin}", allowed="a finite number above 0")
        if self.max_runs is None and self.method in {"sequential", "naive"}:
            raise InputError(
                f"the {self.method} method needs a maximum",
                found="no max_runs",
                allowed="a whole number of runs a side",
                hint="give max_runs, or use the method 'e-process', which needs none",
            )

    @property
    def effective_method(self) -> str:
        """The method asked for; else sequential, or the e-process when there is no maximum."""
        return self.method or ("e-process" if self.max_runs is None else "sequential")


def planned_rule(plan: Plan, a: FloatArray, b: FloatArray) -> Rule:
    """The rule that the plan declares for these two sides; only the fixed rule depends on the runs themselves."""
    method = plan.effective_method
    rule = _fixed(plan, a, b) if method == "fixed" else _declared(plan, method, _schedule(plan, len(a), len(b)))
    return rule.with_equivalence(_equivalence(plan, method, rule.schedule))


def _fixed(plan: Plan, a: FloatArray, b: FloatArray) -> Rule:
    """The rule for all runs at hand, or for the fewest that allow a verdict."""
    if min(len(a), len(b)) >= FEWEST_RUNS:
        return fixed_rule(Look(len(a), len(b)), law_given_ties(a, b), plan.alpha)
    enough = Look(max(FEWEST_RUNS, len(a)), max(FEWEST_RUNS, len(b)))
    return fixed_rule(enough, continuous_law(*enough), plan.alpha)


def _declared(plan: Plan, method: str, schedule: Schedule) -> Rule:
    if method == "sequential":
        return rank_rule(schedule, plan.spending, plan.alpha, futility=plan.futility)
    if method == "naive":
        return naive_rule(schedule, plan.alpha)
    return e_process_rule(schedule, plan.alpha, open_ended=plan.max_runs is None and isinstance(plan.looks, int))


def _schedule(plan: Plan, n_a: int, n_b: int) -> Schedule:
    horizon = max(n_a, n_b, plan.min_runs) + _HORIZON
    most = horizon if plan.max_runs is None else plan.max_runs
    return declared_looks(plan.looks, min_runs=plan.min_runs, max_runs=most)


def _equivalence(plan: Plan, method: str, schedule: Schedule) -> EquivalenceRule | None:
    if plan.margin is None:
        return None
    if method == "sequential":
        return spending_equivalence(plan.margin, schedule, plan.spending, plan.alpha)
    if method == "e-process":
        return e_process_equivalence(plan.margin, schedule, plan.alpha)
    return plain_equivalence(plan.margin, plan.alpha)
