"""Start the worker in a training process: record, seed, watch imports, and close at the interpreter's end."""

from __future__ import annotations

import atexit
import functools
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Callable

from . import closing, exits, settings, standin, trouble
from .frameworks import jax_keys, numpy_random, python_random, pytorch, tensor_flow
from .hook import ImportWatcher
from .recorder import Recorder, activate

Prepare = Callable[[ModuleType, settings.Settings, Recorder], Any]


def start(warm: bool = False) -> None:
    """Start the worker; nothing at all outside isorun. An error is written down and does not stop the training.

    warm: the process was forked from a server that has imported frameworks already.
    """
    folder = os.environ.get("ISORUN_RUN_DIR")
    if folder:
        trouble.guarded(Path(folder), "start of the worker", _start)(warm)


def _start(warm: bool) -> None:
    asked = settings.read(os.environ, warm)
    # A training that was given `{seed}` fixes none by itself. Seeds of the fixed levels are few and small numbers: a
    # training may well have chosen the same, and their runs share them anyway, so there all are told.
    drawn = asked.run_seed if asked.seed is None else None
    recorder = Recorder(asked.folder, drawn_seed=drawn)
    activate(recorder)
    standin.install()
    trouble.guarded(asked.folder, "claim of the run folder", recorder.begin)()
    exits.die_of_interrupt_at_exit()
    closer = closing.Closer(recorder)
    atexit.register(trouble.guarded(asked.folder, "end of the worker", closer.close))
    if asked.run_seed is not None and asked.takes_seeds:
        trouble.guarded(asked.folder, "taking seeds over", _take_seeds)(asked.run_seed, recorder, closer)
    _watch_frameworks(asked, recorder, closer)
    if warm and asked.seed is None and sys.flags.hash_randomization and not os.environ.get("PYTHONHASHSEED"):
        recorder.note(
            "shared-hash-seed", "the order of sets of strings is the same in all runs of one warm fork server"
        )


def _take_seeds(run_seed: int, recorder: Recorder, closer: closing.Closer) -> None:
    from . import takeover  # most runs do without
    from .frameworks import taking

    taking.install()
    closer.taker = takeover.SeedTaker(run_seed, recorder)
    takeover.activate(closer.taker)


def _watch_frameworks(asked: settings.Settings, recorder: Recorder, closer: closing.Closer) -> None:
    watcher = ImportWatcher()
    preparations: dict[str, Prepare] = {
        "random": python_random.prepare,
        "numpy.random": numpy_random.prepare,
        "torch": functools.partial(_prepare_torch, closer),
        "tensorflow": tensor_flow.prepare,
        "jax": jax_keys.prepare,
    }
    for name, prepare in preparations.items():
        safely = trouble.guarded(asked.folder, f"preparing {name}", prepare)
        watcher.watch(name, functools.partial(_prepare_safely, safely, asked, recorder))


def _prepare_safely(prepare: Prepare, asked: settings.Settings, recorder: Recorder, module: ModuleType) -> None:
    if not asked.takes_seeds:
        prepare(module, asked, recorder)
        return
    from . import takeover

    with takeover.suspended():  # the level's own seeds are not the training's
        prepare(module, asked, recorder)


def _prepare_torch(closer: closing.Closer, torch: ModuleType, settings: settings.Settings, recorder: Recorder) -> None:
    closer.torch_watch = pytorch.prepare(torch, settings, recorder)
