"""Equivalence: two one-sided tests against a stated margin, once or repeatedly (Schuirmann 1987, J. Pharmacokin. 15).

The statistic is (margin - |mean difference|) / its standard error: the smaller of the two one-sided t statistics.
Equivalence is claimed when it reaches the critical value of a one-sided test at alpha. Claiming it falsely means
that one of the two one-sided tests erred at its border, so the error rate is that of one test (an intersection-union
test). Looking repeatedly, that one-sided error is spent like alpha (sequential), or the margin must hold the whole
confidence sequence (e-process).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from isorun.analysis.sequential.calibration import CALIBRATION_SEED, calibrate, simulated_paths
from isorun.analysis.sequential.e_process import critical_t
from isorun.analysis.sequential.looks import Schedule, fractions
from isorun.analysis.sequential.paths import AnyFloats, Moments, moments, pooled_t, welch_t
from isorun.analysis.sequential.spending import cumulative_error

__all__ = ["EquivalenceRule", "e_process_equivalence", "plain_equivalence", "spending_equivalence"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class EquivalenceRule:
    """margin: the largest difference that does not matter, in units of the metric.

    critical: one value a look, or None for Student's quantile at `alpha` with Welch's degrees of freedom.
    pooled: whether the standard error pools the two spreads (as the t e-process does) or not (Welch).
    """

    margin: float
    alpha: float
    critical: tuple[float, ...] | None
    pooled: bool = False

    def statistic(self, at: Moments) -> Floats:
        """(margin - |mean difference|) / standard error at each look."""
        t = pooled_t if self.pooled else welch_t
        return np.minimum(t(at, -self.margin), -t(at, self.margin))

    def critical_values(self, at: Moments) -> Floats:
        """What the statistic must reach, (looks, comparisons) or (looks, 1)."""
        if self.critical is not None:
            return np.array(self.critical)[: len(at.n_a), None]
        return np.asarray(special.stdtrit(_welch_degrees(at), 1 - self.alpha))


def plain_equivalence(margin: float, alpha: float) -> EquivalenceRule:
    """Welch's two one-sided tests at alpha each: right for a single look."""
    return EquivalenceRule(margin, alpha, critical=None)


def spending_equivalence(margin: float, schedule: Schedule, spending: str, alpha: float) -> EquivalenceRule:
    """Welch's two one-sided tests with boundaries that spend alpha over the looks."""
    return EquivalenceRule(margin, alpha, critical=_one_sided_welch(schedule, spending, alpha))


def e_process_equivalence(margin: float, schedule: Schedule, alpha: float) -> EquivalenceRule:
    """The confidence sequence of the mean difference must lie within the margin."""
    critical = tuple(critical_t(look, alpha) for look in schedule)
    return EquivalenceRule(margin, alpha, critical, pooled=True)


@functools.lru_cache(maxsize=32)
def _one_sided_welch(schedule: Schedule, spending: str, alpha: float) -> tuple[float, ...]:
    """Critical values of Welch's t for normal runs of equal spread, whose joint law over the looks is simulated."""
    rng = np.random.default_rng(CALIBRATION_SEED)
    last = schedule[-1]
    count = simulated_paths(sum(last)) // 2  # antithetic: every path is used with both signs
    a = rng.standard_normal((last.n_a, count), dtype=np.float32)
    b = rng.standard_normal((last.n_b, count), dtype=np.float32)
    t = _in_blocks(a, b, schedule)
    cumulative = cumulative_error(spending, fractions(schedule), alpha)
    return calibrate(np.concatenate([t, -t], axis=1), cumulative).critical


def _in_blocks(a: AnyFloats, b: AnyFloats, schedule: Schedule, columns: int = 32_768) -> Floats:
    blocks = [slice(start, start + columns) for start in range(0, a.shape[1], columns)]
    return np.concatenate([welch_t(moments(a[:, block], b[:, block], schedule)) for block in blocks], axis=1)


def _welch_degrees(at: Moments) -> Floats:
    """Satterthwaite's degrees of freedom; any will do where nothing varies."""
    part_a, part_b = at.var_a / at.n_a, at.var_b / at.n_b
    spread = part_a**2 / (at.n_a - 1) + part_b**2 / (at.n_b - 1)
    return np.where(spread > 0, (part_a + part_b) ** 2 / np.where(spread > 0, spread, 1.0), 1.0)
