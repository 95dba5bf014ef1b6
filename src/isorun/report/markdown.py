"""The report as Markdown (GitHub's flavour: pipe tables)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from isorun.analysis.evidence import Condition
from isorun.analysis.studies.study_result import StudyResult
from isorun.errors import harmless
from isorun.report import Column, Listing, Table, View
from isorun.report.study_view import listings, study_tables, verdict, warnings

__all__ = ["as_code", "escaped_text", "render", "render_rows", "render_table", "render_view"]

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>#|~])")


def render(result: StudyResult) -> str:
    """The verdict, all tables, and the warnings."""
    parts = [
        f"# {escaped_text(result.study)}",
        "\n".join(f"- {escaped_text(sentence)}" for sentence in verdict(result)),
        *(render_table(table) for table in study_tables(result)),
        *(_listing(listing) for listing in listings(result) if listing.items),
        *_warnings(warnings(result)),
    ]
    return "\n\n".join(parts) + "\n"


def render_view(title: str, view: View) -> str:
    """What a command has to say, under a title."""
    parts = [
        f"# {escaped_text(title)}",
        "\n".join(f"- {escaped_text(sentence)}" for sentence in view.verdict),
        *(render_table(table) for table in view.tables),
        *(_listing(listing) for listing in view.listings if listing.items),
        *_warnings(view.warnings),
    ]
    return "\n\n".join(parts) + "\n"


def _listing(listing: Listing) -> str:
    return f"## {escaped_text(listing.title)}\n\n" + "\n".join(f"- {escaped_text(item)}" for item in listing.items)


def render_table(table: Table) -> str:
    """One table under its title, notes below."""
    if table.instead:
        return f"## {escaped_text(table.title)}\n\n{escaped_text(table.instead)}"
    table = table.first_rows()
    lines = [f"## {escaped_text(table.title)}", "", _row([_heading(column) for column in table.columns])]
    lines.append(_row([":--" if column.key else "--:" for column in table.columns]))
    lines += [_row([escaped_text(cell) for cell in row]) for row in table.rows]
    lines += [f"\n{escaped_text(note)}" for note in table.notes]
    return "\n".join(lines)


def render_rows(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table without a title, for a comment; the first column names the row."""
    lines = [_row([escaped_text(head) for head in heads]), _row([":--", *(["--:"] * (len(heads) - 1))])]
    return "\n".join([*lines, *(_row([escaped_text(cell) for cell in row]) for row in rows)])


def as_code(text: str) -> str:
    """Text as it is typed, between as many backticks as keep those within it."""
    told = " ".join(harmless(text).split())
    longest = max((len(run) for run in re.findall("`+", told)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {told} {fence}" if longest else f"`{told}`"


def _heading(column: Column) -> str:
    return escaped_text(f"{column.group}: {column.heading}" if column.group else column.heading)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _warnings(warnings: Sequence[Condition]) -> Iterator[str]:
    if warnings:
        yield "## Warnings"
        yield "\n".join(
            f"{number}. **{warning.code}**: {escaped_text(_about(warning))}\n   Next: {escaped_text(warning.next_step)}"
            for number, warning in enumerate(warnings, start=1)
        )


def _about(warning: Condition) -> str:
    return f"{warning.message} ({'; '.join(warning.groups)})" if warning.groups else warning.message


def escaped_text(text: str) -> str:
    """User text on one line, with everything that Markdown or HTML would take for markup escaped."""
    return _SPECIAL.sub(r"\\\1", " ".join(harmless(text).split())).replace("&", "&amp;")
