"""The six networks of the paper and one of ours, and which of the algorithmic factors each of them has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["CLASSES", "FACTORS", "LENETS", "NESTED_NETWORK", "NETWORKS", "TrainedNetwork"]

FACTORS: Final = ("weights", "order", "dropout", "augmentation")
CLASSES: Final = {"mnist": 10, "fashion-mnist": 10, "digits": 10, "cifar10": 10, "cifar100": 100}


@dataclass(frozen=True, slots=True)
class TrainedNetwork:
    """A network with its own data. option: its name on the command line. factors: what of it is drawn at random."""

    option: str
    name: str
    parameters: int
    data: str
    optimizer: str
    factors: tuple[str, ...]


_LENET: Final = ("weights", "order")
_RESNET: Final = ("weights", "order", "augmentation")

NETWORKS: Final = {
    network.option: network
    for network in (
        TrainedNetwork("lenet1", "LeNet1", 7_206, "mnist", "SGD", _LENET),
        TrainedNetwork("lenet4", "LeNet4", 69_362, "mnist", "SGD", _LENET),
        TrainedNetwork("lenet5", "LeNet5", 107_786, "mnist", "SGD", _LENET),
        TrainedNetwork("resnet38", "ResNet38", 565_386, "cifar10", "Adam", _RESNET),
        TrainedNetwork("resnet56", "ResNet56", 857_706, "cifar10", "Adam", _RESNET),
        TrainedNetwork("wrn-28-10", "WRN-28-10", 36_536_884, "cifar100", "SGD", FACTORS),
    )
}
LENETS: Final = ("lenet1", "lenet4", "lenet5")
NESTED_NETWORK: Final = TrainedNetwork("resnet14", "ResNet14", 175_338, "fashion-mnist", "Adam", ("weights", "order"))
"""Not in the paper: the same architecture, small enough to be trained to its end many times over."""
