"""What the units of the sides say against a verdict: copies, coarse numbers, pooled runs, too few units."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from isorun.analysis.evidence.coincidence import step_of
from isorun.analysis.evidence.condition import Condition, some
from isorun.analysis.evidence.units import Counting, Units, counted, unit_labels
from isorun.analysis.inputs.tables import Table, Values

__all__ = ["FEWEST_UNITS", "counting_conditions", "pooled_conditions", "shared_draws", "unit_conditions"]

FEWEST_UNITS: Final = 2
"""From one unit nothing is known of the spread, so that nothing can be claimed."""


def unit_conditions(sides: Mapping[str, Units], *, next_step: str) -> tuple[Condition, ...]:
    """What the units themselves say against a verdict. next_step: the command that makes real runs."""
    return (*_copies(sides, next_step), *_rounded(sides), *_too_few(sides, next_step))


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


def counting_conditions(table: Table, sides: Mapping[str, Values], counting: Counting) -> tuple[Condition, ...]:
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


def shared_draws(table: Table, pair: str, counting: Counting) -> tuple[Condition, ...]:
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


def pooled_conditions(table: Table, sides: Mapping[str, Values], factors: Sequence[str]) -> tuple[Condition, ...]:
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
