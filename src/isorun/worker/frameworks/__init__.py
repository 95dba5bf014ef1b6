"""The frameworks the worker knows, a file each; nothing outside this folder names one.

A file is loaded when one of its modules is imported, or when all are asked for: every child Python starts a worker,
and most of them import no framework.
"""

from __future__ import annotations

import functools
import importlib
import sys
from typing import TYPE_CHECKING, Iterator

if TYPE_CHECKING:
    from types import ModuleType

    from .base import Framework

# Watched module to the file that says what to do; the order is that of the list of frameworks in a record.
WATCHED = {
    "random": "python",
    "torch": "pytorch",
    "tensorflow": "tensor_flow",
    "keras": "tensor_flow",
    "jax": "jax",
    "jax.random": "jax",
    "numpy.random": "numpy",
}
_FILES = ("python", "pytorch", "tensor_flow", "jax", "numpy", "estimators")

# Top-level modules whose import is start-up, not training: those of the files here, and what is imported with them.
PACKAGES = frozenset(
    (
        *("torch", "torchvision", "torchaudio", "lightning", "pytorch_lightning", "transformers", "tensorflow"),
        *("keras", "jax", "jaxlib", "flax", "optax", "numpy", "scipy", "pandas", "matplotlib", "sklearn"),
        *("xgboost", "lightgbm", "catboost"),
    )
)


def of_module(watched: str) -> Framework:
    """The framework that a watched module belongs to."""
    return next(framework for framework in _in_file(WATCHED[watched]) if watched in framework.watched)


@functools.lru_cache(maxsize=None)
def every() -> tuple[Framework, ...]:
    """All frameworks."""
    return tuple(framework for file in _FILES for framework in _in_file(file))


def _in_file(file: str) -> tuple[Framework, ...]:
    found: tuple[Framework, ...] = importlib.import_module(f".{file}", __package__).FRAMEWORKS
    return found


def imported() -> Iterator[tuple[Framework, ModuleType]]:
    """The frameworks that this process has imported, with their modules."""
    for framework in every():
        module = sys.modules.get(framework.name)
        if module is not None:
            yield framework, module


@functools.lru_cache(maxsize=None)
def global_seed_calls() -> frozenset[str]:
    """Calls that seed a generator of the whole process. Functions of libraries on top make these, and are told so."""
    return frozenset(call for framework in every() for call in framework.global_seed_calls)


@functools.lru_cache(maxsize=None)
def safe_to_preload() -> frozenset[str]:
    """Top-level modules that a fork server may import."""
    return frozenset(package for framework in every() for package in framework.safe_to_preload)


def preload_with(package: str) -> tuple[str, ...]:
    """What a fork server imports along with a package, because trainings would import it at their first step."""
    return next((framework.preload for framework in every() if package in framework.packages), ())
