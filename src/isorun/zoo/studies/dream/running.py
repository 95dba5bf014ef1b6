"""The running bests the authors wrote down, point by point against the replay of the same searches."""

from __future__ import annotations

from dataclasses import dataclass

from isorun.zoo.data.searches.search_logs import RunningBest, Search, SearchLogs
from isorun.zoo.studies.dream.claims import HOUR
from isorun.zoo.studies.dream.searches import replay

__all__ = ["RunningAgreement", "check_running"]


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


def _checked(best: RunningBest, search: Search) -> RunningAgreement:
    run = replay(search, None)
    if best.axis == "trial":
        replayed = [point.best for point in run.curve][: len(best.values)]
    else:
        hours = (run.best_within((hour + 1) * HOUR) for hour in range(len(best.values)))
        replayed = [value if value is not None else 0.0 for value in hours]
    equal = sum(ours == theirs for ours, theirs in zip(replayed, best.values, strict=False))
    return RunningAgreement(best.case, best.tuner, best.axis, len(best.values), equal)
