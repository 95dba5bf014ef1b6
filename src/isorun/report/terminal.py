"""The report for a terminal: the verdict first, then the tables, then numbered warnings with the next step."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from isorun.analysis.evidence.condition import Condition
from isorun.report.numbers import count
from isorun.report.plain_text import harmless
from isorun.report.tables import Table
from isorun.report.terminal_table import table_lines
from isorun.report.view import Listing, View

if TYPE_CHECKING:
    from isorun.analysis.studies.study_result import StudyResult

__all__ = ["render", "render_table", "render_view"]

_BOLD: Final = "1"
_DIM: Final = "2"
_YELLOW: Final = "33"
_MOST_ROWS: Final = 100


def render(result: StudyResult, *, colour: bool, width: int) -> str:
    """The report of a study as text of at most `width` columns; escape codes only with `colour`."""
    # What shows a study loads with one: most commands show a table that comes from none.
    from isorun.report.sections import study_tables  # noqa: PLC0415
    from isorun.report.verdict import headline, verdict  # noqa: PLC0415

    view = View(verdict(result), study_tables(result), result.conditions)
    elsewhere = "the HTML, Markdown, LaTeX and JSON reports"
    return render_view(view, colour=colour, width=width, headlines=len(headline(result)), elsewhere=elsewhere)


def render_view(view: View, *, colour: bool, width: int, headlines: int = 1, elsewhere: str = "--json") -> str:
    """Verdict, tables and warnings; the first `headlines` sentences of the verdict stand out.

    elsewhere: where tables that are too long for a terminal are to be found.
    """
    sentences = [
        _styled(_wrapped(text, width, "", "  "), _BOLD, colour and place < headlines)
        for place, text in enumerate(view.verdict)
    ]
    shown = [render_table(table, colour=colour, width=width) for table in view.tables if not _left_out(table)]
    left_out = _left_out_line([table for table in view.tables if _left_out(table)], elsewhere, width)
    listings = ["\n".join(_listing(listing, colour=colour, width=width)) for listing in view.listings if listing.items]
    warnings = "\n".join(_warnings(view.warnings, colour=colour, width=width))
    parts = ("\n".join(sentences), *shown, _styled(left_out, _DIM, colour and bool(left_out)), *listings, warnings)
    return "\n\n".join(part for part in parts if part) + "\n"


def render_table(table: Table, *, colour: bool, width: int) -> str:
    """One table with its title above and its notes below."""
    title = _styled(_wrapped(table.title, width), _BOLD, colour)
    notes = [_styled(_wrapped(note, width, "  "), _DIM, colour) for note in table.notes]
    return "\n".join([title, *table_lines(table, width), *notes])


def _left_out(table: Table) -> bool:
    return table.folded or len(table.rows) > _MOST_ROWS


def _left_out_line(tables: Sequence[Table], elsewhere: str, width: int) -> str:
    if not tables:
        return ""
    titles = "; ".join(f"{table.title} ({count(len(table.rows), 'row')})" for table in tables)
    return _wrapped(f"Not shown here, but in {elsewhere}: {titles}.", width, "", "  ")


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
