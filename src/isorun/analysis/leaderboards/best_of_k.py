"""The best of k runs: what to expect from reporting the best of several trainings.

Dodge et al. (EMNLP 2019) draw the k runs with replacement, which is biased downwards (Tang et al., ACL 2020); drawing
them without replacement is unbiased, and is the default.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from isorun.analysis.inputs.samples import FloatArray, finite_sample, oriented
from isorun.errors import InputError

__all__ = ["expected_best_curve", "expected_best_of_k"]


def expected_best_of_k(values: npt.ArrayLike, k: int, *, direction: str = "higher", replacement: bool = False) -> float:
    """The mean of the best of k runs over all ways to draw k of the given runs."""
    sample = finite_sample(values, "the runs")
    limit = "1 or more" if replacement else f"1 to {sample.size}, the number of runs"
    if k < 1 or (k > sample.size and not replacement):
        raise InputError("cannot draw that many runs", found=f"k = {k}", allowed=limit)
    ordered = np.sort(oriented(sample, direction))
    weights = _with_replacement(sample.size, k) if replacement else _without_replacement(sample.size, k)
    best = float(weights @ ordered)
    return best if direction == "higher" else -best


def expected_best_curve(values: npt.ArrayLike, *, direction: str = "higher") -> tuple[float, ...]:
    """The expected best of 1, 2, … up to all runs, drawn without replacement."""
    sample = finite_sample(values, "the runs")
    return tuple(expected_best_of_k(sample, k, direction=direction) for k in range(1, sample.size + 1))


def _with_replacement(n: int, k: int) -> FloatArray:
    """The chance that the i-th smallest is the best: (i / n)^k - ((i - 1) / n)^k."""
    return np.diff((np.arange(n + 1) / n) ** float(k))


def _without_replacement(n: int, k: int) -> FloatArray:
    """The chance that the i-th smallest is the best: (i - 1 choose k - 1) / (n choose k)."""
    below = np.arange(n, dtype=np.float64)
    possible = below >= k - 1
    log_ways = gammaln(below + 1.0) - gammaln(k) - gammaln(np.where(possible, below - k + 2.0, 1.0))
    log_all = gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)
    return np.where(possible, np.exp(log_ways - log_all), 0.0)
