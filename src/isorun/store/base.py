"""What every store promises."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Self

from isorun.study.records import RunRecord

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
    def pack(self) -> int:
        """Move what waits in the inbox into its final place; how many records were moved."""

    @abc.abstractmethod
    def close(self) -> None:
        """Let go of files and locks."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


OpenStore = Callable[[Path], AbstractContextManager[AbstractStore]]
