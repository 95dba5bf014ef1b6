"""The process that speaks to Ray, and the line to it.

Ray ends a process whose node or head it has lost, takes over its signals and writes to its output. So isorun never
loads it: a process of its own does, under a keeper, which ends it with everything it started (a local cluster is about
ten processes) when isorun ends, however that comes about.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from isorun.environments import callers_variables
from isorun.execution.output import readable_tail
from isorun.execution.process import Keepers, KeptProcess
from isorun.execution.ray.frames import Frames
from isorun.execution.resources import usable_cpus

__all__ = ["Link"]

_SILENCE_SECONDS: Final = 120.0
"""The driver tells every few seconds what the cluster is. Ray itself gives up on a head after a minute."""
_GRACE_SECONDS: Final = 3.0
_TAIL_BYTES: Final = 1 << 16

Heard = Callable[[dict[str, Any], bytes], None]


class Link:
    """Starts the driver, passes on what it says (`heard`, from one thread), and then that it has ended (`ended`).

    `ended` is told once, whatever ended it, with the last of what the process printed.
    """

    def __init__(self, settings: Mapping[str, Any], heard: Heard, ended: Callable[[Link, str], None]) -> None:
        self._heard, self._ended = heard, ended
        self._keepers = Keepers()
        ours, theirs = socket.socketpair()
        try:
            self._process = KeptProcess(
                self._keepers,
                # Without -P a folder or file called `ray` where isorun was started would be taken for the package.
                [sys.executable, "-P", "-m", "isorun.execution.ray.driver"],
                env={"RAY_USAGE_STATS_ENABLED": "0", **callers_variables()},
                working_folder=Path("/"),
                cpus=usable_cpus(),
                grace=_GRACE_SECONDS,
                passed=theirs.fileno(),
            )
        finally:
            theirs.close()
        ours.settimeout(_SILENCE_SECONDS)
        self._frames = Frames(ours)
        self._tail = b""
        self._reader = threading.Thread(target=self._drain, name="ray-output", daemon=True)
        self._hearer = threading.Thread(target=self._hear, name="ray-driver", daemon=True)
        self._reader.start()
        self.send({"do": "connect", **settings})
        self._hearer.start()

    def send(self, message: Mapping[str, Any], body: bytes = b"") -> None:
        """Tell the driver something; where it has ended, that is told to whoever hears."""
        with suppress(OSError):
            self._frames.send(message, body)

    def _hear(self) -> None:
        try:
            with suppress(OSError):  # a timeout is one
                while message := self._frames.receive():
                    self._heard(*message)
        finally:  # whatever went wrong: runs of which nobody would hear any more are lost runs
            self._process.kill()
            self._reader.join(_GRACE_SECONDS)
            self._ended(self, readable_tail(self._tail))

    def _drain(self) -> None:
        with suppress(OSError):
            while data := os.read(self._process.output_fd, 65536):
                self._tail = (self._tail + data)[-_TAIL_BYTES:]

    def ask_to_end(self, seconds: float) -> bool:
        """Let the driver leave the cluster in an orderly way; whether it did so in that time."""
        self.send({"do": "leave"})
        self._hearer.join(seconds)
        return not self._hearer.is_alive()

    def close(self) -> None:
        """End the process and all that it started; returns when they have gone. Not to be called from `ended`."""
        self._frames.end()
        self._process.kill()
        self._hearer.join()
        self._reader.join()
        self._process.close()
        self._frames.close()
        self._keepers.close()
