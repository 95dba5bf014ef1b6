"""Outliers: runs that lie far from the others, by a measure that the outliers themselves cannot stretch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from isorun.analysis.inputs.samples import FloatArray, finite_sample

__all__ = ["Outlier", "outliers"]

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
    return distances / unit if unit > 0.0 else np.zeros_like(sample)
