"""The images of a training: the data set that was asked for, or classes made on the spot with its shape."""

from __future__ import annotations

from typing import Final

from isorun.zoo.data.classes.cifar_few_shot import load_cifar_few_shot
from isorun.zoo.data.classes.class_images import ClassSplits
from isorun.zoo.data.classes.made_classes import made_class_splits
from isorun.zoo.data.classes.miniimagenet import load_miniimagenet
from isorun.zoo.data.classes.omniglot import load_omniglot
from isorun.zoo.studies.fewshot.training.options import Options

__all__ = ["SHAPES", "load_splits"]

SHAPES: Final = {"omniglot": (28, 1), "cifar-fs": (32, 3), "fc100": (32, 3), "miniimagenet": (84, 3)}


def load_splits(options: Options) -> ClassSplits:
    """The three splits, of the size and number of classes that were asked for."""
    if options.made_data:
        side, channels = SHAPES[options.data]
        return made_class_splits(side=options.image_size or side, channels=channels).first(options.classes_limit)
    return _real_splits(options.data).first(options.classes_limit).with_side(options.image_size)


def _real_splits(name: str) -> ClassSplits:
    if name == "omniglot":
        return load_omniglot()
    return load_miniimagenet() if name == "miniimagenet" else load_cifar_few_shot(name)
