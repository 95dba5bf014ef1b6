"""Pages, server-rendered: what each shows is data (`Page`), written as HTML, JSON and CSV by `rendering.py`.

    home.py           what there is, and a search
    study.py          a study: sentence, strip and box, variance shares, runs still needed, conditions, provenance
    runs.py           its runs, and one of them: attempts, its curve in the band of its group, digests, log
    comparing.py      two groups, of one study or of two: verdict, forest, pairs, what is not comparable
    ranking.py        many approaches: places with intervals, who is not told apart, who cannot be ranked
    surroundings.py   what differs between the environments of two runs
    searching.py      the searches of a study
    replications.py   who replicated a study, on several of these
    choices.py        what an address asks for, and the form that asks for something else
    links.py          the addresses of pages
    following.py      events while a study runs
    doors.py          all of these as doors, with who may go through

No statistics are made here: pages ask `questions.py` and show views, tables and figures of `report/`. An address is
the whole state of a page, so that it can be sent to somebody.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from isorun.report import Column, Listing, Table

if TYPE_CHECKING:
    from isorun.analysis.evidence import Condition
    from isorun.report import Section
    from isorun.report.html_parts import Linked
    from isorun.serving.pages.choices import Choice

__all__ = ["Banner", "Page", "TypedCommand"]


@dataclass(frozen=True, slots=True)
class Banner:
    """A verdict to see from afar: a word and an icon, so that no colour has to be told. kind: for its colour."""

    word: str
    icon: str
    kind: str


@dataclass(frozen=True, slots=True)
class TypedCommand:
    """What to type into a terminal, and what for."""

    what: str
    command: str


@dataclass(frozen=True, slots=True)
class Page:
    """All that a page shows.

    path: its address without ending; query and repeated: what it was asked for, repeated what may come several times.
    trail: pages above it, as (text, address). facts: a line below the title.
    first, rest: the sentences that stand out, and the others. choices: what else can be asked of it. related: pages
    beside it. sections: figures and tables. log: a text as it was printed. data: what it is as JSON. further: tables
    that it has as CSV, and does not show, or not whole. linked: where cells of tables lead. follows: the address of
    events, while something runs. reservations: what every row of its CSV says beside the
    numbers; None: its CSV has no such column.
    """

    title: str
    kicker: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    repeated: tuple[tuple[str, str], ...] = ()
    trail: tuple[tuple[str, str], ...] = ()
    facts: tuple[str, ...] = ()
    banner: Banner | None = None
    first: tuple[str, ...] = ()
    rest: tuple[str, ...] = ()
    choices: tuple[Choice, ...] = ()
    related: tuple[tuple[str, str], ...] = ()
    sections: tuple[Section, ...] = ()
    commands: tuple[TypedCommand, ...] = ()
    log: str = ""
    listings: tuple[Listing, ...] = ()
    conditions: tuple[Condition, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    further: tuple[Table, ...] = ()
    linked: Linked | None = None
    follows: str = ""
    standing: str = ""
    reservations: tuple[str, ...] | None = None

    def tables(self) -> dict[str, Table]:
        """All tables by their names, those of figures after those of the page, and what the evidence is subject to."""
        shown = (table for section in self.sections for table in section.tables)
        drawn = (figure.data for section in self.sections for figure in section.figures)
        named: dict[str, Table] = {}
        told = (condition_table(self.conditions),) if self.conditions else ()
        for table in (*self.further, *shown, *drawn, *told):
            named.setdefault(table.name, table)
        return named


def condition_table(conditions: Iterable[Condition]) -> Table:
    """Conditions as a table, for the CSV of a page."""
    rows = tuple((one.code, one.message, one.next_step, "; ".join(one.groups)) for one in conditions)
    columns = (Column("code", key=True), Column("message"), Column("next"), Column("groups"))
    return Table("conditions", "Conditions on the evidence", columns, rows)
