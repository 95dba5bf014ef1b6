"""What goes wrong inside the worker never reaches the training: it is written down, and the training goes on."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, Callable

from . import recorder

ERROR_FILE = "worker-error.txt"


def report(folder: Path, doing: str, error: BaseException) -> None:
    """Leave a note in the events and the whole traceback in the run's folder."""
    import traceback

    try:
        with (folder / ERROR_FILE).open("a", encoding="utf-8") as file:
            file.write(f"{doing}\n{''.join(traceback.format_exception(type(error), error, error.__traceback__))}\n")
    except OSError:
        pass  # the disk is full or the folder is gone: the note below may still be written
    current = recorder.active()
    if current is not None:
        current.note("worker-error", f"{doing}: {type(error).__name__}: {error}")


def guarded(folder: Path, doing: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with its errors reported instead of raised."""

    @functools.wraps(function)
    def safe(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:  # this is the border between the worker and the training
            return report(folder, doing, error)

    return safe
