"""Several approaches at once: does any differ, which pairs do, and where each stands."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from isorun.analysis.inputs.multiplicity import adjusted
from isorun.analysis.inputs.ranks import midranks, snapped
from isorun.analysis.inputs.samples import FloatArray, Outcome, finite_sample, oriented
from isorun.analysis.leaderboards.omnibus import friedman, kruskal
from isorun.analysis.leaderboards.posthoc import INDEPENDENT, PAIRED, critical_difference
from isorun.errors import InputError, known_names

__all__ = ["ManyComparison", "PairOutcome", "compare_many"]


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
    outcome: Outcome
    iman_davenport: Outcome | None
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
