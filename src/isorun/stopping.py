"""Ending runs that go on without isorun: those that a cluster has in its queue, or runs."""

from __future__ import annotations

import os
import queue
import socket
from collections.abc import Iterable, Sequence, Set
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isorun.errors import StoreConflict
from isorun.execution import Event, RunEnded
from isorun.session import runs_folder
from isorun.store import NO_CELLS, AbstractStore, Claim, Holder
from isorun.study.cells import Cell, cells_of
from isorun.study.design import Study
from isorun.study.records import RunRecord
from isorun.workflow import known_to, opened, recorded

if TYPE_CHECKING:
    from isorun.execution.slurm import SlurmExecutor
    from isorun.execution.slurm.standing import SlurmStanding

__all__ = ["Stopped", "stop"]

_END_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Stopped:
    """What was ended. records: of the runs, as they are kept now.

    by_others: runs that another isorun holds, which were asked to end; it records them and ends its work. elsewhere:
    the holders that are on other machines, of which only their claims say that they are still there. orphaned:
    runs that were asked to end, too, whose isorun is known to be gone while its claims have not lapsed yet. unheard:
    runs whose end was not told in time; whoever comes back records them. freed: runs that were left in a queue which
    cannot be seen from here: their cells can be made again, and if they still go on what they leave is refused then.
    at_work: processes that carry out runs themselves, which end with them.
    """

    study: str
    records: tuple[RunRecord, ...]
    by_others: int = 0
    unheard: int = 0
    freed: int = 0
    orphaned: int = 0
    at_work: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()

    def __str__(self) -> str:
        """How many runs were ended, in one line."""
        where = self.study or "this store"
        if not (self.records or self.by_others or self.orphaned or self.unheard or self.freed):
            return f"{where}: no run is in a cluster's queue{self._told_at_work()}"
        parts = [f"{len(self.records)} ended and recorded"]
        who = (
            f"{', '.join(self.elsewhere)}, if it is still there" if self.elsewhere else "the isorun that waits for them"
        )
        parts += [f"{self.by_others} asked to end, recorded by {who}"] if self.by_others else []
        parts += (
            [f"{self.orphaned} asked to end, of an isorun that is gone: not recorded before its claims have lapsed"]
            if self.orphaned
            else []
        )
        parts += [f"{self.unheard} asked to end, not heard of yet"] if self.unheard else []
        parts += [f"{self.freed} in a queue that cannot be seen from here, free to be made again"] if self.freed else []
        return f"{where}: {', '.join(parts)}{self._told_at_work()}"

    def _told_at_work(self) -> str:
        """Who else is at work, and is not reached from here."""
        return f"; runs go on in {', '.join(self.at_work)}: Ctrl-C there ends them" if self.at_work else ""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "study": self.study or None,
            "ended": [{"run": record.run_id, "state": str(record.state)} for record in self.records],
            "by_others": self.by_others,
            "orphaned": self.orphaned,
            "unheard": self.unheard,
            "freed": self.freed,
            "at_work": list(self.at_work),
            "elsewhere": list(self.elsewhere),
        }


def stop(study: Study | str | Path | None = None, *, store: str | Path | AbstractStore | None = None) -> Stopped:
    """End what a cluster has queued or runs of the study, or of the whole store, and record it as interrupted.

    A run that ended by itself meanwhile is recorded as what it is. Runs of this machine end with their isorun.
    """
    with ExitStack() as stack:
        declared, place = (None, store) if study is None else stack.enter_context(opened(study, store))
        kept = stack.enter_context(recorded(place, declared))
        name, runs = declared.name if declared else "", runs_folder(kept, declared.folder if declared else ".")
        ended, seen = Stopped(name, ()), set[str]()
        alike = None if declared is None else {_alike(cell) for cell in cells_of(known_to(declared, kept))}
        if (runs / "slurm").is_dir():
            from isorun.execution.slurm.standing import standing  # noqa: PLC0415 - only where something was submitted

            found = standing(runs, kept.run_ids())
            found = [one for one in found if alike is None or _alike(one.job.cell) in alike]
            seen = {one.job.cell.id for one in found}
            if found:
                from isorun.execution.slurm import SlurmExecutor  # noqa: PLC0415

                executor = SlurmExecutor(runs)
                stack.callback(executor.close)
                ended = _ended(found, executor, kept, name)
        own = None if declared is None else {cell.id for cell in cells_of(known_to(declared, kept))}
        freed = _freed(kept, own, seen)
        return replace(ended, freed=freed, at_work=_at_work(kept, own, seen))


def _at_work(store: AbstractStore, own: Set[str] | None, seen: Set[str]) -> tuple[str, ...]:
    """The processes that hold claims of these cells for runs of their own, not of a cluster's."""
    holders = [one for one in store.holders() if not one.left and one.cell_id not in seen]
    if own is None:
        holders = [one for one in holders if not one.cell_id.startswith(NO_CELLS)]
    else:
        holders = [one for one in holders if one.cell_id in own]
    return _named(holders)


def _freed(store: AbstractStore, own: Set[str] | None, seen: Set[str]) -> int:
    """Free cells whose runs were left in a queue that is not seen from here. own: which cells; all where None."""
    freed = 0
    for holder in store.holders():
        if holder.left and holder.cell_id not in seen and (own is None or holder.cell_id in own):
            claim = store.claim_again(holder.cell_id, holder.attempt)
            if claim is not None:
                claim.release()
                freed += 1
    return freed


def _alike(cell: Cell) -> str:
    """What runs of one study share: a decision makes more of them than are declared."""
    return replace(cell, seed=None, repeat=0).id


def _ended(found: Sequence[SlurmStanding], executor: SlurmExecutor, store: AbstractStore, name: str) -> Stopped:
    told: queue.SimpleQueue[Event] = queue.SimpleQueue()
    claims: dict[str, Claim] = {}
    refused: list[str] = []
    for one in found:
        claim = store.claim_again(one.job.cell.id, one.job.attempt)
        if claim is None:
            refused.append(one.run_id)
            executor.cancel(one.run_id)
            continue
        claims[one.run_id] = claim
        executor.submit(one.job, told.put)
        executor.stop(one.run_id)
    records = []
    with suppress(queue.Empty):
        while claims:
            event = told.get(timeout=_END_SECONDS)
            if isinstance(event, RunEnded) and event.run_id in claims:
                with suppress(StoreConflict):
                    store.finish(event.record)
                    records.append(event.record)
                claims.pop(event.run_id).release()
    for claim in claims.values():
        claim.leave()
    orphaned, elsewhere = _orphaned(refused, store) if refused else (0, ())
    others = len(refused) - orphaned
    return Stopped(name, tuple(records), others, len(claims), orphaned=orphaned, elsewhere=elsewhere if others else ())


def _orphaned(run_ids: Sequence[str], store: AbstractStore) -> tuple[int, tuple[str, ...]]:
    """How many of these runs, whose claims are not to be had, nobody waits for; and holders on other machines.

    A killed holder's claims hold for a while yet in a store that many machines share. That it is gone is known where it
    was a process of this machine, and where its claim has lapsed and others just have not taken it over.
    """
    holders = {f"{holder.cell_id}-{holder.attempt}": holder for holder in store.holders()}
    left = [run_id for run_id in run_ids if run_id not in holders or _is_gone(holders[run_id])]
    away = [holders[run_id] for run_id in run_ids if run_id in holders and not _is_here(holders[run_id])]
    return len(set(left) - store.run_ids()), _named(away)


def _named(holders: Iterable[Holder]) -> tuple[str, ...]:
    return tuple(sorted({f"process {one.pid} on {one.host}" for one in holders}))


def _is_here(holder: Holder) -> bool:
    return holder.host == socket.gethostname()


def _is_gone(holder: Holder) -> bool:
    if not _is_here(holder):
        return False
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
