"""Bayesian comparisons of two approaches with a region of practical equivalence (ROPE).

`bayesian_signed_rank`: the signed rank test with a Dirichlet process prior (Benavoli et al., ICML 2014; JMLR 2017), for
paired results on tasks or seeds. `bayesian_correlated_t`: for the folds of one cross-validation, whose results are
correlated because they share training data (Corani and Benavoli, Machine Learning 2015). Both are as in the package
baycomp, which counts y - x: its right side is A here. What they give are degrees of belief, not error rates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr

from isorun.analysis.inputs.ranks import snapped
from isorun.analysis.inputs.samples import FloatArray, finite_sample, is_constant, oriented
from isorun.errors import InputError

__all__ = ["RopeBelief", "bayesian_correlated_t", "bayesian_signed_rank"]

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
