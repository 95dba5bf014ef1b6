"""Small documents in a folder of the store, each a JSON file of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from isorun.errors import StoreError
from isorun.store.base import AbstractDocuments
from isorun.store.files import Files, reported

__all__ = ["FolderDocuments"]


class FolderDocuments(AbstractDocuments):
    """The documents of one kind, in `<store>/<kind>`; the folder is made with the first of them."""

    def __init__(self, store: Path, kind: str, files: Files | None = None) -> None:
        self._folder = store / kind
        self._files = files or Files()

    def names(self) -> tuple[str, ...]:
        """The names of all documents, the latest first."""
        paths = sorted(self._folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
        return tuple(path.stem for path in paths)

    def place(self, name: str) -> str:
        """The file."""
        return str(self._path(name))

    def read(self, name: str) -> dict[str, Any] | None:
        """The document; None where there is none."""
        path = self._path(name)
        try:
            document = json.loads(self._files.read(path))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            raise _unreadable(path, f"{type(error).__name__}: {error}") from None
        if not isinstance(document, dict):
            raise _unreadable(path, "it holds no table")
        return document

    def write(self, name: str, document: dict[str, Any]) -> None:
        """Write the document under another name, then put it in place; a write that failed leaves nothing behind."""
        with reported(f"keeping {name}", self._folder):
            self._files.ensure_folder(self._folder.parent)
            self._files.ensure_inner_folder(self._folder)
            self._files.write_whole(self._path(name), json.dumps(document, indent=1).encode())

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.json"


def _unreadable(path: Path, found: str) -> StoreError:
    return StoreError(f"{path} cannot be read", found=found, hint="move the file away, and make it anew")
