"""A generator for each random factor, drawn by numpy on the CPU.

Runs with the same seed therefore start, shuffle and drop alike on every device, thread count and CPU path, and differ
by their arithmetic alone. Frameworks draw dropout on the device instead; `DeviceDropout` does so too.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

__all__ = ["DeviceDropout", "SharedDropout", "dropout_kept", "generator"]


def generator(seed: int, factor: str) -> np.random.Generator:
    """The generator of a factor: what is drawn for one does not move the others."""
    name = int.from_bytes(hashlib.sha256(factor.encode()).digest()[:8], "little")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, name])))


def dropout_kept(draws: np.random.Generator, rows: int, columns: int) -> Any:
    """Dropout of one half as what to multiply with: rows x columns of 0 and 2 (uint8), a drawn bit each."""
    drawn = draws.integers(0, 256, (rows, -(-columns // 8)), dtype=np.uint8)
    return np.unpackbits(drawn, axis=1, count=columns) * np.uint8(2)


class SharedDropout:
    """What dropout keeps in each epoch, the same on every device."""

    def __init__(self, seed: int, device: Any) -> None:
        self._draws = generator(seed, "dropout")
        self._device = device

    def epoch(self, rows: int, columns: int) -> Any:
        """Rows x columns of 0 and 2 on the device."""
        import torch  # noqa: PLC0415 - the rest of this module needs none

        return torch.from_numpy(dropout_kept(self._draws, rows, columns)).to(self._device).float()


class DeviceDropout:
    """What dropout keeps in each epoch, drawn by torch's own generator of the device."""

    def __init__(self, seed: int, device: Any) -> None:
        import torch  # noqa: PLC0415 - the rest of this module needs none

        self._draws = torch.Generator(device)
        self._draws.manual_seed(int(generator(seed, "dropout").integers(0, 2**31)))
        self._device = device

    def epoch(self, rows: int, columns: int) -> Any:
        """Rows x columns of 0 and 2 on the device."""
        import torch  # noqa: PLC0415 - the rest of this module needs none

        return torch.randint(0, 2, (rows, columns), generator=self._draws, device=self._device).float() * 2
