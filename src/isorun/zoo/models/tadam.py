"""TADAM (Oreshkin et al. 2018): a scaled metric, features conditioned on the task, and an auxiliary classifier.

Its backbone is ResNet-12: four blocks of three convolutions, open to conditioning.

The task is the mean of the class means. From it, the task encoding network derives a scale and a shift for every
convolution of the ResNet-12, through which all images of the episode then pass a second time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final

import torch
from torch import nn
from torch.nn import functional

from isorun.zoo.models.few_shot import FewShotLearner, NamedDropout, squared_distances
from isorun.zoo.models.initialisation import reset_batch_norm

__all__ = ["BLOCKS", "LAYERS_A_BLOCK", "ResNet12", "Tadam"]

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
        self.blocks = nn.ModuleList(_Block12(a, b) for a, b in zip(inputs, self.widths, strict=True))

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


class _Block12(nn.Module):  # type: ignore[misc]  # torch carries no types here
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


METRIC_SCALE: Final = 7.5
ENCODER_LAYERS: Final = 3
MULTIPLIER_PENALTY: Final = 0.01
GRADIENT_NORM: Final = 1.0
SMALLEST_SQUARE: Final = 1e-12


class Tadam(FewShotLearner):
    """Softmax over negative scaled Euclidean distances. classes: how many the auxiliary classifier tells apart."""

    embeds_alone = False

    def __init__(self, backbone: Any, classes: int, metric_scale: float = METRIC_SCALE) -> None:
        super().__init__(backbone)
        self.metric_scale = metric_scale
        size = backbone.widths[-1]
        widths = [width for width in backbone.widths for _ in range(LAYERS_A_BLOCK)]
        self.gammas = nn.ModuleList(_TaskEncoder(size, width) for width in widths)
        self.betas = nn.ModuleList(_TaskEncoder(size, width) for width in widths)
        self.classifier = nn.Linear(size, classes)

    def forward(self, images: Any, shots: int) -> Any:
        """Log-probabilities for images (tasks, ways, shots + queries, channels, height, width), labelled ones first."""
        support = images[:, :, :shots]
        plain = self.backbone(support.flatten(0, 2)).unflatten(0, support.shape[:3])
        task = plain.mean((1, 2))
        each = images.shape[1] * images.shape[2]
        modulation = [
            (gamma(task).repeat_interleave(each, 0), beta(task).repeat_interleave(each, 0))
            for gamma, beta in zip(self.gammas, self.betas, strict=True)
        ]
        features = self.backbone(images.flatten(0, 2), modulation).unflatten(0, images.shape[:3])
        return self.compare(features[:, :, :shots], features[:, :, shots:])

    def compare(self, support: Any, query: Any) -> Any:
        """Log-probabilities (tasks, ways * queries, ways)."""
        squares = squared_distances(query.flatten(1, 2), support.mean(2))
        return torch.log_softmax(-self.metric_scale * squares.clamp_min(SMALLEST_SQUARE).sqrt(), dim=-1)

    def classify(self, images: Any) -> Any:
        """The auxiliary task: scores (n, classes) of images (n, channels, height, width), without conditioning."""
        return self.classifier(self.backbone(images))

    def episode_parameters(self) -> list[Any]:
        """All but the classifier."""
        own = {id(parameter) for parameter in self.classifier.parameters()}
        return [parameter for parameter in self.parameters() if id(parameter) not in own]

    def auxiliary_parameters(self) -> list[Any]:
        """What the auxiliary task trains: the backbone and the classifier."""
        return [*self.backbone.parameters(), *self.classifier.parameters()]

    def clipped(self) -> Iterable[tuple[list[Any], float]]:
        """Every parameter by itself."""
        return [([parameter], GRADIENT_NORM) for parameter in self.episode_parameters()]

    def auxiliary_clipped(self) -> Iterable[tuple[list[Any], float]]:
        """Every parameter by itself."""
        return [([parameter], GRADIENT_NORM) for parameter in self.auxiliary_parameters()]

    def penalties(self) -> Iterable[tuple[list[Any], float]]:
        """The multipliers, so that a layer is conditioned only where that pays."""
        return [([encoder.multiplier for encoder in (*self.gammas, *self.betas)], MULTIPLIER_PENALTY)]

    def initialise(self, generator: Any) -> None:
        """Draw the initial weights; the multipliers start at zero, that is, without conditioning."""
        self.backbone.initialise(generator)
        for encoder in (*self.gammas, *self.betas):
            encoder.initialise(generator)
        _draw_dense(self.classifier, generator)


class _TaskEncoder(nn.Module):  # type: ignore[misc]  # torch carries no types here
    """Three dense layers, the later ones with shortcuts, and one multiplier for all that comes out."""

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(size if k == 0 else width, width) for k in range(ENCODER_LAYERS))
        self.multiplier = nn.Parameter(torch.zeros(()))

    def forward(self, task: Any) -> Any:
        hidden = self.layers[0](task)
        for layer in self.layers[1:]:
            before = functional.silu(hidden)
            hidden = before + layer(before)
        return self.multiplier * hidden

    def initialise(self, generator: Any) -> None:
        with torch.no_grad():
            for layer in self.layers:
                _draw_dense(layer, generator)
            self.multiplier.zero_()


def _draw_dense(layer: Any, generator: Any) -> None:
    with torch.no_grad():
        layer.weight.normal_(0.0, math.sqrt(2 * WEIGHT_FACTOR / layer.weight.shape[0]), generator=generator)
        layer.bias.zero_()
