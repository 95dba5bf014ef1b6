"""Rankings: does a factor alone turn the order of approaches around, and do environments agree on it?

An order is turned where one approach is ahead of another in single runs of one seed, and behind after nothing but the
factor was changed. Beside it stands how often that happens when nothing but the seed is changed: a factor that turns
fewer orders than seeds do adds little to what single runs leave open anyway. Ties are no order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from isorun.analysis.agreements.agreement import Agreement, agreement

__all__ = ["Flips", "Scores", "factor_flips", "ranking_agreements"]

Scores = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Approach to point to seed to value; repeats of a seed are averaged."""
FEWEST_RANKED: Final = 3


@dataclass(frozen=True, slots=True)
class Flips:
    """How often a value of a factor, against the baseline's, turns the order of two approaches.

    pairs: of approaches; means_turned: those whose means change their order. compared, turned: pairs of approaches in
    single runs of one seed, over all seeds, that have an order on both sides. seeds_compared, seeds_turned: the same
    where the baseline's value stays and two seeds are compared. config, level: what is the same on all sides.
    """

    factor: str
    value: str
    config: str
    level: str
    pairs: int
    means_turned: int
    compared: int
    turned: int
    seeds_compared: int
    seeds_turned: int

    @property
    def share(self) -> float | None:
        """The share of orders that the factor turned."""
        return self.turned / self.compared if self.compared else None

    @property
    def seeds_share(self) -> float | None:
        """The share of orders that another seed turned."""
        return self.seeds_turned / self.seeds_compared if self.seeds_compared else None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        names = ("factor", "value", "config", "level", "pairs", "means_turned", "compared", "turned", "share")
        return {name: getattr(self, name) for name in (*names, "seeds_compared", "seeds_turned", "seeds_share")}


def factor_flips(
    scores: Scores, between: Sequence[tuple[str, str]], *, factor: str, value: str, config: str, level: str
) -> Flips | None:
    """The flips between neighbouring points (the baseline's first); None where there are not two approaches at both."""
    known = [
        (low, high) for low, high in between if sum(low in points and high in points for points in scores.values()) > 1
    ]
    if not known:
        return None
    by_factor = [turn for low, high in known for turn in _turned_by_factor(scores, low, high) if turn is not None]
    means = [turn for low, high in known for turn in _turned(_means(scores, low), _means(scores, high))]
    lows = dict.fromkeys(low for low, _ in known)
    by_seed = [turn for low in lows for turn in _turned_by_seed(scores, low) if turn is not None]
    return Flips(
        factor,
        value,
        config,
        level,
        pairs=len(means),
        means_turned=sum(map(bool, means)),
        compared=len(by_factor),
        turned=sum(by_factor),
        seeds_compared=len(by_seed),
        seeds_turned=sum(by_seed),
    )


def _turned_by_factor(scores: Scores, low: str, high: str) -> Iterator[bool | None]:
    for seed in _seeds(scores, (low, high)):
        yield from _turned(_of_seed(scores, low, seed), _of_seed(scores, high, seed))


def _turned_by_seed(scores: Scores, point: str) -> Iterator[bool | None]:
    for one, other in itertools.combinations(_seeds(scores, (point,)), 2):
        yield from _turned(_of_seed(scores, point, one), _of_seed(scores, point, other))


def _seeds(scores: Scores, points: Iterable[str]) -> list[str]:
    """The seeds that are there at these points, in any approach."""
    wanted = tuple(points)
    return sorted({seed for found in scores.values() for point in wanted for seed in found.get(point, {}) if seed})


def _of_seed(scores: Scores, point: str, seed: str) -> dict[str, float]:
    return {name: points[point][seed] for name, points in scores.items() if seed in points.get(point, {})}


def _means(scores: Scores, point: str) -> dict[str, float]:
    return {name: float(np.mean(list(points[point].values()))) for name, points in scores.items() if points.get(point)}


def _turned(first: Mapping[str, float], second: Mapping[str, float]) -> Iterator[bool | None]:
    """For each two approaches that both sides know whether their order is the opposite one; None for a tie."""
    for a, b in itertools.combinations([name for name in first if name in second], 2):
        orders = (first[a] > first[b]) - (first[a] < first[b]), (second[a] > second[b]) - (second[a] < second[b])
        yield None if 0 in orders else orders[0] != orders[1]


def ranking_agreements(scores: Scores, baseline: str) -> tuple[Agreement, ...]:
    """Kendall and Spearman between the means of approaches at the baseline and at each other point; from three on."""
    found = []
    for point in dict.fromkeys(point for points in scores.values() for point in points):
        first, second = _means(scores, baseline), _means(scores, point)
        both = [name for name in first if name in second]
        if point != baseline and len(both) >= FEWEST_RANKED:
            sides = [first[name] for name in both], [second[name] for name in both]
            found.append(agreement(*sides, a=baseline, b=point))
    return tuple(found)
