"""Critical values from simulated paths, so that no more than the spent error is used up by each look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["CALIBRATION_SEED", "Calibration", "calibrate", "rejected_by", "simulated_paths"]

CALIBRATION_SEED = 20_231
"""Everyone simulates the same paths, so that everyone gets the same boundaries."""

_MOST_PATHS = 500_000
_FEWEST_PATHS = 50_000
_NUMBERS = 30_000_000  # about 120 MB of float32 at once


@dataclass(frozen=True, slots=True)
class Calibration:
    """critical: claim at a look when the statistic is at least this; inf where no claim is possible yet.

    spent: the simulated chance, when there is nothing to find, of a claim at this look or before.
    """

    critical: tuple[float, ...]
    spent: tuple[float, ...]


def simulated_paths(runs: int) -> int:
    """How many paths of `runs` runs to simulate: 500,000 for the default plan; fewer for very long plans."""
    return int(np.clip(_NUMBERS // runs, _FEWEST_PATHS, _MOST_PATHS))


def calibrate(paths: NDArray[np.float64], cumulative: Sequence[float]) -> Calibration:
    """The lowest critical value at each look that keeps the share of paths claimed so far within `cumulative`.

    What a look cannot spend, because the statistic takes few values, is left for the looks after it.
    paths is (looks, simulations).
    """
    total = paths.shape[1]
    open_paths = np.ones(total, dtype=bool)
    critical: list[float] = []
    spent: list[float] = []
    for statistic, allowed in zip(paths, cumulative, strict=True):
        budget = int(np.floor(allowed * total)) - (total - int(open_paths.sum()))
        critical.append(_critical_value(statistic[open_paths], budget))
        open_paths &= statistic < critical[-1]
        spent.append(1 - float(open_paths.mean()))
    return Calibration(tuple(critical), tuple(spent))


def rejected_by(paths: NDArray[np.float64], critical: Sequence[float]) -> tuple[float, ...]:
    """The share of paths that have reached the critical value by each look; paths is (looks, simulations)."""
    reached = paths >= np.asarray(critical)[:, None]
    return tuple(float(share) for share in np.logical_or.accumulate(reached, axis=0).mean(axis=1))


def _critical_value(values: NDArray[np.float64], budget: int) -> float:
    """The smallest value that at most `budget` of the values reach; inf when even the largest is too common."""
    if budget <= 0 or values.size == 0:
        return float("inf")
    if budget >= values.size:
        return float(values.min())
    place = values.size - budget - 1
    next_below = np.partition(values, place)[place]  # this one may not be reached
    above = values[values > next_below]
    return float(above.min()) if above.size else float("inf")
