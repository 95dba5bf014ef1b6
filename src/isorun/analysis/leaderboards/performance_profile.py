"""Performance profiles: the share of runs that score above each threshold, tasks weighing the same.

Profiles of two approaches that do not cross show a stochastic order that no single aggregate can (Dolan and Moré 2002;
Agarwal et al., NeurIPS 2021).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from isorun.analysis.inputs.samples import FloatArray, finite_sample
from isorun.analysis.leaderboards.aggregate import DEFAULT_REPETITIONS
from isorun.analysis.leaderboards.resampling import count_replicates
from isorun.analysis.leaderboards.task_scores import ScoresLike, TaskScores, task_scores

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
    scores: ScoresLike,
    thresholds: Sequence[float] | npt.ArrayLike,
    generator: np.random.Generator,
    *,
    repetitions: int = DEFAULT_REPETITIONS,
    confidence: float = 0.95,
) -> PerformanceProfile:
    """The profile at the given thresholds."""
    data = task_scores(scores)
    limits = finite_sample(np.asarray(thresholds), "the thresholds")
    above = (data.values[:, None] > limits[None, :]) * data.weights[:, None]
    bands = _bands(data, above, generator, repetitions, confidence) if min(data.sizes) > 1 else None
    return PerformanceProfile(
        thresholds=tuple(limits.tolist()),
        shares=tuple(above.sum(axis=0).tolist()),
        lower=None if bands is None else tuple(bands[0].tolist()),
        upper=None if bands is None else tuple(bands[1].tolist()),
    )


def _bands(
    data: TaskScores, above: FloatArray, generator: np.random.Generator, repetitions: int, confidence: float
) -> FloatArray:
    single = above.astype(np.float32)
    drawn = count_replicates(data.sizes, lambda counts: np.asarray(counts @ single), repetitions, generator)
    tail = (1.0 - confidence) / 2.0
    return np.asarray(np.quantile(drawn, (tail, 1.0 - tail), axis=0).clip(0.0, 1.0), dtype=np.float64)
