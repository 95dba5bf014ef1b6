"""Checks: is a change worse than its baseline by more than a margin that matters?

Non-inferiority with a margin m, a group at a time. What is tested is the new runs, each bettered by m, against the runs
of the baseline:

    worse       they still lose more often than not (a new run bettered by m against a run of the baseline)
    not worse   they win more often than not
    undecided   neither is shown

Both are one-sided tests at the error rate of the check: Brunner and Munzel's, which lets spreads differ, or the signed
rank test where both sides have the same seeds. Over several groups the claim "worse" is corrected by Holm (a change
that is nowhere worse by more than m fails in at most alpha of checks), and "not worse" has to be shown for each of
them, which needs no correction (Berger 1982, Technometrics 24). A run that ended without a finite value counts as worse
than every run that has one; ranks need no more of it. Where every seed ended with the same bits on both sides nothing
has changed, and there is nothing to test.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

import numpy as np

from isorun.analysis import Told
from isorun.analysis.evidence import Condition, some, voided
from isorun.analysis.evidence.scales import wide_margin
from isorun.analysis.evidence.units import FEWEST_UNITS
from isorun.analysis.pairwise import MeanDifference, paired_t, welch
from isorun.analysis.samples import FloatArray, Interval, adjusted, higher_is_better, mean_of, snapped
from isorun.analysis.sequential import FEWEST_RUNS
from isorun.analysis.sequential.verdict import decide
from isorun.errors import InputError

__all__ = [
    "METRIC",
    "POINTS",
    "Check",
    "CheckVerdict",
    "CheckedGroup",
    "CheckedSide",
    "GroupEvidence",
    "Margin",
    "SameBits",
    "judge_changes",
    "refuse_nonsense",
]


POINTS: Final = "points"
METRIC: Final = "metric"
"""What margins are given in: hundredths of a share or of a percentage, or the metric's own numbers."""


class CheckVerdict(enum.StrEnum):
    """What a check says, of one group and of all of them."""

    WORSE = "worse"
    NOT_WORSE = "not worse"
    UNCHANGED = "unchanged"
    UNDECIDED = "undecided"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True)
class Margin:
    """The drop that does not matter.

    size: in the metric's own numbers. given, unit: as it was said, in "points" or in the unit of the metric (""):
    a point is a hundredth of a share, and one of a percentage.
    """

    size: float
    given: float
    unit: str = ""

    @classmethod
    def of(cls, given: float, unit: str | None, scale: str) -> Margin:
        """A margin as it was said. unit: "points" or "metric"; without it, points where the scale has them."""
        unit = unit or (POINTS if scale else METRIC)
        if unit == METRIC:
            return cls(given, given)
        if not scale:
            raise InputError(
                "a margin in points is one of a share or a percentage, and this metric is neither",
                allowed=f"margin_unit={METRIC!r} (--margin-unit {METRIC}): its own numbers",
            )
        return cls(given / 100.0 if scale == "fraction" else given, given, POINTS)

    @property
    def words(self) -> str:
        """The margin with its unit."""
        return f"{self.given:g} point{'' if self.given == 1 else 's'}" if self.unit else f"{self.given:g}"


@dataclass(frozen=True, slots=True, eq=False)
class CheckedSide:
    """The runs of one group on one side.

    values: one a unit, NaN where a run of it ended without a finite value. labels: what each unit is called. failed:
    runs that did not end and were not made again. weights: the digests that the runs of each seed ended with.
    conditions: what is known against how the rows of a table were counted.
    """

    values: FloatArray
    labels: tuple[str, ...]
    runs: int
    noun: str = "run"
    failed: int = 0
    weights: Mapping[str, frozenset[str]] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()

    @property
    def units(self) -> int:
        """How many units there are."""
        return int(self.values.size)

    @property
    def finite(self) -> FloatArray:
        """The values of units that have one."""
        kept: FloatArray = self.values[np.isfinite(self.values)]
        return kept

    @property
    def diverged(self) -> int:
        """Units without a finite value."""
        return self.units - int(self.finite.size)

    @property
    def mean(self) -> float | None:
        """Over units that have a value."""
        return mean_of(self.finite) if self.finite.size else None

    @property
    def sd(self) -> float | None:
        """Over units that have a value; None for fewer than two."""
        return float(self.finite.std(ddof=1)) if self.finite.size > 1 else None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        counts = {"runs": self.runs, "units": self.units, "failed": self.failed, "diverged": self.diverged}
        return {**counts, "mean": self.mean, "sd": self.sd}


@dataclass(frozen=True, slots=True)
class SameBits:
    """Seeds that left weights on both sides, and how many of them ended with the same ones.

    by_numbers: how many of those compared have no weights on one side, so that only what they logged was compared.
    """

    compared: int = 0
    same: int = 0
    by_numbers: int = 0

    @classmethod
    def of(cls, new: CheckedSide, baseline: CheckedSide) -> SameBits:
        """A seed whose own runs do not agree with each other agrees with nothing."""
        both = [seed for seed in new.weights if seed in baseline.weights]
        same = [seed for seed in both if new.weights[seed] == baseline.weights[seed] and len(new.weights[seed]) == 1]
        return cls(len(both), len(same))


@dataclass(frozen=True, slots=True)
class GroupEvidence:
    """What is known of one group before it is judged. paired: the i-th units of both sides have the same seed."""

    name: str
    new: CheckedSide
    baseline: CheckedSide
    paired: bool = False
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckedGroup:
    """One group, judged.

    p_worse, p_not_worse: one-sided, None where nothing was tested; the first is corrected for the number of groups.
    more_runs: about how many more units a side make a verdict as likely as not. difference: new minus baseline.
    """

    name: str
    verdict: CheckVerdict
    why: str
    new: CheckedSide
    baseline: CheckedSide
    paired: bool
    same_bits: SameBits
    difference: float | None = None
    interval: Interval | None = None
    p_worse: float | None = None
    p_not_worse: float | None = None
    more_runs: int | None = None
    conditions: tuple[Condition, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "group": self.name,
            "verdict": str(self.verdict),
            "why": self.why,
            "new": self.new.to_json(),
            "baseline": self.baseline.to_json(),
            "difference": self.difference,
            "difference_ci90": None if self.interval is None else list(self.interval),
            "p_worse": self.p_worse,
            "p_not_worse": self.p_not_worse,
            "paired": self.paired,
            "about_more_runs": self.more_runs,
            "same_weights": {"seeds": self.same_bits.compared, "same": self.same_bits.same},
        }


@dataclass(frozen=True, slots=True)
class Check(Told):
    """What a check found.

    study, baseline: what was held against what, as it is named. scale: how values are written ("fraction", "percent",
    ""). changed: files that both sides were made of and that differ. command: what repeats it.
    """

    told_as: ClassVar[str] = "check"

    study: str
    baseline: str
    metric: str
    direction: str
    scale: str
    margin: Margin
    alpha: float
    groups: tuple[CheckedGroup, ...]
    conditions: tuple[Condition, ...] = ()
    changed: tuple[str, ...] = ()
    command: str = ""

    @property
    def verdict(self) -> CheckVerdict:
        """Worse where any group is; not worse where each that can be judged is; undecided otherwise."""
        judged = {group.verdict for group in self.groups} - {CheckVerdict.NOT_JUDGED}
        if CheckVerdict.WORSE in judged:
            return CheckVerdict.WORSE
        if not judged or CheckVerdict.UNDECIDED in judged:
            return CheckVerdict.UNDECIDED
        return CheckVerdict.UNCHANGED if judged == {CheckVerdict.UNCHANGED} else CheckVerdict.NOT_WORSE

    @property
    def failed(self) -> int:
        """Runs of the new side that did not end."""
        return sum(group.new.failed for group in self.groups)

    @property
    def all_conditions(self) -> tuple[Condition, ...]:
        """What weakens the evidence, each once."""
        return tuple(dict.fromkeys((*self.conditions, *(one for group in self.groups for one in group.conditions))))

    @property
    def error_statement(self) -> str:
        """Which errors are bounded, and by what."""
        several = f" over all {len(self.groups)} groups" if len(self.groups) > 1 else ""
        return (
            f"A change that is not worse by more than {self.margin.words} is called worse in at most {self.alpha:.0%} "
            f"of checks{several}, and one that is worse by more is called not worse in at most {self.alpha:.0%}, if "
            "the number of runs was fixed before they were made"
        )

    def exit_code(self, *, strict: bool = False) -> int:
        """3 for a regression, 1 where runs did not end, else 0. strict: 3 also where nothing is shown."""
        if self.verdict is CheckVerdict.WORSE:
            return 3
        if self.failed:
            return 1
        return 3 if strict and self.verdict is CheckVerdict.UNDECIDED else 0

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "verdict": str(self.verdict),
            "study": self.study,
            "baseline": self.baseline,
            "metric": self.metric,
            "direction": self.direction,
            "margin": self.margin.size,
            "margin_given": self.margin.given,
            "margin_unit": self.margin.unit or "metric",
            "alpha": self.alpha,
            "groups": [group.to_json() for group in self.groups],
            "changed": list(self.changed),
            "warnings": [condition.to_json() for condition in self.all_conditions],
            "command": self.command,
        }


def judge_changes(
    evidence: Sequence[GroupEvidence], *, direction: str, margin: Margin, alpha: float = 0.05
) -> tuple[CheckedGroup, ...]:
    """Every group with its verdict. direction: "higher" or "lower" is better."""
    refuse_nonsense(margin.given, alpha)
    tested = [_tested(item, direction, margin, alpha) for item in evidence]
    given = [np.nan if group.p_worse is None else group.p_worse for group in tested]
    corrected = adjusted(np.array(given, dtype=np.float64), "holm").tolist() if given else []
    return tuple(
        _judged(replace(group, p_worse=None if np.isnan(p) else p), margin, alpha)
        for group, p in zip(tested, corrected, strict=True)
    )


def refuse_nonsense(margin: float, alpha: float) -> None:
    """A margin or an error rate by which nothing could be judged."""
    if not 0.0 < alpha < 0.5:
        raise InputError("the error rate of a check", found=f"{alpha:g}", allowed="more than 0 and less than 0.5")
    if not np.isfinite(margin) or margin < 0.0:
        raise InputError("a margin is a drop that does not matter", found=f"{margin:g}", allowed="0 or more")


def _tested(item: GroupEvidence, direction: str, margin: Margin, alpha: float) -> CheckedGroup:
    """The group with its p values and how far apart its sides are; its verdict is still to come."""
    new, old = item.new, item.baseline
    conditions = (*item.conditions, *_evidence_conditions(item, margin))
    apart = _difference(item) if new.finite.size and old.finite.size else MeanDifference(float("nan"))
    known = apart if np.isfinite(apart.difference) else None
    group = CheckedGroup(
        item.name,
        CheckVerdict.UNDECIDED,
        "",
        new,
        old,
        item.paired,
        SameBits.of(new, old),
        difference=known.difference if known else None,
        interval=known.ci95 if known else None,
        conditions=conditions,
    )
    if min(new.units, old.units) < FEWEST_RUNS or voided(conditions):
        short = FEWEST_RUNS - min(new.units, old.units)
        return replace(group, more_runs=short if short > 0 else None)
    first, second = _ranked(item, direction, margin)
    decision = decide(first, second, direction="higher", method="fixed", alpha=2.0 * alpha, paired=item.paired)
    look = decision.path[0]
    if look.p_value is None or look.statistic is None:
        return group
    nearer, further = look.p_value / 2.0, 1.0 - look.p_value / 2.0
    ahead = look.statistic > 0
    return replace(
        group,
        p_worse=further if ahead else nearer,
        p_not_worse=nearer if ahead else further,
        more_runs=decision.about_more_runs,
    )


def _difference(item: GroupEvidence) -> MeanDifference:
    """New minus baseline with its 90 % interval, which goes with two one-sided tests at 5 %."""
    both = np.isfinite(item.new.values) & np.isfinite(item.baseline.values) if item.paired else None
    if both is not None and both.any():
        return paired_t((item.new.values - item.baseline.values)[both], confidence=0.9)
    return welch(item.new.finite, item.baseline.finite, confidence=0.9)


def _ranked(item: GroupEvidence, direction: str, margin: Margin) -> tuple[FloatArray, FloatArray]:
    """Both sides turned so that higher is better, the new one bettered by the margin, what diverged at the bottom."""
    sign = 1.0 if higher_is_better(direction) else -1.0
    first, second = sign * item.new.values + margin.size, sign * item.baseline.values
    known = np.concatenate([first, second])
    known = known[np.isfinite(known)]
    bottom = float(known.min() - (known.max() - known.min()) - 1.0) if known.size else 0.0
    both = np.where(np.isfinite(np.concatenate([first, second])), np.concatenate([first, second]), bottom)
    settled = snapped(both)  # 0.90 + 0.05 and 0.95 are one value, and have to share a rank
    return settled[: first.size], settled[first.size :]


def _judged(group: CheckedGroup, margin: Margin, alpha: float) -> CheckedGroup:
    bits, told = group.same_bits, voided(group.conditions)
    if bits.compared and bits.same == bits.compared and not group.new.failed:
        why = f"{some(bits.same, 'seed')} ended with the same weights as the baseline's, bit for bit"
        return replace(group, verdict=CheckVerdict.UNCHANGED, why=why, more_runs=None)
    if group.new.failed and group.new.units < FEWEST_UNITS:  # not left out: it may be what the change broke
        return replace(group, why=f"{group.new.failed} of {some(group.new.failed + group.new.runs, 'new run')} failed")
    if min(group.new.units, group.baseline.units) < FEWEST_UNITS:
        return replace(group, verdict=CheckVerdict.NOT_JUDGED, why=_one_draw(group))
    if told is not None:
        return replace(group, why=told.message)
    if group.p_worse is not None and group.p_worse <= alpha:
        why = f"worse by more than {margin.words}" if margin.size else "worse"
        return replace(group, verdict=CheckVerdict.WORSE, why=why, more_runs=None)
    if group.p_not_worse is not None and group.p_not_worse <= alpha:
        if group.new.failed:
            return replace(
                group, why=f"{some(group.new.failed, 'run')} failed, and those that end may be the better ones"
            )
        why = f"not worse by {margin.words} or more" if margin.size else "better"
        return replace(group, verdict=CheckVerdict.NOT_WORSE, why=why, more_runs=None)
    return replace(group, why=_open(group, margin))


def _one_draw(group: CheckedGroup) -> str:
    few = "the new runs" if group.new.units < FEWEST_UNITS else "the baseline's runs"
    side = group.new if group.new.units < FEWEST_UNITS else group.baseline
    changed = "; its weights changed" if group.same_bits.compared else ""
    return f"{few} are {some(side.units, 'independent draw')}{changed}"


def _open(group: CheckedGroup, margin: Margin) -> str:
    fewest = min(group.new.units, group.baseline.units)
    if fewest < FEWEST_RUNS:
        return f"{some(fewest, group.new.noun)} on a side are too few for a verdict, which takes {FEWEST_RUNS}"
    shown = f"worse by more than {margin.words} or by less" if margin.size else "worse or better"
    more = f"; about {group.more_runs} more {group.new.noun}s a side make a verdict as likely as not"
    return f"not shown whether it is {shown}{more if group.more_runs else ''}"


def _evidence_conditions(item: GroupEvidence, margin: Margin) -> tuple[Condition, ...]:
    found = []
    if item.new.diverged or item.baseline.diverged:
        message = (
            f"{some(item.new.diverged, 'new unit')} and {item.baseline.diverged} of the baseline ended without a "
            "finite value: they count as worse than all others, and are in no mean"
        )
        found.append(Condition("diverged", message, "isorun doctor says why", (item.name,)))
    if item.new.failed:
        message = f"{some(item.new.failed, 'new run')} did not finish: a check cannot pass without them"
        found.append(Condition("runs-failed", message, "isorun report says why", (item.name,)))
    if item.baseline.failed:
        message = (
            f"{some(item.baseline.failed, 'run')} of the baseline did not finish: those that did may be the better ones"
        )
        found.append(Condition("baseline-failed", message, "make the baseline again", (item.name,)))
    found += wide_margin(margin.size, margin.words, item.baseline.mean or 0.0, (item.name,))
    return tuple(found)
