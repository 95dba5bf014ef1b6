"""Train one of the six networks: `python -m isorun.zoo.studies.ase20.train --network lenet5 --data mnist --seed 1`.

Logs each epoch's training and validation loss, validation and test accuracy, and the test accuracy of every class; at
the end the test predictions, a digest of the weights, and how many images there were for what.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import isorun
from isorun.zoo.studies.ase20.training.options import Options, parsed
from isorun.zoo.training import exit_code, training_device

if TYPE_CHECKING:
    from isorun.zoo.data.images import Images
    from isorun.zoo.studies.ase20.training.images import Material
    from isorun.zoo.studies.ase20.training.loop import JudgedEpoch, Training

__all__ = ["main", "prepared", "train"]

_MADE_TEST_IMAGES = 128
_MADE_TRAIN_IMAGES = 512


def main(words: Sequence[str] | None = None) -> int:
    """Parse, train, exit code."""
    return exit_code(lambda: train(parsed(words)))


def train(options: Options) -> JudgedEpoch:
    """Train as asked, logging every epoch; the numbers after the last one."""
    network, material, training = prepared(options)
    say = _silent if "ISORUN_RUN_DIR" in os.environ else print
    say(f"{options.network} on {material.origin}")
    for epoch, found in enumerate(training.epochs(), start=1):
        isorun.log(
            epoch=epoch,
            train_loss=found.train_loss,
            val_loss=found.val_loss,
            val_accuracy=found.val_accuracy,
            test_accuracy=found.test_accuracy,
            per_class={"test_accuracy": found.class_accuracy},
        )
        say(f"epoch {epoch}: validation loss {found.val_loss:.4f}, test accuracy {found.test_accuracy:.4f}")
    isorun.result(
        test_accuracy=found.test_accuracy,
        **material.counts,
        per_class={"test_accuracy": found.class_accuracy},
        predictions=found.predictions,
        labels=material.test_labels,
        weights=network,
    )
    return found


def prepared(options: Options) -> tuple[Any, Material, Training]:
    """The network, the images on their device, and the training that is ready to run."""
    device = _device(options)
    from isorun.zoo.studies.ase20.training.images import made_material  # noqa: PLC0415 - numpy
    from isorun.zoo.studies.ase20.training.loop import Course, Training  # noqa: PLC0415 - torch
    from isorun.zoo.studies.ase20.training.networks import SIDES, factor_seeds, made_generators, made_network  # noqa: PLC0415 - torch  # noqa: PLC0415 - torch
    from isorun.zoo.studies.ase20.training.recipes import RECIPES  # noqa: PLC0415 - beside its users

    recipe = RECIPES[options.network]
    side = SIDES[options.network]
    material = made_material(_images(options), device, options.train_images, options.test_images, side)
    generators = made_generators(factor_seeds(options.seed, options.base_seed, options.vary), device)
    channels_last = options.layout == "channels-last"
    if options.layout == "auto":
        channels_last = device == "cpu" or recipe.gpu_channels_last
    network = made_network(options.network, material.classes, generators, device, channels_last=channels_last)
    epochs, batch = options.epochs or recipe.epochs, options.batch or recipe.batch
    course = Course(recipe, epochs, batch, channels_last, options.graph)
    return network, material, Training(course, network, material, generators)


def _device(options: Options) -> str:
    device: str = training_device(options.device, "training the networks of this paper").type
    import torch  # noqa: PLC0415 - there, as the device says

    if device == "cuda" and options.autotune and not torch.backends.cudnn.deterministic:
        torch.backends.cudnn.benchmark = True
    return device


def _images(options: Options) -> Images:
    from isorun.zoo.data.images import load_images  # noqa: PLC0415 - numpy
    from isorun.zoo.data.made import made_images  # noqa: PLC0415 - numpy

    if not options.made_data:
        return load_images(options.data)
    train, test = options.train_images or _MADE_TRAIN_IMAGES, options.test_images or _MADE_TEST_IMAGES
    return made_images(options.data, train=train, test=test)


def _silent(_line: str) -> None:
    """Inside isorun every number is logged, and printed ones would be read a second time."""


if __name__ == "__main__":
    sys.exit(main())
