"""The warm fork server: imports frameworks once, and forks a child for each run.

It never computes (a parent that has computed hangs its forked children in some frameworks) and serves one environment:
whatever Python or a library reads at start must be the same for all its children. It ends, with all its children,
when the executor that started it is gone. Executor and server exchange length-prefixed JSON over a Unix socket, with
open files beside it; a child becomes the training process that a fresh `python` would have been.
"""

from __future__ import annotations

import array
import ctypes
import gc
import importlib
import io
import json
import os
import select
import signal
import socket
import struct
import sys
import warnings
from pathlib import Path
from types import TracebackType
from typing import Any, Callable, Mapping, NamedTuple, Sequence

from . import levels, programs

# What the worker loads late in a fresh process; children have it from the start.
_OWN_PRELOAD = ("arrays", "fingerprint", "lifetime", "seedsource")
# What finds out before the first fork what is the same for all children.
_LOOKING_AHEAD = ("fingerprint", "lifetime", "seedsource", "usercode")
_LOOK_AROUND_SECONDS = 1.0
_LENGTH = struct.Struct("!I")
_MAX_FILES = 8
_WORKER = str(Path(__file__).resolve().parent)
_PR_SET_PDEATHSIG = 1
# Looked up before the fork, so that the child need not load anything.
_prctl = ctypes.CDLL(None, use_errno=True).prctl


def send(connection: socket.socket, message: Mapping[str, Any], files: Sequence[int] = ()) -> None:
    """Send one message, and open files that the receiver gets as its own."""
    body = json.dumps(message).encode()
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
    header = _LENGTH.pack(len(body))
    sent = connection.sendmsg([header], rights)
    connection.sendall(header[sent:] + body)


def receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """One message and the files that came with it; None when the other side is gone."""
    space = socket.CMSG_SPACE(_MAX_FILES * array.array("i").itemsize)
    try:
        header, ancillary, _, _ = connection.recvmsg(_LENGTH.size, space)
        files = _files_of(ancillary)
        header += _exactly(connection, _LENGTH.size - len(header)) if header else b""
        body = _exactly(connection, _LENGTH.unpack(header)[0]) if header else b""
    except (ConnectionError, EOFError):
        return None
    return (json.loads(body), files) if header else None


def _files_of(ancillary: Sequence[tuple[int, int, bytes]]) -> list[int]:
    files = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            files.frombytes(data[: len(data) - len(data) % files.itemsize])
    for file in files:
        os.set_inheritable(file, False)
    return list(files)


def _exactly(connection: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = connection.recv(min(size, 1 << 16))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


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


def run(launch: Launch, files: Sequence[int], server: int) -> int:
    """Be the training process; the exit code to leave with. The caller returns it to the interpreter's own end.

    files: its output and error; before them its input, if it has one.
    """
    _detach(server)
    _reset_signals()
    _point_standard_files(files)
    return exit_code_of(lambda: _train(launch))


def _train(launch: Launch) -> None:
    from . import lifetime

    _have_variables(launch.environment)
    os.chdir(launch.folder)
    if launch.cpus:
        os.sched_setaffinity(0, launch.cpus)
    if launch.program.unbuffered:
        _unbuffer()
    programs.present(launch.program)
    lifetime.start(warm=True)
    programs.execute(launch.program)


def _have_variables(wanted: Mapping[str, str]) -> None:
    """Those of the run in place of the server's, of which most are the same."""
    for name in [name for name in os.environ if name not in wanted]:
        del os.environ[name]
    for name, value in wanted.items():
        if os.environ.get(name) != value:
            os.environ[name] = value


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


def _point_standard_files(files: Sequence[int]) -> None:
    given = files if len(files) == 3 else (os.open(os.devnull, os.O_RDONLY), *files)
    for target, source in enumerate(given):
        os.dup2(source, target)
        os.close(source)


def _unbuffer() -> None:
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        before = getattr(sys, name)
        raw = io.FileIO(descriptor, "w", closefd=False)
        text = io.TextIOWrapper(raw, before.encoding, before.errors, write_through=True)
        setattr(sys, name, text)
        setattr(sys, f"__{name}__", text)


def exit_code_of(run: Callable[[], None]) -> int:
    """Run as a fresh Python would, and say what to exit with; an uncaught error has been shown by then."""
    try:
        run()
    except SystemExit as request:
        return _code_of(request)
    except BaseException as error:  # the top of the program: nothing is above it
        _show(error)
        return 1
    return 0


def _code_of(request: SystemExit) -> int:
    if request.code is None:
        return 0
    if isinstance(request.code, int):
        return request.code
    sys.stderr.write(f"{request.code}\n")
    return 1


def _show(error: BaseException) -> None:
    own = error.with_traceback(_without_worker(error.__traceback__))
    sys.last_type, sys.last_value, sys.last_traceback = type(own), own, own.__traceback__
    sys.excepthook(type(own), own, own.__traceback__)


def _without_worker(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith((_WORKER, "<frozen")):
        trace = trace.tb_next
    return trace


def main(descriptor: int) -> int:
    """Serve until the executor is gone; in a forked child, train. Either way the exit code."""
    connection = socket.socket(fileno=descriptor)
    hello = receive(connection)
    if hello is None:
        return 0
    send(connection, _preload(hello[0]))
    return Server(connection).serve()


def _preload(hello: Mapping[str, Any]) -> dict[str, Any]:
    """Import what was asked for, on the CPUs that children will have: libraries count CPUs when they are loaded."""
    if hello["cpus"]:
        os.sched_setaffinity(0, hello["cpus"])
    for own in _OWN_PRELOAD:
        importlib.import_module(f".{own}", __package__)
    if levels.reaches_generators(os.environ):
        importlib.import_module(".lifetime", __package__).reach_when_imported()
    importlib.import_module(".usercode", __package__).follow_imports()
    failed: dict[str, str] = {}
    for name in hello["preload"]:
        try:
            importlib.import_module(name)
        except Exception as error:  # a broken import is the training's to show; here it only means no head start
            failed[name] = f"{type(error).__name__}: {error}"
    for own in _LOOKING_AHEAD:
        importlib.import_module(f".{own}", __package__).look_ahead()
    gc.collect()
    gc.freeze()
    return {"event": "ready", "pid": os.getpid(), "failed": failed, "threads": len(os.listdir("/proc/self/task"))}  # noqa: PTH208


class Server:
    """Forks, reaps and reports. One thread, one loop."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._executor = os.getppid()
        self._pid = os.getpid()
        self._children: dict[int, int] = {}
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        os.set_blocking(self._wake_read, False)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, _interrupt_the_wait)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)

    def serve(self) -> int:
        """Until the executor is gone; in a child, until the training has ended."""
        while os.getppid() == self._executor:
            waited_for = [self._connection.fileno(), self._wake_read]
            readable, _, _ = select.select(waited_for, [], [], _LOOK_AROUND_SECONDS)
            if self._wake_read in readable:
                os.read(self._wake_read, 4096)
            self._reap()
            if self._connection.fileno() not in readable:
                continue
            received = receive(self._connection)
            if received is None:
                break
            trained = self._obey(*received)
            if trained is not None:
                return trained
        self._kill_all()
        return 0

    def _obey(self, message: Mapping[str, Any], files: Sequence[int]) -> int | None:
        if message["do"] == "signal":
            self._signal(message["id"], message["signal"])
            return None
        return self._fork(message, files)

    def _fork(self, message: Mapping[str, Any], files: Sequence[int]) -> int | None:
        launch = launch_from_json(message["launch"])
        with warnings.catch_warnings():
            # Python 3.12 warns of threads; those of OpenBLAS end themselves around a fork.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            self._forget()
            return run(launch, files, self._pid)
        for file in files:
            os.close(file)
        self._children[pid] = message["id"]
        self._tell({"event": "started", "id": message["id"], "pid": pid})
        return None

    def _forget(self) -> None:
        """A child has nothing of the server's."""
        signal.set_wakeup_fd(-1)
        self._connection.close()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _signal(self, identity: int, number: int) -> None:
        """Only to children not yet reaped: their process ids cannot belong to anybody else."""
        for pid, child in self._children.items():
            if child == identity:
                _signal_group(pid, number)

    def _reap(self) -> None:
        for pid in list(self._children):
            ended, status, usage = os.wait4(pid, os.WNOHANG)
            if ended:
                self._tell({"event": "exited", "id": self._children.pop(pid), **_account(status, usage)})

    def _tell(self, event: Mapping[str, Any]) -> None:
        try:
            send(self._connection, event)
        except OSError:
            return  # the executor is gone: the loop sees it next

    def _kill_all(self) -> None:
        for pid in self._children:
            _signal_group(pid, signal.SIGKILL)


def _account(status: int, usage: Any) -> dict[str, Any]:
    code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    return {
        "returncode": code,
        "user_seconds": usage.ru_utime,
        "system_seconds": usage.ru_stime,
        "peak_memory_bytes": usage.ru_maxrss * 1024,
    }


def _signal_group(pid: int, number: int) -> None:
    """The whole session of a child; the child alone before it has one."""
    for tell in (os.killpg, os.kill):
        try:
            tell(pid, number)
        except ProcessLookupError:
            continue
        return


def _interrupt_the_wait(_number: int, _frame: Any) -> None:
    """A handler there must be, or the signal would not reach the wake-up pipe."""
