"""What a command has to say, apart from where it is shown: the verdict, then tables, then warnings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from isorun.analysis.evidence.condition import Condition
from isorun.report.tables import Table

if TYPE_CHECKING:
    from isorun.report.figures.description import Figure

__all__ = ["Listing", "View"]


@dataclass(frozen=True, slots=True)
class Listing:
    """Sentences under a heading, such as what was left out and why."""

    title: str
    items: tuple[str, ...]


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
