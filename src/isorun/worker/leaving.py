"""The end of a training that was forked: what is the training's own is let go, what the server loaded is left alone.

Python's own end takes every module apart, and a forked process copies each page of memory that it writes to: to take
apart what its server loaded takes longer than all else that a short training does. Here the same happens in the same
order, for the training's modules alone. Whatever is not as plain as that is left to Python's own end.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import sys
import threading
import weakref
from types import ModuleType
from typing import Container

from .usercode import STANDARD_LIBRARY

_COMPILED = (".so", ".pyd")
# The end of a program as C knows it, with what libraries have to do then; Python goes on with nothing meanwhile.
_exit = ctypes.PyDLL(None).exit


def leave(known: Container[str]) -> None:
    """End this process, whose training has ended well; returns where that is left to Python.

    known: the names of the server's modules, none of them a framework's.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001  waits for threads, as Python's own end does
    try:
        atexit._run_exitfuncs()  # noqa: SLF001  as above
        own = {name: sys.modules[name] for name in sys.modules if name not in known}
        if threading.active_count() > 1 or any(map(_is_compiled_elsewhere, own.values())):
            return
        _flush()
        _let_go(own)
        if _something_hears_its_end():
            return
        _flush()
    except BaseException:  # Python's own end says what is wrong, and what to exit with
        return
    _exit(0)


def _is_compiled_elsewhere(module: ModuleType) -> bool:
    """Whether it is compiled and none of Python's own: who knows what it has to do in the end."""
    file = str(getattr(module, "__file__", None) or "")
    return file.endswith(_COMPILED) and (not file.startswith(STANDARD_LIBRARY) or "-packages" in file)


def _flush() -> None:
    for file in (sys.stdout, sys.stderr):
        if file is not None and not file.closed:
            file.flush()


def _let_go(modules: dict[str, ModuleType]) -> None:
    """As Python does: first the references to the modules, then what those that are still there hold."""
    sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__
    left = [weakref.ref(module) for module in modules.values()]
    for name in modules:
        del sys.modules[name]
    modules.clear()
    gc.collect()
    for reference in reversed(left):
        module = reference()
        if module is not None:
            _clear(module.__dict__)
    gc.collect()


def _clear(names: dict[str, object]) -> None:
    """Names with one underscore first, so that what they hold may still use the others."""
    for name in list(names):
        if name[:1] == "_" and name[1:2] != "_":
            names[name] = None
    for name in list(names):
        if name != "__builtins__":
            names[name] = None


def _something_hears_its_end() -> bool:
    """Whether anything is left of the training that is told when it goes, such as an open file; not the server's."""
    return any(hasattr(kind, "__del__") for kind in {type(item) for item in gc.get_objects()})
