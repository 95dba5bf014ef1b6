"""Enter the worker, in any interpreter that is given a run's environment.

`enter.py call file.py:name` runs a training that is a function; `enter.py serve DESCRIPTOR` is a fork server that
listens on an inherited socket; `enter.py tell frameworks` prints how this interpreter computes, and trains nothing.
"""

import importlib
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  as in sitecustomize


def _worker(name: str):  # type: ignore[no-untyped-def]  # noqa: ANN202  Python 3.8, nothing imported
    sys.path.insert(0, _HERE)
    module = importlib.import_module("isorun_worker." + name)
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]  # noqa: PTH100
    return module


if __name__ == "__main__":
    what, target = sys.argv[1], sys.argv[2]
    if what == "serve":
        sys.exit(_worker("forkserver").main(int(target)))
    if what == "tell":
        sys.exit(_worker("fingerprint").tell())
    sys.argv = [target.rpartition(":")[0], *sys.argv[3:]]
    _worker("programs").call(target)
