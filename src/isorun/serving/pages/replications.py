"""Who replicated what is shown, and what that replicates itself: each package, with where its own page is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from isorun.report import Column, Section, Table
from isorun.serving.pages.links import study_address

if TYPE_CHECKING:
    from isorun.serving.shelves import ShelfEntry

__all__ = [
    "PACKAGE",
    "original_links",
    "plain_original",
    "plain_replications",
    "replicated_by",
    "replication_addresses",
    "replication_sections",
]

PACKAGE = "replicating package"
"""The column that leads to the page of a package."""


def replicated_by(entry: ShelfEntry) -> str:
    """A cell of a table: everyone who did, with the package."""
    return "; ".join(map(str, entry.replications))


def replication_addresses(found: Iterable[tuple[str, ShelfEntry]]) -> dict[str, str]:
    """Where each part of such cells leads. found: entries, each with the name of its shelf."""
    return {str(one): study_address(shelf, one.package) for shelf, entry in found for one in entry.replications}


def replication_sections(entry: ShelfEntry) -> tuple[Section, ...]:
    """A row for each package; nothing where there is none."""
    if not entry.replications:
        return ()
    columns = tuple(Column(title, key=True) for title in ("replicated by", PACKAGE, "address"))
    rows = tuple((one.by, one.package, one.address) for one in entry.replications)
    notes = ("Whoever pushed these says so. Whether it holds, isorun compare tells from the two packages.",)
    return (
        Section("replications", "Replicated by", (), (Table("replications", "Replications", columns, rows, notes),)),
    )


def plain_replications(shelf: str, entry: ShelfEntry) -> list[dict[str, str]]:
    """For machines."""
    return [{**one.to_json(), "page": study_address(shelf, one.package)} for one in entry.replications]


def original_links(shelf: str, entry: ShelfEntry) -> tuple[tuple[str, str], ...]:
    """To the package that this one says it replicates, for those who may see it."""
    return ((f"replicates {entry.original}", study_address(shelf, entry.original)),) if entry.original else ()


def plain_original(shelf: str, entry: ShelfEntry) -> dict[str, str | None] | None:
    """The same for machines; the address also for those who may not see it."""
    if not entry.replicates:
        return None
    page = study_address(shelf, entry.original) if entry.original else None
    return {"address": entry.replicates, "package": entry.original or None, "page": page}
