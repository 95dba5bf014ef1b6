"""Analyses offered by name beside the verdict: almost stochastic order, and Bayesian comparisons.

Almost stochastic order (ASO): how far is A from being better than B at every quantile?

del Barrio, Cuesta-Albertos and Matrán (2018) measure by how much the order is violated: the part of the squared
distance of the two quantile functions at which B is ahead. Dror, Shlomov and Reichart (ACL 2019) use an upper
confidence limit of this ratio, eps_min, to compare trainings: below 0.5 A is called better. As in the package deepsig:
the same quantile functions, steps of the integral and normal limit from a bootstrap, which here is drawn all at once.

The name is the promise of a test, but neither 0.5 nor the stricter 0.2 bounds false claims; `FALSE_CLAIMS` says how
many were made in a simulation of equal approaches.

Bayesian comparisons of two approaches with a region of practical equivalence (ROPE).

`bayesian_signed_rank`: the signed rank test with a Dirichlet process prior (Benavoli et al., ICML 2014; JMLR 2017), for
paired results on tasks or seeds. `bayesian_correlated_t`: for the folds of one cross-validation, whose results are
correlated because they share training data (Corani and Benavoli, Machine Learning 2015). Both are as in the package
baycomp, which counts y - x: its right side is A here. What they give are degrees of belief, not error rates.

Analyses that are asked for by name, beside the verdict: nothing is claimed by them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtr

from isorun.analysis.samples import FloatArray, Pairs, finite_sample, is_constant, oriented, snapped
from isorun.errors import InputError, known_names

__all__ = [
    "FALSE_CLAIMS",
    "NAMES",
    "Named",
    "NamedQuestion",
    "RopeBelief",
    "StochasticOrder",
    "almost_stochastic_order",
    "asked_by_name",
    "bayesian_correlated_t",
    "bayesian_signed_rank",
]

FALSE_CLAIMS: Final[Mapping[int, tuple[float, float]]] = {5: (0.20, 0.05), 10: (0.19, 0.04), 30: (0.19, 0.03)}
"""Runs a side to the share of comparisons of equal approaches with eps_min of A over B below 0.5, and below 0.2."""


@dataclass(frozen=True, slots=True)
class StochasticOrder:
    """The observed violation of "A is better at every quantile", and eps_min, its upper confidence limit.

    0: no violation. 0.5: neither is ahead. 1: B is better at every quantile.
    """

    a: str
    b: str
    n_a: int
    n_b: int
    violation: float
    eps_min: float
    confidence: float

    @property
    def sentence(self) -> str:
        """What was found, and what it does not bound."""
        runs = min(FALSE_CLAIMS, key=lambda known: abs(known - min(self.n_a, self.n_b)))
        half, fifth = FALSE_CLAIMS[runs]
        return (
            f"{self.a} over {self.b}: at most {self.eps_min:.2f} of the distance between their quantiles goes against "
            f"{self.a} (eps_min, {self.confidence:.0%} confidence; observed {self.violation:.2f}; 0: {self.a} is ahead "
            "everywhere, 0.5: neither is). No rule on it bounds false claims: of two equal approaches with "
            f"{runs} runs each, a given one falls below 0.5 in {half:.0%} and below 0.2 in {fifth:.0%} of comparisons, "
            "either of them in twice as many."
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "a": self.a,
            "b": self.b,
            "n_a": self.n_a,
            "n_b": self.n_b,
            "violation": self.violation,
            "eps_min": self.eps_min,
            "confidence": self.confidence,
            "sentence": self.sentence,
        }


def almost_stochastic_order(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    generator: np.random.Generator,
    *,
    direction: str = "higher",
    confidence: float = 0.95,
    repetitions: int = 1_000,
    step: float = 0.005,
    a: str = "A",
    b: str = "B",
) -> StochasticOrder:
    """eps_min of the first over the second. For several comparisons raise `confidence` to 1 - 0.05 / comparisons."""
    if not (0.0 < step < 0.5 and 0.5 <= confidence < 1.0 and repetitions > 1):
        found = f"confidence {confidence:g}, repetitions {repetitions}, step {step:g}"
        raise InputError("unusable options of ASO", found=found, allowed="0.5 to 1, 2 or more, 0 to 0.5")
    x, y = (
        np.sort(oriented(finite_sample(runs, f"the runs of {name}"), direction))
        for runs, name in ((first, a), (second, b))
    )
    violation = float(_violations(x[None, :], y[None, :], step)[0])
    drawn = _violations(_redrawn(x, repetitions, generator), _redrawn(y, repetitions, generator), step)
    limit = violation + float(drawn.std()) * float(ndtri(confidence))
    return StochasticOrder(a, b, x.size, y.size, violation, min(max(limit, 0.0), 1.0), confidence)


def _redrawn(ordered: FloatArray, repetitions: int, generator: np.random.Generator) -> FloatArray:
    """Samples with replacement, a row each, in order: sorted positions stand for sorted values."""
    return np.asarray(ordered[np.sort(generator.integers(0, ordered.size, (repetitions, ordered.size)), axis=1)])


def _violations(first: FloatArray, second: FloatArray, step: float) -> FloatArray:
    """The violation ratio of each row; rows are ordered samples. One half where both have the same quantiles.

    The first place of the integral is left out of the violations only, as in deepsig.
    """
    places = np.arange(step, 1.0, step)
    f, g = (sample[:, _quantile_positions(places, sample.shape[1])] for sample in (first, second))
    squares = (g - f) ** 2
    against = np.where(g > f, squares, 0.0)[:, 1:].sum(axis=1)
    whole = squares.sum(axis=1)
    return np.asarray(np.divide(against, whole, out=np.full(whole.shape, 0.5), where=whole > 0.0))


def _quantile_positions(places: FloatArray, size: int) -> npt.NDArray[np.intp]:
    return np.clip(np.ceil(size * places).astype(np.intp) - 1, 0, size - 1)


_BLOCK = 10_000
_NOISE = 64.0 * 2.0**-52


@dataclass(frozen=True, slots=True)
class RopeBelief:
    """How much the differences speak for A, for practical equivalence (a difference within the ROPE), and for B."""

    test: str
    a: str
    b: str
    n: int
    rope: float
    a_better: float
    equivalent: float
    b_better: float

    @property
    def sentence(self) -> str:
        """What was found, and what it does not say."""
        within = f", {self.equivalent:.1%} that they are equal within {self.rope:g}" if self.rope else ""
        more = f" by more than {self.rope:g}" if self.rope else ""
        return (
            f"Given {self.n} differences, the {self.test} test believes with {self.a_better:.1%} that {self.a} is "
            f"better than {self.b}{more}{within}, and with {self.b_better:.1%} that {self.b} is better{more}. "
            "These are degrees of belief under its prior: how often such a statement is false is not bounded by them."
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "test": self.test,
            "a": self.a,
            "b": self.b,
            "n": self.n,
            "rope": self.rope,
            "a_better": self.a_better,
            "equivalent": self.equivalent,
            "b_better": self.b_better,
            "sentence": self.sentence,
        }


def bayesian_signed_rank(
    differences: npt.ArrayLike,
    rope: float,
    generator: np.random.Generator,
    *,
    direction: str = "higher",
    prior: float = 0.5,
    repetitions: int = 50_000,
    a: str = "A",
    b: str = "B",
) -> RopeBelief:
    """The belief that the median of a sum of two differences (A minus B) lies above, within or below twice the ROPE.

    prior: the weight of a pseudo-difference of zero. Each repetition draws weights of all differences; the region that
    holds most of the weight of their pairwise sums wins it.
    """
    gains = _gains(differences, rope, direction)
    if prior <= 0.0 or repetitions < 1:
        raise InputError("unusable prior or repetitions", found=f"{prior:g}, {repetitions}", allowed="more than 0")
    known = snapped(np.concatenate([[0.0], gains]), float(np.abs(gains).max()))
    sums = np.add.outer(known, known)
    limit = _NOISE * float(np.abs(sums).max() + 2.0 * rope)
    above, below = _beyond(sums - 2.0 * rope, limit), _beyond(-sums - 2.0 * rope, limit)
    strength = np.concatenate([[prior], np.ones(gains.size)])
    won = np.zeros(3)
    for first in range(0, repetitions, _BLOCK):
        weights = generator.dirichlet(strength, min(_BLOCK, repetitions - first))
        won += _winners(weights, above, below, rope)
    below_share, within, above_share = (won / repetitions).tolist()
    return RopeBelief("Bayesian signed rank", a, b, gains.size, rope, above_share, within, below_share)


def _beyond(distances: FloatArray, limit: float) -> FloatArray:
    """1 above zero, one half at it, 0 below."""
    return np.where(np.abs(distances) <= limit, 0.5, (distances > 0.0).astype(np.float64))


def _winners(weights: FloatArray, above: FloatArray, below: FloatArray, rope: float) -> npt.NDArray[np.intp]:
    """How many rows of weights give most to below, within and above."""
    up = ((weights @ above) * weights).sum(axis=1)
    down = ((weights @ below) * weights).sum(axis=1) if rope > 0.0 else 1.0 - up
    winner = np.argmax(np.column_stack([down, 1.0 - down - up if rope > 0.0 else np.zeros_like(up), up]), axis=1)
    return np.bincount(winner, minlength=3)


def bayesian_correlated_t(
    differences: npt.ArrayLike,
    rope: float,
    correlation: float,
    *,
    direction: str = "higher",
    a: str = "A",
    b: str = "B",
) -> RopeBelief:
    """The belief that the mean difference (A minus B) lies above, within or below the ROPE.

    correlation: between the results of two folds, by Nadeau and Bengio's rule the share of data that a fold tests on:
    1 / folds, whether the cross-validation was repeated or not. 0: the differences are independent, as those of seeds.
    """
    gains = _gains(differences, rope, direction, minimum=2)
    if not 0.0 <= correlation < 1.0:
        raise InputError("a correlation of folds", found=f"{correlation:g}", allowed="0 up to, but not, 1")
    mean, n = float(gains.mean()), gains.size
    variance = 0.0 if is_constant(gains) else float(gains.var(ddof=1))
    error = math.sqrt(variance * (1.0 / n + correlation / (1.0 - correlation)))
    below, above = (_tail(n - 1, side * mean - rope, error) for side in (-1.0, 1.0))
    return RopeBelief("Bayesian correlated t", a, b, n, rope, above, max(0.0, 1.0 - above - below), below)


def _tail(freedom: int, beyond: float, error: float) -> float:
    """The belief in a mean beyond the ROPE on the side where the observed one is `beyond` it."""
    if error == 0.0:
        return 1.0 if beyond > 0.0 else 0.5 * float(beyond == 0.0)
    return float(stdtr(freedom, beyond / error))


def _gains(differences: npt.ArrayLike, rope: float, direction: str, minimum: int = 1) -> FloatArray:
    if not (math.isfinite(rope) and rope >= 0.0):
        raise InputError("the region of practical equivalence", found=f"{rope:g}", allowed="0 or a positive number")
    return oriented(finite_sample(differences, "the differences", minimum=minimum), direction)


_SEED: Final = 27_644_437


class Named(Protocol):
    """What an analysis found: a sentence that says what it bounds and what not, and plain JSON."""

    @property
    def sentence(self) -> str:
        """The finding in words."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""


@dataclass(frozen=True, slots=True)
class NamedQuestion:
    """Two sides, one value a unit. rope: a difference that does not matter; correlation: of the folds of one split."""

    a: str
    b: str
    first: FloatArray
    second: FloatArray
    pairs: Pairs | None
    direction: str
    rope: float = 0.0
    correlation: float = 0.0

    @property
    def differences(self) -> FloatArray:
        """Of the pairs; an error where there are none."""
        if self.pairs is None:
            raise InputError("that analysis needs pairs of runs", found="no pairs", hint="pair=… (--pair seed)")
        return self.pairs.first - self.pairs.second


def asked_by_name(names: tuple[str, ...], question: NamedQuestion) -> Mapping[str, Named]:
    """The analyses of these names; each draws from a generator of fixed seed, so that the same runs say the same."""
    for name in names:
        if name not in NAMES:
            raise InputError(f"there is no analysis {name!r}", allowed=known_names(name, NAMES))
    return {name: NAMES[name](question) for name in names}


def _signed_rank(asked: NamedQuestion) -> Named:
    generator = np.random.default_rng(_SEED)
    return bayesian_signed_rank(
        asked.differences, asked.rope, generator, direction=asked.direction, a=asked.a, b=asked.b
    )


def _correlated_t(asked: NamedQuestion) -> Named:
    return bayesian_correlated_t(
        asked.differences, asked.rope, asked.correlation, direction=asked.direction, a=asked.a, b=asked.b
    )


def _stochastic_order(asked: NamedQuestion) -> Named:
    generator = np.random.default_rng(_SEED)
    return almost_stochastic_order(
        asked.first, asked.second, generator, direction=asked.direction, a=asked.a, b=asked.b
    )


NAMES: Final[Mapping[str, Callable[[NamedQuestion], Named]]] = {
    "bayesian-signed-rank": _signed_rank,
    "bayesian-correlated-t": _correlated_t,
    "aso": _stochastic_order,
}
