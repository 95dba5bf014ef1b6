"""Boundaries: what the score of a test must reach at each look, and how much error that spends.

Those of the default plans are kept in `boundaries.json`, from more simulated comparisons than one would wait for
(`python benchmarks/boundaries.py` makes it anew). All others are simulated when they are asked for, in a second or two.
"""

from __future__ import annotations

import functools
import json
import math
from importlib import resources
from typing import Any

import numpy as np

from isorun.analysis.inputs.samples import FloatArray
from isorun.analysis.sequential.calibration import Calibration, calibrate, calibrate_worst, null_paths
from isorun.analysis.sequential.looks import MOST_RUNS, Schedule
from isorun.analysis.sequential.null_scores import null_scores
from isorun.analysis.sequential.paths import RunArray, centred_u, signed_rank_scores
from isorun.errors import InputError

__all__ = ["TESTS", "boundaries", "null_distances", "refuse_too_long", "simulated"]

TESTS = ("brunner-munzel", "mann-whitney", "signed-rank")
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
