"""Run a program as Python itself would: as `__main__`, with the same `sys.argv`, `sys.path` and file names."""

from __future__ import annotations

import builtins
import importlib.machinery
import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from . import functions
from .programs import CODE, FUNCTION, MODULE, Program

_CANNOT_OPEN = 2


def present(program: Program) -> None:
    """Set `sys.argv` (and what Python 3.10 keeps of the whole command) before anything looks at them."""
    option = {MODULE: ["-m"], CODE: ["-c"]}.get(program.kind, [])
    name = program.target.rpartition(":")[0] if program.kind == FUNCTION else program.target
    sys.argv = [*(option or [name]), *program.arguments]
    if hasattr(sys, "orig_argv"):
        sys.orig_argv = [sys.executable, *option, program.target, *program.arguments]


def execute(program: Program) -> None:
    """Run the program to its end; whatever it raises goes to the caller."""
    if program.kind == FUNCTION:
        functions.call(program.target)
    elif program.kind == CODE:
        _lead_path("")
        code = compile(program.target, "<string>", "exec", dont_inherit=True)
        _run(code, {"__loader__": importlib.machinery.BuiltinImporter})
    elif program.kind == MODULE:
        _execute_module(program.target)
    else:
        _execute_script(program.target)


def _execute_script(target: str) -> None:
    # Since Python 3.9 the main script's file name is absolute.
    path = str(Path.cwd() / target) if sys.version_info >= (3, 9) else target
    if Path(target).is_dir() or target.endswith((".zip", ".pyz")):
        _lead_path(path)
        _run_spec(PathFinder.find_spec("__main__", [path]), f"can't find '__main__' module in {path!r}")
        return
    try:
        source = Path(path).read_bytes()
    except OSError as error:
        sys.stderr.write(f"{sys.executable}: can't open file {path!r}: [Errno {error.errno}] {error.strerror}\n")
        raise SystemExit(_CANNOT_OPEN) from None
    _lead_path(str(Path(path).resolve().parent))
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    code = compile(source, path, "exec", dont_inherit=True)
    _run(code, {"__file__": path, "__loader__": loader, "__cached__": None})


def _execute_module(name: str) -> None:
    _lead_path(str(Path.cwd()))
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except ModuleNotFoundError as error:
        _run_spec(None, f"Error while finding module specification for {name!r} ({type(error).__name__}: {error})")
        return
    if spec is not None and spec.origin is not None:
        sys.argv[0] = spec.origin
    _run_spec(spec, f"No module named {name}")


def _run_spec(spec: ModuleSpec | None, missing: str) -> None:
    get_code = getattr(spec.loader, "get_code", None) if spec is not None else None
    code = get_code(spec.name) if spec is not None and get_code is not None else None
    if spec is None or code is None:
        sys.stderr.write(f"{sys.executable}: {missing}\n")
        raise SystemExit(1)
    names = {"__spec__": spec, "__loader__": spec.loader, "__file__": spec.origin, "__package__": spec.parent}
    _run(code, {**names, "__cached__": spec.cached})


def _run(code: CodeType, names: dict[str, Any]) -> None:
    main = ModuleType("__main__")
    main.__dict__.update({"__builtins__": builtins, "__annotations__": {}, **names})
    sys.modules["__main__"] = main
    exec(code, main.__dict__)  # noqa: S102  this is the user's own training


def _lead_path(entry: str) -> None:
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, entry if entry == "" else os.fspath(entry))
