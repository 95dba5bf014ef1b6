"""What one line of output says: some named values, and where in the training they belong.

Trainings print lines of a few shapes, millions of times. A `Template` is what was learned from one of them: the same
line with other digits says the same things with other numbers, which stand at the same places.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from isorun.sources.numbers import percentage

__all__ = ["COUNT", "EPOCH", "STEP", "TOTAL", "LeftOut", "Place", "Row", "Template", "Value", "shape_of"]

Place = tuple[int, int]

# Keys of `Row.places` that are no names of metrics: no name has a line end in it.
EPOCH: Final = "\nepoch"
STEP: Final = "\nstep"
COUNT: Final = "\ncount"
TOTAL: Final = "\ntotal"


class Value(NamedTuple):
    """One named value. form: how it was written ("name: value"). fraction: whether the text said % or count/total."""

    name: str
    value: float
    form: str
    fraction: bool = False


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A name with a number that was not taken, and why: a wrong value is worse than none."""

    name: str
    why: str


@dataclass(slots=True)
class Row:
    """The values of one line, filled while the line is read.

    epoch, step: given on this very line, else None. count, total: a progress counter ("100/390"); total 0 without one.
    split: the split of the data the line speaks of ("train"), if any. table: the row has its own clock and leaves the
    training's alone. final: the line says that its values are final. doubtful: names that look like values but count
    only in company. by_user: found by the user's own pattern, which has the last word on its names.
    lines: the lines above that the values stand in, when they are not in the last one read. left_out: what was seen
    and not taken. places: where in the line the numbers stand, by the names of their metrics, as far as that is known.
    numbers: where in the line any number stands, taken or not. by_value: what was taken depends on more than the shape
    of the line.
    """

    values: list[Value] = field(default_factory=list)
    doubtful: list[Value] = field(default_factory=list)
    epoch: float | None = None
    step: float | None = None
    count: int = 0
    total: int = 0
    split: str = ""
    table: bool = False
    final: bool = False
    by_user: bool = False
    lines: str = ""
    left_out: list[LeftOut] = field(default_factory=list)
    places: dict[str, Place] = field(default_factory=dict)
    numbers: list[Place] = field(default_factory=list)
    by_value: bool = False

    @property
    def has_clock(self) -> bool:
        """Whether the line itself says which epoch or step it belongs to."""
        return self.epoch is not None or self.step is not None

    def shift(self, characters: int) -> None:
        """Move all places to the right: the row was read from the end of a line."""
        if characters:
            self.places = {name: (start + characters, end + characters) for name, (start, end) in self.places.items()}
            self.numbers = [(start + characters, end + characters) for start, end in self.numbers]

    def settle(self) -> None:
        """Take the doubtful values too when the line is about a metric, an epoch or a step.

        An epoch or step that is not finite is none.
        """
        self.epoch = None if self.epoch is None or not math.isfinite(self.epoch) else self.epoch
        self.step = None if self.step is None or not math.isfinite(self.step) else self.step
        if self.values or self.has_clock:
            self.values += self.doubtful
            self.doubtful = []
        if len(self.values) > 1:
            self._drop_doubled()

    def _drop_doubled(self) -> None:
        """Two different values of one name on one line: which of them is meant is not said."""
        self.by_value = self.by_value or len({value.name for value in self.values}) < len(self.values)
        first: dict[str, float] = {}
        doubled = {
            value.name for value in self.values if _differ(first.setdefault(value.name, value.value), value.value)
        }
        if doubled:
            self.values = [value for value in self.values if value.name not in doubled]
            self.left_out += [LeftOut(name, "two values of it on one line") for name in sorted(doubled)]


def _differ(one: float, other: float) -> bool:
    return one != other and not (math.isnan(one) and math.isnan(other))


_ANY_DIGIT_IS_ZERO: Final = bytes.maketrans(b"123456789", b"000000000")
_DIGITS: Final = re.compile(r"[0-9]+")
_LONGEST_NUMBER: Final = 40


def shape_of(line: str) -> bytes:
    """The line with every digit written as 0: lines of one shape are read alike. Bytes, which are translated faster."""
    return line.encode("utf-8", "surrogatepass").translate(_ANY_DIGIT_IS_ZERO)


@dataclass(frozen=True, slots=True)
class Template:
    """How lines of one shape are read. names: digits that are part of names, which other lines must share."""

    values: tuple[tuple[Value, Place], ...]
    clock: tuple[tuple[str, Place], ...]
    names: tuple[tuple[Place, str], ...]
    filled: Row

    @classmethod
    def learned(cls, line: str, row: Row) -> Template | None:
        """What the row of a line teaches about its shape; None when that is not all there is to know."""
        wanted = [name for name, given in _clock_of(row).items() if given]
        names = [*wanted, *(value.name for value in row.values)]
        if row.by_value or row.table or any(name not in row.places for name in names):
            return None
        if any(end - start > _LONGEST_NUMBER or "," in line[start:end] for start, end in row.places.values()):
            return None
        template = cls(
            tuple((value, row.places[value.name]) for value in row.values),
            tuple((name, row.places[name]) for name in wanted),
            tuple(_digits_of_names(line, row.numbers)),
            Row(split=row.split, final=row.final),
        )
        again = template.row(line)
        return template if again is not None and _same(again, row) else None

    def row(self, line: str) -> Row | None:
        """The row of another line of this shape, filled anew at each call; None when it has another name in it."""
        for (start, end), text in self.names:
            if line[start:end] != text:
                return None
        row = self.filled
        for name, (start, end) in self.clock:
            number = float(line[start:end])
            if not math.isfinite(number):
                return None
            if name is EPOCH:
                row.epoch = number
            elif name is STEP:
                row.step = number
            elif name is COUNT:
                row.count = int(number)
            else:
                row.total = int(number)
        row.values = [
            Value(name, percentage(line[start:end]) if form[-1] == "%" else float(line[start:end]), form, fraction)
            for (name, _, form, fraction), (start, end) in self.values
        ]
        return row


def _digits_of_names(line: str, numbers: list[Place]) -> Iterator[tuple[Place, str]]:
    """The digits that belong to no number: "acc@5", "layer3"."""
    for match in _DIGITS.finditer(line):
        if not any(start <= match.start() and match.end() <= end for start, end in numbers):
            yield match.span(), match[0]


def _clock_of(row: Row) -> dict[str, bool]:
    return {EPOCH: row.epoch is not None, STEP: row.step is not None, COUNT: row.total > 0, TOTAL: row.total > 0}


def _same(one: Row, other: Row) -> bool:
    """Whether two rows of one line say the same, as far as a template does."""
    first, second = (
        (row.values, row.epoch, row.step, row.count, row.total, row.split, row.final) for row in (one, other)
    )
    return repr(first) == repr(second)
