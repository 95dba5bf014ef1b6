"""Notice that a training fixes a seed by itself: its "default" runs are then not independent."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, Callable

from .recorder import Recorder
from .values import shortened

_ISORUN = str(Path(__file__).resolve().parents[1]) + os.sep
# The papers' trainings are part of isorun's package, and yet what is run and recorded: they count as the user's.
_TRAININGS = _ISORUN + "zoo" + os.sep
_LIBRARY_PARTS = ("/site-packages/", "/dist-packages/")
# Where the standard library lies, asked of one of its modules: `sysconfig` takes milliseconds to say the same.
_STANDARD_LIBRARY = str(Path(os.__file__).parent) + os.sep


def watch_calls(module: ModuleType, function: str, call: str, recorder: Recorder) -> None:
    """Record calls of `module.function` with a value; the function itself is called unchanged."""
    original: Callable[..., Any] = getattr(module, function)

    @functools.wraps(original)
    def watched(*args: Any, **kwargs: Any) -> Any:
        value = args[0] if args else next(iter(kwargs.values()), None)
        if value is not None:
            recorder.seeded(call, shortened(value), caller())
        return original(*args, **kwargs)

    setattr(module, function, watched)


def caller() -> str:
    """file:line of the nearest caller that is the user's own code; the nearest library line where there is none."""
    nearest = ""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  `traceback.walk_stack` differs between versions
    while frame is not None:
        place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        if is_users_file(frame.f_code.co_filename):
            return place
        if not nearest and not place.startswith((_ISORUN, "<frozen")):
            nearest = place
        frame = frame.f_back
    return nearest


def is_users_file(filename: str) -> bool:
    """Whether a source file belongs to the user rather than to Python, an installed library or isorun."""
    if filename.startswith(_TRAININGS):
        return True
    if filename.startswith((_ISORUN, "<")) or any(part in filename for part in _LIBRARY_PARTS):
        return False
    return not filename.startswith(_STANDARD_LIBRARY)
