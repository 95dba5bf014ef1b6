"""`compare`: two approaches from arrays, or from any table of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from isorun.analysis.evidence.condition import Condition
from isorun.analysis.evidence.unit_conditions import counting_conditions, pooled_conditions, unit_conditions
from isorun.analysis.evidence.units import (
    Counting,
    counting_of,
    listed_pairs,
    listed_units,
    paired_units,
    refuse_value_as_unit,
    units_of,
)
from isorun.analysis.evidence.withholding import skewed_pairs, withheld
from isorun.analysis.inputs.pairing import Pairs
from isorun.analysis.inputs.samples import finite_sample, higher_is_better
from isorun.analysis.inputs.tables import Group, Table, read_table
from isorun.analysis.pairwise.by_name import NamedQuestion, asked_by_name
from isorun.analysis.pairwise.comparison import Comparison, Side, compared
from isorun.analysis.sequential.naming import named
from isorun.analysis.sequential.verdict import decide
from isorun.analysis.spreads.summary import column_names
from isorun.errors import InputError, known_names

__all__ = ["REAL_RUNS", "compare"]

Label = str | Sequence[str]

_FACTORS: Final = ("approach", "config", "environment", "level", "device")
"""Columns that say how a run was made; runs that differ in them are not repetitions of one another."""
REAL_RUNS: Final = "isorun run -n 10 -- COMMAND makes independent runs of any training"


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
    unit: str | Counting | None = None,
    test: str | None = None,
    conditions: Sequence[Condition] = (),
    real_runs: str = REAL_RUNS,
    also: Sequence[str] = (),
    rope: float = 0.0,
    correlation: float = 0.0,
) -> Comparison:
    """Compare two approaches.

    compare(runs_a, runs_b, a="base", b="new"): two lists of results; paired=True when the i-th runs belong together.
    compare(table, value="accuracy", by="setting", a="base", b="new", pair="seed"): from anything `read_table` reads;
    without a and b the column must hold exactly two labels. margin: the difference that does not matter, for the
    verdict "equivalent". unit: the column that says what was drawn independently ("repeat": the runs of one seed);
    a column of seeds where there is one, else every row. conditions: what is known against the evidence beforehand.
    real_runs: the command that makes more of it. also: analyses by name (`by_name.NAMES`), with rope and correlation.
    """
    higher_is_better(direction)
    if second is not None:
        _refuse_table_arguments(value=value, by=by, pair=pair, where=where, unit=unit)
        sides = _listed("A", data, a), _listed("B", second, b)
        pairs = _in_order(data, second) if paired else None
    else:
        chosen = _Selection(value, by, (a, b), pair, where or {}, drop_missing, unit)
        sides, pairs, pooled = _from_table(data, chosen)
        conditions = (*conditions, *pooled)
    found = (*conditions, *unit_conditions({side.name: side.units for side in sides}, next_step=real_runs))
    judged = (pairs.first, pairs.second) if pairs is not None else (sides[0].values, sides[1].values)
    decision = decide(*judged, direction=direction, margin=margin, method="fixed", test=test, paired=pairs is not None)
    if pairs is not None:
        found = (*found, *skewed_pairs(decision, pairs.first, pairs.second))
    decision = named(decision, sides[0].name, sides[1].name, sides[0].units.noun, about=sides[0].units.about)
    question = NamedQuestion(
        sides[0].name, sides[1].name, sides[0].values, sides[1].values, pairs, direction, rope, correlation
    )
    return compared(
        *sides,
        pairs=pairs,
        direction=direction,
        decision=withheld(decision, found),
        conditions=found,
        also=asked_by_name(tuple(also), question),
    )


def _listed(name: str, runs: Any, label: Label | None) -> Side:
    return Side(_joined(label) or name, listed_units(finite_sample(runs, f"the runs of {name}")))


def _refuse_table_arguments(**given: object) -> None:
    wrong = [name for name, argument in given.items() if argument]
    if wrong:
        raise InputError(
            "two lists of results have no columns", found=", ".join(wrong), hint="give a table, or leave these out"
        )


def _in_order(first: Any, second: Any) -> Pairs:
    a, b = finite_sample(first, "the runs of A"), finite_sample(second, "the runs of B")
    return listed_pairs(a, b)


@dataclass(frozen=True, slots=True)
class _Selection:
    """Which part of a table is compared."""

    value: str | None
    by: str | Sequence[str] | None
    labels: tuple[Label | None, Label | None]
    pair: str | None
    where: Mapping[str, str]
    drop_missing: bool
    unit: str | Counting | None


def _from_table(data: Any, chosen: _Selection) -> tuple[tuple[Side, Side], Pairs | None, tuple[Condition, ...]]:
    """Both sides, their pairs where asked, and what is pooled within them."""
    value, by = chosen.value, chosen.by
    if value is None or by is None:
        raise InputError(
            "a comparison from a table needs to know its columns",
            found=f"value = {value!r}, by = {by!r}",
            allowed="value: the column with the results; by: the column that tells the approaches apart",
        )
    table = read_table(data).where(chosen.where)
    counting = chosen.unit if isinstance(chosen.unit, Counting) else counting_of(table, chosen.unit)
    refuse_value_as_unit(counting, value)
    columns = column_names(by, tuple(table.columns))
    first, second = _two_of(table.groups(value, columns, drop_missing=chosen.drop_missing), chosen.labels)
    sides = _side(table, first, value, counting), _side(table, second, value, counting)
    fixed = [name for name in _FACTORS if name not in {*columns, counting.column}]
    rows = {side.name: side.values for side in (first, second)}
    pooled = (*counting_conditions(table, rows, counting), *pooled_conditions(table, rows, fixed))
    if chosen.pair is None:
        return sides, None, pooled
    return sides, paired_units(table, (first.values, second.values), chosen.pair, counting).pairs, pooled


def _side(table: Table, group: Group, value: str, counting: Counting) -> Side:
    if not group.values.finite.size:
        raise InputError(
            f"{group.name!r} has no finite value in column {value!r}",
            found=f"{group.values.dropped} values, all missing, NaN or infinite",
        )
    return Side(group.name, units_of(table, group.values, counting), group.values.dropped)


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
