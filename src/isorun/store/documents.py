"""Small documents that a store keeps beside its records: ad hoc studies, and the plans of sequential decisions.

A document is replaced as a whole, so that a reader finds the old one or the new one, and never half of one.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any, Final

from isorun.errors import StoreError

__all__ = ["PLANS", "STUDIES", "Documents"]

STUDIES: Final = "studies"
PLANS: Final = "plans"


class Documents:
    """One kind of document, each a JSON file in a folder of the store; names are checked by those who give them."""

    def __init__(self, store: Path, kind: str) -> None:
        self._folder = store / kind

    def names(self) -> tuple[str, ...]:
        """The names of all documents, the latest first."""
        paths = sorted(self._folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
        return tuple(path.stem for path in paths)

    def path(self, name: str) -> Path:
        """Where the document lies, for messages."""
        return self._folder / f"{name}.json"

    def read(self, name: str) -> dict[str, Any] | None:
        """The document; None where there is none. OSError or ValueError when it cannot be read."""
        try:
            document = json.loads(self.path(name).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        if not isinstance(document, dict):
            raise ValueError("it holds no table")
        return document

    def write(self, name: str, document: dict[str, Any]) -> None:
        """Keep the document; it has reached the disk when this returns."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(
                "w", dir=self._folder, suffix=".tmp", delete=False, encoding="utf-8"
            ) as file:
                json.dump(document, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            Path(file.name).replace(self.path(name))
        except OSError as error:
            raise StoreError(f"nothing can be kept in {self._folder}: {error}") from None
