"""MNIST and Fashion-MNIST from their four idx files."""

from __future__ import annotations

from typing import Final

from isorun.errors import DataError
from isorun.zoo.data.pictures.idx import read_idx
from isorun.zoo.data.pictures.image_set import Images, checked_images
from isorun.zoo.data.presence import Form

__all__ = ["CLASSES", "load_idx_images"]

CLASSES: Final = {
    "mnist": tuple("0123456789"),
    "fashion-mnist": (
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ),
}
_SHAPES: Final = ((60000, 28, 28), (60000,), (10000, 28, 28), (10000,))


def load_idx_images(name: str, form: Form) -> Images:
    """The images of a form whose files are, in this order, training images and labels, test images and labels."""
    arrays = [read_idx(path, len(shape)) for path, shape in zip(form.files, _SHAPES, strict=True)]
    for path, array, shape in zip(form.files, arrays, _SHAPES, strict=True):
        if array.shape != shape:
            raise DataError(f"{path} does not hold {name}", found=f"shape {array.shape}", allowed=f"shape {shape}")
    return checked_images(
        (arrays[0], arrays[1]),
        (arrays[2], arrays[3]),
        classes=CLASSES[name],
        origin=f"{name}, whole: 60,000 + 10,000 images ({_STATED[form.kind]})",
        where=str(form.folder),
    )


_STATED: Final = {
    "original": "the published files",
    "prepared": "a converted copy of the published files",
    "system": "installed with the operating system",
}
