"""Claims: who executes a cell, and as which attempt.

A cell's claim is a lock on the byte of `claims.lock` that belongs to it, so a killed holder's claims are free again.
Its attempt is the run folder `runs/<cell>-<attempt>` that nobody had before: making a folder succeeds once.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from isorun.store.base import Claim
from isorun.store.byte_locks import ByteLocks
from isorun.store.failures import reported
from isorun.store.files import Files

__all__ = ["Claims", "LocalClaim", "cell_of"]


@dataclass(frozen=True, slots=True)
class LocalClaim(Claim):
    """The right to execute one cell on this machine, in its own run folder."""

    cell_id: str
    attempt: int
    folder: Path
    claims: Claims

    def release(self) -> None:
        """Give the right back; giving it back twice is nothing, also when a later attempt has it by then."""
        self.claims.give_back(self)


class Claims:
    """Hands out claims of one store."""

    def __init__(self, lock_file: Path, runs: Path, files: Files) -> None:
        self._locks = ByteLocks(lock_file)
        self._runs = runs
        self._files = files
        self._guard = threading.Lock()
        self._held: dict[str, int] = {}
        with reported("looking at earlier attempts", runs):
            self._latest = _latest_attempts(files.names(runs))

    def take(self, cell_id: str, recorded_attempts: Callable[[str], Iterable[int] | None]) -> LocalClaim | None:
        """The claim, or None when somebody has it or the cell is finished.

        recorded_attempts: the attempts of a cell that left a record, or None when the cell is finished. It is asked
        after the lock is taken, because the last holder may have finished the cell just before letting go.
        """
        byte = _byte_of(cell_id)
        with reported(f"claiming cell {cell_id}", self._runs):
            if not self._locks.acquire(byte):
                return None
        claim = None
        try:
            recorded = recorded_attempts(cell_id)
            if recorded is not None:
                claim = self._next_attempt(cell_id, recorded)
                self._held[cell_id] = claim.attempt
        finally:
            if claim is None:
                self._locks.release(byte)
        return claim

    def give_back(self, claim: LocalClaim) -> None:
        """Free the cell, unless a later attempt has it."""
        with self._guard:
            if self._held.get(claim.cell_id) == claim.attempt:
                del self._held[claim.cell_id]
                self._locks.release(_byte_of(claim.cell_id))

    def close(self) -> None:
        """Give back all claims taken here."""
        self._locks.close()

    def _next_attempt(self, cell_id: str, recorded: Iterable[int]) -> LocalClaim:
        attempt = max([self._latest.get(cell_id, 0), *recorded]) + 1
        while not self._made_folder(cell_id, attempt):
            attempt += 1
        self._latest[cell_id] = attempt
        return LocalClaim(cell_id, attempt, self._runs / f"{cell_id}-{attempt}", self)

    def _made_folder(self, cell_id: str, attempt: int) -> bool:
        folder = self._runs / f"{cell_id}-{attempt}"
        with reported(f"making the folder of run {cell_id}-{attempt}", folder):
            try:
                self._files.make_folder(folder)
            except FileExistsError:
                return False
        return True


def cell_of(run_id: str) -> tuple[str, int] | None:
    """The cell and the attempt that a run id names; None when the text is no run id."""
    cell_id, _, attempt = run_id.rpartition("-")
    return (cell_id, int(attempt)) if cell_id and attempt.isascii() and attempt.isdecimal() else None


def _byte_of(cell_id: str) -> int:
    """The byte that belongs to the cell, within 62 bits.

    Two cells that share one, which is less likely than a broken disk, cannot be executed at the same time.
    """
    return int.from_bytes(hashlib.sha256(cell_id.encode()).digest()[:8], "big") >> 2


def _latest_attempts(names: Iterable[str]) -> dict[str, int]:
    latest: dict[str, int] = {}
    for cell_id, attempt in filter(None, map(cell_of, names)):
        latest[cell_id] = max(attempt, latest.get(cell_id, 0))
    return latest
