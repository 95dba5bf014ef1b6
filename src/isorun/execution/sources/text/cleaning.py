"""What surrounds a message in a log line: colours, cursor movements, dates, levels and the names of loggers."""

from __future__ import annotations

import re

__all__ = ["message_of", "plain"]

# Colours and cursor movements, then titles and links (a text up to its end mark), then single characters.
_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]P^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
_LEVEL = re.compile(
    r"""^[^{}=]{0,80}?\b(?:TRACE|DEBUG|INFO|NOTICE|WARNING|WARN|ERROR|CRITICAL|FATAL)\b[\])]*\s*
        (?:[|:\-]\s*)?
        (?:\[?[\w.<>]+(?::[\w.<>]+)*\]?(?:\s+[-|]\s+|\]\s*:?\s*|:(?=[A-Za-z_{\[])))?""",
    re.VERBOSE,
)
_ABSL = re.compile(r"^[IWEF]\d{4} [\d:.]+\s+\d+ [\w./-]+:\d+\] ")
_RANK = re.compile(r"^\s*(?:\([\w.:-]+ pid=\d+(?:, ip=[\d.]+)?\)|\[(?:rank|default)\s?\d+\]:?)\s*")
_DATED_LOGGER = re.compile(r"^\[?\d{4}-\d\d-\d\d[ T][\d:.,]+(?:Z|[+-]\d\d:?\d\d)?\]?\s*(?:[-|]\s+)?(?:[\w.]+\s+-\s+)?")

_PREFIX_STARTS = frozenset("[( TDINWECF")
_DATE_SIGNS = frozenset("-/:.")


def plain(line: str) -> str:
    """The line without colour codes, backspaces and other control characters (tabs stay)."""
    return line if line.isprintable() else _CONTROL.sub("", line)


def message_of(line: str) -> str:
    """The message of a log line, without date, level, logger, process or rank; other lines as they are."""
    if not _may_have_a_prefix(line):
        return line
    line = _RANK.sub("", line, count=1) if line[:1] in "([" or "pid=" in line[:40] else line
    if (level := _LEVEL.match(line)) or (level := _ABSL.match(line)) or (level := _DATED_LOGGER.match(line)):
        return line[level.end() :]
    return line


def _may_have_a_prefix(line: str) -> bool:
    """Whether the line starts like a date, a time, a bracket or a level; cheap, since it is asked for every line."""
    first = line[:1]
    return first in _PREFIX_STARTS or (first.isdigit() and (line[4:5] in _DATE_SIGNS or line[2:3] in _DATE_SIGNS))
