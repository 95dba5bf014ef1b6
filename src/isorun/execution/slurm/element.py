"""On a node of the cluster: one element of an array carries out its run.

`python -m isorun.execution.slurm.element FOLDER [entered]`, FOLDER being that of the submission. What it may meet:
- SIGTERM: SLURM ends the job, because it was cancelled or makes room for another and will begin it again. The training
  is asked to stop, and what it left is kept beside, not as the record of the run: that is for SLURM's last word.
- SIGUSR1: the time limit is near. The training is asked to stop and the run is recorded as timed out.
- a later begin of the same run, made by SLURM because it took this node for dead: the run is the later one's. This one
  is killed and leaves nothing. Who begins later waits a little for that, so that two never write into one folder.
- `fenced`: nobody waits for the run any more.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time

if __name__ == "__main__":
    # What SLURM says while Python is still loading waits until there is somebody to hear it.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR1})

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from isorun import __version__
from isorun.errors import ExecutionError, IsorunError
from isorun.execution import Event, Job, event_to_json
from isorun.execution.assemble import STOPPED
from isorun.execution.carrying import Workbench, Workshop, carry_out, new_folder
from isorun.execution.resources import Devices, lent_cpus, usable_cpus
from isorun.execution.slurm.ledger import (
    CANNOT_RUN,
    NOT_OWN,
    NOT_SHARED,
    OTHER_VERSION,
    RunPlace,
    latest_begin,
    read_submission,
)
from isorun.execution.slurm.ownership import open_to_others
from isorun.study.records import RunRecord, RunState

__all__ = ["main"]

_LOOK_SECONDS: Final = 1.0
_SIGNAL_SECONDS: Final = 3.0
_FENCE_SECONDS: Final = 6.0
"""How long a later begin waits for an earlier one to be gone: it looks every second, and is killed at once."""


class _Begin:
    """One begin of one run."""

    def __init__(self, place: RunPlace, job: Job, gpus: int, cpus: int) -> None:
        self._place = place
        self._job = job
        self._gpus = gpus
        self._cpus = cpus
        self._number = place.begin(
            {"host": socket.gethostname(), "pid": os.getpid(), "job": os.environ.get("SLURM_JOB_ID", "")}
        )
        self._workshop = Workshop(launch="fresh")
        self._events = (place.folder / f"events-{self._number}.jsonl").open("a", encoding="utf-8")
        self._superseded = False
        self._told_by = 0
        self._ended = threading.Event()

    def carry_out(self) -> int:
        """From the begin to the record; the exit code of the element."""
        for number in (signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, self._hear)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGUSR1})
        try:
            return self._carried_out()
        finally:
            # The last, when the record is kept: who sees this mark looks for no record any more.
            self._place.mark(f"ended-{self._number}")

    def _carried_out(self) -> int:
        watcher = threading.Thread(target=self._look_around, name="fence", daemon=True)
        try:
            self._wait_for_earlier()
            watcher.start()
            record = self._made()
        except (IsorunError, OSError) as error:
            shown = error if isinstance(error, IsorunError) else ExecutionError(str(error))
            self._place.mark(f"failed-{self._number}.json", json.dumps({"error": shown.message()}))
            sys.stderr.write(f"{shown.message()}\n")
            return CANNOT_RUN
        finally:
            self._ended.set()
            self._workshop.close()
            self._events.close()
        self._keep(record)
        return 0

    def _hear(self, number: int, _frame: object) -> None:
        self._told_by = self._told_by or number
        self._workshop.stop()

    def _made(self) -> RunRecord:
        folder = self._place.folder.parents[2] / self._job.run_id
        new_folder(folder)
        job = self._job
        if job.resources.cpus is None and len(usable_cpus()) > self._cpus:  # SLURM does not bind processes here
            job = replace(job, resources=replace(job.resources, cpus=self._cpus))
        devices = Devices("auto" if self._gpus else "none")
        devices.check_device(job.environment.switches.get("device", ""))
        lent = devices.lend(job.resources.devices, job.environment.variables)
        with lent_cpus(job.resources.cpus, "") as cpus, lent as seen:
            record = carry_out(job, folder, Workbench(self._workshop, cpus, seen), self._tell)
        return replace(record, where={**record.where, "job": _called()})

    def _tell(self, event: Event) -> None:
        with suppress(OSError, ValueError):
            self._events.write(json.dumps(event_to_json(event)) + "\n")
            self._events.flush()

    def _keep(self, record: RunRecord) -> None:
        """The record of the run, unless another begin has it; what SLURM stopped is kept beside."""
        if self._superseded or latest_begin(self._place.names()) > self._number:
            return
        record = self._as_slurm_ended_it(record)
        if record.state is RunState.INTERRUPTED:
            self._place.keep_stopped(self._number, record)
        elif self._place.keep(record):
            self._place.forget_secrets()

    def _as_slurm_ended_it(self, record: RunRecord) -> RunRecord:
        """SLURM signals the training as well, which may be dead of it before this process has heard the same signal.

        So the end of a training that failed is its own only where no signal comes for a moment.
        """
        until = time.monotonic() + (_SIGNAL_SECONDS if record.signal else _SIGNAL_SECONDS / 3)
        while record.state is RunState.FAILED and not self._told_by and time.monotonic() < until:
            time.sleep(0.05)
        if not self._told_by or record.state not in (RunState.FAILED, RunState.INTERRUPTED):
            return record
        if self._told_by == signal.SIGUSR1:
            reason = "still running shortly before SLURM's time limit"
            return replace(record, state=RunState.TIMED_OUT, reason=reason)
        return replace(record, state=RunState.INTERRUPTED, reason=STOPPED)

    def _wait_for_earlier(self) -> None:
        """Give an earlier begin, which may live on a node that SLURM lost, the time to find out and end."""
        before = self._number - 1
        until = time.monotonic() + _FENCE_SECONDS
        while before >= 0 and f"ended-{before}" not in self._place.names() and time.monotonic() < until:
            if _is_gone_from_here(self._place.began(before)):
                return
            time.sleep(0.2)

    def _look_around(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            names = self._place.names()
            if latest_begin(names) > self._number:
                self._superseded = True
                self._workshop.kill()
            elif "fenced" in names:
                self._workshop.stop()


def _is_gone_from_here(who: Mapping[str, Any]) -> bool:
    """Whether a process that began on this very machine has ended."""
    if who.get("host") != socket.gethostname() or not isinstance(who.get("pid"), int):
        return False
    try:
        words = Path(f"/proc/{who['pid']}/cmdline").read_bytes()
    except OSError:
        return True
    return b"isorun.execution.slurm.element" not in words


def _called() -> str:
    """How SLURM's commands call this element."""
    return f"{os.environ.get('SLURM_ARRAY_JOB_ID', '')}_{os.environ.get('SLURM_ARRAY_TASK_ID', '')}"


def main(arguments: list[str]) -> int:
    """Carry out the run of this element; 0 also where nothing was left to do."""
    folder = Path(arguments[0])
    foreign = open_to_others(folder, os.environ.get("SLURM_ARRAY_TASK_ID", ""))
    if foreign:
        sys.stderr.write(f"isorun: {foreign}; nothing of it is carried out on {socket.gethostname()}\n")
        return NOT_OWN
    submission = read_submission(folder)
    if submission is None:
        sys.stderr.write(f"isorun: the submission {folder} cannot be read on {socket.gethostname()}\n")
        return NOT_SHARED
    if submission.content["isorun"] != __version__:
        asked, here = submission.content["isorun"], f"{__version__} on {socket.gethostname()} ({sys.executable})"
        sys.stderr.write(f"isorun: submitted by isorun {asked}, and it is {here}\n")
        return OTHER_VERSION
    place = submission.place(int(os.environ["SLURM_ARRAY_TASK_ID"]))
    if place.names() & {"fenced", "over"} or place.record() is not None:
        return 0
    if arguments[1:] != ["entered"]:
        try:
            os.environ.update(json.loads((folder / "environment.json").read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:  # a training without them would be another training
            sys.stderr.write(f"isorun: the variables of {folder} cannot be read on {socket.gethostname()}: {error}\n")
            return NOT_SHARED
        if prelude := str(submission.content.get("prelude", "")):
            words = ["bash", str(folder / "prelude.sh"), prelude, sys.executable, str(folder)]
            # The user's own file, read by the user's own shell. The mask of signals stays as it is.
            os.execvp("bash", words)  # noqa: S606, S607
    begin = _Begin(place, place.job(), int(submission.content["gpus"]), int(submission.content["cpus"]))
    try:
        return begin.carry_out()
    finally:
        submission.forget_environment_if_over()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
