"""How things stand: what of a study or a store is finished, what runs now, and who runs it.

Told from any process, while others are at work: from the claims in the store and, where they can be read from here,
from the folders of the runs.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping, Set
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isorun.errors import IsorunError, harmless
from isorun.execution.output import last_row
from isorun.scheduling import row_text
from isorun.session import runs_folder, study_as_kept
from isorun.store import NO_CELLS, STUDIES, WORKER_CLAIM, AbstractStore, Holder
from isorun.study.cells import Cell, cells_of
from isorun.study.design import Study
from isorun.workflow import known_to, opened, recorded

if TYPE_CHECKING:
    from isorun.execution.slurm.standing import SlurmStanding

__all__ = ["RunInProgress", "RunInSlurm", "Status", "StudyLeft", "WorkerAtWork", "status"]

_QUEUED, _RUNNING, _ENDED = "queued", "running", "ended"
_MOST_SHOWN = 50


@dataclass(frozen=True, slots=True)
class RunInProgress:
    """A run that somebody carries out now. row: what it logged last, if that can be read from here."""

    holder: Holder
    label: str
    row: Mapping[str, Any]

    def __str__(self) -> str:
        """What runs, for how long, by whom, and what it logged last."""
        holder = self.holder
        seconds = (datetime.now(UTC) - datetime.fromisoformat(holder.since)).total_seconds()
        for_long = timedelta(seconds=max(round(seconds), 0))
        row = f": {row_text(self.row)}" if self.row else ""
        by = "left in a cluster's queue by a process" if holder.left else f"by process {holder.pid}"
        return harmless(f"{self.label}, for {for_long}, {by} on {holder.host}{row}")

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        holder = self.holder
        return {
            "run": f"{holder.cell_id}-{holder.attempt}",
            "label": self.label,
            "since": holder.since,
            "host": holder.host,
            "pid": holder.pid,
            "left": holder.left,
            "row": dict(self.row),
        }


@dataclass(frozen=True, slots=True)
class RunInSlurm:
    """A run that SLURM has. row: what it logged last. is_awaited: whether an isorun waits for it now."""

    standing: SlurmStanding
    row: Mapping[str, Any]
    is_awaited: bool

    @property
    def cell_id(self) -> str:
        """The cell it is a run of."""
        return self.standing.job.cell.id

    @property
    def state(self) -> str:
        """queued, running, ended (and not recorded yet), or unknown where SLURM does not answer."""
        return self.standing.state

    def __str__(self) -> str:
        """How it stands in SLURM, since when, and what it logged last."""
        one = self.standing
        seconds = (datetime.now(UTC) - datetime.fromisoformat(one.since)).total_seconds()
        called = f"{one.state} in SLURM{f' as {one.number}' if one.number else ''}"
        why = f" ({one.reason})" if one.reason not in {"", "None"} else ""
        where = f" on {one.node}" if one.node else ""
        row = f": {row_text(self.row)}" if self.row else ""
        ago = timedelta(seconds=max(round(seconds), 0))
        return harmless(f"{one.job.cell.label}, {called}{why}{where}, submitted {ago} ago{row}")

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        one = self.standing
        return {
            "run": one.run_id,
            "label": one.job.cell.label,
            "since": one.since,
            "executor": "slurm",
            "state": one.state,
            "job": one.number,
            "host": one.node,
            "reason": one.reason,
            "is_awaited": self.is_awaited,
            "row": dict(self.row),
        }


@dataclass(frozen=True, slots=True)
class WorkerAtWork:
    """An `isorun worker` that is there now, and the runs that it carries out, of any study; none while it waits."""

    host: str
    pid: int
    since: str
    runs: tuple[str, ...]

    def __str__(self) -> str:
        """Who it is, since when, and what it does."""
        doing = f"carries out {', '.join(self.runs)}" if self.runs else "waits"
        return harmless(f"worker {self.pid} on {self.host}, since {self.since[:19].replace('T', ' ')} UTC: {doing}")

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"host": self.host, "pid": self.pid, "since": self.since, "runs": list(self.runs)}


@dataclass(frozen=True, slots=True)
class StudyLeft:
    """A kept study that is not finished: how many of its cells are missing. problem: why that is not known."""

    study: str
    total: int = 0
    missing: int = 0
    problem: str = ""

    def __str__(self) -> str:
        """How much of it is missing."""
        return harmless(f"{self.study}: {self.problem or f'{self.missing} of {self.total} missing'}")

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"study": self.study, "runs": self.total, "missing": self.missing, "problem": self.problem or None}


@dataclass(frozen=True, slots=True)
class Status:
    """How far a study is, or with no study a whole store. missing: cells that nobody has finished, runs or has queued.

    failed: those that were tried, of the missing ones of a study, or of all that a store has. total is None for a whole
    store, whose missing cells are those of the studies that it keeps (`run --queue`); unfinished: these studies.
    running: runs of processes that hold their cells. workers: all that are at work in the store. in_slurm: runs that
    SLURM has, whether an isorun waits for them or not.
    """

    study: str
    total: int | None
    finished: int
    failed: int
    missing: int
    running: tuple[RunInProgress, ...]
    workers: tuple[WorkerAtWork, ...] = ()
    in_slurm: tuple[RunInSlurm, ...] = ()
    unfinished: tuple[StudyLeft, ...] = ()

    @property
    def is_at_work(self) -> bool:
        """Whether something runs, or waits in a queue to."""
        return bool(self.running) or any(run.state in {_QUEUED, _RUNNING} for run in self.in_slurm)

    def _in_state(self, state: str) -> list[RunInSlurm]:
        return [run for run in self.in_slurm if run.state == state]

    def __str__(self) -> str:
        """How many runs are finished, running, queued, missing and failed; then a line a run, and a line a worker."""
        total = f" of {self.total}" if self.total is not None else ""
        running = len(self.running) + len(self._in_state(_RUNNING))
        counts = [f"{self.finished}{total} finished", f"{running} running"]
        for state, told in ((_QUEUED, "queued"), (_ENDED, "ended in SLURM"), ("unknown", "not known to SLURM's queue")):
            counts += [f"{len(found)} {told}"] if (found := self._in_state(state)) else []
        counts += [f"{self.missing} missing"] if self.missing else []
        of_them = "of them " if self.missing and self.total is not None else ""
        counts += [f"{self.failed} {of_them}did not finish"] if self.failed else []
        head = harmless(f"{self.study or 'this store'}: {', '.join(counts)}")
        lines = [head, *(f"  {run}" for run in (*self.running, *self.in_slurm[:_MOST_SHOWN]))]
        if len(self.in_slurm) > _MOST_SHOWN:
            lines.append(f"  … and {len(self.in_slurm) - _MOST_SHOWN} more in SLURM; --json lists all")
        if any(not run.is_awaited for run in self.in_slurm):
            lines.append("  no isorun waits for them: the isorun run … that queued them comes back and records them")
        lines += [f"  {one}" for one in self.unfinished[:_MOST_SHOWN]]
        if len(self.unfinished) > _MOST_SHOWN:
            lines.append(f"  … and {len(self.unfinished) - _MOST_SHOWN} more studies; --json lists all")
        return "\n".join((*lines, *(f"  {one}" for one in self.workers)))

    def _repr_html_(self) -> str:
        return "".join(f"<p>{html.escape(line)}</p>" for line in str(self).splitlines())

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "study": self.study or None,
            "runs": self.total,
            "finished": self.finished,
            "failed": self.failed,
            "missing": self.missing,
            "running": [
                *(run.to_json() for run in self.running),
                *(run.to_json() for run in self._in_state(_RUNNING)),
            ],
            "queued": [run.to_json() for run in self._in_state(_QUEUED)],
            "ended": [run.to_json() for run in self.in_slurm if run.state not in {_RUNNING, _QUEUED}],
            "workers": [worker.to_json() for worker in self.workers],
            "unfinished": [one.to_json() for one in self.unfinished],
        }


def status(study: Study | str | Path | None = None, *, store: str | Path | AbstractStore | None = None) -> Status:
    """What is finished, what runs now and who runs it; from any process, while others are at work."""
    with ExitStack() as stack:
        declared, place = (None, store) if study is None else stack.enter_context(opened(study, store))
        found = stack.enter_context(recorded(place, declared))
        every = found.holders()
        holders = [holder for holder in every if not holder.cell_id.startswith(NO_CELLS)]
        workers = _workers(every, holders)
        declared = None if declared is None else known_to(declared, found)
        cells = {} if declared is None else {cell.id: cell for cell in cells_of(declared)}
        asked = None if declared is None else tuple(cells)
        finished, tried = found.finished(asked), {run_id.rpartition("-")[0] for run_id in found.run_ids(asked)}
        runs = runs_folder(found, declared.folder if declared else ".")
        in_slurm = _in_slurm(runs, {holder.cell_id for holder in holders if not holder.left}, found)
        away = {run.cell_id for run in in_slurm}
        holders = [holder for holder in holders if holder.cell_id not in away]
        if declared is None:
            running = tuple(_in_progress(holder, runs) for holder in holders)
            held = {holder.cell_id for holder in holders} | away
            missing, studies = _unfinished(found, finished | held)
            failed = len(tried - finished - held)
            return Status("", None, len(finished), failed, missing, running, workers, in_slurm, studies)
    known = {**_beyond(holders, runs, cells.values()), **cells}
    running = tuple(_in_progress(holder, runs, known[holder.cell_id]) for holder in holders if holder.cell_id in known)
    alike = {_without_seed(cell) for cell in cells.values()} if in_slurm else set()
    in_slurm = tuple(run for run in in_slurm if _without_seed(run.standing.job.cell) in alike)
    held = {run.holder.cell_id for run in running} | {run.cell_id for run in in_slurm}
    left = cells.keys() - finished - held
    failed, to_come = len(left & tried), _to_come(declared)
    # A trial that failed is not missing: the search went on without it; and nobody makes a tracker's runs again.
    missing = len(left) + to_come - (failed if declared.searches or declared.imported else 0)
    total = len(cells) + to_come
    return Status(declared.name, total, len(cells.keys() & finished), failed, missing, running, workers, in_slurm)


def _to_come(study: Study) -> int:
    """The trials that its searches are still to propose."""
    if not study.searches:
        return 0
    from isorun.study.searches import trials_to_come  # noqa: PLC0415 - most studies have none

    return trials_to_come(study)


def _unfinished(store: AbstractStore, seen_to: Set[str]) -> tuple[int, tuple[StudyLeft, ...]]:
    """How many cells of kept studies nobody sees to, each counted once, and the studies they are of, oldest first.

    Studies are as they were kept, which is what workers carry out, wherever their files lie.
    """
    cells, found, to_come = set[str](), list[StudyLeft](), 0
    for name in reversed(store.documents(STUDIES).names()):
        try:
            study = known_to(study_as_kept(name, store), store)
        except (IsorunError, KeyError, TypeError, ValueError, AttributeError) as error:
            why = error.what if isinstance(error, IsorunError) else f"{type(error).__name__}: {error}"
            found.append(StudyLeft(name, problem=f"cannot be read: {why}"))
            continue
        if study.imported:
            continue
        own = {cell.id for cell in cells_of(study)}
        left = own - seen_to
        if study.searches:
            left -= {run_id.rpartition("-")[0] for run_id in store.run_ids(left)} if left else set()
        ahead = _to_come(study)
        cells, to_come = cells | left, to_come + ahead
        found += [StudyLeft(name, len(own) + ahead, len(left) + ahead)] if left or ahead else []
    return len(cells) + to_come, tuple(found)


def _in_slurm(runs: Path, held: set[str], store: AbstractStore) -> tuple[RunInSlurm, ...]:
    """The runs that SLURM has and no record tells of yet."""
    if not (runs / "slurm").is_dir():
        return ()
    from isorun.execution.slurm.standing import standing  # noqa: PLC0415 - only where something was submitted

    found = standing(runs, store.run_ids())
    finished = store.finished(one.job.cell.id for one in found)
    return tuple(
        RunInSlurm(one, last_row(runs / one.run_id) if one.state == _RUNNING else {}, one.job.cell.id in held)
        for one in found
        if one.job.cell.id not in finished
    )


def _workers(every: Iterable[Holder], holders: Iterable[Holder]) -> tuple[WorkerAtWork, ...]:
    """The workers that are at work, by host, each with what it holds."""
    runs: dict[tuple[str, int], list[str]] = {}
    for holder in holders:
        runs.setdefault((holder.host, holder.pid), []).append(f"{holder.cell_id}-{holder.attempt}")
    there = {(one.host, one.pid): one.since for one in every if one.cell_id.startswith(WORKER_CLAIM)}
    return tuple(WorkerAtWork(*who, since, tuple(runs.get(who, ()))) for who, since in sorted(there.items()))


def _in_progress(holder: Holder, runs: Path, cell: Cell | None = None) -> RunInProgress:
    folder = runs / f"{holder.cell_id}-{holder.attempt}"
    label = cell.label if cell else _label_in(folder) or holder.cell_id
    return RunInProgress(holder, label, last_row(folder))


def _beyond(holders: Iterable[Holder], runs: Path, declared: Iterable[Cell]) -> dict[str, Cell]:
    """Cells in progress that differ from declared ones in seed and repeat alone: a decision makes more than those."""
    alike = {_without_seed(cell) for cell in declared}
    found = ((holder.cell_id, _cell_in(runs / f"{holder.cell_id}-{holder.attempt}")) for holder in holders)
    return {cell_id: cell for cell_id, cell in found if cell is not None and _without_seed(cell) in alike}


def _without_seed(cell: Cell) -> str:
    return replace(cell, seed=None, repeat=0).id


def _label_in(folder: Path) -> str:
    cell = _cell_in(folder)
    return cell.label if cell else ""


def _cell_in(folder: Path) -> Cell | None:
    """The cell of a run, from the job that was kept in its folder; None where that cannot be read from here."""
    try:
        return Cell.from_json(json.loads((folder / "job.json").read_text(encoding="utf-8"))["cell"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
