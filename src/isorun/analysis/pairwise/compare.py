"""`compare`: two approaches from arrays, or from any table of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from isorun.analysis.inputs.pairing import Pairs, matched
from isorun.analysis.inputs.samples import finite_sample, higher_is_better
from isorun.analysis.inputs.tables import Group, read_table
from isorun.analysis.pairwise.comparison import Comparison, Side, compared
from isorun.analysis.sequential.verdict import decide
from isorun.analysis.spreads.summary import column_names
from isorun.errors import InputError, known_names

__all__ = ["compare"]

Label = str | Sequence[str]


def compare(
    data: Any,
    second: Any = None,
    /,
    *,
    value: str | None = None,
    by: str | Sequence[str] | None = None,
    a: Label | None = None,
    b: Label | None = None,
    pair: str | None = None,
    paired: bool = False,
    direction: str = "higher",
    where: Mapping[str, str] | None = None,
    drop_missing: bool = False,
    margin: float | None = None,
) -> Comparison:
    """Compare two approaches.

    compare(runs_a, runs_b, a="base", b="new"): two lists of results; paired=True when the i-th runs belong together.
    compare(table, value="accuracy", by="setting", a="base", b="new", pair="seed"): from anything `read_table` reads;
    without a and b the column must hold exactly two labels. margin: the difference that does not matter, for the
    verdict "equivalent".
    """
    higher_is_better(direction)
    if second is not None:
        _refuse_table_arguments(value=value, by=by, pair=pair, where=where)
        sides = Side(_joined(a) or "A", finite_sample(data, "the runs of A")), _side_b(second, b)
        pairs = _in_order(*sides) if paired else None
    else:
        chosen = _Selection(value, by, (a, b), pair, where or {}, drop_missing)
        sides, pairs = _from_table(data, chosen)
    a_side, b_side = (_in_order_of_size(side) for side in sides)
    decision = decide(a_side.values, b_side.values, direction=direction, margin=margin, method="fixed")
    return compared(a_side, b_side, pairs, direction, decision)


def _in_order_of_size(side: Side) -> Side:
    """Sums in one fixed order, so that the order of the rows does not even show in the last digit."""
    return replace(side, values=np.sort(side.values))


def _side_b(second: Any, name: Label | None) -> Side:
    return Side(_joined(name) or "B", finite_sample(second, "the runs of B"))


def _refuse_table_arguments(**given: object) -> None:
    wrong = [name for name, argument in given.items() if argument]
    if wrong:
        raise InputError(
            "two lists of results have no columns", found=", ".join(wrong), hint="give a table, or leave these out"
        )


def _in_order(a: Side, b: Side) -> Pairs:
    if a.values.size != b.values.size:
        raise InputError("paired runs must be equally many", found=f"{a.values.size} and {b.values.size}")
    return Pairs(a.values, b.values)


@dataclass(frozen=True, slots=True)
class _Selection:
    """Which part of a table is compared."""

    value: str | None
    by: str | Sequence[str] | None
    labels: tuple[Label | None, Label | None]
    pair: str | None
    where: Mapping[str, str]
    drop_missing: bool


def _from_table(data: Any, chosen: _Selection) -> tuple[tuple[Side, Side], Pairs | None]:
    value, by = chosen.value, chosen.by
    if value is None or by is None:
        raise InputError(
            "a comparison from a table needs to know its columns",
            found=f"value = {value!r}, by = {by!r}",
            allowed="value: the column with the results; by: the column that tells the approaches apart",
        )
    table = read_table(data).where(chosen.where)
    groups = table.groups(value, column_names(by, tuple(table.columns)), drop_missing=chosen.drop_missing)
    first, second = _two_of(groups, chosen.labels)
    sides = _side(first, value), _side(second, value)
    return sides, None if chosen.pair is None else matched(table, chosen.pair, first.values, second.values)


def _side(group: Group, value: str) -> Side:
    if not group.values.finite.size:
        raise InputError(
            f"{group.name!r} has no finite value in column {value!r}",
            found=f"{group.values.dropped} values, all missing, NaN or infinite",
        )
    return Side(group.name, group.values.finite, group.values.dropped)


def _two_of(groups: Sequence[Group], labels: tuple[Label | None, Label | None]) -> tuple[Group, Group]:
    named = {group.name: group for group in groups}
    wanted = [_joined(label) for label in labels]
    if wanted == [None, None] and len(named) == 2:
        first, second = named.values()
        return first, second
    for name in wanted:
        if name is None:
            raise InputError("say which two approaches to compare (a and b)", allowed=", ".join(named))
        if name not in named:
            raise InputError(f"no run belongs to {name!r}", allowed=known_names(name, named))
    if wanted[0] == wanted[1]:
        raise InputError("an approach cannot be compared with itself", found=repr(wanted[0]))
    return named[str(wanted[0])], named[str(wanted[1])]


def _joined(label: Label | None) -> str | None:
    return label if label is None or isinstance(label, str) else ",".join(label)
