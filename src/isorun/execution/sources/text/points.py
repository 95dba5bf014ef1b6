"""The values of one metric while a run prints them: compact, bounded, and folded by moment.

A moment is an epoch, a step, or one pass of a progress bar. Within a moment only the last value counts, so that the
running values of a bar do not become epochs of their own.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

from isorun.study.records import Series

__all__ = ["MOST_POINTS", "Points"]

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
        return Series(tuple(self.steps), tuple(self.seconds), tuple(self.values))
