"""The leaderboard of many approaches, from the scores in a table to their places.

Scores of many approaches out of a table: by approach, and by task or by what pairs their runs.

The leaderboard: many approaches at once, over one task or many, with all that says how firm their places are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from statistics import fmean
from types import MappingProxyType
from typing import Any, ClassVar, Final

import numpy as np

from isorun.analysis import Told
from isorun.analysis.evidence import Condition, not_finite, noted
from isorun.analysis.evidence.scales import unlike_scales
from isorun.analysis.evidence.survivors import Survivors, of_survivors
from isorun.analysis.evidence.units import (
    Counting,
    Units,
    counting_conditions,
    paired_units,
    refuse_value_as_unit,
    units_of,
    units_without_value,
)
from isorun.analysis.leaderboards.across_tasks import (
    PerformanceProfile,
    expected_best_of_k,
    improvement_across_tasks,
    performance_profile,
)
from isorun.analysis.leaderboards.aggregate import Aggregate, Ranked, aggregate, rank_intervals
from isorun.analysis.leaderboards.compare_many import ManyComparison, compare_many
from isorun.analysis.leaderboards.task_scores import TaskScores, same_tasks, task_scores
from isorun.analysis.measurements import Measurements
from isorun.analysis.samples import FloatArray, higher_is_better, mean_of
from isorun.errors import InputError

__all__ = ["BoardOptions", "BoardScores", "Leaderboard", "Standing", "board_scores", "leaderboard", "profiles"]


@dataclass(frozen=True, slots=True)
class BoardScores:
    """The runs of every approach by task, and the blocks that make approaches comparable one by one.

    scores: one value a unit. blocks: a value for each approach and block: tasks' means, or runs that belong together;
    None without both. units: every approach's, task after task. survivors: by approach and task, where units left no
    result.
    """

    scores: Mapping[str, TaskScores]
    blocks: Mapping[str, FloatArray] | None
    notes: tuple[str, ...] = ()
    units: Mapping[str, tuple[Units, ...]] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    survivors: Mapping[str, Mapping[str, Survivors]] = field(default_factory=dict)

    def with_the_worst(self, direction: str) -> dict[str, TaskScores]:
        """The scores of each approach that lost units, these with the worst score that any approach has on the task."""
        worst_of = np.min if higher_is_better(direction) else np.max
        found = {}
        for name, tasks in self.survivors.items():
            values = {task: self.scores[name].of(task) for task in self.scores[name].tasks}
            for task, side in tasks.items():
                worst = worst_of([worst_of(runs.of(task)) for runs in self.scores.values()])
                values[task] = np.concatenate([side.whole, np.full(len(side.lost), worst)])
            found[name] = task_scores(values)
        return found

    def compared(self, *, direction: str, post_hoc: str | None, correction: str) -> ManyComparison:
        """Friedman's test over blocks where there are any, else Kruskal's of all runs."""
        samples = self.blocks or {name: runs.values for name, runs in self.scores.items()}
        paired = self.blocks is not None
        return compare_many(samples, paired=paired, direction=direction, post_hoc=post_hoc, correction=correction)


def board_scores(
    table: Measurements,
    value: str,
    by: str,
    *,
    counting: Counting,
    task: str | None = None,
    pair: str | None = None,
    drop_missing: bool = False,
    lost: Mapping[str, frozenset[str]] | None = None,
) -> BoardScores:
    """The scores in column `value` of the approaches in column `by`. lost: units that left no result and no row."""
    refuse_value_as_unit(counting, value)
    if task and pair:
        hint = "task for several runs on each of many tasks; pair for one run of each approach in each block"
        raise InputError("approaches are compared by task or by pair", found=f"task {task!r}, pair {pair!r}", hint=hint)
    groups = table.groups(value, (by, task) if task else (by,), drop_missing=drop_missing)
    by_task: dict[str, dict[str, Units]] = {}
    survivors: dict[str, dict[str, Survivors]] = {}
    for group in groups:
        name, of = group.labels[by], group.labels[task] if task else value
        units_here = by_task.setdefault(name, {})[of] = units_of(table, group.values, counting)
        gone = units_without_value(table, group.values, counting) | (lost or {}).get(name, frozenset())
        if gone:
            survivors.setdefault(name, {})[of] = Survivors(name, units_here, gone)
    scores = _on_the_same_tasks(by_task)
    units = {name: tuple(tasks.values()) for name, tasks in by_task.items()}
    dropped = sum(group.values.dropped for group in groups)
    notes = [not_finite(dropped)] if dropped else []
    counted = counting_conditions(table, {group.name: group.values for group in groups}, counting)
    told = (*counted, *_written_unlike(value, by_task))
    if task:
        return BoardScores(scores, _task_means(scores), tuple(notes), units, told, survivors)
    if pair is None:
        return BoardScores(scores, None, tuple(notes), units, told, survivors)
    paired = paired_units(table, [group.values for group in groups], pair, counting)
    blocks = {group.labels[by]: side for group, side in zip(groups, paired.sides, strict=True)}
    alone = len(paired.unmatched)
    notes += [f"{alone} labels of {pair!r} are not in every approach, and not in the paired tests"] * (alone > 0)
    return BoardScores(scores, blocks, tuple(notes), units, told, survivors)


def _written_unlike(value: str, by_task: Mapping[str, Mapping[str, Units]]) -> tuple[Condition, ...]:
    """Fractions beside percents in one task, the first that has them."""
    for task in next(iter(by_task.values()), {}):
        sides = {name: tasks[task].values for name, tasks in by_task.items() if task in tasks}
        if found := unlike_scales(value, sides):
            return found
    return ()


def _on_the_same_tasks(by_task: Mapping[str, Mapping[str, Units]]) -> dict[str, TaskScores]:
    if len(by_task) < 2:
        found = ", ".join(map(repr, by_task))
        raise InputError("there is nothing to rank", found=f"one approach: {found}", allowed="2 or more approaches")
    values = {name: {task: units.values for task, units in tasks.items()} for name, tasks in by_task.items()}
    data = {name: task_scores(tasks, f"the scores of {name!r}") for name, tasks in values.items()}
    first = next(iter(data.values()))
    return {name: same_tasks(first, runs)[1] for name, runs in data.items()}


def _task_means(scores: Mapping[str, TaskScores]) -> dict[str, FloatArray]:
    return {name: np.array([runs.of(task).mean() for task in runs.tasks]) for name, runs in scores.items()}


_SEED = 15_485_863
NO_SCORES: Final[Mapping[str, TaskScores]] = MappingProxyType({})
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

    def __post_init__(self) -> None:
        """Refuse what cannot be computed, also where no bootstrap is needed."""
        if self.best_of < 1:
            raise InputError("the best of how many runs?", found=f"{self.best_of}", allowed="1 or more")
        if self.repetitions < 1:
            raise InputError("a bootstrap needs repetitions", found=f"{self.repetitions}", allowed="1 or more")


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
    ranked: Ranked
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
            "rank": self.ranked.rank,
            "rank_ci95": None if self.ranked.interval is None else list(self.ranked.interval),
            "mean_rank": self.mean_rank,
            "expected_best": self.expected_best,
            "why_unranked": self.ranked.why,
        }


@dataclass(frozen=True, slots=True)
class Leaderboard(Told):
    """The approaches, the best first; the tests of all and of each pair; and how often one beats another.

    improvements: for each pair (a, b) the probability that a run of a is better than one of b on the same task.
    conditions: what a reader must know before trusting the places.
    """

    told_as: ClassVar[str] = "leaderboard"

    direction: str
    tasks: tuple[str, ...]
    options: BoardOptions
    standings: tuple[Standing, ...]
    compared: ManyComparison
    improvements: Mapping[tuple[str, str], Aggregate]
    notes: tuple[str, ...] = ()
    unit: str = "run"
    conditions: tuple[Condition, ...] = ()
    metric: str = ""

    @property
    def all_conditions(self) -> tuple[Condition, ...]:
        """What weakens the evidence, and what was noticed in the data."""
        return (*self.conditions, *noted(self.notes))

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
            "unit": self.unit,
            "warnings": [condition.to_json() for condition in self.conditions],
            "interval": self.options.interval,
        }

    def _improvement(self, a: str, b: str) -> dict[str, Any]:
        found = self.improvements[a, b]
        return {"estimate": found.estimate, "ci95": None if found.ci95 is None else list(found.ci95)}


def leaderboard(
    scores: Mapping[str, TaskScores],
    compared: ManyComparison,
    *,
    metric: str = "",
    direction: str = "higher",
    options: BoardOptions | None = None,
    notes: tuple[str, ...] = (),
    units: Mapping[str, Sequence[Units]] | None = None,
    conditions: Sequence[Condition] = (),
    worst: Mapping[str, TaskScores] = NO_SCORES,
) -> Leaderboard:
    """The leaderboard of approaches that were run on the same tasks; `compared` holds the tests made on them.

    scores: one value a unit. metric: its name. units: how each approach's runs became units. conditions: what weakens
    the evidence. worst: scores of approaches that lost units, which count as the worst there.
    """
    chosen = options or BoardOptions()
    generator = np.random.default_rng(_SEED)
    ranks = partial(rank_intervals, statistic=chosen.statistic, direction=direction, repetitions=chosen.repetitions)
    places = ranks(scores, generator)
    with_the_worst = {
        name: ranks({**scores, name: worse}, np.random.default_rng(_SEED)) for name, worse in worst.items()
    }
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
    standings = tuple(
        Standing(
            approach=ranked.approach,
            n=sum(one.runs.size for one in units[ranked.approach]) if units else counted.values.size,
            units=counted.values.size,
            mean=fmean(mean_of(counted.of(task)) for task in counted.tasks),
            score=_score(counted, generator, chosen),
            ranked=ranked,
            mean_rank=compared.mean_ranks[ranked.approach],
            expected_best=_expected_best(counted, chosen.best_of, direction),
        )
        for ranked in places
        for counted in [scores[ranked.approach]]
    )
    tasks = next(iter(scores.values())).tasks
    noun = next(iter(units.values()))[0].noun if units else "run"
    known = (*conditions, *_conditions(standings), *_places_of_survivors(places, with_the_worst))
    return Leaderboard(direction, tasks, chosen, standings, compared, improvements, notes, noun, known, metric)


def _places_of_survivors(
    places: Sequence[Ranked], with_the_worst: Mapping[str, Sequence[Ranked]]
) -> Iterator[Condition]:
    """Approaches that would stand further down if what they lost counted as the worst."""
    before = {place.approach: place for place in places}
    after = {name: next(one for one in found if one.approach == name) for name, found in with_the_worst.items()}
    worse = {name: one for name, one in after.items() if _stands_below(one, before[name])}
    if not worse:
        return
    leads = any(before[name].rank == 1 for name in worse)
    message = (
        f"some runs of {', '.join(worse)} left no result, and the place does not hold where these count as the worst: "
        "runs that left one may be the better ones"
    )
    yield of_survivors(message, tuple(worse), voids=leads)


def _stands_below(after: Ranked, before: Ranked) -> bool:
    if after.rank is None or before.rank is None or after.interval is None or before.interval is None:
        return False
    return after.rank > before.rank or after.interval[1] > before.interval[1]


def _score(units: TaskScores, generator: np.random.Generator, chosen: BoardOptions) -> Aggregate:
    return aggregate(
        units, generator, statistic=chosen.statistic, interval=chosen.interval, repetitions=chosen.repetitions
    )


def _expected_best(runs: TaskScores, k: int, direction: str) -> float | None:
    if min(runs.sizes) < k:
        return None
    return fmean(expected_best_of_k(runs.of(task), k, direction=direction) for task in runs.tasks)


def _conditions(standings: tuple[Standing, ...]) -> Iterator[Condition]:
    unranked = [standing for standing in standings if standing.ranked.rank is None]
    if unranked:
        names = tuple(standing.approach for standing in unranked)
        message = f"not ranked: {len(unranked)} of {len(standings)} approaches ({unranked[0].ranked.why})"
        yield Condition("unranked", message, "make more runs of these", names)
    constant = tuple(one.approach for one in standings if one.ranked.rank is not None and one.score.ci95 is None)
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
