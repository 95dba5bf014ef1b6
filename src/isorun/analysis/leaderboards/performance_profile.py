"""Performance profiles: the share of runs that score above each threshold, tasks weighing the same.

Profiles of two approaches that do not cross show a stochastic order that no single aggregate can (Dolan and Moré 2002;
Agarwal et al., NeurIPS 2021). Their limits are score intervals of shares of runs, task by task, which keep a width
where no run or every run lies above a threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from isorun.analysis.inputs.samples import FloatArray, finite_sample
from isorun.analysis.leaderboards.task_scores import ScoresLike, task_scores
from isorun.analysis.pairwise.rate_interval import mean_rate_limits

__all__ = ["PerformanceProfile", "performance_profile"]


@dataclass(frozen=True, slots=True)
class PerformanceProfile:
    """thresholds, the share of runs strictly above each, and pointwise 95 % limits (None from single runs)."""

    thresholds: tuple[float, ...]
    shares: tuple[float, ...]
    lower: tuple[float, ...] | None
    upper: tuple[float, ...] | None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "thresholds": list(self.thresholds),
            "shares": list(self.shares),
            "lower": None if self.lower is None else list(self.lower),
            "upper": None if self.upper is None else list(self.upper),
        }


def performance_profile(
    scores: ScoresLike, thresholds: Sequence[float] | npt.ArrayLike, *, confidence: float = 0.95
) -> PerformanceProfile:
    """The profile at the given thresholds."""
    data = task_scores(scores)
    limits = finite_sample(np.asarray(thresholds), "the thresholds")
    sizes = np.array(data.sizes, dtype=np.float64)
    above = np.add.reduceat(data.values[:, None] > limits[None, :], data.starts, axis=0).T / sizes
    bands = _bands(above, sizes, confidence) if min(data.sizes) > 1 else None
    return PerformanceProfile(
        thresholds=tuple(limits.tolist()),
        shares=tuple(above.mean(axis=1).tolist()),
        lower=None if bands is None else tuple(bands[0].tolist()),
        upper=None if bands is None else tuple(bands[1].tolist()),
    )


def _bands(above: FloatArray, sizes: FloatArray, confidence: float) -> tuple[FloatArray, FloatArray]:
    critical = np.full(len(above), float(ndtri(0.5 + confidence / 2.0)))
    return mean_rate_limits(above, sizes, np.broadcast_to(1.0 / sizes, above.shape), critical)
