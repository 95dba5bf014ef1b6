"""Critical values from simulated paths, so that no more than the spent error is used up by each look."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isorun.analysis.inputs.samples import FloatArray
from isorun.analysis.sequential.looks import Schedule
from isorun.analysis.sequential.paths import RunArray

__all__ = ["Calibration", "calibrate", "calibrate_worst", "null_paths", "rejected_by"]

_SEED = 20_231  # everyone simulates the same paths, so that everyone gets the same boundaries
_MOST_PATHS = 500_000
_FEWEST_PATHS = 50_000
_RUNS_SIMULATED = 30_000_000
_PATHS_AT_ONCE = 8_192

Draw = Callable[[np.random.Generator, tuple[int, int]], RunArray]
Statistic = Callable[[RunArray, RunArray, Schedule], FloatArray]
Paths = NDArray[Any]
"""A statistic at every look of many comparisons, (looks, simulations), of any real type."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """critical: claim at a look when the statistic is at least this; inf where no claim is possible yet.

    spent: the simulated chance, when there is nothing to find, of a claim at this look or before.
    """

    critical: tuple[float, ...]
    spent: tuple[float, ...]


def null_paths(schedule: Schedule, draw: Draw, statistic: Statistic, *, most_paths: int | None = None) -> FloatArray:
    """A statistic at every look of many comparisons of equals, (looks, simulations).

    500,000 comparisons for the default plan, fewer for very long ones: the boundaries' error rate is then known to a
    standard error of .0003.
    """
    rng = np.random.default_rng(_SEED)
    last = schedule[-1]
    affordable = int(np.clip(_RUNS_SIMULATED // sum(last), _FEWEST_PATHS, _MOST_PATHS))
    count = min(affordable, most_paths or affordable)
    paths = np.empty((len(schedule), count))
    for start in range(0, count, _PATHS_AT_ONCE):
        width = min(_PATHS_AT_ONCE, count - start)
        a, b = draw(rng, (last.n_a, width)), draw(rng, (last.n_b, width))
        paths[:, start : start + width] = statistic(a, b, schedule)
    return paths


def calibrate(paths: Paths, cumulative: Sequence[float]) -> Calibration:
    """The lowest critical value at each look that keeps the share of paths claimed so far within `cumulative`.

    What a look cannot spend, because the statistic takes few values, is left for the looks after it.
    paths is (looks, simulations).
    """
    return calibrate_worst((paths,), cumulative)


def calibrate_worst(cases: Sequence[Paths], cumulative: Sequence[float]) -> Calibration:
    """The lowest critical values that keep every one of several null laws within `cumulative`.

    What the worst law leaves unspent at a look is left for the looks after it. Each case is (looks, simulations).
    """
    still_open = [np.ones(paths.shape[1], dtype=bool) for paths in cases]
    critical: list[float] = []
    spent: list[float] = []
    for look, allowed in enumerate(cumulative):
        at_look = [paths[look] for paths in cases]
        needed = [_needed(values, going, allowed) for values, going in zip(at_look, still_open, strict=True)]
        critical.append(max(needed))
        for values, going in zip(at_look, still_open, strict=True):
            np.logical_and(going, values < critical[-1], out=going)
        spent.append(max(1 - float(going.mean()) for going in still_open))
    return Calibration(tuple(critical), tuple(spent))


def rejected_by(paths: Paths, critical: Sequence[float]) -> tuple[float, ...]:
    """The share of paths that have reached the critical value by each look; paths is (looks, simulations)."""
    reached = paths >= np.asarray(critical)[:, None]
    return tuple(float(share) for share in np.logical_or.accumulate(reached, axis=0).mean(axis=1))


def _needed(values: Paths, going: NDArray[np.bool_], allowed: float) -> float:
    """The critical value that lets no more paths than allowed be claimed by now."""
    total = values.size
    return _critical_value(values[going], int(np.floor(allowed * total)) - (total - int(going.sum())))


def _critical_value(values: Paths, budget: int) -> float:
    """The smallest value that at most `budget` of the values reach; inf when even the largest is too common."""
    if budget <= 0 or values.size == 0:
        return float("inf")
    if budget >= values.size:
        return float(values.min())
    place = values.size - budget - 1
    next_below = np.partition(values, place)[place]  # this one may not be reached
    above = values[values > next_below]
    return float(above.min()) if above.size else float("inf")
