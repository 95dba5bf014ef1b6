"""Train one network of the space: `python -m isorun.zoo.studies.dream.train --data digits --learning-rate 0.01`.

Every parameter of the space is an option, so that a study's config, or an engine's trial, is a command. Each epoch logs
loss, accuracy, val_loss and val_accuracy; the result is the best validation accuracy, which is what a search looks at,
and the seconds that watching took.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import isorun
from isorun.zoo.studies.dream.space import DEFAULTS, SPACE, Value
from isorun.zoo.training import DEVICES, exit_code, not_negative, positive, training_device

if TYPE_CHECKING:
    from isorun.zoo.data.images import Images

__all__ = ["DATA", "main"]

DATA: Final = ("digits", "mnist", "fashion-mnist", "cifar10", "cifar100")


def main(words: Sequence[str] | None = None) -> int:
    """Train, and return the exit code: 0, 1 for what cannot be trained, 2 for words that do not fit together."""
    return exit_code(lambda: _train(_parser().parse_args(words)))


def _train(options: argparse.Namespace) -> None:
    device = training_device(options.device, "training a network of a search")
    from isorun.zoo.studies.dream.training import SearchedTraining, made_material  # noqa: PLC0415 - torch

    material = made_material(_images(options), device, options.train_images, options.judged_images, options.shrink)
    config = {name: getattr(options, name) for name in SPACE}
    training = SearchedTraining(config, material, seed=options.seed, epochs=options.epochs)
    watcher = isorun.watch(training.network)
    best = 0.0
    for found in training.epochs():
        told = {"accuracy": found.accuracy, "val_loss": found.val_loss, "val_accuracy": found.val_accuracy}
        isorun.log(epoch=found.epoch, loss=found.loss, **told)
        best = max(best, found.val_accuracy)
    isorun.result(val_accuracy=best, watched_seconds=watcher.spent, weights=training.network)
    print(f"{material.origin}: best validation accuracy {best:.4f}")


def _images(options: argparse.Namespace) -> Images:
    from isorun.zoo.data.images import load_images  # noqa: PLC0415 - numpy
    from isorun.zoo.data.made import made_images  # noqa: PLC0415 - numpy

    return made_images(options.data, train=640) if options.made_data else load_images(options.data)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m isorun.zoo.studies.dream.train", description=__doc__)
    add = parser.add_argument
    add("--data", choices=DATA, default="digits")
    add("--made-data", action="store_true", help="small data made on the spot instead")
    add("--train-images", type=not_negative, default=0, metavar="N", help="0: four fifths of the training images")
    add("--judged-images", type=not_negative, default=0, metavar="N", help="0: a fifth of the training images")
    add("--shrink", type=positive, default=1, metavar="N", help="average images over N x N pixels")
    add("--epochs", type=positive, default=5, metavar="N")
    add("--seed", type=int, default=0)
    add("--device", choices=DEVICES, default="auto")
    for name, values in SPACE.items():
        default = DEFAULTS[name]
        choices = list(values) if isinstance(default, str) else None
        add(f"--{name.replace('_', '-')}", type=_read(default), choices=choices, default=default)
    return parser


def _read(default: Value) -> Callable[[str], Value]:
    return _switch if isinstance(default, bool) else type(default)


def _switch(text: str) -> bool:
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    raise argparse.ArgumentTypeError(f"found {text!r}, allowed are true and false")


if __name__ == "__main__":
    sys.exit(main())
