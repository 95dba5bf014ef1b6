"""Finding and checking the programs that runs start with."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from isorun.errors import ExecutionError

__all__ = ["Interpreters", "find_program"]

_OLDEST: Final = (3, 8)
_QUESTION: Final = "import sys; print('isorun-probe', *sys.version_info[:2])"
_PROBE_SECONDS: Final = 60.0


class Interpreters:
    """Interpreters that were looked at once: each exists, starts, and is a Python that the worker can run in."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._lock = threading.Lock()

    def find(self, python: str, env: Mapping[str, str], working_folder: Path) -> str:
        """The absolute path of the interpreter named `python`; the one isorun itself runs in if it is empty."""
        if not python:
            return sys.executable
        path = find_program(os.path.expanduser(python), env, working_folder, what="the interpreter")  # noqa: PTH111
        with self._lock:
            if path not in self._known and path != sys.executable:
                _probe(path)
            self._known[path] = path
        return path


def find_program(program: str, env: Mapping[str, str], working_folder: Path, what: str = "the command") -> str:
    """The absolute path of a program, found as a shell started in the working folder would find it."""
    if "/" in program:
        candidate = working_folder / program
        return str(candidate) if _is_executable(candidate) else _missing(program, candidate, what)
    found = shutil.which(program, path=env.get("PATH", os.defpath))
    if found is None:
        raise ExecutionError(
            f"{what} {program!r} does not exist",
            found=f"no program of that name in PATH ({env.get('PATH', os.defpath)})",
            allowed="a program in PATH, or a path to one",
        )
    return os.path.abspath(found)  # noqa: PTH100 - links must stay: a virtual environment is known by its link


def _is_executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _missing(program: str, candidate: Path, what: str) -> str:
    if not candidate.exists():
        raise ExecutionError(f"{what} {program!r} does not exist", found=f"nothing at {candidate}")
    raise ExecutionError(
        f"{what} {program!r} cannot be executed",
        found=f"{candidate} is {'a folder' if candidate.is_dir() else 'not executable'}",
        allowed="an executable file",
        hint=f"chmod +x {candidate}" if candidate.is_file() else "",
    )


def _probe(path: str) -> None:
    try:
        answer = subprocess.run(
            [path, "-I", "-S", "-c", _QUESTION], capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _not_python(path, str(error)) from error
    words = answer.stdout.split()
    if answer.returncode != 0 or len(words) != 3 or words[0] != "isorun-probe":
        raise _not_python(path, _first_line(answer.stderr or answer.stdout) or f"exit code {answer.returncode}")
    if (int(words[1]), int(words[2])) < _OLDEST:
        raise _not_python(path, f"Python {words[1]}.{words[2]}")


def _not_python(path: str, found: str) -> ExecutionError:
    return ExecutionError(
        f"the interpreter {path} cannot be used",
        found=found,
        allowed=f"Python {_OLDEST[0]}.{_OLDEST[1]} or newer",
        hint=f"{path} --version",
    )


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0][:200] if text.strip() else ""
