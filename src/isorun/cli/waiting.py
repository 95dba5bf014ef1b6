"""A word on stderr while a computation takes long: how long it has taken, and how much is left where that is known.

Nothing is said in the first seconds. On a terminal the line is rewritten and goes away before the result is printed;
elsewhere there are few lines, each after twice the time of the one before.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, TextIO

__all__ = ["Waiting", "duration", "tell", "waiting", "waiting_is_over"]

_SILENT_SECONDS: Final = 2.0
_EVERY: Final = 0.5
_FIRST_LINE_SECONDS: Final = 10.0


def duration(seconds: float) -> str:
    """A duration as people say it."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes, hours = seconds / 60, seconds / 3600
    return f"{minutes:.0f} min" if minutes < 99.5 else f"{hours:.1f} h"


class Waiting:
    """Tells of one computation from a thread of its own, so that the computation need not know of it."""

    def __init__(self, what: str, stream: TextIO) -> None:
        self._what = what
        self._stream = stream
        self._live = stream.isatty()
        self._share = 0.0
        self._shown = False
        self._began = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._speak, daemon=True)
        self._thread.start()

    def tell(self, done: float, total: float) -> None:
        """So much of the computation is done."""
        self._share = min(max(done / total, 0.0), 1.0) if total > 0 else 0.0

    def end(self) -> None:
        """Say nothing more, and leave a clean line."""
        if not self._over.is_set():
            self._over.set()
            self._thread.join()
            if self._live and self._shown:
                self._write("\r\x1b[K")

    def line(self, elapsed: float) -> str:
        """What is said after so many seconds."""
        text = f"isorun {self._what}: computing for {duration(elapsed)}"
        if not self._share:
            return text
        return f"{text}, {self._share:.0%} done, about {duration(elapsed * (1 / self._share - 1))} left"

    def _speak(self) -> None:
        pause = _SILENT_SECONDS if self._live else _FIRST_LINE_SECONDS
        while not self._over.wait(pause):
            elapsed = time.monotonic() - self._began
            line = self.line(elapsed)
            self._write(f"\r\x1b[K{line}" if self._live else f"{line}\n")
            self._shown = True
            pause = _EVERY if self._live else elapsed

    def _write(self, text: str) -> None:
        # A courtesy: a closed stderr must not end a computation.
        with suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()


# A process computes for one command. Whatever prints its result ends the waiting, wherever it began.
_current: list[Waiting] = []


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Tell of everything that takes long in here, until a result is printed."""
    _current.append(Waiting(what, sys.stderr))
    try:
        yield
    finally:
        waiting_is_over()


def waiting_is_over() -> None:
    """A result is about to be printed."""
    while _current:
        _current.pop().end()


def tell(done: float, total: float) -> None:
    """So much of what is waited for is done; for computations that know it."""
    if _current:
        _current[-1].tell(done, total)
