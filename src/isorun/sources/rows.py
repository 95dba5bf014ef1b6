"""What one line of output says: some named values, and where in the training they belong."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

__all__ = ["Row", "Value"]


@dataclass(frozen=True, slots=True)
class Value:
    """One named value. form: how it was written ("name: value"). fraction: whether the text said % or count/total."""

    name: str
    value: float
    form: str
    fraction: bool = False


@dataclass(slots=True)
class Row:
    """The values of one line, filled while the line is read.

    epoch, step: given on this very line, else None. count, total: a progress counter ("100/390"); total 0 without one.
    split: the split of the data the line speaks of ("train"), if any. table: the row has its own clock and leaves the
    training's alone. final: the line says that its values are final. doubtful: names that look like values but count
    only in company. by_user: found by the user's own pattern, which has the last word on its names.
    lines: the lines above that the values stand in, when they are not in the last one read.
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
