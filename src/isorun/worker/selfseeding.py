"""Notice that a training fixes a seed by itself: its "default" runs are then not independent."""

from __future__ import annotations

import functools
import operator
import os
import sys
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, Callable, NamedTuple

from .recorder import Recorder
from .userfiles import is_users_file
from .values import shortened

_ISORUN = str(Path(__file__).resolve().parents[1]) + os.sep
# `Random(1)` makes its calls in this file; who called that is asked for.
_RANDOM = str(Path(os.__file__).parent / "random.py")
_PASSED_OVER = (_ISORUN, _RANDOM, "<frozen")
_IMPORT_SYSTEM = "<frozen importlib"


class Caller(NamedTuple):
    """Who made a call.

    where: file:line of the nearest caller that is the user's own code; the nearest library line where there is none.
    by_library: a library made the call, whoever asked for it. importing: while it was imported, so nobody did.
    """

    where: str
    by_library: bool
    importing: bool


def watch_calls(module: ModuleType, function: str, call: str, recorder: Recorder) -> None:
    """Record calls of `module.function` with a value; the function itself is called unchanged."""
    original: Callable[..., Any] = getattr(module, function)

    @functools.wraps(original)
    def watched(*args: Any, **kwargs: Any) -> Any:
        value = args[0] if args else next(iter(kwargs.values()), None)
        if value is not None:
            recorder.seeded(call, shown_seed(value), caller())
        return original(*args, **kwargs)

    setattr(module, function, watched)


def shown_seed(value: Any) -> str:
    """How a seed is told: a whole number of whatever library as a plain one."""
    try:
        return str(operator.index(value))
    except Exception:  # a traced array of JAX raises errors of its own
        return shortened(value)


def caller() -> str:
    """file:line of the nearest caller that is the user's own code; the nearest library line where there is none."""
    return calling().where


def calling() -> Caller:
    """Who made the call that is being carried out."""
    library, importing = "", False
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  `traceback.walk_stack` differs between versions
    while frame is not None:
        file = frame.f_code.co_filename
        if is_users_file(file) or (frame.f_globals.get("__name__") == "__main__" and not file.startswith(_ISORUN)):
            return Caller(f"{file}:{frame.f_lineno}", bool(library), importing)
        importing = importing or file.startswith(_IMPORT_SYSTEM)
        if not library and not file.startswith(_PASSED_OVER):
            library = f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return Caller(library, True, importing)
