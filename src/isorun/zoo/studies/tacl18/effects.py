"""How far a factor moves the scores, beside what published systems claim to have gained."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from isorun.analysis.studies.conditions import FEWEST_RUNS
from isorun.zoo.studies.tacl18.measured import METRICS, Condition
from isorun.zoo.studies.tacl18.published import SYSTEMS, Score, gains

__all__ = [
    "SYSTEMS_OF",
    "Effect",
    "chance_difference",
    "claimed_gains",
    "condition_effects",
    "effect",
    "largest_difference",
]

SYSTEMS_OF: Final[Mapping[str, str]] = {"TrecQA": "TrecQA raw", "WikiQA": "WikiQA"}
"""Which list of published systems stands beside a column of the paper's tables."""


_TWO_RUNS: Final = 1.96 * math.sqrt(2.0)


@dataclass(frozen=True, slots=True)
class Effect:
    """A factor's largest difference in one metric of one data set. of: how many values it is the range of.

    published: the same in the paper, None where it has none. gains: published ones over the best system before.
    bar: what they are held against. Of settings that is our difference; of seeds, whose range grows with their number,
    the difference that two single runs exceed by chance in 5 % of cases, 1.96 sqrt(2) sd; None where seeds are too few.
    smaller: how many gains are below the bar.
    """

    factor: str
    data: str
    metric: str
    difference: float
    of: int
    published: float | None
    gains: int
    bar: float | None
    smaller: int | None

    @property
    def is_of_seeds(self) -> bool:
        """Whether the values are draws (seeds) and not settings."""
        return self.factor.startswith("seed")

    @property
    def exceeds_most_gains(self) -> bool:
        """Whether chance under this factor could pass for more than half of the published gains."""
        return self.smaller is not None and 2 * self.smaller > self.gains

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "factor": self.factor,
            "data": self.data,
            "metric": self.metric,
            "difference": self.difference,
            "of": self.of,
            "published": self.published,
            "gains": self.gains,
            "bar": self.bar,
            "smaller_gains": self.smaller,
        }


def effect(
    factor: str, data: str, metric: str, values: Sequence[float], published: float | None, *, seeds: bool = False
) -> Effect | None:
    """The effect over two or more values; None over fewer. seeds: the values are draws, not settings."""
    difference = largest_difference(values)
    if difference is None:
        return None
    claimed = claimed_gains(data, metric)
    bar = chance_difference(values) if seeds else difference
    smaller = None if bar is None else sum(gain < bar for gain in claimed)
    return Effect(factor, data, metric, difference, len(values), published, len(claimed), bar, smaller)


def chance_difference(values: Sequence[float]) -> float | None:
    """What two single runs differ by at most in 95 % of cases, for normal values; None below five of them."""
    return _TWO_RUNS * statistics.stdev(values) if len(values) >= FEWEST_RUNS else None


def condition_effects(
    factor: str, found: Sequence[Condition], published: Iterable[Mapping[str, Score]]
) -> tuple[Effect, ...]:
    """The effects of a factor whose settings are the conditions, for every data set and metric."""
    theirs = list(published)
    effects = []
    for data in dict.fromkeys(condition.data for condition in found):
        for metric in METRICS:
            values = [condition.mean(metric) for condition in found if condition.data == data]
            printed = [row[data].value(metric) for row in theirs if data in row]
            effects.append(effect(factor, data, metric, values, largest_difference(printed)))
    return tuple(item for item in effects if item is not None)


def largest_difference(values: Sequence[float]) -> float | None:
    """The largest minus the smallest of two or more values."""
    return round(max(values) - min(values), 12) if len(values) > 1 else None


def claimed_gains(data: str, metric: str) -> tuple[float, ...]:
    """The published gains over the best system before; systems that came out no better claim none."""
    added = gains(SYSTEMS[SYSTEMS_OF[data]], metric) if data in SYSTEMS_OF else ()
    return tuple(gain for gain in added if gain is not None and gain > 0)
