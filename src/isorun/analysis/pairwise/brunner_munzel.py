"""The Brunner-Munzel test: does a new run of one side beat a new run of the other as often as not?

Its null is P(A > B) + P(A = B) / 2 = 1/2, whatever the spreads and shapes; the Mann-Whitney test's is that both sides
have the same law. A placement is the share of the other side that a run beats. Their mean is the estimate of P, and
their variances are those of its error (Brunner and Munzel 2000, Biometrical Journal 42, with Satterthwaite's degrees
of freedom). Two changes make it hold for few runs:

- Each side gets a quarter of a placement at 0 and one at 1. The variance of a side that wins every time, or whose
  runs are tied, is then not estimated as none; complete separation needs no rule of its own.
- t is turned into a normal score (Wallace 1959, Annals of Mathematical Statistics 30). On that scale the law under the
  null hardly depends on the ratio of the spreads, so that a critical value for the worst ratio costs little power.

Below 16 runs of either side p is the largest over normal runs with spreads of 1:1, 1:2, 1:4 and 1:10, simulated; from
there on it is the normal one. Plain Brunner-Munzel tests claim up to .085 at 5 runs, its permutation (Neubert and
Brunner 2007, Computational Statistics and Data Analysis 51) up to .078 when 5 widely spread runs meet 25 (simulated).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from isorun.analysis.inputs.samples import FloatArray

__all__ = [
    "SPREAD_RATIOS",
    "Superiority",
    "SuperiorityLaw",
    "brunner_munzel",
    "normal_score",
    "superiority_law",
    "superiority_score",
]

SPREAD_RATIOS = (1.0, 2.0, 4.0, 10.0)
"""Of the standard deviations of the two sides: what critical values are made for."""

_END_WEIGHT = 0.25  # of a placement added at 0 and at 1
_NORMAL_FROM = 16  # runs of the smaller side; with as many the normal law errs in at most .051
_SEED = 40_961
_PAIRS_SIMULATED = 4_000_000
_FEWEST_SIMULATED = 16_000
_MOST_SIMULATED = 50_000
_LARGER_SIDE_AT_MOST = 100  # beyond it the law for fewer than 16 runs of the other side does not change


@dataclass(frozen=True, slots=True)
class Superiority:
    """superiority: the share of pairs in which the first side's run is larger, a tie as one half.

    z: the distance of that from one half as a normal score. p: two-sided. Both None for fewer than 2 runs a side.
    """

    superiority: float
    z: float | None
    p: float | None

    def to_json(self) -> dict[str, float | None]:
        """Plain JSON."""
        return {"superiority": self.superiority, "z": self.z, "p": self.p}


def brunner_munzel(first: FloatArray, second: FloatArray) -> Superiority:
    """The test of two samples; takes n log n steps."""
    if min(first.size, second.size) < 2:
        return Superiority(float(_doubled_wins(first, second).mean()) / (2 * second.size), None, None)
    superiority, z = superiority_score(first, second)
    return Superiority(superiority, z, superiority_law(first.size, second.size).p_value(abs(z)))


def superiority_score(first: FloatArray, second: FloatArray) -> tuple[float, float]:
    """The share of pairs that the first wins, and how far that is from one half as a normal score."""
    n, m = first.size, second.size
    wins, losses = _doubled_wins(first, second), _doubled_wins(second, first)
    excess = (int(wins.sum()) - n * m) / (2 * n * m)  # whole numbers, so that an even score is exactly 0
    spreads = (wins / (2 * m)).var(ddof=1), (losses / (2 * n)).var(ddof=1)
    return excess + 0.5, float(normal_score(excess, *spreads, n, m))


def normal_score(excess: Any, spread_a: Any, spread_b: Any, n_a: Any, n_b: Any) -> FloatArray:
    """Brunner and Munzel's t as a normal score, of numbers or of arrays alike.

    excess: the mean placement less one half. spread_a, spread_b: the variances of the placements of either side.
    """
    part_a, part_b = _with_ends(spread_a, excess, n_a) / n_a, _with_ends(spread_b, excess, n_b) / n_b
    squared_error = part_a + part_b
    freedom = squared_error**2 / (part_a**2 / (n_a - 1) + part_b**2 / (n_b - 1))
    size = np.sqrt(freedom * np.log1p(excess**2 / squared_error / freedom)) * (8 * freedom + 1) / (8 * freedom + 3)
    return np.asarray(np.copysign(size, excess))


def _with_ends(spread: Any, excess: Any, runs: Any) -> Any:
    """The variance of the placements with a quarter of one added at 0 and at 1."""
    added = 2 * _END_WEIGHT
    squares = (runs - 1) * spread + added / 4 + runs * added / (runs + added) * excess**2
    return squares / (runs + added - 1)


def _doubled_wins(sample: FloatArray, others: FloatArray) -> NDArray[np.intp]:
    """Twice the number of others that each value beats, plus those it ties with; in order of size."""
    wanted, ordered = np.sort(sample), np.sort(others)
    return np.searchsorted(ordered, wanted, side="left") + np.searchsorted(ordered, wanted, side="right")


@dataclass(frozen=True, slots=True, eq=False)
class SuperiorityLaw:
    """The law of |z| when a new run of either side wins as often as not: the worst over the spread ratios.

    draws: |z| of simulated comparisons, ascending, (ratios, comparisons); empty where the normal law is used.
    """

    draws: FloatArray

    @classmethod
    def normal(cls) -> SuperiorityLaw:
        """The normal law, which any score of many runs has."""
        return cls(np.empty((0, 0)))

    def p_value(self, distance: float) -> float:
        """The two-sided p of a z this far from 0."""
        if not self.draws.size:
            return 2.0 * float(ndtr(-distance))
        reached: list[int] = [row.size - int(np.searchsorted(row, distance * (1 - 1e-9))) for row in self.draws]
        return (max(reached) + 1.0) / (int(self.draws.shape[1]) + 1)

    def critical(self, level: float) -> float:
        """The |z| from which on p is at or below `level`; inf when there is none."""
        if not self.draws.size:
            return -float(ndtri(level / 2))
        allowed = math.floor(level * (self.draws.shape[1] + 1) * (1 + 1e-12)) - 1
        if allowed < 0:
            return math.inf
        too_common = float(self.draws[:, -allowed - 1].max())
        return math.inf if too_common >= self.draws.max() else too_common * (1 + 2e-9)


@functools.lru_cache(maxsize=256)
def superiority_law(n_a: int, n_b: int) -> SuperiorityLaw:
    """The law for so many runs of either side; simulated in a tenth of a second or so."""
    fewer, more = min(n_a, n_b), min(max(n_a, n_b), _LARGER_SIDE_AT_MOST)
    if fewer >= _NORMAL_FROM:
        return SuperiorityLaw.normal()
    count = int(np.clip(_PAIRS_SIMULATED // (fewer * more), _FEWEST_SIMULATED, _MOST_SIMULATED))
    rng = np.random.default_rng(_SEED)  # the same for everyone, so that everyone gets the same p
    a, b = (rng.standard_normal((runs, count), dtype=np.float32) for runs in (fewer, more))
    ratios = SPREAD_RATIOS if fewer == more else (*SPREAD_RATIOS, *(1 / ratio for ratio in SPREAD_RATIOS[1:]))
    draws = np.array([np.abs(_scores(np.float32(ratio) * a, b)) for ratio in ratios])
    draws.sort(axis=1)
    return SuperiorityLaw(draws)


def _scores(a: NDArray[np.float32], b: NDArray[np.float32]) -> FloatArray:
    """The normal scores of many comparisons without ties; a and b are (runs, comparisons)."""
    n_a, n_b = len(a), len(b)
    won_a = np.zeros(a.shape, dtype=np.uint8)
    won_b = np.empty(b.shape, dtype=np.uint8)
    for j, run in enumerate(b):
        beaten = np.greater(a, run).view(np.uint8)
        won_a += beaten
        np.add.reduce(beaten, axis=0, out=won_b[j])
    excess = won_a.mean(axis=0, dtype=np.float64) / n_b - 0.5
    spread_a = won_a.var(axis=0, ddof=1, dtype=np.float64) / n_b**2
    spread_b = won_b.var(axis=0, ddof=1, dtype=np.float64) / n_a**2
    return normal_score(excess, spread_a, spread_b, n_a, n_b)
