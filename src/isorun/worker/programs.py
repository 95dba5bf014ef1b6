"""What a run executes in Python: a script, a module, code, or a function; the same in a fresh and a warm process.

A program is run as Python itself would: as `__main__`, with the same `sys.argv`, `sys.path` and file names. A function,
"file.py:name", is called with those of its keywords that it takes.
"""

from __future__ import annotations

import builtins
import importlib.machinery
import json
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Callable, Mapping, NamedTuple, Sequence

from . import levels

SCRIPT, MODULE, CODE, FUNCTION = "script", "module", "code", "function"
_CANNOT_OPEN = 2
# What a function may take beside its config.
_OF_THE_RUN = ("seed", "repeat", "level")


class Program(NamedTuple):
    """target: the script's path, the module's name, the code, or "file.py:name".

    arguments: what follows it on the command line. unbuffered: whether output is written at once (`python -u`).
    """

    kind: str
    target: str
    arguments: tuple[str, ...] = ()
    unbuffered: bool = False


def parse(arguments: Sequence[str]) -> Program | None:
    """The program of a command line, without its leading `python`.

    None when it asks for what only a fresh interpreter can give: other options than `-u`, or standard input.
    """
    rest = list(arguments)
    unbuffered = rest[:1] == ["-u"]
    rest = rest[1:] if unbuffered else rest
    if len(rest) >= 2 and rest[0] in ("-m", "-c"):
        kind = MODULE if rest[0] == "-m" else CODE
        return Program(kind, rest[1], tuple(rest[2:]), unbuffered)
    if not rest or rest[0].startswith("-"):
        return None
    return Program(SCRIPT, rest[0], tuple(rest[1:]), unbuffered)


def fresh_command(python: str, program: Program) -> list[str]:
    """The command that runs the program in a process of its own."""
    unbuffered = ["-u"] if program.unbuffered else []
    if program.kind == FUNCTION:
        return [python, *unbuffered, str(levels.site_folder() / "enter.py"), "call", program.target, *program.arguments]
    option = {SCRIPT: [], MODULE: ["-m"], CODE: ["-c"]}[program.kind]
    return [python, *unbuffered, *option, program.target, *program.arguments]


def from_json(data: Mapping[str, Any]) -> Program:
    """The program that `Program._asdict` gave, after its way through JSON."""
    return Program(data["kind"], data["target"], tuple(data["arguments"]), bool(data["unbuffered"]))


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
        call(program.target)
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
    import importlib.util

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


def call(target: str) -> None:
    """Call the function with what it takes of the run, and record the mapping it returns as the run's result."""
    import inspect

    from . import api

    path, _, name = target.rpartition(":")
    module = _load(Path(path).resolve())
    function = getattr(module, name, None)
    if not callable(function):
        known = sorted(key for key, value in vars(module).items() if inspect.isfunction(value))
        raise SystemExit(f"isorun: {path} has no function {name!r}; its functions are: {', '.join(known) or 'none'}")
    returned = function(**_accepted(function, name, _keywords()))
    if isinstance(returned, Mapping):
        api.result(**{str(key): value for key, value in returned.items()})
    elif returned is not None:
        _note("bad-return", f"{name} returned {type(returned).__name__}; a mapping of metrics, or nothing, is allowed")


def _keywords() -> dict[str, Any]:
    """What the run's request says; nothing outside isorun."""
    folder = os.environ.get("ISORUN_RUN_DIR")
    if not folder:
        return {}
    request = json.loads((Path(folder) / "request.json").read_text(encoding="utf-8"))
    return {**{name: request.get(name) for name in _OF_THE_RUN}, **request.get("config", {})}


def _load(path: Path) -> ModuleType:
    import importlib.util

    sys.path.insert(0, str(path.parent))
    name = path.stem if path.stem not in sys.modules else f"training_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise SystemExit(f"isorun: {path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _accepted(function: Callable[..., Any], name: str, keywords: Mapping[str, Any]) -> dict[str, Any]:
    import inspect

    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return dict(keywords)
    takes = {parameter.name for parameter in parameters if parameter.kind is not parameter.POSITIONAL_ONLY}
    ignored = sorted(set(keywords) - takes - set(_OF_THE_RUN))
    if ignored:
        _note("unused-config", f"{name} does not take: {', '.join(ignored)}")
    return {key: value for key, value in keywords.items() if key in takes}


def _note(code: str, message: str) -> None:
    from . import recorder

    current = recorder.active()
    if current is not None:
        current.note(code, message)
