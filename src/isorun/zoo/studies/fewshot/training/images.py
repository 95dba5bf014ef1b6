"""The images of a training on its device, and the episodes that are drawn from them.

An episode is a few-shot task: a table of image numbers, classes by images. All images lie on the device once, as bytes;
batches become numbers when they are needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from isorun.errors import UsageError
from isorun.zoo.data.class_images import ClassImages, ClassSplits
from isorun.zoo.data.few_shot_sets import load_cifar_few_shot, load_miniimagenet
from isorun.zoo.data.made import made_class_splits
from isorun.zoo.data.omniglot import load_omniglot
from isorun.zoo.studies.fewshot.training.options import Options

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SHAPES", "EpisodeShape", "Pictures", "draw_episodes", "load_splits", "normalisation", "require_room"]

KEYS_AT_ONCE = 4_000_000


@dataclass(frozen=True, slots=True)
class EpisodeShape:
    """ways: classes. shots: labelled images of each. queries: images of each that are to be classified."""

    ways: int
    shots: int
    queries: int

    @property
    def images(self) -> int:
        """Images of one class: labelled ones first, then queries."""
        return self.shots + self.queries


def require_room(source: ClassImages, shape: EpisodeShape) -> None:
    """An error when the classes are too few, or have too few images, for such an episode."""
    if shape.ways > len(source.classes):
        raise UsageError(f"episodes of {shape.ways} classes", found=f"{len(source.classes)} classes in {source.origin}")
    fewest = int(source.sizes.min())
    if shape.images > fewest:
        raise UsageError(
            f"episodes of {shape.shots} labelled and {shape.queries} query images a class",
            found=f"a class with {fewest} images in {source.origin}",
            allowed=f"{fewest} together",
        )


def draw_episodes(
    generator: np.random.Generator, source: ClassImages, shape: EpisodeShape, count: int
) -> NDArray[np.int64]:
    """Image numbers (count, ways, shots + queries): classes, and images of each, drawn without replacement.

    The same generator gives the same episodes however many are drawn in one go.
    """
    require_room(source, shape)
    sizes, starts = source.sizes, source.starts
    drawn = np.empty((count, shape.ways, shape.images), dtype=np.int64)
    keys_each = len(sizes) + shape.ways * int(sizes.max())
    step = max(1, KEYS_AT_ONCE // keys_each)
    for first in range(0, count, step):
        keys = generator.random((min(step, count - first), keys_each), dtype=np.float32)
        classes = np.argsort(keys[:, : len(sizes)], axis=1)[:, : shape.ways]
        image_keys = keys[:, len(sizes) :].reshape(len(keys), shape.ways, -1)
        absent = np.arange(image_keys.shape[2]) >= sizes[classes][:, :, None]
        chosen = np.argsort(np.where(absent, 2.0, image_keys), axis=2)[:, :, : shape.images]
        drawn[first : first + len(keys)] = starts[classes][:, :, None] + chosen
    return drawn


IMAGES_FOR_MOMENTS = 20_000


def normalisation(source: ClassImages) -> tuple[Any, Any]:
    """Mean and standard deviation of each channel, from at most 20,000 images spread over the training classes."""
    step = max(1, len(source.images) // IMAGES_FOR_MOMENTS)
    pixels = source.images[::step].reshape(-1, source.images.shape[3]).astype(np.float32)
    return pixels.mean(axis=0, dtype=np.float64), np.maximum(pixels.std(axis=0, dtype=np.float64), 1.0)


class Pictures:
    """The images of one split, normalised when they are taken."""

    def __init__(self, source: ClassImages, moments: tuple[Any, Any], device: Any) -> None:
        self._bytes = torch.from_numpy(np.ascontiguousarray(source.images)).to(device)
        mean, deviation = (torch.as_tensor(moment, dtype=torch.float32, device=device) for moment in moments)
        self._scale = 1 / deviation
        self._shift = mean / deviation

    def take(self, numbers: Any) -> Any:
        """The images of those numbers, of any shape: (…, channels, height, width), channels last in memory."""
        return (self._bytes[numbers] * self._scale - self._shift).movedim(-1, -3)


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
