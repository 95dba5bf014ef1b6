"""The worker package under a name of its own, in an interpreter that need not have isorun installed.

Only this folder is put on `sys.path`, and `sitecustomize` takes it off again: a module whose `__path__` names the
folder above is a package, so `isorun_worker.recorder` is `worker/recorder.py` and relative imports work there.
"""

import pathlib

__path__ = [str(pathlib.Path(__file__).resolve().parent.parent)]
