"""The networks of the paper and one of ours, and how much each scale carries out: the only place with these numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from isorun.study.cells import Level
from isorun.zoo.machines import gpu_at_hand
from isorun.zoo.studies.ase20.training.recipes import FACTORS

__all__ = [
    "CLASSES",
    "COSTS",
    "FACTOR_SIZES",
    "KERAS_SCRIPT",
    "LENETS",
    "LIBRARIES",
    "LIBRARY_SIZES",
    "NESTED_NETWORK",
    "NESTED_SIZES",
    "NETWORKS",
    "OTHER_DATA",
    "PUBLISHED_EPOCHS",
    "PUBLISHED_RUNS",
    "SIZES",
    "Library",
    "Size",
    "TrainedNetwork",
]

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


PUBLISHED_RUNS: Final = 16
PUBLISHED_EPOCHS: Final = {
    "lenet1": 50,
    "lenet4": 50,
    "lenet5": 50,
    "resnet38": 200,
    "resnet56": 200,
    "wrn-28-10": 200,
}
OTHER_DATA: Final = ("fashion-mnist", "digits")
"""Further data for the LeNets, which the paper does not have."""

_EVERY_LEVEL: Final = tuple(Level)
_TWO_LEVELS: Final = (Level.DEFAULT, Level.FIXED_SEED)
_ONE_LEVEL: Final = (Level.FIXED_SEED,)


@dataclass(frozen=True, slots=True)
class Size:
    """What one network gets. runs: identical runs at each level, or seeds where factors are varied.

    train_images / test_images: so many at even distances in the order of classes, so that every class keeps its share;
    0 for all. Of the latter 3 of 4 are for validation.
    batch: images a step, 0 for the network's own number.
    seeds: how many different seeds have so many runs each.
    """

    runs: int
    epochs: int
    train_images: int = 0
    test_images: int = 0
    batch: int = 0
    levels: tuple[Level, ...] = _EVERY_LEVEL
    seeds: int = 1


def _lenets(size: Size) -> dict[str, Size]:
    return dict.fromkeys(("lenet1", "lenet4", "lenet5"), size)


SIZES: Final[Mapping[str, Mapping[str, Size]]] = {
    "smoke": {
        **_lenets(Size(2, 1, 512, 200, 16)),
        "resnet38": Size(2, 1, 20, 20, 10, _TWO_LEVELS),
        "resnet56": Size(2, 1, 20, 20, 10, _TWO_LEVELS),
        "wrn-28-10": Size(1, 1, 2, 4, 2, _ONE_LEVEL),
        "fashion-mnist": Size(1, 1, 512, 200, 16, _ONE_LEVEL),
        "digits": Size(1, 1, 512, 200, 16, _ONE_LEVEL),
    },
    "cpu": {
        **_lenets(Size(6, 4, 6_000, 4_000)),
        "resnet38": Size(5, 5, 800, 200, 16, _TWO_LEVELS),
        "resnet56": Size(5, 5, 800, 200, 16, _TWO_LEVELS),
        "wrn-28-10": Size(2, 1, 16, 40, 8, _ONE_LEVEL),
        "fashion-mnist": Size(4, 4, 6_000, 4_000, 0, _TWO_LEVELS),
        "digits": Size(6, 10),
    },
    "gpu": {
        **_lenets(Size(8, 10)),
        "resnet38": Size(8, 4, batch=128),
        "resnet56": Size(8, 4, batch=128),
        "wrn-28-10": Size(8, 2, 10_000),
        "fashion-mnist": Size(8, 5, levels=_TWO_LEVELS),
        "digits": Size(8, 10),
    },
    "paper": {
        **{name: Size(PUBLISHED_RUNS, epochs) for name, epochs in PUBLISHED_EPOCHS.items()},
        "fashion-mnist": Size(PUBLISHED_RUNS, 50),
        "digits": Size(PUBLISHED_RUNS, 50),
    },
}

FACTOR_SIZES: Final[Mapping[str, Mapping[str, Size]]] = {
    "smoke": {"lenet5": Size(2, 1, 512, 200, 16)},
    "cpu": {"lenet5": Size(8, 3, 6_000, 4_000), "resnet38": Size(4, 4, 800, 200, 16)},
    "gpu": {"lenet5": Size(8, 5), "resnet38": Size(8, 4, 10_000, batch=128), "wrn-28-10": Size(5, 2, 5_000)},
    "paper": {
        "lenet5": Size(PUBLISHED_RUNS, 50),
        "resnet38": Size(PUBLISHED_RUNS, 200),
        "wrn-28-10": Size(8, 20),
    },
}
"""Varying a factor at a time is ours: no scale is the published one. A network without dropout or augmentation has
fewer factors to vary; only WRN-28-10 has all four."""

_DETERMINISTIC: Final = (Level.DETERMINISTIC,)
NESTED_SIZES: Final[Mapping[str, tuple[Size, ...]]] = {
    "smoke": (Size(2, 1, 64, 40, 16, _ONE_LEVEL, seeds=2), Size(2, 1, 64, 40, 16, _DETERMINISTIC, seeds=2)),
    "cpu": (),
    "gpu": (
        Size(6, 24, 20_000, levels=_ONE_LEVEL, seeds=8),
        Size(2, 24, 20_000, levels=_DETERMINISTIC, seeds=8),
    ),
    "paper": (Size(6, 48, levels=_ONE_LEVEL, seeds=16), Size(2, 48, levels=_DETERMINISTIC, seeds=16)),
}
"""Repeats within seeds, and deterministic runs of the same seeds beside them. Ours: no scale is the published one. On a
CPU repeats of a seed are the same bits, so that there is nothing to tell apart."""


@dataclass(frozen=True, slots=True)
class Library:
    """A core library below Keras. name: as KERAS_BACKEND knows it. on_cpu, on_gpu: what is required of it."""

    name: str
    on_cpu: str
    on_gpu: str

    def environment(self, device: str) -> dict[str, Any]:
        """Packages of its own, the same Keras and NumPy in all."""
        required = self.on_gpu if gpu_at_hand(device) else self.on_cpu
        return {"packages": [required, *_BESIDE], "env": {"KERAS_BACKEND": self.name}}


_BESIDE: Final = ("keras==3.13.2", "numpy==2.2.6")
LIBRARIES: Final = (
    Library("tensorflow", "tensorflow-cpu==2.21.0", "tensorflow[and-cuda]==2.21.0"),
    Library("jax", "jax[cpu]==0.6.2", "jax[cuda12]==0.6.2"),
    Library("torch", "torch==2.13.0", "torch==2.13.0"),
)
"""JAX is not the newest: what Keras predicts with JAX 0.7.2 on a CPU was seen to be wrong (docs/papers/ase20.md)."""
KERAS_SCRIPT: Final = "keras_train.py"
LIBRARY_SIZES: Final[Mapping[str, Mapping[str, Size]]] = {
    "smoke": {
        "lenet5": Size(2, 1, 256, 100, 32, _ONE_LEVEL),
        "resnet38": Size(1, 1, 20, 20, 10, _ONE_LEVEL),
    },
    "cpu": {
        "lenet5": Size(5, 3, 3_000, 2_000, 0, _TWO_LEVELS),
        "resnet38": Size(5, 2, 200, 200, 10, _TWO_LEVELS),
    },
    "gpu": {
        "lenet5": Size(8, 10, levels=_TWO_LEVELS),
        "resnet38": Size(8, 4, batch=128, levels=_TWO_LEVELS),
    },
    "paper": {
        "lenet5": Size(PUBLISHED_RUNS, 50, levels=_ONE_LEVEL),
        "resnet38": Size(PUBLISHED_RUNS, 200, levels=_ONE_LEVEL),
    },
}
"""Figure 4 is of level fixed-seed. On CPUs runs of one seed may be the same bits: level default is beside it."""

COSTS: Final = {
    "smoke": "about a minute on 1 CPU core",
    "cpu": "about 16 minutes on 2 CPU cores with -j 2",
    "gpu": "about 20 minutes on one data-centre GPU (H200) with -j 8",
    "paper": "days on one data-centre GPU (the authors: 4,838 GPU hours with 11 sets of libraries)",
}
