"""Equivalence by two one-sided tests, and the t e-process, whose confidence sequence serves it, too.

The t e-process: evidence that stays valid however often one looks, without a maximum number of runs.

The e-value is the Bayes factor of an effect size drawn from N(0, 1) against none, with the right Haar prior on mean
and standard deviation. For normal runs of equal spread it is a nonnegative martingale under the null, so the chance
that it ever reaches 1/alpha is at most alpha (Ville 1939; Lai 1976, Annals of Statistics 4; Wang and Ramdas 2024,
"Anytime-valid t-tests and confidence sequences for Gaussian means with unknown variance"). Inverting it gives a
confidence sequence: mean difference ± `critical_t` standard errors, right at all looks together.

Equivalence: two one-sided tests against a stated margin, once or repeatedly (Schuirmann 1987, J. Pharmacokin. 15).

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
from numpy.typing import ArrayLike
from scipy import special

from isorun.analysis.samples import FloatArray
from isorun.analysis.sequential import Look, Schedule, cumulative_error, fractions
from isorun.analysis.sequential.boundaries import calibrate, null_paths
from isorun.analysis.sequential.paths import Moments, RunArray, moments, pooled_t, welch_t

__all__ = [
    "EquivalenceRule",
    "critical_t",
    "e_process_equivalence",
    "e_value",
    "plain_equivalence",
    "spending_equivalence",
]


def e_value(t: ArrayLike, look: Look, *, paired: bool = False) -> FloatArray:
    """The evidence against equality in Student's t at this look; above 1 speaks for a difference.

    t is that of two samples, or of the differences of pairs, whose effect size is then in units of their own spread.
    """
    squared = np.square(np.asarray(t, dtype=np.float64))
    degrees, growth = _degrees_and_growth(look, paired=paired)
    log_ratio = np.log(growth) - np.log1p((growth - 1) / (1 + squared / degrees))  # finite for an infinite t, too
    return np.asarray(np.exp((degrees + 1) / 2 * log_ratio - np.log(growth) / 2))


def critical_t(look: Look, alpha: float, *, paired: bool = False) -> float:
    """The t from which the e-value is at least 1/alpha; inf where so few runs cannot reach it."""
    degrees, growth = _degrees_and_growth(look, paired=paired)
    ratio = (np.sqrt(growth) / alpha) ** (2 / (degrees + 1))
    if ratio >= growth:
        return float("inf")
    return float(np.sqrt(degrees * (ratio - 1) / (1 - ratio / growth)))


def _degrees_and_growth(look: Look, *, paired: bool) -> tuple[int, float]:
    if paired:
        return look.n_a - 1, 1.0 + look.n_a
    return look.n_a + look.n_b - 2, 1.0 + look.information


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
