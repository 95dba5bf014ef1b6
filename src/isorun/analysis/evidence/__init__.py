"""Evidence: what counts as one piece of it, and conditions, which weaken it.

A condition is told in the same words wherever a verdict rests on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

__all__ = [
    "SEED_FROM_PARAMETER",
    "UNITS_UNKNOWN",
    "Condition",
    "first_of",
    "not_finite",
    "noted",
    "of_draws",
    "some",
    "voided",
]

UNITS_UNKNOWN: Final = "units-unknown"
SEED_FROM_PARAMETER: Final = "seed-from-parameter"
"""Of runs that a tracker kept: what they drew is not known, or known by what a parameter is called."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A stable code, one sentence, what to do next, and the groups it is about (none: everything that was judged).

    voids: the error rate of a verdict does not hold under this condition, so that no claim may be made.
    """

    code: str
    message: str
    next_step: str
    groups: tuple[str, ...] = ()
    voids: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "code": self.code,
            "message": self.message,
            "next": self.next_step,
            "groups": list(self.groups),
            "voids": self.voids,
        }


def voided(conditions: Iterable[Condition]) -> Condition | None:
    """The first condition under which no claim may be made; None where claims stand."""
    return next((condition for condition in conditions if condition.voids), None)


def of_draws(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    """Those that say what is not known of how runs were drawn: they go with every answer, in its own words."""
    return tuple(one for one in conditions if one.code in (UNITS_UNKNOWN, SEED_FROM_PARAMETER))


def noted(notes: Iterable[str]) -> tuple[Condition, ...]:
    """What was noticed while something was computed, as conditions."""
    return tuple(Condition("note", note, "see the data") for note in notes)


def some(count: int, noun: str) -> str:
    """A count with its noun: 1 run, 2 runs."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def first_of(items: Iterable[str], most: int, joint: str = "; ") -> str:
    """The first so many of them, and how many more there are."""
    every = list(items)
    return joint.join([*every[:most], *([f"and {len(every) - most} more"] if len(every) > most else [])])


def not_finite(count: int, of: str = "") -> str:
    """How many values are not finite and count for nothing. of: whose they are."""
    whose = f" of {of!r}" if of else ""
    return (
        f"{some(count, 'value')}{whose} {'is not finite and was' if count == 1 else 'are not finite and were'} left out"
    )
