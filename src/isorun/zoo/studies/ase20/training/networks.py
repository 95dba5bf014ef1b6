"""The networks by name, built with their initial weights and their dropout generator."""

from __future__ import annotations

from typing import Any, Final

from isorun.zoo.models.lenet import lenet1, lenet4, lenet5
from isorun.zoo.models.resnet import resnet14, resnet38, resnet56
from isorun.zoo.models.wide_resnet import GeneratorDropout, wide_resnet_28_10
from isorun.zoo.studies.ase20.training.generators import Generators
from isorun.zoo.studies.ase20.training.recipes import RECIPES

__all__ = ["SIDES", "made_network", "parameter_count"]

_PLAIN: Final = {
    "lenet1": lenet1,
    "lenet4": lenet4,
    "lenet5": lenet5,
    "resnet14": resnet14,
    "resnet38": resnet38,
    "resnet56": resnet56,
}
SIDES: Final = {name: 28 if recipe.channels == 1 else 32 for name, recipe in RECIPES.items()}
"""Height and width of the images that a network takes."""


def made_network(name: str, classes: int, generators: Generators, device: str, *, channels_last: bool) -> Any:
    """The network on the device. Its weights are drawn on the CPU: they are the same wherever it trains."""
    import torch  # noqa: PLC0415 - the names serve without a framework

    network: Any
    if name in _PLAIN:
        network = _PLAIN[name](classes, generators.weights)
    else:
        network = wide_resnet_28_10(classes, generators.weights, RECIPES[name].dropout)
    for layer in network.modules():
        if isinstance(layer, GeneratorDropout):
            layer.generator = generators.dropout
    layout = torch.channels_last if channels_last else torch.contiguous_format
    return network.to(device=device, memory_format=layout)


def parameter_count(network: Any) -> int:
    """Trainable parameters."""
    return sum(parameter.numel() for parameter in network.parameters())
