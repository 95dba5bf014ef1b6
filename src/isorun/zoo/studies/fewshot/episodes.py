"""Episodes: few-shot tasks, drawn many at once. An episode is a table of image numbers, classes by images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isorun.errors import UsageError
from isorun.zoo.data.classes.class_images import ClassImages

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["EpisodeShape", "draw_episodes", "require_room"]

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
