"""From a job to a process: what will be started, with which variables, CPUs and devices; and starting it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from isorun.environments import Folders, Prepared
from isorun.errors import ExecutionError
from isorun.execution import Job
from isorun.execution.process import Keepers, KeptProcess
from isorun.execution.resources import InputCopy, Lent, StandardInput
from isorun.study import FUNCTION
from isorun.study.records import Note
from isorun.worker.levels import (
    AUDIT,
    COPY_OF,
    OWN_VARIABLES,
    STEPS,
    SWITCHES,
    hooked_python_path,
    level_environment,
    seed_environment,
    site_folder,
)
from isorun.worker.runfolder import write_own

if TYPE_CHECKING:
    from isorun.execution.warm import WarmRun, WarmServers
    from isorun.worker.programs import Program

__all__ = ["LAUNCH_MODES", "Launched", "Launcher", "ReadyRun", "make_ready", "refuse_missing_program"]

LAUNCH_MODES: Final = ("auto", "warm", "fresh")
PROTOCOL: Final = 2
_OF_A_CHECKOUT: Final = ("commit", "diff")


@dataclass(frozen=True, slots=True)
class ReadyRun:
    """A job that can be started now: its placeholders are filled, and it has a folder, CPUs and devices.

    threads: as many as it is to use: all its CPUs, unless fewer were asked for and nobody said which. argv: what a
    fresh process executes. wrapped: whether its environment put something around the command. interpreter:
    its Python, empty when the command does not start with one. python_program: what it is asked to run, None when only
    a fresh interpreter can say. level_variables: what the level added to env. prepared: its environment, which is open
    around the run in `folders`.
    """

    job: Job
    folder: Path
    cpus: tuple[int, ...]
    threads: int
    devices: Lent
    argv: tuple[str, ...]
    wrapped: bool
    env: Mapping[str, str]
    interpreter: str
    python_program: Program | None
    level_variables: Mapping[str, str]
    prepared: Prepared
    folders: Folders

    @property
    def origin(self) -> Path:
        """The working folder, or what it is a copy of: the same for all runs of a study."""
        return self.folders.copy_of or self.job.working_folder

    def requested(self) -> dict[str, Any]:
        """What was asked for, as the record keeps it. The study's variables are named, not quoted: some are secret."""
        memory, devices = self.job.resources.memory_bytes, self.devices.recorded
        code = {name: value for name, value in self.job.environment.code.items() if name not in _OF_A_CHECKOUT}
        return {
            "level": str(self.job.cell.level),
            "threads": self.job.resources.cpus,
            "cpus": len(self.cpus),
            "level_variables": dict(sorted(self.level_variables.items())),
            "study_variables": sorted(self.job.environment.env),
            **({"take_seeds": True} if self.job.cell.take_seeds else {}),
            **({"switches": dict(self.job.environment.switches)} if self.job.environment.switches else {}),
            **({"code": code} if code else {}),
            **({"devices": devices} if devices else {}),
            **({"memory_bytes": memory} if memory is not None else {}),
        }

    def made(self) -> dict[str, Any]:
        """What its environment came to: the interpreter, packages or image that were found, the commit of a ref."""
        code = {name: value for name, value in self.job.environment.code.items() if name in _OF_A_CHECKOUT}
        return {**self.prepared.made, **({"code": code} if code else {})}


def make_ready(
    job: Job,
    folder: Path,
    cpus: tuple[int, ...],
    devices: Lent,
    prepared: Prepared,
    *,
    copy_of: Path | None = None,
) -> ReadyRun:
    """The job, whose placeholders are filled, with everything that its process is started with.

    copy_of: what the job's working folder is a copy of, if it is one.
    """
    asked = _switched(job)
    base = {**prepared.variables, **asked, **devices.variables}
    program = _python_program(job) if prepared.interpreter else None
    threads = min(job.resources.cpus or len(cpus), len(cpus))
    added = _level_variables(job, threads, base)
    hooked = {"PYTHONPATH": hooked_python_path(base), "ISORUN_RUN_DIR": str(folder.absolute())}
    hooked |= {} if copy_of is None else {COPY_OF: str(copy_of)}
    argv = _argv(job, prepared, program)
    folders = Folders(job.working_folder.absolute(), folder.absolute(), site_folder().parent, cpus, copy_of)
    own = {**asked, **job.environment.env, **devices.variables, **added, **hooked}
    wrapped = tuple(prepared.wrap(argv, own, folders))
    return ReadyRun(
        job=job,
        folder=folder,
        cpus=cpus,
        threads=threads,
        devices=devices,
        argv=wrapped if wrapped == argv else _found_here(wrapped, prepared, job),
        wrapped=wrapped != argv,
        env=prepared.outside({**base, **added, **hooked}),
        interpreter=prepared.interpreter,
        python_program=program,
        level_variables={name: value for name, value in added.items() if name not in OWN_VARIABLES},
        prepared=prepared,
        folders=folders,
    )


def _switched(job: Job) -> dict[str, str]:
    """The variables that ask for the switches of the environment; those that the study sets itself stay as they are."""
    if not job.environment.switches:
        return {}
    from isorun.worker.frameworks import switches  # noqa: PLC0415  most runs ask for none

    wanted = switches.variables(job.environment.switches)
    own = {name: value for name, value in wanted.items() if name not in job.environment.env}
    return {**own, SWITCHES: switches.written(job.environment.switches)}


def _level_variables(job: Job, threads: int, base: Mapping[str, str]) -> dict[str, str]:
    seed = job.given_seed if job.cell.level.fixes_seed else None
    seeds = seed_environment(job.seed, take_seeds=job.cell.take_seeds)
    steps = {} if job.environment.steps is None else {STEPS: str(job.environment.steps)}
    look = {AUDIT: job.environment.look} if job.environment.look else {}
    return {**level_environment(str(job.cell.level), seed, threads, base), **seeds, **steps, **look}


def _python_program(job: Job) -> Program | None:
    from isorun.worker import programs  # noqa: PLC0415  most of it is for inside the training

    if job.command[0] == FUNCTION:
        return programs.Program(programs.FUNCTION, job.command[1], job.command[2:])
    return programs.parse(job.command[1:])


def refuse_missing_program(job: Job, standard_input: StandardInput) -> None:
    """Where there is no standard input, Python would find an empty program there and end well without training."""
    program = next((word for word in job.command[1:] if word != "-u"), "-")
    if program == "-" and not standard_input.is_there:
        raise ExecutionError(
            f"approaches.{job.cell.approach}: python would read its program from standard input, and none was given",
            found=" ".join(job.command),
            allowed="python SCRIPT, python -m MODULE, python -c CODE, or a program in a pipe or file: isorun … < FILE",
            hint="save the program to a file, and give that to python",
        )


def _argv(job: Job, prepared: Prepared, program: Program | None) -> tuple[str, ...]:
    if program is not None and program.kind == FUNCTION:
        from isorun.worker import programs  # noqa: PLC0415  as above

        return tuple(programs.fresh_command(prepared.interpreter, program))
    return (prepared.program, *job.command[1:])


def _found_here(wrapped: tuple[str, ...], prepared: Prepared, job: Job) -> tuple[str, ...]:
    """What is put around a command is a program of this machine, perhaps by its name alone (`podman`)."""
    from isorun.environments.interpreter import find_program  # noqa: PLC0415  only where something is around a command

    program = find_program(wrapped[0], prepared.variables, job.working_folder, what="what runs the command")
    return (program, *wrapped[1:])


def _write_request(ready: ReadyRun, launch: str) -> None:
    """Tell the worker what it is part of."""
    job = ready.job
    request = {
        "protocol": PROTOCOL,
        "run_id": job.run_id,
        "cell_id": job.cell.id,
        "attempt": job.attempt,
        "level": str(job.cell.level),
        "repeat": job.cell.repeat,
        "seed": job.seed,
        "threads": ready.threads,
        "launch": launch,
        "code_root": str(job.working_folder.absolute()),
        "take_seeds": job.cell.take_seeds,
        "config": dict(job.cell.config_values),
    }
    try:
        write_own(ready.folder / "request.json", json.dumps(request) + "\n")
    except OSError as error:
        what = f"the run {job.run_id} cannot be started: {ready.folder} cannot be written to ({error.strerror})"
        raise ExecutionError(what, hint="make room or choose another folder with --store, then run again") from None


@dataclass(frozen=True, slots=True)
class Launched:
    """A run in progress, how it was launched ("warm" or "fresh"), and what to note about that.

    stdin: its copy of standard input, to be closed when it has ended. ended: to be called when it has, by itself.
    """

    running: KeptProcess | WarmRun
    mode: str
    notes: tuple[Note, ...] = ()
    stdin: InputCopy | None = None
    ended: Callable[[], None] = lambda: None


class Launcher:
    """Starts runs in one mode: "fresh", "warm" where possible, or "auto": warm where that changes nothing.

    keepers: what everything that runs here is started under.
    """

    def __init__(self, mode: str, grace_seconds: float, standard_input: StandardInput) -> None:
        self._mode = mode
        self._grace_seconds = grace_seconds
        self._input = standard_input
        self.keepers = Keepers()
        self._servers: WarmServers | None = None
        self._lock = threading.Lock()

    def start(self, ready: ReadyRun) -> Launched:
        """Start the run."""
        stdin = self._input.open()
        try:
            return replace(self._started(ready, None if stdin is None else stdin.fd), stdin=stdin)
        except BaseException:
            if stdin is not None:
                stdin.close()
            raise

    def _started(self, ready: ReadyRun, stdin: int | None) -> Launched:
        if self._mode == "fresh" or (self._mode == "auto" and not _has_fixed_hashes(ready)):
            return self._fresh(ready, stdin)
        if reason := _never_warm(ready):
            return self._fresh(ready, stdin, *([_not_warm(reason)] if self._mode == "warm" else []))
        _write_request(ready, "warm")
        try:
            running = self._warm_servers().start(ready, stdin)
        except ExecutionError as error:
            return self._fresh(ready, stdin, _not_warm(error.found))
        return Launched(running, "warm", () if _has_fixed_hashes(ready) else (_SHARED_HASHES,))

    def _warm_servers(self) -> WarmServers:
        with self._lock:
            if self._servers is None:
                from isorun.execution.warm import WarmServers  # noqa: PLC0415  most runs are fresh

                self._servers = WarmServers(self.keepers, self._grace_seconds)
            return self._servers

    def _fresh(self, ready: ReadyRun, stdin: int | None, *notes: Note) -> Launched:
        _write_request(ready, "fresh")
        running = KeptProcess(
            self.keepers,
            ready.argv,
            env=ready.env,
            working_folder=ready.job.working_folder,
            cpus=ready.cpus,
            grace=self._grace_seconds,
            input_fd=stdin,
        )
        return Launched(running, "fresh", notes)

    def close(self) -> None:
        """End all fork servers and what runs on them."""
        if self._servers is not None:
            self._servers.close()
        self.keepers.close()


def _has_fixed_hashes(ready: ReadyRun) -> bool:
    """Whether Python's hashes are the same in every process of this environment.

    If they are drawn at start, forked runs would all have those of their server, and not be independent.
    """
    return ready.env.get("PYTHONHASHSEED", "random") != "random"


_SHARED_HASHES: Final = Note(
    "shared-hash-seed",
    "this run was forked warm and shares Python's hash seed with the other warm runs of this executor",
)


def _never_warm(ready: ReadyRun) -> str:
    """Why only a fresh process can be this run; empty where it can be forked."""
    if ready.wrapped:  # a server would run beside what is around the command, not inside
        return "its environment puts other words around the command"
    if ready.python_program is None:
        return "its command does not start a Python script, module or function without interpreter options"
    return ""


def _not_warm(reason: str) -> Note:
    return Note("not-warm", f"the run was started in a fresh process: {reason}")
