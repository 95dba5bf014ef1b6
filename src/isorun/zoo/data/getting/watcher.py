"""Who is told how a transfer goes."""

from __future__ import annotations

from pathlib import Path

__all__ = ["Watcher"]


class Watcher:
    """Told what happens, for those who wait. This one is silent."""

    def begins(self, path: Path, have: int, total: int | None) -> None:
        """A transfer begins or goes on."""

    def moved(self, size: int) -> None:
        """So many bytes of the file are there."""

    def ends(self) -> None:
        """The transfer ended, well or not."""

    def says(self, text: str) -> None:
        """Something a user may want to know: another try, another address."""
