"""Start the fork server: `python serve.py <descriptor of the socket>`, in any interpreter."""

import importlib
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  as in sitecustomize

if __name__ == "__main__":
    sys.path.insert(0, _HERE)
    forkserver = importlib.import_module("isorun_worker.forkserver")
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]  # noqa: PTH100
    sys.exit(forkserver.main(int(sys.argv[1])))
