"""Seeds and repeats: what varies between seeds and what within them, of a score and of single answers.

Nested variance: how much of a spread lies between groups (seeds), how much within them (repeats of a seed).

One-way random effects by the analysis of variance, with the exact F interval of the share (Searle, Casella and
McCulloch, Variance Components, 1992, sections 3.5 and 3.6; the intraclass correlation). Groups of unequal size are
taken by their means and the harmonic mean of their sizes (Thomas and Hultquist, Annals of Statistics 6, 1978), which is
the same where sizes are equal. Values are assumed normal.

Nested disagreement: on how many examples two runs give another answer, within groups (one seed) and between them.

Of answers instead of a score, and therefore far sharper: with answers as indicators, half the disagreement of two runs
is a variance; that of two runs of one group is the variance within, that of runs of two groups the whole. Their ratio
is the share of the variance that lies within groups. Its interval leaves out one group at a time (jackknife, on the log
scale, Student's t); an example counts as fixed, so that the interval is about groups.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray
from scipy.special import fdtrc, fdtri, stdtrit

from isorun.analysis.samples import FloatArray

__all__ = ["SHARE_CONFIDENCE", "NestedDisagreement", "NestedVariance", "nested_disagreement", "nested_variance"]

SHARE_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class NestedVariance:
    """Variance components. between: never below 0, although the estimate may be. within: among values of one group.

    share: of both together that lies between groups; None where nothing varies. f, p: of the test that groups differ.
    share_interval: 95 % unless asked otherwise; None where repeats do not vary at all, so that there is nothing to ask.
    """

    groups: int
    values: int
    between: float
    within: float
    share: float | None
    share_interval: tuple[float, float] | None
    f: float | None
    p: float | None

    @property
    def within_share(self) -> float | None:
        """The share that lies within groups."""
        return None if self.share is None else 1.0 - self.share

    @property
    def within_share_interval(self) -> tuple[float, float] | None:
        """Its interval."""
        return self.share_interval and (1.0 - self.share_interval[1], 1.0 - self.share_interval[0])

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; variances in the squared unit of the values."""
        return {
            "groups": self.groups,
            "values": self.values,
            "between": self.between,
            "within": self.within,
            "between_share": self.share,
            "between_share_ci95": self.share_interval and list(self.share_interval),
            "f": self.f,
            "p": self.p,
        }


def nested_variance(groups: Sequence[npt.ArrayLike], confidence: float = SHARE_CONFIDENCE) -> NestedVariance | None:
    """The components from the values of each group; None below two groups, and where no group has two values."""
    arrays = [np.asarray(group, dtype=np.float64) for group in groups]
    arrays = [array for array in arrays if array.size]
    count, total = len(arrays), sum(array.size for array in arrays)
    if count < 2 or total == count:
        return None
    size = count / sum(1.0 / array.size for array in arrays)
    within = sum(_squares(array) for array in arrays) / (total - count)
    among = size * _squares(np.array([array.mean() for array in arrays])) / (count - 1)
    between = max((among - within) / size, 0.0)
    share = between / (between + within) if between + within > 0.0 else None
    if within == 0.0:
        return NestedVariance(count, total, between, within, share, None, None, None)
    f, freedom = among / within, (count - 1, total - count)
    interval = _share_interval(f, freedom, size, confidence)
    return NestedVariance(count, total, between, within, share, interval, f, float(fdtrc(*freedom, f)))


def _squares(values: FloatArray) -> float:
    """Of the deviations from the mean; exactly 0 for equal values, whatever rounding makes of their mean."""
    return 0.0 if values.min() == values.max() else float(((values - values.mean()) ** 2).sum())


def _share_interval(f: float, freedom: tuple[int, int], size: float, confidence: float) -> tuple[float, float]:
    tail = (1.0 - confidence) / 2.0
    ratios = [(f / float(fdtri(*freedom, level)) - 1.0) / size for level in (1.0 - tail, tail)]
    low, high = (max(ratio, 0.0) / (1.0 + max(ratio, 0.0)) for ratio in ratios)
    return low, high


_FEWEST_GROUPS = 3
"""Leaving out one of fewer groups leaves no pair of groups."""


@dataclass(frozen=True, slots=True)
class NestedDisagreement:
    """Shares of examples on which two runs differ, means over all pairs of runs. ratio: within over between."""

    groups: int
    runs: int
    examples: int
    within: float
    between: float
    ratio: float | None
    ratio_interval: tuple[float, float] | None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "groups": self.groups,
            "runs": self.runs,
            "examples": self.examples,
            "within": self.within,
            "between": self.between,
            "ratio": self.ratio,
            "ratio_ci95": self.ratio_interval and list(self.ratio_interval),
        }


def nested_disagreement(
    answers: NDArray[np.int64], groups: Sequence[Hashable], confidence: float = SHARE_CONFIDENCE
) -> NestedDisagreement | None:
    """From answers (runs x examples) and the group of each run; None below two groups, or without a pair within one."""
    names = list(dict.fromkeys(groups))
    places = [np.array([place for place, name in enumerate(groups) if name == each]) for each in names]
    if len(names) < 2 or all(place.size < 2 for place in places):
        return None
    means = _mean_disagreements(answers, places)
    within, between = _within_and_between(means)
    ratio = within / between if between > 0.0 else None
    interval = None if ratio is None else _ratio_interval(means, ratio, confidence)
    return NestedDisagreement(len(names), len(groups), answers.shape[1], within, between, ratio, interval)


def _mean_disagreements(answers: NDArray[np.int64], places: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
    """Groups x groups: the mean over pairs of runs; on the diagonal over pairs of different runs, NaN without any."""
    differ = np.array([(answers != row).mean(axis=1) for row in answers])
    means = np.array([[differ[np.ix_(a, b)].mean() for b in places] for a in places])
    for number, place in enumerate(places):
        pairs = place.size * (place.size - 1)
        means[number, number] = differ[np.ix_(place, place)].sum() / pairs if pairs else math.nan
    return means


def _within_and_between(means: NDArray[np.float64]) -> tuple[float, float]:
    return float(np.nanmean(np.diag(means))), float(means[np.triu_indices(len(means), 1)].mean())


def _ratio_interval(means: NDArray[np.float64], ratio: float, confidence: float) -> tuple[float, float] | None:
    count = len(means)
    if count < _FEWEST_GROUPS or ratio == 0.0 or np.isnan(np.diag(means)).any():
        return None
    kept = [np.delete(np.delete(means, out, 0), out, 1) for out in range(count)]
    pairs = [_within_and_between(part) for part in kept]
    if not all(within > 0.0 and between > 0.0 for within, between in pairs):
        return None
    logs = np.array([math.log(within / between) for within, between in pairs])
    error = math.sqrt((count - 1) / count * float(((logs - logs.mean()) ** 2).sum()))
    reach = float(stdtrit(count - 1, (1.0 + confidence) / 2.0)) * error
    return ratio * math.exp(-reach), ratio * math.exp(reach)
