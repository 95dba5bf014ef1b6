"""The executor's side of the fork server: start it, launch runs on it, wait for them, end it."""

from __future__ import annotations

import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from typing import IO, Any, NamedTuple

from isorun.worker import forkserver as messages
from isorun.worker import levels
from isorun.worker.forkserver import Launch

_START_SECONDS = 300.0
_END_SECONDS = 5.0


class ForkServerError(RuntimeError):
    """The fork server could not start, or died with runs in progress."""


class Exit(NamedTuple):
    """How a run ended. returncode: the exit code, or minus the signal; the rest covers its waited-for children too."""

    returncode: int
    user_seconds: float
    system_seconds: float
    peak_memory_bytes: int


class WarmRun:
    """A run in progress on a fork server."""

    def __init__(self, server: ForkServer, identity: int) -> None:
        self._server = server
        self._identity = identity
        self._pid: int | None = None
        self._exit: Exit | None = None
        self._started = threading.Event()
        self._ended = threading.Event()

    @property
    def pid(self) -> int:
        """The process id; it is also the id of the run's session and process group."""
        self._started.wait()
        if self._pid is None:
            raise ForkServerError("the fork server died before it could start the run")
        return self._pid

    def wait(self, timeout: float | None = None) -> Exit | None:
        """How the run ended; None when it goes on after `timeout` seconds. Raises when the server died with it."""
        if not self._ended.wait(timeout):
            return None
        if self._exit is None:
            raise ForkServerError("the fork server died with the run")
        return self._exit

    def signal(self, number: int = signal.SIGTERM) -> None:
        """Send a signal to the run and all of its session; nothing when it has ended."""
        if not self._ended.is_set():
            self._server.send({"do": "signal", "id": self._identity, "signal": int(number)})

    def note(self, event: Mapping[str, Any]) -> None:
        """Take in what the server says about this run."""
        if event["event"] == "started":
            self._pid = event["pid"]
            self._started.set()
        else:
            self._exit = Exit(*(event[name] for name in Exit._fields))
            self.lose()

    def lose(self) -> None:
        """Nothing more will be heard of the run."""
        self._started.set()
        self._ended.set()


class ForkServer:
    """A warm server for one interpreter, environment and number of CPUs. Safe to use from several threads.

    environment: the whole environment of the server and, but for ISORUN_RUN_DIR, ISORUN_LEVEL and ISORUN_SEED, of its
    runs. cpus: where it imports; runs may have other CPUs, but as many. Raises ForkServerError when it does not start.
    failed: the modules that could not be imported, with the error.
    """

    def __init__(
        self, python: str, environment: Mapping[str, str], *, cpus: Sequence[int] = (), preload: Sequence[str] = ()
    ) -> None:
        self._cpu_count = len(cpus)
        self._runs: dict[int, WarmRun] = {}
        self._next_identity = 0
        self._sending = threading.Lock()
        self._counting = threading.Lock()
        self._closed = False
        with tempfile.TemporaryFile() as complaints:
            self._process, self._connection = _start(python, environment, complaints.fileno())
            self.failed = self._greet({"cpus": list(cpus), "preload": list(preload)}, complaints)
        self._listener = threading.Thread(target=self._listen, name="isorun fork server", daemon=True)
        self._listener.start()

    def launch(self, launch: Launch, stdout: int, stderr: int) -> WarmRun:
        """Fork a child for the run; its output goes to the two open files, which stay the caller's."""
        if self._cpu_count and len(launch.cpus) != self._cpu_count:
            raise ValueError(f"the run has {len(launch.cpus)} CPUs; this server's runs have {self._cpu_count}")
        with self._counting:
            if self._closed:
                raise ForkServerError("the fork server is gone")
            self._next_identity += 1
            run = self._runs[self._next_identity] = WarmRun(self, self._next_identity)
            identity = self._next_identity
        self.send({"do": "launch", "id": identity, "launch": launch.to_json()}, (stdout, stderr))
        return run

    def send(self, message: Mapping[str, Any], files: Sequence[int] = ()) -> None:
        """Hand a message to the server; one that died is noticed by the listener."""
        with self._sending:
            try:
                messages.send(self._connection, message, files)
            except OSError:
                self._lose_all()

    def close(self) -> None:
        """End the server and every run on it."""
        self._connection.shutdown(socket.SHUT_RDWR)
        self._listener.join(_END_SECONDS)
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._connection.close()

    def _greet(self, hello: Mapping[str, Any], complaints: IO[bytes]) -> dict[str, str]:
        self._connection.settimeout(_START_SECONDS)
        try:
            messages.send(self._connection, hello)
            answer = messages.receive(self._connection)
        except OSError:
            answer = None
        if answer is None:
            self._process.kill()
            self._process.wait()
            self._connection.close()
            complaints.seek(0)
            error = complaints.read().decode(errors="replace").strip()
            raise ForkServerError(f"the fork server did not start: {error[-2000:]}")
        self._connection.settimeout(None)
        failed: dict[str, str] = answer[0]["failed"]
        return failed

    def _listen(self) -> None:
        while True:
            try:
                received = messages.receive(self._connection)
            except OSError:
                received = None
            if received is None:
                return self._lose_all()
            event = received[0]
            run = self._runs[event["id"]]
            if event["event"] == "exited":
                with self._counting:
                    del self._runs[event["id"]]
            run.note(event)

    def _lose_all(self) -> None:
        with self._counting:
            self._closed = True
            lost, self._runs = list(self._runs.values()), {}
        for run in lost:
            run.lose()


def _start(
    python: str, environment: Mapping[str, str], complaints: int
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = socket.socketpair()
    clean = {name: value for name, value in environment.items() if name not in levels.PER_RUN_VARIABLES}
    command = [python, str(levels.site_folder() / "enter.py"), "serve", str(theirs.fileno())]
    try:
        process = subprocess.Popen(
            command,
            env=clean,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=complaints,
            start_new_session=True,
        )
    except OSError as error:
        ours.close()
        raise ForkServerError(f"the fork server did not start: {error}") from error
    finally:
        theirs.close()
    return process, ours
