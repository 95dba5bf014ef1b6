"""The version of the code each run was started from, asked for without holding the run up."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from isorun.worker.usercode import code_version

__all__ = ["CodeVersions", "with_script"]

# Thousands of short runs must not call git thousands of times; code that is edited meanwhile is still noticed.
_MAX_AGE_SECONDS: Final = 10.0


class CodeVersions:
    """Asks git in a thread of its own, at most once in ten seconds for a folder."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="code-version")
        self._latest: dict[Path, tuple[float, Future[dict[str, Any]]]] = {}
        self._lock = threading.Lock()

    def ask(self, folder: Path) -> Future[dict[str, Any]]:
        """The version of the code in a folder, as it is about now."""
        with self._lock:
            asked_at, answer = self._latest.get(folder, (0.0, None))
            if answer is None or time.monotonic() - asked_at > _MAX_AGE_SECONDS:
                answer = self._pool.submit(code_version, folder)
                self._latest[folder] = (time.monotonic(), answer)
            return answer

    def close(self) -> None:
        """End the thread."""
        self._pool.shutdown()


def with_script(version: Mapping[str, Any], effective: Mapping[str, Any]) -> dict[str, Any]:
    """The version, and the hashes of the script and of all the training's own source files as the worker saw them."""
    found = {
        "script_sha256": effective.get("script", {}).get("sha256"),
        "sources_sha256": effective.get("sources_sha256"),
    }
    return {**version, **{name: value for name, value in found.items() if value}}
