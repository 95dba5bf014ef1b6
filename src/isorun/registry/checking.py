"""Packages are verified in a process of their own, with limits: whoever pushes one may be an enemy.

A checker is a process that has imported what it needs and forks for each package. The child may use so much memory and
time, may write no file, and ends with its answer: what `isorun verify` found, or why the package is refused. If
it dies, the package is refused and the server goes on.

    python -m isorun.registry.checking      reads {"path", "seconds", "memory"} a line, answers a line
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

from isorun.errors import IsorunError, PackageError, StoreError, harmless

__all__ = ["Checkers"]

_MEMORY_BYTES: Final = 2**30
_SECONDS: Final = 20.0
_BYTES_A_SECOND: Final = 2 * 2**20
_LONGEST_ANSWER: Final = 256 * 2**10
_MOST_LISTED: Final = 50
_LONGEST_TEXT: Final = 300


class Checkers:
    """As many packages at a time as there are checkers; others wait. A process starts when it is first needed."""

    def __init__(self, count: int = 2) -> None:
        self._free: queue.LifoQueue[_Checker] = queue.LifoQueue()
        self._all = [_Checker() for _ in range(count)]
        for checker in self._all:
            self._free.put(checker)

    def check(self, path: Path, size: int) -> dict[str, Any]:
        """What is in the package; PackageError says what is wrong with it."""
        checker = self._free.get()
        try:
            answer = checker.ask(path, _SECONDS + size / _BYTES_A_SECOND)
        finally:
            self._free.put(checker)
        if "verified" in answer:
            verified: dict[str, Any] = answer["verified"]
            return verified
        raise PackageError(**{name: str(answer.get(name, "")) for name in ("what", "found", "allowed", "hint")})

    def close(self) -> None:
        """End the processes."""
        for checker in self._all:
            checker.close()


class _Checker:
    """One process, started when it is needed and again when it died."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._guard = threading.Lock()

    def ask(self, path: Path, seconds: float) -> dict[str, Any]:
        with self._guard:
            process = self._running()
            assert process.stdin is not None
            assert process.stdout is not None
            question = {"path": str(path), "seconds": seconds, "memory": _MEMORY_BYTES}
            try:
                process.stdin.write(json.dumps(question).encode() + b"\n")
                process.stdin.flush()
                line = process.stdout.readline()
            except OSError:
                line = b""
            if not line.endswith(b"\n"):
                self._end()
                raise StoreError("the process that verifies packages ended", hint="push the package again")
            answer: dict[str, Any] = json.loads(line)
            return answer

    def close(self) -> None:
        with self._guard:
            self._end()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._end()
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            )
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with process:  # closes its pipes, and waits
                pass


def _serve() -> None:
    """Answer question after question, each in a child."""
    from isorun.share import looking  # noqa: F401, PLC0415 - children find it imported

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends this by closing its input
    for line in sys.stdin.buffer:
        answer = _in_child(json.loads(line))
        sys.stdout.buffer.write(answer + b"\n")
        sys.stdout.buffer.flush()


def _in_child(question: dict[str, Any]) -> bytes:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _answer(question, writing)
    os.close(writing)
    data = _read_until(reading, time.monotonic() + question["seconds"])
    os.close(reading)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    _, _, used = os.wait4(child, 0)
    try:
        answer: dict[str, Any] = json.loads(data)
    except ValueError:
        allowed = f"{question['seconds']:.0f} s, and memory that follows from its size"
        answer = {"what": "verifying the package took too much time or memory", "allowed": allowed}
    return json.dumps({**answer, "seconds": used.ru_utime + used.ru_stime, "memory": used.ru_maxrss}).encode()


def _read_until(descriptor: int, deadline: float) -> bytes:
    """What the child says before it ends, or before its time is over."""
    data = b""
    while (left := deadline - time.monotonic()) > 0 and len(data) <= _LONGEST_ANSWER:
        ready, _, _ = select.select([descriptor], [], [], left)
        piece = os.read(descriptor, 2**16) if ready else b""
        if not piece:
            break
        data += piece
    return data


def _answer(question: dict[str, Any], writing: int) -> None:
    """Verify, say what came of it, and end."""
    from isorun.share.looking import verify  # noqa: PLC0415

    try:
        _limit(int(question["seconds"]) + 1, int(question["memory"]))
        found = verify(question["path"], keys=())
        answer: dict[str, Any] = {"verified": {**_summary(found.to_json()), "marks": list(found.marks)}}
    except IsorunError as error:
        answer = {"what": error.what, "found": error.found, "allowed": error.allowed, "hint": error.hint}
        # Whoever pushed it knows no path of the server.
        answer = {name: text.replace(question["path"], "the package") for name, text in answer.items()}
    except BaseException:
        answer = {"what": "the package could not be verified"}
    with contextlib.suppress(BaseException):
        os.write(writing, json.dumps(answer).encode())
    os._exit(0)


def _limit(seconds: int, memory: int) -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + memory, used + memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _summary(found: dict[str, Any]) -> dict[str, Any]:
    """What the index keeps of a package: short, whatever the package says."""
    signed = found["signed_by"] or {}
    code = found["code"].get("versions")
    versions = [item for item in code if isinstance(item, dict)] if isinstance(code, list) else []
    return {
        "address": found["address"],
        "study": harmless(found["study"][:_LONGEST_TEXT]),
        "runs": found["runs"],
        "points": found["points"],
        "states": dict(sorted(found["states"].items())[:_MOST_LISTED]),
        "groups": found["groups"],
        "metrics": _short(found["metrics"]),
        "environments": _short(found["environments"]),
        "commits": _short([item.get("commit") for item in versions]),
        "signature": found["signature"],
        "signed_by": str(signed.get("fingerprint", "")),
    }


def _short(texts: list[Any]) -> list[str]:
    return [harmless(text[:_LONGEST_TEXT]) for text in texts[:_MOST_LISTED] if isinstance(text, str)]


if __name__ == "__main__":
    _serve()
