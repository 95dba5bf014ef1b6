"""Rank intervals for leaderboards: the ranks that the runs leave open for an approach.

An approach is told apart from those that Welch's test (Yuen's for interquartile means) says are better or worse; all
its comparisons together err in at most 5 % of cases (Holm). Its rank lies beyond all that are better and before all
that are worse (Mogstad, Romano, Shaikh and Wilhelm, Review of Economic Studies 2024). A bootstrap of ranks is shorter,
but does not hold the true rank often enough where approaches are close. An approach with a single run on some task
cannot be ranked: nothing says how far its result would move.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from isorun.analysis.inputs.multiplicity import adjusted
from isorun.analysis.inputs.ranks import snapped
from isorun.analysis.inputs.samples import higher_is_better
from isorun.analysis.leaderboards.aggregate import aggregate_precision
from isorun.analysis.leaderboards.precision import Precision, apart
from isorun.analysis.leaderboards.task_scores import ScoresLike, TaskScores, same_tasks, task_scores
from isorun.errors import InputError

__all__ = ["Ranked", "rank_intervals"]


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
    """The approaches by rank, those that cannot be ranked last; approaches that tie share the better rank.

    generator and repetitions are for the bootstrap that the median over several tasks needs.
    """
    data = _on_the_same_tasks(scores)
    sign = _sign(statistic, direction)
    known = {
        name: aggregate_precision(runs, generator, statistic=statistic, repetitions=repetitions)
        for name, runs in data.items()
    }
    names = [name for name, precision in known.items() if precision.variance is not None]
    estimates = snapped(np.array([known[name].estimate for name in names]))
    rankable = {name: replace(known[name], estimate=float(one)) for name, one in zip(names, estimates, strict=True)}
    ranked = [_ranked(name, rankable, data, sign, 1.0 - confidence) for name in names]
    ranked.sort(key=lambda one: (one.rank or 0, one.approach))
    why = "a single run on a task: how far its result would move is unknown"
    unranked = (Ranked(name, known[name].estimate, None, None, why) for name in data if name not in names)
    return (*ranked, *unranked)


def _ranked(
    name: str, known: Mapping[str, Precision], data: Mapping[str, TaskScores], sign: float, error: float
) -> Ranked:
    """The place of one approach among all that are known."""
    own = known[name]
    others = [other for other in known if other != name]
    lead = [sign * (known[other].estimate - own.estimate) for other in others]
    p = [apart(own, known[other], _smallest_p(data[name], data[other])) for other in others]
    told = adjusted(p, "holm") < error
    behind = sum(bool(sure) and gap < 0.0 for sure, gap in zip(told, lead, strict=True))
    ahead = sum(bool(sure) and gap > 0.0 for sure, gap in zip(told, lead, strict=True))
    place = 1 + sum(gap < 0.0 for gap in lead)
    return Ranked(name, own.estimate, place, (1 + behind, len(known) - ahead))


def _smallest_p(first: TaskScores, second: TaskScores) -> float:
    """The smallest p that a test of relabelled runs can have."""
    ways = math.prod(math.comb(n + m, n) for n, m in zip(first.sizes, second.sizes, strict=True))
    return min(1.0, 2.0 / ways)


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
