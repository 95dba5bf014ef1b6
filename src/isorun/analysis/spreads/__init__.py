"""Spread: how much one number varies between runs.

Standard deviations have n - 1 in the denominator. Their interval assumes normal values: (n - 1) s² / sigma² follows a
chi-square law with n - 1 degrees of freedom (Sheskin, Handbook of Parametric and Nonparametric Statistical Procedures,
test 3). It is the interval of Table 2 of Pham et al. (ASE 2020).

The interquartile mean: the mean of the middle half of the values (rliable; `scipy.stats.trim_mean(x, 0.25)`).

Outliers: runs that lie far from the others, by a measure that the outliers themselves cannot stretch.

Summaries: what the runs of each group look like, the numbers of Pham et al. (ASE 2020), tables 2 and 3.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, overload

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray
from scipy.special import chdtri

from isorun.analysis import Told
from isorun.analysis.evidence import Condition, some
from isorun.analysis.evidence.units import Counting, Units, counted, counting_of, units_of
from isorun.analysis.measurements import Group, Measurements, read_table
from isorun.analysis.samples import FloatArray, Interval, as_numbers, finite_sample, mean_of
from isorun.errors import InputError

__all__ = [
    "SD_CONFIDENCE",
    "GroupSummary",
    "Outlier",
    "Spread",
    "Summaries",
    "column_names",
    "interquartile_mean",
    "outliers",
    "pooled_sd",
    "sd_interval",
    "spread",
    "summarize",
]

SD_CONFIDENCE = 0.90


@dataclass(frozen=True, slots=True)
class Spread:
    """What n finite values look like; None wherever there are too few values to say.

    excluded: how many values were NaN or infinite and therefore left out of everything else.
    sd_interval: the 90 % chi-square interval of the standard deviation. sd_draws: how many values that were drawn
    independently it rests on; values of one draw count once in it, so that it does not narrow by repeating them.
    whiskers: the most extreme values within 1.5 interquartile ranges of the box (Tukey).
    """

    n: int
    excluded: int
    mean: float | None
    sd: float | None
    sd_interval: tuple[float, float] | None
    minimum: float | None
    quartile_low: float | None
    median: float | None
    quartile_high: float | None
    maximum: float | None
    whiskers: tuple[float, float] | None
    sd_draws: int = 0

    @property
    def max_difference(self) -> float | None:
        """The largest minus the smallest value; None for fewer than two."""
        if self.n < 2 or self.minimum is None or self.maximum is None:
            return None
        return self.maximum - self.minimum

    @property
    def relative_difference(self) -> float | None:
        """The largest difference over the smallest value (RelDiff of the paper); None where that is zero."""
        if self.max_difference is None or not self.minimum:
            return None
        return self.max_difference / abs(self.minimum)

    @property
    def relative_sd(self) -> float | None:
        """The standard deviation over the mean (coefficient of variation); None where the mean is zero."""
        return None if self.sd is None or not self.mean else self.sd / abs(self.mean)


def spread(values: Iterable[float], draws: Sequence[Hashable] | None = None) -> Spread:
    """The spread of the finite ones among `values`. draws: what each is a value of; without it each is a draw."""
    every = as_numbers(list(values), "the sample")
    kept = np.isfinite(every)
    finite = every[kept]
    excluded = int(every.size - finite.size)
    drawn = finite.size if draws is None else len(set(itertools.compress(draws, kept)))
    if not finite.size:
        return Spread(0, excluded, None, None, None, None, None, None, None, None, None)
    # Powers of two scale exactly, and keep sums and squares of huge values (a diverged training) within range.
    exponent = math.frexp(float(np.abs(finite).max()))[1]
    return _rescaled(_spread_of(np.ldexp(finite, -exponent), excluded, drawn), exponent)


def _spread_of(finite: NDArray[np.float64], excluded: int, drawn: int) -> Spread:
    low, middle, high = (float(quartile) for quartile in np.percentile(finite, (25, 50, 75)))
    mean, sd = _mean_and_sd(finite)
    return Spread(
        n=int(finite.size),
        excluded=excluded,
        mean=mean,
        sd=sd,
        sd_interval=_interval_from(sd, drawn),
        minimum=float(finite.min()),
        quartile_low=low,
        median=middle,
        quartile_high=high,
        maximum=float(finite.max()),
        whiskers=_whiskers(finite, low, high),
        sd_draws=drawn,
    )


def _interval_from(sd: float | None, drawn: int) -> tuple[float, float] | None:
    """None where one draw says nothing of others; of values that do not vary, whatever they rest on, it is that."""
    if not sd:
        return None if sd is None else (0.0, 0.0)
    return sd_interval(sd, drawn) if drawn > 1 else None


def _rescaled(seen: Spread, exponent: int) -> Spread:
    def back(value: float | None) -> float | None:
        return None if value is None else _times_power_of_two(value, exponent)

    def pair(values: tuple[float, float] | None) -> tuple[float, float] | None:
        return values and (_times_power_of_two(values[0], exponent), _times_power_of_two(values[1], exponent))

    return replace(
        seen,
        mean=back(seen.mean),
        sd=back(seen.sd),
        sd_interval=pair(seen.sd_interval),
        minimum=back(seen.minimum),
        quartile_low=back(seen.quartile_low),
        median=back(seen.median),
        quartile_high=back(seen.quartile_high),
        maximum=back(seen.maximum),
        whiskers=pair(seen.whiskers),
    )


def _times_power_of_two(value: float, exponent: int) -> float:
    try:
        return math.ldexp(value, exponent)
    except OverflowError:
        return math.copysign(math.inf, value)


def sd_interval(sd: float, n: int, confidence: float = SD_CONFIDENCE) -> tuple[float, float]:
    """The chi-square interval of a standard deviation that was estimated from n >= 2 normal values."""
    tail = (1.0 - confidence) / 2.0
    freedom = n - 1
    lower = sd * math.sqrt(freedom / float(chdtri(freedom, tail)))
    upper = sd * math.sqrt(freedom / float(chdtri(freedom, 1.0 - tail)))
    return lower, upper


def pooled_sd(groups: Iterable[Spread]) -> float | None:
    """The standard deviation within groups, weighted by their degrees of freedom; None when no group has two values."""
    usable = [(group.n - 1, group.sd) for group in groups if group.sd is not None]
    freedom = sum(weight for weight, _ in usable)
    return math.sqrt(sum(weight * sd**2 for weight, sd in usable) / freedom) if freedom else None


def _mean_and_sd(finite: NDArray[np.float64]) -> tuple[float, float | None]:
    """Equal values have exactly their value as mean and 0 as sd, whatever rounding would make of them."""
    if float(finite.min()) == float(finite.max()):
        return float(finite[0]), (0.0 if finite.size > 1 else None)
    return mean_of(finite), float(finite.std(ddof=1))


def _whiskers(finite: NDArray[np.float64], low: float, high: float) -> tuple[float, float]:
    reach = 1.5 * (high - low)
    inside = finite[(finite >= low - reach) & (finite <= high + reach)]
    return float(inside.min()), float(inside.max())


def interquartile_mean(values: npt.ArrayLike) -> float:
    """The mean without the floor(n / 4) smallest and as many largest values."""
    values = finite_sample(values, "the values")
    cut = values.size // 4
    return float(np.sort(values)[cut : values.size - cut].mean())


_LIMIT = 3.5


@dataclass(frozen=True, slots=True)
class Outlier:
    """A run by its position, its value, and how many robust standard deviations it lies from the median."""

    position: int
    value: float
    score: float

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"position": self.position, "value": self.value, "score": self.score}


def outliers(values: npt.ArrayLike, limit: float = _LIMIT) -> tuple[Outlier, ...]:
    """The runs whose modified z-score exceeds the limit (Iglewicz and Hoaglin 1993), the farthest first."""
    sample = finite_sample(values, "the runs")
    scores = _modified_z(sample)
    far = np.flatnonzero(np.abs(scores) > limit)
    found = [Outlier(int(position), float(sample[position]), float(scores[position])) for position in far]
    return tuple(sorted(found, key=lambda outlier: (-abs(outlier.score), outlier.position)))


def _modified_z(sample: FloatArray) -> FloatArray:
    """Distances from the median over the median distance; over the mean distance when most values are equal."""
    distances = sample - np.median(sample)
    median_distance = float(np.median(np.abs(distances)))
    unit = 1.482602218505602 * median_distance or 1.2533141373155001 * float(np.abs(distances).mean())
    if not unit > 0.0:
        return np.zeros_like(sample)
    with np.errstate(over="ignore"):  # over a distance of 1e-313 a run is as far away as a number can say
        return np.nan_to_num(distances / unit)


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """The runs that share their labels.

    group: column to label. sd has n - 1 in the denominator; sd_ci90 is its chi-square interval for normal values.
    iqm: the mean of the middle half. max_diff: the largest minus the smallest. rel_sd: sd over mean; rel_max_diff:
    max_diff over the smallest value. None where one run, or a zero to divide by, allows no answer.
    dropped: how many values were left out because they were not finite numbers.
    units: how many independent draws the n runs are, and unit: what one is. With fewer units than runs there is no
    interval of the sd: its law is that of independent runs.
    """

    group: Mapping[str, str]
    n: int
    mean: float
    sd: float | None
    sd_ci90: Interval | None
    median: float
    iqm: float
    min: float
    max: float
    max_diff: float
    rel_sd: float | None
    rel_max_diff: float | None
    units: int
    unit: str
    dropped: int = 0
    conditions: tuple[Condition, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON with the documented keys."""
        return {
            "group": dict(self.group),
            "n": self.n,
            "mean": self.mean,
            "sd": self.sd,
            "sd_ci90": None if self.sd_ci90 is None else list(self.sd_ci90),
            "median": self.median,
            "iqm": self.iqm,
            "min": self.min,
            "max": self.max,
            "max_diff": self.max_diff,
            "rel_sd": self.rel_sd,
            "rel_max_diff": self.rel_max_diff,
            "dropped": self.dropped,
            "units": self.units,
            "unit": self.unit,
            "warnings": [condition.to_json() for condition in self.conditions],
        }


_FEW = 5
"""Of fewer runs the spread is hardly known."""


@dataclass(frozen=True, slots=True)
class Summaries(Told, Sequence[GroupSummary]):
    """The summaries of all groups, ordered by label. value: the name of what is summarized.

    about_draws: what is not known of how the runs were drawn, where a tracker kept them.
    """

    told_as: ClassVar[str] = "summaries"

    value: str
    groups: tuple[GroupSummary, ...]
    about_draws: tuple[Condition, ...] = ()

    def __len__(self) -> int:
        return len(self.groups)

    @overload
    def __getitem__(self, place: int) -> GroupSummary: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[GroupSummary]: ...
    def __getitem__(self, place: int | slice) -> GroupSummary | Sequence[GroupSummary]:
        return self.groups[place]

    @property
    def all_conditions(self) -> tuple[Condition, ...]:
        """What is said of any group, once, and what their numbers of runs leave open."""
        own = {condition.message: condition for item in self.groups for condition in item.conditions}
        return (*self.about_draws, *own.values(), *self._few_runs(), *self._left_out())

    def _few_runs(self) -> Iterator[Condition]:
        few = [self.name_of(item) for item in self.groups if item.n < _FEW]
        if few:
            message = f"{some(len(few), 'group')} with fewer than {_FEW} runs: the spread is hardly known"
            yield Condition("few-runs", message, "make more runs", tuple(few[:5]))

    def _left_out(self) -> Iterator[Condition]:
        dropped = sum(item.dropped for item in self.groups)
        if dropped:
            message = f"{some(dropped, 'value')} not finite, left out as asked"
            yield Condition("not-finite", message, "look at these runs: a diverged training is a result, too")

    def name_of(self, item: GroupSummary) -> str:
        """The labels that tell this group from the others."""
        labels = item.group.items()
        telling = [label for name, label in labels if len({other.group[name] for other in self.groups}) > 1]
        return ", ".join(telling or item.group.values()) or "all runs"

    def to_json(self) -> list[dict[str, Any]]:
        """Plain JSON, a group each."""
        return [group.to_json() for group in self.groups]


def summarize(
    data: Any,
    *,
    value: str,
    by: str | Sequence[str] = (),
    where: Mapping[str, str] | None = None,
    drop_missing: bool = False,
    unit: str | Counting | None = None,
) -> Summaries:
    """Summaries of column `value` for each combination of the labels in the columns `by`, ordered by label.

    data: anything `read_table` reads. where: only rows with these labels. Values that are not finite are an error
    unless drop_missing leaves them out and counts them. unit: the column that says what was drawn independently.
    """
    table = read_table(data).where(where or {})
    counting = unit if isinstance(unit, Counting) else counting_of(table, unit)
    groups = table.groups(value, column_names(by, tuple(table.columns)), drop_missing=drop_missing)
    return Summaries(value, tuple(_summary(table, group, value, counting) for group in groups))


def column_names(by: str | Sequence[str], columns: Sequence[str]) -> tuple[str, ...]:
    """The columns that "model,setting" or ("model", "setting") name; a column's own name may hold a comma."""
    if not isinstance(by, str):
        return tuple(by)
    if by in columns or not by:
        return (by,) if by else ()
    return tuple(name.strip() for name in by.split(","))


def _summary(table: Measurements, group: Group, value: str, counting: Counting) -> GroupSummary:
    finite = group.values.finite
    if not finite.size:
        raise InputError(
            f"group {group.name!r} has no finite value in column {value!r}",
            found=f"{group.values.dropped} values, all missing, NaN or infinite",
        )
    return _summary_of(units_of(table, group.values, counting), group.labels, group.values.dropped)


def _summary_of(units: Units, labels: Mapping[str, str], dropped: int) -> GroupSummary:
    """The summary of at least one finite value."""
    finite = units.runs
    seen = spread(finite)
    assert seen.mean is not None
    assert seen.median is not None
    smallest, largest = float(finite.min()), float(finite.max())
    return GroupSummary(
        group=dict(labels),
        n=seen.n,
        mean=seen.mean,
        sd=seen.sd,
        sd_ci90=seen.sd_interval if units.count == finite.size else None,
        median=seen.median,
        iqm=interquartile_mean(finite),
        min=smallest,
        max=largest,
        max_diff=largest - smallest,
        rel_sd=seen.relative_sd,
        rel_max_diff=seen.relative_difference,
        units=units.count,
        unit=units.noun,
        dropped=dropped,
        conditions=_conditions(units),
    )


def _conditions(units: Units) -> tuple[Condition, ...]:
    if units.count == units.runs.size:
        return ()
    message = f"{counted(units)}: the runs are not independent, so their sd has no interval"
    return (Condition("fewer-units", message, "isorun mixed tells what comes from seeds and what from repeats"),)
