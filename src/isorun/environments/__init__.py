"""Where a training runs: a family, prepared on the machine that carries the run out. Here is what every kind promises.

A step before the run yields how to launch in the environment and what it is. Which kinds there are is looked up here
and nowhere else: `interpreter`, or a name that some distribution brings (entry-point group `isorun.environments`).
"""

from __future__ import annotations

import abc
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from isorun.errors import IsorunError, PluginError
from isorun.study import Environment

__all__ = ["ENVIRONMENTS", "INTERPRETER", "AbstractEnvironment", "Environments", "Folders", "Prepared"]

ENVIRONMENTS: Final = "isorun.environments"
INTERPRETER: Final = "interpreter"


@dataclass(frozen=True, slots=True)
class Folders:
    """Folders that a run must find under these very names: its variables and its command hold them.

    working: where it runs; it may write there. run: its own folder, which it writes to. worker: isorun's worker, which
    it only reads.
    """

    working: Path
    run: Path
    worker: Path


@dataclass(frozen=True)
class Prepared:
    """An environment that is ready for one command.

    program: what the first word of the command is there: the absolute path of a program, or a name that is looked for
    inside. interpreter: the same where it is a Python, empty when the command starts with something else. variables:
    all variables of the process that is started here. identity: what was found, as plain JSON; it is recorded with the
    run. What runs a command inside something else, as containers do, is a subclass with a `wrap` of its own.
    """

    program: str
    interpreter: str
    variables: Mapping[str, str]
    identity: Mapping[str, Any]

    def wrap(self, argv: Sequence[str], variables: Mapping[str, str], folders: Folders) -> tuple[str, ...]:
        """What is executed here, so that argv runs inside; argv itself where nothing is around it.

        variables: those that isorun, the devices and the study set for this run: they must reach it, whatever else
        does. A run whose argv is wrapped is never forked from a warm server.
        """
        del variables, folders
        return tuple(argv)


class AbstractEnvironment(abc.ABC):
    """One way to say where a training runs: an interpreter, packages, a container image, a code version.

    What is declared is part of a cell's id only where it is set; what was found is recorded, and in no id. One object
    serves all runs of one declared environment.
    """

    @abc.abstractmethod
    def prepare(self, command: Sequence[str], working_folder: Path) -> Prepared:
        """Make ready, here, what the command needs; ExecutionError when that is not possible.

        The command's placeholders are filled. It is looked for where it will run, and nowhere else. Called before every
        run, from several threads: what takes long is done once.
        """


class Environments:
    """The environments of the runs on this machine, each opened once, by the name of its kind."""

    def __init__(self) -> None:
        self._opened: dict[tuple[str, str], AbstractEnvironment] = {}
        self._lock = threading.Lock()

    def of(self, kind: str, declared: Environment) -> AbstractEnvironment:
        """The environment of this kind that was declared; PluginError when there is no such kind."""
        key = (kind, json.dumps([declared.name, declared.to_json()], sort_keys=True))
        with self._lock:
            if key not in self._opened:
                self._opened[key] = _open(kind, declared)
            return self._opened[key]


def _open(kind: str, declared: Environment) -> AbstractEnvironment:
    if kind == INTERPRETER:
        from isorun.environments.interpreter import InterpreterEnvironment  # noqa: PLC0415 - it is built on this file

        return InterpreterEnvironment(declared)
    from isorun import plugins  # noqa: PLC0415  only where a study names a kind of another distribution

    factory = plugins.load(ENVIRONMENTS, kind, own=(INTERPRETER,))
    try:
        made = factory(declared)
    except IsorunError:
        raise
    except Exception as error:  # whatever another distribution may raise
        what = f"the environment {kind!r} cannot be opened"
        raise PluginError(what, found=f"{type(error).__name__}: {error}") from error
    if not isinstance(made, AbstractEnvironment):
        what = f"the environment {kind!r} cannot be used"
        raise PluginError(what, found=type(made).__name__, allowed="a subclass of AbstractEnvironment")
    return made
