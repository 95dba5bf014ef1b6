"""Decisions: what is said after the runs made so far, and the path that led there."""

from __future__ import annotations

import enum
import math
from dataclasses import asdict, dataclass
from typing import Any

from isorun.analysis.evidence.condition import Condition
from isorun.analysis.inputs.samples import Interval
from isorun.analysis.pairwise.pairing_effect import PairingEffect

__all__ = ["Decision", "NextAction", "PathPoint", "Verdict", "next_action"]


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


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict after the runs made so far.

    stop: whether to stop making runs. why: one sentence. about_more_runs: about how many more runs a side until a
    verdict is as likely as not, averaged over what is not known of the effect; None when there is a verdict or no
    number is sensible. chance: how likely a verdict is by the last planned look, averaged in the same way; chances: the
    same for true effects of so many standard deviations, as pairs. error_rate: the chance of a claim under this rule
    when there is nothing to find; error_statement says it in words. estimate, ci95: the mean of A minus the mean of
    B in units of the metric (`estimate_of`), with an interval that holds although the comparison may have stopped when
    it looked good. pairing: what pairing gained or cost.
    """

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
    warnings: tuple[Condition, ...]
    test: str
    paired: bool
    estimate: float
    estimate_of: str
    ci95: Interval | None
    chances: tuple[tuple[float, float], ...] = ()
    pairing: PairingEffect | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON with stable keys, in the order of the fields."""
        data = {name: getattr(self, name) for name in self.__slots__}
        return data | {
            "verdict": str(self.verdict),
            "path": [point.to_json() for point in self.path],
            "warnings": [condition.to_json() for condition in self.warnings],
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
