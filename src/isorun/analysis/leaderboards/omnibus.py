"""Tests of whether any of several approaches differs: Kruskal-Wallis for independent runs, Friedman for blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, fdtrc

from isorun.analysis.inputs.ranks import midranks, tie_term
from isorun.analysis.inputs.samples import FloatArray, Outcome

__all__ = ["FriedmanTest", "block_ranks", "friedman", "kruskal"]


def kruskal(samples: Sequence[FloatArray]) -> Outcome:
    """H corrected for ties and its chi-square p; None where all values are equal."""
    pooled = np.concatenate(list(samples))
    n = pooled.size
    shrunk = 1.0 - tie_term(pooled) / (float(n) ** 3 - n) if n > 1 else 0.0
    if shrunk <= 0.0 or len(samples) < 2:
        return Outcome(None, None)
    parts = np.split(midranks(pooled), np.cumsum([sample.size for sample in samples])[:-1])
    raw = sum(part.size * (float(part.mean()) - (n + 1) / 2.0) ** 2 for part in parts)
    statistic = 12.0 / (n * (n + 1.0)) * raw / shrunk
    return Outcome(statistic, float(chdtrc(len(samples) - 1, statistic)))


@dataclass(frozen=True, slots=True)
class FriedmanTest:
    """The chi-square form, and Iman and Davenport's F (1980), which is nearer to the truth for few blocks."""

    chi_square: Outcome
    f: Outcome
    mean_ranks: tuple[float, ...]


def friedman(matrix: FloatArray) -> FriedmanTest:
    """matrix: a row for each block (task or seed), a column for each approach; rank 1 is the smallest value."""
    blocks, treatments = matrix.shape
    ranks = block_ranks(matrix)
    means = ranks.mean(axis=0)
    between = blocks**2 * float(((means - (treatments + 1) / 2.0) ** 2).sum())
    spread = float(((ranks - (treatments + 1) / 2.0) ** 2).sum()) / (treatments - 1)
    if spread == 0.0 or treatments < 2:
        return FriedmanTest(Outcome(None, None), Outcome(None, None), tuple(means.tolist()))
    chi_square = between / spread
    outcome = Outcome(chi_square, float(chdtrc(treatments - 1, chi_square)))
    return FriedmanTest(outcome, _iman_davenport(chi_square, blocks, treatments), tuple(means.tolist()))


def block_ranks(matrix: FloatArray) -> FloatArray:
    """The mid-ranks within each row."""
    return np.array([midranks(row) for row in matrix])


def _iman_davenport(chi_square: float, blocks: int, treatments: int) -> Outcome:
    left = blocks * (treatments - 1) - chi_square
    if blocks < 2 or left <= 1e-12 * blocks:
        return Outcome(None, None)
    statistic = (blocks - 1) * chi_square / left
    freedom = (treatments - 1, (treatments - 1) * (blocks - 1))
    return Outcome(statistic, float(fdtrc(*freedom, statistic)))
