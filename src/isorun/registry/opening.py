"""A registry that is open: its index, its files and the processes that verify packages."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from isorun.errors import PackageError, RegistryError, needs_linux
from isorun.packages.names import Wanted
from isorun.registry import Viewer
from isorun.registry.blobs import Blobs, Incoming
from isorun.registry.checking import Checkers
from isorun.registry.database import SQLITE, open_database
from isorun.registry.index import Index, Pushed, Received
from isorun.registry.people import People
from isorun.store.files import Files, reported

__all__ = ["LARGEST", "Registry"]

LARGEST: Final = 512 * 2**20
"""How large a pushed package may be, unless the server is told otherwise."""


class Registry:
    """The registry in a folder. index: the URL of a PostgreSQL that has its index; else it is a SQLite file there.

    checkers: what verifies packages, where several registries share it.
    """

    def __init__(
        self, folder: str | Path, index: str = "", *, create: bool = True, checkers: Checkers | None = None
    ) -> None:
        needs_linux("a registry")
        self.folder = Path(folder)
        if not create and not (self.folder / "blobs").is_dir():
            hint = "isorun serve --registry FOLDER makes one"
            raise RegistryError(f"there is no registry in {self.folder}", hint=hint)
        if self.folder.exists() and not self.folder.is_dir():
            raise RegistryError(f"{self.folder} is no folder", hint="isorun serve --registry FOLDER names another")
        with reported("opening the registry", self.folder):
            Files().ensure_folder(self.folder)
        self.blobs = Blobs(self.folder)
        if not index and not (self.folder / SQLITE).exists():
            self._refuse_files_of_another_index()
        self.database = open_database(self.folder, index)
        self.index = Index(self.database)
        self.people = People(self.database)
        if not self.people.has_users:
            try:
                self._refuse_files_of_another_index()
            except RegistryError:
                self.database.close()
                raise
        self._checkers = checkers or Checkers()
        self._shares_checkers = checkers is not None

    def _refuse_files_of_another_index(self) -> None:
        """Of files that nobody can have pushed to this index; it would call them left over, and have them swept."""
        count = self.blobs.count()
        if count:
            raise RegistryError(
                f"{self.folder} holds packages that this index knows nothing of",
                found=f"{count:,} {'file' if count == 1 else 'files'} in {self.folder / 'blobs'}, and no user yet",
                hint="--index URL names the PostgreSQL that has their index; a lost index.sqlite comes from a backup",
            )

    def push(
        self, viewer: Viewer, wanted: Wanted, part: Incoming, *, replicates: str = "", public: bool = False
    ) -> Pushed:
        """Verify what was received, keep it and name it; when this returns, it is on the disk.

        Receiving and verifying may take minutes: what counts is what the viewer may do then.
        """
        part.received()
        summary = self._checkers.check(part.path, part.size)
        if summary["signature"] == "invalid":
            raise PackageError("the signature of the package does not fit", hint="isorun pack signs it anew")
        viewer = self.people.still(viewer)
        assert wanted.name is not None
        self.index.refuse_push(viewer, wanted.name, replicates)
        self.blobs.keep(part)
        return self.index.add(viewer, wanted, Received(part.digest, part.size, summary, replicates, public))

    def sweep(self) -> list[str] | None:
        """Remove files that nothing names, left by pushes that were cut; None while somebody pushes."""
        return self.blobs.sweep(self.index.digests)

    def close(self) -> None:
        """End what was started, and let go of all files."""
        if not self._shares_checkers:
            self._checkers.close()
        self.database.close()
