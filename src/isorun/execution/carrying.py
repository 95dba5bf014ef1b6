"""Carrying out one job here: from the job to the record, in a folder of the run's own.

Executors of other machines call it there: `python -m isorun.execution.carrying JOB.json FOLDER [DEVICES [CPUS]]` reads
a job, prints its events as lines of JSON, and leaves the record in the folder.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import select
import signal
import socket
import sys
import threading
import time

if __name__ == "__main__":
    # Who sends a job and takes it back at once gets a record too: the signal waits until there is somebody to hear it.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from isorun.environments import AbstractEnvironment, Environments, Made, Prepared
from isorun.errors import ExecutionError, IsorunError, known_names
from isorun.execution import (
    Event,
    ExecutorFailed,
    Job,
    Preparing,
    RowsLogged,
    RunEnded,
    RunStarted,
    Tell,
    event_to_json,
)
from isorun.execution.assemble import (
    STOPPED,
    Ended,
    assemble,
    failed_to_read,
    found_in_files,
    keep_record,
    lost_record,
)
from isorun.execution.inputs import ChangedFiles, CodeVersions, GivenFiles, variables_read, with_script
from isorun.execution.launching import LAUNCH_MODES, Launched, Launcher, ReadyRun, make_ready, refuse_missing_program
from isorun.execution.output import BoundedLog, LineSplitter, LiveRows, Output, Secrets, readable_tail
from isorun.execution.process import GRACE_SECONDS, Exit, KeptProcess, Marks, end_strays, signal_name
from isorun.execution.resources import STDIN, Devices, Lent, StandardInput, check_memory, lent_cpus, own_input
from isorun.execution.worker_events import EventLog, HeldFolder, read_run_folder
from isorun.sources import Found, PrintedJobs
from isorun.study.parsing import PACKAGES
from isorun.study.records import Note, RunRecord, RunState
from isorun.worker.runfolder import make_own_folder, write_own
from isorun.worker.usercode import hash_of_file

if TYPE_CHECKING:
    from isorun.environments.code import Checkout
    from isorun.execution.warm import WarmRun

    Running = KeptProcess | WarmRun
    # Of which code a run was, asked when it has ended, and what is to be noted of that.
    Version = Callable[[], tuple[dict[str, Any], list[Note]]]

__all__ = ["Workbench", "Workshop", "carry_out", "new_folder"]

OUTPUT_LOG: Final = "output.log"
_READ_BYTES: Final = 1 << 18
# Who prints line after line is read this seldom: to wake up for a line takes twenty times as long as to read it. The
# longer a run has been going on, the more seldom: when a line came is known to a hundredth of that.
_GATHER_SECONDS: Final = 0.1
_GATHER_SHARE: Final = 0.01
_GATHER_MOST_SECONDS: Final = 0.5
# Who prints more than this between two looks is looked at sooner, before the pipe is full.
_MUCH_BYTES: Final = 1 << 14
_GATHER_MUCH_SECONDS: Final = 0.01
# What may gather meanwhile without the training having to wait for its reader.
_PIPE_BYTES: Final = 1 << 20
# Output that a process outside our reach still writes after the end is not waited for.
_DRAIN_BYTES: Final = 1 << 24
# How often those who watch a run are told what it logged.
_ROWS_SECONDS: Final = 1.0


class Workshop:
    """What runs on this machine share: keepers, fork servers, environments, versions of code.

    launch: "fresh" starts a new interpreter for each run (the reference), "warm" forks one that has imported the
    frameworks, "auto" is warm where that changes nothing. grace_seconds: how long a run may take to end after it was
    asked to. environments: where those of jobs are looked up. standard_input: what runs get copies of, that of this
    process unless another is given, which stays open.
    """

    def __init__(
        self,
        *,
        launch: str = "auto",
        standard_input: StandardInput | None = None,
        grace_seconds: float = GRACE_SECONDS,
        environments: Environments | None = None,
    ) -> None:
        if launch not in LAUNCH_MODES:
            raise ExecutionError(f"unknown launch mode {launch!r}", allowed=known_names(launch, LAUNCH_MODES))
        self.standard_input = standard_input or own_input()
        self.launcher = Launcher(launch, grace_seconds, self.standard_input)
        self.code_versions = CodeVersions()
        self.given_files = GivenFiles()
        self.changed_files = ChangedFiles()
        self._environments = environments or Environments()
        self._running: dict[str, Running] = {}
        self._stopped: set[str] = set()
        self._all_stopped = False
        # A signal handler calls `stop` in the thread that may hold it just then.
        self._lock = threading.RLock()

    def ready(
        self, job: Job, folder: Path, bench: Workbench, prepared: Prepared, copy_of: Path | None = None
    ) -> ReadyRun:
        """The job, whose placeholders are filled, ready to be started in its environment, which is prepared for it.

        copy_of: what its working folder is a copy of, if it has one of its own.
        """
        if prepared.interpreter:
            refuse_missing_program(job, self.standard_input)
        return make_ready(job, folder, bench.cpus, bench.devices, prepared, copy_of=copy_of)

    def placed(self, job: Job, tell: Tell, held: ExitStack) -> tuple[Job, Checkout | None] | None:
        """The job where its code is: in a checkout of the version that the study names, if it names one.

        held: as long as it is open the checkout is this run's alone. None when the run was stopped by then;
        ExecutionError when that version cannot be checked out.
        """
        if job.environment.code.get("ref", ".") == ".":  # the working copy as it is
            return job, None
        from isorun.environments.code import CodeVersion, checkout_of  # noqa: PLC0415  most jobs name none

        declared = checkout_of(job.environment, job.working_folder)
        version = self._made(replace(job, environment=declared), tell)
        if not isinstance(version, CodeVersion):
            return None
        checkout = held.enter_context(version.taken())
        return replace(job, working_folder=checkout.working_folder), checkout

    def environment(self, job: Job, tell: Tell) -> AbstractEnvironment | None:
        """The environment of the job, with all made that takes long; None when the run was stopped by then."""
        made = self._made(job, tell)
        return made if isinstance(made, AbstractEnvironment) else None

    def _made(self, job: Job, tell: Tell) -> Made | None:

        def heard(message: str) -> None:
            tell(Preparing(job.run_id, message))

        def make(folder: Path) -> None:
            from isorun.execution.making import make_apart  # noqa: PLC0415  only where something is made

            make_apart(
                job.environment,
                folder,
                job.working_folder,
                heard,
                keepers=self.launcher.keepers,
                registered=partial(self.registered, job.run_id),
            )

        stopped = partial(self.is_stopped, job.run_id)
        return self._environments.ready(job.environment, job.working_folder, make, heard, stopped)

    @contextmanager
    def started(self, ready: ReadyRun) -> Iterator[Launched]:
        """The run, started. While it is going on `stop` reaches it; afterwards nothing of it is left."""
        with ready.prepared.guard(ready.folders) as ended:
            launched = self.launcher.start(ready)
            try:
                with self.registered(ready.job.run_id, launched.running):
                    yield replace(launched, ended=ended)
            finally:
                if launched.stdin is not None:
                    launched.stdin.close()

    def input_read_by(self, launched: Launched) -> dict[str, Any]:
        """What the record says of standard input: which one it was where the run read it, else nothing."""
        if launched.stdin is None or not launched.stdin.was_read():
            return {}
        return {STDIN: self.standard_input.identity()}

    def is_stopped(self, run_id: str) -> bool:
        """Whether the run was told to stop."""
        return self._all_stopped or run_id in self._stopped

    @contextmanager
    def registered(self, run_id: str, running: Running) -> Iterator[None]:
        """While a run is registered, `stop` reaches it; afterwards nothing of it is left."""
        with self._lock:
            self._running[run_id] = running
            if self.is_stopped(run_id):
                running.ask_to_stop()
        try:
            yield
        finally:
            with self._lock:
                del self._running[run_id]
            running.close()

    def stop(self, run_id: str | None = None) -> None:
        """Ask one run to stop, or all, and let none start any more."""
        with self._lock:
            if run_id is None:
                self._all_stopped = True
            else:
                self._stopped.add(run_id)
            for name, running in self._running.items():
                if run_id in (None, name):
                    running.ask_to_stop()

    def forget(self, run_id: str) -> None:
        """The run has ended: its id means nothing here any more, and may come again from another store."""
        with self._lock:
            self._stopped.discard(run_id)

    def kill(self) -> None:
        """End all runs now, and let none start any more."""
        with self._lock:
            self._all_stopped = True
            for running in self._running.values():
                running.kill()

    def close(self) -> None:
        """End everything that was started here."""
        self.kill()
        self.launcher.close()
        self.code_versions.close()


@dataclass(frozen=True, slots=True)
class Workbench:
    """What one run is given on this machine."""

    workshop: Workshop
    cpus: tuple[int, ...]
    devices: Lent = field(default_factory=Lent)


def carry_out(job: Job, folder: Path, bench: Workbench, tell: Tell) -> RunRecord:
    """Run the job to its end in the folder, which is there and empty; the record of everything it left.

    `tell` hears that it started and what it logs, not that it ended. The record is also kept in the folder. A training
    may leave anything at all: what cannot be read is a failed run, as is one whose environment cannot be made, and
    only what prevents any run raises ExecutionError.
    """
    check_memory(job.resources.memory_bytes)
    with suppress(OSError):  # what a full disk loses here is said by what follows
        write_own(folder / "job.json", json.dumps(job.to_json_without_secrets()) + "\n")
    with ExitStack() as held:
        return _carry_out(job, folder, bench, tell, held)


def _carry_out(job: Job, folder: Path, bench: Workbench, tell: Tell, held: ExitStack) -> RunRecord:
    try:
        environment = bench.workshop.environment(job, tell)
        place = bench.workshop.placed(job, tell, held) if environment is not None else None
    except ExecutionError as error:
        return _without_environment(job, folder, error)
    if environment is None or place is None or bench.workshop.is_stopped(job.run_id):
        record = lost_record(job, STOPPED, state=RunState.INTERRUPTED)
        keep_record(record, folder)
        return record
    placed, checkout = place
    filled = placed.filled(folder)
    try:
        prepared = environment.prepare(filled.command, placed.working_folder)
    except ExecutionError as error:
        if not _may_differ(job):  # what is not there on this machine is there for no run
            raise
        return _without_environment(job, folder, error)
    if job.isolate:
        from isorun.execution.workspace import workspace_of  # noqa: PLC0415  most runs work where they were started

        try:
            workspace = workspace_of(filled.working_folder, folder)
        except ExecutionError as error:
            return _without_environment(job, folder, error)
        isolated = replace(filled, working_folder=workspace.folder)
        try:
            ready = bench.workshop.ready(isolated, folder, bench, workspace.prepared(prepared), workspace.origin)
            ended = _run(ready, bench.workshop, tell, checkout)
        except BaseException:  # it could not be started: nobody would look for a copy that is left
            workspace.close()
            raise
        ended = workspace.ended(ended)
    else:
        ended = _run(bench.workshop.ready(filled, folder, bench, prepared), bench.workshop, tell, checkout)
    try:
        record = assemble(ended)
        keep_record(record, folder)
    except Exception as error:
        record = assemble(failed_to_read(ended, error))
        keep_record(record, folder)
    return record


def _may_differ(job: Job) -> bool:
    """Whether other environments of the study may have what this one lacks: it names an interpreter of its own."""
    own = job.environment
    return bool(own.kind or (own.python and own.name != "default"))


def _without_environment(job: Job, folder: Path, error: ExecutionError) -> RunRecord:
    """The record of a run whose environment could not be made: others can be, and their runs go on."""
    secrets = Secrets.of(job.command, {**os.environ, **job.environment.env})
    told = ": ".join(part for part in (error.what, error.found) if part)
    record = replace(lost_record(job, secrets.masked(told)), log_tail=secrets.masked(error.message()))
    keep_record(record, folder)
    return record


def new_folder(folder: Path) -> None:
    """Make the folder of a run. One of an earlier time, whose store was lost, is set aside: its events are not ours."""
    # Parents of what is made get the mode of the umask: the folder around, which may be a store, is made by itself.
    folder.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        make_own_folder(folder.parent)
    try:
        make_own_folder(folder)
    except FileExistsError:
        folder.rename(folder.with_name(f"{folder.name}.before-{time.time_ns()}"))
        make_own_folder(folder)


def _run(ready: ReadyRun, workshop: Workshop, tell: Tell, checkout: Checkout | None) -> Ended:
    with closing(HeldFolder(ready.folder)) as held:
        code = workshop.code_versions.ask(ready.origin) if checkout is None else None
        run = _RunHere(ready, workshop, tell)
        seen = run.watched()

        def version() -> tuple[dict[str, Any], list[Note]]:
            found, notes = checkout.after_the_run() if checkout else (code.result() if code else {}, [])
            return found, [Note(*note) for note in notes]

        return run.with_what_it_left(run.ended(seen), seen, held, version)


@dataclass(frozen=True, slots=True)
class _SeenToEnd:
    """A run that was watched to its end.

    began_unix, launched_unix: before anything was done to start it, and when it was started, which a server of warm
    starts or a look for the interpreter may make seconds later. stdin: what the record says of it; changed: files that
    are not as before.
    """

    began_unix: float
    launched_unix: float
    launched: Launched
    watched: Watched
    asked_to_stop: bool
    stdin: Mapping[str, Any]
    changed: Mapping[str, Any]

    @property
    def whole(self) -> bool:
        """Whether it came to its own end, so that nothing it left is half of something."""
        return self.watched.ended_well and not self.asked_to_stop


class _RunHere:
    """One run: started and watched to its end, then what is known of the end, then what it left."""

    def __init__(self, ready: ReadyRun, workshop: Workshop, tell: Tell) -> None:
        self._ready, self._workshop, self._tell = ready, workshop, tell
        self._job = ready.job
        self._reading = PrintedJobs(self._job.sources)
        self._lines = LineSplitter(self._reading.feed)
        self._secrets = Secrets.of(self._job.command, ready.env)
        self._log = BoundedLog(ready.folder / OUTPUT_LOG, secrets=self._secrets)
        self._given = workshop.given_files.before(self._job)
        self._look = workshop.changed_files.before(self._job.working_folder)

    def watched(self) -> _SeenToEnd:
        """Start it and read its output until it has ended; nothing of it is left then."""
        workshop = self._workshop
        try:
            began_unix = time.time()
            with workshop.started(self._ready) as launched:
                launched_unix = time.time()
                watched, stopped = self._watched(launched)
                stdin = workshop.input_read_by(launched)
            if not watched.exit.kept:
                end_strays(Marks(self._ready.folder))
            workshop.standard_input.check()
        finally:
            self._log.close()
            changed = workshop.changed_files.after(self._look)
        return _SeenToEnd(began_unix, launched_unix, launched, watched, stopped, stdin, changed)

    def _watched(self, launched: Launched) -> tuple[Watched, bool]:
        """Its end, and whether it was asked to stop."""
        job, output = self._job, Output(self._log, self._lines)
        with closing(LiveRows(self._ready.folder, self._reading.latest, self._secrets)) as rows:
            self._tell(RunStarted(job.run_id, _where(self._ready)))
            tell_rows = _rows_teller(rows, job.run_id, self._tell)
            watched = watch(launched.running, output, job.time_limit_seconds, tell_rows)
            stopped = self._workshop.is_stopped(job.run_id)
            if watched.ended_by_itself and not stopped:
                launched.ended()
            output.close(watched.seconds, whole=watched.ended_well and not stopped)
            tell_rows()
        return watched, stopped

    def ended(self, seen: _SeenToEnd) -> Ended:
        """The end of the run, before anything is read of what it left."""
        ready, tail = self._ready, readable_tail(self._log.end())
        exit_inside, not_begun = _exit_inside(seen.watched.exit, ready, tail)
        notes = (*_output_notes(self._log, self._lines), *_device_notes(ready), *_usage_notes(ready))
        return Ended(
            job=self._job,
            launch=seen.launched.mode,
            began_unix=seen.began_unix,
            launched_unix=seen.launched_unix,
            exit=exit_inside,
            timed_out=seen.watched.timed_out,
            asked_to_stop=seen.asked_to_stop,
            events=EventLog(),
            lines=Found(),
            files=Found(),
            log_tail=tail,
            requested={**ready.requested(), **seen.stdin},
            made=ready.made(),
            where=_where(ready),
            notes=(*seen.launched.notes, *notes),
            secrets=self._secrets,
            not_begun=not_begun,
            changed=seen.changed,
        )

    def with_what_it_left(self, ended: Ended, seen: _SeenToEnd, held: HeldFolder, version: Version) -> Ended:
        """With what it printed, wrote and told; where some of that cannot be read, with what was read before it."""
        try:
            if self._reading.error is not None:
                raise self._reading.error
            written, printed = self._reading.finish(self._job.working_folder, seen.began_unix, whole=seen.whole)
            given = self._workshop.given_files
            requested = {**ended.requested, **given.untouched(self._given, self._secrets)}
            ended = replace(ended, lines=printed, files=written, requested=requested)
            code, notes = version()
            ended = replace(ended, notes=(*ended.notes, *notes))
            ended = self._of_first_rank(_with_events(ended, read_run_folder(self._ready.folder, held), code))
            folder, is_alone = self._ready.folder.absolute(), self._look.is_alone
            return found_in_files(given.with_inputs(ended), folder, whole=seen.whole, is_alone=is_alone)
        except Exception as error:
            return failed_to_read(ended, error)

    def _of_first_rank(self, ended: Ended) -> Ended:
        """With the values of the first rank, where later ones printed the same metrics between its lines."""
        if not ended.events.printed_by_others:
            return ended
        from isorun.execution.first_rank import LaterRanks, of_first_rank  # noqa: PLC0415  few runs have ranks

        later = LaterRanks(ended.events.printed_by_others, ended.events.printed_more)
        log, is_whole = self._ready.folder / OUTPUT_LOG, not (self._log.cut_bytes or self._log.failure)
        return replace(ended, lines=of_first_rank(ended.lines, later, log, self._job.sources, is_whole=is_whole))


def _exit_inside(ended: Exit, ready: ReadyRun, tail: str) -> tuple[Exit, str]:
    """The end of the command itself, which something may have been around, and why it never began, if it did not."""
    if not ended.exit_code:
        return ended, ""
    number, why = ready.prepared.end_inside(ended.exit_code, tail)
    return (replace(ended, exit_code=None, signal=signal_name(number)) if number else ended), why


def _with_events(ended: Ended, events: EventLog, code: dict[str, Any]) -> Ended:
    requested = {**ended.requested, **variables_read(ended.job, events.effective)}
    notes = (*ended.notes, *_lock_notes(ended.job))
    return replace(ended, events=events, code=with_script(code, events.effective), requested=requested, notes=notes)


def _lock_notes(job: Job) -> list[Note]:
    """What is not varied is the same for all versions, and so is the lock; a version with another one is told."""
    ref = job.environment.code.get("ref", ".")
    lock = job.environment.settings.get("lock", "") if job.environment.kind == PACKAGES else ""
    own = job.working_folder / lock
    if ref == "." or not lock or not own.is_file() or hash_of_file(own) == job.environment.settings["sha256"]:
        return []
    return [Note("lock-of-the-study", f"{ref} has another {lock} of its own, which was not installed")]


def _where(ready: ReadyRun) -> dict[str, str]:
    place = {"host": socket.gethostname(), "folder": str(ready.folder.absolute()), "python": ready.interpreter}
    return {**place, **ready.job.made_by}


def _rows_teller(live: LiveRows, run_id: str, tell: Tell) -> Callable[[], None]:
    def tell_rows() -> None:
        if rows := live.rows():
            tell(RowsLogged(run_id, rows))

    return tell_rows


def _output_notes(log: BoundedLog, lines: LineSplitter) -> list[Note]:
    notes = []
    if log.cut_bytes:
        notes.append(Note("output-cut", f"{log.cut_bytes} bytes in the middle of the output were not kept"))
    if log.failure:
        notes.append(Note("output-lost", f"the output could not be kept: {log.failure}"))
    if lines.torn_line:
        shown = lines.torn_line.strip()[:40]
        notes.append(Note("line-torn", f"the run ended in the middle of a line ({shown!r}), which was not read"))
    if lines.cut_lines:
        notes.append(Note("line-cut", f"{lines.cut_lines} lines were too long and were read for metrics only in part"))
    return notes


def _device_notes(ready: ReadyRun) -> list[Note]:
    if not ready.devices.shared:
        return []
    shared = ", ".join(ready.devices.recorded)
    return [Note("shared-device", f"other runs used {shared} at the same time")]


def _usage_notes(ready: ReadyRun) -> list[Note]:
    if ready.prepared.is_counted:
        return []
    around = Path(ready.argv[0]).name
    message = f"CPU time and memory are those of {around} alone: what it started is not among the processes of this run"
    return [Note("usage-not-counted", message)]


@dataclass(frozen=True, slots=True)
class Watched:
    """The end of a run, whether its time limit ended it, and how many seconds after its start that was."""

    exit: Exit
    timed_out: bool
    seconds: float

    @property
    def ended_well(self) -> bool:
        """Whether nothing of it was ended by force, so that its last lines are whole."""
        return self.ended_by_itself and self.exit.exit_code == 0

    @property
    def ended_by_itself(self) -> bool:
        """Whether it ended with some exit code, and nothing of it by force."""
        has_code = self.exit.kept and self.exit.exit_code is not None
        return has_code and not self.exit.left_behind and not self.timed_out


def watch(running: Running, output: Output, limit: float | None, tell_rows: Callable[[], None]) -> Watched:
    """Read the output of a run that was started just now until it has ended; stop it after `limit` seconds.

    Whoever called closes the output: a last line without an end counts only if the run ended well.
    The start of a fork server, which may have come before, counts neither for the limit nor for the times of lines.
    """
    began = time.monotonic()
    deadline = None if limit is None else began + limit
    tell_at = began + _ROWS_SECONDS
    timed_out = False
    os.set_blocking(running.output_fd, False)
    with suppress(OSError):  # the system lends each user only so much
        fcntl.fcntl(running.output_fd, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    poll, status, read_at = select.poll(), select.poll(), -math.inf
    status.register(running.status_fd, select.POLLIN)
    poll.register(running.output_fd, select.POLLIN)
    poll.register(running.status_fd, select.POLLIN)
    while True:
        ready = {fd for fd, _ in poll.poll(_milliseconds(min(tell_at, deadline or tell_at)))}
        if running.output_fd in ready:
            count, now = _read_once(running.output_fd, output, began), time.monotonic()
            gathering = _gathering_seconds(now - began)
            if count == 0:
                poll.unregister(running.output_fd)
            elif now - read_at < gathering:
                status.poll(1000 * min(gathering, _seconds_until_full(count or 0)))
            read_at = time.monotonic()
        if running.status_fd in ready and (ended := running.exit()):
            _drain(running.output_fd, output, began)
            return Watched(ended, timed_out, time.monotonic() - began)
        now = time.monotonic()
        if deadline is not None and now >= deadline:
            running.ask_to_stop()
            deadline, timed_out = None, True
        if now >= tell_at:
            running.see_to_it()
            output.take_in()
            tell_rows()
            tell_at = now + _ROWS_SECONDS


def _gathering_seconds(so_far: float) -> float:
    """How long to let output gather, by how long the run has been going on."""
    return min(max(_GATHER_SECONDS, _GATHER_SHARE * so_far), _GATHER_MOST_SECONDS)


def _seconds_until_full(count: int) -> float:
    """How long the pipe has room at least, by how much has come since the last look."""
    if count >= _READ_BYTES:
        return 0.0
    return _GATHER_MUCH_SECONDS if count >= _MUCH_BYTES else _GATHER_MOST_SECONDS


def _milliseconds(until: float) -> float:
    return max(until - time.monotonic(), 0.0) * 1000


def _read_once(fd: int, output: Output, began: float) -> int | None:
    """How many bytes were read: 0 at the end, None when there is nothing now."""
    try:
        data = os.read(fd, _READ_BYTES)
    except BlockingIOError:
        return None
    if data:
        output.write(data, time.monotonic() - began)
    return len(data)


def _drain(fd: int, output: Output, began: float) -> None:
    left = _DRAIN_BYTES
    while left > 0 and (count := _read_once(fd, output, began)):
        left -= count


def _print_event(event: Event) -> None:
    print(json.dumps(event_to_json(event)), flush=True)


_USAGE: Final = """usage: python -m isorun.execution.carrying JOB FOLDER [DEVICES [CPUS]]
  JOB      a file with a job as JSON, or - for standard input
  FOLDER   the run's folder, which is made
  DEVICES  auto (the default), none, or a list such as 0,1
  CPUS     a list such as 0,1 to which the run is pinned; by default it has those of this process
"""


def main(arguments: list[str]) -> int:
    """Carry out the job of a file in a folder; 0 when there is a record, 1 when none, 2 for words that do not fit."""
    if not 2 <= len(arguments) <= 4 or any(word.startswith("--") for word in arguments):
        sys.stderr.write(_USAGE)
        return 2
    source, name, devices, cpus = (*arguments, *("auto", "")[len(arguments) - 2 :])
    run_id = ""
    try:
        job = _read_job(source)
        run_id = job.run_id
        record = _carry_out_alone(job, Path(name), devices, cpus)
    except (IsorunError, OSError) as error:
        shown = error if isinstance(error, IsorunError) else ExecutionError(str(error))
        _print_event(ExecutorFailed(shown, run_id))
        return 1
    _print_event(RunEnded(run_id, record))
    return 0


def _read_job(source: str) -> Job:
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
        return Job.from_json(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise ExecutionError(f"the job in {source!r} cannot be read", found=str(error), allowed="JSON") from error


def _carry_out_alone(job: Job, folder: Path, devices: str, cpus: str) -> RunRecord:
    """Carry out one job in this process, which is there for nothing else. A signal asks the run to stop."""
    workshop = Workshop(launch="fresh")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: workshop.stop())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    try:
        new_folder(folder)
        there = Devices(devices)
        there.check_device(job.environment.switches.get("device", ""))
        lent_devices = there.lend(job.resources.devices, job.environment.variables)
        with lent_cpus(job.resources.cpus, cpus) as own, lent_devices as seen:
            return carry_out(job, folder, Workbench(workshop, own, seen), _print_event)
    finally:
        workshop.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
