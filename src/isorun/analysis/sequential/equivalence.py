"""Equivalence: two one-sided tests against a stated margin, once or repeatedly (Schuirmann 1987, J. Pharmacokin. 15).

The statistic is (margin - |mean difference|) / its standard error: the smaller of the two one-sided t statistics.
Equivalence is claimed when it reaches the critical value of a one-sided test at alpha. Claiming it falsely means
that one of the two one-sided tests erred at its border, so the error rate is that of one test (an intersection-union
test). Looking repeatedly, that one-sided error is spent like alpha (sequential), or the margin must hold the whole
confidence sequence (e-process).

Simulated at the border over 26 looks the error rate stays below .05 for normal, skewed, heavy-tailed and tied runs and
for normal runs of unequal spread. It does not when both sides are strongly skewed and one spreads twice as much as
the other (.075 lognormal, .097 exponential, against .070 and .078 for a single look), nor for a metric of two values,
which a few runs may not show to vary at all: t tests are not made for those.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from isorun.analysis.inputs.samples import FloatArray
from isorun.analysis.sequential.calibration import calibrate, null_paths
from isorun.analysis.sequential.e_process import critical_t
from isorun.analysis.sequential.looks import Schedule, fractions
from isorun.analysis.sequential.paths import Moments, RunArray, moments, pooled_t, welch_t
from isorun.analysis.sequential.spending import cumulative_error

__all__ = ["EquivalenceRule", "e_process_equivalence", "plain_equivalence", "spending_equivalence"]

_PATHS = 200_000


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

    def up_to(self, looks: int) -> EquivalenceRule:
        """The same rule for the first looks only."""
        return self if self.critical is None else replace(self, critical=self.critical[:looks])

    def statistic(self, at: Moments) -> FloatArray:
        """(margin - |mean difference|) / standard error at each look."""
        t = pooled_t if self.pooled else welch_t
        return np.minimum(t(at, -self.margin), -t(at, self.margin))

    def critical_values(self, at: Moments) -> FloatArray:
        """What the statistic must reach, (looks, comparisons) or (looks, 1)."""
        if self.critical is not None:
            return np.array(self.critical)[: len(at.n_a), None]
        return np.asarray(special.stdtrit(_welch_degrees(at), 1 - self.alpha))


def plain_equivalence(margin: float, alpha: float) -> EquivalenceRule:
    """Welch's two one-sided tests at alpha each: right for a single look."""
    return EquivalenceRule(margin, alpha, critical=None)


def spending_equivalence(
    margin: float,
    schedule: Schedule,
    spending: str,
    alpha: float,
    *,
    paired: bool = False,
    stages: tuple[int, ...] = (),
) -> EquivalenceRule:
    """Welch's two one-sided tests with boundaries that spend alpha over the looks; of pairs Student's."""
    ends = tuple(stage / max(schedule[-1]) for stage in stages)
    cumulative = cumulative_error(spending, fractions(schedule), alpha, ends)
    return EquivalenceRule(margin, alpha, critical=_one_sided(schedule, cumulative, paired))


def e_process_equivalence(margin: float, schedule: Schedule, alpha: float, *, paired: bool = False) -> EquivalenceRule:
    """The confidence sequence of the mean difference must lie within the margin."""
    critical = tuple(critical_t(look, alpha, paired=paired) for look in schedule)
    return EquivalenceRule(margin, alpha, critical, pooled=not paired)


@functools.lru_cache(maxsize=32)
def _one_sided(schedule: Schedule, cumulative: tuple[float, ...], paired: bool) -> tuple[float, ...]:
    """Critical values of Welch's t for normal runs of equal spread, whose joint law over the looks is simulated.

    Against a side that is always 0, Welch's t is Student's t of the differences.
    """
    return calibrate(
        null_paths(schedule, _normal, _student if paired else _welch, most_paths=_PATHS), cumulative
    ).critical


def _normal(rng: np.random.Generator, shape: tuple[int, int]) -> RunArray:
    return rng.standard_normal(shape, dtype=np.float32)


def _welch(a: RunArray, b: RunArray, schedule: Schedule) -> FloatArray:
    return welch_t(moments(a, b, schedule))


def _student(differences: RunArray, b: RunArray, schedule: Schedule) -> FloatArray:
    return welch_t(moments(differences, np.zeros_like(b), schedule))


def _welch_degrees(at: Moments) -> FloatArray:
    """Satterthwaite's degrees of freedom; any will do where nothing varies."""
    part_a, part_b = at.var_a / at.n_a, at.var_b / at.n_b
    spread = part_a**2 / (at.n_a - 1) + part_b**2 / (at.n_b - 1)
    return np.where(spread > 0, (part_a + part_b) ** 2 / np.where(spread > 0, spread, 1.0), 1.0)
