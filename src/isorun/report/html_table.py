"""A table as HTML: a caption, headings with their scope, row headings, units set apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from isorun.report.plain_text import escaped
from isorun.report.tables import Column, Table

__all__ = ["render_table"]

_LONG: Final = 40


def render_table(table: Table) -> str:
    """The table with its notes, in a box that scrolls sideways where the window is narrow."""
    notes = "".join(f"<p>{escaped(note)}</p>" for note in table.notes)
    return "\n".join(
        [
            '<div class="table">',
            f'<div class="scroll" tabindex="0" role="group" aria-label="{escaped(table.title)}"><table>',
            f"<caption>{escaped(table.title)}</caption>",
            f"<thead>{''.join(_head_rows(table))}</thead>",
            "<tbody>",
            *(_body_row(table.columns, row) for row in table.rows),
            "</tbody></table></div>",
            *([f'<div class="notes">{notes}</div>'] if notes else []),
            "</div>",
        ]
    )


def _head_rows(table: Table) -> Iterator[str]:
    if not table.has_groups:
        yield _line(_heading(column) for column in table.columns)
        return
    yield _line(_group_headings(table))
    yield _line(_heading(column) for column in table.columns if column.group)


def _group_headings(table: Table) -> Iterator[str]:
    """Headings over several columns; a column without one reaches down into the second line."""
    place = 0
    for heading, number in table.heading_groups():
        if heading:
            yield f'<th scope="colgroup" colspan="{number}">{escaped(heading)}</th>'
        else:
            yield _heading(table.columns[place], rows=2)
        place += number


def _heading(column: Column, rows: int = 1) -> str:
    unit = f' <span class="unit">({escaped(column.unit)})</span>' if column.unit else ""
    span = f' rowspan="{rows}"' if rows > 1 else ""
    kind = ' class="key"' if column.key else ""
    return f'<th scope="col"{span}{kind}>{escaped(column.title)}{unit}</th>'


def _body_row(columns: Sequence[Column], row: Sequence[str]) -> str:
    cells = zip(columns, row, strict=True)
    return _line(_cell(column, text, first=place == 0) for place, (column, text) in enumerate(cells))


def _cell(column: Column, text: str, *, first: bool) -> str:
    """The first cell names its row; long texts may break."""
    kind = ("key text" if len(text) > _LONG else "key") if column.key else ""
    named = f' class="{kind}"' if kind else ""
    if first and column.key:
        return f'<th scope="row"{named}>{escaped(text)}</th>'
    return f"<td{named}>{escaped(text)}</td>"


def _line(cells: Iterator[str] | Sequence[str]) -> str:
    return f"<tr>{''.join(cells)}</tr>"
