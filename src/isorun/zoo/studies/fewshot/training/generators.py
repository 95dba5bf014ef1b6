"""Named generators: each kind of randomness draws from its own, so that one can change and the others stay."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

__all__ = ["array_generator", "tensor_generator"]


def array_generator(seed: int, name: str) -> np.random.Generator:
    """The generator of that name for numpy."""
    return np.random.Generator(np.random.PCG64(_sequence(seed, name)))


def tensor_generator(seed: int, name: str, device: Any = "cpu") -> Any:
    """The generator of that name for torch, on a device."""
    import torch  # noqa: PLC0415 - drawing episodes needs none

    state = int(_sequence(seed, name).generate_state(1, np.uint64)[0])
    return torch.Generator(device=device).manual_seed(state >> 1)


def _sequence(seed: int, name: str) -> np.random.SeedSequence:
    return np.random.SeedSequence(entropy=seed, spawn_key=(zlib.crc32(name.encode()),))
