"""One warm fork server, seen from the executor: started under a keeper, asked for runs, listened to.

The server itself is the worker's (`worker/forkserver.py`). Under a keeper everything it forks, and everything that
those fork, ends when the executor ends.
"""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from isorun.errors import ExecutionError
from isorun.execution.keeper import Process, descendants
from isorun.execution.process import KeptProcess
from isorun.worker import forkserver as messages
from isorun.worker.forkserver import Launch
from isorun.worker.levels import PER_RUN_VARIABLES, site_folder

__all__ = ["Listener", "ServerKey", "WarmServer"]

_START_SECONDS: Final = 300.0
_COMPLAINT_BYTES: Final = 2000


@dataclass(frozen=True, slots=True)
class ServerKey:
    """What all runs of one server share: everything that Python or a library reads when it is loaded."""

    interpreter: str
    variables: tuple[tuple[str, str], ...]
    cpus: tuple[int, ...]
    preload: tuple[str, ...]
    working_folder: Path


class Listener(Protocol):
    """Told, from the server's thread, what happens to one run."""

    def started(self, pid: int) -> None:
        """The run's process was forked."""

    def exited(self, event: Mapping[str, Any]) -> None:
        """It ended."""

    def lost(self) -> None:
        """The server died, and the run with it."""


class WarmServer:
    """A server that is ready to fork. failed: modules that it could not import, with the error.

    Raises ExecutionError when it does not start.
    """

    def __init__(self, key: ServerKey, cpus: Sequence[int]) -> None:
        self.alive = True
        self.last_used = time.monotonic()
        self._listeners: dict[int, Listener] = {}
        self._count = 0
        self._lock = threading.Lock()
        self._complaints = b""
        self._connection, self._process = _start(key, cpus)
        try:
            ready = self._greet({"cpus": list(cpus), "preload": list(key.preload)})
        except ExecutionError:
            self._release()
            raise
        self._pid: int = ready["pid"]
        self.failed: dict[str, str] = ready["failed"]
        self._thread = threading.Thread(target=self._listen, name="warm-server", daemon=True)
        self._thread.start()

    @property
    def busy(self) -> bool:
        """Whether a run is in progress."""
        return bool(self._listeners)

    def launch(self, launch: Launch, output_fd: int, listener: Listener) -> None:
        """Fork a child for the run, with `output_fd` as its output and error; tell the listener about it."""
        with self._lock:
            self.last_used = time.monotonic()
            self._count += 1
            self._listeners[self._count] = listener
            message = {"do": "launch", "id": self._count, "launch": launch.to_json()}
            try:
                messages.send(self._connection, message, (output_fd, output_fd))
            except OSError:
                del self._listeners[self._count]
                self.alive = False
                raise

    def orphans(self) -> list[Process]:
        """Processes that a run left behind: descendants of the keeper, but not, or no longer, of the server."""
        of_server = {process.pid for process in descendants(self._pid)}
        kept = descendants(self._process.keeper_pid)
        return [process for process in kept if process.pid != self._pid and process.pid not in of_server]

    def close(self) -> None:
        """End the server and everything that was forked from it."""
        self._process.kill()
        self._thread.join()
        self._release()

    def _greet(self, hello: Mapping[str, Any]) -> dict[str, Any]:
        self._connection.settimeout(_START_SECONDS)
        try:
            messages.send(self._connection, hello)
            answer = messages.receive(self._connection)
        except OSError:
            answer = None
        if answer is None:
            self._process.kill()
            raise ExecutionError("a warm fork server did not start", found=self._all_complaints() or "no message")
        self._connection.settimeout(None)
        return answer[0]

    def _listen(self) -> None:
        poll = select.poll()
        poll.register(self._connection, select.POLLIN)
        poll.register(self._process.output_fd, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poll.poll()}
            if self._process.output_fd in ready and not self._read_complaints():
                poll.unregister(self._process.output_fd)
            if self._connection.fileno() in ready and not self._take_event():
                self._lose_all()
                return

    def _take_event(self) -> bool:
        """Pass the next event on; whether the server is still there."""
        try:
            received = messages.receive(self._connection)
        except OSError:
            received = None
        if received is None:
            return False
        event = received[0]
        with self._lock:
            ended = event["event"] == "exited"
            listener = self._listeners.pop(event["id"]) if ended else self._listeners[event["id"]]
        if ended:
            listener.exited(event)
        else:
            listener.started(event["pid"])
        return True

    def _lose_all(self) -> None:
        with self._lock:
            self.alive = False
            lost, self._listeners = list(self._listeners.values()), {}
        for listener in lost:
            listener.lost()

    def _read_complaints(self) -> bool:
        """What the server prints is kept in part; it must be read, or the server would wait for us."""
        data = os.read(self._process.output_fd, 65536)
        self._complaints = (self._complaints + data)[-_COMPLAINT_BYTES:]
        return bool(data)

    def _all_complaints(self) -> str:
        while self._read_complaints():
            continue
        return self._complaints.decode(errors="replace").strip()

    def _release(self) -> None:
        self.alive = False
        self._process.close()
        self._connection.close()


def _start(key: ServerKey, cpus: Sequence[int]) -> tuple[socket.socket, KeptProcess]:
    ours, theirs = socket.socketpair()
    try:
        process = KeptProcess(
            [key.interpreter, str(site_folder() / "enter.py"), "serve", str(theirs.fileno())],
            env={name: value for name, value in key.variables if name not in PER_RUN_VARIABLES},
            working_folder=key.working_folder,
            cpus=cpus,
            pass_fds=[theirs.fileno()],
        )
    except ExecutionError:
        ours.close()
        raise
    finally:
        theirs.close()
    return ours, process
