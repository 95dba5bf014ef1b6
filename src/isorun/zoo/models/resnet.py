"""ResNet v1 for 32x32 images as in Keras' CIFAR-10 example: three stages of 16, 32 and 64 maps, 6 n + 2 layers deep.

Convolutions have biases. Where a stage halves the image, the shortcut is a 1x1 convolution without normalisation.
"""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.nn import functional

from isorun.zoo.models.initialisation import built_empty, he_truncated_normal, reset_batch_norm

__all__ = ["ResNet", "resnet14", "resnet38", "resnet56"]

_STAGES = (16, 32, 64)
_EPSILON = 1e-3  # Keras' defaults for batch normalisation
_MOMENTUM = 0.01


class _Block(nn.Module):  # type: ignore[misc]  # torch carries no types here
    def __init__(self, maps_in: int, maps: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(maps_in, maps, 3, stride=stride, padding=1)
        self.first_norm = _norm(maps)
        self.second = nn.Conv2d(maps, maps, 3, padding=1)
        self.second_norm = _norm(maps)
        self.shortcut = nn.Conv2d(maps_in, maps, 1, stride=stride) if stride != 1 else None

    def forward(self, images: Any) -> Any:
        kept = images if self.shortcut is None else self.shortcut(images)
        inner = functional.relu(self.first_norm(self.first(images)), inplace=True)
        return functional.relu(self.second_norm(self.second(inner)).add_(kept), inplace=True)


class ResNet(nn.Module):  # type: ignore[misc]  # torch carries no types here
    """A first convolution, three stages of so many blocks, the mean over the image, and one dense layer."""

    def __init__(self, blocks: int, classes: int, channels: int = 3) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, _STAGES[0], 3, padding=1)
        self.first_norm = _norm(_STAGES[0])
        self.blocks = nn.Sequential(*_blocks(blocks))
        self.dense = nn.Linear(_STAGES[-1], classes)

    def forward(self, images: Any) -> Any:
        """The class scores of a batch."""
        images = functional.relu(self.first_norm(self.first(images)), inplace=True)
        return self.dense(self.blocks(images).mean((2, 3)))


def resnet14(classes: int, generator: Any) -> ResNet:
    """Two blocks a stage, for grey images: 175,338 parameters for ten classes. Not in the paper."""
    return _made(2, classes, generator, channels=1)


def resnet38(classes: int, generator: Any) -> ResNet:
    """Six blocks a stage: 565,386 parameters for ten classes."""
    return _made(6, classes, generator)


def resnet56(classes: int, generator: Any) -> ResNet:
    """Nine blocks a stage: 857,706 parameters for ten classes."""
    return _made(9, classes, generator)


def _blocks(blocks: int) -> list[_Block]:
    made = []
    maps_in = _STAGES[0]
    for stage, maps in enumerate(_STAGES):
        for number in range(blocks):
            made.append(_Block(maps_in, maps, stride=2 if stage > 0 and number == 0 else 1))
            maps_in = maps
    return made


def _norm(maps: int) -> Any:
    return nn.BatchNorm2d(maps, eps=_EPSILON, momentum=_MOMENTUM)


def _made(blocks: int, classes: int, generator: Any, channels: int = 3) -> ResNet:
    network: ResNet = built_empty(lambda: ResNet(blocks, classes, channels))
    for layer in network.modules():
        if isinstance(layer, nn.BatchNorm2d):
            reset_batch_norm(layer)
        elif isinstance(layer, (nn.Conv2d, nn.Linear)):
            he_truncated_normal(layer, generator)
    return network
