"""Inside the training process: standard library only, Python 3.8 or newer, works where isorun is not installed.

Executors import the parts they share with the training from `isorun.worker`; inside the training process the same
files are loaded by path under the name `isorun_worker` (see `site/isorun_worker.py`), so isorun's own folder never
gets on the training's `sys.path`.
"""
