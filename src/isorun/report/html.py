"""The report as one HTML file: opens offline, runs no script, loads nothing, reads well aloud and on paper.

The content security policy allows nothing but the page's own style sheet, named by its hash; so even text that got
past escaping could do nothing.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from itertools import zip_longest
from pathlib import Path
from typing import Final
from urllib.parse import quote

from isorun.analysis.evidence import Condition
from isorun.analysis.studies.study_result import StudyResult
from isorun.report import Column, Listing, Table, View, count, escaped
from isorun.report.figures import svg
from isorun.report.figures.description import Figure
from isorun.report.study_view import Section, headline, listings, study_sections, verdict, warnings
from isorun.study.records import RunState

__all__ = [
    "STYLE",
    "Linked",
    "fragment",
    "page",
    "render",
    "render_conditions",
    "render_figure",
    "render_listing",
    "render_sentences",
    "render_table",
    "render_view",
]

STYLE: Final = resources.files(__package__).joinpath("page.css").read_text("utf-8") + svg.STYLE
"""The style sheet of pages and their figures."""
_LONG: Final = 40

Linked = Callable[[Column, str, Sequence[str]], str]
"""Where a cell leads to, by its column, its text and its row; empty where it leads nowhere."""


def render(result: StudyResult, *, beside: Path | None = None) -> str:
    """The whole page. beside: the folder that it will lie in, for links to logs; without it there are none."""
    sections, told = study_sections(result), warnings(result)
    main = [
        _verdict(result),
        _contents(sections, told),
        *(_section(section, beside) for section in sections),
        *(render_listing(number, listing) for number, listing in enumerate(listings(result), start=1) if listing.items),
        *_warnings(told),
    ]
    return page(f"{result.study}: isorun report", _header(result), "\n".join(main))


def render_view(title: str, kicker: str, view: View) -> str:
    """The page of what a command has to say: its verdict, figures, tables, listings and warnings."""
    header = f'<p class="kicker">{escaped(kicker)}</p>\n<h1>{escaped(title)}</h1>'
    main = [
        render_sentences(view.verdict[:1], view.verdict[1:]),
        *([_section(Section("results", "Results", view.figures, view.tables))] if view.figures or view.tables else []),
        *(render_listing(number, listing) for number, listing in enumerate(view.listings, start=1) if listing.items),
        *_warnings(view.warnings),
    ]
    return page(f"{title}: isorun", header, "\n".join(main))


def fragment(view: View) -> str:
    """The same as a part of somebody else's page, such as a notebook: no script, no ids that could be there twice.

    Our style sheet is not there, so the first sentence of the verdict is strong by itself, and texts in tables, which
    notebooks put to the right, are put to the left. Colours are the notebook's own, light or dark.
    """
    parts = [
        *(f"<p><strong>{_unbroken(sentence)}</strong></p>" for sentence in view.verdict[:1]),
        *([_items(view.verdict[1:])] if view.verdict[1:] else []),
        *(f"<div>{svg.render(figure, standalone=True)}</div>" for figure in view.figures),
        *(_to_the_left(_table(table)) for table in view.tables),
        *(f"<p>{escaped(listing.title)}</p>{_items(listing.items)}" for listing in view.listings if listing.items),
        *([f"<ol>{''.join(map(_warning, view.warnings))}</ol>"] if view.warnings else []),
    ]
    return f'<div class="isorun">{"".join(parts)}</div>'


def _to_the_left(table: str) -> str:
    left = ' style="text-align:left"'  # quotes in the table's own texts are escaped, so these are ours
    return table.replace(' class="key"', f' class="key"{left}').replace("<caption>", f"<caption{left}>")


def _items(items: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{_unbroken(item)}</li>' for item in items)}</ul>"


def render_listing(number: int, listing: Listing) -> str:
    """A part of a page with its heading. number: tells listings of one page apart."""
    items = _items(listing.items).replace("<ul>", '<ul class="listing">', 1)
    name = f"listing-{number}"
    return f'<section aria-labelledby="{name}"><h2 id="{name}">{escaped(listing.title)}</h2>{items}</section>'


def page(title: str, header: str, main: str) -> str:
    """A page around content that is HTML already; only the title is escaped here."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escaped(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{escaped(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<header>
{header}
</header>
<main>
{main}
</main>
<footer><p>Written by isorun. This file is complete in itself: it loads nothing and runs no script.</p></footer>
</body>
</html>
"""


def _header(result: StudyResult) -> str:
    others = [
        f"{number} {state}" for state, number in result.states.items() if number and state is not RunState.FINISHED
    ]
    facts = [
        f"{count(result.states[RunState.FINISHED], 'run')} finished",
        *others,
        _counted(result),
        *([f"judged by {', '.join(metric.name for metric in result.metrics)}"] if result.metrics else []),
    ]
    return (
        f'<p class="kicker">isorun report</p>\n<h1>{escaped(result.study)}</h1>\n'
        f'<p class="facts">{escaped(" · ".join(facts))}</p>'
    )


def _counted(result: StudyResult) -> str:
    if not result.searches:
        return count(len(result.groups), "group")
    number = len(result.searches)
    return "1 search" if number == 1 else f"{number} searches"


def _verdict(result: StudyResult) -> str:
    first = headline(result)
    return render_sentences(first, [sentence for sentence in verdict(result) if sentence not in first])


def render_sentences(first: Sequence[str], rest: Sequence[str]) -> str:
    """The verdict: what is said first stands out."""
    leading = "".join(f'<p class="headline">{_unbroken(sentence)}</p>' for sentence in first)
    items = _items(rest) if rest else ""
    return f'<section class="verdict" aria-label="Verdict">{leading}{items}</section>'


def _unbroken(sentence: str) -> str:
    """The sentence with numbers and their percent signs kept on one line."""
    return escaped(sentence).replace(" %", "&nbsp;%").replace(" ± ", "&nbsp;±&nbsp;")


def _contents(sections: Sequence[Section], warnings: Sequence[Condition]) -> str:
    links = [(section.name, section.title) for section in sections]
    links += [("warnings", count(len(warnings), "warning"))] if warnings else []
    items = "".join(f'<li><a href="#{escaped(name)}">{escaped(title)}</a></li>' for name, title in links)
    return f'<nav aria-label="Contents"><ul>{items}</ul></nav>'


def _section(section: Section, beside: Path | None = None) -> str:
    parts = [
        f'<section aria-labelledby="{section.name}">',
        f'<h2 id="{section.name}">{escaped(section.title)}</h2>',
        *(render_figure(figure) for figure in section.figures),
        *(_table(table, beside) for table in section.tables),
        "</section>",
    ]
    return "\n".join(parts)


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


def _table(table: Table, beside: Path | None = None) -> str:
    if not table.folded:
        return render_table(table, beside=beside)
    return f"<details><summary>{escaped(table.title)}</summary>{render_table(table, beside=beside)}</details>"


def _warnings(warnings: Sequence[Condition]) -> Iterator[str]:
    if warnings:
        yield '<section aria-labelledby="warnings"><h2 id="warnings">Warnings</h2>'
        yield f"{render_conditions(warnings)}</section>"


def render_conditions(conditions: Sequence[Condition]) -> str:
    """Conditions as a numbered list, each with what to do next."""
    items = "\n".join(_warning(condition) for condition in conditions)
    return f'<ol class="warnings">{items}</ol>'


def _warning(warning: Condition) -> str:
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
    table = table.first_rows()
    links = [_href(path, beside) for path in table.links] if beside is not None else []
    rows = zip_longest(table.rows, links, fillvalue="")
    notes = "".join(f"<p>{escaped(note)}</p>" for note in table.notes)
    return "\n".join(
        [
            '<div class="table">',
            f'<div class="scroll" tabindex="0" role="group" aria-label="{escaped(table.title)}"><table>',
            f"<caption>{escaped(table.title)}</caption>",
            f"<thead>{''.join(_head_rows(table))}</thead>",
            "<tbody>",
            *(_body_row(table.columns, row, link, linked) for row, link in rows),
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


def _body_row(columns: Sequence[Column], row: Sequence[str], last_link: str, linked: Linked | None) -> str:
    links = [linked(column, text, row) if linked else "" for column, text in zip(columns, row, strict=True)]
    links = [*links[:-1], last_link or links[-1]] if links else []
    cells = enumerate(zip(columns, row, links, strict=True))
    return _line(_cell(place == 0, column, text, link) for place, (column, text, link) in cells)


def _cell(first: bool, column: Column, text: str, link: str) -> str:
    """The first cell names its row; long texts may break."""
    kind = ("key list" if "; " in text else "key text" if len(text) > _LONG else "key") if column.key else ""
    named = f' class="{kind}"' if kind else ""
    shown = f'<a href="{escaped(link)}">{escaped(text)}</a>' if link else escaped(text)
    return f'<th scope="row"{named}>{shown}</th>' if first and column.key else f"<td{named}>{shown}</td>"


def _line(cells: Iterator[str] | Sequence[str]) -> str:
    return f"<tr>{''.join(cells)}</tr>"
