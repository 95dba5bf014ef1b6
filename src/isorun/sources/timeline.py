"""Rows of output in, series of metrics out.

`Clock` says where in the training the output is: the epoch, else the step, else the pass of a progress bar. Epochs win:
once the output has named an epoch, steps and bars no longer start a new moment. `Points` holds the values of one
metric, folded by moment: within a moment only the last value counts, so that the running values of a bar do not
become epochs of their own.
"""

from __future__ import annotations

from array import array
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from isorun.sources.base import Found
from isorun.sources.names import has_split
from isorun.sources.rows import Row, Value
from isorun.study.records import Note, Series

__all__ = ["MOST_METRICS", "MOST_POINTS", "Clock", "Points", "Timeline"]

MOST_METRICS = 1_000
MOST_POINTS_TOGETHER = 4_000_000
MOST_NAMES_IN_NOTE = 20
EXAMPLE_LENGTH = 200


class Timeline:
    """Gathers the rows of one run; memory is bounded however much the run prints.

    A bar that begins again within an epoch is an evaluation (Keras `evaluate`): its names get the prefix "eval_", a
    third bar's "eval2_", so that it does not overwrite what the epoch's own bar said.
    """

    def __init__(self) -> None:
        self._clock = Clock()
        self._points: dict[str, Points] = {}
        self._rows = 0
        self._last_clock_row = 0
        self._count = 0
        self._not_taken: dict[str, str] = {}
        self._left_out: dict[str, dict[str, str]] = {}
        self._mixed: set[str] = set()
        self._too_many_names = False

    def add(self, row: Row, seconds: float, line: str, source: str) -> None:
        """Take in one row. source: the start of its metrics' origins ("stdout")."""
        self._rows += 1
        for value in row.doubtful:
            self._remember_not_taken(value, line)
        for item in row.left_out:
            names = self._left_out.setdefault(item.why, {})
            if len(names) < MOST_NAMES_IN_NOTE:
                names.setdefault(item.name, " ".join(line.split())[:80])
        if not row.table:
            self._clock.follow(row)
            if row.has_clock:
                self._last_clock_row = self._rows
        if row.values:
            self._put_all(row, seconds, line, source)

    def found(self, notes: tuple[Note, ...] = ()) -> Found:
        """All that was gathered."""
        points = {name: item for name, item in self._points.items() if item.values}
        return Found(
            series={name: item.series() for name, item in points.items()},
            results={name: item.values[-1] for name, item in points.items() if self._is_result(item)},
            origins={name: item.origin for name, item in points.items()},
            examples={name: item.example for name, item in points.items()},
            notes=(*notes, *self._notes()),
        )

    def _is_evaluation(self, row: Row) -> bool:
        clock = self._clock
        is_later_bar = row.total > 0 and clock.passes > 0 and row.epoch is None and not row.split
        return is_later_bar and clock.now is not None and not row.by_user

    def _put_all(self, row: Row, seconds: float, line: str, source: str) -> None:
        is_evaluation = self._is_evaluation(row)
        moment, step = self._moment_of(row)
        for value in row.values:
            name = self._evaluation_name(value.name) if is_evaluation else value.name
            points = self._points.get(name)
            if points is None or points.by_user != row.by_user:
                points = self._points_of(name, value, row, line, source)
            if points is None:
                continue
            self._count += points.put(moment, step, seconds, value.value, full=self._count >= MOST_POINTS_TOGETHER)
            points.last_row = self._rows
            points.final = row.final or is_evaluation
            if points.fraction != value.fraction:
                self._mixed.add(name)

    def _evaluation_name(self, name: str) -> str:
        number = "" if self._clock.passes == 1 else str(self._clock.passes)
        return name if has_split(name) else f"eval{number}_{name}"

    def _moment_of(self, row: Row) -> tuple[int, float | None]:
        """Moments of tables are negative, so that they never meet those of the clock; -1 stands for "none yet"."""
        if row.table and row.epoch is not None:
            return -2 - int(row.epoch), row.epoch
        if self._clock.now is None and not row.total:
            self._clock.moment += 1
        return self._clock.moment, self._clock.now

    def _points_of(self, name: str, value: Value, row: Row, line: str, source: str) -> Points | None:
        """New points for a name, also in place of what was found by itself before the user's pattern did."""
        known = self._points.get(name)
        if known is not None and known.by_user:
            return None
        if known is None and len(self._points) >= MOST_METRICS:
            self._too_many_names = True
            return None
        self._count -= len(known.values) if known else 0
        points = Points(f"{source}: {value.form}", line.strip()[:EXAMPLE_LENGTH], value.fraction, row.by_user)
        self._points[name] = points
        return points

    def _is_result(self, points: Points) -> bool:
        """Final values come after the last epoch, and either say so or stand alone."""
        after_the_last_epoch = points.last_row > self._last_clock_row
        return after_the_last_epoch and (points.final or len(points.values) == 1)

    def _remember_not_taken(self, value: Value, line: str) -> None:
        """Whole numbers in passing are counts and settings, not worth a note."""
        if len(self._not_taken) < MOST_NAMES_IN_NOTE and not value.value.is_integer():
            self._not_taken.setdefault(value.name, " ".join(line.split())[:80])

    def _notes(self) -> list[Note]:
        notes = [
            Note("stdout.limit", f"metric {name!r} has more than {MOST_POINTS:,} values; later ones replaced the last")
            for name, item in self._points.items()
            if item.cut
        ]
        if self._too_many_names:
            notes.append(Note("stdout.names", f"the output has more than {MOST_METRICS:,} names; only these are kept"))
        notes += [
            Note("stdout.scale", f"metric {name!r} was printed both as a percentage or count and as a plain number")
            for name in sorted(self._mixed)
        ]
        if self._clock.restarts:
            message = (
                f"the epochs began again {self._clock.restarts} times; their values follow each other in the series"
            )
            notes.append(Note("stdout.restart", message))
        return [*notes, *self._left_out_notes(), *self._not_taken_note()]

    def _left_out_notes(self) -> list[Note]:
        notes = []
        for why, names in self._left_out.items():
            left = [name for name in names if name not in self._points]
            if left:
                message = f"left out: {', '.join(left)}: {why} (first in {names[left[0]]!r})"
                notes.append(Note("stdout.left-out", message))
        return notes

    def _not_taken_note(self) -> list[Note]:
        left = [name for name in self._not_taken if name not in self._points]
        if not left:
            return []
        message = (
            f"not read as metrics: {', '.join(left)} (first in {self._not_taken[left[0]]!r}); name them by a pattern"
        )
        return [Note("stdout.not-taken", message)]


class Clock:
    """Follows the rows of the output.

    moment: a number that changes when an epoch, step or bar begins. epoch, step: the current ones, None before the
    first. restarts: how often the epochs began again at a lower number (folds, several trainings in one run).
    """

    def __init__(self) -> None:
        self.moment = 0
        self.epoch: float | None = None
        self.step: float | None = None
        self.restarts = 0
        self.passes = 0
        self._bar = (0, 0)
        self._bar_names: AbstractSet[str] = frozenset()

    @property
    def now(self) -> float | None:
        """The step that values get now; None when the output has named neither epochs nor steps."""
        return self.epoch if self.epoch is not None else self.step

    def follow(self, row: Row) -> None:
        """Take in where the row says the training is."""
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


MOST_POINTS = 1_000_000


def _doubles() -> array[float]:
    return array("d")


@dataclass(slots=True)
class Points:
    """The points of one metric, and what is remembered about the line it was seen in first and last.

    moment: the moment of the last point. last_row: the running number of the row that gave the last point.
    final: whether that row said that its values are final. cut: whether points were given up at the limit.
    """

    origin: str
    example: str
    fraction: bool
    by_user: bool
    steps: array[float] = field(default_factory=_doubles)
    seconds: array[float] = field(default_factory=_doubles)
    values: array[float] = field(default_factory=_doubles)
    moment: int = -1
    last_row: int = 0
    final: bool = False
    cut: bool = False

    def put(self, moment: int, step: float | None, seconds: float, value: float, *, full: bool) -> bool:
        """Add a point, or replace the last one when it is of the same moment or there is no room; whether added."""
        if self.values and (moment == self.moment or full or len(self.values) >= MOST_POINTS):
            self.cut = self.cut or moment != self.moment
            self._replace_last(step, seconds, value)
            added = False
        else:
            self.steps.append(float(len(self.values)) if step is None else step)
            self.seconds.append(seconds)
            self.values.append(value)
            added = True
        self.moment = moment
        return added

    def _replace_last(self, step: float | None, seconds: float, value: float) -> None:
        self.steps[-1] = self.steps[-1] if step is None else step
        self.seconds[-1] = seconds
        self.values[-1] = value

    def series(self) -> Series:
        """The points as a record keeps them."""
        return Series(self.steps, self.seconds, self.values)
