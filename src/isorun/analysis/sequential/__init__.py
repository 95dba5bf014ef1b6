"""Decide while runs come in. Here are both ends of it: the plan, declared before the runs, and the decision.

plan ─▶ rules (boundaries of the statistics that `paths` takes at every look) ─▶ trace ─▶ verdict.decide ─▶ decision
                                                              projection (how many more runs) ◀─┘

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

Decisions: what is said after the runs made so far, and the path that led there.

Naming: a decision on A and B told with the names of the two sides and of what was counted.

Withholding: a claim whose error rate does not hold is not made, in the verdict and not only in a footnote.

Nor is a claim that rests on a guess made without saying so.
"""

from __future__ import annotations

import enum
import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import special

from isorun.analysis import Told
from isorun.analysis.evidence import Condition, some, voided
from isorun.analysis.pairwise.effects import PairingEffect
from isorun.analysis.samples import FloatArray, Interval, oriented
from isorun.errors import InputError, known_names

__all__ = [
    "DEFAULT_MAX_RUNS",
    "DEFAULT_SPENDING",
    "FEWEST_RUNS",
    "METHODS",
    "MOST_RUNS",
    "SPENDING",
    "TESTS",
    "Decision",
    "Look",
    "Looks",
    "NextAction",
    "PathPoint",
    "Plan",
    "Schedule",
    "Verdict",
    "against_stored",
    "continued",
    "cumulative_error",
    "declared_looks",
    "every",
    "fractions",
    "looks_within",
    "named",
    "next_action",
    "skewed_pairs",
    "spending_function",
    "withheld",
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
DEFAULT_MAX_RUNS = 30
"""The most runs a side where nothing is said."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What `decide` takes besides the runs; see there.

    stages: the maxima to which the plan may be taken, declared before the first look, the largest last; none when
    max_runs is the only one.
    """

    method: str | None = None
    max_runs: int | None = DEFAULT_MAX_RUNS
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


class _Strong:
    """How a notebook shows a word; an enum may not have such a method of its own."""

    def _repr_html_(self) -> str:
        return f"<strong>{self!s}</strong>"


class Verdict(_Strong, enum.StrEnum):
    """What a comparison says."""

    A_BETTER = "A better"
    B_BETTER = "B better"
    EQUIVALENT = "equivalent"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class PathPoint:
    """One look. The statistic is positive where A is better.

    statistic: the normal score of the Brunner-Munzel or signed rank test, U - mn/2 of the Mann-Whitney test, or
    Student's t of the e-process. lower / upper: claim at or beyond these; None where no claim is possible yet.
    futility: the comparison is hopeless within ± this; None where it may not be given up. p_value / level: the same
    as a plain two-sided p and what it must not exceed (for the e-process the anytime-valid p, 1 over the largest
    evidence so far, and alpha). equivalence / equivalence_boundary: statistic of the two one-sided tests and its
    boundary; None without margin. planned: whether the look lies ahead, where only the boundaries are known.
    wins: the share of all pairs of runs that A wins, ties as one half; of a paired comparison, of its pairs.
    """

    n_a: int
    n_b: int
    statistic: float | None
    lower: float | None
    upper: float | None
    futility: float | None
    p_value: float | None
    level: float
    equivalence: float | None
    equivalence_boundary: float | None
    planned: bool
    wins: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; a number that JSON has no sign for is null."""
        return {name: _or_null(value) for name, value in asdict(self).items()}


_JSON_NAMES = {"conditions": "warnings"}


@dataclass(frozen=True, slots=True)
class Decision(Told):
    """The verdict after the runs made so far.

    stop: whether to stop making runs. why: one sentence. about_more_runs: about how many more runs a side until a
    verdict is as likely as not, averaged over what is not known of the effect; None when there is a verdict or no
    number is sensible. chance: how likely a verdict is by the last planned look, averaged in the same way; chances: the
    same for true effects of so many standard deviations, as pairs. error_rate: the chance of a claim under this rule
    when there is nothing to find; error_statement says it in words. estimate, ci95: the mean of A minus the mean of
    B in units of the metric (`estimate_of`), with an interval that holds although the comparison may have stopped when
    it looked good. pairing: what pairing gained or cost.
    """

    told_as: ClassVar[str] = "decision"

    verdict: Verdict
    stop: bool
    why: str
    method: str
    direction: str
    alpha: float
    margin: float | None
    n_a: int
    n_b: int
    about_more_runs: int | None
    chance: float | None
    error_rate: float
    error_statement: str
    path: tuple[PathPoint, ...]
    conditions: tuple[Condition, ...]
    test: str
    paired: bool
    estimate: float
    estimate_of: str
    ci95: Interval | None
    chances: tuple[tuple[float, float], ...] = ()
    pairing: PairingEffect | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON with stable keys, in the order of the fields."""
        data = {_JSON_NAMES.get(name, name): getattr(self, name) for name in self.__slots__}
        return data | {
            "verdict": str(self.verdict),
            "path": [point.to_json() for point in self.path],
            "warnings": [condition.to_json() for condition in self.conditions],
            "ci95": None if self.ci95 is None else list(self.ci95),
            "chances": [{"effect": effect, "chance": chance} for effect, chance in self.chances],
            "pairing": None if self.pairing is None else self.pairing.to_json(),
        }


@dataclass(frozen=True, slots=True)
class NextAction:
    """How many more runs to make of each side before looking again; none when `stop`."""

    stop: bool
    runs_a: int
    runs_b: int
    reason: str


def next_action(decision: Decision) -> NextAction:
    """What to do next: stop, or make the runs that lead to the next planned look."""
    if decision.stop:
        return NextAction(stop=True, runs_a=0, runs_b=0, reason=decision.why)
    point = next(point for point in decision.path if point.planned)
    more_a, more_b = max(0, point.n_a - decision.n_a), max(0, point.n_b - decision.n_b)
    reason = f"the next look is at {point.n_a} runs of A and {point.n_b} of B"
    return NextAction(stop=False, runs_a=more_a, runs_b=more_b, reason=reason)


def _or_null(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


_WINNERS = {Verdict.A_BETTER: 0, Verdict.B_BETTER: 1}
_COUNTED_AS_RUNS = frozenset({"run", "row", "repeat", "unit"})


def named(decision: Decision, a: str, b: str, noun: str = "run", *, about: str = "") -> Decision:
    """The same decision, its reason in words of the sides; noun: what was counted, such as a seed.

    about: what the answer is limited to, such as one seed.

    Only what the rule itself wrote is reworded, in one pass, before any name stands in it: a side may be called
    "B", or "ViT-B".
    """
    names = (a, b)

    def as_counted(told: re.Match[str]) -> str:
        return f"{some(int(told[1].replace(',', '')), noun)} {told[2]}"

    def reworded(text: str) -> str:
        if noun not in _COUNTED_AS_RUNS:
            text = re.sub(r"\b([\d,]+) runs? (a side|of A)\b", as_counted, text, count=1)
        return re.sub(r"\b[AB]\b", lambda side: names["AB".index(side[0])], text)

    claimed = decision.verdict in _WINNERS
    reason = reworded(decision.why.removeprefix(str(decision.verdict)) if claimed else decision.why)
    winner = f"{names[_WINNERS[decision.verdict]]} is better" if claimed else ""
    limited = f", {about}" if about else ""
    conditions = tuple(replace(one, message=reworded(one.message)) for one in decision.conditions)
    return replace(
        decision,
        why=f"{winner}{reason}{limited}",
        estimate_of=reworded(decision.estimate_of),
        conditions=conditions,
    )


def skewed_pairs(decision: Decision, first: FloatArray, second: FloatArray) -> tuple[Condition, ...]:
    """A paired claim for the side that wins no more pairs than it loses: the differences are not symmetric."""
    if decision.verdict not in {Verdict.A_BETTER, Verdict.B_BETTER}:
        return ()
    gains = oriented(first - second, decision.direction)
    balance = float(np.sign(gains).mean()) * (1.0 if decision.verdict is Verdict.A_BETTER else -1.0)
    if balance > 0.0:
        return ()
    message = (
        "the signed rank test takes differences for symmetric, and they are not: few large ones go one way, many small "
        "ones the other"
    )
    return (Condition("skewed-differences", message, "compare without --pair, or look at the pairs", voids=True),)


def withheld(decision: Decision, conditions: Sequence[Condition]) -> Decision:
    """The decision with the guess it rests on, or "undecided" with the condition that voids its error rate."""
    reason = voided(conditions)
    if reason is None:
        guessed = next((item for item in conditions if item.code == "direction-guessed"), None)
        return replace(decision, why=f"{decision.why} ({guessed.message})") if guessed else decision
    return replace(
        decision,
        verdict=Verdict.UNDECIDED,
        why=f"{Verdict.UNDECIDED}: {reason.message}; next: {reason.next_step}",
        about_more_runs=None,
        chance=None,
        conditions=(),
    )
