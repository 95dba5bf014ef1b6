"""Small search logs made on the spot, whose answers were worked out by hand: they stand in when the real ones are away.

They show that the replay works. They say nothing about the paper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from isorun.zoo.data.searches.search_logs import Search, SearchLogs, Trial
from isorun.zoo.studies.dream.claims import BEST, COUNT, IMPROVING, SAVED, TO_TARGET, Claim

__all__ = ["KNOWN", "made_logs"]

_TRIALS: Final = 30
_MADE: Final[Mapping[str, tuple[int, Mapping[int, float]]]] = {
    "dream": (60, {0: 0.25, 1: 0.50, 3: 0.80, 7: 0.80, 26: 0.95}),
    "hyperband": (6, {0: 0.05, 2: 0.25, 9: 0.20, 12: 0.55, 24: 0.65, 29: 0.70}),
    "bayesian": (90, {0: 0.25, 5: 0.50, 6: 0.45, 27: 0.75}),
    "greedy": (120, {0: 0.25, 25: 0.60}),
}
"""Minutes a trial, and the scores of some trials; all others score 0.1. Better ones after trial 25 must not count."""

KNOWN: Final = (
    Claim("I", "dream", TO_TARGET, 4.0, 1),
    Claim("I", "hyperband", TO_TARGET, None, 1),
    Claim("I", "bayesian", TO_TARGET, 42.0, 1),
    Claim("I", "dream", SAVED, 38.0, 1),
    Claim("I", "greedy", COUNT, 30, 0),
    Claim("II", "dream", BEST, 80.0, 2),
    Claim("II", "hyperband", BEST, 65.0, 2),
    Claim("II", "bayesian", BEST, 50.0, 2),
    Claim("II", "greedy", BEST, 25.0, 2),
    Claim("II", "dream", IMPROVING, 2, 0),
    Claim("II", "hyperband", IMPROVING, 4, 0),
    Claim("II", "bayesian", IMPROVING, 1, 0),
    Claim("II", "greedy", IMPROVING, 0, 0),
)


def made_logs(cases: Sequence[str] = ("I", "II")) -> SearchLogs:
    """The same four made searches for every case."""
    searches = [Search(case, tuner, "made", _trials(*made)) for case in cases for tuner, made in _MADE.items()]
    return SearchLogs(tuple(searches), (), "made on the spot")


def _trials(minutes: int, scores: Mapping[int, float]) -> tuple[Trial, ...]:
    return tuple(
        Trial(number, str(number), 60.0 * minutes * (number + 1), scores.get(number, 0.1)) for number in range(_TRIALS)
    )
