"""Functions as approaches: where a run, which is a process of its own, finds the function.

A function of a file is named by it: "train.py:main". One that was typed in a notebook or at a prompt has no file, so
its source is written to one, with what it needs of its surroundings: imports, plain constants, and other functions and
classes typed there. The file's name is made from its content, so that an edited function is another approach. What
cannot be taken along is refused with the next step; nothing is ever pickled.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import linecache
import os
import stat
import symtable
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final

from isorun.errors import StudyError

__all__ = ["reference_to"]

FUNCTIONS_FOLDER: Final = Path(".isorun") / "functions"
_NEXT_STEP: Final = "move it to the top level of a .py file, and import it from there"
_PLAIN: Final = (bool, int, float, complex, str, bytes, type(None))


def reference_to(function: Callable[..., Any], where: str, folder: Path) -> str:
    """The text "file.py:name" by which a run finds the function, relative to the study's folder where it lies there."""
    name = getattr(function, "__qualname__", "")
    if not isinstance(inspect.unwrap(function), FunctionType) or not name.isidentifier():
        raise StudyError(
            f"{where}: only a function at the top level of a module can be run in a process of its own",
            found=repr(function),
            hint="move it to the top level of a .py file",
        )
    file = _file_of(function)
    path = file if file is not None else _written(function, where, folder)
    path, root = path.resolve(), folder.resolve()
    return f"{path.relative_to(root) if path.is_relative_to(root) else path}:{name}"


def _file_of(function: Callable[..., Any]) -> Path | None:
    """The file that defines the function; None for one that was typed."""
    try:
        file = inspect.getsourcefile(inspect.unwrap(function))
    except TypeError:
        return None
    return Path(file) if file is not None and Path(file).is_file() else None


def _written(function: Callable[..., Any], where: str, folder: Path) -> Path:
    """The typed function in a file of its own, written once."""
    text = "".join(_Taken(where, function.__globals__).lines_of(inspect.unwrap(function)))
    name = f"{function.__name__}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.py"
    path = folder / FUNCTIONS_FOLDER / name
    try:
        _write_privately(path, text)
    except OSError as error:
        raise StudyError(f"{where}: {path} cannot be written ({error.strerror})", hint=_NEXT_STEP) from None
    return path


def _write_privately(path: Path, text: str) -> None:
    """What was typed is for those alone who may look into the store: its owner, or the group it is shared with."""
    functions, store = path.parent, path.parent.parent
    store.parent.mkdir(parents=True, exist_ok=True)
    store.mkdir(mode=0o700, exist_ok=True)
    shared = store.stat().st_mode & (stat.S_ISGID | stat.S_IWGRP) == stat.S_ISGID | stat.S_IWGRP
    functions.mkdir(mode=0o700, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    for made, mode in ((functions, 0o2770 if shared else 0o700), (path, 0o660 if shared else 0o600)):
        if made.stat().st_uid == os.getuid():  # also what an older isorun left open
            made.chmod(mode)


class _Taken:
    """Collects a typed function and what it needs of where it was typed, each once."""

    def __init__(self, where: str, surroundings: Mapping[str, Any]) -> None:
        self._where = where
        self._surroundings = surroundings
        self._names: set[str] = set()

    def lines_of(self, typed: Any) -> Iterator[str]:
        """The source of a function or class, what it needs first."""
        self._names.add(typed.__name__)
        source = _source_of(typed)
        if not source:
            what = f"{self._where}: the source of {typed.__name__} is not known, because it was typed at a prompt"
            raise StudyError(what, hint=_NEXT_STEP)
        for name in _names_from_outside(source):
            if name in self._surroundings and name not in self._names:
                self._names.add(name)
                yield from self._binding(typed.__name__, name, self._surroundings[name])
        yield f"{source.rstrip()}\n\n\n"

    def _binding(self, user: str, name: str, value: Any) -> Iterator[str]:
        """The lines that give the name its value in the file."""
        if isinstance(value, ModuleType):
            yield f"import {value.__name__} as {name}\n"
        elif getattr(value, "__module__", "") == "__main__" and getattr(value, "__qualname__", "") == name:
            yield from self.lines_of(value)
        elif _is_importable(value):
            yield f"from {value.__module__} import {value.__qualname__} as {name}\n"
        elif _is_plain(value):
            yield f"{name} = {value!r}\n"
        else:
            raise StudyError(
                f"{self._where}: {user} uses {name}, which cannot be taken along to a process of its own",
                found=f"{name} is a {type(value).__name__}",
                allowed="modules, functions, classes, and constants made of numbers and text",
                hint=f"make {name} inside the function, or {_NEXT_STEP}",
            )


def _source_of(typed: Any) -> str:
    """The source of a typed function or class; empty where nobody kept it. A class is found by its methods' source."""
    if not inspect.isclass(typed):
        try:
            return textwrap.dedent(inspect.getsource(typed))
        except (OSError, TypeError):
            return ""
    method = next((item for item in vars(typed).values() if isinstance(item, FunctionType)), None)
    text = "".join(linecache.getlines(method.__code__.co_filename)) if method else ""
    try:
        nodes = ast.parse(text).body
    except SyntaxError:
        return ""
    found = (node for node in nodes if isinstance(node, ast.ClassDef) and node.name == typed.__name__)
    return next((ast.unparse(node) for node in found), "")


def _names_from_outside(source: str) -> list[str]:
    """The names that the source reads and does not bind itself, in the order of the alphabet."""

    def read(table: symtable.SymbolTable) -> Iterator[str]:
        top = table.get_type() == "module"
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (top or symbol.is_global()):
                yield symbol.get_name()
        for child in table.get_children():
            yield from read(child)

    return sorted(set(read(symtable.symtable(source, "function", "exec"))))


def _is_importable(value: Any) -> bool:
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    named = isinstance(module, str) and module not in ("__main__", "builtins") and str(name).isidentifier()
    return named and (inspect.isclass(value) or inspect.isroutine(value))


def _is_plain(value: Any) -> bool:
    """Whether the value can be written down: Python reads back what is written, and nothing else."""
    if isinstance(value, Mapping):
        plain = type(value) is dict and all(_is_plain(part) for pair in value.items() for part in pair)
    elif isinstance(value, list | tuple | set):
        plain = type(value) in (list, tuple, set) and all(map(_is_plain, value))
    else:
        plain = type(value) in _PLAIN
    if not plain:
        return False
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError):
        return False
