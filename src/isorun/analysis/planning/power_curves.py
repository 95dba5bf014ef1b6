"""Power curves: for one test and number of runs, the chance of a claim as a function of the true difference.

A simulated curve draws its runs once and then only shifts them, so that it rises with the difference and can be
inverted without noise. Beyond 60 runs a side statistics are near enough to normal: their mean and spread are taken
from a large sample of such runs, and a sequential rule is asked about Brownian motions, so that a plan for a tiny
difference takes no longer than one for a large.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from isorun.analysis.inputs.samples import FloatArray
from isorun.analysis.pairwise.brunner_munzel import superiority_law
from isorun.analysis.pairwise.signed_rank import SignedRankLaw
from isorun.analysis.planning.normal_power import normal_curve, sequential_normal_curve
from isorun.analysis.planning.simulated_runs import AbstractSource, NormalRuns
from isorun.analysis.sequential.looks import FEWEST_RUNS, Look, declared_looks
from isorun.analysis.sequential.null_law import continuous_law
from isorun.analysis.sequential.paths import centred_u, moments, signed_rank_scores, superiority_scores, welch_t
from isorun.analysis.sequential.rules import sequential_rule
from isorun.analysis.sequential.spending import DEFAULT_SPENDING
from isorun.analysis.sequential.trace import ends, trace

__all__ = ["PAIRED_TESTS", "SEQUENTIAL_TESTS", "TESTS", "Chance", "Curve", "Design", "is_exact", "power_curve"]

SEQUENTIAL_TESTS = {
    "sequential": "brunner-munzel",
    "sequential-mann-whitney": "mann-whitney",
    "sequential-signed-rank": "signed-rank",
}
"""The rules of `decide`, and the test that each makes at its looks."""
_FIXED_TESTS = ("brunner-munzel", "mann-whitney", "welch", "signed-rank", "wilcoxon", "paired-t")
TESTS = (*_FIXED_TESTS, *SEQUENTIAL_TESTS)
PAIRED_TESTS = frozenset({"signed-rank", "wilcoxon", "paired-t", "sequential-signed-rank"})
_COMPARISONS = 20_000
_SIMULATED_UP_TO = 60  # runs a side


@dataclass(frozen=True, slots=True)
class Design:
    """How the runs will be judged. spending, min_runs, step and futility are those of the sequential rule."""

    test: str = "brunner-munzel"
    alpha: float = 0.05
    spending: str = DEFAULT_SPENDING
    min_runs: int = FEWEST_RUNS
    step: int = 1
    futility: bool = True


@dataclass(frozen=True, slots=True)
class Chance:
    """power: the chance of a claim for the better side. mean_runs: the runs a side it takes on average.

    comparisons: how many were simulated; 0 when the chance is computed.
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
    if runs > _SIMULATED_UP_TO:
        return _approximate(design, runs, source, rng)
    a, b = source.sides(runs, _COMPARISONS, rng)
    if design.test in SEQUENTIAL_TESTS:
        return _sequential(design, runs, a, b)
    claims = _CLAIMS[design.test]

    def chance(difference: float) -> Chance:
        return Chance(float(claims(a + difference, b, design.alpha).mean()), runs, _COMPARISONS)

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


def _approximate(design: Design, runs: int, source: AbstractSource, rng: np.random.Generator) -> Curve:
    """The curve for more runs than are simulated."""
    if design.test not in SEQUENTIAL_TESTS:
        power = normal_curve(design.test, runs, source, rng, alpha=design.alpha)
        return lambda difference: Chance(power(difference), runs, 0)
    schedule = declared_looks(design.step, min_runs=min(design.min_runs, runs), max_runs=runs)
    test = SEQUENTIAL_TESTS[design.test]
    both = sequential_normal_curve(
        test, schedule, source, rng, spending=design.spending, alpha=design.alpha, futility=design.futility
    )
    return lambda difference: Chance(*both(difference), 0)


def _sequential(design: Design, runs: int, a: FloatArray, b: FloatArray) -> Curve:
    schedule = declared_looks(design.step, min_runs=design.min_runs, max_runs=runs)
    test = SEQUENTIAL_TESTS[design.test]
    rule = sequential_rule(schedule, design.spending, design.alpha, futility=design.futility, test=test, quick=True)
    sizes = np.array([look.n_a for look in schedule])

    def chance(difference: float) -> Chance:
        end = ends(trace(rule, a + abs(difference), b))
        return Chance(float((end.favours > 0).mean()), float(sizes[end.look].mean()), a.shape[1])

    return chance


def _brunner_munzel_claims(a: FloatArray, b: FloatArray, alpha: float) -> Bools:
    look = Look(len(a), len(b))
    return np.asarray(superiority_scores(a, b, (look,))[0] >= superiority_law(*look).critical(alpha) * (1 - 1e-9))


def _mann_whitney_claims(a: FloatArray, b: FloatArray, alpha: float) -> Bools:
    look = Look(len(a), len(b))
    return np.asarray(centred_u(a, b, (look,))[0] >= continuous_law(*look).critical(alpha))


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


def _signed_rank_claims(a: FloatArray, b: FloatArray, alpha: float) -> Bools:
    law = SignedRankLaw.of(np.arange(1.0, len(a) + 1))
    return np.asarray(signed_rank_scores(a - b, (Look(len(a), len(a)),))[0] >= law.critical(alpha))


_CLAIMS: dict[str, Callable[[FloatArray, FloatArray, float], Bools]] = {
    "brunner-munzel": _brunner_munzel_claims,
    "mann-whitney": _mann_whitney_claims,
    "welch": _welch_claims,
    "paired-t": _paired_t_claims,
    "signed-rank": _signed_rank_claims,
    "wilcoxon": _signed_rank_claims,
}
