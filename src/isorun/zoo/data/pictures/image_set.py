"""Labelled images in memory, checked once so that no training has to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isorun.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Images", "checked_images"]


@dataclass(frozen=True, slots=True, eq=False)
class Images:
    """train_images, test_images: uint8 of shape (images, height, width, channels). labels: int64, places in `classes`.

    origin: in words where the images come from; a stand-in says that it is one.
    """

    train_images: NDArray[np.uint8]
    train_labels: NDArray[np.int64]
    test_images: NDArray[np.uint8]
    test_labels: NDArray[np.int64]
    classes: tuple[str, ...]
    origin: str

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels of an image."""
        height, width, channels = self.train_images.shape[1:]
        return height, width, channels


def checked_images(
    train: tuple[Any, Any], test: tuple[Any, Any], *, classes: tuple[str, ...], origin: str, where: str
) -> Images:
    """Images from (images, labels) of both parts, or an error that names the file or folder `where`."""
    train_images, train_labels = _checked_part("training", *train, len(classes), where)
    test_images, test_labels = _checked_part("test", *test, len(classes), where)
    if train_images.shape[1:] != test_images.shape[1:]:
        sizes = f"{train_images.shape[1:]} for training, {test_images.shape[1:]} for test"
        raise DataError(f"{where}: the images of both parts differ in size", found=sizes, hint=_again(where))
    return Images(train_images, train_labels, test_images, test_labels, classes, origin)


def _checked_part(part: str, images: Any, labels: Any, classes: int, where: str) -> tuple[Any, Any]:
    import numpy as np  # noqa: PLC0415 - listing data sets needs no arrays

    images = images[..., np.newaxis] if images.ndim == 3 else images
    if images.ndim != 4 or images.dtype != np.uint8 or 0 in images.shape:
        found = f"{images.dtype} of shape {images.shape}"
        allowed = "uint8 of shape (images, height, width[, channels]), at least one image"
        raise DataError(f"{where}: the {part} images cannot be used", found=found, allowed=allowed, hint=_again(where))
    if labels.shape != images.shape[:1] or labels.dtype.kind not in "iu":
        found = f"{labels.dtype} of shape {labels.shape} for {len(images):,} images"
        raise DataError(f"{where}: the {part} labels do not fit the images", found=found, hint=_again(where))
    labels = labels.astype(np.int64)
    if labels.min() < 0 or labels.max() >= classes:
        found = f"labels from {labels.min()} to {labels.max()}"
        allowed = f"0 to {classes - 1}"
        raise DataError(f"{where}: a {part} label names no class", found=found, allowed=allowed, hint=_again(where))
    return np.require(images, requirements=["C", "W"]), labels


def _again(where: str) -> str:
    return f"remove {where} and get it again (isorun data get)"
