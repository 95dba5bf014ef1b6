"""The interquartile mean: the mean of the middle half of the values (rliable; `scipy.stats.trim_mean(x, 0.25)`)."""

from __future__ import annotations

import numpy as np

from isorun.analysis.inputs.samples import FloatArray

__all__ = ["interquartile_mean"]


def interquartile_mean(values: FloatArray) -> float:
    """The mean without the floor(n / 4) smallest and as many largest values."""
    cut = values.size // 4
    return float(np.sort(values)[cut : values.size - cut].mean())
