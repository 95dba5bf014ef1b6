"""Projection: how many more runs a verdict is likely to take, judged from the runs already made."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from isorun.analysis.inputs.samples import FloatArray
from isorun.analysis.pairwise.mann_whitney import u_statistic
from isorun.analysis.sequential.looks import looks_within
from isorun.analysis.sequential.rules import Rule
from isorun.analysis.sequential.trace import Trace, ends, trace

__all__ = ["Projection", "noether_runs", "project", "smoothed_resample"]

_MOST_FUTURES = 1_000
_FEWEST_FUTURES = 50
_RUNS_SIMULATED = 1_000_000
_TOO_MANY = 10_000


@dataclass(frozen=True, slots=True)
class Projection:
    """more_runs: about how many more runs a side until a verdict is as likely as not; None when no number is sensible.

    chance: how likely a verdict is by `horizon` runs a side, the last look that is planned; None when it has been made.
    """

    more_runs: int | None
    chance: float | None
    horizon: int


def smoothed_resample(values: FloatArray, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """Runs like the given ones: resampled, with a little normal noise, and of the same mean and standard deviation.

    The noise (Silverman's bandwidth) stands for the values between and beyond those seen; shrinking towards the mean
    keeps the spread from growing by it (Silverman and Young 1987, Biometrika 74).
    """
    mean, sd = float(values.mean()), float(values.std(ddof=1))
    bandwidth = 1.06 * len(values) ** -0.2
    drawn = rng.choice(values, size=shape) - mean
    if sd == 0:
        return drawn + mean
    drawn *= math.sqrt(len(values) / (len(values) - 1))  # a resample spreads by n, the sample by n - 1
    noisy = drawn + bandwidth * sd * rng.standard_normal(shape)
    return np.asarray(mean + noisy / math.sqrt(1 + bandwidth**2))


def project(rule: Rule, a: FloatArray, b: FloatArray, rng: np.random.Generator) -> Projection:
    """Continue the comparison many times with runs like those made, and see when the rule would decide."""
    seen = looks_within(rule.schedule, len(a), len(b))
    last = rule.schedule[-1]
    if seen == len(rule.schedule):
        return Projection(_beyond(rule, a, b), None, max(last))
    futures = int(np.clip(_RUNS_SIMULATED // max(last), _FEWEST_FUTURES, _MOST_FUTURES))
    continued = trace(rule, _continued(a, last.n_a, futures, rng), _continued(b, last.n_b, futures, rng))
    decided, more = _verdict_times(rule, continued, seen, len(a), len(b))
    chance = float(decided.mean())
    middle = int(np.sort(np.where(decided, more, _TOO_MANY))[decided.size // 2])
    return Projection(middle if middle < _TOO_MANY else _beyond(rule, a, b), chance, max(last))


def noether_runs(superiority: float, alpha: float, power: float) -> float:
    """Runs a side for a U test to see P(A > B) = `superiority` (Noether 1987, JASA 82); inf for one half."""
    quantiles = float(special.ndtri(1 - alpha / 2) + special.ndtri(power))
    distance = superiority - 0.5
    return quantiles**2 / (6 * distance**2) if distance else math.inf


def _verdict_times(
    rule: Rule, continued: Trace, seen: int, n_a: int, n_b: int
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which futures end with a claim, and after how many more runs of the side that needs more."""
    end = ends(continued.since(seen))
    more = np.array([max(look.n_a - n_a, look.n_b - n_b) for look in rule.schedule[seen:]], dtype=np.int64)
    return end.decided, more[end.look]


def _continued(values: FloatArray, runs: int, futures: int, rng: np.random.Generator) -> FloatArray:
    """The runs made, the same in every future, followed by runs like them."""
    made = np.repeat(values[:runs, None], futures, axis=1)
    return np.concatenate([made, smoothed_resample(values, (runs - len(made), futures), rng)])


def _beyond(rule: Rule, a: FloatArray, b: FloatArray) -> int | None:
    """More runs a side for an even chance in a plain U test, were the difference what it looks like."""
    superiority = u_statistic(a, b) / (len(a) * len(b))
    more = noether_runs(superiority, rule.levels[-1], power=0.5) - min(len(a), len(b))
    return max(1, math.ceil(more)) if more < _TOO_MANY else None
