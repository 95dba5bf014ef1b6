"""What a file that isorun writes may take the place of: an empty file, and one of the kind that is written there.

Whoever names a package, a study file or source code by mistake where a page is to be written keeps it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

from isorun.errors import InputError

__all__ = ["KINDS", "refuse_other", "refuse_present"]

_FIRST_BYTES: Final = 65_536


class _Kind(NamedTuple):
    """words: for people. begins: how such a file by isorun begins, and no file by others that is likely there."""

    words: str
    begins: re.Pattern[bytes]


KINDS: Final = {
    "html": _Kind(
        "a page by isorun", re.compile(rb"<!doctype html>\s.*?<title>[^<]*: isorun(?: report)?</title>", re.DOTALL)
    ),
    "markdown": _Kind("Markdown by isorun", re.compile(rb"# [^\n]*\n\n- |<!-- isorun check -->")),
    "latex": _Kind("LaTeX tables by isorun", re.compile(rb"% (?:[^\n]*; )?needs \\usepackage")),
    "svg": _Kind("a figure by isorun", re.compile(rb'<svg [^>]*class="figure"')),
    "pdf": _Kind("a figure by matplotlib", re.compile(rb"%PDF-1\.\d\n%\xac\xdc \xab\xba")),
    "png": _Kind("a figure by matplotlib", re.compile(rb"\x89PNG\r\n\x1a\n.{0,200}?Software\x00Matplotlib", re.DOTALL)),
    "csv": _Kind("a table", re.compile(rb"[^\x00]+\Z")),
}


def refuse_other(path: str | Path, kind: str) -> None:
    """InputError where a file with other content is; what is no file is left to those who write."""
    words, begins = KINDS[kind]
    first = _beginning(Path(path))
    if first and not begins.match(first):
        raise _refusal(path, f"it is not {words}, and is not overwritten")


def refuse_present(path: str | Path) -> None:
    """InputError where a file with any content is."""
    if _beginning(Path(path)):
        raise _refusal(path, "it is not overwritten")


def _refusal(path: str | Path, why: str) -> InputError:
    return InputError(f"the file {str(path)!r} is there already: {why}", hint="name a new file, or move that one away")


def _beginning(path: Path) -> bytes:
    """The first bytes of a file; none where there is no file."""
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            return file.read(_FIRST_BYTES)
    except FileNotFoundError:
        return b""
    except (OSError, ValueError, RuntimeError) as error:  # ValueError: a name that no file can have
        why = getattr(error, "strerror", None) or error
        raise InputError(f"{str(path)!r} cannot be written: {why}") from None
