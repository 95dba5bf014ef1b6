"""What one line of output says: some named values, and where in the training they belong."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

__all__ = ["LeftOut", "Row", "Value"]


@dataclass(frozen=True, slots=True)
class Value:
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
    and not taken.
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

    @property
    def has_clock(self) -> bool:
        """Whether the line itself says which epoch or step it belongs to."""
        return self.epoch is not None or self.step is not None

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
        first: dict[str, float] = {}
        doubled = {
            value.name for value in self.values if _differ(first.setdefault(value.name, value.value), value.value)
        }
        if doubled:
            self.values = [value for value in self.values if value.name not in doubled]
            self.left_out += [LeftOut(name, "two values of it on one line") for name in sorted(doubled)]


def _differ(one: float, other: float) -> bool:
    return one != other and not (math.isnan(one) and math.isnan(other))
