"""What every executor promises."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from isorun.study.cells import Cell
from isorun.study.design import Sources
from isorun.study.records import RunRecord

__all__ = ["AbstractExecutor", "Job"]


@dataclass(frozen=True, slots=True)
class Job:
    """One run to carry out: a claimed cell with its command filled in.

    command: the argument vector with placeholders filled; ("function", "file.py:name") for a function.
    env: variables the study's environment sets, on top of the caller's own.
    threads: how many CPUs the run may use; None for the size of its slot.
    seed: what `{seed}` stood for; at level `default` drawn for this run alone.
    """

    cell: Cell
    attempt: int
    folder: Path
    command: tuple[str, ...]
    working_folder: Path
    seed: int
    python: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    threads: int | None = None
    preload: tuple[str, ...] | None = None
    time_limit_seconds: float | None = None
    sources: Sources = field(default_factory=Sources)


class AbstractExecutor(abc.ABC):
    """Carries out jobs, each in a process of its own.

    `execute` may be called from several threads at once, up to `jobs` of them; it returns a record for every job,
    also for one that failed, was stopped at its limit, or was killed; only what prevents any run at all raises.
    """

    jobs: int

    @abc.abstractmethod
    def execute(self, job: Job) -> RunRecord:
        """Run the job to its end and return everything it left."""

    @abc.abstractmethod
    def stop(self) -> None:
        """End the runs in progress: they are asked first, then killed, with all their children."""

    @abc.abstractmethod
    def close(self) -> None:
        """End everything this executor started."""
