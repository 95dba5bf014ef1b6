"""Tests and intervals of several differences at once: Tukey's (every pair) and Dunnett's (all against one control).

Tukey: the largest of |t| over all pairs of k means with equal standard errors is a studentised range over sqrt(2); for
unequal ones it is conservative (Kramer 1956, Hayter 1984). Dunnett (1955): the largest |t| against the control is
multivariate t; correlations that come from one common factor, as in balanced designs, need one integral over it, others
Genz's transformation (1992) on a lattice, which is deterministic and right to about four digits of probability.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

__all__ = ["LargestT", "TukeyRange", "critical_value"]

Floats = NDArray[np.float64]
Tail = Callable[[float, float], float]
"""P(the largest |t| exceeds t), by t and degrees of freedom."""

_KNOWN_SPREAD: Final = 1e6
"""Degrees of freedom above which the standard error counts as known."""
_LATTICE: Final = 20_011
_PRIMES: Final = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97)


def critical_value(tail: Tail, level: float, df: float) -> float:
    """The t that the largest |t| exceeds with probability 1 - level."""
    alpha = 1.0 - level
    low, high = 0.0, 4.0
    while tail(high, df) > alpha:
        low, high = high, 2.0 * high
    return float(optimize.brentq(lambda t: tail(t, df) - alpha, low, high, xtol=1e-10))


@dataclass(frozen=True, slots=True)
class TukeyRange:
    """The largest |t| over all pairs of `means` means."""

    means: int

    def tail(self, t: float, df: float) -> float:
        """P(largest > t): R's `ptukey(sqrt(2) * t, means, df, lower.tail = FALSE)`."""
        if self.means == 2:
            return float(2.0 * special.stdtr(df, -t))
        spread, weights = _spread(df)
        return float(weights @ self._normal_tail(np.sqrt(2.0) * t * spread))

    def _normal_tail(self, widths: Floats) -> Floats:
        """P(range of standard normals > w) = 1 - k ∫ φ(z) (Φ(z) - Φ(z - w))^(k - 1) dz."""
        z, weights = _panels(-8.5, 8.5, 3)
        inside = special.ndtr(z) - special.ndtr(z - widths[:, None])
        density = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
        below = self.means * (inside ** (self.means - 1)) @ (weights * density)
        return np.asarray(np.clip(1.0 - below, 0.0, 1.0))


@dataclass(frozen=True, slots=True, eq=False)
class LargestT:
    """The largest |t| of several t with these correlations."""

    correlation: Floats

    def tail(self, t: float, df: float) -> float:
        """P(largest > t), never below that of one t nor above the sum over all."""
        one = float(2.0 * special.stdtr(df, -t))
        count = len(self.correlation)
        if count == 1:
            return one
        loadings = _one_factor(self.correlation)
        found = self._by_lattice(t, df) if loadings is None else _by_factor(loadings, t, df)
        return float(np.clip(found, one, min(1.0, count * one)))

    def _by_lattice(self, t: float, df: float) -> float:
        lower = np.linalg.cholesky(self.correlation + 1e-12 * np.eye(len(self.correlation)))
        points = _lattice(len(lower) + 1)
        spread = _root_of_chi_square(points[0], df)
        inside, chosen = np.ones(points.shape[1]), np.zeros((len(lower), points.shape[1]))
        for place, row in enumerate(lower):
            given = row[:place] @ chosen[:place]
            low = special.ndtr((-t * spread - given) / row[place])
            width = special.ndtr((t * spread - given) / row[place]) - low
            inside *= width
            chosen[place] = special.ndtri(np.clip(low + points[place + 1] * width, 1e-16, 1.0 - 1e-16))
        return float(1.0 - inside.mean())


def _by_factor(loadings: Floats, t: float, df: float) -> float:
    spread, by_spread = _spread(df)
    z, by_factor = _panels(-8.5, 8.5, 3)
    density = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
    inside = np.ones((len(spread), len(z)))
    for loading in loadings.tolist():
        own = np.sqrt(1.0 - loading**2)
        centre, reach = loading * z / own, (t * spread / own)[:, None]
        inside *= special.ndtr(reach - centre) - special.ndtr(-reach - centre)
    return float(1.0 - by_spread @ inside @ (by_factor * density))


def _one_factor(correlation: Floats) -> Floats | None:
    """Loadings l with correlations l_i l_j, where there are any below 1."""
    count = len(correlation)
    off = correlation[~np.eye(count, dtype=bool)]
    if (off <= 0.0).any():
        return None
    logs = np.log(correlation)
    np.fill_diagonal(logs, 0.0)
    if count == 2:
        loadings = np.full(2, np.sqrt(correlation[0, 1]))
    else:
        # log r_ij = a_i + a_j, summed over j: (count - 2) a_i + the sum of all a.
        sums = logs.sum(axis=1)
        loadings = np.exp((sums - sums.sum() / (2.0 * (count - 1))) / (count - 2))
    fitted = np.outer(loadings, loadings)
    np.fill_diagonal(fitted, 1.0)
    return loadings if loadings.max() < 1.0 - 1e-9 and np.abs(fitted - correlation).max() < 1e-7 else None


@lru_cache(maxsize=64)
def _spread(df: float) -> tuple[Floats, Floats]:
    """Places and weights for the distribution of an estimated standard deviation over the true one."""
    if df > _KNOWN_SPREAD:
        return np.ones(1), np.ones(1)
    low, high = _root_of_chi_square(np.array([1e-15, 1.0 - 1e-15]), df)
    s, weights = _panels(float(low), float(high), 4)
    log_density = np.log(2.0) + df / 2.0 * np.log(df / 2.0) - special.gammaln(df / 2.0)
    log_density = log_density + (df - 1.0) * np.log(s) - df * s**2 / 2.0
    return s, weights * np.exp(log_density)


def _root_of_chi_square(probability: Floats, df: float) -> Floats:
    if df > _KNOWN_SPREAD:
        return np.ones(len(probability))
    return np.asarray(np.sqrt(2.0 * special.gammaincinv(df / 2.0, probability) / df))


@lru_cache(maxsize=64)
def _panels(low: float, high: float, count: int) -> tuple[Floats, Floats]:
    """Gauss and Legendre's places and weights over equal panels."""
    places, weights = np.polynomial.legendre.leggauss(40)
    ends = np.linspace(low, high, count + 1)
    half = (high - low) / (2.0 * count)
    middle = (ends[:-1] + ends[1:]) / 2.0
    return (middle[:, None] + half * places).ravel(), np.tile(half * weights, count)


@lru_cache(maxsize=64)
def _lattice(dimensions: int) -> Floats:
    """Richtmyer's lattice, folded so that its ends meet; each row a dimension."""
    roots = np.sqrt(np.resize(np.array(_PRIMES, dtype=np.float64), dimensions))
    roots = roots * (1.0 + np.arange(dimensions) // len(_PRIMES))
    points = np.outer(roots, np.arange(1, _LATTICE + 1)) % 1.0
    return np.asarray(np.abs(2.0 * points - 1.0))
