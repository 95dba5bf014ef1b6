"""Plans: everything that is declared before the runs are made, and the rule that follows from it.

A plan is kept from the first look on (`to_json`, `from_json`), because a rule that changes with the results does not
hold its error rate. `continued` says whether a plan that is asked for later may take the place of the one kept. A
maximum is not raised past what was declared: at the last look all of the error is spent, so that nothing could be
claimed any more at that rate; and raising it earlier, when the results invite it, errs in up to 5.8 % at a nominal 5 %
(simulated). Later stages that are declared beforehand (`stages`) are paid for beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from isorun.analysis.inputs.samples import FloatArray
from isorun.analysis.sequential.boundaries import TESTS
from isorun.analysis.sequential.equivalence import (
    EquivalenceRule,
    e_process_equivalence,
    plain_equivalence,
    spending_equivalence,
)
from isorun.analysis.sequential.looks import FEWEST_RUNS, Look, Schedule, declared_looks
from isorun.analysis.sequential.null_law import continuous_law, law_given_ties
from isorun.analysis.sequential.rules import (
    Rule,
    e_process_rule,
    fixed_rule,
    naive_rule,
    sequential_rule,
    signed_rank_fixed_rule,
)
from isorun.analysis.sequential.spending import DEFAULT_SPENDING, spending_function
from isorun.errors import InputError, known_names

__all__ = ["METHODS", "Looks", "Plan", "continued", "planned_rule"]

METHODS = ("sequential", "e-process", "naive", "fixed")
_HORIZON = 100  # how far ahead an open-ended comparison is projected, in runs a side
_MAY_DIFFER = frozenset({"max_runs", "stages", "futility"})  # the futility stop is not binding; of maxima see below

Looks = int | Sequence[int | Sequence[int]]


@dataclass(frozen=True, slots=True)
class Plan:
    """What `decide` takes besides the runs; see there.

    stages: the maxima to which the plan may be taken, declared before the first look, the largest last; none when
    max_runs is the only one.
    """

    method: str | None = None
    max_runs: int | None = 30
    min_runs: int = FEWEST_RUNS
    spending: str = DEFAULT_SPENDING
    alpha: float = 0.05
    futility: bool = True
    looks: Looks = 1
    margin: float | None = None
    test: str | None = None
    paired: bool = False
    stages: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        spending_function(self.spending)
        _refuse_unknown("method", self.method, METHODS)
        _refuse_unknown("test", self.test, TESTS)
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
        self._check_pairing()
        self._check_stages()

    @property
    def effective_method(self) -> str:
        """The method asked for; else sequential, or the e-process when there is no maximum."""
        return self.method or ("e-process" if self.max_runs is None else "sequential")

    @property
    def effective_test(self) -> str:
        """The test asked for, or what the method and the pairing use without asking."""
        if self.effective_method == "e-process":
            return "student-t"
        if self.paired:
            return "signed-rank"
        return self.test or ("mann-whitney" if self.effective_method == "naive" else "brunner-munzel")

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, from which `from_json` makes the same plan."""
        data = asdict(self) | {"stages": list(self.stages)}
        if not isinstance(self.looks, int):
            data["looks"] = [list(look) for look in declared_looks(self.looks, min_runs=self.min_runs, max_runs=0)]
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Plan:
        """The plan that was kept."""
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(data) - known)
        if unknown:
            raise InputError(
                "the plan that was kept cannot be read", found=", ".join(unknown), allowed=", ".join(known)
            )
        looks = data.get("looks", 1)
        numbers = [data[name] for name in ("min_runs", "max_runs", "alpha", "margin") if data.get(name) is not None]
        if not all(isinstance(number, int | float) for number in numbers):
            raise InputError("the plan that was kept cannot be read", found=f"{dict(data)!r:.300}")
        try:
            declared = looks if isinstance(looks, int) else tuple((int(a), int(b)) for a, b in looks)
            return cls(**{**data, "looks": declared, "stages": tuple(int(stage) for stage in data.get("stages", ()))})
        except (TypeError, ValueError) as error:
            raise InputError("the plan that was kept cannot be read", found=f"{dict(data)!r:.300}") from error

    def _check_pairing(self) -> None:
        if self.paired and self.test not in {None, "signed-rank"}:
            raise InputError("the test takes no pairs", found=f"{self.test}", allowed="signed-rank")
        if self.test == "signed-rank" and not self.paired:
            raise InputError("the signed rank test needs pairs", found="paired=False", hint="paired=True (--pair)")

    def _check_stages(self) -> None:
        if not self.stages:
            return
        ascending = all(before < after for before, after in zip(self.stages, self.stages[1:], strict=False))
        if self.effective_method != "sequential" or not isinstance(self.looks, int):
            raise InputError(
                "stages cannot be declared here",
                found=f"method {self.effective_method}",
                allowed="the method 'sequential' with looks every so many runs a side",
            )
        if not ascending or self.max_runs not in self.stages:
            raise InputError(
                "the stages cannot be planned",
                found=f"stages {', '.join(map(str, self.stages))}, max_runs {self.max_runs}",
                allowed="growing numbers of runs a side, of which max_runs is one",
            )


def continued(kept: Plan, asked: Plan, *, looks_made: int) -> Plan:
    """The plan to go on with: the one asked for, if the one kept at the first look allows it; else an error says why.

    Before the first look any plan will do. A smaller maximum is only an earlier stop. A larger one must have been
    declared as a stage.
    """
    if not looks_made:
        return asked
    kept_values, asked_values = _declared_values(kept), _declared_values(asked)
    changed = [name for name in kept_values if kept_values[name] != asked_values[name]]
    if changed:
        raise InputError(
            "the plan was declared before the first look, and a plan that changes with the results does not hold its "
            "error rate",
            found=", ".join(f"{name} {asked_values[name]!r}, declared {kept_values[name]!r}" for name in changed),
            hint="go on with the declared plan, or start a new comparison with new runs",
        )
    if kept.max_runs is None or (asked.max_runs is not None and asked.max_runs <= kept.max_runs):
        return replace(kept, futility=asked.futility)
    if asked.max_runs in kept.stages:
        return replace(kept, max_runs=asked.max_runs, futility=asked.futility)
    raise _not_raised(kept, asked)


def _declared_values(plan: Plan) -> dict[str, Any]:
    """What may not change after the first look."""
    effective = {"method": plan.effective_method, "test": plan.effective_test}
    return {name: value for name, value in (plan.to_json() | effective).items() if name not in _MAY_DIFFER}


def _not_raised(kept: Plan, asked: Plan) -> InputError:
    declared = ", ".join(map(str, kept.stages)) or f"{kept.max_runs}"
    return InputError(
        f"the maximum cannot be raised after the first look: the whole error rate of {kept.alpha:.1%} is spent on the "
        "looks that were declared, and further looks would claim too often between equals",
        found=f"a maximum of {asked.max_runs or 'no'} runs a side",
        allowed=f"what was declared before the first look: {declared}",
        hint="report it as undecided with its interval, or compare new runs under a plan with stages, such as "
        "max_runs=(30, 60, 120), which may be taken further",
    )


def planned_rule(plan: Plan, a: FloatArray, b: FloatArray) -> Rule:
    """The rule that the plan declares for these two sides; only the fixed rule depends on the runs themselves.

    Of pairs, a holds the differences and b zeros.
    """
    method = plan.effective_method
    if method == "fixed":
        return _fixed(plan, a, b).with_equivalence(_plain(plan))
    schedule = _schedule(plan, len(a), len(b))
    rule = _declared(plan, method, schedule)
    return rule.with_equivalence(_equivalence(plan, method, schedule, len(rule.schedule)))


def _fixed(plan: Plan, a: FloatArray, b: FloatArray) -> Rule:
    """The rule for all runs at hand, or for the fewest that allow a verdict."""
    enough = Look(max(FEWEST_RUNS, len(a)), max(FEWEST_RUNS, len(b)))
    too_few = enough != (len(a), len(b))
    if plan.paired:
        return signed_rank_fixed_rule(np.arange(1.0, enough.n_a + 1) if too_few else a, plan.alpha)
    if plan.effective_test == "brunner-munzel":
        return fixed_rule(enough, plan.alpha)
    return fixed_rule(enough, plan.alpha, continuous_law(*enough) if too_few else law_given_ties(a, b))


def _declared(plan: Plan, method: str, schedule: Schedule) -> Rule:
    if method == "naive":
        return naive_rule(schedule, plan.alpha, plan.effective_test)
    if method == "e-process":
        open_ended = plan.max_runs is None and isinstance(plan.looks, int)
        return e_process_rule(schedule, plan.alpha, open_ended=open_ended, paired=plan.paired)
    return sequential_rule(
        schedule,
        plan.spending,
        plan.alpha,
        futility=plan.futility,
        test=plan.effective_test,
        stages=plan.stages,
        max_runs=plan.max_runs if plan.stages else None,
    )


def _schedule(plan: Plan, n_a: int, n_b: int) -> Schedule:
    """All looks that were declared, those of later stages, too."""
    horizon = max(n_a, n_b, plan.min_runs) + _HORIZON
    most = horizon if plan.max_runs is None else max((plan.max_runs, *plan.stages))
    if not plan.stages:
        return declared_looks(plan.looks, min_runs=plan.min_runs, max_runs=most)
    sizes = {look.n_a for look in declared_looks(plan.looks, min_runs=plan.min_runs, max_runs=most)}
    return tuple(Look(size, size) for size in sorted(sizes.union(plan.stages)))


def _equivalence(plan: Plan, method: str, schedule: Schedule, looks: int) -> EquivalenceRule | None:
    if plan.margin is None:
        return None
    if method == "sequential":
        return spending_equivalence(
            plan.margin, schedule, plan.spending, plan.alpha, paired=plan.paired, stages=plan.stages
        ).up_to(looks)
    if method == "e-process":
        return e_process_equivalence(plan.margin, schedule, plan.alpha, paired=plan.paired)
    return _plain(plan)


def _plain(plan: Plan) -> EquivalenceRule | None:
    return None if plan.margin is None else plain_equivalence(plan.margin, plan.alpha)


def _refuse_unknown(what: str, name: str | None, known: Sequence[str]) -> None:
    if name is not None and name not in known:
        raise InputError(f"there is no {what} {name!r}", found=name, allowed=known_names(name, known))
