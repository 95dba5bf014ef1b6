"""Networks of a search: small convolutional networks of four families whose every choice is a parameter.

The families are those by which the paper tells architectures apart, small enough to train in seconds: plain layers,
residual blocks (ResNet), separable ones (Xception) and inverted bottlenecks (EfficientNet). What the paper adds to the
space, initialisers and activations among them, is a parameter like any other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import nn

from isorun.zoo.models.initialisation import reset_batch_norm

__all__ = ["ACTIVATIONS", "FAMILIES", "INITIALISERS", "Architecture", "made_searched"]

ACTIVATIONS: Final[Mapping[str, type[nn.Module]]] = {
    "relu": nn.ReLU,
    "leaky_relu": nn.LeakyReLU,
    "elu": nn.ELU,
    "selu": nn.SELU,
    "gelu": nn.GELU,
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
}
FAMILIES: Final = ("plain", "residual", "separable", "inverted")
INITIALISERS: Final[Mapping[str, float | None]] = {
    "he_uniform": 6.0,
    "lecun_uniform": 3.0,
    "glorot_uniform": None,
    "tiny": 3e-4,
}
"""Uniform within ±sqrt(number / fan in); Glorot's bound counts the fan out, too. tiny: a hundredth of LeCun's bound."""
_EXPANSION: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """One network of the space. depth: blocks in each of the stages. width: channels of the first stage."""

    family: str = "plain"
    stages: int = 2
    depth: int = 1
    width: int = 16
    kernel: int = 3
    normalise: bool = True
    activation: str = "relu"
    initialiser: str = "glorot_uniform"
    reduction: str = "average"
    dropout: float = 0.0


def made_searched(architecture: Architecture, channels: int, side: int, classes: int, generator: Any) -> Any:
    """The network for images of `channels` x `side` x `side`, its weights drawn from the generator."""
    stages = min(architecture.stages, int(math.log2(side)) - 1)
    layers = [_unit(architecture, channels, architecture.width)]
    width = architecture.width
    for stage in range(stages):
        wider = width if stage == 0 else 2 * width
        layers += [_block(architecture, width if block == 0 else wider, wider) for block in range(architecture.depth)]
        layers.append(nn.MaxPool2d(2))
        width = wider
    layers.append(_Head(architecture, width, side >> stages, classes))
    network = nn.Sequential(*layers)
    _draw(network, architecture.initialiser, generator)
    return network


def _unit(architecture: Architecture, inputs: int, outputs: int, *, active: bool = True, groups: int = 1) -> nn.Module:
    kernel = architecture.kernel
    normed = [nn.BatchNorm2d(outputs)] if architecture.normalise else []
    acting = [ACTIVATIONS[architecture.activation]()] if active else []
    convolution = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, groups=groups, bias=not normed)
    return nn.Sequential(convolution, *normed, *acting)


def _pointwise(architecture: Architecture, inputs: int, outputs: int, *, active: bool) -> nn.Module:
    normed = [nn.BatchNorm2d(outputs)] if architecture.normalise else []
    acting = [ACTIVATIONS[architecture.activation]()] if active else []
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, bias=not normed), *normed, *acting)


def _block(architecture: Architecture, inputs: int, outputs: int) -> nn.Module:
    if architecture.family == "plain":
        return _unit(architecture, inputs, outputs)
    if architecture.family == "separable":
        each = _unit(architecture, inputs, inputs, groups=inputs)
        return nn.Sequential(each, _pointwise(architecture, inputs, outputs, active=True))
    if architecture.family == "residual":
        first = _unit(architecture, inputs, outputs)
        return _Residual(nn.Sequential(first, _unit(architecture, outputs, outputs, active=False)), inputs, outputs)
    hidden = _EXPANSION * inputs
    path = nn.Sequential(
        _pointwise(architecture, inputs, hidden, active=True),
        _unit(architecture, hidden, hidden, groups=hidden),
        _pointwise(architecture, hidden, outputs, active=False),
    )
    return _Residual(path, inputs, outputs)


class _Residual(nn.Module):  # type: ignore[misc]  # torch carries no types here
    """What the path adds to its input, which is widened where the path widens."""

    def __init__(self, path: nn.Module, inputs: int, outputs: int) -> None:
        super().__init__()
        self.path = path
        self.short = nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1, bias=False)

    def forward(self, images: Any) -> Any:
        """The sum of both."""
        return self.short(images) + self.path(images)


class _Head(nn.Module):  # type: ignore[misc]  # torch carries no types here
    """From the last stage to the classes: average, largest value, or all values."""

    def __init__(self, architecture: Architecture, width: int, side: int, classes: int) -> None:
        super().__init__()
        self.reduction = architecture.reduction
        self.dropout = nn.Dropout(architecture.dropout)
        self.classes = nn.Linear(width * side * side if self.reduction == "flatten" else width, classes)

    def forward(self, features: Any) -> Any:
        """Scores of the classes."""
        if self.reduction == "average":
            reduced = features.mean((2, 3))
        elif self.reduction == "largest":
            reduced = features.amax((2, 3))
        else:
            reduced = features.flatten(1)
        return self.classes(self.dropout(reduced))


@torch.no_grad()  # type: ignore[untyped-decorator]  # torch carries no types here
def _draw(network: nn.Module, initialiser: str, generator: Any) -> None:
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            weight = layer.weight
            fan_out, fan_in = weight.shape[0], math.prod(weight.shape[1:])
            scale = INITIALISERS[initialiser]
            bound = math.sqrt(6.0 / (fan_in + fan_out) if scale is None else scale / fan_in)
            weight.uniform_(-bound, bound, generator=generator)
            if layer.bias is not None:
                layer.bias.zero_()
        elif isinstance(layer, nn.BatchNorm2d):
            reset_batch_norm(layer)
