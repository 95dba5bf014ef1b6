"""Metrics from what a training prints, line by line, while it prints.

A training may print hundreds of megabytes, so that most lines must be turned away after a glance: a line is read
only if it has a number and a sign or word that could name it. What surrounds a message in a log line (colours, cursor
movements, dates, levels, the names of loggers) is taken off first.
"""

from __future__ import annotations

import re
from pathlib import Path

from isorun.sources.base import AbstractSource, Found
from isorun.sources.freeform import may_be_a_sentence, read_sentence, read_text
from isorun.sources.names import split_in
from isorun.sources.objects import Objects, may_begin_an_object, pieces_of_an_object, read_structured, unwrapped
from isorun.sources.patterns import Patterns
from isorun.sources.rows import Row
from isorun.sources.tables import Tables, may_head_a_table, read_catboost
from isorun.sources.timeline import Timeline
from isorun.study.design import Sources
from isorun.study.records import Note

__all__ = ["LONGEST_LINE", "LineMetrics", "message_of", "plain", "scan_text"]

LONGEST_LINE = 2_000
LONGEST_STRUCTURED_LINE = 100_000
LONGEST_HEADING = 60

_DIGIT = re.compile(r"[0-9]")
_WORDS = (
    "loss", "acc", "epoch", "error", "score", "│", "step", "iter", "f1", "auc", "reward", "mse", "mae", "iou", "bleu",
    "recall", "precision", "perplex", "dice",
)  # fmt: skip
_SETTINGS = re.compile(r"\s*(?:\w*Namespace|\w*Config|\w*Arguments|args|hparams|params|parameters)\b\s*[:=]?\s*[({]")
_SET = re.compile(r"=(?:True|False|None)\b")
_SETTINGS_AT_LEAST = 3


class LineMetrics(AbstractSource):
    """Reads the metrics from the lines of one run's output.

    `feed` takes the lines in order, split at line feeds and carriage returns; it never raises. What the user's
    patterns name is read by them alone; the rest is found by itself unless `sources.stdout` is off.
    """

    def __init__(self, sources: Sources, settings: tuple[str, ...] = ()) -> None:
        super().__init__(sources, settings)
        self._patterns = Patterns(sources.patterns)
        self._finds_by_itself = sources.stdout
        self._timeline = Timeline()
        self._tables = Tables()
        self._objects = Objects()
        self._heading = ""
        self._last_split = ""
        self._cut_lines = 0
        self._epochs_are_named = False

    def feed(self, line: str, seconds: float) -> None:
        """Take in one line. seconds: since the run began."""
        if self._patterns:
            self._feed_patterns(line, seconds)
        if not self._finds_by_itself:
            return
        if self._objects.open and self._belongs_to_an_object(line, seconds):
            return
        if self._tables.has_unread and _DIGIT.search(line):
            self._timeline.add(self._tables.unread(), seconds, line, "stdout")
        if _is_promising(line):
            self._read(plain(line), seconds)
        elif self._tables.open or self._heading or ":" in line or may_begin_an_object(line) or may_head_a_table(line):
            self._read_around(plain(line), seconds)
        else:
            self._tables.remember(line)

    def finish(self, working_folder: Path | None = None, since_unix: float = 0.0) -> Found:  # noqa: ARG002 - no files
        """All metrics of the run; the object can be fed on after it."""
        return self._timeline.found((*self._patterns.notes(), *self._notes()))

    def _belongs_to_an_object(self, line: str, seconds: float) -> bool:
        """Whether the line goes on with an object over several lines; what breaks one off is read by itself."""
        rows = self._objects.take(plain(line))
        shown = self._objects.shown
        if rows is None:
            self._timeline.add(self._objects.close(), seconds, shown, "stdout")
            return False
        for row in rows:
            self._timeline.add(row, seconds, shown, "stdout")
        if rows:
            self._objects.clear()
        return True

    def _feed_patterns(self, line: str, seconds: float) -> None:
        if len(line) > LONGEST_LINE:
            self._cut_lines += 1
        cleaned = plain(line[:LONGEST_LINE])
        for row, pattern in self._patterns.rows(cleaned):
            self._timeline.add(row, seconds, cleaned, f"pattern {pattern}")

    def _read(self, line: str, seconds: float) -> None:
        if (row := self._row_of(line)) is None:
            return
        self._epochs_are_named = self._epochs_are_named or (row.epoch is not None and "poch" in line)
        self._timeline.add(row, seconds, row.lines or line, "stdout")
        self._heading = self._heading_after(line, row)
        self._last_split = row.split if row.values else self._last_split

    def _heading_after(self, line: str, row: Row) -> str:
        """A heading holds for the line below it, and on while lines are indented."""
        if not row.values and line.rstrip()[-1:] == ":":
            return split_in(line)
        return self._heading if line[:1] in " \t" else ""

    def _row_of(self, line: str) -> Row | None:
        if "{" in line and (row := self._structured(line)) is not None:
            return row
        if may_begin_an_object(line) and self._objects.begin(line):
            return None
        line = unwrapped(self._shortened(line))
        if left_out := pieces_of_an_object(line):
            return Row(left_out=left_out)
        if _SETTINGS.match(line) or _lists_settings(line):
            return None
        if ":\tlearn: " in line and (row := read_catboost(line)) is not None:
            return row
        if (self._tables.open or may_head_a_table(line)) and (row := self._tables.read(line)) is not None:
            return row
        message = message_of(line)
        if may_be_a_sentence(message) and (row := read_sentence(message)) is not None:
            return row
        split = self._last_split if message.startswith((" * ", "* ")) else self._heading
        return read_text(message, split=split, epochs_are_named=self._epochs_are_named)

    def _structured(self, line: str) -> Row | None:
        if len(line) > LONGEST_STRUCTURED_LINE:
            return None
        row = read_structured(line)
        if row is None or not (row.values or row.has_clock or row.doubtful):
            return None
        before = line[: line.find("{")]
        if not row.has_clock and before.strip():
            row.epoch = read_text(message_of(self._shortened(before))).epoch
            row.settle()
        return row

    def _read_around(self, line: str, seconds: float) -> None:
        """A line that has no metric in it may still head a table or a block ("Test Error:"), or end one."""
        row = None
        if (self._tables.open or may_head_a_table(line)) and len(line) < LONGEST_LINE:
            row = self._tables.read(line)
        if row is not None:
            self._timeline.add(row, seconds, row.lines or line, "stdout")
        else:
            self._tables.remember(line)
        stripped = line.rstrip()
        if may_begin_an_object(line):
            self._objects.begin(line)
        if stripped:
            is_heading = stripped[-1] == ":" and len(stripped) < LONGEST_HEADING
            self._heading = split_in(stripped) if is_heading else ""

    def _shortened(self, line: str) -> str:
        if len(line) <= LONGEST_LINE:
            return line
        self._cut_lines += 1
        return line[:LONGEST_LINE]

    def _notes(self) -> list[Note]:
        if not self._cut_lines:
            return []
        message = f"{self._cut_lines} lines were longer than {LONGEST_LINE:,} characters; only their start was read"
        return [Note("stdout.long-lines", message)]


def scan_text(text: str, sources: Sources | None = None) -> Found:
    """The metrics in a whole log, to see what would be found before a study relies on it; times are unknown, so 0."""
    metrics = LineMetrics(sources or Sources())
    for line in re.split(r"[\r\n]+", text):
        metrics.feed(line, 0.0)
    return metrics.finish()


def _lists_settings(line: str) -> bool:
    """Whether the line prints what was set ("amp=False, augment=False, iou=0.7, save=True"), not what came out."""
    return "=" in line and len(_SET.findall(line)) >= _SETTINGS_AT_LEAST


def _is_promising(line: str) -> bool:
    if _DIGIT.search(line) is None:
        lowered = line.lower()
        return ("nan" in lowered or "inf" in lowered) and (":" in line or "=" in line)
    if ":" in line or "=" in line or "@" in line or "{" in line:
        return True
    lowered = line.lower()
    return any(word in lowered for word in _WORDS)


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
