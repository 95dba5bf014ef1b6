"""The training command: the words it takes, and the names under which it leaves counts."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from isorun.errors import UsageError
from isorun.zoo.studies.ase20.training.recipes import FACTORS, NETWORKS, RECIPES
from isorun.zoo.training import DEVICES, not_negative

__all__ = ["COUNTS", "DATA", "VARY", "Options", "parsed"]

DATA: Final = {"mnist": 1, "fashion-mnist": 1, "digits": 1, "cifar10": 3, "cifar100": 3}
"""Data sets, and how many channels their images have."""

COUNTS: Final = ("train_images", "validation_images", "test_images")
"""The results under which a run records how many images there were for what."""


VARY: Final = ("all", *FACTORS, "none")


_LAYOUTS: Final = ("auto", "channels-first", "channels-last")


@dataclass(frozen=True, slots=True)
class Options:
    """What the command asks for. Numbers of images: 0 for all. epochs, batch: 0 for the recipe's own."""

    network: str
    data: str
    seed: int
    epochs: int = 0
    batch: int = 0
    train_images: int = 0
    test_images: int = 0
    device: str = "auto"
    vary: str = "all"
    base_seed: int = 0
    made_data: bool = False
    graph: bool = True
    layout: str = "auto"
    autotune: bool = False


def parsed(words: Sequence[str] | None = None) -> Options:
    """The options from the command line; words that do not fit together are a UsageError."""
    options = Options(**vars(_parser().parse_args(words)))
    needed, there = RECIPES[options.network].channels, DATA[options.data]
    if needed != there:
        fitting = ", ".join(name for name, channels in DATA.items() if channels == needed)
        raise UsageError(f"{options.network} cannot be trained on {options.data}", allowed=fitting)
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m isorun.zoo.studies.ase20.train",
        description="Train one network of the ASE 2020 study of variance in deep learning training.",
    )
    parser.add_argument("--network", required=True, choices=NETWORKS)
    parser.add_argument("--data", required=True, choices=tuple(DATA))
    parser.add_argument("--epochs", type=not_negative, default=0, help="0: as published; schedules are scaled along")
    parser.add_argument("--batch", type=not_negative, default=0, help="images a step; 0: the recipe's own")
    parser.add_argument(
        "--train-images", type=not_negative, default=0, help="so many, every class in its share; 0: all"
    )
    parser.add_argument("--test-images", type=not_negative, default=0, help="for validation and test, 3 to 1; 0: all")
    parser.add_argument("--made-data", action="store_true", help="small images made on the spot instead of real ones")
    _add_randomness(parser)
    _add_machine(parser)
    return parser


def _add_randomness(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=not_negative, required=True, help="of the factors that vary")
    parser.add_argument("--vary", choices=VARY, default="all", help="the factor that takes --seed (default: all)")
    parser.add_argument(
        "--base-seed", type=not_negative, default=0, help="of the factors that do not vary (default: 0)"
    )


def _add_machine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", choices=DEVICES, default="auto", help="auto: a GPU if there is one")
    parser.add_argument("--no-graph", dest="graph", action="store_false", help="run the step without a CUDA graph")
    parser.add_argument("--layout", choices=_LAYOUTS, default="auto", help="how images lie in memory; auto: the faster")
    parser.add_argument("--autotune", action="store_true", help="let cuDNN time its kernels and choose the fastest")
