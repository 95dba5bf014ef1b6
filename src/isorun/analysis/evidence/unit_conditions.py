"""What the units of the sides say against a verdict: copies, coarse numbers, pooled runs, too few units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from isorun.analysis.evidence.coincidence import step_of
from isorun.analysis.evidence.condition import Condition
from isorun.analysis.evidence.units import Units, counted
from isorun.analysis.inputs.tables import Table, Values

__all__ = ["FEWEST_UNITS", "pooled_conditions", "unit_conditions"]

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
    return (Condition("too-few-units", message, next_step, tuple(few), voids=True),)
