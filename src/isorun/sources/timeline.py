"""Rows of output become series: where in the training each row belongs, and the points of each metric.

`Clock` says where in the training the output is: the epoch, else the step, else the pass of a progress bar. Epochs win:
once the output has named an epoch, steps and bars no longer start a new moment. `SeenPoints` holds the values of one
metric, folded by moment: within a moment only the last value counts, so that the running values of a bar do not become
epochs of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

from isorun.sources import Found, merged
from isorun.sources.messages import plain
from isorun.sources.rows import (
    DOUBLED,
    EPOCH,
    SEVERAL_TRIALS,
    STEP,
    UNCLEAR_COMMA,
    LeftOut,
    MetricValue,
    Row,
    differ,
    has_split,
)
from isorun.sources.tables import CLASS_REPORT
from isorun.study.records import Note, Numbers, Series

__all__ = ["BESIDE_SETTINGS", "MOST_METRICS", "MOST_POINTS", "SEVERAL_PROCESSES", "Clock", "SeenPoints", "Timeline"]

MOST_POINTS = 1_000_000
MOST_METRICS = 1_000
MOST_POINTS_TOGETHER = 4_000_000
MOST_NAMES_IN_NOTE = 20
LONGEST_EXAMPLE = 200
_LONGEST_QUOTED = 1_000
SEVERAL_PROCESSES = "several processes print it, and nothing says which is which"
BESIDE_SETTINGS = "printed among settings before the training began"
_SEVERAL_LAYERS = "printed for several layers, not for epochs"
_SEVERAL_REPORTS = "several classification reports give it, and nothing says which is meant"
_ALL_UNCLEAR = frozenset([UNCLEAR_COMMA, SEVERAL_PROCESSES, SEVERAL_TRIALS, _SEVERAL_LAYERS, _SEVERAL_REPORTS])
_MOST_RANKS_IN_DOUBT = 16
_MOST_RANKS = 256


@dataclass(slots=True)
class SeenPoints:
    """The points of one metric, and what is remembered about the line it was seen in first and last.

    moment: the moment of the last point. last_row: the running number of the row that gave the last point.
    final: whether that row said that its values are final. cut: whether points were given up at the limit.
    table: the table of epochs that the last point is a row of (0 for none), table_from: where its points begin,
    mixed_up: whether its epochs went back. unclear: whether points of a table were left out for that.
    of_report: whether the points are from a classification report. without_step: how many points had no step, told_by:
    how the last of them was written.
    with_clock: whether the line of the last point named its epoch itself. set_aside: the step, time and value that such
    a line gave, where a line without an epoch has since given one. replaced: at how many moments that happened.
    changed: how often such a line gave another value, after_end: how often since the last line with its epoch; an equal
    value replaces nothing. retold: how often a line that names no epoch gave another value than the one before it,
    since a moment began; several: at how many moments before that one did.
    unnamed: how many points there were when the output first named an epoch, or a step where it names no epochs.
    followed_by: those that were named next after the last of them and after each later one. on_its_line: whether one of
    the later points stands beside its epoch or step. layer: the layer of a model that it was printed for. label: whose
    it is, as the line of its first point says.
    """

    origin: str
    example: str
    fraction: bool
    by_user: bool
    steps: Numbers = field(default_factory=Numbers)
    seconds: Numbers = field(default_factory=Numbers)
    values: Numbers = field(default_factory=Numbers)
    moment: float = -1
    last_row: int = 0
    final: bool = False
    cut: bool = False
    table: int = 0
    table_from: int = 0
    mixed_up: bool = False
    unclear: bool = False
    of_report: bool = False
    without_step: int = 0
    told_by: str = ""
    with_clock: bool = False
    set_aside: tuple[float, float, float] | None = None
    replaced: int = 0
    changed: int = 0
    after_end: int = 0
    retold: int = 0
    several: int = 0
    unnamed: int = 0
    followed_by: Numbers = field(default_factory=Numbers)
    on_its_line: bool = False
    layer: str = ""
    label: str = ""

    def follow_table(self, table: int, step: float | None) -> int:
        """Note which table the next point is from, and whether its epochs go back; how many points were left out."""
        if table == self.table:
            self.mixed_up = self.mixed_up or (step is not None and bool(self.steps) and step < self.steps[-1])
            return 0
        left_out = self.put_in_order()
        self.table, self.table_from = table, len(self.values)
        return left_out

    def put_in_order(self) -> int:
        """Put the points of a table that was sorted by something else in the order of its epochs.

        Epochs that begin again at the lowest one (folds below each other) stay as they are. Where an epoch stands there
        twice otherwise, nothing says which is the last: the points are left out. How many were is returned.
        """
        if not self.mixed_up:
            return 0
        self.mixed_up, start = False, self.table_from
        steps = self.steps[start:]
        order = sorted(range(len(steps)), key=steps.__getitem__)
        if len(set(steps)) == len(steps):
            for column in (self.steps, self.values):
                column[start:] = Numbers(column[start + place] for place in order)
            return 0
        if all(after >= before or after == steps[order[0]] for before, after in pairwise(steps)):
            return 0
        for column in (self.steps, self.seconds, self.values):
            del column[start:]
        self.unclear, self.moment = True, -1
        return len(steps)

    def repeats(self, value: float, form: str) -> bool:
        """Whether a value without a step is told once more: by a bar or a table, say, and then by the script itself."""
        told_by, self.told_by = self.told_by, form
        return bool(self.without_step) and told_by != form and not differ(value, self.values[-1])

    def put(self, moment: float, step: float | None, seconds: float, value: float, full: bool, *, clock: bool) -> bool:
        """Add a point, or replace the last one when it is of the same moment or there is no room; whether added.

        full: there is no room for any further point. clock: the line says itself where in the training it stands.
        """
        count = len(self.values)
        if count and (moment == self.moment or full or count >= MOST_POINTS):
            self.cut = self.cut or moment != self.moment
            if clock != self.with_clock or self.set_aside is not None:
                self._meet_without_clock(clock, is_another=differ(value, self.values[-1]))
            elif not clock:
                self.retold += differ(value, self.values[-1])
            self._replace_last(step, seconds, value)
            self.moment = moment
            return False
        self.several += self.retold > 0
        self.with_clock, self.set_aside, self.retold = clock, None, 0
        after_all = self.steps[-1] + 1 if count else 0
        self.steps.append(after_all if step is None else step)
        self.without_step += step is None and not (self.table and count)  # a table's last row is after its epochs
        self.seconds.append(seconds)
        self.values.append(value)
        self.moment = moment
        return True

    def _replace_last(self, step: float | None, seconds: float, value: float) -> None:
        self.steps[-1] = self.steps[-1] if step is None else step
        self.seconds[-1] = seconds
        self.values[-1] = value

    def _meet_without_clock(self, clock: bool, *, is_another: bool) -> None:
        """Keep what a line with its epoch gave, until it is known whether this line's is the value after the end."""
        if clock:
            self.with_clock, self.set_aside = True, None
            return
        if self.with_clock:
            self.set_aside = self.steps[-1], self.seconds[-1], self.values[-1]
            self.with_clock = False
            self.replaced += 1
            self.after_end = 0
        self.changed += is_another
        self.after_end += is_another

    def after_the_last(self) -> float | None:
        """The value that came after the last epoch and is none of its own; that epoch gets its own value back.

        Lines without an epoch that come in other epochs, too, belong to the epochs: then there is none.
        """
        if self.set_aside is None or self.replaced > 1:
            return None
        value = self.values[-1]
        self.steps[-1], self.seconds[-1], self.values[-1] = self.set_aside
        self.set_aside, self.replaced = None, 0
        return value

    def place_the_unnamed(self, *, in_epochs: bool, lines_close: bool) -> None:
        """Give points from before the first epoch's name their place: steps and epochs are no one clock.

        Where the line of an epoch comes after its values, each belongs to the epoch that is named next; so with steps.
        Else what came before the first epoch is what was so before the training. A metric that was never seen in an
        epoch keeps its steps.
        """
        early = self.unnamed - 1
        if not self.followed_by or len(self.values) == self.unnamed or (early and not in_epochs):
            return
        closes = lines_close and not self.on_its_line and len(self.followed_by) == len(self.values) - early
        if not (closes or in_epochs):
            return
        for column in (self.steps, self.seconds, self.values):
            del column[:early]
        if closes:
            self.steps[:] = self.followed_by
            self.without_step = 0
        else:
            self.steps[0] = 0.0 if self.followed_by[0] > 0 else self.followed_by[0] - 1
        self.followed_by = Numbers()

    def series(self) -> Series:
        """The points as a record keeps them, without a copy: there may be millions."""
        return Series(self.steps, self.seconds, self.values)


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
        self._doubled: dict[str, int] = {}  # the row that last gave two values for a name: none of them was taken
        self._too_many_names = False
        self._kept: dict[str, float] = {}
        self._told_rows = 0
        self._unnamed: list[SeenPoints] = []
        self._named_by = ""
        self._first_named_has_values = False
        self._last_named_row = self._last_value_row = 0
        self._layer = ""
        self._told_apart: dict[str, str] = {}  # names that lines give for several classes or models, and how

    def add(self, row: Row, seconds: float, line: str, source: str) -> None:
        """Take in one row. source: the start of its metrics' origins ("stdout")."""
        if row.above is not None:
            self.add(row.above, seconds, line, source)
        self._clock.restarts += row.restarts
        self._rows += 1
        if row.layer and not row.values:
            self._layer = row.layer
        for value in row.doubtful:
            self._remember_not_taken(value, line)
        for item in row.left_out:
            self._leave_out(item, line)
        if not row.table:
            clock = self._clock
            before = clock.moment
            clock.follow(row)
            if clock.restarts and not self._points:
                clock.restarts = 0  # a loop that only looked at the data went before
            if row.epoch is not None or row.step is not None:
                self._last_clock_row = self._rows
                if clock.moment != before:
                    self._enter(row, before)
        if row.values and not (self._clock.is_late and row.total):
            self._put_all(row, seconds, line, source)

    def _leave_out(self, item: LeftOut, line: str) -> None:
        if item.why in _ALL_UNCLEAR and len(self._unclear) < MOST_METRICS:
            self._unclear.add(item.name)
        if item.why == DOUBLED and len(self._doubled) < MOST_METRICS:
            self._doubled[item.name] = self._rows
        names = self._left_out.setdefault(item.why, {})
        if len(names) < MOST_NAMES_IN_NOTE:
            names.setdefault(item.name, _quoted(line))

    def _enter(self, row: Row, before: int) -> None:
        """An epoch begins, or a step where there are no epochs. before: the moment until now."""
        clock = self._clock
        self._last_named_row = self._rows
        named_by = EPOCH if row.epoch is not None else STEP
        if named_by != self._named_by:
            self._named_by = named_by
            self._begin_naming(row)
        if self._unnamed and clock.now is not None:
            for item in self._unnamed:
                if item.moment == before and len(item.followed_by) < MOST_POINTS:
                    item.followed_by.append(clock.now)

    def _begin_naming(self, row: Row) -> None:
        """The output names a step or an epoch for the first time: what it printed before was placed without one."""
        self._first_named_has_values = bool(row.values)
        self._unnamed = [item for item in self._points.values() if not (item.table or item.of_report)]
        for item in self._unnamed:
            item.unnamed, item.on_its_line = len(item.values), False
            item.moment = self._clock.moment - 1
            del item.followed_by[:]

    def looking_back(self, row: Row) -> Row:
        """The row without the metrics that have values: a line that looks back at the best says them again.

        They are no further points, but what the training ends with: the model of that round is the one it keeps.
        """
        self._kept = {value.name: value.value for value in row.values if value.name in self._points}
        row.values = [value for value in row.values if value.name not in self._points]
        if not row.values:
            row.epoch = row.step = None
        return row

    def take_back(self, names: AbstractSet[str]) -> None:
        """Forget metrics that were none after all; what the user's own patterns read of them stays."""
        for name in [name for name in names if name in self._points and not self._points[name].by_user]:
            self._count -= len(self._points.pop(name).values)

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
        outdated = {name for name, row in self._doubled.items() if name in self._points and self._is_before(name, row)}
        for name in self._unclear | outdated:
            if name in self._points and not self._points[name].by_user:
                del self._points[name]
        points = {name: item for name, item in self._points.items() if item.values}
        ends = {name: end for name, item in points.items() if (end := item.after_the_last()) is not None}
        results = {name: item.values[-1] for name, item in points.items() if self._is_result(item)}
        closes, in_epochs = self._lines_close, self._clock.epoch is not None
        for item in self._unnamed:
            item.place_the_unnamed(in_epochs=in_epochs, lines_close=closes)
        return Found(
            series={name: item.series() for name, item in points.items()},
            results=results | ends | {name: value for name, value in self._kept.items() if name in points},
            origins={name: item.origin for name, item in points.items()},
            examples={name: item.example for name, item in points.items()},
            notes=(*notes, *self._notes()),
        )

    def _is_before(self, name: str, row: int) -> bool:
        """Whether the last value of a metric is older than a row: what it has is not what it ended with."""
        return self._points[name].last_row < row

    @property
    def _lines_close(self) -> bool:
        """Whether a line that names an epoch comes after what belongs to it."""
        return self._first_named_has_values or self._last_value_row <= self._last_named_row

    def _is_evaluation(self, row: Row) -> bool:
        clock = self._clock
        is_later_bar = row.total > 0 and clock.passes > 0 and row.epoch is None and not row.split
        return is_later_bar and clock.is_headed and not row.by_user

    def _put_all(self, row: Row, seconds: float, line: str, source: str) -> None:
        is_evaluation = row.total > 0 and self._is_evaluation(row)
        self._last_value_row = self._rows
        moment, step = self._moment_of(row)
        clock = not row.total and (row.epoch is not None or row.step is not None)  # a bar's values are running ones
        if self._unnamed and (row.epoch is not None or (row.step is not None and self._clock.epoch is None)):
            self._stand_on_their_line(row)
        all_points, by_user, final = self._points, row.by_user, row.final or is_evaluation
        if self._kept:
            self._kept = {
                name: kept for name, kept in self._kept.items() if all(name != one.name for one in row.values)
            }
        for value in row.values:
            name, number, _, fraction = value
            if is_evaluation:
                name = self._evaluation_name(name)
            name = self._name_by_label(name, row.label) if row.label else name
            points = all_points.get(name)
            if points is not None and (points.of_report or value.form == CLASS_REPORT):
                name = self._name_beside_report(name, value, points)
                points = all_points.get(name)
                if points is not None and points.of_report and (step is None or moment == points.moment):
                    self._meet_report(name, number, points, line)
                    continue
            if step is None and self._layer and points is not None and points.layer not in ("", self._layer):
                self._leave_out(LeftOut(name, _SEVERAL_LAYERS), line)
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
            # What follows a bar's running value is no other.
            points.retold = -1 if row.total or row.table else points.retold
            if points.fraction != fraction:
                self._mixed.add(name)

    def _evaluation_name(self, name: str) -> str:
        number = "" if self._clock.passes == 1 else str(self._clock.passes)
        return name if has_split(name) else f"eval{number}_{name}"

    def _name_by_label(self, name: str, label: str) -> str:
        """The name of a value that a line says is of a class or a model ("LOC: precision: 92%").

        It has that in it where another line gave the name for the whole: then it is a part of that (`precision[LOC]`).
        Where all lines say whose it is, none is the whole: they are metrics beside each other (`PGD_acc`, `clean_acc`).
        """
        known = self._points.get(name)
        if name not in self._told_apart:
            if known is None or known.by_user or known.label == label:
                return name
            self._told_apart[name] = "{label}_{name}" if known.label else "{name}[{label}]"
            if known.label:
                self._points[_told(self._told_apart[name], name, known.label)] = self._points.pop(name)
        return _told(self._told_apart[name], name, label)

    def _stand_on_their_line(self, row: Row) -> None:
        for value in row.values:
            if (points := self._points.get(value.name)) is not None:
                points.on_its_line = True

    def _meet_report(self, name: str, number: float, points: SeenPoints, line: str) -> None:
        """Another classification report gives a value of the same moment: nothing says which of them is meant."""
        if differ(number, points.values[-1]):
            self._leave_out(LeftOut(name, _SEVERAL_REPORTS), line)

    def _name_beside_report(self, name: str, value: MetricValue, points: SeenPoints) -> str:
        """The name of a value where a classification report has the same one: the report's, rounded, is another."""
        if (value.form == CLASS_REPORT) == points.of_report:
            return name
        beside = f"report_{name}"
        if not points.of_report:
            return beside
        self._points[beside] = self._points.pop(name)
        return name

    def _moment_of(self, row: Row) -> tuple[float, float | None]:
        """Moments of tables are negative, so that they never meet those of the clock; -1 stands for "none yet".

        Each epoch is one of its own, also a part of one: transformers tells 0.25, 0.5, 0.75.
        """
        if row.table and row.epoch is not None:
            return -2 - row.epoch, row.epoch
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
            f"{source}: {value.form}",
            plain(line[:_LONGEST_QUOTED]).strip()[:LONGEST_EXAMPLE],
            value.fraction,
            row.by_user,
        )
        points.of_report, points.layer = value.form == CLASS_REPORT, self._layer
        points.label = row.label
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
        notes += [
            note
            for name, item in items
            if (note := _note_on_moments(name, item, is_result=self._is_result(item))) is not None
        ]
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
                if name in self._points and why != BESIDE_SETTINGS
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


def _told(form: str, name: str, label: str) -> str:
    """The name of a metric of a class or a model."""
    return form.format(name=name, label=label if form[-1] == "]" else label.replace(" ", "_"))


def _quoted(line: str) -> str:
    """The start of a line as a note shows it: what moves a cursor or colours a word is no part of what was said."""
    return " ".join(plain(line[:_LONGEST_QUOTED]).split())[:80]


def _note_on_moments(name: str, item: SeenPoints, *, is_result: bool) -> Note | None:
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
    if item.several + (item.retold > 0) > 1 and has_split(name) and not name.startswith("train"):  # of folds, say
        message = "was printed with several values in one epoch or step, and so in others: the last of each counts"
        return Note("stdout.several", f"metric {name!r} {message}")
    if item.retold > 0 and is_result:
        others = "another value" if item.retold == 1 else f"{item.retold} other values"
        message = f"was printed with {others} after the last epoch: the last is its final one"
        return Note("stdout.after-end", f"metric {name!r} {message}")
    return None


class Ranks:
    """Lines that begin with a number: those of several processes, or counted ones; which, the whole output says.

    Processes have the numbers from 0 on without a gap, and all begin with the same epoch. So may batches that are
    counted anew in each epoch: it is sure only if a number went back within an epoch, which no count does, or if every
    line has one, and several of them printed a line that tells nothing. Where it is not sure, nothing is read.
    """

    def __init__(self) -> None:
        self._by_number: dict[int, Timeline] = {}
        self._first_clocks: dict[int, tuple[float | None, float | None]] = {}
        self._last: tuple[int, tuple[float | None, float | None]] = (0, (None, None))
        self._went_back = False
        self._speakers: set[int] = set()
        self.on_every_line = True
        self.are_counts = False

    @property
    def seen(self) -> bool:
        """Whether a line that names its epoch or step has begun with a number."""
        return bool(self._by_number)

    def hear(self, number: int) -> None:
        """Note who printed a line without metrics."""
        if len(self._speakers) < 2:
            self._speakers.add(number)

    def add(self, number: int, row: Row, seconds: float, line: str) -> None:
        """Take in a row of the line behind its number."""
        if number not in self._by_number and self._is_a_count(row):
            self.are_counts, self.on_every_line = True, False
            self._by_number.clear()
            return
        self._by_number.setdefault(number, Timeline()).add(row, seconds, line, "stdout")
        if row.has_clock:
            clock = (row.epoch, row.step)
            self._first_clocks.setdefault(number, clock)
            self._went_back = self._went_back or (self._last[1] == clock and number < self._last[0])
            self._last = (number, clock)

    def _is_a_count(self, row: Row) -> bool:
        """Whether a new number is surely none of a process: there are too many, or it begins with a later epoch."""
        first = next(iter(self._first_clocks.values()), None)
        is_later = row.has_clock and first is not None and (row.epoch, row.step) != first
        return is_later or len(self._by_number) >= _MOST_RANKS

    def told_apart(self, found: Found) -> Found:
        """What was found, with the metrics that several processes printed by process, or without them."""
        count = len(self._by_number)
        are_contiguous = count > 1 and set(self._by_number) == set(range(count)) == set(self._first_clocks)
        if not are_contiguous or len(set(self._first_clocks.values())) > 1:
            return found
        is_sure = self._went_back or (self.on_every_line and len(self._speakers) > 1)
        if not is_sure and count > _MOST_RANKS_IN_DOUBT:
            return found
        parts = {number: timeline.found() for number, timeline in sorted(self._by_number.items())}
        shared = {name for number, part in parts.items() if number for name in part.series} & set(found.series)
        shared = {name for name in shared if not found.origins[name].startswith("pattern ")}
        if not shared:
            return found
        left = found.without(shared)
        if not is_sure:
            names = ", ".join(sorted(shared)[:MOST_NAMES_IN_NOTE])
            return replace(
                left, notes=(*left.notes, Note("stdout.left-out", f"left out: {names}: {SEVERAL_PROCESSES}"))
            )
        notes = [note for note in left.notes if note.code != "stdout.restart"]
        notes += [note for note in parts[0].notes if note.code == "stdout.restart"]
        apart = [part.only(shared).renamed(partial(_of_rank, number=number)) for number, part in parts.items()]
        return replace(merged(left, *apart), notes=tuple(notes))


def _of_rank(name: str, number: int) -> str:
    return f"{name}@rank{number}" if number else name


class Clock:
    """Follows the rows of the output.

    moment: a number that changes when an epoch, step or bar begins. epoch, step: the current ones, None before the
    first. restarts: how often the epochs began again at a lower number (folds, several trainings in one run).
    is_late: the last row is one of a bar that has since gone on: lines of several processes may change places.
    is_headed: bars below belong to the current epoch or step; a step with values beside it says nothing of bars.
    """

    def __init__(self) -> None:
        self.moment = 0
        self.epoch: float | None = None
        self.step: float | None = None
        self.restarts = 0
        self.passes = 0
        self.is_late = False
        self.is_headed = False
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
            if (
                not row.values
            ):  # a heading ("Iteration 2"): the bar below it is that of the step, as that of an epoch is
                self._await_bar()
            self.is_headed = not row.values
        if row.total and row.values and row.epoch is None and not row.split:
            self._follow_bar(row)

    def _enter_epoch(self, epoch: float) -> None:
        if epoch == self.epoch:
            return
        self.restarts += self.epoch is not None and epoch < self.epoch
        self.epoch = epoch
        self.is_headed = True
        self.moment += 1
        self._await_bar()

    def _await_bar(self) -> None:
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
