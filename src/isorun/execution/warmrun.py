"""One run on a warm fork server, with the same face as a run in a fresh process."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from isorun.execution.keeper import Process, descendants, kill_all, send
from isorun.execution.process import Exit, signal_name
from isorun.execution.strays import Marks, end_processes
from isorun.execution.warmserver import WarmServer
from isorun.worker.forkserver import Launch

__all__ = ["WarmRun"]


class WarmRun:
    """A run that was forked from a server.

    output_fd: its standard output and error, to be read. status_fd: readable when it has ended.
    """

    def __init__(self, server: WarmServer, launch: Launch, run_folder: Path, grace: float) -> None:
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
        self._open(launch)

    def _open(self, launch: Launch) -> None:
        """Ask for the fork and wait for it, so that a server that dies before it forked can be replaced."""
        self.output_fd, output = os.pipe()
        self.status_fd, self._end_fd = os.pipe()
        try:
            self._server.launch(launch, output, self)
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
