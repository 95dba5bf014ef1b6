"""Copies of records and documents from any store to any other: checked, and what is there already is left alone.

A copy that was cut short goes on when it is asked for again. Nothing is taken out of the store that is copied from.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from isorun.errors import StoreConflict, StoreDamaged, StoreError
from isorun.store import (
    NO_CELLS,
    PLANS,
    REPLAYS,
    SEARCHES,
    STUDIES,
    STUDY_PLACE,
    AbstractStore,
)
from isorun.store.content import stored_form
from isorun.study.design import can_be_kept
from isorun.study.records import RunRecord, record_digest

__all__ = ["Copied", "copy"]

_CELLS_AT_ONCE: Final = 500


@dataclass(slots=True)
class Copied:
    """What came of it. there: what the target had already, the very same. conflicts, damaged: what, and why.

    going_on: cells that somebody executes now, or whose runs are in a cluster's queue; who holds a cell is not copied.
    withheld: of the records copied now, those of cells from whose commands something is withheld. Their ids are made
    with the key of the store that they came from, so that studies that run on in the target make those runs again.
    """

    source: str
    target: str
    records: int = 0
    records_there: int = 0
    documents: int = 0
    documents_there: int = 0
    withheld: int = 0
    going_on: int = 0
    conflicts: list[tuple[str, str]] = field(default_factory=list)
    damaged: list[tuple[str, str]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "from": self.source,
            "to": self.target,
            "records": {"copied": self.records, "there_already": self.records_there},
            "documents": {"copied": self.documents, "there_already": self.documents_there},
            "withheld": self.withheld,
            "going_on": self.going_on,
            "conflicts": [{"what": what, "why": why} for what, why in self.conflicts],
            "damaged": [{"what": what, "why": why} for what, why in self.damaged],
        }


def copy(
    source: AbstractStore,
    target: AbstractStore,
    places: tuple[str, str],
    *,
    cell_ids: Iterable[str] | None = None,
    documents: Container[tuple[str, str]] | None = None,
) -> Copied:
    """Copy the records of these cells, or all, then these documents, by their kind and name, or all.

    places: what the two are called. Records come first: a study that the target knows has its runs there.
    """
    copied = Copied(*places)
    wanted = None if cell_ids is None else set(cell_ids)
    copied.going_on = len(_held(source) if wanted is None else _held(source) & wanted)
    cells = sorted({run_id.rpartition("-")[0] for run_id in source.run_ids(wanted)})
    for start in range(0, len(cells), _CELLS_AT_ONCE):
        _copy_records(source, target, cells[start : start + _CELLS_AT_ONCE], copied)
    for kind in (STUDIES, PLANS, SEARCHES, REPLAYS):
        named = source.documents(kind).names()
        names = [name for name in named if documents is None or (kind, name) in documents]
        _copy_documents(source, target, kind, names, copied)
    return copied


def _held(store: AbstractStore) -> set[str]:
    """The cells whose runs go on."""
    return {holder.cell_id for holder in store.holders() if not holder.cell_id.startswith(NO_CELLS)}


def _copy_records(source: AbstractStore, target: AbstractStore, cells: Sequence[str], copied: Copied) -> None:
    records = list(_readable(source, cells, copied))
    there = _digests(target.records(cells))
    new = {}
    for record in records:
        digest = record_digest(stored_form(record))
        if there.get(record.run_id) == digest:
            copied.records_there += 1
            continue
        try:
            target.finish(record)
        except StoreConflict as error:
            copied.conflicts.append((f"run {record.run_id}", error.found))
        else:
            new[record.run_id] = digest
            copied.withheld += bool(record.cell.withheld)
    _check(target, new)
    copied.records += len(new)


def _readable(source: AbstractStore, cells: Sequence[str], copied: Copied) -> Iterator[RunRecord]:
    """The records of the cells; where one of them is damaged, all others, also those of the same cell."""
    try:
        yield from source.records(cells)
    except StoreDamaged:
        for cell in cells:
            for found in source.each_record(cell):
                if isinstance(found, StoreDamaged):
                    copied.damaged.append((f"cell {cell}", f"{found.what}: {found.found}"))
                else:
                    yield found


def _check(target: AbstractStore, expected: dict[str, bytes]) -> None:
    """Read again what was copied: it has the digests that it had."""
    found = _digests(target.records({run_id.rpartition("-")[0] for run_id in expected})) if expected else {}
    for run_id, digest in expected.items():
        if found.get(run_id) != digest:
            raise StoreError(
                f"the copy of run {run_id} is not what was copied",
                found="another digest" if run_id in found else "no record",
                hint="have both stores looked over: isorun store verify",
            )


def _digests(records: Iterable[RunRecord]) -> dict[str, bytes]:
    return {record.run_id: record_digest(record) for record in records}


def _copy_documents(
    source: AbstractStore, target: AbstractStore, kind: str, names: Sequence[str], copied: Copied
) -> None:
    """The one written last comes last, so that it is the first here, too."""
    known = set(target.documents(kind).names())
    for name in reversed(names):
        try:
            document = source.documents(kind).read(name)
            there = target.documents(kind).read(name) if name in known else None
        except StoreError as error:
            copied.damaged.append((f"{kind}/{name}", error.found))
            continue
        if document is None:
            continue
        if not can_be_kept(name):
            copied.conflicts.append((f"{kind}/{name}", "no document can be kept under this name"))
        elif there is None:
            target.documents(kind).write(name, document)
            copied.documents += 1
        elif _declared(kind, there) == _declared(kind, document):
            copied.documents_there += 1
        else:
            copied.conflicts.append((f"{kind}/{name}", "another document of this name"))


def _declared(kind: str, document: dict[str, Any]) -> dict[str, Any]:
    """What has to be the same of two documents of one name: a study may lie elsewhere on another machine."""
    return {name: value for name, value in document.items() if kind != STUDIES or name not in STUDY_PLACE}
