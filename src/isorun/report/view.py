"""What a command has to say, apart from where it is shown: the verdict, then tables, then warnings."""

from __future__ import annotations

from dataclasses import dataclass

from isorun.analysis.evidence.condition import Condition
from isorun.report.figures.description import Figure
from isorun.report.tables import Table

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
