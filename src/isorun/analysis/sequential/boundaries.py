"""Boundaries: what a score must reach at each look, from simulated comparisons of equals.

Critical values from simulated paths, so that no more than the spent error is used up by each look.

The superiority score at every look when a new run of either side wins as often as not.

Its law depends on how the two sides spread, a little: the paths of normal runs are simulated for each ratio of the
standard deviations in `SPREAD_RATIOS`, and boundaries are made for the worst. From 40 runs of both sides on the score
moves like a Brownian motion over its information, and is continued as one, so that long plans cost no more than short.

Boundaries: what the score of a test must reach at each look, and how much error that spends.

Those of the default plans are kept in `boundaries.json`, from more simulated comparisons than one would wait for
(`python benchmarks/boundaries.py` makes it anew). All others are simulated when they are asked for, in a second or two.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isorun.analysis.pairwise import SPREAD_RATIOS
from isorun.analysis.samples import FloatArray
from isorun.analysis.sequential import MOST_RUNS, Look, Schedule
from isorun.analysis.sequential.paths import RunArray, centred_u, signed_rank_scores, superiority_scores
from isorun.errors import InputError

__all__ = [
    "Calibration",
    "boundaries",
    "calibrate",
    "calibrate_worst",
    "null_distances",
    "null_paths",
    "null_scores",
    "refuse_too_long",
    "rejected_by",
    "simulated",
]

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
    schedule = _either_way(schedule)
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


_SCORE_SEED = 20_232
_PAIRS_SIMULATED = 60_000_000
_SCORES_KEPT = 8_000_000
_PATHS_OF_BUDGET = 65_536  # the budgets above are for so many paths
_FEWEST_SCORE_PATHS = 16_384
_SIMULATED_UP_TO = 40  # runs of the side that has fewer
_LARGER_SIDE_AT_MOST = 200  # beyond it the law does not change while the other side has few runs

Scores = NDArray[np.float32]


def null_scores(schedule: Schedule, most_paths: int, *, patient: bool = False) -> tuple[Scores, ...]:
    """|score| at each look, (looks, simulations) for each ratio of the spreads; both ways where the sides differ.

    patient: simulate all looks and all paths, however long that takes.
    """
    schedule = _either_way(schedule)
    last = max(schedule[-1]) if patient else _SIMULATED_UP_TO
    simulated = tuple(
        Look(*(min(size, _LARGER_SIDE_AT_MOST) for size in look)) for look in schedule if min(look) <= last
    )
    count = most_paths if patient else _paths(schedule, simulated, most_paths)
    sides_alike = all(look.n_a == look.n_b for look in simulated)
    ratios = SPREAD_RATIOS if sides_alike else (*SPREAD_RATIOS, *(1 / ratio for ratio in SPREAD_RATIOS[1:]))
    rng = np.random.default_rng(_SCORE_SEED)
    paths = tuple(np.empty((len(schedule), count), dtype=np.float32) for _ in ratios)
    for start in range(0, count, _PATHS_AT_ONCE):
        width = min(_PATHS_AT_ONCE, count - start)
        _simulate(schedule, simulated, ratios, rng, [rows[:, start : start + width] for rows in paths])
    for rows in paths:
        np.abs(rows, out=rows)
    return paths


def _either_way(schedule: Schedule) -> Schedule:
    """One and the same for looks and for those with the sides in each other's place: so are their boundaries then."""
    return min(schedule, tuple(Look(look.n_b, look.n_a) for look in schedule))


def _paths(schedule: Schedule, simulated: Schedule, most: int) -> int:
    """As many as fit the time and the memory that boundaries are worth."""
    pairs = simulated[-1].n_a * simulated[-1].n_b if simulated else 1
    affordable = min(_PAIRS_SIMULATED // pairs, _SCORES_KEPT // len(schedule)) * most // _PATHS_OF_BUDGET
    return int(np.clip(affordable, min(_FEWEST_SCORE_PATHS, most), most))


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


_PATHS = {"brunner-munzel": 65_536, "mann-whitney": 500_000, "signed-rank": 131_072}
_QUICK_PATHS = 16_384
_ROUNDING = 1e-6  # scores are kept in single precision: a score may miss a boundary by that much and still reach it


@functools.lru_cache(maxsize=64)
def boundaries(test: str, schedule: Schedule, cumulative: tuple[float, ...], *, quick: bool = False) -> Calibration:
    """The boundaries that spend no more than `cumulative` by each look.

    quick: from fewer simulated comparisons, for plans that are only weighed.
    """
    refuse_too_long(schedule)
    kept = _kept(test, schedule, cumulative)
    return kept or simulated(test, schedule, cumulative, _QUICK_PATHS if quick else _PATHS[test])


def simulated(
    test: str, schedule: Schedule, cumulative: tuple[float, ...], most_paths: int, *, patient: bool = False
) -> Calibration:
    """The boundaries from up to so many simulated comparisons; `patient` as in `null_scores`."""
    if test != "brunner-munzel":
        return calibrate(null_distances(test, schedule, most_paths), cumulative)
    found = calibrate_worst(null_scores(schedule, most_paths, patient=patient), cumulative)
    return Calibration(tuple(value * (1 - _ROUNDING) for value in found.critical), found.spent)


def null_distances(test: str, schedule: Schedule, most_paths: int | None = None) -> FloatArray:
    """The distance of the statistic from its middle at each look of comparisons of equals, (looks, simulations)."""
    if test == "brunner-munzel":
        return np.asarray(null_scores(schedule, most_paths or _PATHS[test])[0], dtype=np.float64)
    draw, statistic = (_uniform, centred_u) if test == "mann-whitney" else (_normal, _signed_ranks)
    distances = null_paths(schedule, draw, statistic, most_paths=most_paths or _PATHS[test])
    return np.abs(distances, out=distances)


def refuse_too_long(schedule: Schedule) -> None:
    """An error for plans whose boundaries would take minutes to simulate."""
    if max(schedule[-1]) > MOST_RUNS:
        raise InputError(
            "boundaries cannot be simulated for so many runs",
            found=f"up to {max(schedule[-1])} runs a side",
            allowed=f"at most {MOST_RUNS}",
            hint="use the method 'e-process', or 'fixed' when the number of runs was fixed beforehand",
        )


def _kept(test: str, schedule: Schedule, cumulative: tuple[float, ...]) -> Calibration | None:
    """The boundaries in the package, if they are those of this plan."""
    for plan in _kept_plans():
        same_looks = plan["test"] == test and plan["runs_a_side"] == [size for size, _ in schedule]
        if (
            same_looks
            and all(n_a == n_b for n_a, n_b in schedule)
            and np.allclose(plan["cumulative"], cumulative, rtol=1e-9, atol=0)
        ):
            critical = (math.inf if value is None else float(value) for value in plan["critical"])
            return Calibration(tuple(critical), tuple(plan["spent"]))
    return None


@functools.cache
def _kept_plans() -> list[dict[str, Any]]:
    text = resources.files(__package__).joinpath("boundaries.json").read_text(encoding="utf-8")
    plans: list[dict[str, Any]] = json.loads(text)["plans"]
    return plans


def _uniform(rng: np.random.Generator, shape: tuple[int, int]) -> RunArray:
    """Runs that stand for any continuous metric: whole numbers from so many that ties do not happen."""
    return rng.integers(2**32, size=shape, dtype=np.uint32)


def _normal(rng: np.random.Generator, shape: tuple[int, int]) -> RunArray:
    """Differences that stand for any that are symmetric about 0."""
    return rng.standard_normal(shape, dtype=np.float32)


def _signed_ranks(differences: RunArray, _: RunArray, schedule: Schedule) -> FloatArray:
    return signed_rank_scores(differences, schedule)
