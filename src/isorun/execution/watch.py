"""Watching a run: its output is read as it comes, its limit is kept, and its end is noticed."""

from __future__ import annotations

import os
import select
import time
from dataclasses import dataclass
from typing import Final, Protocol

from isorun.execution.output import Output
from isorun.execution.process import Exit

__all__ = ["Running", "Watched", "watch"]

_READ_BYTES: Final = 1 << 18
# Output that a process outside our reach still writes after the end is not waited for.
_DRAIN_BYTES: Final = 1 << 24


class Running(Protocol):
    """A run in progress, however it was launched."""

    output_fd: int
    status_fd: int

    def exit(self) -> Exit | None:
        """How it ended, or None; called when status_fd is readable."""

    def ask_to_stop(self) -> None:
        """Ask it to stop, and kill it after a grace time."""

    def kill(self) -> None:
        """Kill it now."""

    def close(self) -> None:
        """Kill what is left and give back all resources."""


@dataclass(frozen=True, slots=True)
class Watched:
    """The end of a run, and whether its time limit ended it."""

    exit: Exit
    timed_out: bool


def watch(running: Running, output: Output, limit: float | None) -> Watched:
    """Read the output of a run that was started just now until it has ended; stop it after `limit` seconds.

    The start of a fork server, which may have come before, counts neither for the limit nor for the times of lines.
    """
    began = time.monotonic()
    deadline = None if limit is None else began + limit
    timed_out = False
    os.set_blocking(running.output_fd, False)
    poll = select.poll()
    poll.register(running.output_fd, select.POLLIN)
    poll.register(running.status_fd, select.POLLIN)
    while True:
        ready = {fd for fd, _ in poll.poll(_milliseconds(deadline))}
        if running.output_fd in ready and _read_once(running.output_fd, output, began) == 0:
            poll.unregister(running.output_fd)
        if running.status_fd in ready and (ended := running.exit()):
            _drain(running.output_fd, output, began)
            return Watched(ended, timed_out)
        if deadline is not None and time.monotonic() >= deadline:
            running.ask_to_stop()
            deadline, timed_out = None, True


def _milliseconds(deadline: float | None) -> float | None:
    return None if deadline is None else max(deadline - time.monotonic(), 0.0) * 1000


def _read_once(fd: int, output: Output, began: float) -> int | None:
    """How many bytes were read: 0 at the end, None when there is nothing now."""
    try:
        data = os.read(fd, _READ_BYTES)
    except BlockingIOError:
        return None
    if data:
        output.write(data, time.monotonic() - began)
    return len(data)


def _drain(fd: int, output: Output, began: float) -> None:
    left = _DRAIN_BYTES
    while left > 0 and (count := _read_once(fd, output, began)):
        left -= count
    output.close(time.monotonic() - began)
