"""TADAM (Oreshkin et al. 2018): a scaled metric, features conditioned on the task, and an auxiliary classifier.

The task is the mean of the class means. From it, the task encoding network derives a scale and a shift for every
convolution of the ResNet-12, through which all images of the episode then pass a second time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

import torch
from torch import nn
from torch.nn import functional

from isorun.zoo.models.few_shot_learner import FewShotLearner, squared_distances
from isorun.zoo.models.resnet12 import LAYERS_A_BLOCK, WEIGHT_FACTOR

__all__ = ["Tadam"]

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
