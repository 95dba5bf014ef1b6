"""What a text says about a search, and whether the search's log says the same.

And the running bests the authors wrote down, point by point against the replay of the same searches. Small search logs
made on the spot, whose answers were worked out by hand, stand in when the real ones are away: they show that the replay
works, and say nothing about the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from isorun.zoo.data.search_logs import LoggedSearch, LoggedTrial, RunningBest, SearchLogs
from isorun.zoo.studies.dream.measured import SearchProgress, replay

__all__ = [
    "BEST",
    "BEST_IN_3_DAYS",
    "BEST_OF_ALL",
    "COUNT",
    "DAY",
    "GAIN",
    "HOUR",
    "IMPROVING",
    "KNOWN",
    "LENGTH",
    "MINUTES_TO_TARGET",
    "SAVED",
    "TARGET",
    "TO_TARGET",
    "TRIALS",
    "CheckedStatement",
    "Quantity",
    "RunningAgreement",
    "Searches",
    "Statement",
    "check_running",
    "check_statements",
    "made_logs",
]

TRIALS: Final = 25
TARGET: Final = 0.75
HOUR: Final = 3600.0
DAY: Final = 24 * HOUR

Searches = Mapping[str, LoggedSearch]
"""The searches of one case by tuner."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """Something that can be read off a case's searches. measure: None when it never happened.

    factor, unit: how it is written.
    """

    name: str
    unit: str
    factor: float
    measure: Callable[[Searches, str], float | None]


@dataclass(frozen=True, slots=True)
class Statement:
    """A stated number. value: as stated, in the quantity's unit; None for "never". decimals: as many as were stated.

    remark: what may explain a difference; it is shown only when there is one.
    """

    case: str
    tuner: str
    quantity: Quantity
    value: float | None
    decimals: int
    remark: str = ""


@dataclass(frozen=True, slots=True)
class CheckedStatement:
    """A statement and what the log says, in the same unit. present: whether the search is there at all."""

    statement: Statement
    measured: float | None
    present: bool = True

    @property
    def agrees(self) -> bool:
        """Whether both are equal at the decimals that were stated."""
        stated = self.statement.value
        if stated is None or self.measured is None or not self.present:
            return self.present and stated is None and self.measured is None
        return abs(self.measured - stated) <= 0.5 * 10.0**-self.statement.decimals + 1e-9


def check_statements(logs: SearchLogs, statements: Sequence[Statement]) -> tuple[CheckedStatement, ...]:
    """Every statement against the logs."""
    return tuple(_finding(logs.of_case(statement.case), statement) for statement in statements)


def _finding(searches: Searches, statement: Statement) -> CheckedStatement:
    if statement.tuner not in searches:
        return CheckedStatement(statement, None, present=False)
    measured = statement.quantity.measure(searches, statement.tuner)
    return CheckedStatement(statement, None if measured is None else measured * statement.quantity.factor)


def _progress(
    of: Callable[[SearchProgress], float | None], trials: int | None
) -> Callable[[Searches, str], float | None]:
    return lambda searches, tuner: of(replay(searches[tuner], trials))


def _hours_to_target(progress: SearchProgress) -> float | None:
    point = progress.reached(TARGET)
    return None if point is None else point.elapsed_s / HOUR


def _hours_saved(searches: Searches, tuner: str) -> float | None:
    """How much earlier the tuner met the target than the first of the others."""
    times = {name: _hours_to_target(replay(search, None)) for name, search in searches.items()}
    own = times.pop(tuner)
    others = [time for time in times.values() if time is not None]
    return None if own is None or not others else min(others) - own


BEST: Final = Quantity(f"best of {TRIALS} trials", "%", 100.0, _progress(lambda run: run.best, TRIALS))
IMPROVING: Final = Quantity(
    f"improving trials of {TRIALS}", "", 1.0, _progress(lambda run: float(len(run.improving)), TRIALS)
)
GAIN: Final = Quantity("mean gain of improving trials", "points", 100.0, _progress(lambda run: run.gain_a_step, TRIALS))
TO_TARGET: Final = Quantity(f"time to {100 * TARGET:g} %", "h", 1.0, _progress(_hours_to_target, None))
MINUTES_TO_TARGET: Final = Quantity(f"time to {100 * TARGET:g} %", "min", 60.0, _progress(_hours_to_target, None))
SAVED: Final = Quantity("saved against the next", "h", 1.0, _hours_saved)
COUNT: Final = Quantity("number of trials", "", 1.0, _progress(lambda run: float(len(run.curve)), None))
LENGTH: Final = Quantity("time searched", "h", 1.0, _progress(lambda run: run.elapsed_s / HOUR, None))
BEST_OF_ALL: Final = Quantity("best of all trials", "%", 100.0, _progress(lambda run: run.best, None))
BEST_IN_3_DAYS: Final = Quantity(
    "best in three days", "%", 100.0, _progress(lambda run: run.best_within(3 * DAY), None)
)


@dataclass(frozen=True, slots=True)
class RunningAgreement:
    """How many points of a running best the replay gives too. axis: "trial", or "time" (a point an hour)."""

    case: str
    tuner: str
    axis: str
    points: int
    equal: int


def check_running(logs: SearchLogs, case: str) -> tuple[RunningAgreement, ...]:
    """The running bests of a case whose searches are in the logs; those of other tuners cannot be checked."""
    searches = logs.of_case(case)
    return tuple(
        _checked(best, searches[best.tuner]) for best in logs.running if best.case == case and best.tuner in searches
    )


def _checked(best: RunningBest, search: LoggedSearch) -> RunningAgreement:
    run = replay(search, None)
    if best.axis == "trial":
        replayed = [point.best for point in run.curve][: len(best.values)]
    else:
        hours = (run.best_within((hour + 1) * HOUR) for hour in range(len(best.values)))
        replayed = [value if value is not None else 0.0 for value in hours]
    equal = sum(ours == theirs for ours, theirs in zip(replayed, best.values, strict=False))
    return RunningAgreement(best.case, best.tuner, best.axis, len(best.values), equal)


_TRIALS: Final = 30
_MADE: Final[Mapping[str, tuple[int, Mapping[int, float]]]] = {
    "dream": (60, {0: 0.25, 1: 0.50, 3: 0.80, 7: 0.80, 26: 0.95}),
    "hyperband": (6, {0: 0.05, 2: 0.25, 9: 0.20, 12: 0.55, 24: 0.65, 29: 0.70}),
    "bayesian": (90, {0: 0.25, 5: 0.50, 6: 0.45, 27: 0.75}),
    "greedy": (120, {0: 0.25, 25: 0.60}),
}
"""Minutes a trial, and the scores of some trials; all others score 0.1. Better ones after trial 25 must not count."""

KNOWN: Final = (
    Statement("I", "dream", TO_TARGET, 4.0, 1),
    Statement("I", "hyperband", TO_TARGET, None, 1),
    Statement("I", "bayesian", TO_TARGET, 42.0, 1),
    Statement("I", "dream", SAVED, 38.0, 1),
    Statement("I", "greedy", COUNT, 30, 0),
    Statement("II", "dream", BEST, 80.0, 2),
    Statement("II", "hyperband", BEST, 65.0, 2),
    Statement("II", "bayesian", BEST, 50.0, 2),
    Statement("II", "greedy", BEST, 25.0, 2),
    Statement("II", "dream", IMPROVING, 2, 0),
    Statement("II", "hyperband", IMPROVING, 4, 0),
    Statement("II", "bayesian", IMPROVING, 1, 0),
    Statement("II", "greedy", IMPROVING, 0, 0),
)


def made_logs(cases: Sequence[str] = ("I", "II")) -> SearchLogs:
    """The same four made searches for every case."""
    searches = [LoggedSearch(case, tuner, "made", _trials(*made)) for case in cases for tuner, made in _MADE.items()]
    return SearchLogs(tuple(searches), (), "made on the spot")


def _trials(minutes: int, scores: Mapping[int, float]) -> tuple[LoggedTrial, ...]:
    return tuple(
        LoggedTrial(number, str(number), 60.0 * minutes * (number + 1), scores.get(number, 0.1))
        for number in range(_TRIALS)
    )
