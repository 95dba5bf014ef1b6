"""What a later rank prints: all ranks print to one output, where nobody can tell any more whose a line is.

Each later rank counts its own lines, by their checksums: who reads the output takes these lines out again, and is left
with those of the first rank. Only lines with a digit count, for no other has a metric.
"""

from __future__ import annotations

import functools
import re
import sys
import zlib
from typing import Any

MOST_LINES = 5_000
LONGEST_LINE = 16_000
_ENDS = re.compile(r"[\r\n]+")
_DIGIT = re.compile(r"[0-9]")


def checksum(line: str) -> str:
    """What a line is known by; empty for one that cannot have a metric."""
    text = line.strip()
    if not text or len(text) > LONGEST_LINE or not _DIGIT.search(text):
        return ""
    return format(zlib.crc32(text.encode("utf-8", "replace")), "08x")


class PrintedLines:
    """How often this process printed which lines. is_cut: there were too many, and some are not counted."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.is_cut = False
        self._is_following = False

    def follow(self) -> None:
        """Count from now on, once: every line that Python prints to its standard output and error."""
        if not self._is_following:
            self._is_following = True
            for stream in (sys.stdout, sys.stderr):
                self._follow(stream)

    def _follow(self, stream: Any) -> None:
        write = getattr(stream, "write", None)
        if write is None:
            return
        begun = ""

        @functools.wraps(write)
        def followed(text: str) -> Any:
            nonlocal begun
            done = write(text)
            *lines, begun = _ENDS.split(begun + text)
            begun = begun if len(begun) <= LONGEST_LINE else ""
            for line in lines:
                self._count(line)
            return done

        try:
            stream.write = followed
        except AttributeError:  # a stream of the training's own, which takes nothing else
            return

    def _count(self, line: str) -> None:
        known = checksum(line)
        if known in self.counts or (known and len(self.counts) < MOST_LINES):
            self.counts[known] = self.counts.get(known, 0) + 1
        elif known:
            self.is_cut = True


_printed = PrintedLines()


def of_this_process() -> PrintedLines:
    """What this process printed, as far as that is followed."""
    return _printed
