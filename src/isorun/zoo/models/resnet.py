"""Residual networks for 32x32 images: ResNet v1 as in Keras' CIFAR-10 example, and wide ones.

ResNet v1 has three stages of 16, 32 and 64 maps and is 6 n + 2 layers deep. Its convolutions have biases; where a stage
halves the image, the shortcut is a 1x1 convolution without normalisation. In wide residual networks (Zagoruyko and
Komodakis, 2016) normalisation comes first, and dropout is inside the blocks.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from isorun.zoo.models.initialisation import built_empty, he_normal, he_truncated_normal, reset_batch_norm

__all__ = [
    "GeneratorDropout",
    "ResNet",
    "WideResNet",
    "made_wide_resnet",
    "resnet14",
    "resnet38",
    "resnet56",
    "wide_resnet_28_10",
]

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


_FIRST_MAPS = 16


class _MaskedScale(torch.autograd.Function):  # type: ignore[misc]  # torch carries no types here
    """A mask and a factor applied in one pass, forwards and backwards; only the mask is kept, a byte a value."""

    @staticmethod
    def forward(context: Any, values: Any, mask: Any, factor: float) -> Any:
        context.save_for_backward(mask)
        context.factor = factor
        return torch.ops.aten.native_dropout_backward(values, mask, factor)

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        (mask,) = context.saved_tensors
        return torch.ops.aten.native_dropout_backward(gradient, mask, context.factor), None, None


class GeneratorDropout(nn.Module):  # type: ignore[misc]  # torch carries no types here
    """Dropout whose masks come from a generator of their own; torch's dropout only knows the global one.

    generator: on the device of the values; None is torch's global one.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.generator: Any = None

    def forward(self, values: Any) -> Any:
        """The values, in training with a share of them dropped and the others enlarged to make up for it."""
        if not self.training or self.rate == 0.0:
            return values
        keep = 1.0 - self.rate
        mask = torch.empty_like(values, dtype=torch.bool).bernoulli_(keep, generator=self.generator)
        return _MaskedScale.apply(values, mask, 1.0 / keep)


class _WideBlock(nn.Module):  # type: ignore[misc]  # torch carries no types here
    def __init__(self, maps_in: int, maps: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.first_norm = nn.BatchNorm2d(maps_in)
        self.first = nn.Conv2d(maps_in, maps, 3, stride=stride, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(maps)
        self.dropout = GeneratorDropout(dropout)
        self.second = nn.Conv2d(maps, maps, 3, padding=1, bias=False)
        self.shortcut = nn.Conv2d(maps_in, maps, 1, stride=stride, bias=False) if maps_in != maps else None

    def forward(self, images: Any) -> Any:
        active = functional.relu(self.first_norm(images), inplace=True)
        kept = images if self.shortcut is None else self.shortcut(active)
        inner = functional.relu(self.second_norm(self.first(active)), inplace=True)
        return self.second(self.dropout(inner)).add_(kept)


class WideResNet(nn.Module):  # type: ignore[misc]  # torch carries no types here
    """`depth` = 6 n + 4 layers in three stages of n blocks, each `width` times as wide as a ResNet's."""

    def __init__(self, depth: int, width: int, classes: int, dropout: float, channels: int = 3) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, _FIRST_MAPS, 3, padding=1, bias=False)
        self.blocks = nn.Sequential(*_wide_blocks((depth - 4) // 6, width, dropout))
        self.last_norm = nn.BatchNorm2d(4 * _FIRST_MAPS * width)
        self.dense = nn.Linear(4 * _FIRST_MAPS * width, classes)

    def forward(self, images: Any) -> Any:
        """The class scores of a batch."""
        images = self.blocks(self.first(images))
        return self.dense(functional.relu(self.last_norm(images), inplace=True).mean((2, 3)))


def wide_resnet_28_10(classes: int, generator: Any, dropout: float) -> WideResNet:
    """28 layers, ten times as wide: 36,536,884 parameters for a hundred classes."""
    return made_wide_resnet(28, 10, classes, generator, dropout)


def made_wide_resnet(depth: int, width: int, classes: int, generator: Any, dropout: float) -> WideResNet:
    """A wide residual network of any depth and width, with initial weights from the generator."""
    network: WideResNet = built_empty(lambda: WideResNet(depth, width, classes, dropout))
    for layer in network.modules():
        if isinstance(layer, nn.BatchNorm2d):
            reset_batch_norm(layer)
        elif isinstance(layer, (nn.Conv2d, nn.Linear)):
            he_normal(layer, generator)
    return network


def _wide_blocks(blocks: int, width: int, dropout: float) -> list[_WideBlock]:
    made = []
    maps_in = _FIRST_MAPS
    for stage in range(3):
        maps = _FIRST_MAPS * 2**stage * width
        for number in range(blocks):
            made.append(_WideBlock(maps_in, maps, 2 if stage > 0 and number == 0 else 1, dropout))
            maps_in = maps
    return made
