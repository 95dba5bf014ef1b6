"""CIFAR-10 and CIFAR-100 from their binary versions, in the archive or unpacked: records of labels and pixels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from isorun.errors import DataError
from isorun.zoo.data.archives import read_members
from isorun.zoo.data.pictures.image_set import Images, checked_images
from isorun.zoo.data.presence import Form

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["CIFAR10_CLASSES", "load_cifar10", "load_cifar100"]

CIFAR10_CLASSES: Final = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
_PIXELS: Final = 3 * 32 * 32
_TRAIN_10: Final = tuple(f"cifar-10-batches-bin/data_batch_{number}.bin" for number in range(1, 6))
_TEST_10: Final = "cifar-10-batches-bin/test_batch.bin"
_TRAIN_100: Final = "cifar-100-binary/train.bin"
_TEST_100: Final = "cifar-100-binary/test.bin"
_NAMES_100: Final = "cifar-100-binary/fine_label_names.txt"


def load_cifar10(form: Form) -> Images:
    """All of CIFAR-10; a record is one label and the pixels."""
    contents = _contents(form, (*_TRAIN_10, _TEST_10))
    return checked_images(
        _part(contents, _TRAIN_10, 10000, labels=1, form=form),
        _part(contents, (_TEST_10,), 10000, labels=1, form=form),
        classes=CIFAR10_CLASSES,
        origin=_origin("CIFAR-10"),
        where=str(form.files[0]),
    )


def load_cifar100(form: Form) -> Images:
    """All of CIFAR-100; a record is the superclass, the class, and the pixels."""
    contents = _contents(form, (_TRAIN_100, _TEST_100, _NAMES_100))
    return checked_images(
        _part(contents, (_TRAIN_100,), 50000, labels=2, form=form),
        _part(contents, (_TEST_100,), 10000, labels=2, form=form),
        classes=tuple(contents[_NAMES_100].decode("utf-8", "replace").split()),
        origin=_origin("CIFAR-100"),
        where=str(form.files[0]),
    )


def _contents(form: Form, names: Sequence[str]) -> Mapping[str, bytes]:
    if form.kind == "original":
        return read_members(form.files[0], names)
    return {name: (form.folder / name).read_bytes() for name in names}


def _part(
    contents: Mapping[str, bytes], names: Sequence[str], count: int, *, labels: int, form: Form
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Images (NHWC) and the last of their labels, from batches of `count` records each."""
    import numpy as np  # noqa: PLC0415 - listing data sets needs no arrays

    images = np.empty((len(names), count, 1024, 3), dtype=np.uint8)
    found = np.empty((len(names), count), dtype=np.uint8)
    for place, name in enumerate(names):
        records = _records(contents[name], count, labels + _PIXELS, _place(form, name))
        found[place] = records[:, labels - 1]
        for channel in range(3):
            images[place, :, :, channel] = records[:, labels + 1024 * channel : labels + 1024 * (channel + 1)]
    return images.reshape(-1, 32, 32, 3), found.reshape(-1)


def _records(content: bytes, count: int, width: int, place: Path) -> NDArray[np.uint8]:
    import numpy as np  # noqa: PLC0415 - listing data sets needs no arrays

    if len(content) != count * width:
        raise DataError(
            f"{place} is damaged",
            found=f"{len(content):,} bytes",
            allowed=f"{count * width:,} bytes ({count:,} records of {width:,})",
            hint="remove it and get it again (isorun data get)",
        )
    return np.frombuffer(content, dtype=np.uint8).reshape(count, width)


def _place(form: Form, name: str) -> Path:
    return form.files[0] if form.kind == "original" else form.folder / name


def _origin(title: str) -> str:
    return f"{title}, whole: 50,000 + 10,000 images (the author's binary version)"
