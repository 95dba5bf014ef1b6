"""Nested variance: how much of a spread lies between groups (seeds), how much within them (repeats of a seed).

One-way random effects by the analysis of variance, with the exact F interval of the share (Searle, Casella and
McCulloch, Variance Components, 1992, sections 3.5 and 3.6; the intraclass correlation). Groups of unequal size are
taken by their means and the harmonic mean of their sizes (Thomas and Hultquist, Annals of Statistics 6, 1978), which is
the same where sizes are equal. Values are assumed normal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import fdtrc, fdtri

from isorun.analysis.inputs.samples import FloatArray

__all__ = ["SHARE_CONFIDENCE", "NestedVariance", "nested_variance"]

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
