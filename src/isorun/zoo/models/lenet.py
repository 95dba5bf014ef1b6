"""LeNet-1, LeNet-4 and LeNet-5 as Keras users build them: padded convolutions, ReLU, max pooling; no dropout."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from torch import nn
from torch.nn import functional

from isorun.zoo.models.initialisation import built_empty, glorot_uniform

__all__ = ["LeNet", "lenet1", "lenet4", "lenet5"]

_SIDE = 28
_KERNEL = 5


class LeNet(nn.Module):  # type: ignore[misc]  # torch carries no types here
    """5x5 convolutions, each halved by max pooling, then dense layers. Images are 28 pixels high and wide."""

    def __init__(self, convolutions: Sequence[int], dense: Sequence[int], classes: int, channels: int = 1) -> None:
        super().__init__()
        maps = itertools.pairwise((channels, *convolutions))
        self.convolutions = nn.ModuleList(nn.Conv2d(a, b, _KERNEL, padding=_KERNEL // 2) for a, b in maps)
        side = _SIDE // 2 ** len(convolutions)
        sizes = itertools.pairwise((convolutions[-1] * side * side, *dense, classes))
        self.dense = nn.ModuleList(nn.Linear(a, b) for a, b in sizes)

    def forward(self, images: Any) -> Any:
        """The class scores of a batch. ReLU comes after pooling: the same values from a quarter of the work."""
        for convolution in self.convolutions:
            images = functional.relu(functional.max_pool2d(convolution(images), 2), inplace=True)
        features = images.flatten(1)
        for layer in self.dense[:-1]:
            features = functional.relu(layer(features))
        return self.dense[-1](features)


def lenet1(classes: int, generator: Any) -> LeNet:
    """4 and 12 maps, one dense layer: 7,206 parameters for ten classes."""
    return _made((4, 12), (), classes, generator)


def lenet4(classes: int, generator: Any) -> LeNet:
    """6 and 16 maps, a dense layer of 84: 69,362 parameters for ten classes."""
    return _made((6, 16), (84,), classes, generator)


def lenet5(classes: int, generator: Any) -> LeNet:
    """6 and 16 maps, dense layers of 120 and 84: 107,786 parameters for ten classes."""
    return _made((6, 16), (120, 84), classes, generator)


def _made(convolutions: Sequence[int], dense: Sequence[int], classes: int, generator: Any) -> LeNet:
    network: LeNet = built_empty(lambda: LeNet(convolutions, dense, classes))
    for layer in (*network.convolutions, *network.dense):
        glorot_uniform(layer, generator)
    return network
