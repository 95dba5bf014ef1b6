"""Contrasts: how far values of a factor are apart, counted in units, each of which gives one number.

A contrast weighs the points of a design: +1 for one environment and -1 for the baseline where factors are varied one at
a time; in a factorial design the mean of all points with a value against the mean of those with the baseline's. Every
unit (a seed that took effect) has a value at each of these points, so that it gives one difference, and Student's test
of these differences is about units, however many points there are. That is the mixed model in which seeds may act in
each environment in their own way; `(1 | seed)` alone takes the points of one seed for independent runs, and two points
that a switch did not move are copies of each other. Where nothing pairs the runs (level `default`), points are
independent samples, as in Welch's test.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np
from scipy.special import stdtr, stdtrit

from isorun.analysis.evidence.units import Counting, paired_units, unit_labels, units_of
from isorun.analysis.measurements import Group, Measurements, Values
from isorun.analysis.pairwise import paired_t
from isorun.analysis.samples import FloatArray, Interval
from isorun.errors import InputError

__all__ = [
    "PAIRED",
    "SAME_SIGN",
    "QuestionValues",
    "RunValues",
    "UnitDifference",
    "UnitValues",
    "Weights",
    "aliased",
    "crossed_shares",
    "interaction_weights",
    "main_weights",
    "neighbours",
    "variance_ratio",
]

Weights = Mapping[str, float]
Points = Mapping[str, Mapping[str, str]]
PAIRED: Final = "paired t"
APART: Final = "Welch"
SAME_SIGN: Final = "sign flips"
_ALPHA: Final = 0.05
_DRAWS: Final = 50_000


@dataclass(frozen=True, slots=True, eq=False)
class UnitDifference:
    """A contrast: its difference with interval and p, None where the units allow none. units: how many there are.

    test: what p and interval come from, and they always agree: "paired t", "Welch", "sign flips", "" where there is
    none. per_unit: the difference of each unit. low, high: the mean at the points with a negative and a positive
    weight, by unit where units are paired. unmatched: labels (seeds) that not all of the points have.
    """

    difference: float | None = None
    interval95: Interval | None = None
    p: float | None = None
    units: int = 0
    test: str = ""
    per_unit: FloatArray = field(default_factory=lambda: np.empty(0))
    low: FloatArray = field(default_factory=lambda: np.empty(0))
    high: FloatArray = field(default_factory=lambda: np.empty(0))
    unmatched: tuple[str, ...] = ()


class UnitValues(Protocol):
    """Where the values of a design's points come from, and what counts as one unit of them."""

    @property
    def noun(self) -> str:
        """What a unit is."""

    def tested(self, weights: Weights) -> UnitDifference:
        """The contrast with these weights."""


@dataclass(frozen=True, slots=True)
class RunValues:
    """The runs of every point, counted as a study counts them. paired: runs of the same seed belong together."""

    table: Measurements
    groups: Mapping[str, Group]
    counting: Counting
    paired: bool

    @property
    def noun(self) -> str:
        """What a unit is."""
        return self.counting.noun

    def tested(self, weights: Weights) -> UnitDifference:
        """The contrast with these weights; nothing but the labels that are there where a point has no runs."""
        values = {point: self.groups[point].values for point in weights if point in self.groups}
        if len(values) < len(weights) or any(not item.finite.size for item in values.values()):
            return self._unmatched(values.values())
        if not self.paired:
            return _apart(
                {name: units_of(self.table, item, self.counting).values for name, item in values.items()}, weights
            )
        try:
            found = paired_units(self.table, list(values.values()), "seed", self.counting)
        except InputError:  # no seed finished everywhere
            return self._unmatched(values.values())
        return _together(dict(zip(values, found.sides, strict=True)), weights, found.unmatched)

    def _unmatched(self, values: Iterable[Values]) -> UnitDifference:
        """Nothing is known but which seeds there are."""
        seeds = unit_labels(self.table, "seed")
        every = dict.fromkeys(seeds[row] for item in values for row in item.rows.tolist())
        return UnitDifference(unmatched=tuple(label for label in every if label))


@dataclass(frozen=True, slots=True)
class QuestionValues:
    """The value of every test question, by point and then by seed: a question counts once, whatever the seeds.

    What is told then holds for these trained models and other questions, not for other seeds.
    """

    by_point: Mapping[str, Mapping[str, FloatArray]]
    noun: str = "question"

    def tested(self, weights: Weights) -> UnitDifference:
        """The contrast with these weights, over the seeds that all points have."""
        seeds = [set(self.by_point.get(point, {})) for point in weights]
        shared, every = sorted(set.intersection(*seeds)), set.union(*seeds)
        if not shared:
            return UnitDifference(unmatched=tuple(sorted(every)))
        means = {point: np.mean([self.by_point[point][seed] for seed in shared], axis=0) for point in weights}
        if len({mean.shape for mean in means.values()}) > 1:
            return UnitDifference(unmatched=tuple(sorted(every)))
        return _together(means, weights, tuple(sorted(every - set(shared))))


def _together(values: Mapping[str, FloatArray], weights: Weights, unmatched: tuple[str, ...]) -> UnitDifference:
    """One difference a unit, and Student's test of them."""
    low, high = (_weighed(values, weights, sign) for sign in (-1.0, 1.0))
    per_unit = high - low
    largest = max(float(np.abs(side).max()) for side in (low, high))
    per_unit = np.where(np.abs(per_unit) <= 8.0 * sys.float_info.epsilon * largest, 0.0, per_unit)
    count, mean = int(per_unit.size), float(per_unit.mean())
    found: dict[str, Any] = {
        "difference": mean,
        "units": count,
        "per_unit": per_unit,
        "low": low,
        "high": high,
        "unmatched": unmatched,
    }
    if count > 1 and float(np.ptp(per_unit)) <= 16.0 * sys.float_info.epsilon * largest:
        return _constant(float(np.median(per_unit)), found)
    tested = paired_t(per_unit)
    return UnitDifference(**found, p=tested.p, interval95=tested.ci95, test=PAIRED if tested.p is not None else "")


def _constant(difference: float, found: dict[str, Any]) -> UnitDifference:
    """The same difference in every unit: there is no spread to go by, but that all have the same sign says something.

    Were there no effect, each would have had either sign: 2 of 2**n ways. From six units on that is rare enough, and
    then every difference but this one is rejected as well.
    """
    found = {**found, "difference": difference}
    p = 2.0 ** (1 - found["units"])
    if difference == 0.0 or p >= _ALPHA:
        return UnitDifference(**found)
    return UnitDifference(**found, p=p, interval95=(difference, difference), test=SAME_SIGN)


def _weighed(values: Mapping[str, FloatArray], weights: Weights, sign: float) -> FloatArray:
    """The mean of the points whose weight has this sign, so that high minus low is the contrast."""
    parts = [sign * weight * values[point] for point, weight in weights.items() if sign * weight > 0.0]
    return np.asarray(np.sum(parts, axis=0), dtype=np.float64)


def _apart(values: Mapping[str, FloatArray], weights: Weights) -> UnitDifference:
    """Points as independent samples whose spreads may differ (Welch 1947, for any contrast)."""
    means = {point: np.array([sample.mean()]) for point, sample in values.items()}
    low, high = (_weighed(means, weights, sign) for sign in (-1.0, 1.0))
    found = UnitDifference(float((high - low)[0]), units=min(map(len, values.values())), low=low, high=high)
    if found.units < 2:
        return found
    parts = [weights[point] ** 2 * float(sample.var(ddof=1)) / sample.size for point, sample in values.items()]
    total, largest = math.fsum(parts), max(abs(float(mean[0])) for mean in means.values())
    assert found.difference is not None
    if math.sqrt(total) <= 10.0 * sys.float_info.epsilon * largest:
        return found
    df = total**2 / math.fsum(part**2 / (len(sample) - 1) for part, sample in zip(parts, values.values(), strict=True))
    error = math.sqrt(total)
    reach = float(stdtrit(df, 0.975)) * error
    return UnitDifference(
        found.difference,
        (found.difference - reach, found.difference + reach),
        2.0 * float(stdtr(df, -abs(found.difference) / error)),
        found.units,
        APART,
        low=low,
        high=high,
    )


def main_weights(points: Points, factor: str, value: str, against: str) -> dict[str, float]:
    """The mean of all points with this value against the mean of those with the other one."""
    return _mean_of(points, {factor: value}, 1.0) | _mean_of(points, {factor: against}, -1.0)


def interaction_weights(points: Points, first: tuple[str, str, str], second: tuple[str, str, str]) -> dict[str, float]:
    """By how much more the first factor moves the result where the second has its value: a difference of differences.

    first, second: factor, value and the baseline's value. Half of it is what textbooks of two-level designs call the
    interaction effect.
    """
    (a, high_a, low_a), (b, high_b, low_b) = first, second
    signs = itertools.product(((high_a, 1.0), (low_a, -1.0)), ((high_b, 1.0), (low_b, -1.0)))
    weights: dict[str, float] = {}
    for (value_a, sign_a), (value_b, sign_b) in signs:
        weights |= _mean_of(points, {a: value_a, b: value_b}, sign_a * sign_b)
    return weights


def _mean_of(points: Points, values: Mapping[str, str], sign: float) -> dict[str, float]:
    chosen = [name for name, point in points.items() if all(point[factor] == value for factor, value in values.items())]
    return {name: sign / len(chosen) for name in chosen}


def aliased(contrasts: Mapping[str, Weights]) -> dict[str, tuple[str, ...]]:
    """For each contrast those that weigh the points in the same way, or the opposite one: nothing tells them apart."""
    alike: dict[tuple[tuple[str, float], ...], list[str]] = {}
    for name, weights in contrasts.items():
        ordered = sorted(weights.items())
        first = math.copysign(1.0, ordered[0][1]) if ordered else 1.0
        alike.setdefault(tuple((point, round(first * weight, 12)) for point, weight in ordered), []).append(name)
    return {name: tuple(other for other in names if other != name) for names in alike.values() for name in names}


def neighbours(points: Points, factor: str, value: str, against: str) -> Iterator[tuple[str, str]]:
    """The points that differ in this factor alone: the one with the baseline's value, and the one with this value."""
    by_values = {tuple(sorted(point.items())): name for name, point in points.items()}
    for name, point in points.items():
        if point[factor] == against:
            other = by_values.get(tuple(sorted({**point, factor: value}.items())))
            if other is not None:
                yield name, other


def variance_ratio(some: FloatArray, whole: FloatArray) -> tuple[float, float, float]:
    """The variance of some values by that of others of the same units, with its 95 % interval.

    The interval is that of Morgan (1939) and Pitman (1939) for pairs of normal values, which may be correlated: with r
    their correlation and t Student's quantile at n - 2 degrees of freedom, the ratio times K +- sqrt(K^2 - 1), K = 1 +
    2 (1 - r^2) t^2 / (n - 2). Needs three units, and values in `whole` that differ. Values that come in steps, of which
    some are therefore equal, may each be off by half a step, and so may each sd; their correlation is not relied on.
    """
    few, many = float(some.std(ddof=1)), float(whole.std(ddof=1))
    ratio, off, free = (few / many) ** 2, value_step(some, whole) / 2, some.size - 2
    if off:
        apart = _pitman(0.0, free)
        least, most = max(few - off, 0.0) / (many + off), (few + off) / max(many - off, off)
        return ratio, least**2 / apart, most**2 * apart
    around = _pitman(float(np.corrcoef(some, whole)[0, 1]), free)
    return ratio, ratio / around, ratio * around


def value_step(some: FloatArray, whole: FloatArray) -> float:
    """The step in which values come, as an accuracy of few images does; 0 where no two of one kind are equal."""
    if all(np.unique(values).size == values.size for values in (some, whole)):
        return 0.0
    gaps = np.diff(np.unique(np.concatenate((some, whole))))
    # Sums of the same numbers in another order are one value.
    apart = gaps[gaps > 1e-9 * max(float(np.abs(whole).max()), float(np.ptp(whole)))]
    return float(apart.min()) if apart.size else 0.0


def _pitman(correlation: float, free: int) -> float:
    """By how many times a ratio of variances may be off: K + sqrt(K^2 - 1) upwards, and 1 by that downwards."""
    width = 1.0 + 2.0 * (1.0 - correlation**2) * float(stdtrit(free, 1 - _ALPHA / 2)) ** 2 / free
    return width + math.sqrt(max(width**2 - 1.0, 0.0))


def crossed_shares(values: FloatArray, labels: Mapping[str, Sequence[str]]) -> dict[str, Interval] | None:
    """95 % intervals of the shares of the variance, of each source and of the rest (""); None where a cell is missing.

    labels: by source, what each value belongs to. Every combination of them has one value. Then sums of squares over
    what they are expected to be are independent and of chi-square, so that the variances that may have made them follow
    from draws of these (generalized confidence intervals: Weerahandi 1993; Burdick, Borror and Montgomery 2005).
    """
    places = {source: np.unique(np.asarray(own, dtype=str), return_inverse=True)[1] for source, own in labels.items()}
    sizes = {source: int(place.max()) + 1 for source, place in places.items()}
    cells = {tuple(cell) for cell in zip(*(place.tolist() for place in places.values()), strict=True)}
    rest = values.size - 1 - sum(size - 1 for size in sizes.values())
    if not len(cells) == values.size == math.prod(sizes.values()) or rest < 1:
        return None
    away, random = values - values.mean(), np.random.default_rng(_DRAWS)
    each = {name: values.size / size for name, size in sizes.items()}
    squares = {name: float((np.bincount(places[name], away) ** 2).sum()) / each[name] for name in sizes}
    left = max(float((away**2).sum()) - sum(squares.values()), 0.0)
    noise = left / random.chisquare(rest, _DRAWS)
    drawn = {
        name: np.maximum(squares[name] / random.chisquare(size - 1, _DRAWS) - noise, 0.0) / each[name]
        for name, size in sizes.items()
    }
    total = sum(drawn.values(), start=noise)
    if not (total > 0.0).all():
        return None
    ends = {name: np.quantile(own / total, [_ALPHA / 2, 1 - _ALPHA / 2]) for name, own in (*drawn.items(), ("", noise))}
    return {name: (float(low), float(high)) for name, (low, high) in ends.items()}
