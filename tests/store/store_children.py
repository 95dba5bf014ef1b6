"""Child processes for tests: forked from a small, warm process, so that a thousand of them take seconds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import isorun

PRELUDE = f"""
import os, sys
from pathlib import Path
sys.path[:0] = [{str(Path(isorun.__file__).parents[1])!r}, {str(Path(__file__).parent)!r}]
from isorun.testing.made_records import make_cell, make_record
from isorun.store.folder import FolderStore
"""


FORK_LOOP = """
for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        os.write(1, f"pid {os.getpid()}\\n".encode())
        try:
            child(line.strip())
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    os.write(1, f"gone {os.waitstatus_to_exitcode(status)}\\n".encode())
"""


def python(body: str, *arguments: object, **options) -> subprocess.Popen[str]:
    """A fresh Python process that runs `body` after the prelude."""
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(body), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def completed(body: str, *arguments: object, timeout: float = 120, **options) -> str:
    """What the process printed; an error when it failed."""
    process = python(body, *arguments, **options)
    output, errors = process.communicate(timeout=timeout)
    assert process.returncode == 0, errors
    return output


class Nursery:
    """Forks a child for each line it is told, with the line as `task`; children write to the same output.

    first: what is imported before, once for all children.
    """

    def __init__(self, body: str, first: str = "") -> None:
        child = textwrap.indent(textwrap.dedent(body), "    ")
        self.process = python(f"{first}\ndef child(task):\n{child}\n{FORK_LOOP}")

    def start(self, task: object) -> int:
        """The process id of a new child."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{task}\n")
        self.process.stdin.flush()
        return int(self.line().removeprefix("pid "))

    def line(self) -> str:
        """The next line of output."""
        assert self.process.stdout is not None
        found = self.process.stdout.readline()
        if not found:
            raise AssertionError(self.process.communicate()[1])
        return found.strip()

    def close(self) -> None:
        _, errors = self.process.communicate(timeout=30)
        assert errors == ""


def kill(pid: int) -> None:
    """End one process that this test started, at once."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
