"""Tests of several approaches: whether any differs, which pairs do, and where each stands.

Tests of whether any of several approaches differs: Kruskal-Wallis for independent runs, Friedman for blocks.

Which pairs of approaches differ, after a test of all of them.

Independent runs: Brunner-Munzel (spreads may differ), Dunn (1964) or Mann-Whitney. Blocks (the same tasks or seeds):
Nemenyi (1963), Conover (1979) or the Wilcoxon signed rank test. Nemenyi's p already holds for all pairs; the others are
corrected afterwards.

Several approaches at once: does any differ, which pairs do, and where each stands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, fdtrc, ndtr, stdtr

from isorun.analysis.pairwise import brunner_munzel, mann_whitney, wilcoxon_signed_rank
from isorun.analysis.samples import (
    FloatArray,
    Pairs,
    Significance,
    adjusted,
    finite_sample,
    midranks,
    oriented,
    several_samples,
    snapped,
    tie_term,
)
from isorun.errors import InputError, known_names

__all__ = [
    "INDEPENDENT",
    "PAIRED",
    "FriedmanTest",
    "ManyComparison",
    "PairOutcome",
    "block_ranks",
    "compare_many",
    "critical_difference",
    "friedman",
    "kruskal",
    "studentized_range_tail",
]


def kruskal(samples: Sequence[npt.ArrayLike]) -> Significance:
    """H corrected for ties and its chi-square p; None where all values are equal."""
    samples = several_samples(samples)
    pooled = np.concatenate(list(samples))
    n = pooled.size
    shrunk = 1.0 - tie_term(pooled) / (float(n) ** 3 - n) if n > 1 else 0.0
    if shrunk <= 0.0 or len(samples) < 2:
        return Significance(None, None)
    parts = np.split(midranks(pooled), np.cumsum([sample.size for sample in samples])[:-1])
    raw = sum(part.size * (float(part.mean()) - (n + 1) / 2.0) ** 2 for part in parts)
    statistic = 12.0 / (n * (n + 1.0)) * raw / shrunk
    return Significance(statistic, float(chdtrc(len(samples) - 1, statistic)))


@dataclass(frozen=True, slots=True)
class FriedmanTest:
    """The chi-square form, and Iman and Davenport's F (1980), which is nearer to the truth for few blocks."""

    chi_square: Significance
    f: Significance
    mean_ranks: tuple[float, ...]


def friedman(matrix: npt.ArrayLike) -> FriedmanTest:
    """matrix: a row for each block (task or seed), a column for each approach; rank 1 is the smallest value."""
    matrix = np.array(several_samples(list(np.atleast_1d(np.asarray(matrix)))))
    blocks, treatments = matrix.shape
    ranks = block_ranks(matrix)
    means = ranks.mean(axis=0)
    between = blocks**2 * float(((means - (treatments + 1) / 2.0) ** 2).sum())
    spread = float(((ranks - (treatments + 1) / 2.0) ** 2).sum()) / (treatments - 1)
    if spread == 0.0 or treatments < 2:
        return FriedmanTest(Significance(None, None), Significance(None, None), tuple(means.tolist()))
    chi_square = between / spread
    outcome = Significance(chi_square, float(chdtrc(treatments - 1, chi_square)))
    return FriedmanTest(outcome, _iman_davenport(chi_square, blocks, treatments), tuple(means.tolist()))


def block_ranks(matrix: FloatArray) -> FloatArray:
    """The mid-ranks within each row."""
    return np.array([midranks(row) for row in matrix])


def _iman_davenport(chi_square: float, blocks: int, treatments: int) -> Significance:
    left = blocks * (treatments - 1) - chi_square
    if blocks < 2 or left <= 1e-12 * blocks:
        return Significance(None, None)
    statistic = (blocks - 1) * chi_square / left
    freedom = (treatments - 1, (treatments - 1) * (blocks - 1))
    return Significance(statistic, float(fdtrc(*freedom, statistic)))


PairValues = list[float]
"""One p for each pair of columns, in the order of itertools.combinations."""


def dunn(samples: Sequence[FloatArray]) -> PairValues:
    """Differences of mean ranks among all runs, as normal deviates."""
    pooled = np.concatenate(list(samples))
    n = pooled.size
    parts = np.split(midranks(pooled), np.cumsum([sample.size for sample in samples])[:-1])
    variance = n * (n + 1.0) / 12.0 - tie_term(pooled) / (12.0 * (n - 1.0))
    if variance <= 0.0:
        return [1.0 for _ in combinations(parts, 2)]
    return [
        2.0 * float(ndtr(-abs(a.mean() - b.mean()) / math.sqrt(variance * (1.0 / a.size + 1.0 / b.size))))
        for a, b in combinations(parts, 2)
    ]


def pairwise_brunner_munzel(samples: Sequence[FloatArray]) -> PairValues:
    """Each pair by itself, whatever the spreads: does a run of one beat a run of the other as often as not?"""
    found = [brunner_munzel(a, b).p for a, b in combinations(samples, 2)]
    return [math.nan if p is None else p for p in found]


def pairwise_mann_whitney(samples: Sequence[FloatArray]) -> PairValues:
    """Each pair by itself."""
    return [mann_whitney(a, b).p for a, b in combinations(samples, 2)]


def nemenyi(samples: Sequence[FloatArray]) -> PairValues:
    """Differences of mean ranks within blocks, against the range of as many normal values as there are approaches."""
    matrix = np.column_stack(list(samples))
    blocks, treatments = matrix.shape
    means = block_ranks(matrix).mean(axis=0)
    unit = math.sqrt(treatments * (treatments + 1.0) / (6.0 * blocks))
    return [studentized_range_tail(math.sqrt(2.0) * abs(a - b) / unit, treatments) for a, b in combinations(means, 2)]


def conover(samples: Sequence[FloatArray]) -> PairValues:
    """Differences of rank sums within blocks, against what is left within blocks; more powerful than Nemenyi."""
    ranks = block_ranks(np.column_stack(list(samples)))
    blocks, treatments = ranks.shape
    sums = ranks.sum(axis=0)
    freedom = (blocks - 1) * (treatments - 1)
    left = 2.0 * (blocks * float((ranks**2).sum()) - float((sums**2).sum()))
    if left <= 1e-9 or freedom < 1:
        return [float(a == b) for a, b in combinations(sums, 2)]
    return [2.0 * float(stdtr(freedom, -abs(a - b) / math.sqrt(left / freedom))) for a, b in combinations(sums, 2)]


def pairwise_wilcoxon(samples: Sequence[FloatArray]) -> PairValues:
    """Each pair by itself; approaches that are equal in every block do not differ."""
    outcomes = [wilcoxon_signed_rank(Pairs(a, b).differences) for a, b in combinations(samples, 2)]
    return [1.0 if outcome.p is None else outcome.p for outcome in outcomes]


INDEPENDENT: Final[dict[str, Callable[[Sequence[FloatArray]], PairValues]]] = {
    "brunner-munzel": pairwise_brunner_munzel,
    "dunn": dunn,
    "mann-whitney": pairwise_mann_whitney,
}
PAIRED: Final[dict[str, Callable[[Sequence[FloatArray]], PairValues]]] = {
    "nemenyi": nemenyi,
    "conover": conover,
    "wilcoxon": pairwise_wilcoxon,
}


def critical_difference(treatments: int, blocks: int, alpha: float = 0.05) -> float:
    """The difference of mean ranks that Nemenyi's test calls significant (Demšar 2006)."""
    low, high = 0.0, 20.0
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (middle, high) if studentized_range_tail(middle, treatments) > alpha else (low, middle)
    return high / math.sqrt(2.0) * math.sqrt(treatments * (treatments + 1.0) / (6.0 * blocks))


def studentized_range_tail(q: float, groups: int) -> float:
    """P(range of `groups` standard normal values >= q): R's `ptukey(q, groups, Inf, lower.tail = FALSE)`.

    The largest value is z; all others lie within q below it. Gauss-Legendre over z, 256 nodes.
    """
    z, density = _normal_nodes()
    inside = groups * float((density * (ndtr(z) - ndtr(z - q)) ** (groups - 1)).sum())
    return min(1.0, max(0.0, 1.0 - inside))


@cache
def _normal_nodes() -> tuple[FloatArray, FloatArray]:
    """Where the integral is evaluated, with the normal density times the weight of each place."""
    nodes, weights = np.polynomial.legendre.leggauss(256)
    z = 9.0 * nodes
    return z, 9.0 * weights * np.exp(-(z**2) / 2.0) / math.sqrt(2.0 * math.pi)


@dataclass(frozen=True, slots=True)
class PairOutcome:
    """Two approaches: difference of their means, p by itself, and p corrected for all pairs; NaN from single runs."""

    a: str
    b: str
    difference: float
    p: float
    p_adjusted: float


@dataclass(frozen=True, slots=True)
class ManyComparison:
    """The test of all approaches and of each pair.

    mean_ranks: 1 is best. critical_difference: of mean ranks by Nemenyi's test, for paired runs only.
    """

    test: str
    outcome: Significance
    iman_davenport: Significance | None
    mean_ranks: Mapping[str, float]
    post_hoc: str
    correction: str
    pairs: tuple[PairOutcome, ...]
    critical_difference: float | None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "test": self.test,
            **self.outcome.to_json(),
            "iman_davenport": None if self.iman_davenport is None else self.iman_davenport.to_json(),
            "mean_ranks": dict(self.mean_ranks),
            "post_hoc": self.post_hoc,
            "correction": self.correction,
            "pairs": [
                {
                    "a": pair.a,
                    "b": pair.b,
                    "difference": pair.difference,
                    "p": None if math.isnan(pair.p) else pair.p,
                    "p_adjusted": None if math.isnan(pair.p_adjusted) else pair.p_adjusted,
                }
                for pair in self.pairs
            ],
            "critical_difference": self.critical_difference,
        }


def compare_many(
    runs: Mapping[str, npt.ArrayLike],
    *,
    paired: bool = False,
    direction: str = "higher",
    post_hoc: str | None = None,
    correction: str = "holm",
) -> ManyComparison:
    """Compare the runs of two or more approaches.

    paired: the i-th runs of all approaches belong together (the same task or seed): Friedman with Nemenyi, else
    Kruskal-Wallis with Brunner-Munzel, unless post_hoc names another test.
    """
    samples = {name: finite_sample(values, f"the runs of {name!r}") for name, values in runs.items()}
    _require_comparable(samples, paired)
    better_first = _ties_settled([-oriented(sample, direction) for sample in samples.values()])
    return (_blocks if paired else _independent)(samples, better_first, post_hoc, correction)


def _ties_settled(samples: Sequence[FloatArray]) -> list[FloatArray]:
    """Equal values are equal whatever floating point makes of them: means of tasks or seeds were computed, not read."""
    return np.split(snapped(np.concatenate(list(samples))), np.cumsum([one.size for one in samples])[:-1])


def _require_comparable(samples: Mapping[str, FloatArray], paired: bool) -> None:
    if len(samples) < 2:
        raise InputError("there is nothing to compare", found=f"{len(samples)} approaches", allowed="2 or more")
    sizes = {name: sample.size for name, sample in samples.items()}
    if paired and len(set(sizes.values())) > 1:
        raise InputError("paired approaches need the same number of runs", found=str(sizes))


def _independent(
    samples: Mapping[str, FloatArray], better_first: Sequence[FloatArray], post_hoc: str | None, correction: str
) -> ManyComparison:
    ranks = np.split(midranks(np.concatenate(better_first)), np.cumsum([one.size for one in better_first])[:-1])
    chosen = _chosen(post_hoc or "brunner-munzel", INDEPENDENT)
    return ManyComparison(
        test="kruskal-wallis",
        outcome=kruskal(better_first),
        iman_davenport=None,
        mean_ranks={name: float(part.mean()) for name, part in zip(samples, ranks, strict=True)},
        post_hoc=chosen,
        correction=correction,
        pairs=_pairs(samples, INDEPENDENT[chosen](better_first), correction),
        critical_difference=None,
    )


def _blocks(
    samples: Mapping[str, FloatArray], better_first: Sequence[FloatArray], post_hoc: str | None, correction: str
) -> ManyComparison:
    tested = friedman(np.column_stack(better_first))
    chosen = _chosen(post_hoc or "nemenyi", PAIRED)
    used = "none" if chosen == "nemenyi" else correction
    return ManyComparison(
        test="friedman",
        outcome=tested.chi_square,
        iman_davenport=tested.f,
        mean_ranks=dict(zip(samples, tested.mean_ranks, strict=True)),
        post_hoc=chosen,
        correction=used,
        pairs=_pairs(samples, PAIRED[chosen](better_first), used),
        critical_difference=critical_difference(len(samples), better_first[0].size),
    )


def _chosen(post_hoc: str, known: Mapping[str, object]) -> str:
    if post_hoc not in known:
        raise InputError("unknown post-hoc test", found=repr(post_hoc), allowed=known_names(post_hoc, known))
    return post_hoc


def _pairs(samples: Mapping[str, FloatArray], p_values: Sequence[float], correction: str) -> tuple[PairOutcome, ...]:
    corrected = adjusted(p_values, correction).tolist()
    named = combinations(samples.items(), 2)
    return tuple(
        PairOutcome(a, b, float(first.mean() - second.mean()), p, p_adjusted)
        for ((a, first), (b, second)), p, p_adjusted in zip(named, p_values, corrected, strict=True)
    )
