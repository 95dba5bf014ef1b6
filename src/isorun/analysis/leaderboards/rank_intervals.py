"""Rank intervals for leaderboards: the ranks an approach could have had with other runs of the same kind.

An approach with a single run on some task cannot be ranked: nothing says how far its result would move.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from isorun.analysis.inputs.samples import FloatArray, higher_is_better
from isorun.analysis.leaderboards.aggregate import aggregate_replicates
from isorun.analysis.leaderboards.task_scores import ScoresLike, TaskScores, same_tasks, task_scores
from isorun.errors import InputError

__all__ = ["Ranked", "rank_intervals"]

Places = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Ranked:
    """An approach's place: rank among those that can be ranked, and the 95 % interval of that rank.

    rank and interval are None for an approach that cannot be ranked; why says so.
    """

    approach: str
    estimate: float
    rank: int | None
    interval: tuple[int, int] | None
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "approach": self.approach,
            "estimate": self.estimate,
            "rank": self.rank,
            "interval": None if self.interval is None else list(self.interval),
            "why": self.why,
        }


def rank_intervals(
    scores: Mapping[str, ScoresLike],
    generator: np.random.Generator,
    *,
    statistic: str = "mean",
    direction: str = "higher",
    repetitions: int = 10_000,
    confidence: float = 0.95,
) -> tuple[Ranked, ...]:
    """The approaches by rank, those that cannot be ranked last; approaches that tie share the better rank."""
    data = _on_the_same_tasks(scores)
    names = [name for name, runs in data.items() if min(runs.sizes) > 1]
    unranked = [name for name in data if name not in names]
    sign = _sign(statistic, direction)
    drawn = {
        name: aggregate_replicates(runs, generator, statistic=statistic, repetitions=repetitions)
        for name, runs in data.items()
    }
    places = _places(np.array([sign * drawn[name] for name in names]).reshape(len(names), repetitions + 1))
    ranked = [
        Ranked(name, float(drawn[name][0]), int(place[0]), _middle(place[1:], confidence))
        for name, place in zip(names, places, strict=True)
    ]
    ranked.sort(key=lambda one: (one.rank or 0, one.approach))
    why = "a single run on a task: how far its result would move is unknown"
    return (*ranked, *(Ranked(name, float(drawn[name][0]), None, None, why) for name in unranked))


def _sign(statistic: str, direction: str) -> float:
    """What turns the statistic so that less is better: the gap of a good approach is small, its score is high."""
    higher = higher_is_better(direction)
    if statistic != "optimality-gap":
        return -1.0 if higher else 1.0
    if not higher:
        raise InputError("an optimality gap is only known for scores of which higher is better", found=direction)
    return 1.0


def _on_the_same_tasks(scores: Mapping[str, ScoresLike]) -> dict[str, TaskScores]:
    if not scores:
        raise InputError("there is nothing to rank", allowed="at least one approach")
    data = {name: task_scores(runs, f"the scores of {name!r}") for name, runs in scores.items()}
    first = next(iter(data.values()))
    return {name: same_tasks(first, runs)[1] for name, runs in data.items()}


def _places(values: FloatArray) -> Places:
    """The rank of each row within each column, 1 for the smallest; equal values share the better rank."""
    return np.array([(values < row).sum(axis=0) + 1 for row in values], dtype=np.intp).reshape(values.shape)


def _middle(places: Places, confidence: float) -> tuple[int, int]:
    tail = (1.0 - confidence) / 2.0
    lower, upper = np.quantile(places, (tail, 1.0 - tail), method="nearest")
    return int(lower), int(upper)
