"""Racing: a candidate that looks better than the best is trained again, by turns with it, until it is clear or spent.

A search looks at many candidates, and the luckiest of equals looks best. So what looks better is repeated over seeds:
after each pair of trainings Student's t of the two sides is held against boundaries that are simulated for equals
(`analysis/sequential/boundaries`), at the error rate of the whole search divided by its candidates. All trainings
count, also the first, which made the candidate look good: the boundary pays for every candidate, raced or not. A race
ends early when the candidate falls behind, or could not win any more if it were better by two standard errors than it
seems; that can only lower the error rate. Who is ahead in the end without having won is the best from then on, and is
not called better. Scores that agree are no proof that there is no spread, for they are rounded: a step of the scale is
added to it.

Repeats that are copies of one draw count once: a training that fixes its seed repeats its luck. Where both sides are
single draws, the race ends at once. Nothing is called better by fewer than three draws a side: trainings that either
learn or do not agree closely in twos, and Student's law knows no such scores. A training that fails, or gives NaN, is
no evidence against its side: another one is made in its place, as long as repeats are left.

What was called better stays so: a race looks only at the trainings that it needed, and a trial keeps the rule that was
declared for it. A search that is made longer spends half as much error on what is added, and says what that comes to.
"""

from __future__ import annotations

import functools
import html
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import numpy as np
from scipy.special import stdtrit

from isorun.analysis.evidence.units import BOUNDS, distinct_among, significant_digits
from isorun.analysis.samples import FloatArray
from isorun.analysis.sequential import DEFAULT_SPENDING, Look, Schedule, cumulative_error, fractions
from isorun.analysis.sequential.boundaries import calibrate, null_paths
from isorun.analysis.sequential.paths import RunArray, moments, pooled_t
from isorun.errors import InputError

__all__ = [
    "ERROR_RATE",
    "Race",
    "RaceRule",
    "RaceStanding",
    "RaceVerdict",
    "Runs",
    "Units",
    "error_of_plans",
    "race",
    "rule_of",
    "standing_of",
    "units_by_score",
]

RaceVerdict = Literal["better", "ahead", "not better", "open"]
"""ahead: its mean is better, by no more than luck may give: it is the best from now on, and not called better."""
ERROR_RATE: Final = 0.05
_PATHS: Final = 200_000
_FEWEST: Final = 2
_CALLED_FROM: Final = 3
"""Draws a side. Of 25 equals that learn nothing half of the time, two draws called one better in 14 % of searches."""
_HOPE: Final = 2.0
_SQUARES_VANISH: Final = 2.0**-500
"""The squares of smaller scores may be 0, and with them the spread."""
_LARGER: Final = 2.0**600
_DUST: Final = 1e-9
"""Relative distance of two scores that are the same but for how they were computed."""
_MOST_REPEATS: Final = 100
_FEWEST_CALLED: Final = 10
"""Of simulated races, so many must be called by chance for their share to be known."""
Units = Callable[[int], Sequence[int]]
"""Of so many scores, the first ones of a side, the places of those that were drawn independently."""
_SAME: Final = 1e-6
"""Relative distance of scores that single precision does not tell apart."""
_TELLING_DIGITS: Final = 4
_TELLING_REPEATS: Final = 5
"""A score of fewer digits may come again by chance; so many times in a row it is no evidence of as many draws."""


def units_by_score(scores: Sequence[float]) -> Units:
    """The draws among scores of which nothing else is known: one where all agree, beyond what rounding explains."""
    return lambda size: _distinct(scores[:size])


def _distinct(scores: Sequence[float]) -> Sequence[int]:
    every, ordered = range(len(scores)), sorted(scores)
    near = _SAME * max(map(abs, scores), default=0.0)
    if all(other - one > near for one, other in itertools.pairwise(ordered)):
        return every
    if ordered[-1] - ordered[0] > near:
        return [int(place) for place in distinct_among(np.array(scores, dtype=np.float64))]
    first = float(f"{scores[0]:.9g}")
    proves = significant_digits(first) >= _TELLING_DIGITS or len(scores) >= _TELLING_REPEATS
    return [0] if proves and abs(first) not in BOUNDS else every


def _is_constant(scores: FloatArray) -> bool:
    return bool(np.ptp(scores) <= _SAME * np.abs(scores).max())


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

    def judge(self, candidate: Sequence[float], incumbent: Sequence[float]) -> RaceVerdict:
        """What the trainings made so far say, looked at after each pair of them; more is better."""
        return self.judged(candidate, incumbent)[0]

    def judged(
        self,
        candidate: Sequence[float],
        incumbent: Sequence[float],
        units: tuple[Units, Units] | None = None,
    ) -> tuple[RaceVerdict, int]:
        """The same, and after how many pairs that was clear: what is trained later does not change it.

        units: the draws among the scores of both sides, where more is known of them than scores.
        """
        drawn, against = units or (units_by_score(candidate), units_by_score(incumbent))
        pairs = min(len(candidate), len(incumbent), self.repeats)
        for size in range(_FEWEST, pairs + 1):
            ours, theirs = (
                [scores[at] for at in of(size)] for scores, of in ((candidate, drawn), (incumbent, against))
            )
            known = min(len(ours), len(theirs))
            verdict: RaceVerdict = "open"
            if known >= _FEWEST:
                verdict = self._look(np.array(ours[:known]), np.array(theirs[:known]))
            elif _lead(np.array(ours), np.array(theirs)) <= 0:
                verdict = "not better"
            elif max(len(ours), len(theirs)) < _FEWEST:
                verdict = "ahead"  # more copies of both would say no more
            if verdict != "open":
                return verdict, size
        return ("ahead" if pairs >= self.repeats else "open"), pairs

    def _look(self, candidate: FloatArray, incumbent: FloatArray) -> RaceVerdict:
        size = len(candidate)
        ahead = _lead(candidate, incumbent)
        if ahead <= 0:
            return "not better"
        if max(np.abs(candidate).max(), np.abs(incumbent).max()) < _SQUARES_VANISH:
            return self._look(candidate * _LARGER, incumbent * _LARGER)
        rounding = _rounding(np.concatenate([candidate, incumbent]))
        spread = math.sqrt(_variance(candidate, incumbent) + rounding)
        varies = not (_is_constant(candidate) and _is_constant(incumbent))  # else the distance would be its own error
        if varies and size >= _CALLED_FROM and ahead / (spread * math.sqrt(2 / size)) >= self.critical[size - _FEWEST]:
            return "better"
        hoped = ahead + _HOPE * spread * math.sqrt(2 / size)
        in_reach = hoped / (spread * math.sqrt(2 / self.repeats)) >= self.critical[-1]
        return "open" if in_reach else "ahead"


def _variance(candidate: FloatArray, incumbent: FloatArray) -> float:
    """That of both sides. A side that agrees with itself may be copies of one draw: the other one speaks for both."""
    sides = [side for side in (candidate, incumbent) if not _is_constant(side) or abs(float(side[0])) in BOUNDS]
    return math.fsum(float(side.var(ddof=1)) for side in sides) / max(len(sides), 1)


def _lead(candidate: FloatArray, incumbent: FloatArray) -> float:
    """By how much its mean is higher; 0 where that is no more than the last digits of how scores were computed."""
    lead = float(candidate.mean() - incumbent.mean())
    return (
        lead if lead > _DUST * max(float(np.abs(candidate).max()), float(np.abs(incumbent).max())) else min(lead, 0.0)
    )


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
    spent = cumulative_error(DEFAULT_SPENDING, fractions(schedule), error_rate)
    if error_rate * paths.shape[1] >= _FEWEST_CALLED:
        return calibrate(paths, spent).critical
    # Too rare to be simulated: the law of each look is known, and their errors add up to no more than is allowed.
    parts = zip(schedule, np.diff(spent, prepend=0.0), strict=True)
    return tuple(float(-stdtrit(2 * look.n_a - 2, part)) for look, part in parts)


def rule_of(number: int, plans: Sequence[int], repeats: int) -> RaceRule:
    """The rule for a trial as a candidate. plans: how many trials the search was to have, one larger after another.

    The first plan has the whole error rate, each that follows half of the one before for the trials that it adds.
    """
    starts = [0, *plans[:-1]]
    place = max(at for at, start in enumerate(starts) if start <= number)
    return RaceRule(repeats, ERROR_RATE / 2**place, plans[place] - starts[place])


def error_of_plans(plans: Sequence[int]) -> float:
    """That any of all their candidates that is no better is called better."""
    return float(sum(ERROR_RATE / 2**place for place in range(len(plans))))


@dataclass(frozen=True, slots=True)
class Runs:
    """The trainings of one trial. scores: by repeat, more is better; None for one that failed or has not ended.

    ended: by repeat, whether it has. since: when the trial itself ended, which orders the candidates. rule: for it as a
    candidate, where it is not that of all. drawn: the draws among its scores, where more is known of them than scores.
    """

    number: int
    since: float
    scores: dict[int, float | None] = field(default_factory=dict)
    ended: dict[int, bool] = field(default_factory=dict)
    rule: RaceRule | None = None
    drawn: Units | None = None

    @property
    def units(self) -> Units:
        """Which of its scores were drawn independently."""
        return self.drawn or units_by_score(self.scored)

    @property
    def copied(self) -> tuple[int, int]:
        """How many scores there are, and how many draws they are."""
        return (size := len(self.scored)), len(self.units(size))

    @property
    def scored(self) -> list[float]:
        """The scores there are, in order."""
        return [score for _, score in sorted(self.scores.items()) if score is not None]

    def scored_within(self, most: int) -> list[float]:
        """Those of the first so many trainings: what a later rule allows beyond is none of an earlier race's."""
        return [score for repeat, score in sorted(self.scores.items()) if score is not None and repeat < most]

    def missing(self, size: int, most: int) -> list[tuple[int, int]]:
        """The training that is needed to have so many scores; none where there are enough, or no more is allowed."""
        if len(self.scored) >= size:
            return []
        waiting = [repeat for repeat, ended in self.ended.items() if not ended]
        repeat = min(waiting) if waiting else max(self.scores, default=-1) + 1
        return [(self.number, repeat)] if repeat < most else []


@dataclass(frozen=True, slots=True)
class RaceStanding:
    """bests: the trials that were the best, one after another. races: candidate, incumbent and verdict.

    wanted: trial and repeat. copied: trials of which trainings were copies: how many there are, and how many count.
    """

    bests: tuple[int, ...]
    races: tuple[tuple[int, int, RaceVerdict], ...] = ()
    wanted: tuple[tuple[int, int], ...] = ()
    copied: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def best(self) -> int | None:
        """The trial that is the best now; none where none has a score."""
        return self.bests[-1] if self.bests else None


def standing_of(runs: Sequence[Runs], rule: RaceRule) -> RaceStanding:
    """Which trial is the best, from the trainings there are: trials are candidates in the order they ended in.

    A candidate looks better by the trainings that the best trial had needed until then, whatever it was trained since.
    """
    found = _stands(runs, rule)
    raced = {number for one, other, _ in found.races for number in (one, other)}
    counts = {one.number: one.copied for one in runs if one.number in raced}
    return replace(found, copied={number: told for number, told in counts.items() if told[0] > told[1]})


def _stands(runs: Sequence[Runs], rule: RaceRule) -> RaceStanding:
    incumbent: Runs | None = None
    needed = 1
    bests: list[int] = []
    races: list[tuple[int, int, RaceVerdict]] = []
    for one in sorted(runs, key=lambda item: (item.since, item.number)):
        if one.scores.get(0) is None:
            continue
        if incumbent is not None:
            if one.scored[0] <= math.fsum(incumbent.scored[:needed]) / len(incumbent.scored[:needed]):
                continue
            verdict, size, wanted = _race(one, incumbent, one.rule or rule)
            races.append((one.number, incumbent.number, verdict))
            if verdict == "open":
                return RaceStanding(tuple(bests), tuple(races), tuple(wanted))
            if verdict == "not better":
                needed = max(needed, size)
                continue
            needed = max(size, 1)
        incumbent = one
        bests.append(one.number)
    return RaceStanding(tuple(bests), tuple(races))


def _race(one: Runs, incumbent: Runs, rule: RaceRule) -> tuple[RaceVerdict, int, list[tuple[int, int]]]:
    """The verdict, after how many pairs it was clear, and what has to be trained where it is not."""
    if rule.repeats < _FEWEST:
        return "ahead", 1, []
    ours, theirs = one.scored_within(rule.repeats), incumbent.scored_within(rule.repeats)
    verdict, size = rule.judged(ours, theirs, (one.units, incumbent.units))
    if verdict != "open":
        return verdict, size, []
    more = max(size + 1, _FEWEST)
    wanted = [*one.missing(more, rule.repeats), *incumbent.missing(more, rule.repeats)]
    if wanted:
        return "open", size, wanted
    # Failed ones used up what was allowed. They are no evidence: where they are the best trial's, who is ahead leads.
    leads = len(ours) >= more and _lead(np.array(ours[:more]), np.array(theirs)) > 0
    return ("ahead" if leads else "not better"), size, []


@dataclass(frozen=True, slots=True)
class Race:
    """What came of a race. trainings: how many were made for it, beyond the scores that were given."""

    verdict: RaceVerdict
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

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(str(self))}</p>"


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
    sides = (_given(0, candidate_scores, sign), _given(1, incumbent_scores, sign))
    given = sum(len(side.scores) for side in sides)
    verdict: RaceVerdict = "open"
    while verdict == "open":
        verdict, wanted = _standing(rule, *sides)
        for number, repeat in wanted[:1]:
            score = sign * float(train(incumbent if number else candidate, order[repeat]))
            sides[number].scores[repeat] = score if math.isfinite(score) else None
    made = sum(len(side.scores) for side in sides) - given
    ours, theirs = (tuple(math.nan if one is None else sign * one for one in side.scores.values()) for side in sides)
    return Race(verdict, ours, theirs, made, error_rate, _why(verdict, sides, sign))


def _given(number: int, scores: Sequence[float], sign: float) -> Runs:
    known = {at: sign * float(one) if math.isfinite(one) else None for at, one in enumerate(scores)}
    return Runs(number, 0.0, known)


def _standing(rule: RaceRule, one: Runs, incumbent: Runs) -> tuple[RaceVerdict, list[tuple[int, int]]]:
    """The verdict, and what has to be trained where there is none: the side that has had fewer trainings first."""
    if one.scores and one.scores[0] is None:
        return "not better", []  # as a trial that failed, which is no candidate
    if one.scored and incumbent.scored and one.scored[0] <= math.fsum(incumbent.scored) / len(incumbent.scored):
        return "not better", []  # it does not even look better: nothing is spent on it
    if not (one.scored and incumbent.scored):
        wanted = [*one.missing(1, rule.repeats), *incumbent.missing(1, rule.repeats)]
        return ("open" if wanted else "ahead"), wanted  # a best trial without any score is no opponent
    verdict, _, wanted = _race(one, incumbent, rule)
    return verdict, sorted(wanted, key=lambda missing: missing[1])


def _why(verdict: RaceVerdict, sides: Sequence[Runs], sign: float) -> str:
    told, copied = [], []
    for name, side in zip(("candidate", "incumbent"), sides, strict=True):
        scores, failed = side.scored, len(side.scores) - len(side.scored)
        mean = f"{sign * math.fsum(scores) / len(scores):.4g}" if scores else "no number"
        told.append(f"{name} {mean} over {len(side.scores)}{f', of which {failed} gave no number' if failed else ''}")
        trainings, draws = side.copied
        copied += [f"{trainings} of the {name} count as {draws}"] if draws < trainings else []
    said = f"{'; '.join(told)}{'; that may be luck' if verdict == 'ahead' else ''}"
    if not copied:
        return said
    said += f"; repeats are copies: they gave the same score whatever the seed ({', '.join(copied)})"
    return f"{said}; let train(config, seed) use its seed"
