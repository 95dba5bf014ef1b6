"""The report for a terminal: the verdict first, then the tables, then numbered warnings with the next step.

In a table that is too wide, the leading key columns become lines above the rows they name; if that is not enough, the
table is continued below with the same key columns. Nothing is cut off.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from isorun.analysis.evidence import Condition
from isorun.errors import harmless
from isorun.report import Column, Listing, Table, View, count

if TYPE_CHECKING:
    from isorun.analysis.studies.study_result import StudyResult

__all__ = ["render", "render_table", "render_view", "table_lines"]

_BOLD: Final = "1"
_DIM: Final = "2"
_YELLOW: Final = "33"
_MOST_ROWS: Final = 100
_GAP: Final = "  "
_WIDEST_CELLS: Final = (34, 24, 18, 12, 8)
"""Cells wider than this are wrapped; the next value is tried where a table is still too wide."""
_WIDE: Final = frozenset("WF")


def render(result: StudyResult, *, colour: bool, width: int, full: bool = False) -> str:
    """The report of a study as text of at most `width` columns; escape codes only with `colour`.

    full: every table, which is several screens; else those of a first look.
    """
    # What shows a study loads with one: most commands show a table that comes from none.
    from isorun.report.study_view import first_look, headline, study_view  # noqa: PLC0415

    view = study_view(result) if full else first_look(result)
    elsewhere = "Not shown here, but in the HTML, Markdown, LaTeX and JSON reports" if full else "With --full"
    lines = len(headline(result))
    return render_view(view, colour=colour, width=width, headlines=lines, elsewhere=elsewhere, full=full)


def render_view(
    view: View,
    *,
    colour: bool,
    width: int,
    headlines: int = 1,
    elsewhere: str = "Not shown here, but in --json",
    full: bool = False,
) -> str:
    """Verdict, tables and warnings; the first `headlines` sentences of the verdict stand out.

    elsewhere: where tables that are too long for a terminal are to be found, in words. full: folded ones are shown.
    """
    left = [table for table in view.tables if len(table.rows) > _MOST_ROWS or (table.folded and not full)]
    sentences = [
        _styled(_wrapped(text, width, "", "  "), _BOLD, colour and place < headlines)
        for place, text in enumerate(view.verdict)
    ]
    shown = [render_table(table, colour=colour, width=width) for table in view.tables if table not in left]
    left_out = _left_out_line(left, elsewhere, width)
    listings = ["\n".join(_listing(listing, colour=colour, width=width)) for listing in view.listings if listing.items]
    warnings = "\n".join(_warnings(view.warnings, colour=colour, width=width))
    parts = ("\n".join(sentences), *shown, _styled(left_out, _DIM, colour and bool(left_out)), *listings, warnings)
    return "\n\n".join(part for part in parts if part) + "\n"


def render_table(table: Table, *, colour: bool, width: int) -> str:
    """One table with its title above and its notes below."""
    title = _styled(_wrapped(table.title, width), _BOLD, colour)
    if table.instead:
        return f"{title}\n{_wrapped(table.instead, width, '  ')}"
    notes = [_styled(_wrapped(note, width, "  "), _DIM, colour) for note in table.notes]
    return "\n".join([title, *table_lines(table, width), *notes])


def _left_out_line(tables: Sequence[Table], elsewhere: str, width: int) -> str:
    if not tables:
        return ""
    titles = "; ".join(f"{table.title} ({count(len(table.rows), 'row')})" for table in tables)
    return _wrapped(f"{elsewhere}: {titles}.", width, "", "  ")


def _listing(listing: Listing, *, colour: bool, width: int) -> Iterator[str]:
    yield _styled(_wrapped(listing.title, width), _BOLD, colour)
    yield from (_wrapped(item, width, "- ", "  ") for item in listing.items)


def _warnings(warnings: Sequence[Condition], *, colour: bool, width: int) -> Iterator[str]:
    if warnings:
        yield _styled(f"{count(len(warnings), 'warning')}", _BOLD, colour)
    for number, warning in enumerate(warnings, start=1):
        about = f" ({'; '.join(warning.groups)})" if warning.groups else ""
        lead = f"{number}. [{warning.code}]"
        yield _styled(_wrapped(f"{lead} {warning.message}{about}", width, "", "   "), _YELLOW, colour)
        yield _wrapped(f"next: {warning.next_step}", width, "   ")


def _wrapped(text: str, width: int, first: str = "", later: str | None = None) -> str:
    rest = first if later is None else later
    return textwrap.fill(harmless(text), width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def _styled(text: str, code: str, wanted: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if wanted else text


@dataclass(frozen=True, slots=True)
class _Layout:
    """A table broken into lines and blocks.

    captions: what stands above each row, "" where nothing does. cells: the lines of every cell. blocks: the places of
    the columns that stand beside each other.
    """

    table: Table
    captions: tuple[str, ...]
    cells: list[list[list[str]]]
    widths: list[int]
    blocks: list[list[int]]


def table_lines(table: Table, width: int) -> list[str]:
    """The lines of the table, headings and all, none wider than `width` unless a single word is."""
    keys = sum(column.key for column in table.columns)
    layouts = [_layout(table, width, 0)]
    while len(layouts[-1].blocks) > 1 and len(layouts) < keys:
        layouts.append(_layout(table, width, len(layouts)))
    best = min(layouts, key=lambda layout: len(layout.blocks))
    return [line for block in best.blocks for line in _block_lines(best, block, width)]


def _layout(table: Table, width: int, lifted: int) -> _Layout:
    """The layout with the first `lifted` columns turned into captions."""
    captions = tuple(" · ".join(row[:lifted]) for row in table.rows)
    shorter = replace(table, columns=table.columns[lifted:], rows=tuple(row[lifted:] for row in table.rows))
    for widest in _WIDEST_CELLS:
        cells = [
            [
                [harmless(cell)] if column.unbroken else _cell_lines(cell, widest)
                for cell, column in zip(row, shorter.columns, strict=True)
            ]
            for row in shorter.rows
        ]
        columns = enumerate(shorter.columns)
        widths = _widened(shorter, [_column_width(column, [row[place] for row in cells]) for place, column in columns])
        blocks = list(_blocks(shorter.columns, widths, width))
        if max(_line_width(block, widths) for block in blocks) <= width:
            break
    return _Layout(shorter, captions, cells, widths, blocks)


def _cell_lines(cell: str, widest: int) -> list[str]:
    return textwrap.wrap(harmless(cell), widest, break_on_hyphens=False) or [""]


def _column_width(column: Column, cells: Sequence[Sequence[str]]) -> int:
    content = max((_shown(line) for cell in cells for line in cell), default=0)
    return max([content, *(_shown(word) for word in harmless(column.heading).split())])


def _widened(table: Table, widths: Sequence[int]) -> list[int]:
    """The widths with the last column of a group made wide enough for the group's name."""
    result, place = list(widths), 0
    for name, number in table.heading_groups():
        span = sum(result[place : place + number]) + len(_GAP) * (number - 1)
        place += number
        result[place - 1] += max(min(_shown(harmless(name)), _WIDEST_CELLS[0]) - span, 0)
    return result


def _blocks(columns: Sequence[Column], widths: Sequence[int], width: int) -> Iterator[list[int]]:
    """Places of the columns that fit beside each other; key columns come first in every block."""
    keys = [place for place, column in enumerate(columns) if column.key]
    block = list(keys)
    for place in (place for place, column in enumerate(columns) if not column.key):
        if len(block) > len(keys) and _line_width([*block, place], widths) > width:
            yield block
            block = list(keys)
        block.append(place)
    yield block


def _line_width(places: Sequence[int], widths: Sequence[int]) -> int:
    return 2 + sum(widths[place] for place in places) + len(_GAP) * (len(places) - 1)


def _block_lines(layout: _Layout, block: Sequence[int], width: int) -> Iterator[str]:
    table, widths = layout.table, layout.widths
    if table.has_groups:
        yield _group_line(table, widths, block)
    headings = [_heading_lines(table.columns[place], widths[place]) for place in block]
    tallest = max(len(lines) for lines in headings)
    yield from _joined([[""] * (tallest - len(lines)) + lines for lines in headings], table, widths, block)
    yield "  " + _GAP.join("─" * widths[place] for place in block)
    above = ""
    for caption, row in zip(layout.captions, layout.cells, strict=True):
        if caption != above:
            yield from textwrap.wrap(harmless(caption), width, initial_indent="  ", subsequent_indent="  ")
            above = caption
        yield from _joined([row[place] for place in block], table, widths, block)


def _heading_lines(column: Column, width: int) -> list[str]:
    return textwrap.wrap(harmless(column.heading), width, break_on_hyphens=False)


def _group_line(table: Table, widths: Sequence[int], block: Sequence[int]) -> str:
    """Each group's name centred over its columns, with a line to both sides."""
    parts: list[str] = []
    place = 0
    while place < len(block):
        group = table.columns[block[place]].group
        end = place + 1
        while group and end < len(block) and table.columns[block[end]].group == group:
            end += 1
        span = sum(widths[column] for column in block[place:end]) + len(_GAP) * (end - place - 1)
        parts.append(_centred(harmless(group), span) if group else " " * span)
        place = end
    return ("  " + _GAP.join(parts)).rstrip()


def _centred(name: str, span: int) -> str:
    if _shown(name) > span - 2:
        return _padded(textwrap.shorten(name, span, placeholder="…") if span > 1 else "…", span, left=True)
    free = span - _shown(name) - 2
    return f"{'─' * (free // 2)} {name} {'─' * (free - free // 2)}"


def _joined(cells: Sequence[Sequence[str]], table: Table, widths: Sequence[int], block: Sequence[int]) -> Iterator[str]:
    """The lines of one row whose cells may have several lines each."""
    for number in range(max(len(lines) for lines in cells)):
        texts = [lines[number] if number < len(lines) else "" for lines in cells]
        padded = [
            _padded(text, widths[place], left=table.columns[place].key)
            for text, place in zip(texts, block, strict=True)
        ]
        yield ("  " + _GAP.join(padded)).rstrip()


def _padded(text: str, width: int, *, left: bool) -> str:
    fill = " " * max(width - _shown(text), 0)
    return text + fill if left else fill + text


def _shown(text: str) -> int:
    """How many columns of a terminal the text takes."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in _WIDE else 1 for char in text
    )
