"""What every store promises."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from isorun.errors import InputError, known_names
from isorun.store.frame import Frame, FrameParts, assemble
from isorun.store.group_statistics import GroupStatistics, RunValue, check_request, group_statistics
from isorun.study.records import Note, RunRecord

__all__ = ["AbstractStore", "Claim"]


class Claim(abc.ABC):
    """The right to execute one cell, held until `release` or the death of the process."""

    cell_id: str
    attempt: int

    @abc.abstractmethod
    def release(self) -> None:
        """Give the right back."""


class AbstractStore(abc.ABC):
    """Keeps records.

    After any fault and one reopening there is exactly one finished record for every cell whose `finish` returned,
    none that was never given, and an unacknowledged one appears once or not at all.
    """

    @abc.abstractmethod
    def claim(self, cell_id: str) -> Claim | None:
        """The right to execute the cell; None when it is finished, or somebody else is executing it now.

        Each claim carries an attempt number higher than any before it.
        """

    @abc.abstractmethod
    def run_folder(self, claim: Claim) -> Path:
        """A new, empty folder for this execution."""

    @abc.abstractmethod
    def finish(self, record: RunRecord) -> None:
        """Make the record durable. When this returns the record survives a crash of the machine.

        Finishing the same record twice is nothing; a different record for a finished cell raises StoreConflict.
        """

    @abc.abstractmethod
    def finished_cells(self) -> set[str]:
        """The ids of the cells that have a finished record."""

    @abc.abstractmethod
    def records(self, cell_ids: Iterable[str] | None = None) -> Sequence[RunRecord]:
        """All records, failed attempts included, or those of the given cells; ordered by cell id and attempt."""

    @abc.abstractmethod
    def frame_parts(self, metrics: frozenset[str] | None) -> FrameParts:
        """All runs, and their series of the given metrics or of all, packed as they are."""

    @abc.abstractmethod
    def run_values(self, metric: str, point: str) -> list[RunValue]:
        """The values of a metric of every finished run: at least the point of its series that is asked for."""

    @abc.abstractmethod
    def metric_names(self) -> set[str]:
        """The metrics that any run recorded, as a series or as a final value."""

    @abc.abstractmethod
    def notes(self) -> tuple[Note, ...]:
        """What a reader of this store should know: records that were set aside."""

    @abc.abstractmethod
    def pack(self) -> int:
        """Move what waits in the inbox into its final place; how many records were moved.

        A record that is damaged or contradicts a finished one is set aside, never deleted; everything else is moved,
        and then StoreError or StoreConflict names what was set aside.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Let go of files and locks."""

    def frame(self, metrics: Sequence[str] | None = None) -> Frame:
        """The points of all runs as columns: the given metrics, or all."""
        parts = self.frame_parts(None if metrics is None else frozenset(metrics))
        found = set(parts.series.metrics)
        for metric in metrics or ():
            if metric not in found:
                raise self._no_such_metric(metric)
        return assemble(parts)

    def group_statistics(
        self, metric: str, by: Sequence[str] = ("approach", "config", "environment", "level"), *, point: str = "last"
    ) -> list[GroupStatistics]:
        """Statistics of a metric for each group of finished runs.

        point: where a series is judged: "last", "first", "highest" or "lowest"; "result" for the final value.
        """
        check_request(by, point)
        runs = self.run_values(metric, point)
        if not any(values for *_, values in runs):
            raise self._no_such_metric(metric)
        return group_statistics(runs, by, point)

    def _no_such_metric(self, metric: str) -> InputError:
        names = sorted(self.metric_names())
        return InputError("no finished run recorded the metric", found=repr(metric), allowed=known_names(metric, names))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
