"""The frameworks the worker knows, a file each; nothing outside this folder names one.

A file is loaded when one of its modules is imported, or when all are asked for: every child Python starts a worker,
and most of them import no framework.
"""

from __future__ import annotations

import functools
import importlib
import sys
from typing import TYPE_CHECKING, Any, Iterator

if TYPE_CHECKING:
    from types import ModuleType

    from .base import Framework

_ON_TORCH = ("torch", "torchvision", "torchaudio", "lightning", "pytorch_lightning", "transformers")

# A framework a line: its name, as it is told and imported; the file that says all else of it; the modules after whose
# import it is prepared; the top-level modules that belong to it, whose import is start-up and not training. So much has
# to be known before a file is loaded, and is said nowhere else. The order is that of the frameworks in a record.
_LINES = (
    ("random", "python", ("random",), ()),
    ("torch", "pytorch", ("torch",), _ON_TORCH),
    ("tensorflow", "tensor_flow", ("tensorflow",), ("tensorflow",)),
    ("keras", "tensor_flow", ("keras",), ("keras",)),
    ("jax", "jax", ("jax", "jax.random"), ("jax", "jaxlib", "flax")),
    ("optax", "jax", ("optax",), ("optax",)),
    ("equinox", "jax", ("equinox",), ("equinox",)),
    ("numpy", "numpy", ("numpy.random",), ("numpy", "scipy", "pandas", "matplotlib")),
    ("sklearn", "estimators", ("sklearn.base",), ("sklearn",)),
    ("xgboost", "estimators", ("xgboost",), ("xgboost",)),
    ("lightgbm", "estimators", ("lightgbm",), ("lightgbm",)),
    ("catboost", "estimators", ("catboost",), ("catboost",)),
    ("polars", "estimators", ("polars",), ("polars",)),
    ("numba", "estimators", ("numba",), ("numba",)),
)
WATCHED = {module: name for name, _, watched, _ in _LINES for module in watched}
PACKAGES = {package: name for name, _, _, packages in _LINES for package in packages}
# What models are kept in: whoever reads one goes on from it.
_MODELS = (
    *(".pt", ".pth", ".ckpt", ".bin", ".safetensors", ".h5", ".hdf5", ".keras", ".onnx", ".npz", ".npy"),
    *(".pkl", ".joblib", ".msgpack", ".ubj", ".model", ".cbm", ".pb", ".index"),
)
# What opens files in code of its own, where Python tells nothing: by module, class and method, and how it opens what
# its first argument names; empty where that is said by `mode`.
FILES_OPENED = {
    "h5py._hl.files": (("File", "__init__", ""),),
    **{
        module: ((name, "save_model", "w"), (name, "load_model", "r"))
        for module, name in (("xgboost.core", "Booster"), ("catboost.core", "CatBoost"))
    },
    "lightgbm.basic": (("Booster", "save_model", "w"),),
}
# What makes a process one of several that train together: by module, the function that joins them; the module says the
# rank afterwards (`get_rank`, `get_world_size`, `get_backend`).
RANKS_JOINED = {"torch.distributed.distributed_c10d": "init_process_group"}
# Frameworks whose distribution is called otherwise.
DISTRIBUTIONS = {"sklearn": "scikit-learn"}
# A part of the name of a library's file, and what people call the library; the first that fits.
LIBRARIES = (
    ("openblas", "OpenBLAS"),
    ("mkl", "MKL"),
    ("dnnl", "oneDNN"),
    ("cudnn", "cuDNN"),
    ("cublas", "cuBLAS"),
    ("cuda", "CUDA"),
    ("gomp", "GNU OpenMP"),
    ("iomp", "Intel OpenMP"),
    ("libomp", "LLVM OpenMP"),
)
_FILES = {name: file for name, file, _, _ in _LINES}


def names() -> tuple[str, ...]:
    """The frameworks that are installed as packages, as they are imported."""
    return tuple(name for name, _, _, packages in _LINES if packages)


def of_module(watched: str) -> Framework:
    """The framework that a watched module belongs to."""
    return _named(WATCHED[watched])


@functools.lru_cache(maxsize=None)
def every() -> tuple[Framework, ...]:
    """All frameworks."""
    return tuple(_named(name) for name in _FILES)


def _named(name: str) -> Framework:
    found: tuple[Framework, ...] = importlib.import_module(f".{_FILES[name]}", __package__).FRAMEWORKS
    return next(framework for framework in found if framework.name == name)


def as_array(value: Any) -> Any:
    """A NumPy array of an array of any framework; what is none as it is."""
    converted = (framework.array(value) for framework in every())
    return next((made for made in converted if made is not None), value)


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


def told_variables() -> frozenset[str]:
    """Variables that change what is computed, and that every level leaves to the training."""
    return frozenset(name for framework in every() for name in framework.told_variables)


@functools.lru_cache(maxsize=None)
def safe_to_preload() -> frozenset[str]:
    """Top-level modules that a fork server may import."""
    return frozenset(package for framework in every() for package in framework.safe_to_preload)


def preload_with(package: str) -> tuple[str, ...]:
    """What a fork server imports along with a package, because trainings would import it at their first step."""
    return _named(PACKAGES[package]).preload if package in PACKAGES else ()


def is_model_file(name: str) -> bool:
    """Whether a file holds a model, or a part of one, by its name."""
    return name.endswith(_MODELS) or ".data-0" in name
