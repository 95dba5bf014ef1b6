"""Images by class, and their three splits: what episodes are drawn from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from isorun.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ClassImages", "ClassSplits", "by_class", "resized_squares"]

IMAGES_AT_ONCE = 2048


@dataclass(frozen=True, slots=True)
class ClassImages:
    """Images sorted by class. images: uint8 (n, height, width, channels). labels: int64 (n), rising from 0.

    classes: the name of each label. origin: where the images came from, in words.
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
    classes: tuple[str, ...]
    origin: str

    def __post_init__(self) -> None:
        if self.images.ndim != 4 or len(self.images) != len(self.labels):
            found = f"images {self.images.shape}, labels {self.labels.shape}"
            raise InputError("images by class", found=found, allowed="(n, height, width, channels) and (n)")
        if np.any(np.diff(self.labels) < 0) or set(np.unique(self.labels)) != set(range(len(self.classes))):
            raise InputError(
                "images by class", found="labels in disorder", allowed="0, 1, … sorted, none without images"
            )

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many images each class has."""
        return np.bincount(self.labels, minlength=len(self.classes))

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where the images of each class begin."""
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.int64)

    def first(self, count: int) -> ClassImages:
        """The first `count` classes; all of them when there are no more or `count` is 0."""
        if count == 0 or count >= len(self.classes):
            return self
        until = int(self.starts[count])
        return ClassImages(self.images[:until], self.labels[:until], self.classes[:count], self.origin)

    def with_side(self, side: int) -> ClassImages:
        """The same images, `side` pixels wide and high; unchanged when `side` is 0 or already theirs."""
        if side == 0 or self.images.shape[1:3] == (side, side):
            return self
        return ClassImages(resized_squares(self.images, side), self.labels, self.classes, self.origin)


@dataclass(frozen=True, slots=True)
class ClassSplits:
    """Classes to learn from, to select by, and to test on; no class is in two of them."""

    train: ClassImages
    val: ClassImages
    test: ClassImages

    def __post_init__(self) -> None:
        names = [name for part in (self.train, self.val, self.test) for name in part.classes]
        if len(set(names)) < len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise InputError("class splits", found=f"{', '.join(twice[:5])} twice", allowed="each class in one split")

    def first(self, count: int) -> ClassSplits:
        """The first `count` classes of each split."""
        return ClassSplits(self.train.first(count), self.val.first(count), self.test.first(count))

    def with_side(self, side: int) -> ClassSplits:
        """All images `side` pixels wide and high."""
        return ClassSplits(self.train.with_side(side), self.val.with_side(side), self.test.with_side(side))


def by_class(groups: list[tuple[str, NDArray[np.uint8]]], origin: str) -> ClassImages:
    """The images of each named class, in the order given."""
    if not groups:
        raise InputError("images by class", found="no class", allowed="one class or more")
    images = np.concatenate([images for _, images in groups])
    labels = np.repeat(np.arange(len(groups)), [len(images) for _, images in groups])
    return ClassImages(images, labels.astype(np.int64), tuple(name for name, _ in groups), origin)


def resized_squares(images: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Square images (n, h, h, c) at another size: each new pixel is the mean of the area it covers."""
    weights = _area_weights(images.shape[1], side)
    resized = np.empty((len(images), side, side, images.shape[3]), dtype=np.uint8)
    for start in range(0, len(images), IMAGES_AT_ONCE):
        part = images[start : start + IMAGES_AT_ONCE].astype(np.float32).transpose(0, 3, 1, 2)
        small = np.matmul(np.matmul(weights, part), weights.T)
        resized[start : start + IMAGES_AT_ONCE] = np.rint(small).transpose(0, 2, 3, 1)
    return resized


def _area_weights(before: int, after: int) -> NDArray[np.float32]:
    """(after, before): the share of each old pixel in each new one; rows add up to 1."""
    edges = np.linspace(0, before, after + 1)
    left, right = edges[:-1, None], edges[1:, None]
    pixel = np.arange(before)[None, :]
    overlap: NDArray[Any] = np.clip(np.minimum(right, pixel + 1) - np.maximum(left, pixel), 0, None)
    return np.asarray(overlap / overlap.sum(axis=1, keepdims=True), dtype=np.float32)
