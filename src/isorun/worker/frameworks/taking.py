"""Where seeds are taken over: each framework is wrapped in memory as soon as it is imported, and nothing on disk."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Callable

from .. import takeover
from ..hook import ImportWatcher
from . import jax_keys, keras_seeds, numpy_random, python_random, pytorch, tensor_flow

_FRAMEWORKS: dict[str, Callable[[ModuleType], None]] = {
    "random": python_random.take_seeds,
    "numpy.random": numpy_random.take_seeds,
    "torch": pytorch.take_seeds,
    "tensorflow": tensor_flow.take_seeds,
    "keras": keras_seeds.take_seeds,
    "jax.random": jax_keys.take_seeds,
}


@functools.lru_cache(maxsize=None)
def install() -> None:
    """Wrap what is loaded and watch for the rest, once a process; a forked child has its server's.

    Nothing is taken over before `takeover.activate`. A framework that cannot be wrapped is told then.
    """
    watcher = ImportWatcher()
    for name, take_seeds in _FRAMEWORKS.items():
        watcher.watch(name, functools.partial(_wrap, name, take_seeds))


def _wrap(name: str, take_seeds: Callable[[ModuleType], None], module: ModuleType) -> None:
    try:
        take_seeds(module)
    except Exception as error:  # a version of a framework that looks different must not stop the training
        takeover.report(f"taking over the seeds of {name}", error)
