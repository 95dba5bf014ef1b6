"""The leaderboard: many approaches at once, over one task or many, with all that says how firm their places are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import Any

import numpy as np

from isorun.analysis.evidence.condition import Condition
from isorun.analysis.leaderboards.aggregate import Aggregate, aggregate
from isorun.analysis.leaderboards.best_of_k import expected_best_of_k
from isorun.analysis.leaderboards.compare_many import ManyComparison
from isorun.analysis.leaderboards.performance_profile import PerformanceProfile, performance_profile
from isorun.analysis.leaderboards.rank_intervals import Ranked, rank_intervals
from isorun.analysis.leaderboards.task_improvement import improvement_across_tasks
from isorun.analysis.leaderboards.task_scores import TaskScores
from isorun.errors import InputError

__all__ = ["BoardOptions", "Leaderboard", "Standing", "leaderboard", "profiles"]

_SEED = 15_485_863
_THRESHOLDS = 101


@dataclass(frozen=True, slots=True)
class BoardOptions:
    """statistic: what approaches are ranked by, one of `aggregate.STATISTICS`. best_of: the k of "best of k runs".

    interval: of scores and of who beats whom, one of `aggregate.INTERVALS`. repetitions: of a bootstrap where one is
    needed; its generator has a fixed seed, so that the same runs give the same leaderboard.
    """

    statistic: str = "iqm"
    best_of: int = 5
    repetitions: int = 5_000
    interval: str = "few-runs"


@dataclass(frozen=True, slots=True)
class Standing:
    """One approach: its runs, its aggregate with an interval, and its place.

    n: the runs made; units: what counted, the independent draws that these runs measured. expected_best: of the best of
    k units, the mean over tasks; None where a task has fewer than k.
    """

    approach: str
    n: int
    units: int
    mean: float
    score: Aggregate
    place: Ranked
    mean_rank: float
    expected_best: float | None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "approach": self.approach,
            "n": self.n,
            "units": self.units,
            "mean": self.mean,
            "score": self.score.estimate,
            "score_ci95": None if self.score.ci95 is None else list(self.score.ci95),
            "rank": self.place.rank,
            "rank_ci95": None if self.place.interval is None else list(self.place.interval),
            "mean_rank": self.mean_rank,
            "expected_best": self.expected_best,
            "why_unranked": self.place.why,
        }


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """The approaches, the best first; the tests of all and of each pair; and how often one beats another.

    improvements: for each pair (a, b) the probability that a run of a is better than one of b on the same task.
    """

    direction: str
    tasks: tuple[str, ...]
    options: BoardOptions
    standings: tuple[Standing, ...]
    compared: ManyComparison
    improvements: Mapping[tuple[str, str], Aggregate]
    notes: tuple[str, ...] = ()

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """What a reader must know before trusting the places."""
        return tuple(_conditions(self.standings))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON with the documented keys."""
        tested = self.compared.to_json()
        return {
            "direction": self.direction,
            "tasks": list(self.tasks),
            "statistic": self.options.statistic,
            "best_of": self.options.best_of,
            "repetitions": self.options.repetitions,
            "approaches": [standing.to_json() for standing in self.standings],
            "test": {name: tested[name] for name in ("test", "statistic", "p", "iman_davenport")},
            "post_hoc": self.compared.post_hoc,
            "correction": self.compared.correction,
            "critical_difference": self.compared.critical_difference,
            "pairs": [
                {**pair, "probability_of_improvement": self._improvement(pair["a"], pair["b"])}
                for pair in tested["pairs"]
            ],
            "notes": list(self.notes),
            "interval": self.options.interval,
        }

    def _improvement(self, a: str, b: str) -> dict[str, Any]:
        found = self.improvements[a, b]
        return {"estimate": found.estimate, "ci95": None if found.ci95 is None else list(found.ci95)}


def leaderboard(
    scores: Mapping[str, TaskScores],
    compared: ManyComparison,
    *,
    direction: str = "higher",
    options: BoardOptions | None = None,
    runs: Mapping[str, int] | None = None,
    notes: tuple[str, ...] = (),
) -> Leaderboard:
    """The leaderboard of approaches that were run on the same tasks; `compared` holds the tests made on them.

    scores: a value for each unit, the mean of its runs. runs: how many runs each approach made, if more than units.
    """
    chosen = options or BoardOptions()
    if chosen.best_of < 1:
        raise InputError("the best of how many runs?", found=f"{chosen.best_of}", allowed="1 or more")
    generator = np.random.default_rng(_SEED)
    places = rank_intervals(
        scores, generator, statistic=chosen.statistic, direction=direction, repetitions=chosen.repetitions
    )
    improvements = {
        (a, b): improvement_across_tasks(
            scores[a],
            scores[b],
            generator,
            direction=direction,
            interval=chosen.interval,
            repetitions=chosen.repetitions,
        )
        for a, b in combinations(scores, 2)
    }
    counts = {name: units.values.size for name, units in scores.items()} | dict(runs or {})
    standings = tuple(
        Standing(
            approach=place.approach,
            n=counts[place.approach],
            units=units.values.size,
            mean=fmean(float(units.of(task).mean()) for task in units.tasks),
            score=_score(units, generator, chosen),
            place=place,
            mean_rank=compared.mean_ranks[place.approach],
            expected_best=_expected_best(units, chosen.best_of, direction),
        )
        for place in places
        for units in [scores[place.approach]]
    )
    tasks = next(iter(scores.values())).tasks
    return Leaderboard(direction, tasks, chosen, standings, compared, improvements, notes)


def _score(units: TaskScores, generator: np.random.Generator, chosen: BoardOptions) -> Aggregate:
    return aggregate(
        units, generator, statistic=chosen.statistic, interval=chosen.interval, repetitions=chosen.repetitions
    )


def _expected_best(runs: TaskScores, k: int, direction: str) -> float | None:
    if min(runs.sizes) < k:
        return None
    return fmean(expected_best_of_k(runs.of(task), k, direction=direction) for task in runs.tasks)


def _conditions(standings: tuple[Standing, ...]) -> Iterator[Condition]:
    unranked = [standing for standing in standings if standing.place.rank is None]
    if unranked:
        names = tuple(standing.approach for standing in unranked)
        message = f"not ranked: {len(unranked)} of {len(standings)} approaches ({unranked[0].place.why})"
        yield Condition("unranked", message, "make more runs of these", names)
    constant = tuple(one.approach for one in standings if one.place.rank is not None and one.score.ci95 is None)
    if constant:
        message = (
            f"all runs of {', '.join(constant)} are equal on every task: nothing says how far they could vary, "
            "so there is no interval"
        )
        yield Condition("constant-runs", message, "make sure that the seeds took effect, or make more runs", constant)


def profiles(scores: Mapping[str, TaskScores]) -> dict[str, PerformanceProfile]:
    """The performance profile of every approach, at thresholds from the lowest to the highest score of all."""
    values = np.concatenate([runs.values for runs in scores.values()])
    thresholds = np.linspace(values.min(), values.max(), _THRESHOLDS)
    return {name: performance_profile(runs, thresholds) for name, runs in scores.items()}
