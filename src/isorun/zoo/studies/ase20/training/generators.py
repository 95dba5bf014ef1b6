"""The four algorithmic factors of a training, each with a generator of its own.

Initial weights, the order of the images, dropout masks and augmentation never share random numbers, so one of them can
take another seed while the others stay as they were.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Final

from isorun.errors import UsageError, known_names

__all__ = ["FACTORS", "VARY", "FactorSeeds", "Generators", "factor_seeds", "made_generators"]

FACTORS: Final = ("weights", "order", "dropout", "augmentation")
VARY: Final = ("all", *FACTORS, "none")


@dataclass(frozen=True, slots=True)
class FactorSeeds:
    """A seed for each factor. Equal seeds of two trainings give equal factors."""

    weights: int
    order: int
    dropout: int
    augmentation: int


@dataclass(frozen=True, slots=True)
class Generators:
    """A torch generator for each factor. Dropout's is on the device where the masks are drawn, the others on the CPU.

    Drawn on the CPU, the order and the augmentation of a seed are the same whatever the device.
    """

    weights: Any
    order: Any
    dropout: Any
    augmentation: Any


def factor_seeds(seed: int, base_seed: int = 0, vary: str = "all") -> FactorSeeds:
    """Seeds of the factors: those that vary take theirs from `seed`, the others from `base_seed`.

    A factor's seed is a hash of the number and the factor's name: streams of two factors are unrelated although the
    numbers are equal.
    """
    if vary not in VARY:
        raise UsageError("no such factor to vary", found=vary, allowed=known_names(vary, VARY))
    chosen = {name: seed if vary in ("all", name) else base_seed for name in FACTORS}
    return FactorSeeds(**{name: _derived(number, name) for name, number in chosen.items()})


def made_generators(seeds: FactorSeeds, device: str) -> Generators:
    """Fresh generators from the seeds."""
    import torch  # noqa: PLC0415 - the names and seeds above serve without a framework

    def generator(seed: int, where: str) -> Any:
        return torch.Generator(device=where).manual_seed(seed)

    return Generators(
        weights=generator(seeds.weights, "cpu"),
        order=generator(seeds.order, "cpu"),
        dropout=generator(seeds.dropout, device),
        augmentation=generator(seeds.augmentation, "cpu"),
    )


def _derived(number: int, name: str) -> int:
    digest = hashlib.sha256(f"{number}/{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
