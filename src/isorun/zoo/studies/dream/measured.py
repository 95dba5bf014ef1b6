"""Searches, those of the published logs and our own: what the best model was after each trial and each hour.

Ours are sorted as the paper's tables need them: data set, family of networks, method, seed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from isorun.errors import InputError
from isorun.study.records import RunRecord, RunState
from isorun.zoo.data.search_logs import LoggedSearch
from isorun.zoo.paper import last_attempts
from isorun.zoo.studies.dream.design import METHODS, METRIC, Method, PlannedStudy
from isorun.zoo.studies.dream.scales import ATTACHED_AFTER

__all__ = [
    "MeasuredSearch",
    "MeasuredTrial",
    "SearchPoint",
    "SearchProgress",
    "equal_seconds",
    "measured_searches",
    "progress_of",
    "replay",
]


@dataclass(frozen=True, slots=True)
class SearchPoint:
    """Where a search stands when a trial has ended. best: the highest score so far."""

    trial: int
    elapsed_s: float
    best: float


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """A search up to some trial: a point a trial, and the numbers of the trials that beat all before them.

    The first trial beats nothing: it is the model the search starts from.
    """

    curve: tuple[SearchPoint, ...]
    improving: tuple[int, ...]

    @property
    def best(self) -> float:
        """The highest score of all."""
        return self.curve[-1].best

    @property
    def start(self) -> float:
        """The score of the first trial."""
        return self.curve[0].best

    @property
    def elapsed_s(self) -> float:
        """How long all trials took together."""
        return self.curve[-1].elapsed_s

    @property
    def gain_a_step(self) -> float | None:
        """What an improving trial added on average; None when no trial improved."""
        return (self.best - self.start) / len(self.improving) if self.improving else None

    def reached(self, target: float) -> SearchPoint | None:
        """Where the best first was at least `target`; None when it never was."""
        return next((point for point in self.curve if point.best >= target), None)

    def best_within(self, seconds: float) -> float | None:
        """The best of the trials that had ended by then; None when none had."""
        ended = [point.best for point in self.curve if point.elapsed_s <= seconds]
        return ended[-1] if ended else None


def replay(search: LoggedSearch, trials: int | None = 25) -> SearchProgress:
    """The progress of a search over its first `trials` trials (all of them when None, or when it made fewer)."""
    if trials is not None and trials < 1:
        raise InputError("too few trials to replay", found=str(trials), allowed="1 or more, or None for all")
    if not search.trials:
        raise InputError(f"the search by {search.tuner} has nothing to replay", found="no trial", allowed="1 or more")
    return progress_of((trial.number, trial.elapsed_s, trial.score) for trial in search.trials[:trials])


def progress_of(trials: Iterable[tuple[int, float, float]]) -> SearchProgress:
    """The progress of trials given by number, the time when each had ended, and score."""
    curve: list[SearchPoint] = []
    improving: list[int] = []
    for number, elapsed_s, score in trials:
        before = curve[-1].best if curve else score
        if score > before:
            improving.append(number)
        curve.append(SearchPoint(number, elapsed_s, max(before, score)))
    return SearchProgress(tuple(curve), tuple(improving))


@dataclass(frozen=True, slots=True)
class MeasuredTrial:
    """One training of a search of ours. score: 0 for one that failed. seconds: of the whole run.

    watched_s: of these, what watching took; None where that is not known. memory: the most that it held, in bytes.
    """

    number: int
    score: float
    seconds: float
    watched_s: float | None = None
    memory: int = 0
    failed: bool = False


@dataclass(frozen=True)
class MeasuredSearch:
    """A search of ours. planned: how many trials it is to have; those it has are in order and without a gap.

    attached_after: the trials that an engine has before repair takes over, in searches where it does.
    """

    data: str
    family: str
    seed: int
    method: Method
    planned: int
    target: float
    trials: tuple[MeasuredTrial, ...]
    attached_after: int = ATTACHED_AFTER

    @property
    def problem(self) -> tuple[str, str, int]:
        """What methods are paired by: the data, the family and the initial model."""
        return self.data, self.family, self.seed

    @property
    def is_complete(self) -> bool:
        """Whether it has all its trials; a search that is still going on is compared with none."""
        return len(self.trials) >= self.planned

    @cached_property
    def progress(self) -> SearchProgress:
        """After each trial: the time it had taken, trial after trial, and the best score."""
        elapsed, points = 0.0, []
        for trial in self.trials:
            elapsed += trial.seconds
            points.append((trial.number, elapsed, trial.score))
        return progress_of(points)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, with every trial."""
        hit = self.progress.reached(self.target)
        return {
            "data": self.data,
            "family": self.family,
            "seed": self.seed,
            "method": self.method.name,
            "target": self.target,
            "attached_after": self.attached_after,
            "complete": self.is_complete,
            "scores": [trial.score for trial in self.trials],
            "seconds": [round(trial.seconds, 3) for trial in self.trials],
            "failed": sum(trial.failed for trial in self.trials),
            "best": self.progress.best,
            "seconds_to_target": None if hit is None else round(hit.elapsed_s, 3),
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> MeasuredSearch:
        """What was written, so far as figures need it; the oldest files took over where all but smoke runs do."""
        both = zip(told["scores"], told["seconds"], strict=True)
        trials = tuple(MeasuredTrial(number, score, seconds) for number, (score, seconds) in enumerate(both))
        return cls(
            told["data"],
            told["family"],
            told["seed"],
            METHODS[told["method"]],
            len(trials) if told["complete"] else len(trials) + 1,
            told["target"],
            trials,
            told.get("attached_after", ATTACHED_AFTER),
        )


_TRIAL: Final = re.compile(r"(?P<search>.+) trial-(?P<number>\d+)")


def measured_searches(
    planned: Sequence[PlannedStudy], records: Mapping[str, Sequence[RunRecord]]
) -> tuple[MeasuredSearch, ...]:
    """The searches that were begun, in the order in which they were planned."""
    return tuple(
        found for study in planned for found in _searches_of(study, records.get(study.name, ())) if found.trials
    )


def _searches_of(planned: PlannedStudy, records: Sequence[RunRecord]) -> list[MeasuredSearch]:
    trials: dict[str, dict[int, MeasuredTrial]] = {}
    for record in last_attempts(records):
        named = _TRIAL.fullmatch(record.cell.config)
        if named and record.state is not RunState.INTERRUPTED:
            number = int(named["number"])
            trials.setdefault(named["search"], {})[number] = _trial(number, record)
    size = planned.size
    return [
        MeasuredSearch(
            planned.data,
            search.family,
            planned.seed,
            search.method,
            size.trials,
            size.target,
            _without_gap(trials.get(search.name, {})),
            size.attached_after,
        )
        for search in planned.searches
    ]


def _trial(number: int, record: RunRecord) -> MeasuredTrial:
    score = record.results.get(METRIC, math.nan) if record.state is RunState.FINISHED else math.nan
    watched = record.results.get("watched_seconds", math.nan)
    return MeasuredTrial(
        number,
        score if math.isfinite(score) else 0.0,
        record.wall_seconds,
        watched if math.isfinite(watched) else None,
        record.peak_memory_bytes,
        failed=record.state is not RunState.FINISHED,
    )


def _without_gap(trials: Mapping[int, MeasuredTrial]) -> tuple[MeasuredTrial, ...]:
    """The trials up to the first that is missing."""
    found: list[MeasuredTrial] = []
    while len(found) in trials:
        found.append(trials[len(found)])
    return tuple(found)


def equal_seconds(searches: Iterable[MeasuredSearch]) -> float | None:
    """The time in which the quickest of them had made all its trials: what each had found by then compares."""
    return min((search.progress.elapsed_s for search in searches), default=None)
