"""A forked child becomes the training process that a fresh `python` would have been."""

from __future__ import annotations

import ctypes
import io
import os
import signal
import sys
from typing import Any, Mapping, NamedTuple, Sequence

from . import exits, mainmodule, programs, startup

_PR_SET_PDEATHSIG = 1
# Looked up before the fork, so that the child need not load anything.
_prctl = ctypes.CDLL(None, use_errno=True).prctl


class Launch(NamedTuple):
    """One run to fork: what, where, with which environment, on which CPUs."""

    program: programs.Program
    folder: str
    environment: Mapping[str, str]
    cpus: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        program = self.program._asdict()
        environment = dict(self.environment)
        return {"program": program, "folder": self.folder, "environment": environment, "cpus": list(self.cpus)}


def launch_from_json(data: Mapping[str, Any]) -> Launch:
    """The launch that `to_json` wrote."""
    return Launch(programs.from_json(data["program"]), data["folder"], data["environment"], tuple(data["cpus"]))


def run(launch: Launch, output: Sequence[int], server: int) -> int:
    """Be the training process; the exit code to leave with. The caller returns it to the interpreter's own end."""
    _detach(server)
    _reset_signals()
    _point_standard_files(output)
    return exits.exit_code_of(lambda: _train(launch))


def _train(launch: Launch) -> None:
    os.environ.clear()
    os.environ.update(launch.environment)
    os.chdir(launch.folder)
    if launch.cpus:
        os.sched_setaffinity(0, launch.cpus)
    if launch.program.unbuffered:
        _unbuffer()
    mainmodule.present(launch.program)
    startup.start(warm=True)
    mainmodule.execute(launch.program)


def _detach(server: int) -> None:
    """A session of its own, so that it can be killed with all its children; and no life after the server's."""
    os.setsid()
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != server:
        os._exit(1)


def _reset_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _point_standard_files(output: Sequence[int]) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    for target, source in enumerate((nothing, *output)):
        os.dup2(source, target)
        os.close(source)


def _unbuffer() -> None:
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        before = getattr(sys, name)
        raw = io.FileIO(descriptor, "w", closefd=False)
        text = io.TextIOWrapper(raw, before.encoding, before.errors, write_through=True)
        setattr(sys, name, text)
        setattr(sys, f"__{name}__", text)
