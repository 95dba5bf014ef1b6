"""From SLURM's last word on an element that left no record to what is told of its run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from isorun.errors import ExecutionError
from isorun.execution import Job
from isorun.execution.assemble import STOPPED, lost_record
from isorun.execution.slurm.commands import JobEnd
from isorun.execution.slurm.ledger import (
    CANNOT_RUN,
    NO_INTERPRETER,
    NO_PRELUDE,
    NOT_OWN,
    NOT_SHARED,
    OTHER_VERSION,
)
from isorun.study.records import RunRecord, RunState

__all__ = ["LOST", "OVER", "Ending", "Left", "ending"]

LOST: Final = frozenset(
    ["NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "REVOKED", "LAUNCH_FAILED", "RECONFIG_FAIL", "STAGE_OUT", "SPECIAL_EXIT"]
)
"""States that say something of the cluster and nothing of the training."""
_NODE_LOST: Final = frozenset(["NODE_FAIL", "BOOT_FAIL"])
"""Of these, those in which the whole node was lost, with whatever ran there."""
OVER: Final = LOST | {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "DEADLINE", "OUT_OF_MEMORY"}
HELD_FOR_GOOD: Final = ("launch failed requeued held", "JobHoldMaxRequeue", "job requeued in held state")
"""Reasons of elements that wait and will not begin by themselves: each time they did, their node failed them."""
_NO_OUTPUT_SIGNAL: Final = 53
"""What SLURM says where a node cannot open the file for a job's output."""
_SAID: Final = {
    NOT_SHARED: (
        "SLURM's nodes do not see the folder of runs",
        "a folder that all nodes share: --store, or the study in one",
    ),
    NO_INTERPRETER: (
        "the interpreter that carries out runs is not on SLURM's nodes",
        "one that all nodes share, with isorun installed: --executor 'slurm://PARTITION?python=/shared/venv/bin/python'",
    ),
    OTHER_VERSION: ("SLURM's nodes have another isorun than this machine", "the same isorun on both"),
    NO_PRELUDE: ("the prelude of SLURM's runs failed on a node", "a prelude that ends well there"),
    NOT_OWN: (
        "what was submitted may have been changed by others, and is not carried out",
        "a folder and files of the user who submits, which nobody else may write",
    ),
    CANNOT_RUN: ("no run is possible on SLURM's nodes", ""),
}
_LOG_LINES: Final = 4


@dataclass(frozen=True, slots=True)
class Left:
    """What an element left. stopped: the record of a begin that SLURM stopped. failure: why no run was possible."""

    began: bool
    stopped: RunRecord | None
    failure: str
    log: str


@dataclass(frozen=True, slots=True)
class Ending:
    """The record of a run, and whether its place lost it, or was lost with it; or why no run is possible."""

    record: RunRecord | None
    lost: bool = False
    with_its_place: bool = False
    error: ExecutionError | None = None


def ending(job: Job, end: JobEnd | None, left: Left, *, stop_asked: bool) -> Ending:
    """What is told of a run that left no record. end: None where nobody knows the element any more."""
    if stop_asked:
        return Ending(_record(job, end, left, STOPPED, RunState.INTERRUPTED))
    if end is None:
        reason = "SLURM no longer knows the job, and the run left no record"
        return Ending(_record(job, end, left, reason, RunState.INTERRUPTED), lost=True)
    error = _unfit(end, left)
    if error is not None:
        reason = f"SLURM: {end.state}{_on(end)}: {error.what}"
        return Ending(_record(job, end, left, reason, RunState.INTERRUPTED), lost=True, error=error)
    state, reason = _state_and_reason(end)
    lost = end.state not in OVER - LOST or _is_unexplained(end)
    return Ending(_record(job, end, left, reason, state), lost, with_its_place=end.state in _NODE_LOST)


def _is_unexplained(end: JobEnd) -> bool:
    """Whether the element ended in a way that no training can bring about: it records those that fail."""
    return end.state in {"FAILED", "COMPLETED"}


def _state_and_reason(end: JobEnd) -> tuple[RunState, str]:
    said = f"SLURM: {end.state}{_on(end)}"
    match end.state:
        case "CANCELLED":
            return RunState.INTERRUPTED, f"{said}{f' {end.reason}' if end.reason else ''}: cancelled outside isorun"
        case "TIMEOUT" | "DEADLINE":
            return RunState.TIMED_OUT, f"{said}: still running at SLURM's time limit"
        case "OUT_OF_MEMORY":
            return RunState.FAILED, f"{said}: it took more memory than it was given (memory-per-run)"
        case "FAILED" | "COMPLETED":
            ended = f"signal {end.signal}" if end.signal else f"exit code {end.code}"
            return RunState.INTERRUPTED, f"{said}: its element ended with {ended} and left no record"
    return RunState.INTERRUPTED, f"{said}{f' ({end.reason})' if end.reason else ''}"


def _unfit(end: JobEnd, left: Left) -> ExecutionError | None:
    """Why no run is possible on that node, where its element could not even begin."""
    if end.state != "FAILED" or (left.began and end.code != CANNOT_RUN):
        return None
    code = NOT_SHARED if end.signal == _NO_OUTPUT_SIGNAL else end.code
    if not code:
        return None
    what, allowed = _SAID.get(code, ("no run can begin on SLURM's nodes", "an isorun there that can be imported"))
    lines = [line.strip() for line in (left.failure or left.log).splitlines() if line.strip()]
    found = "; ".join(lines[-_LOG_LINES:]) or f"exit code {end.code}:{end.signal}"
    node = f" on {end.node}" if end.node else ""
    hint = f"srun{f' -w {end.node}' if end.node else ''} ls FOLDER shows what a node sees" if code == NOT_SHARED else ""
    return ExecutionError(f"{what}{node}", found=found, allowed=allowed, hint=hint)


def _on(end: JobEnd) -> str:
    return f" on {end.node}" if end.node else ""


def _record(job: Job, end: JobEnd | None, left: Left, reason: str, state: RunState) -> RunRecord:
    """What the stopped begin left, under SLURM's reason; a record of nothing where there is none."""
    if left.stopped is not None:
        return replace(left.stopped, state=state, reason=reason)
    made = lost_record(job, reason, state=state)
    where = {**made.where, **({"host": end.node} if end and end.node else {})}
    return replace(made, log_tail=left.log.strip(), where=where)
