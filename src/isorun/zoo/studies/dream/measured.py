"""A search replayed: what its best model was after each trial and each hour, and which trials found a better one."""

from __future__ import annotations

from dataclasses import dataclass

from isorun.errors import InputError
from isorun.zoo.data.search_logs import LoggedSearch

__all__ = ["SearchPoint", "SearchProgress", "replay"]


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
    curve: list[SearchPoint] = []
    improving: list[int] = []
    for trial in search.trials[:trials]:
        before = curve[-1].best if curve else trial.score
        if trial.score > before:
            improving.append(trial.number)
        curve.append(SearchPoint(trial.number, trial.elapsed_s, max(before, trial.score)))
    return SearchProgress(tuple(curve), tuple(improving))
