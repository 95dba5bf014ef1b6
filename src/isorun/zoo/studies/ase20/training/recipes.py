"""How each network is trained, in one table.

Optimizers, epochs and data are those of the paper's Table 1. What it leaves open is taken from the sources it names:
for the ResNets Keras' CIFAR-10 example, for WRN-28-10 its authors' settings. For the LeNets no source gives a learning
rate or batch size: ours are SGD at 0.1 in batches of 128. ResNet14 is not in the paper: small enough to be trained
until it stops improving many times over, with the ResNets' optimizer and, to get there soon, without augmentation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

__all__ = ["FACTORS", "NETWORKS", "RECIPES", "Moves", "Recipe", "learning_rate"]


FACTORS: Final = ("weights", "order", "dropout", "augmentation")


@dataclass(frozen=True, slots=True)
class Moves:
    """Shifts up to `most` of the side in both directions, and mirroring of every second image on average.

    whole_pixels: shifts are whole pixels, otherwise any size, with values between pixels interpolated as Keras does.
    edge: what lies outside of the image: "nearest" (the border goes on) or "reflect" (mirrored at the border).
    """

    most: float
    whole_pixels: bool
    edge: str


@dataclass(frozen=True, slots=True)
class Recipe:
    """One network's training as published.

    milestones: (epoch counted from 0, factor on the learning rate from there on), for `epochs` epochs in all.
    decayed: which parameters the weight decay is for, "all" or "kernels" (weights of convolutions).
    normalisation: "range" (to 0..1), "pixel-mean" (also less the mean image) or "channels" (mean 0 and sd 1 a channel).
    channels: colours of the images; moves: the augmentation, None without.
    gpu_channels_last: whether a GPU is faster with the channels of a pixel side by side; CPUs are for all six networks.
    judged_at_once: images in a batch of the evaluation.
    """

    optimizer: str
    learning_rate: float
    epochs: int
    batch: int
    channels: int
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0
    decayed: str = "all"
    milestones: tuple[tuple[int, float], ...] = ()
    normalisation: str = "range"
    moves: Moves | None = None
    dropout: float = 0.0
    gpu_channels_last: bool = False
    judged_at_once: int = 2500


_LENET: Final = Recipe(optimizer="sgd", learning_rate=0.1, epochs=50, batch=128, channels=1)

# Keras adds 1e-4 times the squared kernels to the loss: the gradient of that is a decay of 2e-4.
_RESNET: Final = Recipe(
    optimizer="adam",
    learning_rate=1e-3,
    epochs=200,
    batch=32,
    channels=3,
    weight_decay=2e-4,
    decayed="kernels",
    milestones=((81, 1e-1), (121, 1e-2), (161, 1e-3), (181, 0.5e-3)),
    normalisation="pixel-mean",
    moves=Moves(most=0.1, whole_pixels=False, edge="nearest"),
    gpu_channels_last=True,
    judged_at_once=1000,
)

_SMALL_RESNET: Final = Recipe(
    optimizer="adam",
    learning_rate=1e-3,
    epochs=24,
    batch=256,
    channels=1,
    weight_decay=2e-4,
    decayed="kernels",
    milestones=((12, 1e-1), (16, 1e-2)),
    normalisation="pixel-mean",
    gpu_channels_last=True,
    judged_at_once=2500,
)

_WIDE_RESNET: Final = Recipe(
    optimizer="sgd",
    learning_rate=0.1,
    epochs=200,
    batch=128,
    channels=3,
    momentum=0.9,
    nesterov=True,
    weight_decay=5e-4,
    milestones=((60, 0.2), (120, 0.04), (160, 0.008)),
    normalisation="channels",
    moves=Moves(most=0.125, whole_pixels=True, edge="reflect"),
    dropout=0.3,
    gpu_channels_last=True,
    judged_at_once=500,
)

RECIPES: Final[Mapping[str, Recipe]] = MappingProxyType(
    {
        "lenet1": _LENET,
        "lenet4": _LENET,
        "lenet5": _LENET,
        "resnet14": _SMALL_RESNET,
        "resnet38": _RESNET,
        "resnet56": _RESNET,
        "wrn-28-10": _WIDE_RESNET,
    }
)
NETWORKS: Final = tuple(RECIPES)


def learning_rate(recipe: Recipe, epoch: int, epochs: int) -> float:
    """The rate in an epoch (from 0) of so many: the milestones lie at the same shares of a shorter training."""
    passed = [factor for milestone, factor in recipe.milestones if epoch * recipe.epochs >= milestone * epochs]
    return recipe.learning_rate * (passed[-1] if passed else 1.0)
