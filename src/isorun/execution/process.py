"""Processes under keepers: started, stopped, their ends read, and what nobody answers for any more found and ended."""

from __future__ import annotations

import errno
import json
import math
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from isorun.errors import ExecutionError
from isorun.execution import keeper
from isorun.execution.keeper import Process, kill_all, processes, send

__all__ = [
    "Exit",
    "Keepers",
    "KeptProcess",
    "Marks",
    "end_processes",
    "end_strays",
    "find_strays",
    "signal_name",
    "unnamed_file",
]

GRACE_SECONDS: Final = 5.0
# How long a keeper may take beyond the grace time: it waits for what its program left behind, too.
ANSWER_SECONDS: Final = 10.0
# Helpers such as Python's resource tracker end by themselves just after the program; only what stays is a stray.
_SETTLE_SECONDS: Final = 0.25
_STRAY_GRACE_SECONDS: Final = 1.0
_LONGEST_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.01
_LOOK_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended and what it took.

    wall_seconds: until the program itself ended; cpu_seconds and peak_memory_bytes include its descendants.
    left_behind: the names of processes that outlived the program and were then ended, left_pids their numbers where
    they are known. kept: False when the keeper died before it could say how the program ended.
    """

    exit_code: int | None
    signal: str
    wall_seconds: float
    cpu_seconds: float
    peak_memory_bytes: int
    left_behind: tuple[str, ...] = ()
    kept: bool = True
    left_pids: tuple[int, ...] = ()

    @classmethod
    def from_status(
        cls,
        status: int,
        wall_seconds: float,
        cpu_seconds: float,
        peak_kib: int,
        left: Sequence[tuple[int, str]] = (),
    ) -> Exit:
        """From a wait status as the kernel gives it; left: numbers and names of what was left behind."""
        code = os.waitstatus_to_exitcode(status)
        return cls(
            exit_code=code if code >= 0 else None,
            signal=signal_name(-code) if code < 0 else "",
            wall_seconds=wall_seconds,
            cpu_seconds=cpu_seconds,
            peak_memory_bytes=peak_kib * 1024,
            left_behind=tuple(name for _, name in left),
            left_pids=tuple(pid for pid, _ in left),
        )


def signal_name(number: int) -> str:
    """SIGSEGV for 11; "signal 40" for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class Keepers:
    """The process that forks keepers: started when first needed, and again when it has died."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: socket.socket | None = None
        self._server: subprocess.Popen[bytes] | None = None

    def start(self, files: Sequence[int]) -> int:
        """Fork a keeper that gets these open files; its process id. OSError when that is not possible."""
        with self._lock:
            try:
                return self._ask(files)
            except (ConnectionError, EOFError):
                self._end()  # it was killed: once more with a new one
                return self._ask(files)

    def _ask(self, files: Sequence[int]) -> int:
        if self._connection is None:
            self._connection = self._begin()
        socket.send_fds(self._connection, [b"r"], files)
        self._wake()
        answer = self._connection.recv(keeper.PID.size, socket.MSG_WAITALL)
        if len(answer) < keeper.PID.size:
            raise EOFError
        (pid,) = keeper.PID.unpack(answer)
        if pid < 0:
            raise OSError(-pid, os.strerror(-pid))
        return int(pid)

    def _begin(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        try:
            command = [sys.executable, "-I", "-S", keeper.__file__, str(theirs.fileno())]
            self._server = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        return ours

    def _end(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._server is not None:
            self._wake()
            self._server.wait()
            self._server = None

    def _wake(self) -> None:
        """A training may stop any process of its user, and one that is stopped forks and ends never."""
        if self._server is not None:
            self._server.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """Fork no more; keepers that are there stay with their programs."""
        with self._lock:
            self._end()


class KeptProcess:
    """A program that runs under a keeper, in a session of its own, on given CPUs.

    output_fd: its standard output and error, to be read. status_fd: readable when `exit` may have news. All
    processes it starts end with it, and all of them end when this process dies. input_fd: its standard input, empty
    if not given. passed: a socket that the program gets as file 3.

    A training may stop its keeper (SIGSTOP): who waits for the end calls `see_to_it` about once a second.
    """

    def __init__(
        self,
        keepers: Keepers,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        working_folder: Path,
        cpus: Sequence[int],
        grace: float = GRACE_SECONDS,
        input_fd: int | None = None,
        passed: int | None = None,
    ) -> None:
        self.command = tuple(command)
        self.pid: int | None = None
        self._folder = working_folder
        self._lines: list[list[str]] = []
        self._pending = b""
        self._orders_lock = threading.RLock()  # a signal handler may give an order within another
        self._grace = grace
        self._answer_by = math.inf
        self._over = False
        request = {
            "argv": self.command,
            "environment": dict(env),
            "folder": str(working_folder),
            "cpus": tuple(cpus),
            "grace": grace,
        }
        self._start(keepers, request, input_fd, passed)

    def _start(self, keepers: Keepers, request: dict[str, Any], input_fd: int | None, passed: int | None) -> None:
        orders, self._orders_fd = os.pipe()
        self.status_fd, status = os.pipe()
        self.output_fd, output = os.pipe()
        asked = unnamed_file(json.dumps(request).encode())
        stdin = os.open(os.devnull, os.O_RDONLY) if input_fd is None else os.dup(input_fd)
        try:
            files = [asked, orders, status, stdin, output, *([] if passed is None else [passed])]
            self.keeper_pid = keepers.start(files)
        except OSError as error:
            for fd in (self._orders_fd, self.status_fd, self.output_fd):
                os.close(fd)
            raise ExecutionError(f"cannot start a run in {self._folder}", found=str(error)) from error
        finally:
            for fd in (orders, status, output, asked, stdin):
                os.close(fd)

    def ask_to_stop(self) -> None:
        """SIGTERM to the program and all its descendants, and SIGKILL after the grace time."""
        self._order(b"s")
        self._expect_answer(self._grace)

    def kill(self) -> None:
        """SIGKILL to the program and all its descendants."""
        with self._orders_lock:
            self._close_orders()
        self._expect_answer(0.0)

    def _expect_answer(self, grace: float) -> None:
        self._answer_by = min(self._answer_by, time.monotonic() + grace + ANSWER_SECONDS)
        self.see_to_it()

    def see_to_it(self) -> None:
        """Let a keeper that was stopped go on, and end one that did not do what it was told, with all it answers for.

        Not once it has ended: its id may be another's by then.
        """
        if self._over:
            return
        if time.monotonic() < self._answer_by:
            send([self.keeper_pid], signal.SIGCONT)
        else:
            kill_all(self.keeper_pid)
            send([self.keeper_pid], signal.SIGKILL)

    def _order(self, order: bytes) -> None:
        with self._orders_lock:
            if self._orders_fd >= 0:
                try:
                    os.write(self._orders_fd, order)
                except BrokenPipeError:
                    return  # the keeper has ended: nothing is left to stop

    def _close_orders(self) -> None:
        if self._orders_fd >= 0:
            closing, self._orders_fd = self._orders_fd, -1
            os.close(closing)

    def exit(self) -> Exit | None:
        """Read what the keeper says; the end, or None if the program or a descendant still runs.

        Blocks until there is news: wait for `status_fd` first where that matters.
        """
        news = os.read(self.status_fd, 65536)
        *lines, self._pending = (self._pending + news).split(b"\n")
        self._lines += [line.decode(errors="replace").split(maxsplit=2) for line in lines]
        self._notice_start()
        self._over = not news
        return self._exit_from_lines() if self._over else None

    def _notice_start(self) -> None:
        for word, *rest in self._lines:
            if word == "start":
                self.pid = int(rest[0])

    def _exit_from_lines(self) -> Exit:
        said = {line[0]: line[1:] for line in self._lines}
        if "folder" in said:
            found = os.strerror(int(said["folder"][0]))
            raise ExecutionError(f"cannot start a run in {self._folder}", found=found)
        if "exec" in said:
            raise _cannot_execute(self.command[0], int(said["exec"][0]))
        if "exit" not in said or "end" not in said:
            return Exit(None, "", 0.0, 0.0, 0, kept=False)
        (status, wall), (cpu, peak_kib) = said["exit"], said["end"]
        left = [(int(line[1]), line[2]) for line in self._lines if line[0] == "left"]
        return Exit.from_status(int(status), float(wall), float(cpu), int(peak_kib), left)

    def close(self) -> None:
        """Kill what still runs and give back all resources."""
        if self.status_fd >= 0:
            self._kill_and_wait()
        for name in ("status_fd", "output_fd"):
            if (fd := getattr(self, name)) >= 0:
                os.close(fd)
                setattr(self, name, -1)

    def _kill_and_wait(self) -> None:
        """Kill what still runs, and wait until the keeper has gone."""
        with self._orders_lock:
            self._close_orders()
        while not self._over:
            if select.select([self.status_fd], [], [], _LOOK_SECONDS)[0]:
                self._over = not os.read(self.status_fd, 65536)
            else:
                self._expect_answer(0.0)


def unnamed_file(content: bytes) -> int:
    """An open file without a name: a request may be too large for a socket, and holds variables that are secret."""
    fd = os.memfd_create("request")
    with os.fdopen(fd, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _cannot_execute(program: str, number: int) -> ExecutionError:
    hint = "a script needs a first line such as #!/bin/bash" if number == errno.ENOEXEC else ""
    return ExecutionError(f"cannot execute {program}", found=os.strerror(number), hint=hint)


@dataclass(frozen=True, slots=True)
class Marks:
    """What the processes of a run carry, also when ancestry is lost because a parent died.

    run_folder: named by a variable of all of them. pipe: the inode of the pipe that takes the run's output.
    """

    run_folder: Path
    session: int | None = None
    pipe: int | None = None

    def fit(self, process: Process) -> bool:
        """Whether the process carries one of them."""
        if process.session == self.session or _has_variable(process.pid, self.run_folder):
            return True
        return self.pipe is not None and _holds_pipe(process.pid, self.pipe)


def find_strays(marks: Marks) -> list[Process]:
    """All living processes that carry one of the marks; never this one."""
    own = os.getpid()
    return [process for process in processes().values() if process.pid != own and marks.fit(process)]


def end_strays(marks: Marks) -> list[str]:
    """End what `find_strays` finds; the names of what was there."""
    return end_processes(lambda: find_strays(marks))


def end_processes(find: Callable[[], Sequence[Process]]) -> list[str]:
    """End what `find` gives, again and again until it gives nothing: wait a little, then ask, then kill.

    The names of those that did not end by themselves.
    """
    names: list[str] = []
    began = time.monotonic()
    while (found := find()) and (waited := time.monotonic() - began) < _LONGEST_SECONDS:
        if waited >= _SETTLE_SECONDS:
            names = names or [process.name for process in found]
            asking = waited < _SETTLE_SECONDS + _STRAY_GRACE_SECONDS
            send([process.pid for process in found], signal.SIGTERM if asking else signal.SIGKILL)
        time.sleep(_POLL_SECONDS)
    return names


def _has_variable(pid: int, run_folder: Path) -> bool:
    wanted = b"ISORUN_RUN_DIR=" + os.fsencode(run_folder.absolute())
    try:
        return wanted in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _holds_pipe(pid: int, pipe: int) -> bool:
    wanted = f"pipe:[{pipe}]"
    try:
        return any(str(link.readlink()) == wanted for link in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False
