"""Run a training that is a function: "file.py:name", called with those of its keywords that it takes."""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Mapping

from . import api, recorder


def call(target: str) -> None:
    """Call the function with the run's seed and config, and record the mapping it returns as the run's result."""
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
    return {"seed": request["seed"], **request.get("config", {})}


def _load(path: Path) -> ModuleType:
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
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return dict(keywords)
    takes = {parameter.name for parameter in parameters if parameter.kind is not parameter.POSITIONAL_ONLY}
    ignored = sorted(set(keywords) - takes - {"seed"})
    if ignored:
        _note("unused-config", f"{name} does not take: {', '.join(ignored)}")
    return {key: value for key, value in keywords.items() if key in takes}


def _note(code: str, message: str) -> None:
    current = recorder.active()
    if current is not None:
        current.note(code, message)
