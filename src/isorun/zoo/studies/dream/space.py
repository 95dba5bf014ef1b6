"""The space that searches look through: what engines offer by themselves, and what the paper adds to it.

Names are those that people use, so that actions learned here speak to the searches of others. A fault is a space in
which some values cannot be changed: the search is stuck until the space is expanded, or two values change together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from isorun.errors import UsageError, known_names

__all__ = ["ADDED", "DEFAULTS", "FAULTS", "ORIGINAL", "SPACE", "Fault", "Value", "checked"]

Value = str | int | float | bool

ORIGINAL: Final[Mapping[str, tuple[Value, ...]]] = MappingProxyType(
    {
        "block_type": ("plain", "residual", "separable", "inverted"),
        "stages": (1, 2, 3),
        "depth": (1, 2, 3),
        "filters": (8, 16, 32, 64),
        "kernel_size": (3, 5),
        "normalize": (True, False),
        "reduction": ("average", "largest", "flatten"),
        "dropout": (0.0, 0.25, 0.5),
        "augment": (False, True),
        "optimizer": ("sgd", "adam", "adamw", "nadam"),
        "learning_rate": (1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-5),
        "batch_size": (32, 128, 512),
    }
)
"""As AutoKeras and KerasTuner's own models offer it."""

ADDED: Final[Mapping[str, tuple[Value, ...]]] = MappingProxyType(
    {
        "activation": ("relu", "leaky_relu", "elu", "selu", "gelu", "tanh", "sigmoid"),
        "initializer": ("glorot_uniform", "he_uniform", "lecun_uniform", "tiny"),
        "standardize": (True, False),
        "momentum": (0.0, 0.5, 0.9, 0.99),
        "weight_decay": (0.0, 1e-4, 1e-3, 1e-2, 0.1),
        "end_learning_rate": (1.0, 0.1, 0.01, 0.0),
    }
)
"""The paper's new actions that a training from scratch has; end_learning_rate: as a share of the first one."""

SPACE: Final[Mapping[str, tuple[Value, ...]]] = MappingProxyType({**ORIGINAL, **ADDED})

DEFAULTS: Final[Mapping[str, Value]] = MappingProxyType(
    {
        "block_type": "plain",
        "stages": 2,
        "depth": 1,
        "filters": 16,
        "kernel_size": 3,
        "normalize": False,
        "reduction": "average",
        "dropout": 0.0,
        "augment": False,
        "optimizer": "adam",
        "learning_rate": 1e-3,
        "batch_size": 128,
        "activation": "relu",
        "initializer": "glorot_uniform",
        "standardize": True,
        "momentum": 0.0,
        "weight_decay": 0.0,
        "end_learning_rate": 1.0,
    }
)
"""What a parameter is where a search does not have it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Values that a search starts with, and cannot change before its space is expanded."""

    values: Mapping[str, Value]
    told: str


FAULTS: Final[Mapping[str, Fault]] = MappingProxyType(
    {
        "deep-sigmoid": Fault({"activation": "sigmoid", "stages": 3, "depth": 3}, "nine sigmoid layers"),
        "fast": Fault({"learning_rate": 1.0, "optimizer": "adam"}, "a learning rate of 1"),
        "tiny-weights": Fault({"initializer": "tiny", "optimizer": "sgd"}, "initial weights near zero"),
        "dead-relu": Fault({"activation": "relu", "learning_rate": 0.1, "optimizer": "adam"}, "units that died"),
        "raw-inputs": Fault({"standardize": False, "normalize": False}, "bytes as inputs"),
    }
)


def checked(config: Mapping[str, Value]) -> dict[str, Value]:
    """The configuration with what it leaves out; an error for names and values that the space does not have.

    Fractions may be anything between the smallest and the largest: engines draw them so.
    """
    for name, value in config.items():
        if name not in SPACE:
            raise UsageError(f"{name} is no parameter of these networks", allowed=known_names(name, SPACE))
        fractions = [one for one in SPACE[name] if isinstance(one, float)]
        if fractions and isinstance(value, int | float) and not isinstance(value, bool):
            allowed, fits = f"{min(fractions)} to {max(fractions)}", min(fractions) <= value <= max(fractions)
        else:
            allowed, fits = ", ".join(map(str, SPACE[name])), (type(value), value) in _typed(SPACE[name])
        if not fits:
            raise UsageError(f"{name} cannot be {value!r}", allowed=allowed)
    return {**DEFAULTS, **config}


def _typed(values: tuple[Value, ...]) -> set[tuple[type, Value]]:
    """True is no 1, and 3.0 no number of layers."""
    return {(type(value), value) for value in values}
