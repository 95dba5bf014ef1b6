"""Downloads on stderr: how much of the file is there, how fast it comes, and how long it will take."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Final, TextIO

from isorun.cli.progress import duration
from isorun.report.plain_text import harmless
from isorun.zoo.data.download import Watcher

__all__ = ["TransferProgress", "bytes_in_words"]

_EVERY: Final = 0.2


class TransferProgress(Watcher):
    """One line, rewritten, on a terminal; elsewhere a line when a file begins."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._name = ""
        self._total: int | None = None
        self._first = 0
        self._started = 0.0
        self._shown = 0.0

    def begins(self, path: Path, have: int, total: int | None) -> None:
        """A transfer begins or goes on."""
        self._name, self._total, self._first = path.name, total, have
        self._started = self._shown = time.monotonic()
        resumed = f", going on at {bytes_in_words(have)}" if have else ""
        if not self._live:
            self._print(f"{self._name}: {bytes_in_words(total)}{resumed}\n")

    def moved(self, size: int) -> None:
        """So many bytes of the file are there."""
        now = time.monotonic()
        if self._live and now - self._shown >= _EVERY:
            self._shown = now
            self._print(f"\r\x1b[K{self._line(size, now - self._started)}")

    def ends(self) -> None:
        """The transfer ended, well or not."""
        if self._live:
            self._print("\r\x1b[K")

    def says(self, text: str) -> None:
        """A line of its own."""
        self._print(f"{harmless(text)}\n")

    def _line(self, size: int, elapsed: float) -> str:
        speed = (size - self._first) / elapsed if elapsed else 0.0
        rate = f"{bytes_in_words(int(speed))}/s"
        if self._total is None:
            return f"{self._name}: {bytes_in_words(size)}, {rate}"
        left = f", {duration((self._total - size) / speed)} left" if speed else ""
        share = 100 * size // self._total if self._total else 100
        return f"{self._name}: {share} % of {bytes_in_words(self._total)}, {rate}{left}"

    def _print(self, text: str) -> None:
        # Progress is a courtesy: a closed stderr must not end a download.
        with suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()


def bytes_in_words(size: int | None) -> str:
    """A size as people say it."""
    if size is None:
        return "size not known"
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size} bytes"
