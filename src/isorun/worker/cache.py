"""What is expensive to find out and stays true until a file changes, kept between runs as JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def folder() -> Path:
    """The folder ISORUN_CACHE, else isorun's place among the user's caches."""
    asked = os.environ.get("ISORUN_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111  never raises
    return Path(asked) if asked else Path(base) / "isorun"


class Cache:
    """Values by key. Losing one to a parallel writer, or all to a full disk, costs only time."""

    def __init__(self, name: str) -> None:
        self._file = folder() / f"{name}.json"
        self._values = self._load()
        self._changed = False

    def get(self, key: str) -> Any:
        """The value, or None."""
        return self._values.get(key)

    def put(self, key: str, value: Any) -> None:
        """Keep a value from the next `save` on."""
        self._values[key] = value
        self._changed = True

    def save(self) -> None:
        """Write what is new, whole or not at all."""
        if not self._changed:
            return
        temporary = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps(self._values), encoding="utf-8")
            temporary.replace(self._file)
        except OSError:
            return

    def _load(self) -> dict[str, Any]:
        try:
            loaded = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return loaded if isinstance(loaded, dict) else {}
