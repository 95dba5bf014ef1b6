"""Trackers that only their own package can read or write: it is asked in a process of its own.

That process may be any interpreter that has the package (`--python`), so that it need not be installed beside isorun;
it runs one of our programs (`programs/`), which speak JSON lines and know nothing of isorun.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from isorun.errors import InputError, MissingExtra

__all__ = ["asked_of_package"]

_PROGRAMS: Final = Path(__file__).parent / "programs"
_MISSING: Final = 86
_TOLD: Final = 600


def asked_of_package(
    package: str, program: str, *, arguments: list[str], rows: Iterable[Mapping[str, Any]] = (), python: str = ""
) -> Iterator[dict[str, Any]]:
    """What the program answers, a row of JSON a line, while it is told the rows.

    MissingExtra where the interpreter has no such package; InputError with its last words where it fails.
    """
    interpreter = python or sys.executable
    command = [interpreter, "-I", str(_PROGRAMS / program), *arguments]
    with tempfile.TemporaryFile("w+") as words:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=words, text=True, encoding="utf-8"
            )
        except OSError as error:
            raise InputError(
                f"--python {interpreter} cannot be started",
                found=error.strerror or str(error),
                allowed=f"an interpreter that has {package}",
            ) from None
        with process:
            failed: list[Exception] = []
            teller = threading.Thread(target=_tell, args=(process, rows, failed), daemon=True)
            teller.start()
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    yield json.loads(line)
            except ValueError:
                raise InputError(f"{package} answered with something that is no JSON", found=line[:80]) from None
            finally:
                process.stdout.close()
                if sys.exc_info()[0] is not None:
                    process.kill()
            teller.join()
        if failed:
            raise failed[0]
        if process.returncode == _MISSING:
            if python:
                raise InputError(f"{python} has no package {package!r}", hint=f"{python} -m pip install {package}")
            purpose = f"{program.partition('_')[2].removesuffix('.py')} with {package}"
            raise MissingExtra(package, package, purpose, f"--python PATH, an interpreter that has {package}")
        if process.returncode:
            words.seek(0)
            raise InputError(f"{package} failed", found=_last_words(words.read()))


def _tell(process: subprocess.Popen[str], rows: Iterable[Mapping[str, Any]], failed: list[Exception]) -> None:
    """Write the rows; one that ended early says itself why. failed: takes what went wrong with the rows themselves."""
    assert process.stdin is not None
    try:
        for row in rows:
            process.stdin.write(json.dumps(row))
            process.stdin.write("\n")
    except OSError:
        pass  # it ended early
    except Exception as error:
        failed.append(error)
        process.kill()  # else it would wait for more rows, and we for its answer
    finally:
        with contextlib.suppress(OSError):
            process.stdin.close()


def _last_words(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join(lines[-2:])[-_TOLD:] if lines else "it said nothing"
