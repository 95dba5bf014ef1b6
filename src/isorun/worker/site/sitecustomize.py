"""Python runs this file at start because its folder leads PYTHONPATH: it starts isorun's worker.

The folder then leaves `sys.path` (PYTHONPATH keeps it, so that child Pythons are reached too), and the user's or the
distribution's own `sitecustomize` runs as if this file had never been there.
"""

import importlib
import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  pathlib would cost every child Python


def _start_worker() -> None:
    if not os.environ.get("ISORUN_RUN_DIR"):
        return
    try:
        importlib.import_module("isorun_worker.lifetime").start()
    except Exception as error:  # the training goes on, whatever happens to the worker
        sys.stderr.write("isorun: the worker could not start: {!r}\n".format(error))


def _leave_path() -> None:
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]  # noqa: PTH100


def _hand_over() -> None:
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_start_worker()
_leave_path()
_hand_over()
