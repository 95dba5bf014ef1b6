"""Making an environment in a process of its own, under a keeper: whatever it has started ends when the run is stopped.

Packages and images take minutes, and are made by other programs. A thread cannot be ended, and ending such a program
leaves those that it has started. So `make` is called in a new interpreter: it gets the declared environment and the
folder as JSON, what it tells comes back as lines of JSON, and all that it leaves is in the folder.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any, Final

from isorun.environments import made_for
from isorun.errors import ExecutionError, IsorunError, PluginError, StudyError
from isorun.execution.keeper import PASSED_SOCKET
from isorun.execution.output import Secrets, readable_tail
from isorun.execution.process import Exit, Keepers, KeptProcess, unnamed_file
from isorun.study import Environment
from isorun.worker.levels import OWN_VARIABLES

__all__ = ["main", "make_apart"]

# The path comes as JSON and not as PYTHONPATH, which every Python that is started while making would obey.
_START: Final = (
    "import json, sys; asked = json.load(sys.stdin); sys.path[:] = asked['path'];"
    "from isorun.execution.making import main; main(asked)"
)
_READ_BYTES: Final = 1 << 16
_KEPT_OUTPUT: Final = 1 << 14
_SHOWN: Final = 1_000
_ERRORS: Final = {kind.__name__: kind for kind in (ExecutionError, PluginError, StudyError)}


def make_apart(
    declared: Environment,
    folder: Path,
    working_folder: Path,
    tell: Callable[[str], None],
    *,
    keepers: Keepers,
    registered: Callable[[KeptProcess], AbstractContextManager[None]],
) -> None:
    """Make the environment in the folder; what prevents it is raised here as it was there.

    working_folder: where it is made from, that of the study. registered: while the process is, it can be stopped.
    """
    ours, theirs = socket.socketpair()
    with closing(ours):
        with closing(theirs):
            process = _started(declared, folder, working_folder, keepers, theirs.fileno())
        with registered(process):
            said, output, ended = _heard(process, ours, tell)
    if said == {"made": True}:
        return
    if said:
        raise _ERRORS[said.pop("kind")](**said)
    why = ended.signal or f"exit code {ended.exit_code}"
    printed = Secrets.of((), {**os.environ, **declared.env}).masked(readable_tail(output))[-_SHOWN:]
    raise PluginError(f"the environment {declared.kind!r} cannot be made", found=f"{why}: {printed}".rstrip(": "))


def _started(declared: Environment, folder: Path, working_folder: Path, keepers: Keepers, passed: int) -> KeptProcess:
    environment = {"name": declared.name, **declared.to_json()}
    # It starts elsewhere, where relative entries would name other folders.
    path = [str(Path(entry).absolute()) for entry in sys.path]
    asked = {"path": path, "environment": environment, "folder": str(folder.absolute())}
    request = unnamed_file(json.dumps(asked).encode())
    try:
        return KeptProcess(
            keepers,
            [sys.executable, "-c", _START],
            env={name: value for name, value in os.environ.items() if name not in OWN_VARIABLES},
            working_folder=working_folder,
            cpus=sorted(os.sched_getaffinity(0)),
            input_fd=request,
            passed=passed,
        )
    finally:
        os.close(request)


def _heard(
    process: KeptProcess, told: socket.socket, tell: Callable[[str], None]
) -> tuple[dict[str, Any], bytes, Exit]:
    """Hand on what is told until the process has ended: its last word, empty if there was none; its output; the end."""
    said: dict[str, Any] = {}
    output = pending = b""
    poll = select.poll()
    for fd in (told.fileno(), process.output_fd, process.status_fd):
        poll.register(fd, select.POLLIN)
    while True:
        ready = {fd for fd, _ in poll.poll()}
        if process.output_fd in ready:
            output = (output + _read(poll, process.output_fd))[-_KEPT_OUTPUT:]
        if told.fileno() in ready:
            *lines, pending = (pending + _read(poll, told.fileno())).split(b"\n")
            for message in map(json.loads, lines):
                if "told" in message:
                    tell(message["told"])
                else:
                    said = message
        elif process.status_fd in ready and (ended := process.exit()):
            return said, output, ended


def _read(poll: select.poll, fd: int) -> bytes:
    """What is there; at the end nothing, and the file is not waited for any more."""
    if not (data := os.read(fd, _READ_BYTES)):
        poll.unregister(fd)
    return data


def main(asked: Mapping[str, Any]) -> None:
    """Make an environment in this process, which is there for nothing else. Its last word says how that went.

    What is no error of isorun's goes its way: its traceback is the last output, which whoever asked shows.
    """
    with socket.socket(fileno=PASSED_SOCKET) as told:
        told.set_inheritable(False)

        def say(message: Mapping[str, Any]) -> None:
            told.sendall(json.dumps(message).encode() + b"\n")

        declared = Environment.from_json(asked["environment"])
        try:
            made_for(declared, Path.cwd()).make(Path(asked["folder"]), lambda message: say({"told": str(message)}))
        except IsorunError as error:
            kind = type(error).__name__ if type(error).__name__ in _ERRORS else ExecutionError.__name__
            parts = ("what", "found", "allowed", "hint")
            say({"kind": kind, **{part: getattr(error, part) for part in parts}})
        else:
            say({"made": True})
