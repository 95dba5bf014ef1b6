"""One process under a keeper: started, stopped, and its end read."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from isorun.errors import ExecutionError
from isorun.execution import keeper

__all__ = ["Exit", "KeptProcess"]

GRACE_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended and what it took.

    wall_seconds: until the program itself ended; cpu_seconds and peak_memory_bytes include its descendants.
    left_behind: the names of processes that outlived the program and were then ended. kept: False when the keeper
    died before it could say how the program ended.
    """

    exit_code: int | None
    signal: str
    wall_seconds: float
    cpu_seconds: float
    peak_memory_bytes: int
    left_behind: tuple[str, ...] = ()
    kept: bool = True

    @classmethod
    def from_status(
        cls, status: int, wall_seconds: float, cpu_seconds: float, peak_kib: int, left_behind: Sequence[str] = ()
    ) -> Exit:
        """From a wait status as the kernel gives it."""
        code = os.waitstatus_to_exitcode(status)
        return cls(
            exit_code=code if code >= 0 else None,
            signal=signal_name(-code) if code < 0 else "",
            wall_seconds=wall_seconds,
            cpu_seconds=cpu_seconds,
            peak_memory_bytes=peak_kib * 1024,
            left_behind=tuple(left_behind),
        )


def signal_name(number: int) -> str:
    """SIGSEGV for 11; "signal 40" for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class KeptProcess:
    """A program that runs under a keeper, in a session of its own, on given CPUs.

    output_fd: its standard output and error, to be read. status_fd: readable when `exit` may have news. All
    processes it starts end with it, and all of them end when this process dies.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        working_folder: Path,
        cpus: Sequence[int],
        grace: float = GRACE_SECONDS,
        pass_fds: Sequence[int] = (),
    ) -> None:
        self.command = tuple(command)
        self.pid: int | None = None
        self._lines: list[list[str]] = []
        self._pending = b""
        self._orders_lock = threading.Lock()
        self._start(env, working_folder, cpus, grace, pass_fds)

    def _start(
        self, env: Mapping[str, str], folder: Path, cpus: Sequence[int], grace: float, pass_fds: Sequence[int]
    ) -> None:
        orders, self._orders_fd = os.pipe()
        self.status_fd, status = os.pipe()
        self.output_fd, output = os.pipe()
        environment = _environment_file(env)
        arguments = [str(status), str(environment), str(grace), ",".join(map(str, cpus)), *self.command]
        try:
            self._keeper = subprocess.Popen(
                [sys.executable, "-I", "-S", keeper.__file__, *arguments],
                stdin=orders,
                stdout=output,
                stderr=output,
                cwd=folder,
                pass_fds=(status, environment, *pass_fds),
                start_new_session=True,
            )
        except OSError as error:
            self.close()
            raise ExecutionError(f"cannot start a run in {folder}", found=str(error)) from error
        finally:
            for fd in (orders, status, output, environment):
                os.close(fd)

    @property
    def keeper_pid(self) -> int:
        """The process that all of the program's descendants come back to."""
        return self._keeper.pid

    def ask_to_stop(self) -> None:
        """SIGTERM to the program and all its descendants, and SIGKILL after the grace time."""
        self._order(b"s")

    def kill(self) -> None:
        """SIGKILL to the program and all its descendants."""
        with self._orders_lock:
            self._close_orders()

    def _order(self, order: bytes) -> None:
        with self._orders_lock:
            if self._orders_fd >= 0:
                try:
                    os.write(self._orders_fd, order)
                except BrokenPipeError:
                    return  # the keeper has ended: nothing is left to stop

    def _close_orders(self) -> None:
        if self._orders_fd >= 0:
            os.close(self._orders_fd)
            self._orders_fd = -1

    def exit(self) -> Exit | None:
        """Read what the keeper says; the end, or None if the program or a descendant still runs.

        Blocks until there is news: wait for `status_fd` first where that matters.
        """
        news = os.read(self.status_fd, 65536)
        *lines, self._pending = (self._pending + news).split(b"\n")
        self._lines += [line.decode(errors="replace").split(maxsplit=2) for line in lines]
        self._notice_start()
        if news:
            return None
        self._keeper.wait()
        return self._exit_from_lines()

    def _notice_start(self) -> None:
        for word, *rest in self._lines:
            if word == "start":
                self.pid = int(rest[0])

    def _exit_from_lines(self) -> Exit:
        said = {line[0]: line[1:] for line in self._lines}
        if "exec" in said:
            raise _cannot_execute(self.command[0], int(said["exec"][0]))
        if "exit" not in said or "end" not in said:
            return Exit(None, "", 0.0, 0.0, 0, kept=False)
        (status, wall), (cpu, peak_kib) = said["exit"], said["end"]
        left_behind = [line[2] for line in self._lines if line[0] == "left"]
        return Exit.from_status(int(status), float(wall), float(cpu), int(peak_kib), left_behind)

    def close(self) -> None:
        """Kill what still runs and give back all resources."""
        self.kill()
        if hasattr(self, "_keeper"):
            self._keeper.wait()
        for name in ("status_fd", "output_fd"):
            if (fd := getattr(self, name)) >= 0:
                os.close(fd)
                setattr(self, name, -1)


def _environment_file(env: Mapping[str, str]) -> int:
    """The variables in a file without a name: they may be too large for a pipe, and must not reach the keeper."""
    fd = os.memfd_create("environment")
    with os.fdopen(fd, "wb", closefd=False) as file:
        file.write(b"\0".join(os.fsencode(f"{name}={value}") for name, value in env.items()))
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _cannot_execute(program: str, number: int) -> ExecutionError:
    hint = "a script needs a first line such as #!/bin/bash" if number == errno.ENOEXEC else ""
    return ExecutionError(f"cannot execute {program}", found=os.strerror(number), hint=hint)
