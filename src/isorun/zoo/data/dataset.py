"""What isorun knows about a data set before it is there: its files, where they come from, and how they are checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Checksum", "Dataset", "RemoteFile", "repository_files"]


@dataclass(frozen=True, slots=True)
class Checksum:
    """algorithm: sha256, md5, or git (the id git gives the file's bytes). source: who published or computed it."""

    algorithm: str
    value: str
    source: str

    def __str__(self) -> str:
        return f"{self.algorithm} {self.value}"


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a data set. path: inside the data set's folder. urls: the canonical source first, then mirrors.

    checksum: None where nobody published one; what was downloaded first is then written down and held to.
    """

    path: str
    urls: tuple[str, ...]
    size: int | None = None
    checksum: Checksum | None = None


@dataclass(frozen=True, slots=True)
class Dataset:
    """A data set and the forms in which it may lie in its folder.

    files: the originals. prepared: other sets of files, each of which also serves (a stand-in, a converted copy).
    brought: files (patterns) that only the user can bring, beside the others. system: folders of an operating system's
    package. package: an installed Python package that carries it, and the file inside. needs: other data sets.
    """

    name: str
    title: str
    licence: str
    citation: str
    papers: tuple[str, ...]
    files: tuple[RemoteFile, ...] = ()
    prepared: tuple[tuple[str, ...], ...] = ()
    brought: tuple[str, ...] = ()
    system: tuple[str, ...] = ()
    package: tuple[str, str] | None = None
    needs: tuple[str, ...] = ()
    note: str = ""

    @property
    def size(self) -> int | None:
        """Bytes of all originals, None when any is not known."""
        sizes = [file.size for file in self.files]
        return None if None in sizes or not sizes else sum(size for size in sizes if size is not None)


def repository_files(
    repository: str, commit: str, folder: str, rows: Iterable[tuple[str, int, str]]
) -> tuple[RemoteFile, ...]:
    """The files of a folder at a commit; rows of (path below the folder, bytes, sha256 computed from that commit)."""
    source = f"computed from the file in github {repository} at {commit[:12]}"
    return tuple(
        RemoteFile(
            path=path,
            urls=(f"https://raw.githubusercontent.com/{repository}/{commit}/{folder}/{path}",),
            size=size,
            checksum=Checksum("sha256", sha256, source),
        )
        for path, size, sha256 in rows
    )
