"""Replications: stored runs and new ones in; repeated, replicated, reproduced, not, or undecided out.

Bits are asked first: where every stored seed that was run again ended with the same weights, there is nothing left to
test. Where bits differ or cannot be had, the mean of the new units is held against that of the stored ones, with a
margin m that does not matter:

    equivalent    the difference lies within ±m: two one-sided t tests of Welch's, at alpha each (Schuirmann 1987)
    not           it lies outside: one of two t tests against ±m, at alpha / 2 each, divided by the number of groups
    undecided     neither is shown; about how many more runs would show it is said

Equivalence has to be shown for every group, which needs no correction (Berger 1982, Technometrics 24). Looking after
every run (max_runs above runs), both claims spend their error over all looks (`sequential`). Runs without a finite
value have no place in a mean: where the new runs have such and the stored ones have not, Fisher's exact test says
whether that is chance; of several looks each has its share of the error.

Which of the three words a result that holds is given follows from what was replaced (`setups`).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from scipy import special

from isorun.analysis import Told
from isorun.analysis.checks import CheckedSide, Margin, SameBits
from isorun.analysis.evidence import Condition, some, voided
from isorun.analysis.pairwise import welch
from isorun.analysis.replications.setups import Replacement, word_for
from isorun.analysis.samples import FloatArray, Interval, is_constant
from isorun.analysis.sequential import (
    DEFAULT_SPENDING,
    FEWEST_RUNS,
    Look,
    Schedule,
    against_stored,
    cumulative_error,
    fractions,
    looks_within,
)
from isorun.analysis.sequential.equivalence import plain_equivalence, spending_equivalence
from isorun.analysis.sequential.nearly_normal import interval_of, moments_of, skewed_runs, success_or_failure
from isorun.errors import InputError

__all__ = [
    "SPREADS",
    "GroupOutcome",
    "GroupRuns",
    "ReplicatedGroup",
    "Replication",
    "ReplicationRule",
    "judge_groups",
]

SPREADS: Final = 2.0
"""Without a margin: so many standard deviations of the stored units, about what single runs of them spread by."""
_MOST_MORE: Final = 500
_ROUNDING: Final = 64.0 * 2.0**-52
_TOO_FEW_STORED: Final = "the stored runs are too few for more here to show it"


class GroupOutcome(enum.StrEnum):
    """What is said of one group."""

    SAME_BITS = "same bits"
    EQUIVALENT = "equivalent"
    NOT = "not"
    UNDECIDED = "undecided"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True)
class ReplicationRule:
    """What is declared before the first new run. runs: new units a group; max_runs: up to which more may be made.

    margin: None for two standard deviations of the stored units.
    """

    runs: int = FEWEST_RUNS
    max_runs: int | None = None
    margin: Margin | None = None
    alpha: float = 0.05

    def __post_init__(self) -> None:
        if not 0.0 < self.alpha < 0.5:
            raise InputError("the error rate of a replication", found=f"{self.alpha:g}", allowed="between 0 and 0.5")
        if self.runs < 1:
            raise InputError("how many runs are made again", found=str(self.runs), allowed="1 or more")
        if self.margin is not None and not (self.margin.size > 0 and math.isfinite(self.margin.size)):
            raise InputError(
                "a margin is a difference that does not matter", found=f"{self.margin.given:g}", allowed="> 0"
            )
        if self.max_runs is not None and (self.max_runs < self.runs or self.runs < FEWEST_RUNS):
            raise InputError(
                "looks after every run cannot be planned",
                found=f"-n {self.runs}, --max-runs {self.max_runs}",
                allowed=f"-n of {FEWEST_RUNS} or more, and a maximum that is not below it",
            )

    @property
    def last(self) -> int:
        """The most new units a group."""
        return self.max_runs or self.runs

    def schedule(self, stored: int, new: int) -> Schedule:
        """The looks: one at all runs, or one after every run of the plan."""
        if self.max_runs is None or self.max_runs == self.runs:
            return (Look(new, stored),)
        return against_stored(stored, max_runs=self.max_runs, min_runs=self.runs)

    def error_of_look(self, new: int, stored: int) -> float:
        """What a test that is made anew at every look may err by at this one: its share of alpha, all of it at one."""
        if self.max_runs is None or self.max_runs == self.runs:
            return self.alpha
        shares = fractions(against_stored(max(stored, FEWEST_RUNS), max_runs=self.max_runs, min_runs=self.runs))
        spent = (0.0, *cumulative_error(DEFAULT_SPENDING, shares, self.alpha))
        look = min(max(new - self.runs, 0), len(shares) - 1)
        return spent[look + 1] - spent[look]


@dataclass(frozen=True, slots=True)
class GroupRuns:
    """What is known of one group before it is judged. new: the units that were drawn for it, in the order of the plan.

    bits: stored seeds that were run again, and how many ended with the same bits. failed: new runs that did not end.
    about: what else a reader should know of how it was counted.
    """

    name: str
    stored: CheckedSide
    new: CheckedSide
    bits: SameBits
    failed: int = 0
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplicatedGroup:
    """One group, judged. difference: new minus stored, with its 90 % interval. margin: what was held against it.

    more_runs: about how many more new units would settle it; None where nothing is known of that, or none would.
    """

    name: str
    outcome: GroupOutcome
    why: str
    stored: CheckedSide
    new: CheckedSide
    bits: SameBits
    failed: int = 0
    margin: float | None = None
    difference: float | None = None
    interval: Interval | None = None
    more_runs: int | None = None
    conditions: tuple[Condition, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "group": self.name,
            "outcome": str(self.outcome),
            "why": self.why,
            "stored": self.stored.to_json(),
            "new": {**self.new.to_json(), "failed": self.failed},
            "same_bits": {"seeds": self.bits.compared, "same": self.bits.same},
            "margin": self.margin,
            "difference": self.difference,
            "difference_ci90": None if self.interval is None else list(self.interval),
            "about_more_runs": self.more_runs,
        }


@dataclass(frozen=True, slots=True)
class Replication(Told):
    """What came of running a package again.

    replaced: what of the setup is another one than that of the stored runs. folder, store: where code and new runs are.
    stopped: why not all was run; empty if it was.
    """

    told_as: ClassVar[str] = "replication"

    package: str
    address: str
    study: str
    metric: str
    direction: str
    scale: str
    rule: ReplicationRule
    groups: tuple[ReplicatedGroup, ...]
    replaced: tuple[Replacement, ...] = ()
    runs_made: int = 0
    folder: str = ""
    store: str = ""
    command: str = ""
    stopped: str = ""
    conditions: tuple[Condition, ...] = ()

    @property
    def verdict(self) -> str:
        """Not where any group is; undecided where one that can be judged is; else by what was replaced."""
        found = {group.outcome for group in self.groups} - {GroupOutcome.NOT_JUDGED}
        if GroupOutcome.NOT in found:
            return "not"
        if not found or GroupOutcome.UNDECIDED in found:
            return "undecided"
        return word_for(self.replaced)

    @property
    def by_bits(self) -> bool:
        """Whether every group that was judged ended with the same bits."""
        return {group.outcome for group in self.groups} - {GroupOutcome.NOT_JUDGED} == {GroupOutcome.SAME_BITS}

    @property
    def by_numbers(self) -> bool:
        """Whether weights were missing in a group of these, so that the same bits are those of logged numbers alone."""
        return self.by_bits and any(group.bits.by_numbers for group in self.groups)

    @property
    def failed(self) -> int:
        """New runs that did not end."""
        return sum(group.failed for group in self.groups)

    @property
    def all_conditions(self) -> tuple[Condition, ...]:
        """What weakens the evidence, each once."""
        return tuple(dict.fromkeys((*self.conditions, *(one for group in self.groups for one in group.conditions))))

    @property
    def error_statement(self) -> str:
        """Which errors are bounded, and by what."""
        looks = f" over all looks at {self.rule.runs} to {self.rule.last} runs" if self.rule.max_runs else ""
        return (
            f"A result that lies outside the margin is called equivalent in at most {self.rule.alpha:.0%} of "
            f"replications, and one that lies within it is called not in at most {self.rule.alpha:.0%}{looks} (t "
            "tests, for nearly normal runs; the number of runs was fixed before they were made)"
        )

    def exit_code(self) -> int:
        """3 where it does not hold, 1 where runs did not end, else 0."""
        if self.verdict == "not":
            return 3
        return 1 if self.failed else 0

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "verdict": self.verdict,
            "bit_by_bit": self.by_bits,
            "package": self.package,
            "address": self.address,
            "study": self.study,
            "metric": self.metric,
            "direction": self.direction,
            "alpha": self.rule.alpha,
            "runs": self.rule.runs,
            "max_runs": self.rule.last,
            "margin_given": None if self.rule.margin is None else self.rule.margin.given,
            "margin_unit": None if self.rule.margin is None else self.rule.margin.unit or "metric",
            "groups": [group.to_json() for group in self.groups],
            "replaced": [item.to_json() for item in self.replaced],
            "runs_made": self.runs_made,
            "folder": self.folder,
            "store": self.store,
            "command": self.command,
            "stopped": self.stopped,
            "warnings": [condition.to_json() for condition in self.all_conditions],
        }


def judge_groups(evidence: Sequence[GroupRuns], rule: ReplicationRule) -> tuple[ReplicatedGroup, ...]:
    """Every group with what is said of it."""
    return tuple(_judged(item, rule, max(len(evidence), 1)) for item in evidence)


def _judged(item: GroupRuns, rule: ReplicationRule, groups: int) -> ReplicatedGroup:
    told = ReplicatedGroup(
        item.name, GroupOutcome.UNDECIDED, "", item.stored, item.new, item.bits, item.failed, conditions=item.conditions
    )
    if item.bits.compared and item.bits.same == item.bits.compared and not item.failed:
        ended = "gave the same numbers; weights were not seen" if item.bits.by_numbers else "ended with the same bits"
        why = f"{some(item.bits.same, 'seed')} run again {ended}"
        known = (*item.conditions, *_weights_unknown(item))
        return replace(told, outcome=GroupOutcome.SAME_BITS, why=why, conditions=known)
    if item.failed:
        return replace(told, why=f"{some(item.failed, 'new run')} did not finish")
    if (void := voided(item.conditions)) is not None:
        return replace(told, why=void.message)
    if item.new.diverged or item.stored.diverged:
        return _judged_by_divergence(told, rule, groups)
    return _judged_by_means(told, rule, groups)


def _weights_unknown(item: GroupRuns) -> Iterator[Condition]:
    """Numbers as they were printed may agree where the weights behind them do not."""
    if item.bits.by_numbers:
        message = "runs left no digest of their weights: what they logged, as they rounded it, is all that was compared"
        step = "isorun.result(weights=model), or isorun.digest, in the training"
        yield Condition("weights-unknown", message, step, (item.name,))


def _judged_by_divergence(told: ReplicatedGroup, rule: ReplicationRule, groups: int) -> ReplicatedGroup:
    """Runs without a finite value: another share of them than in the stored runs is no replication."""
    new, stored = told.new, told.stored
    p = _fisher(new.diverged, new.units, stored.diverged, stored.units)
    counted = f"{new.diverged} of {new.units} new runs and {stored.diverged} of {stored.units} stored ones diverged"
    if p <= rule.error_of_look(new.units, stored.units) / groups:
        return replace(told, outcome=GroupOutcome.NOT, why=f"{counted} (p = {p:.2g})")
    return replace(told, why=f"{counted}: they have no value to be compared")


def _fisher(first: int, of_first: int, second: int, of_second: int) -> float:
    """Fisher's exact test, two-sided: tables that are as likely as this one or less."""
    both, total = first + second, of_first + of_second
    ways = [
        math.comb(of_first, k) * math.comb(of_second, both - k)
        for k in range(max(0, both - of_second), min(both, of_first) + 1)
    ]
    here = math.comb(of_first, first) * math.comb(of_second, second)
    return sum(way for way in ways if way <= here) / math.comb(total, both)


def _judged_by_means(told: ReplicatedGroup, rule: ReplicationRule, groups: int) -> ReplicatedGroup:
    new, stored = told.new.values, told.stored.values
    if stored.size < FEWEST_RUNS:
        why = f"the package has {some(stored.size, told.stored.noun)} of it, and a verdict takes {FEWEST_RUNS}"
        bits = "; its bits differ" if told.bits.compared else ""
        return replace(told, outcome=GroupOutcome.NOT_JUDGED, why=f"{why}{bits}")
    spread = float(stored.std(ddof=1))
    size = rule.margin.size if rule.margin is not None else SPREADS * spread
    if not size:
        why = "the stored runs do not vary, so that they give no margin: state one"
        return replace(told, outcome=GroupOutcome.NOT_JUDGED, why=why)
    told = replace(told, margin=size)
    if new.size:
        apart = welch(new, stored, confidence=0.9)
        interval = apart.ci95 and interval_of(new, stored, confidence=0.9)
        told = replace(told, difference=apart.difference, interval=interval)
    if new.size < FEWEST_RUNS:
        short = FEWEST_RUNS - new.size
        why = f"{some(new.size, told.new.noun)} run again, and a verdict takes {FEWEST_RUNS}"
        return replace(told, why=why, more_runs=short)
    few = success_or_failure(new, stored, size, rule.alpha, (told.name,))
    if few:
        return replace(told, why=few[0].message, conditions=(*told.conditions, *few))
    if _lies_on_border(new, stored, size):
        why = (
            "no run of a side differs from another, and the difference is the margin itself: more runs cannot settle it"
        )
        return replace(told, why=why)
    told = replace(told, conditions=(*told.conditions, *skewed_runs(new, stored, (told.name,))))
    claim = _claim(new, stored, size, rule, groups)
    if claim is GroupOutcome.UNDECIDED:
        return _open(told, size, rule, groups)
    inside = "within" if claim is GroupOutcome.EQUIVALENT else "outside"
    return replace(told, outcome=claim, why=f"the difference lies {inside} the margin")


def _lies_on_border(new: FloatArray, stored: FloatArray, size: float) -> bool:
    """Whether nothing varies and the sides differ by the margin, but for the rounding of floating point."""
    if not (is_constant(new) and is_constant(stored)):
        return False
    noise = _ROUNDING * max(abs(float(new[0])), abs(float(stored[0])), size)
    return abs(abs(float(new[0]) - float(stored[0])) - size) <= noise


def _claim(new: FloatArray, stored: FloatArray, size: float, rule: ReplicationRule, groups: int) -> GroupOutcome:
    """What the first look says that says anything; all looks together hold the error rate."""
    schedule = rule.schedule(stored.size, new.size)
    looks = schedule[: looks_within(schedule, new.size, stored.size)]
    if not looks:
        return GroupOutcome.UNDECIDED
    at = moments_of(new[:, None], stored[:, None], looks)
    single, error = len(schedule) == 1, rule.alpha / (2.0 * groups)
    inner, outer = (
        plain_equivalence(size, rate) if single else spending_equivalence(size, schedule, DEFAULT_SPENDING, rate)
        for rate in (rule.alpha, error)
    )
    within = inner.statistic(at) >= inner.critical_values(at)
    outside = outer.outside(at) >= outer.critical_values(at)
    for inside, out in zip(within[:, 0], outside[:, 0], strict=True):
        if inside or out:
            return GroupOutcome.EQUIVALENT if inside else GroupOutcome.NOT
    return GroupOutcome.UNDECIDED


def _open(told: ReplicatedGroup, size: float, rule: ReplicationRule, groups: int) -> ReplicatedGroup:
    """Neither is shown: about how many new units would show it, if the difference stays what it is."""
    more = _more(told.new.values, told.stored.values, size, (rule.alpha, rule.alpha / (2.0 * groups)))
    then = f"about {more} more {told.new.noun}s would show it" if more else _TOO_FEW_STORED
    return replace(told, why=f"not shown whether the difference lies within the margin; {then}", more_runs=more)


def _more(new: FloatArray, stored: FloatArray, size: float, rates: tuple[float, float]) -> int | None:
    """rates: those at which the claims "equivalent" and "not" are made."""
    room = size - abs(float(new.mean() - stored.mean()))
    rate = rates[0] if room > 0 else rates[1]
    at = moments_of(new[:, None], stored[:, None], (Look(new.size, stored.size),))
    spread, other = float(at.var_a[0, 0]), float(at.var_b[0, 0]) / stored.size
    for count in range(new.size + 1, new.size + _MOST_MORE):
        own = spread / count
        freedom = (own + other) ** 2 / (own**2 / (count - 1) + other**2 / (stored.size - 1))
        if math.sqrt(own + other) * float(special.stdtrit(freedom, 1 - rate)) <= abs(room):
            return count - new.size
    return None
