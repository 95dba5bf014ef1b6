"""`isorun` as people type it, without the wait for its imports: a process each, forked from one that has them.

A command is a real process with files, a folder and an exit code of its own; only what it imports is there already.
What an interpreter reads while it starts takes a fresh one, except PYTHONPATH, and so does a test that asks for it.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

# What only some environments can load, or what trainings load and no command does.
_LEFT_OUT = tuple(
    f"isorun.{room}"
    for room in (
        "worker",
        "zoo",
        "testing",
        "frameworks",
        "pytest_plugin",
        "repair.engines",
        "repair.expansion",
        "store.postgres",
        "serving",
        "execution.ray",
    )
)
_READ_AT_START = ("PYTHON", "LD_", "OMP_", "OPENBLAS_", "MKL_", "TZ", "LC_", "LANG")


def typed(
    *words: object,
    cwd: Path,
    stdin: str | None = "",
    env: Mapping[str, str] | None = None,
    timeout: float = 120,
    fresh: bool = False,
) -> subprocess.CompletedProcess[str]:
    """The command run there; `env` is set beside this process's own, `stdin=None` is an empty file, not a pipe."""
    command = [sys.executable, "-m", "isorun", *map(str, words)]
    whole = {**os.environ, **(env or {})}
    if fresh or any(name.startswith(_READ_AT_START) and name != "PYTHONPATH" for name in env or {}):
        given = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
        return subprocess.run(
            command, cwd=cwd, env=whole, capture_output=True, text=True, timeout=timeout, check=False, **given
        )
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        code = _server().run({"words": command[3:], "cwd": str(cwd), "env": whole}, stdin, out, err, timeout)
        texts = [_read(file) for file in (out, err)]
    return subprocess.CompletedProcess(command, code, *texts)


def _read(file) -> str:
    file.seek(0)
    return file.read().decode()


class _Server:
    """One process that forks a command at a time; it ends with this one."""

    def __init__(self) -> None:
        self._asked, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, __file__, str(theirs.fileno())]
            self._process = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
            )
        self._answers = self._asked.makefile()
        atexit.register(self.close)

    def close(self) -> None:
        self._answers.close()
        self._asked.close()
        self._process.wait()

    def run(self, request, stdin, out, err, timeout) -> int:
        reading, writing = os.pipe()
        given = os.open(os.devnull, os.O_RDONLY) if stdin is None else os.dup(reading)
        line = json.dumps(request).encode()
        self._asked.settimeout(timeout)
        socket.send_fds(self._asked, [len(line).to_bytes(4)], [given, out.fileno(), err.fileno()])
        self._asked.sendall(line)
        pid = int(self._answers.readline())
        os.close(reading)
        os.close(given)
        with os.fdopen(writing, "wb") as pipe:
            pipe.write((stdin or "").encode())
        try:
            return int(self._answers.readline())
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            _server.cache_clear()
            raise


@functools.cache
def _server() -> _Server:
    return _Server()


def _import_all(package: str) -> None:
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
        if not module.name.startswith(_LEFT_OUT) and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
            if module.ispkg:
                _import_all(module.name)


def _serve(asked: socket.socket) -> None:
    """Fork for each request."""
    while True:
        head, given, *_ = socket.recv_fds(asked, 4, 3)
        if not head:
            return
        request = json.loads(asked.recv(int.from_bytes(head), socket.MSG_WAITALL))
        if not (pid := os.fork()):
            asked.close()
            _become(request, given)
        for number in given:
            os.close(number)
        asked.sendall(b"%d\n" % pid)
        _, status = os.waitpid(pid, 0)
        asked.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


def _become(request, given: list[int]) -> NoReturn:
    """What an interpreter does around a module, in a process that is one already. It need not take itself apart."""
    for wanted, number in enumerate(given):
        os.dup2(number, wanted)
        os.close(number)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    added = request["env"].get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:1] = [request["cwd"], *(path for path in added if path and path not in sys.path)]
    sys.argv[1:] = request["words"]
    code = 1
    try:
        runpy.run_module("isorun", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


if __name__ == "__main__":
    _import_all("isorun")
    gc.freeze()
    _serve(socket.socket(fileno=int(sys.argv[1])))
