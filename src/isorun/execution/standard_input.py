"""Standard input that isorun was given: every run gets a copy of the whole of it.

A terminal is not passed on, and neither is nothing: those runs find an empty input. A file is copied when the first
run starts, from where it stands, and stays where it stands for whoever reads it next. A pipe is copied while it comes:
a run that reads it waits for more just as it would without isorun, and one that does not is never held up.
"""

from __future__ import annotations

import os
import select
import stat
import tempfile
import threading
from typing import IO, Final

from isorun.errors import ExecutionError

__all__ = ["MOST_BYTES", "StandardInput"]

MOST_BYTES: Final = 1 << 28
_PIECE_BYTES: Final = 1 << 16


class StandardInput:
    """What can be read from a file descriptor, for many readers."""

    def __init__(self, fd: int = 0, most_bytes: int = MOST_BYTES) -> None:
        self._fd = fd
        self._most_bytes = most_bytes
        self._kind = _kind(fd)
        self._copy: IO[bytes] | None = None
        self._length = 0
        self._complete = False
        self._too_large = False
        self._closed = False
        self._grown = threading.Condition()

    def open(self) -> int | None:
        """A new descriptor that reads the copy from its start; None where there is nothing to read."""
        if not self._kind:
            return None
        with self._grown:
            self._begin()
            if self._complete:
                return os.open(f"/proc/self/fd/{self._file.fileno()}", os.O_RDONLY)
        ours, theirs = os.pipe()
        threading.Thread(target=self._feed, args=(theirs,), name="standard-input", daemon=True).start()
        return ours

    def check(self) -> None:
        """Raise ExecutionError if there was more than can be copied: no run may get a part of it."""
        if self._too_large:
            raise ExecutionError(
                "standard input is too large to be copied for every run",
                found=f"more than {self._most_bytes:,} bytes",
                hint="save it to a file and let the training open that",
            )

    @property
    def _file(self) -> IO[bytes]:
        assert self._copy is not None
        return self._copy

    def _begin(self) -> None:
        if self._copy is not None:
            return
        self._copy = tempfile.TemporaryFile(prefix="isorun-stdin-")  # noqa: SIM115 - it lives as long as the runs
        if self._kind == "file":
            self._take_file()
        else:
            threading.Thread(target=self._take_pipe, name="standard-input", daemon=True).start()

    def _take_file(self) -> None:
        place = os.lseek(self._fd, 0, os.SEEK_CUR)
        while piece := os.pread(self._fd, _PIECE_BYTES, place + self._length):
            self._add(piece)
            self.check()
        self._complete = True

    def _take_pipe(self) -> None:
        """Copy until the other end closes; more than can be kept is left to whoever wrote it."""
        piece = b"-"
        while piece and not (self._too_large or self._closed):
            try:
                piece = os.read(self._fd, _PIECE_BYTES)
            except OSError:
                piece = b""
            with self._grown:
                self._add(piece)
                self._complete = self._complete or not piece
                self._grown.notify_all()

    def _add(self, piece: bytes) -> None:
        if self._length + len(piece) > self._most_bytes:
            self._too_large = True
        if self._too_large or self._closed:
            return
        os.pwrite(self._file.fileno(), piece, self._length)
        self._length += len(piece)

    def _feed(self, theirs: int) -> None:
        """Write the copy into a run's pipe while it grows, until all of it is there or the run has gone."""
        place = 0
        try:
            while piece := self._piece(place):
                place += os.write(theirs, piece)
        except OSError:
            return  # the run has ended, or reads no more
        finally:
            os.close(theirs)

    def _piece(self, place: int) -> bytes:
        with self._grown:
            self._grown.wait_for(lambda: self._length > place or self._complete or self._too_large)
            return b"" if self._closed else os.pread(self._file.fileno(), _PIECE_BYTES, place)

    def close(self) -> None:
        """Let go of the copy; runs that still read it find its end."""
        with self._grown:
            self._closed = self._complete = True
            if self._copy is not None:
                self._copy.close()
            self._grown.notify_all()


def _kind(fd: int) -> str:
    """What it is: "file", "pipe", or empty for what is not copied: a terminal, another device, nothing."""
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return ""
    if stat.S_ISREG(mode):
        return "file"
    piped = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
    return "pipe" if piped and not _is_over(fd) else ""


def _is_over(fd: int) -> bool:
    """Whether a pipe was closed at its other end, and nothing is left in it."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return any(events & select.POLLHUP and not events & select.POLLIN for _, events in poll.poll(0))
