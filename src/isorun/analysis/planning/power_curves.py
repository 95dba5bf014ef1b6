"""Power of a test by the true difference: simulated, by the normal approximation, or exact.

Simulated runs: two sides without a difference, to which a known difference is added when power is measured.

Arrays are (runs, comparisons).

Power by the normal approximation, for more runs than one would simulate.

A statistic of n runs a side grows like the square root of n. How fast, and how much it varies by then, is read off one
large sample of such runs: placements for rank tests (Lehmann 1975, Nonparametrics, section 2.3), moments for t tests.
What the sample would say without a difference is subtracted, so that a tiny one does not drown in its noise.

Power curves: for one test and number of runs, the chance of a claim as a function of the true difference.

A simulated curve draws its runs once and then only shifts them, so that it rises with the difference and can be
inverted without noise. Beyond 60 runs a side statistics are nearly normal: their mean and spread are taken from a large
sample of such runs, and a sequential rule is asked about Brownian motions, so that a plan for a tiny difference takes
no longer than one for a large. How far the normal law is off (2 to 3 points of power at 60 runs for Brunner-Munzel,
which divides by an error that is estimated) is seen by simulating 60 runs, and shrinks with the number of runs.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats
from scipy.special import ndtr, ndtri

from isorun.analysis.pairwise import SignedRankLaw, continuous_law, superiority_law
from isorun.analysis.samples import FloatArray, finite_sample, is_constant
from isorun.analysis.sequential import (
    DEFAULT_SPENDING,
    FEWEST_RUNS,
    Look,
    Schedule,
    cumulative_error,
    declared_looks,
    fractions,
)
from isorun.analysis.sequential.boundaries import calibrate
from isorun.analysis.sequential.paths import centred_u, moments, signed_rank_scores, superiority_scores, welch_t
from isorun.analysis.sequential.projection import smoothed_resample
from isorun.analysis.sequential.rules import futility_scores, sequential_rule
from isorun.analysis.sequential.trace import ends, trace
from isorun.errors import InputError

__all__ = [
    "PAIRED_TESTS",
    "SEQUENTIAL_TESTS",
    "SIMULATED_UP_TO",
    "TESTS",
    "AbstractRuns",
    "Chance",
    "Curve",
    "Design",
    "NormalRuns",
    "OwnPairs",
    "OwnRuns",
    "is_exact",
    "power_curve",
    "sequential_normal_curve",
    "source_of",
]


class AbstractRuns(abc.ABC):
    """Where simulated runs come from.

    `sd` is what an effect size is measured in: the standard deviation of a run, or of a pair's difference for paired
    tests. Both sides of a draw have the same mean; paired tests see the second side only through the difference.
    """

    sd: float
    description: str

    @abc.abstractmethod
    def sides(self, runs: int, comparisons: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Both sides of many comparisons."""


@dataclass(frozen=True, slots=True)
class NormalRuns(AbstractRuns):
    """Normal runs, or for paired tests normal differences of pairs, of standard deviation `sd`."""

    sd: float = 1.0
    paired: bool = False
    description: str = "normal runs"

    def sides(self, runs: int, comparisons: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Independent normal sides; for pairs all of the noise is in the first."""
        first = self.sd * rng.standard_normal((runs, comparisons))
        second = np.zeros_like(first) if self.paired else self.sd * rng.standard_normal((runs, comparisons))
        return first, second


@dataclass(frozen=True, slots=True)
class OwnRuns(AbstractRuns):
    """Runs like the user's: each side resampled with a little noise, and centred."""

    a: FloatArray
    b: FloatArray
    sd: float
    description: str

    def sides(self, runs: int, comparisons: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Both sides, resampled independently of each other."""
        shape = (runs, comparisons)
        return smoothed_resample(self.a, shape, rng), smoothed_resample(self.b, shape, rng)


@dataclass(frozen=True, slots=True)
class OwnPairs(AbstractRuns):
    """Pairs like the user's: the differences resampled with a little noise, and centred."""

    differences: FloatArray
    sd: float
    description: str

    def sides(self, runs: int, comparisons: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """The differences, against zero."""
        first = smoothed_resample(self.differences, (runs, comparisons), rng)
        return first, np.zeros_like(first)


def source_of(a: ArrayLike | None, b: ArrayLike | None, *, sd: float | None, paired: bool) -> AbstractRuns:
    """The user's own runs when there are any, normal runs of the given spread (1 by default) otherwise."""
    if a is None:
        if b is not None:
            raise InputError("runs of B without runs of A", hint="give the runs of A, or of both")
        return NormalRuns(_checked_sd(1.0 if sd is None else sd), paired)
    if sd is not None:
        raise InputError("both runs and their sd are given", hint="give one: the runs tell their sd")
    first = finite_sample(a, "A", minimum=2)
    second = first if b is None else finite_sample(b, "B", minimum=2)
    return _own_pairs(first, second, both=b is not None) if paired else _own_runs(first, second)


_SPREADS = (1e-150, 1e150)
"""The squares of smaller and larger numbers leave the range of floating point."""


def _own_runs(a: FloatArray, b: FloatArray) -> OwnRuns:
    sd = math.sqrt((float(a.var(ddof=1)) + float(b.var(ddof=1))) / 2)
    if is_constant(a) and is_constant(b):
        raise InputError("power cannot be simulated from runs that do not vary", found=f"every run gave {a[0]:g}")
    _require_computable(sd)
    given = f"{a.size} given" if a is b else f"{a.size} of A and {b.size} of B"
    return OwnRuns(_in_order(a), _in_order(b), sd, f"runs like the {given}")


def _own_pairs(a: FloatArray, b: FloatArray, *, both: bool) -> OwnPairs:
    if not both or a.size != b.size:
        raise InputError(
            "a paired design needs pairs of runs",
            found=f"{a.size} runs of A and {b.size if both else 0} of B",
            allowed="as many runs of A as of B, in the same order",
        )
    differences = a - b
    if is_constant(differences):
        raise InputError(
            "power cannot be simulated from differences that do not vary", found=f"{differences[0]:g} always"
        )
    sd = float(differences.std(ddof=1))
    _require_computable(sd)
    return OwnPairs(_in_order(differences), sd, f"pairs like the {a.size} given")


def _in_order(values: FloatArray) -> FloatArray:
    """Centred, and sorted, so that the order of the rows of a table does not change what is drawn."""
    ordered = np.sort(values)
    return np.asarray(ordered - ordered.mean())


def _checked_sd(sd: float) -> float:
    if not (sd > 0 and math.isfinite(sd)):
        raise InputError("the sd cannot be used", found=f"{sd}", allowed="a finite number above 0")
    _require_computable(sd)
    return sd


def _require_computable(sd: float) -> None:
    if not _SPREADS[0] <= sd <= _SPREADS[1]:
        raise InputError(
            "the spread of the runs is beyond what can be computed with",
            found=f"an sd of {sd:g}",
            allowed=f"from {_SPREADS[0]:g} to {_SPREADS[1]:g}",
            hint="give the metric in another unit",
        )


_SAMPLE = 20_000
_WALKS = 40_000
_MOST_LOOKS = 60  # a rule that looks more often is asked about so many of its looks


@dataclass(frozen=True, slots=True)
class _Growth:
    """mean: of the score, a run a side, by the square root of the runs. sd: of the score under the difference."""

    mean: float
    sd: float


def _normal_power(at: _Growth, runs: int, alpha: float) -> float:
    """The power of one test of so many runs a side (or pairs), were its statistic normal."""
    return float(ndtr((at.mean * math.sqrt(runs) + float(ndtri(alpha / 2))) / at.sd))


def sequential_normal_curve(
    test: str,
    schedule: Schedule,
    source: AbstractRuns,
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


def _growth_curve(test: str, source: AbstractRuns, rng: np.random.Generator) -> Callable[[float], _Growth]:
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
SIMULATED_UP_TO = 60  # runs a side


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


def power_curve(design: Design, runs: int, source: AbstractRuns, rng: np.random.Generator) -> Curve:
    """The curve for `runs` runs a side, pairs, or at most that many for the sequential rule."""
    if is_exact(design, source):
        return _normal_theory(design, runs, source.sd)
    if runs > SIMULATED_UP_TO:
        return _approximate(design, runs, source, rng)
    a, b = source.sides(runs, _COMPARISONS, rng)
    if design.test in SEQUENTIAL_TESTS:
        return _sequential(design, runs, a, b)
    claims = _CLAIMS[design.test]

    def chance(difference: float) -> Chance:
        return Chance(float(claims(a + difference, b, design.alpha).mean()), runs, _COMPARISONS)

    return chance


def is_exact(design: Design, source: AbstractRuns) -> bool:
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


def _approximate(design: Design, runs: int, source: AbstractRuns, rng: np.random.Generator) -> Curve:
    """The curve for more runs than are simulated."""
    if design.test not in SEQUENTIAL_TESTS:
        return _corrected(design, runs, source, rng)
    schedule = declared_looks(design.step, min_runs=min(design.min_runs, runs), max_runs=runs)
    test = SEQUENTIAL_TESTS[design.test]
    both = sequential_normal_curve(
        test, schedule, source, rng, spending=design.spending, alpha=design.alpha, futility=design.futility
    )
    return lambda difference: Chance(*both(difference), 0)


def _corrected(design: Design, runs: int, source: AbstractRuns, rng: np.random.Generator) -> Curve:
    """The normal law less its error at the most runs that are simulated, which shrinks as 1 over the runs."""
    growth = _growth_curve(design.test, source, rng)
    a, b = source.sides(SIMULATED_UP_TO, _COMPARISONS, rng)
    claims = _CLAIMS[design.test]
    shrunk = SIMULATED_UP_TO / runs

    def chance(difference: float) -> Chance:
        alike = abs(difference) / math.sqrt(shrunk)  # what so many fewer runs see as often
        seen = float(claims(a + alike, b, design.alpha).mean())
        error = _normal_power(growth(alike), SIMULATED_UP_TO, design.alpha) - seen
        power = _normal_power(growth(difference), runs, design.alpha) - shrunk * error
        return Chance(min(1.0, max(0.0, power)), runs, 0)

    return chance


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
