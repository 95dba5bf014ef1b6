"""Metrics from what a training prints, line by line, while it prints.

A training may print hundreds of megabytes, so that most lines must be turned away after a glance: a line is read
only if it has a number and a sign or word that could name it. What a line says is a row; `timeline.py` makes series of
the rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isorun.sources import AbstractSource, Found
from isorun.sources.freeform import (
    SplitSection,
    evaluated_by,
    may_be_a_sentence,
    read_catboost,
    read_sentence,
    read_text,
)
from isorun.sources.messages import (
    UNREADABLE,
    class_named_alone,
    ends_a_part,
    is_text,
    may_begin_a_traceback,
    message_of,
    number_in_front,
    plain,
    process_of,
    without_files,
    without_reprs,
)
from isorun.sources.rows import (
    COUNT,
    EPOCH,
    STEP,
    TOTAL,
    LeftOut,
    Row,
    Template,
    has_split,
    is_metric,
    keeps_no_prefix,
    line_shape,
    split_in,
    unwrapped,
)
from isorun.sources.settings import (
    SettingsBlock,
    is_about_loading,
    is_about_settings,
    is_an_aim,
    lists_settings,
    names_settings,
    says_it_was_set,
)
from isorun.sources.tables import Tables, may_head_a_table
from isorun.sources.timeline import BESIDE_SETTINGS, SEVERAL_PROCESSES, Ranks, Timeline
from isorun.study.design import Sources
from isorun.study.records import Note

if TYPE_CHECKING:
    from isorun.sources.objects import Objects, ResultBlocks
    from isorun.sources.patterns import Patterns
    from isorun.sources.tracebacks import Tracebacks

__all__ = [
    "LONGEST_LINE",
    "LineMetrics",
    "scan_text",
]

LONGEST_LINE = 2_000
LONGEST_STRUCTURED_LINE = 100_000
LONGEST_HEADING = 60
LONGEST_TEMPLATE = 500
MOST_SHAPES = 2_000

_DIGIT = re.compile(r"[0-9]")
_OPENING = re.compile(r"[{\[](?!\w)")
_CLOCK_PLACES = frozenset([EPOCH, STEP, COUNT, TOTAL])
_COLOURED = b"\xff"
"""In front of the shape of what a line shows that has more than that in it; no text has this byte."""
_WORDS = (
    "loss", "acc", "epoch", "error", "score", "│", "step", "iter", "f1", "auc", "reward", "mse", "mae", "iou", "bleu",
    "recall", "precision", "perplex", "dice", "nll", "r2", "inertia", "silhouette", "rmsle", "kappa",
)  # fmt: skip
_BEST_FOLLOWS = re.compile(r"\bbest (?:iteration|epoch|round|step|score)s?(?: is| was)?\s*:$", re.IGNORECASE)
MOST_HELD = 20
MOST_WRAPPED = 60
_WRAPPED = " " * 20


class LineMetrics(AbstractSource):
    """Reads the metrics from the lines of one run's output.

    `feed` takes the lines in order, split at line feeds and carriage returns; it never raises. What the user's
    patterns name is read by them alone; the rest is found by itself unless `sources.stdout` is off.
    """

    def __init__(self, sources: Sources, settings: tuple[str, ...] = ()) -> None:
        super().__init__(sources, settings)
        self._patterns = _patterns_of(sources)
        self._finds_by_itself = sources.stdout
        self._timeline = Timeline()
        self._tables = Tables()
        self._tracebacks: Tracebacks | None = None
        self._objects: Objects | None = None
        self._blocks: ResultBlocks | None = None
        self._heading = ""
        self._last_split = ""
        self._section = SplitSection()
        self._evaluated = ""
        self._class = ""
        self._split_of_object = ""
        self._cut_lines = 0
        self._epochs_are_named = False
        self._looks_back = False
        self._wrapped: list[str] = []
        self._block: SettingsBlock | None = SettingsBlock()
        self._of_block: list[tuple[Row, float, str]] = []
        self._held: list[tuple[Row, float, str]] = []
        self._processes: dict[str, str] = {}
        self._ranks = Ranks()
        self._shapes: dict[bytes, Template | None] = {}
        self._shapes_hold = True
        self._shapes_hold_for: tuple[bool, int] = (False, 0)

    def feed(self, line: str, seconds: float) -> None:
        """Take in one line. seconds: since the run began."""
        if (self._tracebacks is not None or may_begin_a_traceback(line)) and self._shows_source(line):
            return
        if self._patterns:
            self._feed_patterns(self._patterns, line, seconds)
        if not self._finds_by_itself:
            return
        shape = b""
        if self._shapes_hold:
            shown = plain(line)
            shape = line_shape(line) if shown is line or not _is_known_by(shown) else _COLOURED + line_shape(shown)
            if self._is_of_a_known_shape(shown, shape, seconds):
                return
        self._feed_itself(line, seconds, shape)
        self._look_whether_shapes_hold()

    def _shows_source(self, line: str) -> bool:
        """Whether a traceback shows source in this line: what stands there was not printed."""
        from isorun.sources.tracebacks import Tracebacks  # noqa: PLC0415  most trainings end well

        tracebacks = self._tracebacks or Tracebacks()
        is_source = tracebacks.quotes(line[:LONGEST_LINE])
        self._tracebacks = tracebacks if tracebacks.open else None
        return is_source

    def _is_of_a_known_shape(self, line: str, shape: bytes, seconds: float) -> bool:
        """Whether a line was read as others of its shape were: several times faster than reading it by itself."""
        template = self._shapes.get(shape)
        row = template.row(line) if template is not None else None
        if row is None:
            return False
        self._tables.forget()
        if row.values:
            self._timeline.add(row, seconds, line, "stdout")
            self._last_split = row.split
        elif row.has_clock or row.total:
            self._timeline.add(row, seconds, line, "stdout")
        return True

    def _look_whether_shapes_hold(self) -> None:
        """A line that depends on those just above it is read by itself; what a heading changes is learned anew."""
        self._shapes_hold = not (self._depends_on_lines_above or self._wrapped)
        state = (self._epochs_are_named, self._tables.headings)
        if state != self._shapes_hold_for:
            self._shapes.clear()
            self._shapes_hold_for = state

    @property
    def _depends_on_lines_above(self) -> bool:
        """Whether what the next line says depends on the lines just above it."""
        is_within = self._tables.is_waiting or any(
            one is not None and one.open for one in (self._objects, self._blocks)
        )
        return bool(self._heading or self._section.split or self._class or self._looks_back or is_within)

    def _learn(self, line: str, shape: bytes, row: Row | None) -> None:
        """Learn a shape when it is seen for the second time; what was printed once is not worth it."""
        if shape not in self._shapes:
            if len(self._shapes) >= MOST_SHAPES:
                self._shapes.clear()
            self._shapes[shape] = None
        elif not self._depends_on_lines_above:
            self._shapes[shape] = Template.learned(line, row or _nothing_in(line))

    def _belongs_to_a_wrapped_bar(self, line: str, seconds: float) -> bool:
        """Whether a line goes on with a bar that was too long for its screen: names and values stand below each other.

        What was gathered is read when another line comes.
        """
        line = plain(line)
        if self._wrapped and line.startswith(_WRAPPED) and line.strip() and len(self._wrapped) < MOST_WRAPPED:
            self._wrapped.append(line.strip())
            return True
        self._read_wrapped(seconds)
        if "━" in line and line.rstrip()[-1:] == ":":
            self._wrapped = [line.rstrip()]
        return bool(self._wrapped)

    def _read_wrapped(self, seconds: float) -> None:
        whole, self._wrapped = " ".join(self._wrapped), []
        if whole:
            self._read(whole, seconds)

    def _feed_itself(self, line: str, seconds: float, shape: bytes) -> None:
        if self._block is not None:
            self._follow_settings(self._block, plain(line[:LONGEST_LINE]))
        if (self._wrapped or "━" in line) and self._belongs_to_a_wrapped_bar(line, seconds):
            return
        if self._objects is not None and self._objects.open and self._goes_on_with(self._objects, line, seconds):
            return
        if (self._blocks is not None or line.startswith("Result for ")) and self._is_of_a_block(plain(line), seconds):
            return
        self._follow_table(line, seconds)
        if not is_text(line):
            return
        if self._ranks.on_every_line and line.strip():
            self._ranks.on_every_line = number_in_front(plain(line)) is not None
        if self._follow_class(plain(line[:LONGEST_LINE])):
            return
        self._section.follow(line)
        self._evaluated = evaluated_by(line) or self._evaluated
        if _is_promising(line):
            shown = plain(line)
            row = self._read(shown, seconds)
            if shape and len(shown) <= LONGEST_TEMPLATE and shown.isprintable():
                self._learn(shown, shape, row)
        elif self._tables.open or self._heading or ":" in line or _may_begin_an_object(line) or may_head_a_table(line):
            self._hear(line)
            self._read_around(plain(line), seconds)
        else:
            self._hear(line)
            self._tables.remember(line[:LONGEST_LINE])
            if shape and len(line) <= LONGEST_TEMPLATE and _DIGIT.search(line):
                self._learn(line, shape, None)

    def _follow_class(self, line: str) -> bool:
        """Note the class that the lines below are about, until one is empty or a rule; whether this line names it."""
        if named := class_named_alone(line):
            self._class = named
        elif self._class and ends_a_part(line):
            self._class = ""
        return bool(named)

    def _follow_table(self, line: str, seconds: float) -> None:
        """Look whether a line is the first row of a table without epochs, or ends one that had a single row."""
        tables = self._tables
        if tables.has_unread and _DIGIT.search(line) and not tables.names_a_split(plain(line[:LONGEST_LINE])):
            self._timeline.add(tables.first_row(plain(line[:LONGEST_LINE])), seconds, line, "stdout")
        elif tables.has_lone_row:
            self._end_lone_row(plain(line[:LONGEST_LINE]), seconds)

    def _end_lone_row(self, line: str, seconds: float) -> None:
        """Take the only row of a table if this line ends it."""
        if (row := self._tables.after_lone_row(line, self._evaluated)) is not None:
            self._timeline.add(row, seconds, row.lines, "stdout")

    def finish(
        self,
        working_folder: Path | None = None,  # noqa: ARG002 - nothing here is read from files
        since_unix: float = 0.0,  # noqa: ARG002
        *,
        whole: bool = False,  # noqa: ARG002
    ) -> Found:
        """All metrics of the run. A last line that may be half of one was never fed."""
        said = () if self._patterns is None else self._patterns.notes()
        self._read_wrapped(0.0)
        if self._tables.has_lone_row:
            self._end_lone_row("", 0.0)
        if self._blocks is not None:
            self._is_of_a_block("", 0.0)
        if not self._timeline.has_begun:  # a line of settings and results may be all that is printed
            self._release_held()
        found = self._timeline.found((*said, *self._notes()))
        return self._ranks.told_apart(found) if self._ranks.seen else found

    def latest(self) -> Mapping[str, Any]:
        """The last value of every metric that was seen since the last call, as one row; empty where none was."""
        return self._timeline.latest()

    def _begins_an_object(self, line: str) -> bool:
        """Whether an object begins in this line that does not end in it."""
        if not _may_begin_an_object(line):
            return False
        from isorun.sources.objects import Objects  # noqa: PLC0415  most trainings print none

        self._objects = self._objects or Objects()
        self._split_of_object = split_in(message_of(_OPENING.split(plain(line), maxsplit=1)[0]))
        return self._objects.begin(line)

    def _is_of_a_block(self, line: str, seconds: float) -> bool:
        """Whether a line begins a block of results or goes on with one; what ends one is read by itself."""
        from isorun.sources.objects import ResultBlocks  # noqa: PLC0415  only Ray prints them

        blocks = self._blocks = self._blocks or ResultBlocks()
        if blocks.open:
            if blocks.take(line):
                return True
            self._timeline.add(blocks.close(), seconds, blocks.shown, "stdout")
        return blocks.begin(line)

    def _goes_on_with(self, objects: Objects, line: str, seconds: float) -> bool:
        """Whether the line goes on with an object over several lines; what breaks one off is read by itself."""
        rows = objects.take(plain(line))
        shown = objects.shown
        for row in rows or ():
            self._name_split(row, self._split_of_object)
        if rows is None:
            self._timeline.add(objects.close(), seconds, shown, "stdout")
            return False
        for row in rows:
            if not self._holds_back(row, seconds, shown):
                self._timeline.add(row, seconds, shown, "stdout")
        if rows:
            objects.clear()
        return True

    def _feed_patterns(self, patterns: Patterns, line: str, seconds: float) -> None:
        if len(line) > LONGEST_LINE:
            self._cut_lines += 1
        cleaned = plain(line[:LONGEST_LINE])
        for row, pattern in patterns.rows(cleaned):
            self._timeline.add(row, seconds, cleaned, f"pattern {pattern}")

    def _read(self, line: str, seconds: float) -> Row | None:
        if (row := self._row_of(line)) is None:
            return None
        if row.values and (process := process_of(line)):
            self._tell_apart(row, process)
        if not self._ranks.are_counts and (front := number_in_front(line)) is not None:
            self._take_behind_number(*front, row, seconds)
        if self._class and not row.has_clock:
            row.values = [value._replace(name=f"{value.name}[{self._class}]") for value in row.values]
            row.by_value = True
        if self._holds_back(row, seconds, line):
            return row
        if self._looks_back:
            self._looks_back = False
            row = self._timeline.looking_back(row)
        self._epochs_are_named = self._epochs_are_named or (row.epoch is not None and "poch" in line)
        self._timeline.add(row, seconds, row.lines or line, "stdout")
        if self._block is not None and row.has_clock:
            self._block = None
        elif self._block is not None and self._block.open and row.values:
            row.by_value = True  # the same line is read otherwise where the training has begun
            self._of_block.append((Row(row.values), seconds, line))
        self._heading = self._heading_after(line, row)
        self._last_split = row.split if row.values else self._last_split
        return row

    def _follow_settings(self, block: SettingsBlock, line: str) -> None:
        """Look whether a block of lines tells what was set; what was read of it until now is taken back then."""
        if not block.open and self._timeline.has_begun:
            self._block = None
            return
        if block.follow(line):  # settings are told once: these are results, a block for each
            self._release_held()
            self._block = None
        elif block.was_set:
            self._timeline.take_back({value.name for row, _, _ in self._of_block for value in row.values})
            for row, seconds, shown in self._of_block:
                self._hold(row, seconds, shown)
        if not block.open or block.was_set:
            self._of_block = []

    def _tell_apart(self, row: Row, process: str) -> None:
        """Keep what another process printed under the same name apart: a rank is named; a pid says nothing."""
        row.by_value = True
        if process.startswith("pid="):
            others = [value for value in row.values if self._processes.setdefault(value.name, process) != process]
            row.left_out += [LeftOut(value.name, SEVERAL_PROCESSES) for value in others]
        elif process != "0":
            row.values = [value._replace(name=f"{value.name}@rank{process}") for value in row.values]
            row.table = row.epoch is not None  # processes are not equally far

    def _hear(self, line: str) -> None:
        if self._ranks.on_every_line and (front := number_in_front(plain(line))) is not None:
            self._ranks.hear(front[0])

    def _take_behind_number(self, number: int, rest: str, row: Row, seconds: float) -> None:
        """Keep the values of a line that begins with a number by that, too: it may be that of a process."""
        if not row.values:
            self._ranks.hear(number)
        elif not row.table:
            behind = read_text(message_of(rest), epochs_are_named=self._epochs_are_named)
            if self._ranks.seen or behind.has_clock:
                row.by_value = True
                self._ranks.add(number, behind, seconds, rest)

    def _holds_back(self, row: Row, seconds: float, line: str) -> bool:
        """Whether a row is one of settings: it counts only if the output has nothing else, what is aimed at never."""
        if not row.values or self._timeline.has_begun:
            return False
        in_block = self._block is not None and self._block.was_set
        if not in_block and not is_about_settings(line, row):
            return False
        if row.has_clock and not is_about_loading(line):
            return False
        beside_results = names_settings(line)
        if self._held and beside_results:  # settings are told once: these are results, a line for each setting
            return self._release_held()
        row.values = [value for value in row.values if beside_results or is_metric(value.name)]
        self._hold(row, seconds, line)
        return True

    def _hold(self, row: Row, seconds: float, line: str) -> None:
        row.values = [value for value in row.values if not is_an_aim(value.name)]
        row.by_value = True  # the same line within the training says what came out
        if len(self._held) < MOST_HELD and not says_it_was_set(line):
            self._held.append((row, seconds, line))
        left_out = [LeftOut(value.name, BESIDE_SETTINGS) for value in row.values if is_metric(value.name)]
        self._timeline.add(Row(left_out=left_out), seconds, line, "stdout")

    def _release_held(self) -> bool:
        """Take the rows that were held back, which are no settings; False, as the next one is not, either."""
        for row, seconds, line in self._held:
            self._timeline.add(row, seconds, line, "stdout")
        self._held = []
        return False

    def _heading_after(self, line: str, row: Row) -> str:
        """A heading holds for the line below it, and on while lines are indented."""
        if not row.values and line.rstrip()[-1:] == ":":
            return split_in(line)
        return self._heading if line[:1] in " \t" else ""

    def _row_of(self, line: str) -> Row | None:
        as_printed = line
        line = without_reprs(_without_ordered(line) if "OrderedDict(" in line else line)
        if "{" in line and (row := self._structured(line)) is not None:
            row.by_value = row.by_value or line != as_printed
            return row
        if self._begins_an_object(line):
            return None
        if "{" in line and (row := _cut_off_in(line)) is not None:
            return row
        line = unwrapped(self._shortened(line))
        if "." in line:
            line = without_files(line)
        if "R^2" in line:
            line = line.replace("R^2", "R2 ")
        if line.lstrip()[:1] in ("'", '"') and (left_out := _pieces_of_an_object(line)):
            return Row(left_out=left_out)
        if lists_settings(line):
            return None
        if (":\t" in line or "=" in line) and (row := read_catboost(line)) is not None:
            return row
        if (self._tables.open or may_head_a_table(line)) and (row := self._tables.read(line)) is not None:
            return row
        message = message_of(line)
        if may_be_a_sentence(message) and (row := read_sentence(message, evaluated=self._evaluated)) is not None:
            return row
        goes_on = message.startswith((" * ", "* "))
        row = self._of_text(message, self._last_split if goes_on else self._heading or self._section.split)
        row.shift(len(line) - len(message))
        row.by_value = row.by_value or goes_on or line != as_printed
        if not (row.values or row.has_clock or row.total):
            self._tables.remember(line)  # the name of a column may have a digit in it ("f1")
        return row

    def _of_text(self, message: str, split: str) -> Row:
        """The row of a free-form line; a section of a split ends where the training goes on."""
        row = read_text(message, split=split, epochs_are_named=self._epochs_are_named)
        in_epoch = row.step is not None and row.epoch is None and self._epochs_are_named
        if in_epoch and "step " in message and self._section.has_step(message):
            return row
        if row.has_clock and self._section.has_lines and split == self._section.split != "":
            self._section.end()
            return read_text(message, epochs_are_named=self._epochs_are_named)
        return row

    def _structured(self, line: str) -> Row | None:
        if len(line) > LONGEST_STRUCTURED_LINE:
            return None
        from isorun.sources.objects import OF_ONE_EXAMPLE, read_structured  # noqa: PLC0415  most trainings print none

        row = read_structured(line)
        if row is None:
            return None
        if not (row.values or row.has_clock or row.doubtful):
            return row if any(item.why == OF_ONE_EXAMPLE for item in row.left_out) else None
        before = line[: line.find("{")]
        if not row.has_clock and before.strip():
            message = message_of(self._shortened(before))
            around = read_text(message)
            around.shift(len(before) - len(message))
            row.epoch = around.epoch
            row.places.update({EPOCH: around.places[EPOCH]} if EPOCH in around.places else {})
            row.numbers += around.numbers
            row.settle()
        self._name_split(row, split_in(message_of(before)))
        return row

    def _name_split(self, row: Row, told: str) -> None:
        """Give the values of an object the split of the data that it says itself, or that what is before it does.

        Names that say it stay, and so do all where one of them does: then the others are told apart from it by that.
        """
        if row.has_clock:
            self._section.end()  # an epoch or a step of its own: the training goes on
        split = row.split or told or self._heading or self._section.split
        if not split or any(has_split(value.name) for value in row.values):
            return
        row.split = split
        row.values = [
            value if keeps_no_prefix(value.name) else value._replace(name=f"{split}_{value.name}")
            for value in row.values
        ]
        row.places = {
            name if name in _CLOCK_PLACES or keeps_no_prefix(name) else f"{split}_{name}": place
            for name, place in row.places.items()
        }
        row.final = row.final or split == "test"

    def _read_around(self, line: str, seconds: float) -> None:
        """A line that has no metric in it may still head a table or a block ("Test Error:"), or end one."""
        row = None
        if (self._tables.open or may_head_a_table(line)) and len(line) < LONGEST_LINE:
            row = self._tables.read(line)
        if row is not None:
            self._timeline.add(row, seconds, row.lines or line, "stdout")
        else:
            self._tables.remember(line[:LONGEST_LINE])
        stripped = line.rstrip()
        self._begins_an_object(line)
        if stripped:
            is_heading = stripped[-1] == ":" and len(stripped) < LONGEST_HEADING
            self._looks_back = is_heading and _BEST_FOLLOWS.search(stripped) is not None
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


def _is_known_by(shown: str) -> bool:
    """Whether a line with colours or backspaces is known by what it shows, as the bars of Keras are."""
    return shown.isprintable() and UNREADABLE not in shown


def _may_begin_an_object(line: str) -> bool:
    """Whether an object may begin in this line that does not end in it; cheap."""
    opens = "{" in line or line.strip() == "[" or "OrderedDict([" in line
    return opens and line.rstrip()[-1:] in ("{", "[", ",", "(")


def _without_ordered(line: str) -> str:
    from isorun.sources.objects import without_ordered  # noqa: PLC0415  most trainings print no object

    return without_ordered(line)


def _cut_off_in(line: str) -> Row | None:
    from isorun.sources.objects import cut_off_in  # noqa: PLC0415  most trainings print no object

    return cut_off_in(line)


def _pieces_of_an_object(line: str) -> list[LeftOut]:
    from isorun.sources.objects import pieces_of_an_object  # noqa: PLC0415  most trainings print no object

    return pieces_of_an_object(line)


def _nothing_in(line: str) -> Row:
    """The row of a line that says nothing: all its digits are free."""
    return Row(numbers=[(0, len(line))])


def _patterns_of(sources: Sources) -> Patterns | None:
    if not sources.patterns:
        return None
    from isorun.sources.patterns import Patterns  # noqa: PLC0415  only where a study has some

    return Patterns(sources.patterns)


def scan_text(text: str, sources: Sources | None = None) -> Found:
    """The metrics in a whole log, to see what would be found before a study relies on it; times are unknown, so 0."""
    metrics = LineMetrics(sources or Sources())
    for line in re.split(r"[\r\n]+", text):
        metrics.feed(line, 0.0)
    return metrics.finish()


def _is_promising(line: str) -> bool:
    if _DIGIT.search(line) is None:
        lowered = line.lower()
        return ("nan" in lowered or "inf" in lowered) and (":" in line or "=" in line)
    if ":" in line or "=" in line or "@" in line or "{" in line:
        return True
    lowered = line.lower()
    return any(word in lowered for word in _WORDS)
