"""Parts of HTML pages, each escaped by itself: sentences, tables, figures, listings, conditions.

They need no statistics, so that a page which shows none does not wait for them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import resources
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from isorun.report import Column, Listing, Table, escaped
from isorun.report.figures import svg

if TYPE_CHECKING:
    from isorun.analysis.evidence import Condition
    from isorun.report.figures.description import Figure

__all__ = [
    "STYLE",
    "Linked",
    "folded_table",
    "listed_items",
    "render_condition",
    "render_conditions",
    "render_figure",
    "render_listing",
    "render_sentences",
    "render_table",
    "unbroken",
]

STYLE: Final = resources.files(__package__).joinpath("page.css").read_text("utf-8") + svg.STYLE
"""The style sheet of pages and their figures."""
_LONG: Final = 40
_SENTENCE: Final = 100

Linked = Callable[[Column, str, Sequence[str]], str]
"""Where a cell leads to, by its column, its text and its row; empty where it leads nowhere. Of one that lists several
(`; ` between them) as a whole it is asked for each."""


def render_listing(number: int, listing: Listing) -> str:
    """A part of a page with its heading. number: tells listings of one page apart."""
    items = listed_items(listing.items).replace("<ul>", '<ul class="listing">', 1)
    name = f"listing-{number}"
    return f'<section aria-labelledby="{name}"><h2 id="{name}">{escaped(listing.title)}</h2>{items}</section>'


def listed_items(sentences: Sequence[str]) -> str:
    """The sentences as a list."""
    return f"<ul>{''.join(f'<li>{unbroken(one)}</li>' for one in sentences)}</ul>"


def unbroken(sentence: str) -> str:
    """The sentence with numbers and their percent signs kept on one line."""
    return escaped(sentence).replace(" %", "&nbsp;%").replace(" ± ", "&nbsp;±&nbsp;")


def render_sentences(first: Sequence[str], rest: Sequence[str]) -> str:
    """The verdict: what is said first stands out."""
    leading = "".join(f'<p class="headline">{unbroken(sentence)}</p>' for sentence in first)
    items = listed_items(rest) if rest else ""
    return f'<section class="verdict" aria-label="Verdict">{leading}{items}</section>'


def render_figure(figure: Figure, *, data: str | None = None) -> str:
    """The figure for windows and for telephones. data: HTML in place of the table of its numbers."""
    shown = (
        f"<details><summary>The data of this figure</summary>{render_table(figure.data)}</details>"
        if data is None
        else data
    )
    return (
        f'<figure><h3>{escaped(figure.title)}</h3><div class="wide">{svg.render(figure)}</div>'
        f'<div class="narrow">{svg.render(figure, width=svg.NARROW)}</div>'
        f"<figcaption>{escaped(figure.sentence)}</figcaption>{shown}</figure>"
    )


def folded_table(table: Table, beside: Path | None = None) -> str:
    """The table, folded away where it is too long for a first look."""
    if not table.folded:
        return render_table(table, beside=beside)
    return f"<details><summary>{escaped(table.title)}</summary>{render_table(table, beside=beside)}</details>"


def render_conditions(conditions: Sequence[Condition]) -> str:
    """Conditions as a numbered list, each with what to do next."""
    items = "\n".join(render_condition(condition) for condition in conditions)
    return f'<ol class="warnings">{items}</ol>'


def render_condition(warning: Condition) -> str:
    """One condition with what to do next, as an item of a list."""
    about = f" ({'; '.join(warning.groups)})" if warning.groups else ""
    return (
        f"<li><p><code>{escaped(warning.code)}</code> {escaped(warning.message + about)}</p>"
        f'<p class="next">Next: {escaped(warning.next_step)}</p></li>'
    )


def render_table(table: Table, *, beside: Path | None = None, linked: Linked | None = None) -> str:
    """The table with its notes, in a box that scrolls sideways where the window is narrow.

    beside: the folder that the page will lie in; the last cells then lead to the files that belong to them. linked:
    where cells lead to on pages that are served.
    """
    if table.instead:
        return f'<div class="table"><h3>{escaped(table.title)}</h3><p>{escaped(table.instead)}</p></div>'
    table = table.first_rows()
    links = [_href(path, beside) for path in table.links] if beside is not None else []
    rows = zip_longest(table.rows, links, fillvalue="")
    texts = [_length_kind(row[place] for row in table.rows) for place in range(len(table.columns))]
    notes = "".join(f"<p>{escaped(note)}</p>" for note in table.notes)
    return "\n".join(
        [
            '<div class="table">',
            f'<div class="scroll" tabindex="0" role="group" aria-label="{escaped(table.title)}"><table>',
            f"<caption><span>{escaped(table.title)}</span></caption>",
            f"<thead>{''.join(_head_rows(table))}</thead>",
            "<tbody>",
            *(_body_row(table.columns, texts, row, link, linked) for row, link in rows),
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


def _href(path: str, beside: Path) -> str:
    """A link within the same disk. What a record calls its folder may be anything: it never becomes a scheme."""
    if not Path(path).is_absolute() or "\0" in path:
        return ""
    return f"./{quote(os.path.relpath(path, beside.absolute()))}"


def _length_kind(cells: Iterable[str]) -> str:
    """How a column breaks: where one text is long all break; sentences keep long lines where the table scrolls."""
    longest = max(map(len, cells), default=0)
    return "text long" if longest > _SENTENCE else "text" if longest > _LONG else ""


def _body_row(
    columns: Sequence[Column], texts: Sequence[str], row: Sequence[str], last_link: str, linked: Linked | None
) -> str:
    shown = [_linked(column, text, row, linked) for column, text in zip(columns, row, strict=True)]
    if last_link:
        shown[-1] = _link(row[-1], last_link)
    cells = enumerate(zip(columns, texts, row, shown, strict=True))
    return _line(_cell(place == 0, column, text, content, breaks) for place, (column, breaks, text, content) in cells)


def _linked(column: Column, text: str, row: Sequence[str], linked: Linked | None) -> str:
    """What a cell says, leading to where it or each part of it leads."""
    if linked is None:
        return escaped(text)
    if whole := linked(column, text, row):
        return _link(text, whole)
    return "; ".join(_link(part, linked(column, part, row)) for part in text.split("; "))


def _link(text: str, target: str) -> str:
    return f'<a href="{escaped(target)}">{escaped(text)}</a>' if target else escaped(text)


def _cell(first: bool, column: Column, text: str, content: str, breaks: str) -> str:
    """The first cell names its row. breaks: how its column does, for the shorter texts, too."""
    kind = (f"key {breaks}" if breaks else "key list" if "; " in text else "key") if column.key else ""
    named = f' class="{kind}"' if kind else ""
    return f'<th scope="row"{named}>{content}</th>' if first and column.key else f"<td{named}>{content}</td>"


def _line(cells: Iterator[str] | Sequence[str]) -> str:
    return f"<tr>{''.join(cells)}</tr>"
