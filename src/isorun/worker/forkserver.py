"""The warm fork server: imports frameworks once, and forks a child for each run.

It never computes (a parent that has computed with torch hangs its forked children) and serves one environment:
whatever Python or a library reads at start must be the same for all its children. It ends, with all its children,
when the executor that started it is gone.
"""

from __future__ import annotations

import gc
import importlib
import os
import select
import signal
import socket
import warnings
from typing import Any, Mapping, Sequence

from . import levels, messages, warmchild

# What the worker loads late in a fresh process; children have it from the start.
_OWN_PRELOAD = ("digests", "fingerprint", "predictions", "seedsource")
TORCH_PRELOAD = ("numpy", "numpy.random", "torch", "torch.optim", "torch._dynamo", "torch._inductor.config")
_LOOK_AROUND_SECONDS = 1.0


def main(descriptor: int) -> int:
    """Serve until the executor is gone; in a forked child, train. Either way the exit code."""
    connection = socket.socket(fileno=descriptor)
    hello = messages.receive(connection)
    if hello is None:
        return 0
    messages.send(connection, _preload(hello[0]))
    return Server(connection).serve()


def _preload(hello: Mapping[str, Any]) -> dict[str, Any]:
    """Import what was asked for, on the CPUs that children will have: libraries count CPUs when they are loaded."""
    if hello["cpus"]:
        os.sched_setaffinity(0, hello["cpus"])
    for own in _OWN_PRELOAD:
        importlib.import_module(f".{own}", __package__)
    if os.environ.get(levels.TAKE_SEEDS):
        importlib.import_module(".frameworks.taking", __package__).install()
    failed: dict[str, str] = {}
    for name in hello["preload"]:
        try:
            importlib.import_module(name)
        except Exception as error:  # a broken import is the training's to show; here it only means no head start
            failed[name] = f"{type(error).__name__}: {error}"
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
            received = messages.receive(self._connection)
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
        launch = warmchild.launch_from_json(message["launch"])
        with warnings.catch_warnings():
            # Python 3.12 warns of threads; those of OpenBLAS end themselves around a fork.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            self._forget()
            return warmchild.run(launch, files, self._pid)
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
            messages.send(self._connection, event)
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
    for send in (os.killpg, os.kill):
        try:
            send(pid, number)
        except ProcessLookupError:
            continue
        return


def _interrupt_the_wait(_number: int, _frame: Any) -> None:
    """A handler there must be, or the signal would not reach the wake-up pipe."""
