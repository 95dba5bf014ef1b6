"""Projection: how many more runs a verdict is likely to take, judged from the runs already made."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from isorun.analysis.sequential.looks import Look, looks_within
from isorun.analysis.sequential.paths import centred_u
from isorun.analysis.sequential.rules import Rule
from isorun.analysis.sequential.trace import Trace, ends, trace

__all__ = ["Projection", "noether_runs", "project", "smoothed_resample"]

Floats = NDArray[np.float64]
_FUTURES = 1_000
_TOO_MANY = 10_000


@dataclass(frozen=True, slots=True)
class Projection:
    """more_runs: about how many more runs a side until a verdict is as likely as not; None when no number is sensible.

    chance: how likely a verdict is by the last look that is planned.
    """

    more_runs: int | None
    chance: float


def smoothed_resample(values: Floats, shape: tuple[int, int], rng: np.random.Generator) -> Floats:
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


def project(rule: Rule, a: Floats, b: Floats, rng: np.random.Generator) -> Projection:
    """Continue the comparison many times with runs like those made, and see when the rule would decide."""
    seen = looks_within(rule.schedule, len(a), len(b))
    if seen == len(rule.schedule):
        return Projection(_beyond(rule, a, b), 0.0)
    last = rule.schedule[-1]
    futures = trace(rule, _continued(a, last.n_a, rng), _continued(b, last.n_b, rng))
    decided, more = _verdict_times(rule, futures, seen, len(a), len(b))
    if 2 * decided.sum() < decided.size:
        return Projection(_beyond(rule, a, b), float(decided.mean()))
    return Projection(int(np.sort(np.where(decided, more, _TOO_MANY))[decided.size // 2]), float(decided.mean()))


def noether_runs(superiority: float, alpha: float, power: float) -> float:
    """Runs a side for a U test to see P(A > B) = `superiority` (Noether 1987, JASA 82); inf for one half."""
    quantiles = float(special.ndtri(1 - alpha / 2) + special.ndtri(power))
    distance = superiority - 0.5
    return quantiles**2 / (6 * distance**2) if distance else math.inf


def _verdict_times(
    rule: Rule, futures: Trace, seen: int, n_a: int, n_b: int
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which futures end with a claim, and after how many more runs of the side that needs more."""
    future = Trace(
        statistic=futures.statistic[seen:],
        favours=futures.favours[seen:],
        equivalent=futures.equivalent[seen:],
        hopeless=futures.hopeless[seen:],
        equivalence=futures.equivalence[seen:],
        equivalence_critical=futures.equivalence_critical[seen:],
    )
    end = ends(future)
    more = np.array([max(look.n_a - n_a, look.n_b - n_b) for look in rule.schedule[seen:]], dtype=np.int64)
    return end.decided, more[end.look]


def _continued(values: Floats, runs: int, rng: np.random.Generator) -> Floats:
    """The runs made, the same in every future, followed by runs like them."""
    made = np.repeat(values[:runs, None], _FUTURES, axis=1)
    return np.concatenate([made, smoothed_resample(values, (runs - len(made), _FUTURES), rng)])


def _beyond(rule: Rule, a: Floats, b: Floats) -> int | None:
    """More runs a side for an even chance in a plain U test, were the difference what it looks like."""
    distance = float(centred_u(a[:, None], b[:, None], (Look(len(a), len(b)),))[0, 0])
    superiority = 0.5 + distance / (len(a) * len(b))
    more = noether_runs(superiority, rule.levels[-1] or 0.05, power=0.5) - min(len(a), len(b))
    return max(1, math.ceil(more)) if more < _TOO_MANY else None
