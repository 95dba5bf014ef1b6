"""Power curves: for one test and number of runs, the chance of a claim as a function of the true difference.

A simulated curve draws its runs once and then only shifts them, so that it rises with the difference and can be
inverted without noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from isorun.analysis.inputs.samples import FloatArray
from isorun.analysis.planning.simulated_runs import AbstractSource, NormalRuns
from isorun.analysis.sequential.looks import FEWEST_RUNS, Look, declared_looks
from isorun.analysis.sequential.null_law import continuous_law
from isorun.analysis.sequential.paths import centred_u, centred_u_of_all, moments, welch_t
from isorun.analysis.sequential.rules import rank_rule
from isorun.analysis.sequential.spending import DEFAULT_SPENDING
from isorun.analysis.sequential.trace import ends, trace

__all__ = ["PAIRED_TESTS", "TESTS", "Chance", "Curve", "Design", "is_exact", "power_curve"]

TESTS = ("mann-whitney", "welch", "wilcoxon", "paired-t", "sequential")
PAIRED_TESTS = frozenset({"wilcoxon", "paired-t"})
_COMPARISONS = 20_000
_FEWEST_COMPARISONS = 2_000
_PAIRS_COMPARED = 400_000_000  # about a second
_SORTED_FROM = 100  # from so many runs on, sorting is faster than comparing all pairs


@dataclass(frozen=True, slots=True)
class Design:
    """How the runs will be judged. spending, min_runs, step and futility are those of the sequential rule."""

    test: str = "mann-whitney"
    alpha: float = 0.05
    spending: str = DEFAULT_SPENDING
    min_runs: int = FEWEST_RUNS
    step: int = 1
    futility: bool = True


@dataclass(frozen=True, slots=True)
class Chance:
    """power: the chance of a claim for the better side. mean_runs: the runs a side it takes on average.

    comparisons: how many were simulated; 0 when the chance is known exactly.
    """

    power: float
    mean_runs: float
    comparisons: int

    @property
    def standard_error(self) -> float:
        """How far the simulated power may be off, as a standard error."""
        return math.sqrt(self.power * (1 - self.power) / self.comparisons) if self.comparisons else 0.0


Curve = Callable[[float], Chance]
Bools = NDArray[np.bool_]


def power_curve(design: Design, runs: int, source: AbstractSource, rng: np.random.Generator) -> Curve:
    """The curve for `runs` runs a side, pairs, or at most that many for the sequential rule."""
    if is_exact(design, source):
        return _normal_theory(design, runs, source.sd)
    comparisons = int(np.clip(_PAIRS_COMPARED // runs**2, _FEWEST_COMPARISONS, _COMPARISONS))
    a, b = source.sides(runs, comparisons, rng)
    if design.test == "sequential":
        return _sequential(design, runs, a, b)
    claims = _CLAIMS[design.test]

    def chance(difference: float) -> Chance:
        return Chance(float(claims(a + difference, b, design.alpha).mean()), runs, comparisons)

    return chance


def is_exact(design: Design, source: AbstractSource) -> bool:
    """Whether the curve is computed rather than simulated: the t tests of normal runs are."""
    return isinstance(source, NormalRuns) and design.test in {"welch", "paired-t"}


def _normal_theory(design: Design, runs: int, sd: float) -> Curve:
    """Student's t under a true difference: noncentral t, the claim for the better side only.

    For two sides this is the pooled test; Welch's has the same power but for a fraction of a degree of freedom.
    """
    paired = design.test == "paired-t"
    degrees = runs - 1 if paired else 2 * (runs - 1)
    critical = float(special.stdtrit(degrees, 1 - design.alpha / 2))
    scale = math.sqrt(runs if paired else runs / 2) / sd

    def chance(difference: float) -> Chance:
        return Chance(float(stats.nct.sf(critical, degrees, abs(difference) * scale)), runs, 0)

    return chance


def _sequential(design: Design, runs: int, a: FloatArray, b: FloatArray) -> Curve:
    schedule = declared_looks(design.step, min_runs=design.min_runs, max_runs=runs)
    rule = rank_rule(schedule, design.spending, design.alpha, futility=design.futility)
    sizes = np.array([look.n_a for look in schedule])

    def chance(difference: float) -> Chance:
        end = ends(trace(rule, a + abs(difference), b))
        return Chance(float((end.favours > 0).mean()), float(sizes[end.look].mean()), a.shape[1])

    return chance


def _mann_whitney_claims(a: FloatArray, b: FloatArray, alpha: float) -> Bools:
    look = Look(len(a), len(b))
    statistic = centred_u if len(a) < _SORTED_FROM else centred_u_of_all
    return np.asarray(statistic(a, b, (look,))[0] >= continuous_law(*look).critical(alpha))


def _welch_claims(a: FloatArray, b: FloatArray, alpha: float) -> Bools:
    at = moments(a, b, (Look(len(a), len(b)),))
    part_a, part_b = at.var_a / at.n_a, at.var_b / at.n_b
    degrees = (part_a + part_b) ** 2 / (part_a**2 / (at.n_a - 1) + part_b**2 / (at.n_b - 1))
    return np.asarray(welch_t(at)[0] >= special.stdtrit(degrees[0], 1 - alpha / 2))


def _paired_t_claims(a: FloatArray, b: FloatArray, alpha: float) -> Bools:
    differences = a - b
    pairs = len(differences)
    error = differences.std(axis=0, ddof=1) / math.sqrt(pairs)
    return np.asarray(differences.mean(axis=0) >= special.stdtrit(pairs - 1, 1 - alpha / 2) * error)


def _wilcoxon_claims(a: FloatArray, b: FloatArray, alpha: float) -> Bools:
    differences = a - b
    pairs = len(differences)
    ranks = np.argsort(np.argsort(np.abs(differences), axis=0), axis=0) + 1
    positive = np.where(differences > 0, ranks, 0).sum(axis=0)
    return np.asarray(positive - pairs * (pairs + 1) / 4 >= _signed_rank_critical(pairs, alpha))


def _signed_rank_critical(pairs: int, alpha: float) -> float:
    """The distance of the signed-rank sum from its middle that has a two-sided p of at most alpha; inf for too few."""
    law = np.ones(1)
    for rank in range(1, pairs + 1):
        law = (np.pad(law, (0, rank)) + np.pad(law, (rank, 0))) / 2
    upper_tail = np.cumsum(law[::-1])[::-1]
    significant = np.flatnonzero(upper_tail <= alpha / 2 * (1 + 1e-12))
    return float(significant[0]) - pairs * (pairs + 1) / 4 if significant.size else math.inf


_CLAIMS: dict[str, Callable[[FloatArray, FloatArray, float], Bools]] = {
    "mann-whitney": _mann_whitney_claims,
    "welch": _welch_claims,
    "paired-t": _paired_t_claims,
    "wilcoxon": _wilcoxon_claims,
}
