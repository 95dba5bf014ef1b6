"""Which runs of a price are next, and which set of steps they recommend."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from scipy import special

from isorun.analysis.prices import AS_IT_IS, Names, rungs
from isorun.analysis.prices.priced_runs import FEWEST_RUNS, PlannedRun, PricedRuns, mean_ratio

__all__ = [
    "MOST_RUNS",
    "Need",
    "Recommended",
    "Undecided",
    "least_seconds",
    "recommended",
    "wanted_runs",
]

MOST_RUNS: Final = 99
_SELDOM: Final = 0.05
_WARM_RUNS: Final = 2
_ROUND: Final = 100
"""Blocks of the ladder begin at 1, those of the k-th round of sets without one step at k times this."""


AtHand = Callable[[Sequence[PlannedRun]], bool]
"""Whether one of these was made before: a block that was begun costs nothing, or what is left of it."""


def wanted_runs(
    runs: PricedRuns, taken: Names, most: int, seconds: float, at_hand: AtHand = lambda _: False
) -> tuple[PlannedRun, ...]:
    """Which runs are next, in the order they are to be made; none when all is known, or the seconds are spent.

    The ladder first, block by block. Then, in rounds, the sets beside the cheapest known one with identical runs
    (`_search`), each as long as its own runs are the same, or too few to say that the step it leaves out is needed.
    """
    if PlannedRun(AS_IT_IS, 0) not in runs.made:
        return (PlannedRun(AS_IT_IS, 0),)
    ladder = [names for names in rungs(taken) if names not in runs.failed]
    budget = _Budget(most, seconds, at_hand)
    if missing := _missing(runs, ladder, 0, budget):
        return missing
    for number, one in enumerate(_search(runs, taken), start=1):
        fresh = [names for names in one.others if names not in ladder and names not in runs.failed]
        open_ones = [names for names in fresh if _is_open(runs, one, names)]
        if open_ones and (missing := _missing(runs, [AS_IT_IS, *open_ones], number * _ROUND, budget)):
            return missing
    return ()


def _is_open(runs: PricedRuns, one: _Round, names: Names) -> bool:
    if runs.stands(names) is not False:
        return True
    # Two different ends say that the set will not do. That the step left out is what it lacks takes a few more.
    return names in one.fewer and any(
        not _need(runs, one.current, name).shown for name in one.current if name not in names
    )


def least_seconds(runs: PricedRuns, taken: Names) -> float:
    """Seconds that the least measurement of the ladder takes, by what is known.

    The first run reads all files for the first time, so of it only the training's own work counts. Once two more have
    run, what starting and ending takes counts, too; sets that have not run are taken to be as quick as the quickest.
    """
    ladder = [names for names in rungs(taken) if names not in runs.failed]
    walls = [runs.wall(names) for names in ladder if PlannedRun(names, 1) in runs.made]
    if len(walls) < _WARM_RUNS:
        return FEWEST_RUNS * len(ladder) * runs.made[PlannedRun(AS_IT_IS, 0)].seconds
    return FEWEST_RUNS * (sum(walls) + (len(ladder) - len(walls)) * min(walls))


class _Budget(NamedTuple):
    most: int
    seconds: float
    at_hand: AtHand


def _missing(runs: PricedRuns, sets: Sequence[Names], begins: int, budget: _Budget) -> tuple[PlannedRun, ...]:
    """What the first block that is not whole lacks. A block is begun only where there is time for it."""
    cost = sum(runs.wall(names) for names in sets)
    for number in range(1, budget.most + 1):
        block = begins + number
        order = [PlannedRun(names, block) for names in sets]
        random.Random(f"isorun price {block}").shuffle(order)
        lacking = tuple(run for run in order if run not in runs.made)
        if not lacking:
            continue
        promised = not begins and number <= FEWEST_RUNS  # that there is time for these was seen before
        needed = cost * max(FEWEST_RUNS - number + 1, 1)
        too_long = not promised and len(lacking) == len(sets) and runs.spent + needed > budget.seconds
        return () if too_long and not budget.at_hand(lacking) else lacking
    return ()


class _Round(NamedTuple):
    """A set with identical runs, and those that may do as well: without one step, or with another for the last one."""

    current: Names
    fewer: tuple[Names, ...]
    instead: tuple[Names, ...] = ()

    @property
    def others(self) -> tuple[Names, ...]:
        return (*self.fewer, *self.instead)


def _search(runs: PricedRuns, taken: Names) -> Iterator[_Round]:
    """From the ladder's best set to ever cheaper ones, as far as runs are known.

    A step that clearly costs time may have been taken before one that would have done alone, so each later step is
    tried in its place.
    """
    current = _first_set(runs, taken)
    instead: tuple[Names, ...] = ()
    if current and current in rungs(taken) and runs.clearly_faster(current[:-1], current):
        instead = tuple((*current[:-1], later) for later in taken[len(current) :])
    while current is not None:
        without = [out for out in current if out not in runs.indispensable]
        one = _Round(current, tuple(tuple(name for name in current if name != out) for out in without), instead)
        yield one
        instead = ()
        current = _cheaper(runs, one)


def _first_set(runs: PricedRuns, taken: Names) -> Names | None:
    """The rung to begin with: the lowest one with identical runs, or one above it that is clearly faster."""
    same = [names for names in rungs(taken) if runs.stands(names)]
    if not same:
        return None
    faster = [names for names in same[1:] if runs.clearly_faster(names, same[0], among=len(same) - 1)]
    return min(faster, key=lambda names: _ratio(runs, names)) if faster else same[0]


def _cheaper(runs: PricedRuns, one: _Round) -> Names | None:
    """The fastest of the others with identical runs: one with fewer steps unless it costs more, one that is cheaper."""
    fewer = [names for names in one.fewer if runs.stands(names)]
    fitting = [names for names in fewer if not runs.clearly_faster(one.current, names)]
    same = [names for names in one.instead if runs.stands(names)]
    fitting += [names for names in same if runs.clearly_faster(names, one.current)]
    return min(fitting, key=lambda names: _ratio(runs, names)) if fitting else None


class Need(NamedTuple):
    """Why a step is in a set: of `runs_without` it `odd` ended unlike the others of their seed, of `runs_with` it none.

    p: the largest chance of that if the step did nothing. faster: it takes clearly less time with it.
    """

    name: str
    odd: int
    runs_without: int
    runs_with: int
    p: float
    faster: bool = False

    @property
    def shown(self) -> bool:
        """Whether chance would seldom do that."""
        return self.p <= _SELDOM

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        counts = {"odd": self.odd, "runs_without": self.runs_without, "runs_with": self.runs_with}
        return {"name": self.name, **counts, "p": self.p, "faster": self.faster}


class Undecided(NamedTuple):
    """A set whose runs are the same, but that is not told apart from `alike`, which leaves steps out: so few differ."""

    names: Names
    alike: Names
    pairs: float

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"steps": list(self.names), "not_told_apart_from": list(self.alike), "pairs": self.pairs}


class Recommended(NamedTuple):
    """The set, None where none is; whether all that might be cheaper were looked at; why each step is in it."""

    names: Names | None
    whole: bool
    undecided: Undecided | None = None
    needs: tuple[Need, ...] = ()


def recommended(runs: PricedRuns, taken: Names) -> Recommended:
    """The cheapest set with identical runs, if every step of it is there for a reason that was seen."""
    current, whole = _first_set(runs, taken), True
    for one in _search(runs, taken):
        current = one.current
        whole = whole and all(names in runs.failed or runs.stands(names) is not None for names in one.others)
    if current is None:
        return Recommended(None, whole)
    needs = tuple(_need(runs, current, name) for name in current if name not in runs.indispensable)
    idle = {need.name for need in needs if need.runs_without and not need.shown and not need.faster}
    if idle and runs.stands(AS_IT_IS):  # what would be faster is open, and what has to be done is not
        return Recommended(AS_IT_IS, whole)
    if idle:
        alike = tuple(name for name in current if name not in idle)
        return Recommended(None, whole, Undecided(current, alike, runs.pairs(current)), needs)
    return Recommended(current, whole, None, needs)


def _need(runs: PricedRuns, chosen: Names, name: str) -> Need:
    """The runs of the set and of those above it, beside the same sets without the step, where these were run, too."""
    above = [names for names in runs.sets if set(chosen) <= set(names)]
    found = [(names, tuple(item for item in names if item != name)) for names in above]
    both = [(names, less) for names, less in found if less in runs.sets and runs.distinct(less) is not None]
    odd, without = (sum(count(less) for _, less in both) for count in (runs.odd, lambda less: len(runs.of(less))))
    with_it = sum(len(runs.of(names)) for names, _ in both)
    less = tuple(item for item in chosen if item != name)
    faster = less in runs.sets and runs.clearly_faster(chosen, less)
    return Need(name, odd, without, with_it, _chance(odd, without, with_it), faster)


def _chance(odd: int, without: int, with_it: int) -> float:
    """Of so many odd runs or more without a step and none with it, if the step does nothing: the largest there is."""
    shares = np.linspace(0.0, 1.0, 501)[1:-1]
    if not odd:
        return 1.0
    return float(((1 - shares) ** with_it * special.bdtrc(odd - 1, without, shares)).max())


def _ratio(runs: PricedRuns, names: Names) -> float:
    found = mean_ratio(runs.log_ratios(names, AS_IT_IS, lambda made: made.seconds))
    return math.inf if found is None else found
