"""Decisions: what is said after the runs made so far, and the path that led there.

Naming: a decision on A and B told with the names of the two sides and of what was counted.

Withholding: a claim whose error rate does not hold is not made, in the verdict and not only in a footnote.

Nor is a claim that rests on a guess made without saying so.
"""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from isorun.analysis import Told
from isorun.analysis.evidence.condition import Condition, voided
from isorun.analysis.pairwise.effects import PairingEffect
from isorun.analysis.samples import FloatArray, Interval, oriented

__all__ = ["Decision", "NextAction", "PathPoint", "Verdict", "named", "next_action", "skewed_pairs", "withheld"]


class Verdict(enum.StrEnum):
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

    def reworded(text: str) -> str:
        if noun not in _COUNTED_AS_RUNS:
            text = re.sub(r"\b(\d+) runs? (a side|of A)\b", rf"\1 {noun}s \2", text, count=1)
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
