"""Conv-4: four blocks of 3x3 convolution, batch normalisation, ReLU and 2x2 max pooling (Vinyals et al. 2016)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from isorun.zoo.models.few_shot_learner import NamedDropout
from isorun.zoo.models.initialisation import reset_batch_norm

__all__ = ["Conv4"]

BLOCKS = 4


class Conv4(nn.Module):  # type: ignore[misc]  # torch carries no types here
    """Features of size width * (side // 16)²: 64 for Omniglot, 1,600 for miniImageNet."""

    def __init__(self, channels: int, width: int = 64, dropout: NamedDropout | None = None) -> None:
        super().__init__()
        self.dropout = dropout or NamedDropout(0.0)
        inputs = (channels, *[width] * (BLOCKS - 1))
        self.convolutions = nn.ModuleList(nn.Conv2d(before, width, 3, padding=1) for before in inputs)
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for _ in inputs)

    def forward(self, images: Any) -> Any:
        """Features (n, size) of images (n, channels, side, side)."""
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            # max pooling before ReLU gives the same values and has a quarter of them to cut off
            images = self.dropout(torch.relu(nn.functional.max_pool2d(norm(convolution(images)), 2)))
        return images.flatten(1)

    def initialise(self, generator: Any) -> None:
        """As torch does by default: uniform within ±1 / sqrt(fan in), for weights and biases."""
        with torch.no_grad():
            for convolution, norm in zip(self.convolutions, self.norms, strict=True):
                limit = 1 / math.sqrt(convolution.weight[0].numel())
                convolution.weight.uniform_(-limit, limit, generator=generator)
                convolution.bias.uniform_(-limit, limit, generator=generator)
                reset_batch_norm(norm)
