"""The networks by name, and a generator for each of the four algorithmic factors of their training.

Initial weights, the order of the images, dropout masks and augmentation never share random numbers, so one of them can
take another seed while the others stay as they were.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from isorun.errors import UsageError, known_names
from isorun.zoo.generators import derived_seed
from isorun.zoo.models.lenet import lenet1, lenet4, lenet5
from isorun.zoo.models.resnet import GeneratorDropout, resnet14, resnet38, resnet56, wide_resnet_28_10
from isorun.zoo.studies.ase20.training.options import VARY
from isorun.zoo.studies.ase20.training.recipes import FACTORS, RECIPES

__all__ = ["SIDES", "FactorSeeds", "Generators", "factor_seeds", "made_generators", "made_network"]


@dataclass(frozen=True, slots=True)
class FactorSeeds:
    """A seed for each factor. Equal seeds of two trainings give equal factors."""

    weights: int
    order: int
    dropout: int
    augmentation: int


@dataclass(frozen=True, slots=True)
class Generators:
    """A torch generator for each factor. Dropout's is on the device where the masks are drawn, the others on the CPU.

    Drawn on the CPU, the order and the augmentation of a seed are the same whatever the device.
    """

    weights: Any
    order: Any
    dropout: Any
    augmentation: Any


def factor_seeds(seed: int, base_seed: int = 0, vary: str = "all") -> FactorSeeds:
    """Seeds of the factors: those that vary take theirs from `seed`, the others from `base_seed`.

    A factor's seed is a hash of the number and the factor's name: streams of two factors are unrelated although the
    numbers are equal.
    """
    if vary not in VARY:
        raise UsageError("no such factor to vary", found=vary, allowed=known_names(vary, VARY))
    chosen = {name: seed if vary in ("all", name) else base_seed for name in FACTORS}
    return FactorSeeds(**{name: derived_seed(number, name) for name, number in chosen.items()})


def made_generators(seeds: FactorSeeds, device: str) -> Generators:
    """Fresh generators from the seeds."""
    import torch  # noqa: PLC0415 - the names and seeds above serve without a framework

    def generator(seed: int, where: str) -> Any:
        return torch.Generator(device=where).manual_seed(seed)

    return Generators(
        weights=generator(seeds.weights, "cpu"),
        order=generator(seeds.order, "cpu"),
        dropout=generator(seeds.dropout, device),
        augmentation=generator(seeds.augmentation, "cpu"),
    )


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
