"""Looks: the moments at which the runs made so far are compared.

A schedule of looks is declared before the runs are made and says how many runs each side has at each look. Which runs
those are is the order in which they are given, never their values: that is all the error rates rest on. The
information in a comparison of m with n runs is mn / (m + n); a look's fraction is its information over that of the
last declared look (Lan and DeMets 1983, Biometrika 70).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from isorun.errors import InputError

__all__ = [
    "FEWEST_RUNS",
    "MOST_RUNS",
    "Look",
    "Schedule",
    "against_stored",
    "declared_looks",
    "every",
    "fractions",
    "looks_within",
]

FEWEST_RUNS = 5
"""Below this many runs a side no verdict is given: a rank test of 4 against 4 can reach p = .029 at best, of 3 none."""


MOST_RUNS = 500
"""Beyond this many runs a side boundaries are not simulated: it would take minutes, and the e-process needs none."""


class Look(NamedTuple):
    """How many runs each side has when it is looked at."""

    n_a: int
    n_b: int

    @property
    def information(self) -> float:
        """The information in the comparison, in runs: mn / (m + n)."""
        return self.n_a * self.n_b / (self.n_a + self.n_b)


Schedule = tuple[Look, ...]


def every(step: int, *, min_runs: int, max_runs: int) -> Schedule:
    """A look after each `step` pairs of runs from `min_runs` on; the last is at `max_runs`."""
    if step < 1:
        raise InputError("looks cannot be planned", found=f"a look every {step} runs", allowed="a step of 1 or more")
    _check_range(min_runs, max_runs)
    sizes = [*range(min_runs, max_runs, step), max_runs]
    return tuple(Look(size, size) for size in sizes)


def against_stored(stored: int, *, max_runs: int, min_runs: int = FEWEST_RUNS, stored_side: str = "b") -> Schedule:
    """Looks after every new run of one side while the other side has `stored` runs, as with a published baseline."""
    _check_range(min_runs, max_runs)
    _check_range(FEWEST_RUNS, stored)
    if stored_side not in {"a", "b"}:
        raise InputError("looks cannot be planned", found=f"stored side {stored_side!r}", allowed="'a' or 'b'")
    sizes = range(min_runs, max_runs + 1)
    return tuple(Look(new, stored) if stored_side == "b" else Look(stored, new) for new in sizes)


def declared_looks(looks: int | Sequence[int | Sequence[int]], *, min_runs: int, max_runs: int) -> Schedule:
    """The whole schedule: an int is a step, a sequence lists runs a side, or pairs (runs of A, runs of B)."""
    if isinstance(looks, int):
        return every(looks, min_runs=min_runs, max_runs=max_runs)
    schedule = tuple(_look(item) for item in looks)
    _check_schedule(schedule)
    return schedule


def looks_within(schedule: Schedule, n_a: int, n_b: int) -> int:
    """How many looks of the schedule the runs made so far allow."""
    return sum(1 for look in schedule if look.n_a <= n_a and look.n_b <= n_b)


def fractions(schedule: Schedule) -> tuple[float, ...]:
    """The information fraction of each look; the last is 1."""
    most = schedule[-1].information
    return tuple(look.information / most for look in schedule)


def _look(sizes: int | Sequence[int]) -> Look:
    if not isinstance(sizes, Sequence):
        return Look(sizes, sizes)
    if len(sizes) != 2:
        raise InputError(
            "looks cannot be planned", found=f"{sizes!r}", allowed="runs a side, or (runs of A, runs of B)"
        )
    return Look(*sizes)


def _check_range(fewest: int, most: int) -> None:
    if not FEWEST_RUNS <= fewest <= most:
        raise InputError(
            "looks cannot be planned",
            found=f"from {fewest} to {most} runs a side",
            allowed=f"at least {FEWEST_RUNS} runs a side, and the maximum not below the minimum",
        )


def _check_schedule(schedule: Schedule) -> None:
    if not schedule:
        raise InputError("looks cannot be planned", found="an empty list of looks", allowed="at least one look")
    _check_range(min(schedule[0]), max(schedule[-1]))
    for before, after in itertools.pairwise(schedule):
        if after.n_a < before.n_a or after.n_b < before.n_b or after == before:
            raise InputError(
                "looks cannot be planned",
                found=f"a look at {tuple(after)} after a look at {tuple(before)}",
                allowed="looks that grow: at least one side has more runs, and no side has fewer",
            )
