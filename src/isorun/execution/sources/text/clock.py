"""Where in the training the output is: the epoch, else the step, else the pass of a progress bar.

Epochs win: once the output has named an epoch, steps and bars no longer start a new moment.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from isorun.execution.sources.text.rows import Row

__all__ = ["Clock"]


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
