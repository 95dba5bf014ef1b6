"""Take cells of kept studies that nobody has made yet, and carry them out on this machine, until none is left.

  isorun run study.toml --store postgresql://lab/isorun --queue     keeps a study for workers, and runs nothing
  isorun worker postgresql://lab/isorun                             on any number of machines, at any time
  isorun worker postgresql://lab/isorun --watch                     waits for more when nothing is left

Each cell is carried out once, whoever takes it. The training's folder, code, interpreter and data have to be on this
machine; what is missing is told, and those cells are left to others. Searches and decisions stay with their commands.
"""

from __future__ import annotations

import argparse
import math
import os
import socket
import sys
import time
from typing import TYPE_CHECKING, Any, Final, TextIO

from isorun import cli
from isorun.errors import UsageError, harmless
from isorun.scheduling import INTERRUPTED, Observer, row_text
from isorun.study.records import RunRecord, RunState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isorun.analysis.evidence import Condition
    from isorun.report import View
    from isorun.store import Holder
    from isorun.study.cells import Cell
    from isorun.taking import TakenCells

__all__ = ["declare", "execute"]

_REASON_SHOWN: Final = 120


def declare(parser: argparse.ArgumentParser) -> None:
    """The words this command understands."""
    about = "where studies and records are kept (default: ISORUN_STORE, else .isorun in this folder)"
    parser.add_argument("store", nargs="?", metavar="STORE", help=about)
    parser.add_argument(
        "--study", dest="studies", action="append", default=[], metavar="NAME", help="only this study; may be repeated"
    )
    about = "where the study's folder lies here: PATH, NAME=PATH for one study, or /there=PATH; may be repeated"
    parser.add_argument("--folder", dest="folders", action="append", default=[], metavar="PATH", help=about)
    parser.add_argument(
        "-j", "--jobs", type=int, default=1, metavar="N", help="runs at a time, each on CPUs of its own"
    )
    about = "devices (GPUs) that runs may use, divided among them: auto, none, or a list such as 0,1"
    parser.add_argument("--devices", default="auto", metavar="LIST", help=about)
    parser.add_argument("--launch", choices=("auto", "warm", "fresh"), default="auto", help="warm: fork from a server")
    parser.add_argument("--watch", action="store_true", help="wait for more when nothing is left, until it is stopped")
    parser.add_argument("--idle", metavar="TIME", help="wait so long for more when nothing is left, such as 10m, 2h")
    parser.add_argument("--failed", action="store_true", help="also cells whose runs failed before")
    about = "also where code differs here, or files are missing that earlier runs read"
    parser.add_argument("--anyway", action="store_true", help=about)
    cli.declare_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Take what is left and say what came of it."""
    from isorun.taking import take

    with _Progress(sys.stderr, options.jobs) as progress:
        taken = take(
            options.store,
            studies=options.studies,
            folders=options.folders,
            jobs=options.jobs,
            launch=options.launch,
            devices=options.devices,
            failed=options.failed,
            anyway=options.anyway,
            idle_seconds=_idle_seconds(options),
            observer=progress,
        )
    if options.json:
        cli.print_json(_to_json(taken))
    else:
        cli.show(_view(taken))
    return _exit_code(taken)


def _idle_seconds(options: argparse.Namespace) -> float:
    from isorun.study.parsing import as_duration

    if options.watch and options.idle:
        raise UsageError("--watch waits until it is stopped, and --idle for so long", allowed="one of them")
    if options.watch or not options.idle:
        return math.inf if options.watch else 0.0
    return as_duration(options.idle, "--idle") or 0.0


def _headline(taken: TakenCells) -> str:
    outcome = taken.outcome
    where = f"worker {os.getpid()} on {socket.gethostname()}"
    if not outcome.records and not outcome.elsewhere:
        stopped = f"; stopped: {outcome.stopped}" if outcome.stopped else ""
        return (
            f"{where}: nothing that is left can be carried out here{stopped}"
            if taken.away
            else (f"{where}: nothing was left to take{stopped}")
        )
    return f"{where}: {outcome.counted}"


def _view(taken: TakenCells) -> View:
    from isorun.report import Column, Table, View

    counts = [(name, *map(str, of.values())) for name, of in taken.to_json().items() if any(of.values())]
    columns = (Column("study", key=True), Column("finished here"), Column("did not finish"), Column("left"))
    tables = (Table("taken", "What this worker made", columns, tuple(counts)),) if counts else ()
    return View((harmless(_headline(taken)),), tables, taken.outcome.conditions)


def _to_json(taken: TakenCells) -> dict[str, Any]:
    outcome = taken.outcome
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "finished": outcome.count(RunState.FINISHED),
        "failed": outcome.count(RunState.FAILED) + outcome.count(RunState.TIMED_OUT),
        "interrupted": outcome.count(RunState.INTERRUPTED),
        "elsewhere": outcome.elsewhere,
        "stopped": outcome.stopped,
        "studies": taken.to_json(),
        "runs": [
            {
                "run": record.run_id,
                "study": taken.study_of.get(record.cell.id, ""),
                "label": record.cell.label,
                "state": str(record.state),
                "reason": record.reason,
                "wall_seconds": record.wall_seconds,
            }
            for record in outcome.records
        ],
        "warnings": [condition.to_json() for condition in outcome.conditions],
    }


def _exit_code(taken: TakenCells) -> int:
    """1 where a cell did not finish, or where nothing could be carried out here that others would have to."""
    outcome = taken.outcome
    if outcome.stopped == INTERRUPTED:
        return 130
    last = {record.cell.id: record.state for record in outcome.records}
    if any(state is not RunState.FINISHED for state in last.values()) or outcome.stopped:
        return 1
    return 1 if taken.away and not outcome.records else 0


class _Progress(Observer):
    """One line, rewritten, on a terminal; elsewhere a line a run. The time left is that of this worker alone."""

    def __init__(self, stream: TextIO, jobs: int) -> None:
        self._lines = cli.ProgressLines(stream)
        self._jobs = max(jobs, 1)
        self._done = self._waiting = 0
        self._begun: set[str] = set()
        self._seconds: list[float] = []
        self._waited_for: set[tuple[str, int]] = set()

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.clear()

    def warned(self, condition: Condition) -> None:
        """What is left to others, and why, at once: whoever reads it may bring what is missing."""
        self._lines.say(f"isorun: warning: {condition.message}")
        self._lines.say(f"  next:    {condition.next_step}")

    def work_planned(self, runs: int) -> None:
        """So many cells begin here now, or are left."""
        self._waiting = runs

    def environment_told(self, cell: Cell, message: str) -> None:
        """How far the making of an environment is."""
        self._lines.say(f"{cell.environment}: {message}")

    def run_started(self, cell: Cell) -> None:
        """A run begins."""
        self._begun.add(cell.id)
        self._waiting = max(self._waiting - 1, 0)
        if self._lines.live:
            self._lines.rewrite(f"{self._counts()}  {cell.label} …{self._time_left()}")

    def rows_logged(self, cell: Cell, rows: Sequence[Mapping[str, Any]]) -> None:
        """What a running training logged last, on a terminal."""
        if self._lines.live and rows:
            self._lines.rewrite(f"{self._counts()}  {cell.label}: {row_text(rows[-1])} …{self._time_left()}")

    def run_ended(self, record: RunRecord) -> None:
        """A run ended, and how."""
        self._done += 1
        if record.cell.id in self._begun:
            self._begun.remove(record.cell.id)
        else:
            self._waiting = max(self._waiting - 1, 0)
        if record.state is RunState.FINISHED:
            self._seconds.append(record.wall_seconds)
            values = ", ".join(f"{name} {value:.4g}" for name, value in list(record.results.items())[:2])
            told = f"finished in {cli.duration(record.wall_seconds)}{f', {values}' if values else ''}"
        else:
            told = f"{record.state} ({record.reason[:_REASON_SHOWN]})"
        line = f"{self._counts()}  {record.cell.label}: {told}{self._time_left()}"
        if self._lines.live and record.state is RunState.FINISHED:
            self._lines.rewrite(line)
        else:
            self._lines.say(line)

    def waiting_for(self, cell: Cell, holder: Holder | None) -> None:
        """All that is left is carried out by others: who they are, once each."""
        if holder is not None and (holder.host, holder.pid) not in self._waited_for:
            self._waited_for.add((holder.host, holder.pid))
            who = f"process {holder.pid} on {holder.host} does not come to the end of {cell.label}"
            self._lines.say(f"waiting, in case {who}; isorun status shows what runs")

    def _counts(self) -> str:
        return f"{time.strftime('%H:%M:%S')} [{self._done} done here, {self._left} left]"

    @property
    def _left(self) -> int:
        return self._waiting + len(self._begun)

    def _time_left(self) -> str:
        if not self._seconds or not self._left:
            return ""
        typical = sorted(self._seconds)[len(self._seconds) // 2]
        return f"; about {cli.duration(typical * self._left / self._jobs)} for this worker alone"
