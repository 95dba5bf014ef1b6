"""The words of the training command, and what a training is told, beside its data."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Final

from isorun.zoo.data.answers import DATA, TRAINS
from isorun.zoo.training import DEVICES, positive

__all__ = ["PUBLISHED_SEED", "Options", "training_parser"]

PUBLISHED_SEED: Final = 1234


@dataclass(frozen=True, slots=True)
class Options:
    """The published values, but for batch_size and order: one pair at a time in the order of the file is slow.

    rate: of plain SGD for one pair; a batch takes `rate` times its size, which is what as many single steps would take
    together. patience: epochs without a development MAP better by `margin` after which the training stops.
    order: "shuffled" or "file". vary: "all", or "weights" to let the seed decide the initial weights alone, as in the
    code of the paper, where everything drawn later came from the seed 1234. dropout: "shared", drawn by numpy alike for
    every device, or "device", drawn by torch's generator of the device, which on a GPU is another one, as in the paper.
    """

    seed: int = PUBLISHED_SEED
    epochs: int = 25
    batch_size: int = 32
    order: str = "shuffled"
    vary: str = "all"
    dropout: str = "shared"
    rate: float = 0.001
    weight_decay: float = 1e-5
    patience: int = 5
    margin: float = 1e-3

    def seed_of(self, factor: str) -> int:
        """The seed that decides a factor: weights, order, dropout or words."""
        return self.seed if self.vary == "all" or factor == "weights" else PUBLISHED_SEED


def training_parser(description: str) -> argparse.ArgumentParser:
    """The words that the command understands."""
    defaults = Options()
    parser = argparse.ArgumentParser(prog="python -m isorun.zoo.studies.tacl18.train", description=description)
    add = parser.add_argument
    add("--data", choices=DATA, default="trecqa-raw")
    add("--train", choices=TRAINS, default="train", help="the training set of TrecQA; WikiQA has one")
    add("--made-data", action="store_true", help="small data made on the spot instead")
    add("--train-questions", type=positive, metavar="N", help="only the first N questions of the training set")
    add("--seed", type=int, default=PUBLISHED_SEED)
    add("--vary", choices=("all", "weights"), default="all", help="what the seed decides; the paper's code: weights")
    add("--epochs", type=positive, default=defaults.epochs, metavar="N", help="at most so many (default %(default)s)")
    add("--batch-size", type=positive, default=defaults.batch_size, metavar="N", help="the paper's code: 1")
    add("--order", choices=("shuffled", "file"), default="shuffled", help="of the pairs; the paper's code: file")
    add("--dropout", choices=("shared", "device"), default="shared", help="who draws it; the paper's code: the device")
    add("--device", choices=DEVICES, default="auto")
    add("--onednn", choices=("on", "off"), default="on", help="whether CPU convolutions go through oneDNN")
    add("--cudnn", choices=("on", "off"), default="on", help="whether GPU convolutions go through cuDNN")
    add(
        "--tf32",
        choices=("on", "off"),
        default="off",
        help="whether cuDNN may round to TF32, unknown to the paper's GPUs",
    )
    add("--threads", type=positive, metavar="N", help="recorded beside the number of threads that torch uses")
    return parser
