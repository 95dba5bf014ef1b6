"""Racing: a candidate that looks better than the best is trained again, by turns with it, until it is clear or spent.

A search looks at many candidates, and the luckiest of equals looks best. So what looks better is repeated over seeds:
after each pair of trainings Student's t of the two sides is held against boundaries that are simulated for equals
(`analysis/sequential/boundaries`), at the error rate of the whole search divided by its candidates. All trainings
count, also the first, which made the candidate look good: the boundary pays for every candidate, raced or not. A race
ends early when the candidate falls behind, or could not win any more if it were better by two standard errors than it
seems; that can only lower the error rate. Who is ahead in the end without having won leads, and is not called better.
Scores that agree are no proof that there is no spread, for they are rounded: a step of the scale is added to it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np

from isorun.analysis.samples import FloatArray
from isorun.analysis.sequential import DEFAULT_SPENDING, Look, Schedule, cumulative_error, fractions
from isorun.analysis.sequential.boundaries import calibrate, null_paths
from isorun.analysis.sequential.paths import RunArray, moments, pooled_t
from isorun.errors import InputError

__all__ = ["ERROR_RATE", "Race", "RaceRule", "RaceStanding", "Runs", "race", "standing_of"]

Verdict = Literal["better", "ahead", "not better", "open"]
"""ahead: its mean is better, by no more than luck may give: it leads from now on, and is not called better."""
ERROR_RATE: Final = 0.05
_PATHS: Final = 200_000
_FEWEST: Final = 2
_HOPE: Final = 2.0
_DUST: Final = 1e-9
"""Relative distance of two scores that are the same but for how they were computed."""
_MOST_REPEATS: Final = 100


@dataclass(frozen=True, slots=True)
class RaceRule:
    """repeats: most trainings of a side. error_rate: that any of so many candidates no better is called better."""

    repeats: int
    error_rate: float = ERROR_RATE
    candidates: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.repeats <= _MOST_REPEATS:
            raise InputError("repeats are out of range", found=str(self.repeats), allowed=f"1 to {_MOST_REPEATS}")
        if not 0 < self.error_rate < 1 or self.candidates < 1:
            raise InputError("error_rate is out of range", found=str(self.error_rate), allowed="between 0 and 1")

    @property
    def critical(self) -> tuple[float, ...]:
        """What t must reach after 2, 3, … trainings a side."""
        return _critical(self.repeats, self.error_rate / self.candidates) if self.repeats >= _FEWEST else ()

    def judge(self, candidate: Sequence[float], incumbent: Sequence[float]) -> Verdict:
        """What the trainings made so far say, looked at after each pair of them; more is better."""
        pairs = min(len(candidate), len(incumbent), self.repeats)
        for size in range(_FEWEST, pairs + 1):
            verdict = self._look(np.array(candidate[:size]), np.array(incumbent[:size]))
            if verdict != "open":
                return verdict
        return "ahead" if pairs >= self.repeats else "open"

    def _look(self, candidate: FloatArray, incumbent: FloatArray) -> Verdict:
        size = len(candidate)
        ahead = float(candidate.mean() - incumbent.mean())
        if ahead <= 0:
            return "not better"
        rounding = _rounding(np.concatenate([candidate, incumbent]))
        spread = math.sqrt((candidate.var(ddof=1) + incumbent.var(ddof=1)) / 2 + rounding)
        if rounding == 0:
            return "not better"  # all scores are one, but for the last digits of a mean
        if ahead / (spread * math.sqrt(2 / size)) >= self.critical[size - _FEWEST]:
            return "better"
        hoped = ahead + _HOPE * spread * math.sqrt(2 / size)
        in_reach = hoped / (spread * math.sqrt(2 / self.repeats)) >= self.critical[-1]
        return "open" if in_reach else "ahead"


def _rounding(scores: FloatArray) -> float:
    """The variance that rounding hides: of a step of the scale, for which the smallest distance of two scores stands.

    Counted scores (a share of 200 images) agree by chance, and what agrees would have no spread at all. Of scores that
    are not counted it is too little to matter.
    """
    gaps = np.diff(np.sort(scores))
    steps = gaps[gaps > _DUST * float(np.abs(scores).max())]
    return float(steps.min()) ** 2 / 12 if len(steps) else 0.0


def _normal(rng: np.random.Generator, shape: tuple[int, int]) -> RunArray:
    return rng.standard_normal(shape)


def _student(a: RunArray, b: RunArray, schedule: Schedule) -> FloatArray:
    return pooled_t(moments(a, b, schedule))


@functools.cache
def _null(repeats: int) -> tuple[Schedule, FloatArray]:
    """Student's t at every look of many races of equals."""
    schedule = tuple(Look(size, size) for size in range(_FEWEST, repeats + 1))
    return schedule, null_paths(schedule, _normal, _student, most_paths=_PATHS)


@functools.cache
def _critical(repeats: int, error_rate: float) -> tuple[float, ...]:
    schedule, paths = _null(repeats)
    return calibrate(paths, cumulative_error(DEFAULT_SPENDING, fractions(schedule), error_rate)).critical


@dataclass(frozen=True, slots=True)
class Runs:
    """The trainings of one trial. scores: by repeat, more is better; None for one that failed or has not ended.

    ended: by repeat, whether it has. since: when the trial itself ended, which orders the candidates.
    """

    number: int
    since: float
    scores: dict[int, float | None] = field(default_factory=dict)
    ended: dict[int, bool] = field(default_factory=dict)

    @property
    def scored(self) -> list[float]:
        """The scores there are, in order."""
        return [score for _, score in sorted(self.scores.items()) if score is not None]

    def missing(self, size: int, most: int) -> list[tuple[int, int]]:
        """The training that is needed to have so many scores; none where there are enough, or no more is allowed."""
        if len(self.scored) >= size:
            return []
        waiting = [repeat for repeat, ended in self.ended.items() if not ended]
        repeat = min(waiting) if waiting else max(self.scores, default=-1) + 1
        return [(self.number, repeat)] if repeat < most else []


@dataclass(frozen=True, slots=True)
class RaceStanding:
    """best: the trial that leads; races: candidate, incumbent and verdict; wanted: trial and repeat."""

    best: int | None
    races: tuple[tuple[int, int, Verdict], ...] = ()
    wanted: tuple[tuple[int, int], ...] = ()


def standing_of(runs: Sequence[Runs], rule: RaceRule) -> RaceStanding:
    """Who leads, from the trainings there are: trials are candidates in the order they ended in."""
    incumbent: Runs | None = None
    races: list[tuple[int, int, Verdict]] = []
    for one in sorted(runs, key=lambda item: (item.since, item.number)):
        if one.scores.get(0) is None:
            continue
        if incumbent is None:
            incumbent = one
        elif one.scored[0] > math.fsum(incumbent.scored) / len(incumbent.scored):
            verdict, wanted = _race(one, incumbent, rule)
            races.append((one.number, incumbent.number, verdict))
            if verdict == "open":
                return RaceStanding(incumbent.number, tuple(races), tuple(wanted))
            incumbent = incumbent if verdict == "not better" else one
    return RaceStanding(None if incumbent is None else incumbent.number, tuple(races))


def _race(one: Runs, incumbent: Runs, rule: RaceRule) -> tuple[Verdict, list[tuple[int, int]]]:
    if rule.repeats < _FEWEST:
        return "better", []
    verdict = rule.judge(one.scored, incumbent.scored)
    if verdict != "open":
        return verdict, []
    size = max(min(len(one.scored), len(incumbent.scored)) + 1, _FEWEST)
    wanted = [*one.missing(size, rule.repeats), *incumbent.missing(size, rule.repeats)]
    return ("open", wanted) if wanted else ("not better", [])  # failed trainings used up what was allowed


@dataclass(frozen=True, slots=True)
class Race:
    """What came of a race. trainings: how many were made for it, beyond the scores that were given."""

    verdict: Verdict
    candidate_scores: tuple[float, ...]
    incumbent_scores: tuple[float, ...]
    trainings: int
    error_rate: float
    why: str

    @property
    def is_better(self) -> bool:
        """Whether the candidate is called better."""
        return self.verdict == "better"

    def __str__(self) -> str:
        return f"{self.verdict}: {self.why} ({self.trainings} trainings for it)"


def race(
    train: Callable[[Any, int], float],
    candidate: Any,
    incumbent: Any,
    *,
    repeats: int = 10,
    error_rate: float = ERROR_RATE,
    candidates: int = 1,
    direction: str = "higher",
    candidate_scores: Sequence[float] = (),
    incumbent_scores: Sequence[float] = (),
    seeds: Sequence[int] | None = None,
) -> Race:
    """Whether a candidate is better than the incumbent, by as few trainings of both as it takes.

    train(config, seed) gives a score. repeats: most trainings of a side. error_rate: that any of `candidates` (how many
    the whole search looks at) that is no better is called better. candidate_scores, incumbent_scores: those made so
    far, by the first seeds. seeds: of the first training of a side, the second, …; 1, 2, … if not given.
    """
    rule = RaceRule(repeats, error_rate, candidates)
    if direction not in {"higher", "lower"}:
        raise InputError("direction is not understood", found=repr(direction), allowed="higher, lower")
    order = tuple(seeds) if seeds is not None else tuple(range(1, repeats + 1))
    if len(order) < repeats:
        raise InputError("there are too few seeds", found=f"{len(order)} seeds", allowed=f"{repeats}, one a repeat")
    sign = 1.0 if direction == "higher" else -1.0
    sides = {
        "candidate": [float(one) for one in candidate_scores],
        "incumbent": [float(one) for one in incumbent_scores],
    }
    given = sum(map(len, sides.values()))
    verdict: Verdict = "open"
    while verdict == "open":
        verdict = _standing(rule, sides, sign)
        if verdict == "open":
            name = min(sides, key=lambda one: len(sides[one]))
            config = candidate if name == "candidate" else incumbent
            sides[name].append(float(train(config, order[len(sides[name])])))
    made = sum(map(len, sides.values())) - given
    why = _why(verdict, sides)
    return Race(verdict, tuple(sides["candidate"]), tuple(sides["incumbent"]), made, error_rate, why)


def _standing(rule: RaceRule, sides: Mapping[str, Sequence[float]], sign: float) -> Verdict:
    for name, scores in sides.items():
        if not all(map(math.isfinite, scores)):
            return "not better" if name == "candidate" else "better"
    candidate, incumbent = ([sign * score for score in sides[name]] for name in ("candidate", "incumbent"))
    if candidate and incumbent and candidate[0] <= math.fsum(incumbent) / len(incumbent):
        return "not better"  # it does not even look better: nothing is spent on it
    if rule.repeats < _FEWEST and candidate and incumbent:
        return "better"
    return rule.judge(candidate, incumbent)


def _why(verdict: Verdict, sides: Mapping[str, Sequence[float]]) -> str:
    told = []
    for name, scores in sides.items():
        finite = [score for score in scores if math.isfinite(score)]
        mean = f"{math.fsum(finite) / len(finite):.4g}" if finite else "no number"
        told.append(f"{name} {mean} over {len(scores)}")
    return f"{'; '.join(told)}{'; that may be luck' if verdict == 'ahead' else ''}"
