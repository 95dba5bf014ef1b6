"""Power by the normal approximation, for more runs than one would simulate.

A statistic of n runs a side grows like the square root of n. How fast, and how much it varies by then, is read off one
large sample of such runs: placements for rank tests (Lehmann 1975, Nonparametrics, section 2.3), moments for t tests.
What the sample would say without a difference is subtracted, so that a tiny one does not drown in its noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from isorun.analysis.inputs.samples import FloatArray
from isorun.analysis.planning.simulated_runs import AbstractSource
from isorun.analysis.sequential.calibration import calibrate
from isorun.analysis.sequential.futility import futility_scores
from isorun.analysis.sequential.looks import Schedule, fractions
from isorun.analysis.sequential.spending import cumulative_error

__all__ = ["normal_curve", "sequential_normal_curve"]

_SAMPLE = 20_000
_WALKS = 40_000
_MOST_LOOKS = 60  # a rule that looks more often is asked about so many of its looks


@dataclass(frozen=True, slots=True)
class _Growth:
    """mean: of the score, a run a side, by the square root of the runs. sd: of the score under the difference."""

    mean: float
    sd: float


def normal_curve(
    test: str, runs: int, source: AbstractSource, rng: np.random.Generator, *, alpha: float
) -> Callable[[float], float]:
    """The power of one test of so many runs a side (or pairs), by the true difference."""
    growth = _growth_curve(test, source, rng)
    needed = -float(ndtri(alpha / 2))

    def power(difference: float) -> float:
        at = growth(difference)
        return float(ndtr((at.mean * math.sqrt(runs) - needed) / at.sd))

    return power


def sequential_normal_curve(
    test: str,
    schedule: Schedule,
    source: AbstractSource,
    rng: np.random.Generator,
    *,
    spending: str,
    alpha: float,
    futility: bool,
) -> Callable[[float], tuple[float, float]]:
    """The power of a sequential rule and the runs a side it takes on average, by the true difference."""
    growth = _growth_curve(test, source, rng)
    places = np.unique(np.linspace(0, len(schedule) - 1, _MOST_LOOKS).astype(int))
    looks = tuple(schedule[place] for place in places)
    sizes = np.array([float(look.n_a) for look in looks])
    walks = _walks(sizes, rng)
    critical = np.array(calibrate(np.abs(walks), cumulative_error(spending, fractions(looks), alpha)).critical)
    hopeless = np.array(futility_scores(fractions(looks), alpha)) * futility
    hopeless[-1] = 0.0  # the last look ends it anyway

    def power(difference: float) -> tuple[float, float]:
        at = growth(difference)
        scores = at.sd * walks + at.mean * np.sqrt(sizes)[:, None]
        stops = (np.abs(scores) >= critical[:, None]) | (np.abs(scores) < hopeless[:, None])
        last = np.where(stops.any(axis=0), stops.argmax(axis=0), len(looks) - 1)
        claimed = scores[last, np.arange(scores.shape[1])] >= critical[last]
        return float(claimed.mean()), float(sizes[last].mean())

    return power


def _walks(sizes: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Scores without a difference at looks of these sizes, (looks, walks)."""
    steps = np.sqrt(np.diff(sizes, prepend=0.0))[:, None] * rng.standard_normal((len(sizes), _WALKS))
    return np.asarray(np.cumsum(steps, axis=0) / np.sqrt(sizes)[:, None])


def _growth_curve(test: str, source: AbstractSource, rng: np.random.Generator) -> Callable[[float], _Growth]:
    first, second = (side[:, 0] for side in source.sides(_SAMPLE, 1, rng))
    growth = _GROWTHS[test]

    def curve(difference: float) -> _Growth:
        at, without = growth(first + abs(difference), second), growth(first, second)
        return _Growth(at.mean - without.mean, at.sd)

    return curve


def _placed(sample: FloatArray, others: FloatArray) -> FloatArray:
    return np.asarray(np.searchsorted(np.sort(others), sample) / others.size)


def _superiority(a: FloatArray, b: FloatArray) -> _Growth:
    above, below = _placed(a, b), _placed(b, a)
    error = math.sqrt(float(above.var() + below.var()))
    return _Growth((float(above.mean()) - 0.5) / error, 1.0)


def _mann_whitney(a: FloatArray, b: FloatArray) -> _Growth:
    above, below = _placed(a, b), _placed(b, a)
    return _Growth((float(above.mean()) - 0.5) * math.sqrt(6), math.sqrt(6 * float(above.var() + below.var())))


def _signed_rank(a: FloatArray, b: FloatArray) -> _Growth:
    differences = a - b
    above = _placed(differences, -differences)
    return _Growth((float(above.mean()) - 0.5) * math.sqrt(3), math.sqrt(12 * float(above.var())))


def _welch(a: FloatArray, b: FloatArray) -> _Growth:
    return _Growth(float(a.mean() - b.mean()) / math.sqrt(float(a.var() + b.var())), 1.0)


def _paired_t(a: FloatArray, b: FloatArray) -> _Growth:
    differences = a - b
    return _Growth(float(differences.mean()) / float(differences.std()), 1.0)


_GROWTHS: dict[str, Callable[[FloatArray, FloatArray], _Growth]] = {
    "brunner-munzel": _superiority,
    "mann-whitney": _mann_whitney,
    "signed-rank": _signed_rank,
    "wilcoxon": _signed_rank,
    "welch": _welch,
    "paired-t": _paired_t,
}
