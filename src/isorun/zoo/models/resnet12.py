"""ResNet-12 as TADAM has it (Oreshkin et al. 2018): four blocks of three convolutions, open to conditioning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from isorun.zoo.models.few_shot_learner import NamedDropout
from isorun.zoo.models.initialisation import reset_batch_norm

__all__ = ["BLOCKS", "LAYERS_A_BLOCK", "ResNet12"]

BLOCKS = 4
LAYERS_A_BLOCK = 3
POOLED_BLOCKS = 3
WEIGHT_FACTOR = 0.1


class ResNet12(nn.Module):  # type: ignore[misc]  # torch carries no types here
    """Features of size 8 * width, by global average pooling; the three first blocks end in 2x2 max pooling."""

    def __init__(self, channels: int, width: int = 64, dropout: NamedDropout | None = None) -> None:
        super().__init__()
        self.dropout = dropout or NamedDropout(0.0)
        self.widths = [width * 2**block for block in range(BLOCKS)]
        inputs = [channels, *self.widths[:-1]]
        self.blocks = nn.ModuleList(_Block(a, b) for a, b in zip(inputs, self.widths, strict=True))

    def forward(self, images: Any, modulation: Sequence[tuple[Any, Any]] | None = None) -> Any:
        """Features (n, size). modulation: gamma and beta (n, width) for each of the twelve convolutions, in order."""
        for place, block in enumerate(self.blocks):
            start = place * LAYERS_A_BLOCK
            images = block(images, modulation and modulation[start : start + LAYERS_A_BLOCK])
            if place < POOLED_BLOCKS:
                images = functional.max_pool2d(images, 2, ceil_mode=True)
        return self.dropout(images.mean((2, 3)))

    def initialise(self, generator: Any) -> None:
        """Normal with variance 0.2 / fan out, as TADAM's code has it."""
        for block in self.blocks:
            for layer in (block.shortcut, *block.layers):
                layer.initialise(generator)


class _NormalisedConvolution(nn.Module):  # type: ignore[misc]  # torch carries no types here
    """A convolution without bias, and batch normalisation."""

    def __init__(self, before: int, after: int, kernel: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(before, after, kernel, padding=kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(after, eps=1e-3, momentum=0.05)

    def forward(self, images: Any) -> Any:
        return self.norm(self.convolution(images))

    def initialise(self, generator: Any) -> None:
        with torch.no_grad():
            weight = self.convolution.weight
            fan_out = weight.shape[0] * math.prod(weight.shape[2:])
            weight.normal_(0.0, math.sqrt(2 * WEIGHT_FACTOR / fan_out), generator=generator)
            reset_batch_norm(self.norm)


class _Block(nn.Module):  # type: ignore[misc]  # torch carries no types here
    """Three 3x3 convolutions beside a 1x1 shortcut; conditioning comes after each batch normalisation."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.shortcut = _NormalisedConvolution(before, after, 1)
        inputs = [before, *[after] * (LAYERS_A_BLOCK - 1)]
        self.layers = nn.ModuleList(_NormalisedConvolution(size, after, 3) for size in inputs)

    def forward(self, images: Any, modulation: Sequence[tuple[Any, Any]] | None) -> Any:
        hidden = images
        for place, layer in enumerate(self.layers):
            hidden = layer(functional.silu(hidden) if place else hidden)
            if modulation is not None:
                gamma, beta = modulation[place]
                hidden = (1 + gamma[:, :, None, None]) * hidden + beta[:, :, None, None]
        return functional.silu(hidden + self.shortcut(images))
