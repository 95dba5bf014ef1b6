"""Cells that several tables have in common: the columns that name a group, and intervals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from isorun.analysis.spreads.spread import Spread
from isorun.analysis.studies.group_result import GroupKey
from isorun.report.numbers import UNKNOWN, NumberStyle
from isorun.report.tables import Column, Table, without_constant_columns

__all__ = ["GROUP_COLUMNS", "group_cells", "interval_cell", "named_rows"]

_TITLES: Final = ("approach", "config", "environment", "level")
GROUP_COLUMNS: Final = tuple(Column(title, key=True) for title in _TITLES)


def group_cells(key: GroupKey) -> tuple[str, str, str, str]:
    """The cells that go with GROUP_COLUMNS."""
    return (key.approach, key.config, key.environment, str(key.level))


def interval_cell(spread: Spread, style: NumberStyle) -> str:
    """The interval of a standard deviation; a plain 0 where nothing varies."""
    if spread.sd_interval is None:
        return UNKNOWN
    return "–".join(style.difference(bound, spread.sd) for bound in spread.sd_interval) if spread.sd else "0"


def named_rows(table: Table, groups: Iterable[GroupKey]) -> Table:
    """The table without key columns that are the same in every row.

    What they say moves below the table, unless it holds for the whole study and so needs no saying.
    """
    shorter = without_constant_columns(table, (*_TITLES, "judged at"))
    gone = [place for place, column in enumerate(table.columns) if column.key and column not in shorter.columns]
    everywhere = [set(cells) for cells in zip(*(group_cells(key) for key in groups), strict=True)]
    said = [
        f"{table.columns[place].title} {table.rows[0][place]}"
        for place in gone
        if table.columns[place].title in _TITLES and len(everywhere[_TITLES.index(table.columns[place].title)]) > 1
    ]
    return replace(shorter, notes=(*shorter.notes, f"All rows: {', '.join(said)}.") if said else shorter.notes)
