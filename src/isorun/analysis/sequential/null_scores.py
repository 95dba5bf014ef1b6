"""The superiority score at every look when a new run of either side wins as often as not.

Its law depends on how the two sides spread, a little: the paths of normal runs are simulated for each ratio of the
standard deviations in `SPREAD_RATIOS`, and boundaries are made for the worst. From 40 runs of both sides on the score
moves like a Brownian motion over its information, and is continued as one, so that long plans cost no more than short.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from isorun.analysis.pairwise.brunner_munzel import SPREAD_RATIOS
from isorun.analysis.sequential.looks import Look, Schedule
from isorun.analysis.sequential.paths import superiority_scores

__all__ = ["null_scores"]

_SEED = 20_232
_PAIRS_SIMULATED = 60_000_000
_SCORES_KEPT = 8_000_000
_PATHS_OF_BUDGET = 65_536  # the budgets above are for so many paths
_FEWEST_PATHS = 16_384
_PATHS_AT_ONCE = 8_192
_SIMULATED_UP_TO = 40  # runs of the side that has fewer
_LARGER_SIDE_AT_MOST = 200  # beyond it the law does not change while the other side has few runs

Scores = NDArray[np.float32]


def null_scores(schedule: Schedule, most_paths: int, *, patient: bool = False) -> tuple[Scores, ...]:
    """|score| at each look, (looks, simulations) for each ratio of the spreads; both ways where the sides differ.

    patient: simulate all looks and all paths, however long that takes.
    """
    last = max(schedule[-1]) if patient else _SIMULATED_UP_TO
    simulated = tuple(
        Look(*(min(size, _LARGER_SIDE_AT_MOST) for size in look)) for look in schedule if min(look) <= last
    )
    count = most_paths if patient else _paths(schedule, simulated, most_paths)
    sides_alike = all(look.n_a == look.n_b for look in simulated)
    ratios = SPREAD_RATIOS if sides_alike else (*SPREAD_RATIOS, *(1 / ratio for ratio in SPREAD_RATIOS[1:]))
    rng = np.random.default_rng(_SEED)
    paths = tuple(np.empty((len(schedule), count), dtype=np.float32) for _ in ratios)
    for start in range(0, count, _PATHS_AT_ONCE):
        width = min(_PATHS_AT_ONCE, count - start)
        _simulate(schedule, simulated, ratios, rng, [rows[:, start : start + width] for rows in paths])
    for rows in paths:
        np.abs(rows, out=rows)
    return paths


def _paths(schedule: Schedule, simulated: Schedule, most: int) -> int:
    """As many as fit the time and the memory that boundaries are worth."""
    pairs = simulated[-1].n_a * simulated[-1].n_b if simulated else 1
    affordable = min(_PAIRS_SIMULATED // pairs, _SCORES_KEPT // len(schedule)) * most // _PATHS_OF_BUDGET
    return int(np.clip(affordable, min(_FEWEST_PATHS, most), most))


def _simulate(
    schedule: Schedule, simulated: Schedule, ratios: tuple[float, ...], rng: np.random.Generator, out: list[Scores]
) -> None:
    """Fill in one block of paths; all ratios see the same runs, only wider."""
    width = out[0].shape[1]
    steps = rng.standard_normal((len(schedule) - len(simulated), width), dtype=np.float32)
    if simulated:
        a, b = (rng.standard_normal((runs, width), dtype=np.float32) for runs in simulated[-1])
        for ratio, rows in zip(ratios, out, strict=True):
            rows[: len(simulated)] = superiority_scores(np.float32(ratio) * a, b, simulated)
    for rows in out:
        _continue(schedule, len(simulated), steps, rows)


def _continue(schedule: Schedule, done: int, steps: Scores, rows: Scores) -> None:
    """Go on as a Brownian motion: each score keeps its part of the information, and the rest is new."""
    if not done:
        rows[0] = steps[0]
    first = max(done, 1)
    for k, (before, after) in enumerate(pairwise(schedule[first - 1 :]), start=first):
        kept = before.information / after.information
        rows[k] = np.sqrt(kept) * rows[k - 1] + np.sqrt(1 - kept) * steps[k - done]
