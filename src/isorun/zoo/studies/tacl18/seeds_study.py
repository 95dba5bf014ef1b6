"""Section 4.4: many seeds on two sides. Their spread, the change from side to side, and Table 9."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np

from isorun.analysis.agreements.agreement import Agreement, agreement
from isorun.analysis.pairwise.mean_and_variance_tests import paired_t
from isorun.analysis.samples import Pairs
from isorun.zoo.studies.tacl18.effects import Effect, effect
from isorun.zoo.studies.tacl18.measured import METRICS, Run
from isorun.zoo.studies.tacl18.published import RANGES

__all__ = ["Change", "SeedRuns", "changes", "seed_agreements", "seed_effects", "seed_runs"]

_FEWEST: int = 3
"""Fewer seeds have no order to agree on."""


@dataclass(frozen=True, slots=True)
class SeedRuns:
    """The runs of one data set, by side and then seed, the first identical run of each."""

    data: str
    sides: Mapping[str, Mapping[int, Run]]

    @property
    def pair_of_sides(self) -> tuple[str, str] | None:
        """The first two sides that share a seed; None where there is one side only."""
        return next((pair for pair in combinations(self.sides, 2) if self.shared(*pair)), None)

    def shared(self, *sides: str) -> tuple[int, ...]:
        """The seeds that all of these sides have, in the order of the first."""
        first, *others = (self.sides[side] for side in sides)
        return tuple(seed for seed in first if all(seed in other for other in others))

    def values(self, side: str, metric: str, seeds: Sequence[int] | None = None) -> list[float]:
        """The metric over these seeds, or over all that the side has."""
        runs = self.sides[side]
        return [runs[seed].value(metric) for seed in (runs if seeds is None else seeds)]


@dataclass(frozen=True, slots=True)
class Change:
    """One metric when the side changes and the seed stays. p: of the paired t-test, None where there is none."""

    data: str
    metric: str
    sides: tuple[str, str]
    seeds: tuple[int, ...]
    pairs: Pairs
    p: float | None

    @property
    def values(self) -> list[float]:
        """Second side minus first, a value a seed."""
        return [float(value) for value in -self.pairs.differences]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        values = self.values
        return {
            "data": self.data,
            "metric": self.metric,
            "from": self.sides[0],
            "to": self.sides[1],
            "n": len(values),
            "mean": float(np.mean(values)),
            "min": min(values),
            "max": max(values),
            "higher": sum(value > 0 for value in values),
            "lower": sum(value < 0 for value in values),
            "paired_t_p": self.p,
        }


def seed_runs(runs: Sequence[Run]) -> tuple[SeedRuns, ...]:
    """The runs by data set, side and seed, in the order in which they come."""
    found: dict[str, dict[str, dict[int, Run]]] = {}
    for run in runs:
        found.setdefault(run.data, {}).setdefault(run.side, {}).setdefault(run.seed, run)
    return tuple(SeedRuns(data, sides) for data, sides in found.items())


def seed_effects(found: Sequence[SeedRuns]) -> tuple[Effect, ...]:
    """The range over the seeds for every data set, side and metric."""
    effects = []
    for item in found:
        for side, metric in product(item.sides, METRICS):
            printed = RANGES.get((item.data, side))
            published = None if printed is None else printed.value(metric)
            values = item.values(side, metric)
            effects.append(effect(f"seed ({side})", item.data, metric, values, published, seeds=True))
    return tuple(one for one in effects if one is not None)


def seed_agreements(item: SeedRuns) -> tuple[Agreement, ...]:
    """Kendall and Spearman between all metrics and sides; a side's own metrics over its own seeds.

    Lists are named "AP CPU", "RR CPU", "AP GPU", "RR GPU" as in Table 9. None where fewer than three seeds are shared.
    """
    sides = item.pair_of_sides or tuple(item.sides)[:1]
    lists = [(metric, side) for side in sides for metric in METRICS]
    found = []
    for (metric, side), (other_metric, other_side) in combinations(lists, 2):
        seeds = item.shared(side, other_side)
        if len(seeds) >= _FEWEST:
            first, second = item.values(side, metric, seeds), item.values(other_side, other_metric, seeds)
            found.append(agreement(first, second, a=f"{metric} {side}", b=f"{other_metric} {other_side}"))
    return tuple(found)


def changes(item: SeedRuns) -> tuple[Change, ...]:
    """The change of both metrics from the first side to the second; none where there is one side only."""
    sides = item.pair_of_sides
    return () if sides is None else tuple(_change(item, sides, metric) for metric in METRICS)


def _change(item: SeedRuns, sides: tuple[str, str], metric: str) -> Change:
    seeds = item.shared(*sides)
    first, second = (np.asarray(item.values(side, metric, seeds), dtype=np.float64) for side in sides)
    alone = tuple(str(seed) for seed in {**item.sides[sides[0]], **item.sides[sides[1]]} if seed not in seeds)
    pairs = Pairs(first, second, alone)
    return Change(item.data, metric, sides, seeds, pairs, paired_t(pairs.differences).p)
