"""Tables as data, so that every renderer shows the same ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

__all__ = ["MOST_ROWS", "Column", "Table", "without_constant_columns"]

MOST_ROWS: Final = 1000
"""A page with more rows of one table is neither read nor opened quickly."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column. key: it names the row (text); the others hold numbers. group: a heading over several columns."""

    title: str
    unit: str = ""
    group: str = ""
    key: bool = False

    @property
    def heading(self) -> str:
        """The title with its unit."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose cells are written out. Every row is as long as `columns`. notes: what a reader needs below it.

    folded: too long for a first look; renderers that can may fold it away.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    folded: bool = False

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.name}: a row has {len(row)} cells for {len(self.columns)} columns")

    def first_rows(self) -> Table:
        """The table as pages show it: a long one with its first rows and a note on where the others are."""
        if len(self.rows) <= MOST_ROWS:
            return self
        note = f"The first {MOST_ROWS:,} of {len(self.rows):,} rows; --json has all."
        return replace(self, rows=self.rows[:MOST_ROWS], notes=(note, *self.notes))

    @property
    def has_groups(self) -> bool:
        """Whether any column stands under a common heading."""
        return any(column.group for column in self.columns)

    def to_json(self) -> dict[str, Any]:
        """The table as it is shown, for machines that want the same text."""
        headings = [f"{column.group}: {column.heading}" if column.group else column.heading for column in self.columns]
        rows = [list(row) for row in self.rows]
        return {"name": self.name, "title": self.title, "columns": headings, "rows": rows, "notes": list(self.notes)}

    def heading_groups(self) -> list[tuple[str, int]]:
        """Runs of neighbouring columns with the same group: (heading, how many)."""
        runs: list[tuple[str, int]] = []
        for column in self.columns:
            if runs and runs[-1][0] == column.group and column.group:
                runs[-1] = (column.group, runs[-1][1] + 1)
            else:
                runs.append((column.group, 1))
        return runs


def without_constant_columns(table: Table, titles: tuple[str, ...]) -> Table:
    """The table without those of the named key columns that say the same in every row ("default" everywhere).

    The first key column stays, so that a row always has a name.
    """
    keys = [place for place, column in enumerate(table.columns) if column.key]
    constant = {
        place for place in keys if table.columns[place].title in titles and len({row[place] for row in table.rows}) <= 1
    }
    if set(keys) <= constant:
        constant.discard(keys[-1])
    kept = [place for place in range(len(table.columns)) if place not in constant]
    return replace(
        table,
        columns=tuple(table.columns[place] for place in kept),
        rows=tuple(tuple(row[place] for place in kept) for row in table.rows),
    )
