"""A package as a store that is only read: whatever asks a store for runs can ask a package."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from isorun.errors import StoreError
from isorun.packages.reading import Package, open_package
from isorun.store import STUDIES, AbstractDocuments, AbstractStore, Claim, Holder
from isorun.store.rows import no_garbage_collected
from isorun.study.records import Note, RunRecord, RunState

__all__ = ["PackageStore"]

_FORGED: Final = "the signature of {} does not fit: these are not the runs that were signed"


class _PackageDocuments(AbstractDocuments):
    """The documents of one kind in a package."""

    def __init__(self, package: Package, kind: str) -> None:
        self._package = package
        self._kind = kind
        own = {(STUDIES, package.manifest.study): {"folder": str(package.path.resolve().parent)}}
        self._documents = {name: item for (of, name), item in {**package.documents(), **own}.items() if of == kind}

    def names(self) -> tuple[str, ...]:
        """The names, in the order of the store that was packed."""
        return tuple(self._documents)

    def read(self, name: str) -> dict[str, Any] | None:
        """The document; None where there is none."""
        found = self._documents.get(name)
        whole = self._kind == STUDIES and found is not None
        return {**found, **self._package.study_document()} if whole and found else found

    def write(self, name: str, document: dict[str, Any]) -> None:  # noqa: ARG002 - of the contract
        """A package is never changed."""
        _refuse(self._package)

    def place(self, name: str) -> str:
        """A name for messages."""
        return f"{self._package.path}: {self._kind}/{name}"


class PackageStore(AbstractStore):
    """The runs of a package. It has no key: what was withheld from its study is known by hashes that it brings.

    most: how many bytes may come out of it; NoRoom beyond.
    """

    def __init__(self, path: str | Path, most: int | None = None) -> None:
        self.package = open_package(path, most)
        try:
            self.package.check_all()  # also what nobody asks for: a package is whole, or it is not read
        except BaseException:
            self.package.close()
            raise
        self.key = b""
        self.looked_over_by = f"isorun verify {path}"
        self._records: list[RunRecord] | None = None

    def claim(self, cell_id: str) -> Claim | None:  # noqa: ARG002 - of the contract
        """A package is never changed."""
        _refuse(self.package)

    def holders(self) -> Sequence[Holder]:
        """Nobody runs anything in a package."""
        return ()

    def finish(self, record: RunRecord) -> None:  # noqa: ARG002 - of the contract
        """A package is never changed."""
        _refuse(self.package)

    def finished(self, cell_ids: Iterable[str] | None = None) -> set[str]:
        """The cells with a finished record."""
        return {record.cell.id for record in self.records(cell_ids) if record.state is RunState.FINISHED}

    def records(self, cell_ids: Iterable[str] | None = None) -> Sequence[RunRecord]:
        """All records, or those of the given cells. A package is read once: most who ask do so for all, and again."""
        if self._records is None:
            with no_garbage_collected():
                self._records = list(self.package.records())
        wanted = None if cell_ids is None else set(cell_ids)
        return [record for record in self._records if wanted is None or record.cell.id in wanted]

    def run_ids(self, cell_ids: Iterable[str] | None = None) -> set[str]:
        """The runs of all records, or of those of the given cells."""
        return {record.run_id for record in self.records(cell_ids)}

    def documents(self, kind: str) -> AbstractDocuments:
        """The documents of one kind: the study, and what was kept of it."""
        return _PackageDocuments(self.package, kind)

    def notes(self) -> tuple[Note, ...]:
        """That its signature does not fit; what is damaged is not opened."""
        signature = self.package.signature
        if signature is None or signature.is_valid_for(self.package.address):
            return ()
        return (Note("signature-invalid", _FORGED.format(self.package.path)),)

    def close(self) -> None:
        """Let go of the file."""
        self.package.close()


def _refuse(package: Package) -> NoReturn:
    raise StoreError(
        f"the package {package.path} is not changed",
        found="a package is what was packed, by its address",
        hint=f"isorun store copy {package.path} FOLDER makes a store of its runs, which can be run on",
    )
