"""Units: what counts as one piece of evidence, which equal numbers are copies, and what units say against a verdict.

Coincidence: could independent runs have given the very same numbers, or must they be copies of each other?

Accuracies on a hundred examples tie all the time; losses with eight digits never do. What tells them apart is how
finely the numbers lie: the step of which all of them are multiples, against the width over which they spread. n runs
that spread over a width R in steps of g make about n(n - 1)/2 · 2g/R tied pairs by chance (2: densities have a peak).
Many more than that are copies. A single number that keeps coming back is no copy but a place where runs end: a ceiling
(500), a failure (0.5), a training that is stuck. So the commonest number is left out of the count, and where others
repeat it must be three of them, or all there are.

Units: what counts as one piece of evidence, and how runs are turned into them.

A unit is what was drawn independently. Repeats of a seed share what the seed decides, so that their mean stands for
it; copies of a run say nothing that the first did not say. Statistics are made from one value a unit.

What the units of the sides say against a verdict: copies, coarse numbers, pooled runs, too few units.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc

from isorun.analysis.evidence import Condition, some
from isorun.analysis.measurements import Measurements, Values, natural_order
from isorun.analysis.samples import FloatArray, Pairs, mean_of
from isorun.errors import InputError, known_names

__all__ = [
    "BOUNDS",
    "FEWEST_UNITS",
    "REPEAT",
    "Counting",
    "PairedUnits",
    "Units",
    "counted",
    "counting_conditions",
    "counting_of",
    "distinct_among",
    "expected_ties",
    "listed_pairs",
    "listed_units",
    "names_seed",
    "paired_units",
    "pooled_conditions",
    "refuse_value_as_unit",
    "seed_column",
    "shared_draws",
    "significant_digits",
    "step_of",
    "unit_conditions",
    "unit_labels",
    "units_of",
    "units_of_rows",
    "units_without_value",
]

_IMPOSSIBLE: Final = 0.001
"""Ties as many as there are would happen by chance less often than this: they are copies."""
BOUNDS: Final = frozenset({0.0, 1.0, 100.0})
"""Numbers that many independent runs may well end at: nothing or everything right."""
_FINEST: Final = 1e-6
"""Steps below this share of the largest number are not told apart from none: single precision blurs them."""
_MOST_NUMBERS: Final = 24
_MOST_STEPS: Final = 100_000
_LARGEST_WHOLE: Final = 2.0**53
"""Beyond it not every whole number is one of floating point."""


def distinct_among(values: FloatArray) -> NDArray[np.intp]:
    """The places of the values to keep: all of them, or the first of each where ties cannot be chance."""
    same = _alike(values)
    _, first, sizes = np.unique(same, return_index=True, return_counts=True)
    repeated = np.sort(sizes[sizes > 1])
    everything = np.arange(values.size, dtype=np.intp)
    if repeated.size < min(3, sizes.size):
        return everything
    others = repeated[:-1]
    ties = int((others * (others - 1) // 2).sum())
    if not ties or _chance_of(ties, expected_ties(values)) >= _IMPOSSIBLE:
        return everything
    return np.sort(first)


def _alike(values: FloatArray) -> FloatArray:
    """The values without what single precision or a sum in another order does to them."""
    finest = _FINEST * float(np.abs(values).max(initial=0.0))
    return values if finest == 0.0 else np.round(values / finest)


def significant_digits(value: float) -> int:
    """How many significant digits the number is written with."""
    return len(repr(abs(value)).partition("e")[0].replace(".", "").strip("0"))


def _chance_of(ties: int, expected: float) -> float:
    """How likely so many ties or more are by chance: rare events that hardly depend on each other, so Poisson's law."""
    return 1.0 if math.isinf(expected) else float(gammainc(ties, expected))


def expected_ties(values: FloatArray) -> float:
    """How many ties so many independent runs would make by chance; inf where the values do not vary."""
    low, high = np.percentile(values, (25, 75))
    # Four quartile ranges hold nearly all of a sample and are not stretched by a single run that went astray.
    width = 4.0 * float(high - low) or float(values.max() - values.min())
    if width == 0.0:
        return math.inf
    return values.size * (values.size - 1) / 2.0 * min(1.0, 2.0 * step_of(values) / width)


def step_of(values: FloatArray) -> float:
    """The largest step of which all values are multiples: a decimal place, or one example of so many; 0 for zeros.

    Found by trying: 1, 1/2, 1/3, … (of a hundred for percentages, and of the power of ten below the largest number,
    because scores in hundreds and times in microseconds have steps, too), as far as single precision tells such steps
    from none, and as few different values do not fit one by chance; and of whole numbers what divides all of them.
    Numbers without a step have the finest told apart.
    """
    sizes = np.unique(np.abs(values))
    largest = float(sizes.max(initial=0.0))
    tried = sizes[sizes > _FINEST * largest][:_MOST_NUMBERS]
    if not tried.size:
        return 0.0
    scales = dict.fromkeys((1.0, *((100.0,) if 1.0 < largest <= 100.0 else ()), _power_of_ten(largest)))
    found = [scale * step for scale in scales if (step := _unit_fraction(tried / scale, largest / scale))]
    return max([*found, _common_divisor(tried)], default=0.0) or _FINEST * largest


def _power_of_ten(largest: float) -> float:
    """The one below it; 1 for numbers so small that it has not all digits."""
    return float(f"1e{math.floor(math.log10(largest))}") if largest > sys.float_info.min else 1.0


def _common_divisor(sizes: FloatArray) -> float:
    """What divides several whole numbers; 0 where they are none, and of one number alone, which divides itself."""
    if sizes.size < 2 or float(sizes[-1]) > _LARGEST_WHOLE or not (sizes == np.rint(sizes)).all():
        return 0.0
    return float(math.gcd(*(int(size) for size in sizes.tolist())))


def _unit_fraction(sizes: FloatArray, largest: float) -> float:
    """The largest 1/n of which all are multiples; 0 where there is none that is not chance."""
    blur = _FINEST * largest / 4.0
    # So many different values fit 1/n within the blur by chance for one n in a hundred searches up to this one.
    # By logarithms, because the blur of numbers near the smallest float has no powers.
    more = sizes.size + 1
    most = (math.log(0.01 * more) - sizes.size * math.log(2.0 * blur)) / more if blur else math.inf
    steps = _MOST_STEPS if most > math.log(_MOST_STEPS) else int(math.exp(most))
    candidates = np.arange(1, 1 + steps, dtype=np.float64)
    for size in sizes.tolist():
        misses = np.abs(size * candidates - np.rint(size * candidates))
        candidates = candidates[misses <= blur * candidates]
    return 1.0 / float(candidates[0]) if candidates.size else 0.0


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


def counting_of(table: Measurements, asked: str | None = None) -> Counting:
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


def seed_column(table: Measurements) -> str | None:
    """The column of seeds: the one called so; else, of those whose name has that word, the one with fewest labels."""
    exact = next((name for name in table.columns if name.lower() == "seed"), None)
    alike = [name for name in table.columns if names_seed(name)]
    return exact or min(alike, key=lambda name: len(set(table.labels(name))), default=None)


def names_seed(name: str) -> bool:
    """Whether a column of that name holds seeds: "train_seed", "modelSeed", "random_state"."""
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return re.search(r"(?<![a-z])(seeds?|random_?state|rng)(?![a-z])", parted) is not None


def units_of(table: Measurements, group: Values, counting: Counting) -> Units:
    """The units among the finite values of one group of rows."""
    alone = _one_seed(table, group, counting)
    labels = _labels(table, group.rows, counting)
    membership = _numbered(labels)
    means = _means(group.finite, membership, int(membership.max(initial=-1)) + 1)
    found = Units(means, tuple(dict.fromkeys(labels)), group.finite, counting.noun, alone=alone)
    return found if counting.asked or counting.recorded else _without_copies(found)


def listed_units(values: FloatArray) -> Units:
    """The units of a plain list of runs, of which nothing else is known."""
    labels = tuple(str(place + 1) for place in range(values.size))
    return _without_copies(Units(values, labels, values, "run"))


def paired_units(table: Measurements, sides: Sequence[Values], column: str, counting: Counting) -> PairedUnits:
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


def _drawn(
    table: Measurements, sides: Sequence[Values], column: str, counting: Counting
) -> list[dict[str, frozenset[str]]]:
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


def units_without_value(table: Measurements, group: Values, counting: Counting) -> frozenset[str]:
    """The labels of the units that have a run without a finite value."""
    return frozenset(_labels(table, group.left_out, counting)) if group.dropped else frozenset()


def units_of_rows(table: Measurements, group: Values, counting: Counting) -> list[str]:
    """The label of the unit that each row counts to, in the order of the rows with a value and then of the others.

    Copies have that of the unit that stands for them.
    """
    rows = np.concatenate([group.rows, group.left_out])
    labels = _labels(table, rows, counting)
    apart = units_of(table, group, replace(counting, asked=True))
    kept = units_of(table, group, counting)
    if kept.count == apart.count:
        return labels
    nearest = np.abs(apart.values[:, None] - kept.values[None, :]).argmin(axis=1).tolist()
    stands_for = dict(zip(apart.labels, (kept.labels[place] for place in nearest), strict=True))
    return [stands_for.get(label, label) for label in labels]


def _labels(table: Measurements, rows: NDArray[np.intp], counting: Counting) -> list[str]:
    """A label for each row; a row without one is a unit of its own."""
    if counting.column is None:
        return [table.place(row) for row in rows.tolist()]
    column = unit_labels(table, counting.column)
    return [column[row] or table.place(row) for row in rows.tolist()]


def unit_labels(table: Measurements, column: str) -> list[str]:
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
    ordered = values[np.argsort(membership, kind="stable")]
    if count == values.size:
        return ordered
    ends = np.cumsum(np.bincount(membership, minlength=count))[:-1]
    return np.array([mean_of(runs) for runs in np.split(ordered, ends)])


def _one_seed(table: Measurements, group: Values, counting: Counting) -> str:
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
    if units.constant and units.runs.min() != units.runs.max():
        return f"{some(runs, 'run')} of {some(units.copies + 1, units.noun)}, which all gave the same mean, count as 1"
    if units.constant:
        return f"{some(runs, 'run')} gave the same number and {'count' if runs > 1 else 'counts'} as 1"
    if units.copies:
        return f"{some(runs, 'run')}, among them copies, count as {count}"
    if runs == count:
        return some(count, "run" if units.noun == "row" else units.noun)
    drawn = "independent draw" if units.noun in {"run", "row", "unit", REPEAT} else units.noun
    return f"{some(runs, 'run')} of {some(count, drawn)} count as {count}"


FEWEST_UNITS: Final = 2
"""From one unit nothing is known of the spread, so that nothing can be claimed."""


def unit_conditions(sides: Mapping[str, Units], *, next_step: str) -> tuple[Condition, ...]:
    """What the units themselves say against a verdict. next_step: the command that makes real runs."""
    return (*_copies(sides, next_step), *_same_draws(sides), *_rounded(sides), *_too_few(sides, next_step))


def _rounded(sides: Mapping[str, Units]) -> Sequence[Condition]:
    """Numbers written so coarsely that rounding decides who ties with whom."""
    spreads = [float(units.values.std(ddof=1)) for units in sides.values() if units.count > 1]
    widest = max(spreads, default=0.0)
    step = step_of(np.concatenate([units.runs for units in sides.values()]))
    if widest == 0.0 or step <= widest / 2.0:
        return ()
    message = (
        f"values come in steps of {step:.3g}, which is coarse beside their spread (sd {widest:.2g}): ties hide much"
    )
    return (Condition("rounded-values", message, "log more digits, or measure on more examples"),)


_FEWEST_SHARED: Final = 3


def _same_draws(sides: Mapping[str, Units]) -> Sequence[Condition]:
    """Two sides that hold the very same numbers, more of them than chance makes: one set of draws, on both sides."""
    for (a, first), (b, second) in combinations(sides.items(), 2):
        shared = _shared_numbers(first.values, second.values)
        if not shared:
            continue
        what = some(shared, first.noun if first.noun not in {"row", "unit"} else "run")
        message = (
            f"{what} of {a} and {b} gave the very same numbers, which independent draws do not: they are the same runs "
            "again, or what is compared had no effect on them"
        )
        return (
            Condition("same-draws", message, "see whether it reaches the training: isorun env diff RUN RUN", (a, b)),
        )
    return ()


def _shared_numbers(first: FloatArray, second: FloatArray) -> int:
    """How many different numbers are on both sides; 0 where chance may have brought them there.

    The one that most runs have is left out, as among the runs of one side: a ceiling, or a failure.
    """
    shared = np.intersect1d(first, second)
    if shared.size < _FEWEST_SHARED:
        return 0
    both = np.concatenate([first, second])
    numbers, counts = np.unique(both, return_counts=True)
    others = shared[shared != numbers[counts.argmax()]] if counts.max() > _FEWEST_SHARED else shared
    pairs = first.size * second.size / (both.size * (both.size - 1) / 2.0)
    chance = _chance_of(int(others.size), expected_ties(both) * pairs)
    return int(shared.size) if others.size and chance < _IMPOSSIBLE else 0


def counting_conditions(table: Measurements, sides: Mapping[str, Values], counting: Counting) -> tuple[Condition, ...]:
    """What speaks against how the rows of a table are counted: seeds that are missing, rows that may be repeats."""
    if counting.asked or counting.recorded:
        return ()
    rows = [row for values in sides.values() for row in values.rows.tolist()]
    if counting.column is not None:
        labels = unit_labels(table, counting.column)
        missing = sum(not labels[row] for row in rows)
        if not 0 < missing < len(rows):
            return ()
        message = f"{missing} of {some(len(rows), 'row')} have no {counting.column}, so who belongs together is unknown"
        return (Condition("seeds-missing", message, f"fill the column {counting.column!r}, or --unit row", voids=True),)
    repeated = [name for name in table.columns if _names_run(name) and _repeats(table.labels(name), sides)]
    if not repeated:
        return ()
    message = f"rows of a side share labels of {repeated[0]!r}: if they are repeats of one draw, they do not count each"
    return (Condition("rows-may-repeat", message, f"--unit {repeated[0]} counts each label once; --unit row each row"),)


def shared_draws(table: Measurements, pair: str, counting: Counting) -> tuple[Condition, ...]:
    """Labels that runs are paired by although several of them stand for the same draws."""
    if counting.column in {None, pair}:
        return ()
    labels, units = unit_labels(table, pair), unit_labels(table, str(counting.column))
    drawn = len(set(units))
    if drawn == len(set(zip(labels, units, strict=True))) == len(set(labels)):
        return ()
    stand = f"{some(len(set(labels)), 'label')} of {pair!r} stand for {some(drawn, counting.noun)}"
    message = f"{stand}, so that labels which share draws count each"
    return (Condition("pairs-share-draws", message, f"--pair {counting.column}"),)


def _names_run(name: str) -> bool:
    return re.search(r"(?<![a-z])(run|trial|fold|split|replicate|repetition|id)s?(?![a-z])", name.lower()) is not None


def _repeats(labels: Sequence[str], sides: Mapping[str, Values]) -> bool:
    """Whether rows of a side share labels, and are not all of one."""
    found = [[labels[row] for row in values.rows.tolist()] for values in sides.values()]
    return any(1 < len(set(side)) < len(side) for side in found)


def pooled_conditions(
    table: Measurements, sides: Mapping[str, Values], factors: Sequence[str]
) -> tuple[Condition, ...]:
    """Columns that vary within a side although they name something that a comparison should hold fixed."""
    found = []
    for name in (factor for factor in factors if factor in table.columns):
        labels = table.labels(name)
        mixed = [side for side, values in sides.items() if len({labels[row] for row in values.rows.tolist()}) > 1]
        if mixed:
            message = f"runs of several labels of {name!r} are pooled within a side"
            found.append(Condition("sides-pooled", message, f"--where {name}=LABEL keeps one", tuple(mixed)))
    return tuple(found)


def _copies(sides: Mapping[str, Units], next_step: str) -> Sequence[Condition]:
    copied = {name: units for name, units in sides.items() if units.copies}
    if not copied:
        return ()
    told = "; ".join(f"{name}: {counted(units)}" for name, units in copied.items())
    message = f"runs hold the very same numbers, which independent runs do not ({told})"
    return (Condition("copies", message, f"{next_step}; --unit row if they were drawn independently", tuple(copied)),)


def _too_few(sides: Mapping[str, Units], next_step: str) -> Sequence[Condition]:
    few = {name: units for name, units in sides.items() if units.count < FEWEST_UNITS}
    if not few:
        return ()
    told = "; ".join(f"{name}: {counted(units)}" for name, units in few.items())
    message = f"a verdict takes at least {FEWEST_UNITS} independent units a side ({told})"
    vouched = "; --unit row if they were drawn independently" if any(units.copies for units in few.values()) else ""
    return (Condition("too-few-units", message, f"{next_step}{vouched}", tuple(few), voids=True),)
