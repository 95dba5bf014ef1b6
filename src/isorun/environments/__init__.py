"""Where a training runs: a family, prepared on the machine that carries the run out. Here is what every kind promises.

A study names its kind and settings (`kind = "box"`), which the kind checks before anything runs. What takes long is
made once on each machine, under a lock. A step before the run yields how to launch in the environment and what it is.
Which kinds there are is looked up here and nowhere else: `interpreter`, `packages`, `container`, or a name that some
distribution brings (entry-point group `isorun.environments`).
"""

from __future__ import annotations

import abc
import fcntl
import hashlib
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from isorun.errors import ExecutionError, IsorunError, StudyError
from isorun.study import Environment
from isorun.study.parsing import CONTAINER, INTERPRETER, PACKAGES
from isorun.worker.levels import OWN_VARIABLES

__all__ = [
    "CODE",
    "NO_ROOM",
    "AbstractEnvironment",
    "Environments",
    "Folders",
    "Made",
    "Prepared",
    "callers_variables",
    "keep",
    "made_for",
    "opened_environment",
]

Make = Callable[[Path], None]
"""Calls `Made.make` for one folder, in a process that can be ended."""

NO_ROOM: Final = "make room, or name another folder: ISORUN_CACHE=…; then run again: what was finished is kept"
"""The next step where the disk is full."""
_LOOK_SECONDS: Final = 0.1
_TIMES_MADE: Final = 3
CODE: Final = "code"
"""A checkout, made beside an environment of any kind whose study names a version of the code: it is no such kind."""


def callers_variables() -> dict[str, str]:
    """The variables of whoever called, without those of an isorun that this one runs inside."""
    return {name: value for name, value in os.environ.items() if name not in OWN_VARIABLES}


def keep(path: Path, found: Mapping[str, Any]) -> None:
    """Keep what was found while making, as JSON: whole or not at all."""
    half = path.with_name(f"{path.name}.half")
    half.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    half.replace(path)


@dataclass(frozen=True, slots=True)
class Folders:
    """Folders that a run must find under these very names: its variables and its command hold them.

    working: where it runs; it may write there. run: its own folder, which it writes to. worker: isorun's worker, which
    it only reads. cpus: those that the run is pinned to, which what is started by another process must be told.
    copy_of: what `working` is a copy of, and has links to; None where it is no copy.
    """

    working: Path
    run: Path
    worker: Path
    cpus: tuple[int, ...] = ()
    copy_of: Path | None = None


@dataclass(frozen=True)
class Prepared:
    """An environment that is ready for one command.

    program: what the first word of the command is there: the absolute path of a program, or a name that is looked for
    inside. interpreter: the same where it is a Python, empty when the command starts with something else. variables:
    all that the command finds there before those of the run are set. made: what was made and found, as plain JSON; it
    is recorded with the run (`environment.made`). What runs a command inside something else, as containers do, is a
    subclass with a `wrap` of its own, and with the other steps around a run where it needs them.
    """

    program: str
    interpreter: str
    variables: Mapping[str, str]
    made: Mapping[str, Any]

    @property
    def is_counted(self) -> bool:
        """Whether all of the run is among the processes started here, so that its CPU time and memory are counted."""
        return True

    def wrap(self, argv: Sequence[str], variables: Mapping[str, str], folders: Folders) -> tuple[str, ...]:
        """What is executed here, so that argv runs inside; argv itself where nothing is around it.

        The program that it begins with is looked for by the PATH of `self.variables`. variables: those that isorun, the
        devices and the study set for this run: they must reach it, whatever else does. A run whose argv is wrapped is
        never forked from a warm server.
        """
        del variables, folders
        return tuple(argv)

    def outside(self, variables: Mapping[str, str]) -> Mapping[str, str]:
        """The variables of what is executed here, where `variables` are all of the command inside: the same ones."""
        return variables

    def guard(self, folders: Folders) -> AbstractContextManager[Callable[[], None]]:
        """Open while the run goes on: what of it is not among the processes started here ends when this closes.

        It must end as well when isorun is killed. What is given is called when the run has ended by itself.
        """
        del folders
        return nullcontext(lambda: None)

    def end_inside(self, exit_code: int, output: str) -> tuple[int, str]:
        """The signal that ended the command inside, 0 for none; and why it never began, empty where it did.

        exit_code: of what is around the command. output: the end of what was printed.
        """
        del exit_code, output
        return 0, ""


class Made:
    """What is made once on a machine, and lies in a folder: an environment, or the checkout beside it.

    study_folder: the folder of the study, which relative paths start from. folder: what `make` left, where there is
    such a step. Both are set by whoever opens it.
    """

    study_folder: Path = Path()
    folder: Path

    def make(self, folder: Path, tell: Callable[[str], None]) -> None:
        """Make once on this machine what takes long: an image, packages, a checkout; by default there is nothing.

        folder: empty, and for environments with the same kind that are made from the same, of any process, the same:
        whoever comes later finds there what this one left, and `make` is not called again. Others wait meanwhile. When
        it raises (ExecutionError says why) no run of this environment starts, each is recorded as failed with that
        reason, runs in others go on, nothing counts as made, and the next isorun begins with an empty folder. tell: a
        line for those who wait.

        It is called in a process of its own, on an object that is opened there, in the study's folder: only what lies
        in the folder is left of it. When the run is stopped, that process and all that it has started are asked to end
        (SIGTERM), then killed.
        """
        del folder, tell

    def made_from(self) -> Any:
        """What tells one made folder from another, as plain JSON; None where that is python and settings.

        It is asked before and after: where the answer has changed meanwhile, what was made is not what is asked for
        any more, counts for nothing, and is made again.
        """
        return None


class AbstractEnvironment(Made, abc.ABC):
    """One way to say where a training runs: an interpreter, packages, a container image.

    What is declared is part of a cell's id only where it is set; what was found is recorded, and in no id. One object
    serves all runs of one declared environment. It is opened with what was declared, and refuses settings it cannot use
    (StudyError). That happens where a study is started as well, before anything is made or run: opening is quick and
    makes nothing.
    """

    @abc.abstractmethod
    def prepare(self, command: Sequence[str], working_folder: Path) -> Prepared:
        """Make ready, here, what the command needs; ExecutionError when that is not possible.

        The command's placeholders are filled. It is looked for where it will run, and nowhere else. Called before every
        run, from several threads: what takes long is done once.
        """


class Environments:
    """The environments of the runs on this machine, each opened once and made once, by the name of its kind."""

    def __init__(self) -> None:
        self._opened: dict[str, Made] = {}
        self._failed: dict[str, ExecutionError] = {}
        self._locks: dict[str, threading.Lock] = {}

    def ready(
        self,
        declared: Environment,
        working_folder: Path,
        make: Make,
        tell: Callable[[str], None],
        is_stopped: Callable[[], bool],
    ) -> Made | None:
        """What was declared, with all made that takes long; PluginError when there is no such kind.

        make: how it is made, once; what failed is not tried again here, and raised for each run. tell: hears how far
        that is. None as soon as whoever needs it is stopped, also while it is made, or waited for.
        """
        key = json.dumps([declared.name, declared.to_json(), str(working_folder)], sort_keys=True)
        # While one is made, runs in others go on: setdefault is one step, and so needs no lock of its own.
        lock = self._locks.setdefault(key, threading.Lock())
        while not lock.acquire(timeout=_LOOK_SECONDS):
            if is_stopped():
                return None
        try:
            if key in self._failed:
                raise self._failed[key]
            if key not in self._opened and not is_stopped():
                opened = made_for(declared, working_folder)
                if type(opened).make is not Made.make:
                    opened.folder = _made_once(opened, declared, make, tell, is_stopped)
                self._opened[key] = opened
        except IsorunError as error:  # what was ended in the middle may say anything
            if not is_stopped():
                if isinstance(error, ExecutionError):
                    self._failed[key] = error
                raise
        finally:
            lock.release()
        return None if is_stopped() else self._opened[key]


def _made_once(
    opened: Made,
    declared: Environment,
    make: Make,
    tell: Callable[[str], None],
    is_stopped: Callable[[], bool],
) -> Path:
    """The folder of what is made, whichever process made it. Of what failed, or is out of date, nothing is left."""
    for _ in range(_TIMES_MADE):
        folder = _place_of(opened, declared)
        done = folder.with_name(f"{folder.name}.made")
        with folder.with_name(f"{folder.name}.lock").open("a") as lock:
            _wait_for(lock, declared, tell, is_stopped)
            if done.exists() and folder.is_dir():
                return folder
            done.unlink(missing_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700)
            try:
                make(folder)
                if _place_of(opened, declared) == folder:
                    done.touch()
                    return folder
            finally:
                if not done.exists():
                    shutil.rmtree(folder, ignore_errors=True)
    what = f"what the environment {declared.name!r} is made from changes while it is made"
    raise ExecutionError(what, found=f"made {_TIMES_MADE} times", hint="run again when nobody changes it")


def _place_of(opened: Made, declared: Environment) -> Path:
    """The folder in the cache that is named by what the environment is made from."""
    from isorun.worker.fingerprint import cache_folder  # noqa: PLC0415 - only where something is made

    content = opened.made_from()
    content = [declared.python, declared.settings] if content is None else content
    written = json.dumps(content, sort_keys=True)
    folder = cache_folder() / "environments"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / f"{declared.kind}-{hashlib.sha256(written.encode()).hexdigest()[:16]}"


def _wait_for(
    lock: IO[str], declared: Environment, tell: Callable[[str], None], is_stopped: Callable[[], bool]
) -> None:
    """Hold the lock, which the kernel takes back from a process that dies; ExecutionError when stopped meanwhile."""
    is_said = False
    while not is_stopped():
        with suppress(BlockingIOError):
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not is_said:
            tell(f"waiting for another isorun, which makes the environment {declared.name}")
            is_said = True
        time.sleep(_LOOK_SECONDS)
    raise ExecutionError(f"the environment {declared.name} was not waited for")


def made_for(declared: Environment, study_folder: Path) -> Made:
    """What is to be made, nothing of it made yet: the environment that was declared, or a checkout for one."""
    if declared.kind == CODE:
        from isorun.environments.code import CodeVersion  # noqa: PLC0415 - it is built on this file

        opened: Made = CodeVersion(declared)
    else:
        opened = opened_environment(declared)
    opened.study_folder = study_folder
    return opened


def opened_environment(declared: Environment) -> AbstractEnvironment:
    """The environment that was declared, nothing of it made; an error where its kind or its settings are not known."""
    if declared.kind in {"", INTERPRETER}:
        from isorun.environments.interpreter import InterpreterEnvironment  # noqa: PLC0415 - it is built on this file

        return InterpreterEnvironment(declared)
    if declared.kind == PACKAGES:
        from isorun.environments.packages import PackagesEnvironment  # noqa: PLC0415 - as above

        return PackagesEnvironment(declared)
    if declared.kind == CONTAINER:
        from isorun.environments.container import ContainerEnvironment  # noqa: PLC0415 - as above

        return ContainerEnvironment(declared)
    if declared.kind == CODE:
        what = f"environments.{declared.name}: a version of the code is no kind of environment"
        raise StudyError(what, found=f"kind = {CODE!r}", allowed='code = "main", beside any kind')
    from isorun import plugins  # noqa: PLC0415  only where a study names a kind of another distribution

    made: AbstractEnvironment = plugins.make(
        plugins.ENVIRONMENTS, declared.kind, AbstractEnvironment, declared, own=(INTERPRETER, PACKAGES, CONTAINER)
    )
    return made
