"""What a command line starts: a Python script, module, piece of code or function, or something else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["PythonTarget", "is_python", "parse_python"]

_PYTHON_NAME: Final = re.compile(r"(?:.*/)?python(?:3(?:\.\d+)?)?")
_WITH_VALUE: Final = "WX"
_TARGETS: Final = {"c": "code", "m": "module"}


@dataclass(frozen=True, slots=True)
class PythonTarget:
    """What an interpreter is asked to run.

    kind: "script", "module", "code" or "function"; target: the file, module, code or "file.py:name";
    options: what stands before it (-u, -O, -W …).
    """

    kind: str
    target: str
    arguments: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


def is_python(program: str) -> bool:
    """Whether the name, with or without a folder, is that of a Python interpreter."""
    return _PYTHON_NAME.fullmatch(program) is not None


def parse_python(command: Sequence[str]) -> PythonTarget | None:
    """What the command asks Python to run; None if it starts no Python, or reads its program from elsewhere."""
    if command[0] == "function":
        return PythonTarget("function", command[1])
    if not is_python(command[0]):
        return None
    arguments = list(command[1:])
    options: list[str] = []
    while arguments:
        word = arguments.pop(0)
        if word == "-" or word.startswith("--"):
            return None
        if not word.startswith("-"):
            return PythonTarget("script", word, tuple(arguments), tuple(options))
        if found := _target_in_option(word, arguments, options):
            return found
    return None


def _target_in_option(word: str, rest: list[str], options: list[str]) -> PythonTarget | None:
    """Read one word of short options; a target if it holds -c or -m, else the options are added to those found."""
    for position, letter in enumerate(word[1:], start=1):
        attached = word[position + 1 :]
        if letter in _TARGETS:
            options += [word[:position]] if position > 1 else []
            value = [attached] if attached else rest[:1]
            arguments = rest if attached else rest[1:]
            return PythonTarget(_TARGETS[letter], value[0], tuple(arguments), tuple(options)) if value else None
        if letter in _WITH_VALUE:
            options += [word] if attached else [word, *rest[:1]]
            del rest[: 0 if attached else 1]
            return None
    options.append(word)
    return None
