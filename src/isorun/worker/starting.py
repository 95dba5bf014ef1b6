"""Other Pythons that this one starts without isorun's variables: nothing reaches what they train.

tox and its kind hand on the few variables that they know. A Python that is only asked something (`-c`, `-I`), or runs a
file of a library, trains nothing.
"""

from __future__ import annotations

import os
import re
from typing import Any, Iterable, Mapping

from . import levels
from .recorder import active
from .usercode import is_library_file

_PYTHON = re.compile(r"(?:python|pypy)[\d.]*$")
_TOOLS = frozenset(("pip", "venv", "ensurepip", "virtualenv", "build"))


def told(arguments: tuple[Any, ...]) -> None:
    """Python tells of a program that it is about to start; what is meant to train, and is out of reach, is noted."""
    program, words, environment = arguments[0], arguments[1], arguments[-1]
    recorder = active()
    if recorder is None or environment is None or not isinstance(words, (list, tuple)):
        return
    typed = [os.fsdecode(word) for word in words]
    is_python = _PYTHON.match(os.path.basename(os.fsdecode(program or typed[0])))  # noqa: PTH119
    if is_python and _trains(typed[1:]) and not _is_reached(environment):
        shown = " ".join(typed[1:3])
        recorder.note("python-unreached", f"Python was started ({shown}) without isorun's variables")


def _trains(words: Iterable[str]) -> bool:
    """Whether a Python with these words runs code that is nobody's library: a file, or a module that is no tool."""
    words = iter(words)
    for word in words:
        if word == "-m":
            return next(words, "pip").partition(".")[0] not in _TOOLS
        if word in {"-X", "-W"}:
            next(words, None)
        elif not word.startswith("-"):
            return not is_library_file(os.path.abspath(word))  # noqa: PTH100
        elif word == "-c" or re.match(r"-[a-zA-Z]*[IES]", word):
            return False
    return False


def _is_reached(environment: Mapping[Any, Any]) -> bool:
    held = {os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()}
    return "ISORUN_RUN_DIR" in held and str(levels.site_folder()) in held.get("PYTHONPATH", "").split(os.pathsep)
