"""Launching a planned run, in the way the executor's mode asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from isorun.errors import ExecutionError
from isorun.execution.plan import Plan, write_request
from isorun.execution.process import KeptProcess
from isorun.execution.warm import WarmServers, has_fixed_hashes, why_not_warm
from isorun.execution.watch import Running
from isorun.study.records import Note

__all__ = ["LAUNCH_MODES", "Launched", "Launcher"]

LAUNCH_MODES: Final = ("auto", "warm", "fresh")


@dataclass(frozen=True, slots=True)
class Launched:
    """A run in progress, how it was launched ("warm" or "fresh"), and what to note about that."""

    running: Running
    mode: str
    notes: tuple[Note, ...] = ()


class Launcher:
    """Starts runs in one mode: "fresh", "warm" where possible, or "auto": warm where that changes nothing."""

    def __init__(self, mode: str, grace_seconds: float) -> None:
        self._mode = mode
        self._grace_seconds = grace_seconds
        self._servers = WarmServers(grace_seconds)

    def start(self, planned: Plan) -> Launched:
        """Start the run."""
        if self._mode == "fresh" or (self._mode == "auto" and not has_fixed_hashes(planned)):
            return self._fresh(planned)
        if reason := why_not_warm(planned):
            return self._fresh(planned, *([_not_warm(reason)] if self._mode == "warm" else []))
        return self._warm(planned)

    def _warm(self, planned: Plan) -> Launched:
        write_request(planned, "warm")
        try:
            running = self._servers.start(planned)
        except ExecutionError as error:
            return self._fresh(planned, _not_warm(error.found))
        notes = () if has_fixed_hashes(planned) else (_SHARED_HASHES,)
        return Launched(running, "warm", notes)

    def _fresh(self, planned: Plan, *notes: Note) -> Launched:
        write_request(planned, "fresh")
        running = KeptProcess(
            planned.argv,
            env=planned.env,
            working_folder=planned.job.working_folder,
            cpus=planned.cpus,
            grace=self._grace_seconds,
        )
        return Launched(running, "fresh", notes)

    def close(self) -> None:
        """End all fork servers and what runs on them."""
        self._servers.close()


_SHARED_HASHES: Final = Note(
    "shared-hash-seed",
    "this run was forked warm and shares Python's hash seed with the other warm runs of this executor",
)


def _not_warm(reason: str) -> Note:
    return Note("not-warm", f"the run was started in a fresh process: {reason}")
