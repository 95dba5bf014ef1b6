"""The keeper: a small program whose processes each start one program and answer for all of its descendants.

It is run by its path, as `python -I -S keeper.py SOCKET_FD`, and needs nothing but the standard library. The first
process waits for requests on the socket and forks a keeper for each: a fork takes a millisecond, a new interpreter
thirty. Why a program of its own:

- It has one thread, so it may set things up between fork and exec, which a process with threads may not; and "kill
  me when my parent dies" means the parent's *thread*, which in an executor comes and goes.
- A keeper is a subreaper: descendants whose parents died become its children, also those that left the process group,
  so none can hide.
- A keeper's orders come through a pipe from the executor. When the executor dies, for whatever reason, the pipe closes
  and the keeper kills everything it answers for. It does not need the process that forked it.
- Who ends a whole tree of processes, as SLURM does, signals keepers, too. They do not heed SIGTERM: a keeper that died
  of it would take its program along, which has just been asked to stop and may need its time for that.

A request is one byte with open files beside it: the request itself (JSON), the orders, where to report, the program's
input and output, and for some a socket that the program gets as file 3. The answer is the keeper's process id.
Orders are single bytes: `s` asks all processes to stop (SIGTERM) and kills them after the grace time; the end of the
orders kills at once. Reports are lines: `start PID`, `folder ERRNO` or `exec ERRNO` (the program could not be
started), `exit STATUS SECONDS` (as soon as the program ended), `left PID NAME` (a process it left behind),
`end CPU_SECONDS PEAK_MEMORY_KIB` (all is over).
"""

from __future__ import annotations

import array
import ctypes
import fcntl
import json
import math
import os
import select
import signal
import socket
import struct
import sys
import time
from typing import Any, Final, NoReturn

__all__ = [
    "MOST_FILES",
    "PASSED_SOCKET",
    "PID",
    "Keeper",
    "Process",
    "children",
    "descendants",
    "kill_all",
    "processes",
    "send",
]

MOST_FILES: Final = 6
PASSED_SOCKET: Final = 3
PID: Final = struct.Struct("=i")

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36

# Helpers such as Python's resource tracker end by themselves just after the program; only what stays is "left behind".
_SETTLE_SECONDS: Final = 0.25
_LEFTOVER_GRACE_SECONDS: Final = 1.0
_KILL_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.01


class Process:
    """One line of the process table."""

    __slots__ = ("name", "parent", "pid", "session")

    def __init__(self, pid: int, parent: int, session: int, name: str) -> None:
        self.pid = pid
        self.parent = parent
        self.session = session
        self.name = name


def processes() -> dict[int, Process]:
    """All living processes by their id; zombies are not alive."""
    found = {}
    with os.scandir("/proc") as entries:
        pids = [int(entry.name) for entry in entries if entry.name.isdigit()]
    for pid in pids:
        if process := _read_process(pid):
            found[pid] = process
    return found


def _read_process(pid: int) -> Process | None:
    try:
        text = _read(f"/proc/{pid}/stat").decode(errors="replace")
    except OSError:
        return None
    name_end = text.rindex(")")
    state, parent, _group, session = text[name_end + 2 :].split(maxsplit=4)[:4]
    if state in "ZX":
        return None
    return Process(pid, int(parent), int(session), text[text.index("(") + 1 : name_end])


def _read(path: str) -> bytes:
    """The start of a small file; importing pathlib for it would make every launch slower."""
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.read(fd, 65536)
    finally:
        os.close(fd)


def children(parent: int) -> list[int] | None:
    """The children of a process with one thread, zombies included; None where the kernel does not tell it in one look.

    One that ends during the look may hide another: who must not miss any looks twice.
    """
    try:
        return [int(word) for word in _read(f"/proc/{parent}/task/{parent}/children").split()]
    except OSError:
        return None


def descendants(root: int) -> list[Process]:
    """The living children of a process, their children, and so on."""
    by_parent: dict[int, list[Process]] = {}
    for process in processes().values():
        by_parent.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    waiting = [root]
    while waiting:
        children = by_parent.get(waiting.pop(), [])
        found += children
        waiting += [child.pid for child in children]
    return found


def send(pids: list[int], number: int) -> None:
    """Send a signal to each; those that have gone, or belong to somebody else, are left out."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def kill_all(root: int) -> None:
    """Kill all descendants of a process. They are stopped first, so that none can fork while the others die."""
    stopped: set[int] = set()
    while fresh := [item.pid for item in descendants(root) if item.pid not in stopped]:
        send(fresh, signal.SIGSTOP)
        stopped.update(fresh)
    send([item.pid for item in descendants(root)], signal.SIGKILL)


class Keeper:
    """Starts the program, passes orders on, reaps everything, and reports.

    files: the orders, where to report, the program's input and output, and perhaps a socket for the program.
    """

    def __init__(self, files: list[int], grace: float) -> None:
        self._orders_fd, self._status_fd, *self._program_files = files
        self._grace = grace
        self._wake_fd = _wake_on_child_exit()
        self._program = 0
        self._exit_status: int | None = None
        self._cpu_seconds = 0.0
        self._peak_memory_kib = 0
        self._asked_to_stop = False

    def run(self, argv: list[str], environment: dict[bytes, bytes], folder: str, cpus: list[int]) -> None:
        """Start the program and stay until it and all its descendants are gone."""
        try:
            os.chdir(folder)
        except OSError as error:
            self._report(f"folder {error.errno}")
            return
        began = time.monotonic()
        self._program = self._start(argv, environment, cpus)
        self._report(f"start {self._program}")
        for fd in self._program_files:  # the program's output must never be held open by its keeper
            os.close(fd)
        self._wait_for_program()
        self._report(f"exit {self._exit_status} {time.monotonic() - began:.6f}")
        self._end_leftovers()
        self._report(f"end {self._cpu_seconds:.6f} {self._peak_memory_kib}")

    def _start(self, argv: list[str], environment: dict[bytes, bytes], cpus: list[int]) -> int:
        keeper = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._become(argv, environment, cpus, keeper)
        return pid

    def _become(self, argv: list[str], environment: dict[bytes, bytes], cpus: list[int], keeper: int) -> NoReturn:
        try:
            os.setsid()
            os.sched_setaffinity(0, cpus)
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            self._place_files()
            if os.getppid() == keeper:
                os.execve(argv[0], argv, environment)  # noqa: S606 - no shell is wanted
        except OSError as error:
            self._report(f"exec {error.errno}")
        os._exit(127)

    def _place_files(self) -> None:
        """Input, output and the passed socket where a program expects them; what it must not have closes at exec."""
        self._status_fd, *given = (_out_of_the_way(fd) for fd in (self._status_fd, *self._program_files))
        stdin, output, *passed = given
        for target, source in ((0, stdin), (1, output), (2, output), *((PASSED_SOCKET, fd) for fd in passed)):
            os.dup2(source, target)

    def _wait_for_program(self) -> None:
        kill_at = math.inf
        while self._exit_status is None:
            order = self._wait(kill_at - time.monotonic())
            if order == b"s" and not self._asked_to_stop:
                self._asked_to_stop = True
                self._ask_to_stop()
                kill_at = time.monotonic() + self._grace
            if order == b"" or time.monotonic() >= kill_at:
                self._kill()

    def _end_leftovers(self) -> None:
        if not self._asked_to_stop and self._outlast(_SETTLE_SECONDS):
            for process in descendants(os.getpid()):
                self._report(f"left {process.pid} {process.name}")
            self._ask_to_stop()
        if self._outlast(_LEFTOVER_GRACE_SECONDS):
            self._kill()
            self._outlast(_KILL_SECONDS)

    def _ask_to_stop(self) -> None:
        asked = [item.pid for item in descendants(os.getpid())]
        send(asked, signal.SIGTERM)
        send(asked, signal.SIGCONT)

    def _kill(self) -> None:
        kill_all(os.getpid())

    def _outlast(self, seconds: float) -> bool:
        """Whether descendants are still there after that time; returns as soon as there are none."""
        until = time.monotonic() + seconds
        while self._reap():
            if time.monotonic() >= until:
                return bool(descendants(os.getpid()))
            if self._wait(_POLL_SECONDS) == b"":
                self._kill()
        return False

    def _wait(self, seconds: float) -> bytes | None:
        """Wait for an order or a child's end: the order, b"" when the executor has gone, None otherwise."""
        timeout = None if math.isinf(seconds) else max(seconds, 0.0)
        ready, _, _ = select.select([self._orders_fd, self._wake_fd], [], [], timeout)
        if self._wake_fd in ready:
            os.read(self._wake_fd, 4096)
            self._reap()
        return os.read(self._orders_fd, 1) if self._orders_fd in ready else None

    def _reap(self) -> bool:
        """Collect the children that ended; whether any child is left."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            self._cpu_seconds += usage.ru_utime + usage.ru_stime
            self._peak_memory_kib = max(self._peak_memory_kib, usage.ru_maxrss)
            if pid == self._program:
                self._exit_status = status

    def _report(self, line: str) -> None:
        try:
            os.write(self._status_fd, line.encode(errors="replace") + b"\n")
        except BrokenPipeError:
            return  # the executor has gone; its end of the orders says so too


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option} failed")


def _wake_on_child_exit() -> int:
    read_fd, write_fd = os.pipe()
    os.set_blocking(write_fd, False)
    os.set_blocking(read_fd, False)
    signal.set_wakeup_fd(write_fd, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    return read_fd


def _out_of_the_way(fd: int) -> int:
    """The same file under a high number that closes at exec."""
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 64)


def _answer_requests(connection: socket.socket) -> None:
    """Fork a keeper for every request, until the executor has gone."""
    while files := _next_request(connection):
        try:
            pid = os.fork()
        except OSError as error:
            pid = -(error.errno or 1)
        if pid == 0:
            _keep(connection, files)
        for fd in files:
            os.close(fd)
        connection.sendall(PID.pack(pid))
        _reap_keepers()


def _reap_keepers() -> None:
    """Those that have ended; what they took is then counted as time of the executor's children."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    except ChildProcessError:
        return


def _next_request(connection: socket.socket) -> list[int]:
    """The open files of the next request; none when there will be no more."""
    room = socket.CMSG_SPACE(MOST_FILES * array.array("i").itemsize)
    word, attached, _, _ = connection.recvmsg(1, room, socket.MSG_CMSG_CLOEXEC)
    files = array.array("i")
    for _level, _kind, data in attached:
        files.frombytes(data)
    return files.tolist() if word else []


def _keep(connection: socket.socket, files: list[int]) -> NoReturn:
    """Be a keeper, in a session of its own."""
    try:
        connection.close()
        os.setsid()
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        request, *others = files
        wanted = _read_request(request)
        environment = {os.fsencode(name): os.fsencode(value) for name, value in wanted["environment"].items()}
        Keeper(others, wanted["grace"]).run(wanted["argv"], environment, wanted["folder"], wanted["cpus"])
    finally:
        os._exit(0)


def _read_request(fd: int) -> dict[str, Any]:
    with os.fdopen(fd, "rb") as file:
        request: dict[str, Any] = json.loads(file.read())
    return request


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _answer_requests(socket.socket(fileno=int(sys.argv[1])))
