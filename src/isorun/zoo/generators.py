"""Named generators: each kind of randomness draws from its own, so that one can change and the others stay.

What a generator draws is decided by a seed and the generator's name. Each paper derives its generators in the way its
recorded results were made with: another way would be another draw, and those results could not be made again.
"""

from __future__ import annotations

import hashlib
import zlib
from typing import Any

import numpy as np

__all__ = ["array_generator", "derived_seed", "hashed_generator", "tensor_generator"]


def derived_seed(seed: int, name: str) -> int:
    """A seed of that name: streams of two names are unrelated although the numbers are equal (ase20)."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def hashed_generator(seed: int, name: str) -> np.random.Generator:
    """The generator of that name for numpy (tacl18, and answers that are made on the spot)."""
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, number])))


def array_generator(seed: int, name: str) -> np.random.Generator:
    """The generator of that name for numpy (fewshot)."""
    return np.random.Generator(np.random.PCG64(_sequence(seed, name)))


def tensor_generator(seed: int, name: str, device: Any = "cpu") -> Any:
    """The generator of that name for torch, on a device (fewshot)."""
    import torch  # noqa: PLC0415 - drawing episodes needs none

    state = int(_sequence(seed, name).generate_state(1, np.uint64)[0])
    return torch.Generator(device=device).manual_seed(state >> 1)


def _sequence(seed: int, name: str) -> np.random.SeedSequence:
    return np.random.SeedSequence(entropy=seed, spawn_key=(zlib.crc32(name.encode()),))
