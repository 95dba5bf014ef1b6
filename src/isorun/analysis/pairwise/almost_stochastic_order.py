"""Almost stochastic order (ASO): how far is A from being better than B at every quantile?

del Barrio, Cuesta-Albertos and Matrán (2018) measure by how much the order is violated: the part of the squared
distance of the two quantile functions at which B is ahead. Dror, Shlomov and Reichart (ACL 2019) use an upper
confidence limit of this ratio, eps_min, to compare trainings: below 0.5 A is called better. As in the package deepsig:
the same quantile functions, steps of the integral and normal limit from a bootstrap, which here is drawn all at once.

The name is the promise of a test, but neither 0.5 nor the stricter 0.2 bounds false claims; `FALSE_CLAIMS` says how
many were made in a simulation of equal approaches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from isorun.analysis.inputs.samples import FloatArray, finite_sample, oriented
from isorun.errors import InputError

__all__ = ["FALSE_CLAIMS", "StochasticOrder", "almost_stochastic_order"]

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
