"""One warm fork server, seen from the executor: started under a keeper, asked for runs, listened to; and its runs.

The server itself is the worker's (`worker/forkserver.py`). Under a keeper everything it forks, and everything that
those fork, ends when the executor ends.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from isorun.errors import ExecutionError
from isorun.execution.keeper import PASSED_SOCKET, Process, descendants, kill_all, send
from isorun.execution.process import Exit, Keepers, KeptProcess, Marks, end_processes, signal_name
from isorun.worker import forkserver as messages
from isorun.worker.forkserver import Launch
from isorun.worker.levels import PER_RUN_VARIABLES, site_folder

__all__ = ["ServerKey", "WarmRun", "WarmServer"]

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


class WarmServer:
    """A server that is ready to fork. failed: modules that it could not import, with the error.

    Raises ExecutionError when it does not start.
    """

    def __init__(self, keepers: Keepers, key: ServerKey, cpus: Sequence[int]) -> None:
        self.alive = True
        self.last_used = time.monotonic()
        self._runs: dict[int, WarmRun] = {}
        self._count = 0
        self._lock = threading.Lock()
        self._complaints = b""
        self._connection, self._process = _start(keepers, key, cpus)
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
        return bool(self._runs)

    def launch(self, launch: Launch, files: Sequence[int], run: WarmRun) -> None:
        """Fork a child for the run, with these files as (input,) output and error; tell the run about it."""
        with self._lock:
            self.last_used = time.monotonic()
            self._count += 1
            self._runs[self._count] = run
            message = {"do": "launch", "id": self._count, "launch": launch.to_json()}
            try:
                messages.send(self._connection, message, files)
            except OSError:
                del self._runs[self._count]
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
            run = self._runs.pop(event["id"]) if ended else self._runs[event["id"]]
        if ended:
            run.exited(event)
        else:
            run.started(event["pid"])
        return True

    def _lose_all(self) -> None:
        with self._lock:
            self.alive = False
            lost, self._runs = list(self._runs.values()), {}
        for run in lost:
            run.lost()

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


class WarmRun:
    """A run that was forked from a server.

    output_fd: its standard output and error, to be read. status_fd: readable when it has ended. input_fd: its standard
    input, empty if not given.
    """

    def __init__(
        self, server: WarmServer, launch: Launch, run_folder: Path, grace: float, input_fd: int | None = None
    ) -> None:
        self._server = server
        self._run_folder = run_folder
        self._grace = grace
        self._pid = 0
        self._began = self._ended = time.monotonic()
        self._forked = threading.Event()
        self._lock = threading.Lock()
        self._event: Mapping[str, Any] | None = None
        self._over = False
        self._asked_to_stop = False
        self._kill_timer: threading.Timer | None = None
        self._open(launch, [] if input_fd is None else [input_fd])

    def _open(self, launch: Launch, given: list[int]) -> None:
        """Ask for the fork and wait for it, so that a server that dies before it forked can be replaced."""
        self.output_fd, output = os.pipe()
        self.status_fd, self._end_fd = os.pipe()
        try:
            self._server.launch(launch, [*given, output, output], self)
        except OSError:
            os.close(self._end_fd)
            self.close()
            raise
        finally:
            os.close(output)
        self._forked.wait()
        if self._pid == 0:
            self.close()
            raise ConnectionError("the fork server died before it forked")

    def started(self, pid: int) -> None:
        """The server forked the process."""
        self._began = time.monotonic()
        self._pid = pid
        self._forked.set()

    def exited(self, event: Mapping[str, Any]) -> None:
        """The process ended."""
        self._event = event
        self.lost()

    def lost(self) -> None:
        """Nothing more will be heard of the process."""
        with self._lock:
            self._over = True
        self._ended = time.monotonic()
        self._forked.set()
        os.close(self._end_fd)

    def exit(self) -> Exit | None:
        """How it ended, or None; blocks until there is news."""
        if os.read(self.status_fd, 1):
            return None
        if self._event is None:
            return Exit(None, "", 0.0, 0.0, 0, kept=False)
        left_behind = end_processes(self._leftovers)
        code = self._event["returncode"]
        return Exit(
            exit_code=code if code >= 0 else None,
            signal=signal_name(-code) if code < 0 else "",
            wall_seconds=self._ended - self._began,
            cpu_seconds=self._event["user_seconds"] + self._event["system_seconds"],
            peak_memory_bytes=self._event["peak_memory_bytes"],
            left_behind=() if self._asked_to_stop else tuple(left_behind),
        )

    def _leftovers(self) -> list[Process]:
        """What this run left behind; while other runs share the server, only what is certain to be its own."""
        orphans = self._server.orphans()
        if not orphans or not self._server.busy:
            return orphans
        marks = Marks(self._run_folder, session=self._pid, pipe=os.fstat(self.output_fd).st_ino)
        return [process for process in orphans if marks.fit(process)]

    def ask_to_stop(self) -> None:
        """SIGTERM to the process and all its descendants, and SIGKILL after the grace time."""
        with self._lock:
            if self._over or self._asked_to_stop:
                return
            self._asked_to_stop = True
            family = [self._pid, *(process.pid for process in descendants(self._pid))]
            send(family, signal.SIGTERM)
            send(family, signal.SIGCONT)
            self._kill_timer = threading.Timer(self._grace, self.kill)
            self._kill_timer.daemon = True
            self._kill_timer.start()

    def kill(self) -> None:
        """SIGKILL to the process and all its descendants."""
        with self._lock:
            if not self._over:
                send([self._pid], signal.SIGSTOP)
                kill_all(self._pid)
                send([self._pid], signal.SIGKILL)

    def close(self) -> None:
        """Kill what still runs and give back all resources."""
        if self._pid:
            self.kill()
        if self._kill_timer is not None:
            self._kill_timer.cancel()
        for name in ("status_fd", "output_fd"):
            if (fd := getattr(self, name)) >= 0:
                os.close(fd)
                setattr(self, name, -1)


def _start(keepers: Keepers, key: ServerKey, cpus: Sequence[int]) -> tuple[socket.socket, KeptProcess]:
    ours, theirs = socket.socketpair()
    try:
        process = KeptProcess(
            keepers,
            [key.interpreter, str(site_folder() / "enter.py"), "serve", str(PASSED_SOCKET)],
            env={name: value for name, value in key.variables if name not in PER_RUN_VARIABLES},
            working_folder=key.working_folder,
            cpus=cpus,
            passed=theirs.fileno(),
        )
    except ExecutionError:
        ours.close()
        raise
    finally:
        theirs.close()
    return ours, process
