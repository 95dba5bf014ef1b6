"""Files that lie in public Git repositories: addressed at a fixed commit, so that they can never change."""

from __future__ import annotations

from collections.abc import Iterable

from isorun.zoo.data.dataset import Checksum, RemoteFile

__all__ = ["repository_files"]


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
