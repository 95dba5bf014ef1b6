"""What a text says about a search, and whether the search's log says the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from isorun.zoo.data.searches.search_logs import Search, SearchLogs
from isorun.zoo.studies.dream.searches import SearchProgress, replay

__all__ = [
    "BEST",
    "BEST_IN_3_DAYS",
    "BEST_OF_ALL",
    "COUNT",
    "DAY",
    "GAIN",
    "HOUR",
    "IMPROVING",
    "LENGTH",
    "MINUTES_TO_TARGET",
    "SAVED",
    "TARGET",
    "TO_TARGET",
    "TRIALS",
    "Claim",
    "Finding",
    "Quantity",
    "Searches",
    "check_claims",
]

TRIALS: Final = 25
TARGET: Final = 0.75
HOUR: Final = 3600.0
DAY: Final = 24 * HOUR

Searches = Mapping[str, Search]
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
class Claim:
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
class Finding:
    """A claim and what the log says, in the same unit. present: whether the search is there at all."""

    claim: Claim
    measured: float | None
    present: bool = True

    @property
    def agrees(self) -> bool:
        """Whether both are equal at the decimals that were stated."""
        stated = self.claim.value
        if stated is None or self.measured is None or not self.present:
            return self.present and stated is None and self.measured is None
        return abs(self.measured - stated) <= 0.5 * 10.0**-self.claim.decimals + 1e-9


def check_claims(logs: SearchLogs, claims: Sequence[Claim]) -> tuple[Finding, ...]:
    """Every claim against the logs."""
    return tuple(_finding(logs.of_case(claim.case), claim) for claim in claims)


def _finding(searches: Searches, claim: Claim) -> Finding:
    if claim.tuner not in searches:
        return Finding(claim, None, present=False)
    measured = claim.quantity.measure(searches, claim.tuner)
    return Finding(claim, None if measured is None else measured * claim.quantity.factor)


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
