"""How far a factor moves the scores, beside what published systems claim to have gained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from isorun.zoo.studies.tacl18.measured import METRICS, Condition
from isorun.zoo.studies.tacl18.published import SYSTEMS, Score, gains

__all__ = ["SYSTEMS_OF", "Effect", "claimed_gains", "condition_effects", "effect", "largest_difference"]

SYSTEMS_OF: Final[Mapping[str, str]] = {"TrecQA": "TrecQA raw", "WikiQA": "WikiQA"}
"""Which list of published systems stands beside a column of the paper's tables."""


@dataclass(frozen=True, slots=True)
class Effect:
    """A factor's largest difference in one metric of one data set. of: how many values it is the range of.

    published: the same in the paper, None where it has none. gains, smaller: published gains over the best system
    before, and how many of them are smaller than our difference.
    """

    factor: str
    data: str
    metric: str
    difference: float
    of: int
    published: float | None
    gains: int
    smaller: int

    @property
    def exceeds_most_gains(self) -> bool:
        """Whether chance under this factor could pass for more than half of the published gains."""
        return 2 * self.smaller > self.gains

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
            "smaller_gains": self.smaller,
        }


def effect(factor: str, data: str, metric: str, values: Sequence[float], published: float | None) -> Effect | None:
    """The effect over two or more values; None over fewer."""
    difference = largest_difference(values)
    if difference is None:
        return None
    claimed = claimed_gains(data, metric)
    smaller = sum(gain < difference for gain in claimed)
    return Effect(factor, data, metric, difference, len(values), published, len(claimed), smaller)


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
