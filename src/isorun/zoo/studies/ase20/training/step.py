"""One training step, the same code whether it runs operation by operation or is captured in a CUDA graph.

The draws of a whole epoch lie on the device; a counter there says which batch is next. A step therefore needs nothing
from the host, and leaves its loss on the device, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from isorun.zoo.studies.ase20.training.material import Material
from isorun.zoo.studies.ase20.training.preparation import Preparation

__all__ = ["Batches", "Step", "made_batches"]


@dataclass(frozen=True, slots=True, eq=False)
class Batches:
    """Batches of one size: which images (batches, size), how they move (batches, size, 3), and the next one's number.

    The tensors stay where they are; an epoch's draws are copied into them.
    """

    order: Any
    moves: Any
    counter: Any

    @property
    def count(self) -> int:
        """How many batches there are."""
        return int(self.order.shape[0])

    @property
    def size(self) -> int:
        """Images in a batch."""
        return int(self.order.shape[1])

    def fill(self, order: Any, moves: Any) -> None:
        """Take an epoch's draws and begin with the first batch."""
        self.order.copy_(order.view(self.order.shape))
        if self.moves is not None:
            self.moves.copy_(moves.view(self.moves.shape))
        self.counter.zero_()


def made_batches(count: int, size: int, device: str, *, with_moves: bool) -> Batches:
    """Room for so many batches on the device."""
    order = torch.zeros(count, size, dtype=torch.int64, device=device)
    moves = torch.zeros(count, size, 3, device=device) if with_moves else None
    return Batches(order, moves, torch.zeros(1, dtype=torch.int64, device=device))


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """Look up a batch, move and normalise it, forward, loss, backward, update; `loss_sum` gains the batch's loss."""

    network: Any
    optimizer: Any
    material: Material
    preparation: Preparation
    loss_sum: Any

    def __call__(self, batches: Batches) -> None:
        """Train on the next batch."""
        chosen = batches.order.index_select(0, batches.counter).view(-1)
        moves = None if batches.moves is None else batches.moves.index_select(0, batches.counter).view(-1, 3)
        images = self.preparation.training_batch(self.material.train_images, chosen, moves)
        labels = self.material.train_labels.index_select(0, chosen)
        self.optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(self.network(images), labels)
        loss.backward()
        self.optimizer.step()
        self.loss_sum.add_(loss.detach() * batches.size)
        batches.counter.add_(1)
