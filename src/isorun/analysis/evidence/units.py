"""Units: what counts as one piece of evidence, and how runs are turned into them.

A unit is what was drawn independently. Repeats of a seed share what the seed decides, so that their mean stands for
it; copies of a run say nothing that the first did not say. Statistics are made from one value a unit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from isorun.analysis.evidence.coincidence import BOUNDS, distinct_among
from isorun.analysis.evidence.condition import some
from isorun.analysis.inputs.pairing import Pairs
from isorun.analysis.inputs.samples import FloatArray
from isorun.analysis.inputs.tables import Table, Values, natural_order
from isorun.errors import InputError, known_names

__all__ = [
    "REPEAT",
    "Counting",
    "PairedUnits",
    "Units",
    "counted",
    "counting_of",
    "listed_pairs",
    "listed_units",
    "names_seed",
    "paired_units",
    "refuse_value_as_unit",
    "seed_column",
    "unit_labels",
    "units_of",
]

REPEAT: Final = "repeat"
_MISSING_WORDS: Final = frozenset({"", "-", "na", "n/a", "nan", "<na>", "null", "none"})
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

    @property
    def about(self) -> str:
        """What an answer is limited to, where only the runs of one seed were counted."""
        if self.noun != REPEAT:
            return ""
        return f"about seed {self.alone} alone" if self.alone else "about the one seed of each side alone"


@dataclass(frozen=True, slots=True)
class PairedUnits:
    """Sides whose runs belong together: one value a pair for each. unmatched: labels that not all have."""

    sides: tuple[FloatArray, ...]
    unmatched: tuple[str, ...]

    @property
    def pairs(self) -> Pairs:
        """The two sides of a comparison."""
        first, second = self.sides
        return Pairs(first, second, self.unmatched)


def counting_of(table: Table, asked: str | None = None) -> Counting:
    """How to count: as asked; else by a column of seeds; else by rows."""
    seeds = seed_column(table)
    repeats = next((name for name in table.columns if name.lower() == REPEAT), None)
    if asked is None:
        return Counting(seeds, "seed" if seeds else "row")
    if asked in table.columns and asked != repeats:
        return Counting(asked, "seed" if asked == seeds else asked, asked=True)
    if asked == REPEAT:
        return Counting(repeats, REPEAT, asked=True, seeds=seeds)
    if asked in _ROW_WORDS:
        return Counting(None, "row", asked=True)
    allowed = known_names(asked, [*table.columns, REPEAT, *_ROW_WORDS])
    raise InputError(f"{table.source} has no column {asked!r} to count by", allowed=allowed)


def refuse_value_as_unit(counting: Counting, value: str) -> None:
    """The result itself cannot say what was drawn."""
    if counting.column == value:
        raise InputError(
            "a result cannot be the unit that it is counted by", found=f"--unit {value}", hint="name another column"
        )


def seed_column(table: Table) -> str | None:
    """The column of seeds: the one called so; else, of those whose name has that word, the one with fewest labels."""
    exact = next((name for name in table.columns if name.lower() == "seed"), None)
    alike = [name for name in table.columns if names_seed(name)]
    return exact or min(alike, key=lambda name: len(set(table.labels(name))), default=None)


def names_seed(name: str) -> bool:
    """Whether a column of that name holds seeds: "train_seed", "modelSeed", "random_state"."""
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return re.search(r"(?<![a-z])(seeds?|random_?state|rng)(?![a-z])", parted) is not None


def units_of(table: Table, group: Values, counting: Counting) -> Units:
    """The units among the finite values of one group of rows."""
    alone = _one_seed(table, group, counting)
    labels = _labels(table, group, counting)
    membership = _numbered(labels)
    means = _means(group.finite, membership, int(membership.max(initial=-1)) + 1)
    found = Units(means, tuple(dict.fromkeys(labels)), group.finite, counting.noun, alone=alone)
    return found if counting.asked or counting.recorded else _without_copies(found)


def listed_units(values: FloatArray) -> Units:
    """The units of a plain list of runs, of which nothing else is known."""
    labels = tuple(str(place + 1) for place in range(values.size))
    return _without_copies(Units(values, labels, values, "run"))


def paired_units(table: Table, sides: Sequence[Values], column: str, counting: Counting) -> PairedUnits:
    """Every side at each label of `column` that all sides have; repeats averaged.

    Labels that stand for the same draws on every side are one unit, and so are labels at which all sides hold the very
    same numbers again.
    """
    found = [units_of(table, side, Counting(column, column, asked=True)) for side in sides]
    by_label = [dict(zip(units.labels, units.values.tolist(), strict=True)) for units in found]
    every = dict.fromkeys(label for labels in by_label for label in labels)
    shared = sorted((label for label in every if all(label in labels for labels in by_label)), key=natural_order)
    if not shared:
        raise InputError(
            f"no label of {column!r} occurs for every approach, so that no runs belong together",
            found=f"for example {' and '.join(repr(next(iter(labels))) for labels in by_label)}",
        )
    values = np.array([[labels[label] for label in shared] for labels in by_label])
    drawn = _drawn(table, sides, column, counting)
    units = _together([[side[label] for label in shared] for side in drawn])
    means = np.array([_means(side, units, int(units.max()) + 1) for side in values])
    if not (counting.asked or counting.recorded):
        means = _without_copied_pairs(means)
    unmatched = tuple(sorted((label for label in every if label not in set(shared)), key=natural_order))
    return PairedUnits(tuple(means), unmatched)


def listed_pairs(first: FloatArray, second: FloatArray) -> Pairs:
    """The pairs of two plain lists, whose i-th runs belong together; pairs that share a draw are one."""
    if first.size != second.size:
        raise InputError("paired runs must be equally many", found=f"{first.size} and {second.size}")
    return Pairs(*_without_copied_pairs(np.array([first, second]))) if first.size else Pairs(first, second)


def _without_copied_pairs(sides: FloatArray) -> FloatArray:
    """The sides (rows) with pairs (columns) that share a copied draw on any side averaged into one."""
    drawn = [[frozenset({label}) for label in _draws(side).tolist()] for side in sides]
    units = _together(drawn)
    return np.array([_means(side, units, int(units.max()) + 1) for side in sides])


def _draws(values: FloatArray) -> NDArray[np.intp]:
    """A number for each draw: equal values are one where they cannot be chance, or where all are equal."""
    everything = np.arange(values.size, dtype=np.intp)
    constant = values.size > 1 and float(values.min()) == float(values.max()) and float(values[0]) not in BOUNDS
    if not constant and distinct_among(values).size == values.size:
        return everything
    return _numbered(values.tolist())


def _together(sides: Sequence[Sequence[frozenset[Hashable]]]) -> NDArray[np.intp]:
    """A number for each pair, the same for pairs that share a draw on any side: their differences move together."""
    group: dict[tuple[int, Hashable], int] = {}
    joined: list[int] = []
    for pair in zip(*sides, strict=True):
        keys = [(side, draw) for side, draws in enumerate(pair) for draw in draws]
        known = sorted({joined[group[key]] for key in keys if key in group})
        joined.append(known[0] if known else len(joined))
        if len(known) > 1:
            joined = [known[0] if number in known else number for number in joined]
        group.update(dict.fromkeys(keys, len(joined) - 1))
    return _numbered(joined)


def _drawn(table: Table, sides: Sequence[Values], column: str, counting: Counting) -> list[dict[str, frozenset[str]]]:
    """For each side, the units whose runs stand at each label; the label itself where rows are counted."""
    labels = unit_labels(table, column)
    units = labels if counting.column in {None, column} else unit_labels(table, str(counting.column))
    drawn: list[dict[str, set[str]]] = [{} for _ in sides]
    for found, side in zip(drawn, sides, strict=True):
        for row in side.rows.tolist():
            found.setdefault(labels[row], set()).add(units[row])
    return [{label: frozenset(members) for label, members in found.items()} for found in drawn]


def _numbered(items: Sequence[Hashable]) -> NDArray[np.intp]:
    """The number of each item, equal ones alike, in the order in which they are met."""
    places: dict[Hashable, int] = {}
    return np.array([places.setdefault(item, len(places)) for item in items], dtype=np.intp)


def _labels(table: Table, group: Values, counting: Counting) -> list[str]:
    """A label for each row; a row without one is a unit of its own."""
    rows = group.rows.tolist()
    if counting.column is None:
        return [table.place(row) for row in rows]
    column = unit_labels(table, counting.column)
    return [column[row] or table.place(row) for row in rows]


def unit_labels(table: Table, column: str) -> list[str]:
    """The labels of units: a number is the same however it is written (1, 1.0, 01), a missing one is empty."""
    return [_plain_label(label) for label in table.labels(column)]


def _plain_label(label: str) -> str:
    text = label.strip()
    if text.lower() in _MISSING_WORDS:
        return ""
    try:
        number = float(text)
    except ValueError:
        return text
    return str(int(number)) if math.isfinite(number) and number == int(number) else text


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
    labels = unit_labels(table, counting.seeds)
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
        if float(units.values[0]) in BOUNDS:
            return units
        return replace(units, values=units.values[:1], labels=units.labels[:1], copies=units.count - 1, constant=True)
    kept = distinct_among(units.values)
    if kept.size == units.count:
        return units
    labels = tuple(units.labels[place] for place in kept.tolist())
    return replace(units, values=units.values[kept], labels=labels, copies=units.count - int(kept.size))


def counted(units: Units) -> str:
    """How runs became units, in words: "30 runs of 3 seeds count as 3"."""
    runs, count = units.runs.size, units.count
    if units.constant:
        return f"{some(runs, 'run')} gave the same number and {'count' if runs > 1 else 'counts'} as 1"
    if units.copies:
        return f"{some(runs, 'run')}, among them copies, count as {count}"
    if runs == count:
        return some(count, "run" if units.noun == "row" else units.noun)
    drawn = "independent draw" if units.noun in {"run", "row", "unit", REPEAT} else units.noun
    return f"{some(runs, 'run')} of {some(count, drawn)} count as {count}"
