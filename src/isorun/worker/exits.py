"""End a program as a fresh Python would: the same exit code, the same traceback, death by SIGINT when interrupted."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from pathlib import Path
from types import TracebackType
from typing import Callable

_WORKER = str(Path(__file__).resolve().parent)


def exit_code_of(run: Callable[[], None]) -> int:
    """Run and say what the process should exit with; an uncaught error has been shown by then."""
    try:
        run()
    except SystemExit as request:
        return _code_of(request)
    except BaseException as error:  # the top of the program: nothing is above it
        _show(error)
        return 1
    return 0


def _code_of(request: SystemExit) -> int:
    if request.code is None:
        return 0
    if isinstance(request.code, int):
        return request.code
    sys.stderr.write(f"{request.code}\n")
    return 1


def _show(error: BaseException) -> None:
    own = error.with_traceback(_without_worker(error.__traceback__))
    sys.last_type, sys.last_value, sys.last_traceback = type(own), own, own.__traceback__
    sys.excepthook(type(own), own, own.__traceback__)


def _without_worker(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith((_WORKER, "<frozen")):
        trace = trace.tb_next
    return trace


def die_of_interrupt_at_exit() -> None:
    """Register, before other exit handlers and so to run after them, what makes an interrupted program die of SIGINT.

    Python does so by itself, but forgets it when an exit handler evaluates source, as named tuples do when defined.
    """
    atexit.register(_die_if_interrupted)


def _die_if_interrupted() -> None:
    if getattr(sys, "last_type", None) is KeyboardInterrupt:
        sys.stdout.flush()
        sys.stderr.flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
