"""Metrics from what a training prints, line by line, while it prints.

A training may print hundreds of megabytes, so that most lines must be turned away after a glance: a line is read
only if it has a number and a sign or word that could name it.

Rows of output become series. `Clock` says where in the training the output is: the epoch, else the step, else the pass
of a progress bar. Epochs win: once the output has named an epoch, steps and bars no longer start a new moment.
`SeenPoints` holds the values of one metric, folded by moment: within a moment only the last value counts, so that the
running values of a bar do not become epochs of their own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isorun.sources import AbstractSource, Found
from isorun.sources.freeform import (
    SplitSection,
    is_about_loading,
    is_about_settings,
    is_an_aim,
    is_text,
    lists_settings,
    may_be_a_sentence,
    message_of,
    names_settings,
    plain,
    process_of,
    read_sentence,
    read_text,
    without_files,
)
from isorun.sources.objects import (
    Objects,
    cut_off_in,
    may_begin_an_object,
    pieces_of_an_object,
    read_structured,
    unwrapped,
)
from isorun.sources.rows import (
    EPOCH,
    MOST_POINTS,
    UNCLEAR_COMMA,
    LeftOut,
    MetricValue,
    Row,
    SeenPoints,
    Template,
    has_split,
    is_metric,
    line_shape,
    split_in,
)
from isorun.sources.tables import CLASS_REPORT, Tables, may_head_a_table, read_catboost
from isorun.study.design import Sources
from isorun.study.records import Note

if TYPE_CHECKING:
    from isorun.sources.patterns import Patterns

__all__ = [
    "LONGEST_LINE",
    "MOST_METRICS",
    "Clock",
    "LineMetrics",
    "Timeline",
    "scan_text",
]

LONGEST_LINE = 2_000
LONGEST_STRUCTURED_LINE = 100_000
LONGEST_HEADING = 60
LONGEST_TEMPLATE = 500
MOST_SHAPES = 2_000

_DIGIT = re.compile(r"[0-9]")
_WORDS = (
    "loss", "acc", "epoch", "error", "score", "│", "step", "iter", "f1", "auc", "reward", "mse", "mae", "iou", "bleu",
    "recall", "precision", "perplex", "dice", "nll", "r2", "inertia", "silhouette", "rmsle", "kappa",
)  # fmt: skip
_BEST_FOLLOWS = re.compile(r"\bbest (?:iteration|epoch|round|step|score)s?(?: is| was)?\s*:$", re.IGNORECASE)
SEVERAL_PROCESSES = "several processes print it, and nothing says which is which"
_ALL_UNCLEAR = frozenset([UNCLEAR_COMMA, SEVERAL_PROCESSES])
_BESIDE_SETTINGS = "printed among settings before the training began"
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
        self._objects = Objects()
        self._heading = ""
        self._last_split = ""
        self._section = SplitSection()
        self._cut_lines = 0
        self._epochs_are_named = False
        self._looks_back = False
        self._wrapped: list[str] = []
        self._held: list[tuple[Row, float, str]] = []
        self._processes: dict[str, str] = {}
        self._shapes: dict[bytes, Template | None] = {}
        self._shapes_hold = True
        self._shapes_hold_for: tuple[bool, int] = (False, 0)

    def feed(self, line: str, seconds: float) -> None:
        """Take in one line. seconds: since the run began."""
        if self._patterns:
            self._feed_patterns(self._patterns, line, seconds)
        if not self._finds_by_itself:
            return
        shape = line_shape(line) if self._shapes_hold else b""
        if shape and self._is_of_a_known_shape(line, shape, seconds):
            return
        self._feed_itself(line, seconds, shape)
        self._look_whether_shapes_hold()

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
        return bool(
            self._heading or self._section.split or self._looks_back or self._objects.open or self._tables.is_waiting
        )

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
        if (self._wrapped or "━" in line) and self._belongs_to_a_wrapped_bar(line, seconds):
            return
        if self._objects.open and self._belongs_to_an_object(line, seconds):
            return
        if self._tables.has_unread and _DIGIT.search(line) and not self._tables.names_a_split(plain(line)):
            self._timeline.add(self._tables.unread(), seconds, line, "stdout")
        if not is_text(line):
            return
        self._section.follow(line)
        if _is_promising(line):
            row = self._read(plain(line), seconds)
            if shape and len(line) <= LONGEST_TEMPLATE and line.isprintable():
                self._learn(line, shape, row)
        elif self._tables.open or self._heading or ":" in line or may_begin_an_object(line) or may_head_a_table(line):
            self._read_around(plain(line), seconds)
        else:
            self._tables.remember(line)
            if shape and len(line) <= LONGEST_TEMPLATE and _DIGIT.search(line):
                self._learn(line, shape, None)

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
        if not self._timeline.has_begun:  # a line of settings and results may be all that is printed
            self._release_held()
        return self._timeline.found((*said, *self._notes()))

    def latest(self) -> Mapping[str, Any]:
        """The last value of every metric that was seen since the last call, as one row; empty where none was."""
        return self._timeline.latest()

    def _belongs_to_an_object(self, line: str, seconds: float) -> bool:
        """Whether the line goes on with an object over several lines; what breaks one off is read by itself."""
        rows = self._objects.take(plain(line))
        shown = self._objects.shown
        if rows is None:
            self._timeline.add(self._objects.close(), seconds, shown, "stdout")
            return False
        for row in rows:
            if not self._holds_back(row, seconds, shown):
                self._timeline.add(row, seconds, shown, "stdout")
        if rows:
            self._objects.clear()
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
        if self._holds_back(row, seconds, line):
            return row
        if self._looks_back:
            self._looks_back = False
            row = self._timeline.looking_back(row)
        self._epochs_are_named = self._epochs_are_named or (row.epoch is not None and "poch" in line)
        self._timeline.add(row, seconds, row.lines or line, "stdout")
        self._heading = self._heading_after(line, row)
        self._last_split = row.split if row.values else self._last_split
        return row

    def _tell_apart(self, row: Row, process: str) -> None:
        """Keep what another process printed under the same name apart: a rank is named; a pid says nothing."""
        row.by_value = True
        if process.startswith("pid="):
            others = [value for value in row.values if self._processes.setdefault(value.name, process) != process]
            row.left_out += [LeftOut(value.name, SEVERAL_PROCESSES) for value in others]
        elif process != "0":
            row.values = [value._replace(name=f"{value.name}@rank{process}") for value in row.values]
            row.table = row.epoch is not None  # processes are not equally far

    def _holds_back(self, row: Row, seconds: float, line: str) -> bool:
        """Whether a row is one of settings: it counts only if the output has nothing else, what is aimed at never."""
        if not row.values or self._timeline.has_begun or not is_about_settings(line, row):
            return False
        if row.has_clock and not is_about_loading(line):
            return False
        beside_results = names_settings(line)
        if self._held and beside_results:  # settings are told once: these are results, a line for each setting
            return self._release_held()
        row.values = [
            value for value in row.values if not is_an_aim(value.name) and (beside_results or is_metric(value.name))
        ]
        row.by_value = True  # the same line within the training says what came out
        if len(self._held) < MOST_HELD:
            self._held.append((row, seconds, line))
        left_out = [LeftOut(value.name, _BESIDE_SETTINGS) for value in row.values if is_metric(value.name)]
        self._timeline.add(Row(left_out=left_out), seconds, line, "stdout")
        return True

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
        if "{" in line and (row := self._structured(line)) is not None:
            return row
        if may_begin_an_object(line) and self._objects.begin(line):
            return None
        if "{" in line and (row := cut_off_in(line)) is not None:
            return row
        as_printed = line
        line = unwrapped(self._shortened(line))
        if "." in line:
            line = without_files(line)
        if "R^2" in line:
            line = line.replace("R^2", "R2 ")
        if left_out := pieces_of_an_object(line):
            return Row(left_out=left_out)
        if lists_settings(line):
            return None
        if ":\t" in line and (row := read_catboost(line)) is not None:
            return row
        if (self._tables.open or may_head_a_table(line)) and (row := self._tables.read(line)) is not None:
            return row
        message = message_of(line)
        if may_be_a_sentence(message) and (row := read_sentence(message)) is not None:
            return row
        goes_on = message.startswith((" * ", "* "))
        split = self._last_split if goes_on else self._heading or self._section.split
        row = read_text(message, split=split, epochs_are_named=self._epochs_are_named)
        if row.has_clock and self._section.split and split == self._section.split:
            self._section.end()  # the training goes on
            row = read_text(message, epochs_are_named=self._epochs_are_named)
        row.shift(len(line) - len(message))
        row.by_value = row.by_value or goes_on or line != as_printed
        if not (row.values or row.has_clock or row.total):
            self._tables.remember(line)  # the name of a column may have a digit in it ("f1")
        return row

    def _structured(self, line: str) -> Row | None:
        if len(line) > LONGEST_STRUCTURED_LINE:
            return None
        row = read_structured(line)
        if row is None or not (row.values or row.has_clock or row.doubtful):
            return None
        before = line[: line.find("{")]
        if not row.has_clock and before.strip():
            message = message_of(self._shortened(before))
            around = read_text(message)
            around.shift(len(before) - len(message))
            row.epoch = around.epoch
            row.places.update({EPOCH: around.places[EPOCH]} if EPOCH in around.places else {})
            row.numbers += around.numbers
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


MOST_METRICS = 1_000
MOST_POINTS_TOGETHER = 4_000_000
MOST_NAMES_IN_NOTE = 20
LONGEST_EXAMPLE = 200


class Timeline:
    """Gathers the rows of one run; memory is bounded however much the run prints.

    A bar that begins again within an epoch is an evaluation (Keras `evaluate`): its names get the prefix "eval_", a
    third bar's "eval2_", so that it does not overwrite what the epoch's own bar said.
    """

    def __init__(self) -> None:
        self._clock = Clock()
        self._points: dict[str, SeenPoints] = {}
        self._rows = 0
        self._last_clock_row = 0
        self._count = 0
        self._not_taken: dict[str, str] = {}
        self._left_out: dict[str, dict[str, str]] = {}
        self._mixed: set[str] = set()
        self._unclear: set[str] = set()  # some of its values are not known: the last may be one of them
        self._too_many_names = False
        self._kept: dict[str, float] = {}
        self._told_rows = 0

    def add(self, row: Row, seconds: float, line: str, source: str) -> None:
        """Take in one row. source: the start of its metrics' origins ("stdout")."""
        if row.above is not None:
            self.add(row.above, seconds, line, source)
        self._clock.restarts += row.restarts
        self._rows += 1
        for value in row.doubtful:
            self._remember_not_taken(value, line)
        for item in row.left_out:
            if item.why in _ALL_UNCLEAR and len(self._unclear) < MOST_METRICS:
                self._unclear.add(item.name)
            names = self._left_out.setdefault(item.why, {})
            if len(names) < MOST_NAMES_IN_NOTE:
                names.setdefault(item.name, _quoted(line))
        if not row.table:
            self._clock.follow(row)
            if row.epoch is not None or row.step is not None:
                self._last_clock_row = self._rows
        if row.values and not (self._clock.is_late and row.total):
            self._put_all(row, seconds, line, source)

    def looking_back(self, row: Row) -> Row:
        """The row without the metrics that have values: a line that looks back at the best says them again.

        They are no further points, but what the training ends with: the model of that round is the one it keeps.
        """
        self._kept = {value.name: value.value for value in row.values if value.name in self._points}
        row.values = [value for value in row.values if value.name not in self._points]
        if not row.values:
            row.epoch = row.step = None
        return row

    @property
    def has_begun(self) -> bool:
        """Whether the output has told anything of the training: a metric, an epoch or a step."""
        return bool(self._points) or self._clock.now is not None

    def latest(self) -> Mapping[str, Any]:
        """See `LineMetrics.latest`. Nothing is kept for it while lines come in: they come by the million."""
        changed = {name: item for name, item in self._points.items() if item.last_row > self._told_rows}
        for item in changed.values():
            self._count -= item.put_in_order()
        new = {name: item for name, item in changed.items() if item.values}
        self._told_rows = self._rows
        if not new:
            return {}
        newest = max(new.values(), key=lambda item: item.last_row)
        has_step = self._clock.now is not None or newest.moment < -1
        values = {name: item.values[-1] for name, item in new.items()}
        return {"t": newest.seconds[-1], "step": newest.steps[-1] if has_step else None, "values": values}

    def found(self, notes: tuple[Note, ...] = ()) -> Found:
        """All that was gathered."""
        for item in self._points.values():
            item.put_in_order()
        for name in [name for name in self._unclear if name in self._points and not self._points[name].by_user]:
            del self._points[name]
        points = {name: item for name, item in self._points.items() if item.values}
        ends = {name: end for name, item in points.items() if (end := item.after_the_last()) is not None}
        results = {name: item.values[-1] for name, item in points.items() if self._is_result(item)}
        return Found(
            series={name: item.series() for name, item in points.items()},
            results=results | ends | {name: value for name, value in self._kept.items() if name in points},
            origins={name: item.origin for name, item in points.items()},
            examples={name: item.example for name, item in points.items()},
            notes=(*notes, *self._notes()),
        )

    def _is_evaluation(self, row: Row) -> bool:
        clock = self._clock
        is_later_bar = row.total > 0 and clock.passes > 0 and row.epoch is None and not row.split
        return is_later_bar and clock.now is not None and not row.by_user

    def _put_all(self, row: Row, seconds: float, line: str, source: str) -> None:
        is_evaluation = row.total > 0 and self._is_evaluation(row)
        moment, step = self._moment_of(row)
        clock = not row.total and (row.epoch is not None or row.step is not None)  # a bar's values are running ones
        all_points, by_user, final = self._points, row.by_user, row.final or is_evaluation
        if self._kept:
            self._kept = {
                name: kept for name, kept in self._kept.items() if all(name != one.name for one in row.values)
            }
        for value in row.values:
            name, number, _, fraction = value
            if is_evaluation:
                name = self._evaluation_name(name)
            points = all_points.get(name)
            if points is not None and (value.form == CLASS_REPORT) != points.of_report:
                name = self._name_beside_report(name, points)
                points = all_points.get(name)
            if points is None or points.by_user != by_user:
                points = self._points_of(name, value, row, line, source)
            if points is None:
                continue
            if row.table != points.table or row.table:
                self._count -= points.follow_table(row.table, step)
            if step is None and points.repeats(number, "bar" if row.total else value.form.rstrip("%")):
                points.last_row, points.final = self._rows, final
                continue
            self._count += points.put(moment, step, seconds, number, self._count >= MOST_POINTS_TOGETHER, clock=clock)
            points.last_row = self._rows
            points.final = final
            if points.fraction != fraction:
                self._mixed.add(name)

    def _evaluation_name(self, name: str) -> str:
        number = "" if self._clock.passes == 1 else str(self._clock.passes)
        return name if has_split(name) else f"eval{number}_{name}"

    def _name_beside_report(self, name: str, points: SeenPoints) -> str:
        """The name of a value where a classification report has the same one: the report's, rounded, is another."""
        beside = f"report_{name}"
        if not points.of_report:
            return beside
        self._points[beside] = self._points.pop(name)
        return name

    def _moment_of(self, row: Row) -> tuple[int, float | None]:
        """Moments of tables are negative, so that they never meet those of the clock; -1 stands for "none yet"."""
        if row.table and row.epoch is not None:
            return -2 - int(row.epoch), row.epoch
        clock = self._clock
        now = clock.now
        if now is None and not row.total:
            clock.moment += 1
        return clock.moment, now

    def _points_of(self, name: str, value: MetricValue, row: Row, line: str, source: str) -> SeenPoints | None:
        """New points for a name, also in place of what was found by itself before the user's pattern did."""
        known = self._points.get(name)
        if known is not None and known.by_user:
            return None
        if known is None and len(self._points) >= MOST_METRICS:
            self._too_many_names = True
            return None
        self._count -= len(known.values) if known else 0
        points = SeenPoints(
            f"{source}: {value.form}", plain(line).strip()[:LONGEST_EXAMPLE], value.fraction, row.by_user
        )
        points.of_report = value.form == CLASS_REPORT
        self._points[name] = points
        return points

    def _is_result(self, points: SeenPoints) -> bool:
        """Final values come after the last epoch, and either say so or stand alone."""
        after_the_last_epoch = points.last_row > self._last_clock_row
        return after_the_last_epoch and (points.final or len(points.values) == 1)

    def _remember_not_taken(self, value: MetricValue, line: str) -> None:
        """Whole numbers in passing are counts and settings, not worth a note."""
        if len(self._not_taken) < MOST_NAMES_IN_NOTE and not value.value.is_integer():
            self._not_taken.setdefault(value.name, _quoted(line))

    def _notes(self) -> list[Note]:
        items = self._points.items()
        notes = [
            Note("stdout.limit", f"metric {name!r} has more than {MOST_POINTS:,} values; later ones replaced the last")
            for name, item in items
            if item.cut
        ]
        if self._too_many_names:
            notes.append(Note("stdout.names", f"the output has more than {MOST_METRICS:,} names; only these are kept"))
        notes += [
            Note("stdout.scale", f"metric {name!r} was printed both as a percentage or count and as a plain number")
            for name in sorted(self._mixed)
        ]
        notes += [note for name, item in items if (note := _note_on_moments(name, item)) is not None]
        if self._clock.restarts:
            message = (
                f"the epochs began again {self._clock.restarts} times; their values follow each other in the series"
            )
            notes.append(Note("stdout.restart", message))
        if unclear := [name for name, item in items if item.unclear]:
            why = "the rows of a table have the same epoch twice and are in no order"
            notes.append(Note("stdout.left-out", f"left out: {', '.join(unclear[:MOST_NAMES_IN_NOTE])}: {why}"))
        return [*notes, *self._left_out_notes(), *self._not_taken_note()]

    def _left_out_notes(self) -> list[Note]:
        """What is left out altogether, and of which metrics some values are: the best one may be among them."""
        notes = []
        for why, names in self._left_out.items():
            left = [name for name in names if name not in self._points]
            if left:
                message = f"left out: {', '.join(left)}: {why} (first in {names[left[0]]!r})"
                notes.append(Note("stdout.left-out", message))
            notes += [
                Note("stdout.values-left-out", f"values of {name!r} were left out: {why} (first in {line!r})")
                for name, line in names.items()
                if name in self._points and why != _BESIDE_SETTINGS
            ]
        return notes

    def _not_taken_note(self) -> list[Note]:
        left = [name for name in self._not_taken if name not in self._points]
        if not left:
            return []
        message = (
            f"not read as metrics: {', '.join(left)} (first in {self._not_taken[left[0]]!r}); name them by a pattern"
        )
        return [Note("stdout.not-taken", message)]


def _quoted(line: str) -> str:
    """The start of a line as a note shows it: what moves a cursor or colours a word is no part of what was said."""
    return " ".join(plain(line).split())[:80]


def _note_on_moments(name: str, item: SeenPoints) -> Note | None:
    """What is to be known where a metric was printed without an epoch, beside others or alone."""
    if item.without_step > 1:
        message = f"was printed {item.without_step} times without an epoch or step: taken for one training"
        return Note("stdout.no-epoch", f"metric {name!r} {message}")
    if item.replaced and item.changed:
        message = "was printed with its epoch and again without one: the last of each epoch counts"
        return Note("stdout.replaced", f"metric {name!r} {message}")
    if item.after_end > 1:
        message = f"was printed with {item.after_end} other values after the last epoch: the last is its final one"
        return Note("stdout.after-end", f"metric {name!r} {message}")
    return None


class Clock:
    """Follows the rows of the output.

    moment: a number that changes when an epoch, step or bar begins. epoch, step: the current ones, None before the
    first. restarts: how often the epochs began again at a lower number (folds, several trainings in one run).
    is_late: the last row is one of a bar that has since gone on: lines of several processes may change places.
    """

    def __init__(self) -> None:
        self.moment = 0
        self.epoch: float | None = None
        self.step: float | None = None
        self.restarts = 0
        self.passes = 0
        self.is_late = False
        self._bar = (0, 0)
        self._bar_names: AbstractSet[str] = frozenset()

    @property
    def now(self) -> float | None:
        """The step that values get now; None when the output has named neither epochs nor steps."""
        return self.epoch if self.epoch is not None else self.step

    def follow(self, row: Row) -> None:
        """Take in where the row says the training is."""
        self.is_late = False
        if row.epoch is not None:
            self._enter_epoch(row.epoch)
        elif row.step is not None and self.epoch is None and row.step != self.step:
            self.step = row.step
            self.moment += 1
        if row.total and row.values and row.epoch is None and not row.split:
            self._follow_bar(row)

    def _enter_epoch(self, epoch: float) -> None:
        if epoch == self.epoch:
            return
        self.restarts += self.epoch is not None and epoch < self.epoch
        self.epoch = epoch
        self.moment += 1
        self.passes = 0
        self._bar, self._bar_names = (0, 0), frozenset()

    def _follow_bar(self, row: Row) -> None:
        names = {value.name for value in row.values}
        count, total = self._bar
        self.is_late = row.total == total > count > row.count > count // 2
        if self.is_late:
            return
        if self._begins_again(row, names):
            self.passes += 1
            self.moment += self.now is None
        self._bar, self._bar_names = (row.count, row.total), names

    def _begins_again(self, row: Row, names: AbstractSet[str]) -> bool:
        """Whether this is another bar: it went back, counts to another total, or a full bar lost some of its names."""
        count, total = self._bar
        if not total:
            return False
        lost_names = count == total == row.count and names < self._bar_names
        return row.count < count or row.total != total or lost_names
