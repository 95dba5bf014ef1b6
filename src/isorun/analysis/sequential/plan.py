"""Plans: what is declared before the runs are made; its looks, and how it spends its error rate.

Looks: the moments at which the runs made so far are compared.

A schedule of looks is declared before the runs are made and says how many runs each side has at each look. Which runs
those are is the order in which they are given, never their values: that is all the error rates rest on. The
information in a comparison of m with n runs is mn / (m + n); a look's fraction is its information over that of the
last declared look (Lan and DeMets 1983, Biometrika 70).

Alpha spending: how much of the error rate may be used up by each information fraction.

Lan and DeMets 1983 (Biometrika 70) for the Pocock-like and O'Brien-Fleming-like functions; Kim and DeMets 1987
(Biometrika 74) for the power family. Power 1.5 lies between the two: it stops nearly as early as Pocock's and keeps
nearly all the power of O'Brien and Fleming's.

A plan in stages spends 80 % of its error by the end of the first and the rest in equal parts on the others, so that
going on to a later stage, if need be, was paid for before the first run. Stages of 30, 60 and 120 runs a side cost 1.5
points of power at one standard deviation within the first 30 (simulated).

Plans: everything that is declared before the runs are made, and the rule that follows from it.

A plan is kept from the first look on (`to_json`, `from_json`), because a rule that changes with the results does not
hold its error rate. `continued` says whether a plan that is asked for later may take the place of the one kept. A
maximum is not raised past what was declared: at the last look all of the error is spent, so that nothing could be
claimed any more at that rate; and raising it earlier, when the results invite it, errs in up to 5.8 % at a nominal 5 %
(simulated). Later stages that are declared beforehand (`stages`) are paid for beforehand.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from scipy import special

from isorun.errors import InputError, known_names

__all__ = [
    "DEFAULT_SPENDING",
    "FEWEST_RUNS",
    "METHODS",
    "MOST_RUNS",
    "SPENDING",
    "TESTS",
    "Look",
    "Looks",
    "Plan",
    "Schedule",
    "against_stored",
    "continued",
    "cumulative_error",
    "declared_looks",
    "every",
    "fractions",
    "looks_within",
    "spending_function",
]

FEWEST_RUNS = 5
"""Below this many runs a side no verdict is given: a rank test of 4 against 4 can reach p = .029 at best, of 3 none."""


MOST_RUNS = 500
"""Beyond this many runs a side boundaries are not simulated: it would take minutes, and the e-process needs none."""


class Look(NamedTuple):
    """How many runs each side has when it is looked at."""

    n_a: int
    n_b: int

    @property
    def information(self) -> float:
        """The information in the comparison, in runs: mn / (m + n)."""
        return self.n_a * self.n_b / (self.n_a + self.n_b)


Schedule = tuple[Look, ...]


def every(step: int, *, min_runs: int, max_runs: int) -> Schedule:
    """A look after each `step` pairs of runs from `min_runs` on; the last is at `max_runs`."""
    if step < 1:
        raise InputError("looks cannot be planned", found=f"a look every {step} runs", allowed="a step of 1 or more")
    _check_range(min_runs, max_runs)
    sizes = [*range(min_runs, max_runs, step), max_runs]
    return tuple(Look(size, size) for size in sizes)


def against_stored(stored: int, *, max_runs: int, min_runs: int = FEWEST_RUNS, stored_side: str = "b") -> Schedule:
    """Looks after every new run of one side while the other side has `stored` runs, as with a published baseline."""
    _check_range(min_runs, max_runs)
    _check_range(FEWEST_RUNS, stored)
    if stored_side not in {"a", "b"}:
        raise InputError("looks cannot be planned", found=f"stored side {stored_side!r}", allowed="'a' or 'b'")
    sizes = range(min_runs, max_runs + 1)
    return tuple(Look(new, stored) if stored_side == "b" else Look(stored, new) for new in sizes)


def declared_looks(looks: int | Sequence[int | Sequence[int]], *, min_runs: int, max_runs: int) -> Schedule:
    """The whole schedule: an int is a step, a sequence lists runs a side, or pairs (runs of A, runs of B)."""
    if isinstance(looks, int):
        return every(looks, min_runs=min_runs, max_runs=max_runs)
    schedule = tuple(_look(item) for item in looks)
    _check_schedule(schedule)
    return schedule


def looks_within(schedule: Schedule, n_a: int, n_b: int) -> int:
    """How many looks of the schedule the runs made so far allow."""
    return sum(1 for look in schedule if look.n_a <= n_a and look.n_b <= n_b)


def fractions(schedule: Schedule) -> tuple[float, ...]:
    """The information fraction of each look; the last is 1."""
    most = schedule[-1].information
    return tuple(look.information / most for look in schedule)


def _look(sizes: int | Sequence[int]) -> Look:
    if not isinstance(sizes, Sequence):
        return Look(sizes, sizes)
    if len(sizes) != 2:
        raise InputError(
            "looks cannot be planned", found=f"{sizes!r}", allowed="runs a side, or (runs of A, runs of B)"
        )
    return Look(*sizes)


def _check_range(fewest: int, most: int) -> None:
    if not FEWEST_RUNS <= fewest <= most:
        raise InputError(
            "looks cannot be planned",
            found=f"from {fewest} to {most} runs a side",
            allowed=f"at least {FEWEST_RUNS} runs a side, and the maximum not below the minimum",
        )


def _check_schedule(schedule: Schedule) -> None:
    if not schedule:
        raise InputError("looks cannot be planned", found="an empty list of looks", allowed="at least one look")
    _check_range(min(schedule[0]), max(schedule[-1]))
    for before, after in itertools.pairwise(schedule):
        if after.n_a < before.n_a or after.n_b < before.n_b or after == before:
            raise InputError(
                "looks cannot be planned",
                found=f"a look at {tuple(after)} after a look at {tuple(before)}",
                allowed="looks that grow: at least one side has more runs, and no side has fewer",
            )


SpendingFunction = Callable[[float, float], float]
DEFAULT_SPENDING = "power-1.5"
_FIRST_STAGE = 0.8


def _power_1_5(fraction: float, alpha: float) -> float:
    return alpha * fraction * math.sqrt(fraction)


def _pocock(fraction: float, alpha: float) -> float:
    return alpha * math.log1p((math.e - 1) * fraction)


def _obrien_fleming(fraction: float, alpha: float) -> float:
    return 2 * float(special.ndtr(special.ndtri(alpha / 2) / math.sqrt(fraction)))


SPENDING: Mapping[str, SpendingFunction] = MappingProxyType(
    {"power-1.5": _power_1_5, "pocock": _pocock, "obrien-fleming": _obrien_fleming}
)


def spending_function(name: str) -> SpendingFunction:
    """The spending function of that name."""
    if name not in SPENDING:
        raise InputError(f"there is no spending function {name!r}", found=name, allowed=known_names(name, SPENDING))
    return SPENDING[name]


def cumulative_error(
    name: str, fractions: Sequence[float], alpha: float, stage_ends: Sequence[float] = ()
) -> tuple[float, ...]:
    """The error that may have been spent by each fraction; exactly `alpha` at 1.

    stage_ends: the fractions at which the stages of the plan end, the last one 1; a single stage by default.
    """
    spent = spending_function(name)
    ends = tuple(stage_ends) or (1.0,)
    return tuple(_by_stage(fraction, alpha, ends, spent) for fraction in fractions)


def _by_stage(fraction: float, alpha: float, ends: tuple[float, ...], spent: SpendingFunction) -> float:
    """What earlier stages have spent, and the part of this stage's own share that its progress allows."""
    stage = next((k for k, end in enumerate(ends) if fraction <= end * (1 + 1e-12)), len(ends) - 1)
    before, begin = (_share(stage - 1, len(ends)), ends[stage - 1]) if stage else (0.0, 0.0)
    own = alpha * (_share(stage, len(ends)) - before)
    progress = (fraction - begin) / (ends[stage] - begin)
    return alpha * before + (own if progress >= 1 - 1e-12 else spent(progress, own))


def _share(stage: int, stages: int) -> float:
    """Of the error that may be spent by the end of the stage."""
    if stage == stages - 1:
        return 1.0
    return _FIRST_STAGE + (1 - _FIRST_STAGE) * stage / (stages - 1)


TESTS = ("brunner-munzel", "mann-whitney", "signed-rank")
METHODS = ("sequential", "e-process", "naive", "fixed")
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


def continued(kept: Plan, asked: Plan) -> Plan:
    """The plan to go on with: the one asked for, if the one kept at the first look allows it; else an error says why.

    A smaller maximum is only an earlier stop. A larger one must have been declared as a stage.
    """
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


def _refuse_unknown(what: str, name: str | None, known: Sequence[str]) -> None:
    if name is not None and name not in known:
        raise InputError(f"there is no {what} {name!r}", found=name, allowed=known_names(name, known))
