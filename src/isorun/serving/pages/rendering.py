"""A page as HTML, JSON and CSV. Everything that is text is escaped, here and nowhere else turned off.

Tables, figures and conditions come from `report.html_parts`, which escapes on its own; the template joins them.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from importlib import resources
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from isorun import __version__
from isorun.analysis.evidence import Condition
from isorun.errors import InputError, harmless, known_names
from isorun.report import Listing, Table, html_parts
from isorun.report.figures.description import Figure
from isorun.serving.pages import Page
from isorun.serving.pages.links import address

__all__ = ["STATIC", "STYLE_NAME", "as_csv", "as_html", "as_json", "static_file"]

_INLINE_ROWS: Final = 24
"""A figure's data with more rows is linked, and not sent with every page."""
_SHOWN_ROWS: Final = 100
_SHOWN_LETTERS: Final = 500
_NAMED_GROUPS: Final = 6
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_NUMBERS: Final = re.compile(r"[+-][\d.,\s%+-]*(?:e[+-]?\d+)?(?: to [+-]?[\d.,]+(?:e[+-]?\d+)?)?", re.ASCII)
_LARGEST: Final = 300_000
_LEFT_OUT: Final = "Figures are left out: the page would be too large with them. Choose fewer groups above to see some."


def _own(name: str) -> str:
    return resources.files(__package__).joinpath("static", name).read_text("utf-8")


def _named(name: str, content: str) -> tuple[str, bytes]:
    """A file by a name that changes with its content, so that browsers may keep it for good."""
    stem, _, ending = name.rpartition(".")
    return f"{stem}-{hashlib.sha256(content.encode()).hexdigest()[:12]}.{ending}", content.encode()


STYLE_NAME: Final = "pages.css"
_STYLE_FILE: Final = _named(STYLE_NAME, html_parts.STYLE + _own("pages.css"))
_SCRIPT_FILE: Final = _named("follow.js", _own("follow.js"))
_ICON_FILE: Final = _named("icon.svg", _own("icon.svg"))
STATIC: Final[Mapping[str, tuple[str, bytes]]] = {
    _STYLE_FILE[0]: ("text/css; charset=utf-8", _STYLE_FILE[1]),
    _SCRIPT_FILE[0]: ("text/javascript; charset=utf-8", _SCRIPT_FILE[1]),
    _ICON_FILE[0]: ("image/svg+xml", _ICON_FILE[1]),
}
"""Files of this server, by their names: the kind of each, and its bytes."""


def static_file(name: str) -> tuple[str, bytes] | None:
    """One of them, or the style by a name that stays, for pages of errors; None where there is none of this name."""
    return STATIC[_STYLE_FILE[0]] if name == STYLE_NAME else STATIC.get(name)


_ENVIRONMENT: Final = Environment(
    loader=PackageLoader(__package__, "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def as_html(page: Page) -> bytes:
    """The page for people. What would be too large to send goes without figures, and then with the beginnings alone."""
    text = _written(page)
    if len(text) > _LARGEST:
        text = _written(_without_figures(page))
    return text if len(text) <= _LARGEST else _written(_beginnings(page))


def _without_figures(page: Page) -> Page:
    sections = (
        replace(one, figures=(), notes=(*one.notes, _LEFT_OUT)) if one.figures else one for one in page.sections
    )
    return replace(page, sections=tuple(sections))


def _beginnings(page: Page) -> Page:
    """For names and texts longer than anybody reads."""
    sections = tuple(
        replace(one, tables=tuple(_cut(table) for table in one.tables[:4])) for one in _without_figures(page).sections
    )
    choices = tuple(
        replace(one, options=tuple((value, text[:80]) for value, text in one.options if len(value) < 200)[:40])
        for one in page.choices
        if len(one.chosen) < 200
    )
    few = replace(page, first=page.first[:3], rest=page.rest[:10], conditions=page.conditions[:10], listings=())
    return replace(few, sections=sections, choices=choices, commands=(), facts=(), linked=None)


def _cut(table: Table) -> Table:
    columns = tuple(replace(one, title=one.title[:80]) for one in table.columns)
    rows = tuple(tuple(cell[:80] for cell in row) for row in table.rows[:20])
    notes = tuple(one[:200] for one in table.notes)
    return Table(table.name, table.title[:200], columns, rows, notes)


def _written(page: Page) -> bytes:
    template = _ENVIRONMENT.get_template("page.html")
    text: str = template.render(
        page=page,
        style=f"/static/{_STYLE_FILE[0]}",
        script=f"/static/{_SCRIPT_FILE[0]}",
        icon=f"/static/{_ICON_FILE[0]}",
        version=__version__,
        harmless=harmless,
        json_address=address(page.path, page.query, ".json", page.repeated),
        csv_address=address(page.path, page.query, ".csv", page.repeated),
        sentences=_sentences(page),
        conditions=_conditions(page),
        listings=[_listing(number, one) for number, one in enumerate(page.listings, start=1) if one.items],
        table=lambda table: _table(page, table),
        figure=lambda figure: _figure(page, figure),
    )
    return text.encode("utf-8", "backslashreplace")


def _sentences(page: Page) -> Markup:
    first, rest = ([_beginning(one) for one in said[:_SHOWN_ROWS]] for said in (page.first, page.rest))
    return Markup(html_parts.render_sentences(first, rest) if first or rest else "")  # noqa: S704 - it escapes by itself


def _conditions(page: Page) -> Markup:
    shown = [_of_few_groups(one) for one in page.conditions[:_SHOWN_ROWS]]
    return Markup(html_parts.render_conditions(shown) if shown else "")  # noqa: S704 - as above


def _listing(number: int, listing: Listing) -> Markup:
    items = tuple(_beginning(one) for one in listing.items[:_SHOWN_ROWS])
    return Markup(html_parts.render_listing(number, replace(listing, items=items)))  # noqa: S704 - as above


def _table(page: Page, table: Table) -> Markup:
    """The table, folded where it is long, with its own address as CSV."""
    shown = Markup(html_parts.render_table(_shortened(table), linked=page.linked))  # noqa: S704 - it escapes by itself
    if len(table.rows) > _SHOWN_ROWS:
        all_rows = Markup('<p class="data"><a href="{}">All {} rows as CSV</a></p>')
        shown += all_rows.format(_csv_of(page, table), f"{len(table.rows):,}")
    if not table.folded:
        return shown
    if len(table.rows) > _INLINE_ROWS:
        return Markup('<p class="data">{} {}: <a href="{}">CSV</a></p>').format(
            f"{len(table.rows):,} rows", harmless(table.title), _csv_of(page, table)
        )
    return Markup("<details><summary>{}</summary>{}</details>").format(harmless(table.title), shown)


def _shortened(table: Table) -> Table:
    """The first rows, and of long texts their beginning: the CSV and the JSON have all."""
    rows = table.rows[:_SHOWN_ROWS]
    return replace(table, rows=tuple(tuple(_beginning(cell) for cell in row) for row in rows), links=())


def _beginning(text: str) -> str:
    return text if len(text) <= _SHOWN_LETTERS else f"{text[:_SHOWN_LETTERS]}…"


def _of_few_groups(condition: Condition) -> Condition:
    """A condition of many groups names the first of them."""
    more = len(condition.groups) - _NAMED_GROUPS
    named = (*condition.groups[:_NAMED_GROUPS], f"and {more} more") if more > 0 else condition.groups
    return replace(condition, groups=tuple(map(_beginning, named)), message=_beginning(condition.message))


def _figure(page: Page, figure: Figure) -> Markup:
    link = Markup('<a href="{}">the data of this figure as CSV</a>').format(_csv_of(page, figure.data))
    if len(figure.data.rows) > _INLINE_ROWS:
        data = Markup('<p class="data">{}</p>').format(link)
    else:
        table = Markup(html_parts.render_table(figure.data, linked=page.linked))  # noqa: S704 - as above
        data = Markup("<details><summary>The data of this figure</summary>{}<p>{}</p></details>").format(table, link)
    return Markup(html_parts.render_figure(figure, data=str(data)))  # noqa: S704 - as above


def _csv_of(page: Page, table: Table) -> str:
    return address(page.path, {**page.query, "table": table.name}, ".csv", page.repeated)


def as_json(page: Page) -> bytes:
    """The page for machines: strict JSON; numbers that it has no sign for are null."""
    return json.dumps(_plain(page.data), ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return float(value) if hasattr(value, "__float__") else str(value)


def _as_text(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula, which may start programs there: names are what others chose."""
    return f"'{cell}" if cell[:1] in _FORMULA and not _NUMBERS.fullmatch(cell) else cell


def as_csv(page: Page, name: str = "") -> bytes:
    """One table of the page, all of its rows: the first, or that of the name."""
    tables = page.tables()
    if not tables:
        raise InputError("this page has no table", hint="its JSON has all that it says")
    if name and name not in tables:
        raise InputError("this page has no such table", found=name[:200], allowed=known_names(name[:200], tables))
    table = tables[name] if name else next(iter(tables.values()))
    written = io.StringIO(newline="")
    writer = csv.writer(written)
    title, said = ((), ()) if page.reservations is None else (("conditions",), ("; ".join(page.reservations),))
    writer.writerow(map(_as_text, (*table.to_json()["columns"], *title)))
    writer.writerows(map(_as_text, (*row, *said)) for row in table.rows)
    return written.getvalue().encode("utf-8", "backslashreplace")
