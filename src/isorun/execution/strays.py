"""Finding and ending the processes of one run that nobody else answers for any more.

Ancestry is lost when a parent dies. What stays is what every process of a run inherits: the variable that names the
run's folder, the session, and the pipe that takes the run's output.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from isorun.execution.keeper import Process, processes, send

__all__ = ["Marks", "end_processes", "end_strays", "find_strays"]

# Helpers such as Python's resource tracker end by themselves just after the program; only what stays is a stray.
_SETTLE_SECONDS: Final = 0.25
_GRACE_SECONDS: Final = 1.0
_LONGEST_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.01


@dataclass(frozen=True, slots=True)
class Marks:
    """What the processes of a run carry. pipe: the inode of the pipe that takes the run's output."""

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
            asking = waited < _SETTLE_SECONDS + _GRACE_SECONDS
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
