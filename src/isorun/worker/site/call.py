"""Run a training that is a function: `python call.py file.py:name`, in any interpreter, in a run's environment."""

import importlib
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  as in sitecustomize

if __name__ == "__main__":
    sys.path.insert(0, _HERE)
    functions = importlib.import_module("isorun_worker.functions")
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]  # noqa: PTH100
    target = sys.argv[1]
    sys.argv = [target.rpartition(":")[0], *sys.argv[2:]]
    functions.call(target)
