"""Lines of source that a traceback shows: what stands in them was not printed, whatever it looks like.

Known are the tracebacks of Python (with marks below the source, of groups, behind what says which process it is), of
IPython and notebooks, and of rich. Lines that others print in between are theirs: what is quoted is known by where it
stands, and by its number or its border.
"""

from __future__ import annotations

import re
from typing import Final

from isorun.sources.messages import TRACEBACK, plain

__all__ = ["Tracebacks"]

_FRAME = re.compile(r'(?P<head>.{0,80}?)File "[^"]*", line \d+(?:, in .*|\s*)$')
_MARKS = re.compile(r"\s*[~^][~^\s]*$|\s*[│└]")
# A name with a number does nothing that could fail or call: no traceback shows it, and trainings print it.
_PAIRS = re.compile(r"(?:[\w/@ ]++: *+[-+]?[\d.]++(?:e[-+]?\d+)?+%?[,;|\s-]*+)++$", re.ASCII)
_CODE = re.compile(r"""[\w\]]\(|\w\[|["']""")
_NAMED = re.compile(r"(?P<name>[A-Za-z_][\w.]*) +Traceback \(most recent call last\)\s*$")
_NUMBERED = re.compile(r"(?: *|-*> ?)\d+(?= |$)")
_NUMBERS_END: Final = 7
"""The column at which IPython's numbers of lines end."""
_BORDERS: Final = {"╭─": ("│", "╰"), "┌─": ("│", "└"), "+-": ("|", "+")}
_MOST_BETWEEN: Final = 5
"""Lines of others between a frame and its source, where several streams are one."""
_MOST_LINES: Final = 2_000
"""Lines of a traceback whose end does not come."""


class Tracebacks:
    """Follows the lines of one output, and says of each whether it shows source."""

    def __init__(self) -> None:
        self._indent: str | None = None
        self._depth = 0
        self._between = 0
        self._name = ""
        self._border: tuple[str, str] | None = None
        self._left = 0

    @property
    def open(self) -> bool:
        """Whether a line of source may come."""
        return self._indent is not None or bool(self._name) or self._border is not None

    def quotes(self, line: str) -> bool:
        """Whether a line shows source. Any line while `open` is asked for, and all that may begin a traceback."""
        shown = plain(line)
        if self._border is not None or self._name:
            self._left -= 1
            if self._left < 0:
                self._border, self._name = None, ""
        if self._border is not None:
            return self._in_border(*self._border, shown)
        if self._is_of_python(shown) or self._is_numbered(shown):
            return True
        self._begin(shown)
        return False

    def _begin(self, shown: str) -> None:
        frame = _FRAME.match(shown) if ", line " in shown else None
        if frame is not None:
            head = frame["head"]
            self._indent = f"{head[:-2]}  " if head.endswith("> ") else head  # loguru points at one of them
            self._indent += "  "
            self._depth = self._between = 0
        elif TRACEBACK in shown:
            named = _NAMED.match(shown)
            self._border = _BORDERS.get(shown.lstrip()[:2])
            self._name = named["name"] if named is not None else ""
            self._left = _MOST_LINES

    def _in_border(self, side: str, end: str, shown: str) -> bool:
        start = shown.lstrip()[:1]
        if start == end:
            self._border = None
        return start == side

    def _is_of_python(self, shown: str) -> bool:
        """Whether it is the source of the frame above, the marks below that, or goes on with what it has opened."""
        if self._indent is None:
            return False
        source = shown[len(self._indent) :] if shown.startswith(self._indent) else ""
        if self._depth or self._between < 0:  # the source has come
            goes_on = bool(source) and (self._depth > 0 or _MARKS.match(source) is not None)
            self._depth += _opened(source) if goes_on and _MARKS.match(source) is None else 0
            if not goes_on and not source.startswith("...<"):
                self._indent = None
            return goes_on
        is_source = source[:1].strip() != "" and not _PAIRS.match(source) and not _FRAME.match(source)
        if is_source and (not self._between or _CODE.search(source)):
            self._depth, self._between = _opened(source), -1
            return True
        self._between += 1
        if self._between > _MOST_BETWEEN:
            self._indent = None
        return False

    def _is_numbered(self, shown: str) -> bool:
        """Whether it is a line of IPython's, which ends with the name that it began with."""
        if not self._name:
            return False
        if shown.startswith(self._name) and shown[len(self._name) :][:1] in ("", ":"):
            self._name = ""
            return False
        found = _NUMBERED.match(shown)
        return found is not None and found.end() == _NUMBERS_END


def _opened(source: str) -> int:
    """How many brackets a line opens and does not close; those in its texts are mostly closed there."""
    return sum(source.count(sign) for sign in "([{") - sum(source.count(sign) for sign in ")]}")
