"""Units: what counts as one piece of evidence, and how runs are turned into them.

A unit is what was drawn independently. Repeats of a seed share what the seed decides, so that their mean stands for
it; copies of a run say nothing that the first did not say. Statistics are made from one value a unit.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from isorun.analysis.evidence.coincidence import copies_among
from isorun.analysis.evidence.condition import some
from isorun.analysis.inputs.pairing import Pairs
from isorun.analysis.inputs.samples import FloatArray
from isorun.analysis.inputs.tables import Table, Values, natural_order
from isorun.errors import InputError, known_names

__all__ = [
    "Counting",
    "Units",
    "by_label",
    "counted",
    "counting_of",
    "listed_units",
    "paired_units",
    "units_of",
]

_SEED_COLUMNS: Final = ("seed", "random_seed", "rng_seed")
_REPEAT: Final = "repeat"
_ROW_WORDS: Final = ("row", "run")


@dataclass(frozen=True, slots=True)
class Counting:
    """How the runs of a table are counted.

    column: runs that share a label there are one unit; None: every row is one. noun: what a unit is called.
    asked: whether the user named it, and so vouches for it. seeds: the column that must not vary within a side, because
    the question is about one seed alone. recorded: whether records told the units, so that copies are merged already.
    """

    column: str | None
    noun: str
    asked: bool = False
    seeds: str | None = None
    recorded: bool = False


@dataclass(frozen=True, slots=True)
class Units:
    """One side's evidence.

    values: one a unit, in the order in which units first appear. labels: what each is called. runs: every run's value.
    copies: how many units were merged into others because they held the very same numbers. alone: the one seed that
    the answer is about, where that was asked. constant: all units held the same number, which proves one draw at most.
    """

    values: FloatArray
    labels: tuple[str, ...]
    runs: FloatArray
    noun: str
    copies: int = 0
    constant: bool = False
    alone: str = ""

    @property
    def count(self) -> int:
        """How many units there are."""
        return int(self.values.size)


def counting_of(table: Table, asked: str | None = None) -> Counting:
    """How to count: as asked; else by a column of seeds; else by rows."""
    names = {name.lower(): name for name in table.columns}
    seeds = next((names[word] for word in _SEED_COLUMNS if word in names), None)
    if asked is None:
        return Counting(seeds, "seed" if seeds else "row")
    if asked in table.columns and asked != names.get(_REPEAT):
        return Counting(asked, "seed" if asked == seeds else asked, asked=True)
    if asked == _REPEAT:
        return Counting(names.get(_REPEAT), _REPEAT, asked=True, seeds=seeds)
    if asked in _ROW_WORDS:
        return Counting(None, "row", asked=True)
    allowed = known_names(asked, [*table.columns, _REPEAT, *_ROW_WORDS])
    raise InputError(f"{table.source} has no column {asked!r} to count by", allowed=allowed)


def units_of(table: Table, group: Values, counting: Counting) -> Units:
    """The units among the finite values of one group of rows."""
    alone = _one_seed(table, group, counting)
    labels = _labels(table, group, counting)
    places: dict[str, int] = {}
    membership = np.array([places.setdefault(label, len(places)) for label in labels], dtype=np.intp)
    means = _means(group.finite, membership, len(places))
    found = Units(means, tuple(places), group.finite, counting.noun, alone=alone)
    return found if counting.asked or counting.recorded else _without_copies(found)


def listed_units(values: FloatArray) -> Units:
    """The units of a plain list of runs, of which nothing else is known."""
    labels = tuple(str(place + 1) for place in range(values.size))
    return _without_copies(Units(values, labels, values, "run"))


def by_label(table: Table, group: Values, column: str) -> dict[str, float]:
    """The mean of the runs of each label in `column`, in the order in which labels first appear."""
    found = units_of(table, group, Counting(column, column, asked=True))
    return dict(zip(found.labels, found.values.tolist(), strict=True))


def paired_units(table: Table, sides: tuple[Values, Values], column: str, counting: Counting) -> Pairs:
    """Both sides of every label in `column` that both have: repeats averaged, and copies of a pair counted once."""
    first, second = (by_label(table, side, column) for side in sides)
    shared = sorted(first.keys() & second.keys(), key=natural_order)
    if not shared:
        raise InputError(
            f"no run of one approach shares its {column!r} with a run of the other",
            found=f"for example {next(iter(first))!r} and {next(iter(second))!r}",
        )
    a, b = (np.array([side[label] for label in shared], dtype=np.float64) for side in (first, second))
    kept = _distinct_pairs(table, sides, column, counting, shared) if counting.recorded else _first_of_equal(a, b)
    return Pairs(a[kept], b[kept], tuple(sorted(first.keys() ^ second.keys(), key=natural_order)))


def _distinct_pairs(
    table: Table, sides: tuple[Values, Values], column: str, counting: Counting, shared: Sequence[str]
) -> list[int]:
    """The places of pairs that do not repeat the draws of an earlier pair on both sides."""
    assert counting.column is not None
    labels, units = table.labels(column), table.labels(counting.column)
    drawn = [{labels[row]: units[row] for row in side.rows.tolist()} for side in sides]
    return _first_places([tuple(side[label] for side in drawn) for label in shared])


def _first_of_equal(a: FloatArray, b: FloatArray) -> list[int]:
    """The places of pairs that hold other numbers than those before, where equal numbers cannot be chance."""
    first = _first_places(list(zip(a.tolist(), b.tolist(), strict=True)))
    impossible = all(side.min() == side.max() or copies_among(side).size < side.size for side in (a, b))
    return first if impossible else list(range(a.size))


def _first_places(items: Sequence[Hashable]) -> list[int]:
    """Where each different item stands first."""
    places: dict[Hashable, int] = {}
    for place, item in enumerate(items):
        places.setdefault(item, place)
    return list(places.values())


def _labels(table: Table, group: Values, counting: Counting) -> list[str]:
    """A label for each row; a row without one is a unit of its own."""
    rows = group.rows.tolist()
    if counting.column is None:
        return [table.place(row) for row in rows]
    column = table.labels(counting.column)
    return [column[row] or table.place(row) for row in rows]


def _means(values: FloatArray, membership: NDArray[np.intp], count: int) -> FloatArray:
    """The mean of each unit; that of equal runs is exactly their value, whatever rounding would make of it."""
    first = np.zeros(count, dtype=np.intp)
    first[membership[::-1]] = np.arange(values.size)[::-1]
    beyond = np.bincount(membership, weights=values - values[first[membership]], minlength=count)
    means: FloatArray = values[first] + beyond / np.bincount(membership, minlength=count)
    return means


def _one_seed(table: Table, group: Values, counting: Counting) -> str:
    if counting.seeds is None:
        return ""
    labels = table.labels(counting.seeds)
    seeds = list(dict.fromkeys(labels[row] for row in group.rows.tolist()))
    if len(seeds) > 1:
        raise InputError(
            "repeats are independent of each other only within one seed",
            found=f"runs of {some(len(seeds), 'seed')}: {', '.join(seeds[:5])}{', …' if len(seeds) > 5 else ''}",
            hint=f"--where {counting.seeds}={seeds[0]} asks about one of them; without --unit every seed counts once",
        )
    return seeds[0] if seeds else ""


def _without_copies(units: Units) -> Units:
    """Equal numbers that are no coincidence are one unit."""
    if units.count < 2:
        return units
    if units.values.min() == units.values.max():
        if _is_bound(float(units.values[0])):
            return units
        return replace(units, values=units.values[:1], labels=units.labels[:1], copies=units.count - 1, constant=True)
    kept = copies_among(units.values)
    if kept.size == units.count:
        return units
    labels = tuple(units.labels[place] for place in kept.tolist())
    return replace(units, values=units.values[kept], labels=labels, copies=units.count - int(kept.size))


def _is_bound(value: float) -> bool:
    """Whether many independent runs may well end at this very number: nothing or everything right."""
    return value in {0.0, 1.0, 100.0}


def counted(units: Units) -> str:
    """How runs became units, in words: "30 runs of 3 seeds count as 3"."""
    runs, count = units.runs.size, units.count
    if units.constant:
        return f"{some(runs, 'run')} gave the same number and {'count' if runs > 1 else 'counts'} as 1"
    if units.copies:
        return f"{some(runs, 'run')}, among them copies, count as {count}"
    if runs == count:
        return some(count, "run" if units.noun == "row" else units.noun)
    drawn = "independent draw" if units.noun in {"run", "row", "unit", _REPEAT} else units.noun
    return f"{some(runs, 'run')} of {some(count, drawn)} count as {count}"
