"""What reports are made of, as data, so that every renderer shows the same: views, tables, numbers.

How numbers are written is said here, in one place:

- Accuracies are shown in percent, differences between them in points (percentage points).
- A spread is written with two significant digits, and the mean with as many decimals as its spread.
- What is not known is an em dash, never a zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any, Final

from isorun.errors import harmless

if TYPE_CHECKING:
    from isorun.analysis.evidence import Condition
    from isorun.report.figures.description import Figure

__all__ = [
    "MOST_ROWS",
    "UNKNOWN",
    "Column",
    "Listing",
    "NumberStyle",
    "Section",
    "Table",
    "View",
    "count",
    "decimals_for",
    "escaped",
    "fixed",
    "memory",
    "p_value",
    "percentage",
    "seconds",
    "share_of_size",
    "significant",
    "style_for",
    "whole",
    "without_constant_columns",
]


def escaped(text: str) -> str:
    """Harmless text for HTML and SVG, also within quoted attributes."""
    return escape(harmless(text))


UNKNOWN: Final = "—"
_MOST_DECIMALS: Final = 8
_SMALL: Final = 1e-4
"""Of smaller numbers powers of ten are read more easily than decimals."""


@dataclass(frozen=True, slots=True)
class NumberStyle:
    """How one metric is written: multiplied by `factor`, with a unit for values and one for differences.

    difference_sign: the short form of the unit of differences, for headings of columns.
    """

    factor: float = 1.0
    unit: str = ""
    difference_unit: str = ""
    difference_sign: str = ""

    def value(self, value: float | None, sd: float | None) -> str:
        """A value with as many decimals as its standard deviation supports, without the unit."""
        if value is None:
            return UNKNOWN
        decimals = self._decimals(sd, value)
        beside = sd or (None if self.unit else value / 100)
        return fixed(self._in_unit(value, decimals), decimals, beside and beside * self.factor)

    def difference(self, difference: float | None, sd: float | None = None) -> str:
        """A spread or difference, without the unit; `sd` sets the decimals, the difference itself without it.

        No difference at all is a plain 0, so that it cannot be taken for a small one that was rounded.
        """
        if not difference:
            return UNKNOWN if difference is None else "0"
        beside = difference if sd is None else sd
        return fixed(difference * self.factor, self._decimals(beside, difference), beside * self.factor)

    def _in_unit(self, value: float, decimals: int) -> float:
        """The value in the style's unit, where a share in percent is rounded as the share itself is.

        0.8565 is 0.857 with three decimals, and 85.65, the product of rounding once more, could be 85.6 with one.
        """
        if self.factor != 100.0 or decimals >= _MOST_DECIMALS:
            return value * self.factor
        return float(f"{value:.{decimals + 2}f}") * self.factor or value * self.factor

    def with_unit(self, text: str) -> str:
        """A written value with its unit; what is unknown has none."""
        return f"{text} {self.unit}" if self.unit and text != UNKNOWN else text

    def difference_with_unit(self, text: str) -> str:
        """A written difference with its unit; what is unknown has none."""
        return f"{text} {self.difference_unit}" if self.difference_unit and text != UNKNOWN else text

    def _decimals(self, sd: float | None, value: float) -> int:
        if sd:
            return decimals_for(sd * self.factor)
        return 2 if self.unit else _decimals_alone(value * self.factor)


def style_for(scale: str) -> NumberStyle:
    """The style of a metric's scale: "fraction", "percent" or "" (see `isorun.analysis.studies.study_metrics`)."""
    if scale in {"fraction", "percent"}:
        return NumberStyle(100.0 if scale == "fraction" else 1.0, "%", "points", "pts")
    return NumberStyle()


def decimals_for(sd: float, digits: int = 2) -> int:
    """Decimals that show `digits` significant digits of a standard deviation."""
    if sd == 0 or not math.isfinite(sd):
        return 2
    if abs(sd) >= 1e9:
        return 0
    return min(max(digits - 1 - _leading(sd, digits), 0), _MOST_DECIMALS)


def _leading(number: float, digits: int = 2) -> int:
    """The power of ten of the first digit, once the number is rounded to so many digits."""
    return int(f"{number:.{digits - 1}e}".partition("e")[2])


def _decimals_alone(value: float) -> int:
    """Four significant digits for a number that has no spread to go by."""
    return 2 if value == 0 else decimals_for(value, digits=4)


def fixed(value: float | None, decimals: int, beside: float | None = None) -> str:
    """A number with fixed decimals; never a negative zero; powers of ten where it would not fit.

    beside: the spread or step that it stands beside. A power of ten has as many digits as show two of that, and two
    without one; it also stands for a small number whose decimals would not show them.
    """
    if value is None:
        return UNKNOWN
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("∞" if value > 0 else "-∞")
    # As many decimals as there are at most would show less than two digits of it.
    too_small = 10.0 ** (1 - decimals) if decimals >= _MOST_DECIMALS else 0.5 * 10.0**-decimals
    if value and (abs(value) >= 1e9 or abs(value) < too_small or _needs_powers(value, beside)):
        return f"{value:.{_digits_beside(value, beside)}e}"
    text = f"{value:,.{decimals}f}"
    return text.lstrip("-") if not float(text.replace(",", "")) else text


def _needs_powers(value: float, beside: float | None) -> bool:
    """Whether the most decimals there are would hide by how much small numbers differ."""
    if not beside or not math.isfinite(beside) or abs(value) >= _SMALL:
        return False
    return 1 - _leading(beside) > _MOST_DECIMALS


def _digits_beside(value: float, beside: float | None) -> int:
    if not beside or not math.isfinite(beside):
        return 1
    return min(max(_leading(value) - _leading(beside) + 1, 1), _MOST_DECIMALS)


def significant(value: float | None, digits: int = 3) -> str:
    """A number with so many significant digits, and no decimals beyond them."""
    if value is None:
        return UNKNOWN
    return fixed(value, decimals_for(value, digits), value / 10 ** (digits - 2)) if value else fixed(value, 0)


def whole(value: float | None) -> str:
    """A count as such; a mean of counts with one decimal."""
    return UNKNOWN if value is None else fixed(value, 0 if value == int(value) else 1)


def percentage(ratio: float | None) -> str:
    """A ratio as percent with one decimal, unit left to the column."""
    return UNKNOWN if ratio is None else f"{100.0 * ratio:,.1f}"


def share_of_size(ratio: float | None) -> str:
    """A spread over a size as percent; a plain 0 where nothing varies, as a spread itself is shown."""
    return "0" if ratio == 0.0 else percentage(ratio)


def seconds(value: float | None) -> str:
    """Seconds with three significant digits, unit left to the column."""
    return significant(value, 3)


def memory(size: float | None) -> str:
    """Bytes as MiB, unit left to the column."""
    return UNKNOWN if size is None else fixed(size / 2**20, 0)


def p_value(p: float | None) -> str:
    """A p-value with three decimals, or the bound below them."""
    if p is None:
        return UNKNOWN
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def count(number: int, noun: str) -> str:
    """A count with its noun: 1 run, 2 runs."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


MOST_ROWS: Final = 1000
"""A page with more rows of one table is neither read nor opened quickly."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column. key: it names the row (text); the others hold numbers. group: a heading over several columns.

    unbroken: its cells are copied from a terminal, such as ids, and stay on one line.
    """

    title: str
    unit: str = ""
    group: str = ""
    key: bool = False
    unbroken: bool = False

    @property
    def heading(self) -> str:
        """The title with its unit."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose cells are written out. Every row is as long as `columns`. notes: what a reader needs below it.

    folded: too long for a first look; renderers that can may fold it away. links: for each row the file that its last
    cell leads to, empty where it leads nowhere; pages link to it, all others leave it out. instead: of a table without
    rows, the one sentence that is shown in their place.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    folded: bool = False
    links: tuple[str, ...] = ()
    instead: str = ""

    def __post_init__(self) -> None:
        if self.rows and self.instead:
            raise ValueError(f"table {self.name}: what stands in place of rows stands beside {len(self.rows)}")
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.name}: a row has {len(row)} cells for {len(self.columns)} columns")

    def first_rows(self) -> Table:
        """The table as pages show it: a long one with its first rows and a note on where the others are."""
        if len(self.rows) <= MOST_ROWS:
            return self
        note = f"The first {MOST_ROWS:,} of {len(self.rows):,} rows; --json has all."
        return replace(self, rows=self.rows[:MOST_ROWS], links=self.links[:MOST_ROWS], notes=(note, *self.notes))

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


@dataclass(frozen=True, slots=True)
class Listing:
    """Sentences under a heading, such as what was left out and why."""

    title: str
    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report. name: stable, for links. notes: sentences on it, also on why there is nothing to show."""

    name: str
    title: str
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class View:
    """verdict: sentences, the most important first. figures: for those who ask for files. listings: they end it."""

    verdict: tuple[str, ...]
    tables: tuple[Table, ...] = ()
    warnings: tuple[Condition, ...] = ()
    figures: tuple[Figure, ...] = ()
    listings: tuple[Listing, ...] = ()

    def text(self, *, colour: bool = False, width: int = 80) -> str:
        """The view as a terminal shows it, escape codes only with `colour`."""
        from isorun.report.terminal import render_view  # noqa: PLC0415 - renderers know views, not the other way round

        return render_view(self, colour=colour, width=width)

    def html_fragment(self) -> str:
        """The view as a part of a page, as notebooks show it."""
        from isorun.report.html import fragment  # noqa: PLC0415 - as above

        return fragment(self)
