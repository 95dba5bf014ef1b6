"""Projection: how likely a verdict is, and how many more runs it may take, judged from the runs already made.

Futures are drawn from what is not known. The difference is drawn from its posterior: normal around the observed one,
drawn towards 0 by a prior of `PRIOR_SD` standard deviations of a run. The spread of each side is drawn from its own
(Student's) uncertainty. Runs that follow are like those made, with that difference and that spread, and the rule is
asked at each look to come. A chance that takes the observed difference for the true one is too sure of itself.

No single number can be right for every true effect: from 6 runs a side, whatever is computed from the runs misses the
real chance by .22 on average for at least one of the effects 0, .5, .7 and 1; from 10 by .15 (linear programme over all
functions of t). The chance averages over effects, and is right among comparisons with the same one. `chances` says it
for each effect, and each of those is right by itself.

Futures are drawn by a generator, and whichever side draws first draws other numbers. Which one that is, is said by the
runs and not by who is called A: the same runs with A and B in each other's place have the same futures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from isorun.analysis.samples import FloatArray
from isorun.analysis.sequential import looks_within
from isorun.analysis.sequential.rules import Rule
from isorun.analysis.sequential.trace import ends, trace

__all__ = ["EFFECTS", "PRIOR_SD", "Projection", "project", "smoothed_resample"]

EFFECTS = (0.0, 0.5, 0.7, 1.0)
PRIOR_SD = 1.0
_MOST_FUTURES = 1_000
_FEWEST_FUTURES = 100
_RUNS_SIMULATED = 40_000
_TOO_MANY = 10_000
_RANK_EFFICIENCY = 3 / math.pi  # of rank tests against t tests of normal runs


@dataclass(frozen=True, slots=True)
class Projection:
    """more_runs: about how many more runs a side until a verdict is as likely as not; None when no number is sensible.

    chance: how likely a verdict is by `horizon` runs a side, the last look that is planned; None when it has been made.
    chances: the same for true effects of so many standard deviations of a run, as pairs (effect, chance).
    """

    more_runs: int | None
    chance: float | None
    chances: tuple[tuple[float, float], ...]
    horizon: int


def smoothed_resample(values: FloatArray, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """Runs like the given ones: resampled, with a little normal noise, and of the same mean and standard deviation.

    The noise (Silverman's bandwidth) stands for the values between and beyond those seen; shrinking towards the mean
    keeps the spread from growing by it (Silverman and Young 1987, Biometrika 74).
    """
    mean, sd = float(values.mean()), float(values.std(ddof=1))
    bandwidth = 1.06 * len(values) ** -0.2
    drawn = rng.choice(values, size=shape) - mean
    if sd == 0:
        return drawn + mean
    drawn *= math.sqrt(len(values) / (len(values) - 1))  # a resample spreads by n, the sample by n - 1
    noisy = drawn + bandwidth * sd * rng.standard_normal(shape)
    return np.asarray(mean + noisy / math.sqrt(1 + bandwidth**2))


def project(rule: Rule, a: FloatArray, b: FloatArray, rng: np.random.Generator) -> Projection:
    """Continue the comparison many times with runs like those made, and see when the rule would decide."""
    seen = looks_within(rule.schedule, len(a), len(b))
    last = rule.schedule[-1]
    turned = _is_turned(rule, a, b)
    first, second = _turn(a, b, paired=rule.paired) if turned else (a, b)
    beliefs = _Beliefs.of(first, second, paired=rule.paired)
    if seen == len(rule.schedule):
        return Projection(_plain_runs(rule, beliefs, rng) if rule.method == "fixed" else None, None, (), max(last))
    count = int(np.clip(_RUNS_SIMULATED // max(last), _FEWEST_FUTURES, _MOST_FUTURES))
    unknown = beliefs.draw(count, rng)
    given = [beliefs.draw_given(effect, count // 2, rng) for effect in EFFECTS]
    futures = _Futures.joined([unknown, *given])
    most = (last.n_b, last.n_a) if turned and not rule.paired else (last.n_a, last.n_b)
    sides = beliefs.continued((first, second), most, futures, rng)
    sides = _turn(*sides, paired=rule.paired) if turned else sides
    decided, more = _verdict_times(rule, sides, seen, len(a), len(b))
    parts = np.split(decided, np.cumsum([count, *[count // 2] * (len(EFFECTS) - 1)]))
    chance, *by_effect = (float(part.mean()) for part in parts)
    middle = int(np.sort(np.where(parts[0], more[:count], _TOO_MANY))[count // 2])
    return Projection(
        middle if middle < _TOO_MANY else None, chance, tuple(zip(EFFECTS, by_effect, strict=True)), max(last)
    )


def _is_turned(rule: Rule, a: FloatArray, b: FloatArray) -> bool:
    """Whether futures are drawn with the sides in each other's place: for one of the two ways to call them, if any."""
    runs_a, runs_b = zip(*rule.schedule, strict=True)
    other, runs_other = (-a, runs_a) if rule.paired else (b, runs_b)
    return (np.sort(a).tolist(), a.tolist(), runs_a) < (np.sort(other).tolist(), other.tolist(), runs_other)


def _turn(a: FloatArray, b: FloatArray, *, paired: bool) -> tuple[FloatArray, FloatArray]:
    """The sides in each other's place; of pairs, whose differences a holds, that is another sign."""
    return (-a, b) if paired else (b, a)


@dataclass(frozen=True, slots=True, eq=False)
class _Futures:
    """What is not known, drawn many times: the difference, and by how much each side spreads more than it did."""

    difference: FloatArray
    wider_a: FloatArray
    wider_b: FloatArray

    @classmethod
    def joined(cls, parts: list[_Futures]) -> _Futures:
        """All of them one after another."""
        columns = [(part.difference, part.wider_a, part.wider_b) for part in parts]
        return cls(*(np.concatenate(column) for column in zip(*columns, strict=True)))


@dataclass(frozen=True, slots=True, eq=False)
class _Beliefs:
    """What the runs made say: the difference, and the variance of each side and of its mean."""

    difference: float
    var_a: float
    var_b: float
    n_a: int
    n_b: int
    paired: bool

    @classmethod
    def of(cls, a: FloatArray, b: FloatArray, *, paired: bool) -> _Beliefs:
        """From the runs of both sides; of pairs, a holds the differences and b zeros."""
        a, b = np.sort(a), np.sort(b)  # sums in one fixed order
        difference = float(a.mean() - b.mean())
        return cls(difference, float(a.var(ddof=1)), float(b.var(ddof=1)), len(a), len(b), paired)

    def draw(self, count: int, rng: np.random.Generator) -> _Futures:
        """Differences from their posterior."""
        wider_a, wider_b = self._wider(count, rng)
        error, unit = self._errors(wider_a, wider_b)
        prior = (PRIOR_SD * unit) ** 2
        kept = prior / np.where(prior + error > 0, prior + error, 1.0)
        difference = kept * self.difference + np.sqrt(kept * error) * rng.standard_normal(count)
        return _Futures(difference, wider_a, wider_b)

    def draw_given(self, effect: float, count: int, rng: np.random.Generator) -> _Futures:
        """Differences of one size, for A or for B by the odds that the runs give."""
        wider_a, wider_b = self._wider(count, rng)
        error, unit = self._errors(wider_a, wider_b)
        size = effect * unit
        odds = special.expit(2 * size * self.difference / np.where(error > 0, error, 1.0))
        return _Futures(np.where(rng.random(count) < odds, size, -size), wider_a, wider_b)

    def continued(
        self,
        sides: tuple[FloatArray, FloatArray],
        most: tuple[int, int],
        futures: _Futures,
        rng: np.random.Generator,
    ) -> tuple[FloatArray, FloatArray]:
        """The runs made, the same in every future, followed by runs like them up to so many of each side.

        Where the true difference is not the observed one, each side's mean is off by its part of the error; where both
        are off alike is a draw of its own.
        """
        part_a, part_b = self.var_a / self.n_a * futures.wider_a**2, self.var_b / self.n_b * futures.wider_b**2
        whole = np.where(part_a + part_b > 0, part_a + part_b, 1.0)
        surprise = futures.difference - self.difference
        common = np.sqrt(part_a * part_b / whole) * rng.standard_normal(surprise.size)
        return (
            _followed(sides[0], most[0], futures.wider_a, common + surprise * part_a / whole, rng),
            _followed(sides[1], most[1], futures.wider_b, common - surprise * part_b / whole, rng),
        )

    def _wider(self, count: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        return tuple(np.sqrt((n - 1) / rng.chisquare(n - 1, count)) for n in (self.n_a, self.n_b))  # type: ignore[return-value]

    def _errors(self, wider_a: FloatArray, wider_b: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The squared error of the difference, and the standard deviation of a run (of pairs: of a difference)."""
        var_a, var_b = self.var_a * wider_a**2, self.var_b * wider_b**2
        return var_a / self.n_a + var_b / self.n_b, np.sqrt(var_a if self.paired else (var_a + var_b) / 2)


def _followed(
    values: FloatArray, runs: int, wider: FloatArray, moved: FloatArray, rng: np.random.Generator
) -> FloatArray:
    made = np.repeat(values[:runs, None], wider.size, axis=1)
    around = smoothed_resample(values - values.mean(), (runs - len(made), wider.size), rng)
    return np.concatenate([made, values.mean() + moved + wider * around])


def _verdict_times(
    rule: Rule, sides: tuple[FloatArray, FloatArray], seen: int, n_a: int, n_b: int
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which futures end with a claim, and after how many more runs of the side that needs more."""
    end = ends(trace(rule, *sides).since(seen))
    more = np.array([max(look.n_a - n_a, look.n_b - n_b) for look in rule.schedule[seen:]], dtype=np.int64)
    return end.decided, more[end.look]


def _plain_runs(rule: Rule, beliefs: _Beliefs, rng: np.random.Generator) -> int | None:
    """More runs a side until one test of all of them has an even chance, over all that is not known."""
    futures = beliefs.draw(_MOST_FUTURES, rng)
    variance = beliefs.var_a * futures.wider_a**2 + beliefs.var_b * futures.wider_b**2
    if not (variance > 0).all():
        return None
    sizes = np.abs(futures.difference) * np.sqrt(_RANK_EFFICIENCY / variance)
    needed = -float(special.ndtri(rule.levels[-1] / 2)) if rule.levels[-1] > 0 else math.inf
    now = min(beliefs.n_a, beliefs.n_b)
    runs = now + 1
    while special.ndtr(sizes * math.sqrt(runs) - needed).mean() < 0.5:
        runs = math.ceil(1.02 * runs)
        if runs > _TOO_MANY:
            return None
    return runs - now
