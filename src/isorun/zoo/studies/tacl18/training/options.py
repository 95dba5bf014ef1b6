"""The words of the training command, and what a training is told, beside its data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["PUBLISHED_SEED", "Options"]

PUBLISHED_SEED: Final = 1234


@dataclass(frozen=True, slots=True)
class Options:
    """The published values, but for batch_size and order: one pair at a time in the order of the file is slow.

    rate: of plain SGD for one pair; a batch takes `rate` times its size, which is what as many single steps would take
    together. patience: epochs without a development MAP better by `margin` after which the training stops.
    order: "shuffled" or "file". vary: "all", or "weights" to let the seed decide the initial weights alone, as in the
    code of the paper, where everything drawn later came from the seed 1234. dropout: "shared", drawn by numpy alike for
    every device, or "device", drawn by torch's generator of the device, which on a GPU is another one, as in the paper.
    """

    seed: int = PUBLISHED_SEED
    epochs: int = 25
    batch_size: int = 32
    order: str = "shuffled"
    vary: str = "all"
    dropout: str = "shared"
    rate: float = 0.001
    weight_decay: float = 1e-5
    patience: int = 5
    margin: float = 1e-3

    def seed_of(self, factor: str) -> int:
        """The seed that decides a factor: weights, order, dropout or words."""
        return self.seed if self.vary == "all" or factor == "weights" else PUBLISHED_SEED
