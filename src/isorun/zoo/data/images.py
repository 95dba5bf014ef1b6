"""Labelled images by name, from whichever form of the data set is at hand, checked once so that no training has to.

The file of scikit-learn's digits knows no split. Here every fifth image, in file order, is a test image: 1,438 + 359.
Its 17 grey steps (0 to 16) are spread over 0 to 255, so that a training treats them like any other image.

For a training, published test images are put in the order of their classes (as they come within a class). Every fourth
of that row is a test image, the other three are for validation: of ten thousand 2,500 and 7,500, every class in both
parts. A smaller number of images is taken from the same row at even distances. Nothing of that is random.
"""

from __future__ import annotations

import gzip
import hashlib
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from isorun.errors import DataError, UsageError, known_names
from isorun.zoo.data.catalogue import dataset
from isorun.zoo.data.files import read_members, read_npz
from isorun.zoo.data.presence import Form, form_of, require

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "CIFAR10_CLASSES",
    "DIGITS_CLASSES",
    "IDX_CLASSES",
    "Images",
    "checked_images",
    "evenly_chosen",
    "load_cifar10",
    "load_cifar100",
    "load_digits",
    "load_idx_images",
    "load_images",
    "load_stand_in",
    "read_idx",
    "sized",
    "split_places",
]


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


_UNSIGNED_BYTES = 0x08


def read_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """The array of unsigned bytes in an idx file with so many dimensions."""
    import numpy as np  # noqa: PLC0415 - listing data sets needs no arrays

    content = _content(path)
    start = 4 + 4 * dimensions
    magic = content[:4].hex()
    expected = f"0000{_UNSIGNED_BYTES:02x}{dimensions:02x}"
    if len(content) < start or magic != expected:
        raise _damaged(
            path, f"magic number {magic or 'missing'}", f"{expected} (unsigned bytes, {dimensions} dimensions)"
        )
    shape = struct.unpack(f">{dimensions}I", content[4:start])
    values = np.frombuffer(content, dtype=np.uint8, offset=start)
    if values.size != int(np.prod(shape, dtype=np.int64)):
        raise _damaged(path, f"{values.size:,} values", f"{' x '.join(map(str, shape))} as its head says")
    return values.reshape(shape)


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise _damaged(path, f"{error}", "a whole gzip file") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read", found=error.strerror or str(error)) from None


def _damaged(path: Path, found: str, allowed: str) -> DataError:
    hint = f"remove {path} and get it again: isorun data get {path.parent.name}"
    return DataError(f"{path} is damaged", found=found, allowed=allowed, hint=hint)


IDX_CLASSES: Final = {
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
        classes=IDX_CLASSES[name],
        origin=f"{name}, whole: 60,000 + 10,000 images ({_STATED[form.kind]})",
        where=str(form.folder),
    )


_STATED: Final = {
    "original": "the published files",
    "prepared": "a converted copy of the published files",
    "system": "installed with the operating system",
}


DIGITS_CLASSES: Final = tuple("0123456789")
_SHAPE: Final = (1797, 65)


def load_digits(form: Form) -> Images:
    """The digits from digits.csv.gz: 64 pixels and the label in each row."""
    import numpy as np  # noqa: PLC0415 - listing data sets needs no arrays

    path = form.files[0]
    try:
        with gzip.open(path, "rt", encoding="ascii") as file:
            table = np.loadtxt(file, delimiter=",", dtype=np.int64, converters=_whole)
    except (ValueError, EOFError, OSError, zlib.error) as error:
        raise DataError(f"{path} is damaged", found=str(error), hint="isorun data get digits") from None
    if table.shape != _SHAPE or table.min() < 0 or table[:, :64].max() > 16:
        found = f"a table of shape {table.shape} with values from {table.min()} to {table.max()}"
        raise DataError(f"{path} does not hold the digits", found=found, allowed=f"shape {_SHAPE}, values 0 to 16")
    images = ((table[:, :64] * 255 + 8) // 16).astype(np.uint8).reshape(-1, 8, 8)
    for_test = np.arange(len(images)) % 5 == 4
    return checked_images(
        (images[~for_test], table[~for_test, 64]),
        (images[for_test], table[for_test, 64]),
        classes=DIGITS_CLASSES,
        origin="digits of scikit-learn, whole: 1,438 + 359 images (every fifth is a test image)",
        where=str(path),
    )


def _whole(text: str) -> int:
    return int(float(text))


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


_KEYS: Final = ("x_train", "y_train", "x_test", "y_test", "classes")


def load_stand_in(path: Path) -> Images:
    """The images of a prepared file; its origin names the file, its sizes and its sha256. Nothing is unpickled."""
    arrays = read_npz(path, _KEYS, hint=f"remove {path} or write it again")
    x_train, y_train, x_test, y_test, classes = (arrays[key] for key in _KEYS)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return checked_images(
        (x_train, y_train),
        (x_test, y_test),
        classes=tuple(str(name) for name in classes),
        origin=f"stand-in {path.name}, {len(x_train):,} + {len(x_test):,} images, sha256 {digest}",
        where=str(path),
    )


_READERS: Final = {
    "mnist": lambda form: load_idx_images("mnist", form),
    "fashion-mnist": lambda form: load_idx_images("fashion-mnist", form),
    "digits": load_digits,
    "cifar10": load_cifar10,
    "cifar100": load_cifar100,
}


def load_images(name: str) -> Images:
    """The images of mnist, fashion-mnist, digits, cifar10 or cifar100; `origin` says which form they come from."""
    if dataset(name).name not in _READERS:
        raise DataError(f"{name} is no set of labelled images", allowed=known_names(name, _READERS))
    form = form_of(name)
    if form is None:
        require(name)
        raise AssertionError("require must have raised")
    if form.files[0].suffix == ".npz":
        return load_stand_in(form.files[0])
    return _READERS[name](form)


_TEST_EVERY: Final = 4


def evenly_chosen(labels: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Places of `count` images, every class in its share; all places for 0 or more than there are."""
    import numpy as np  # noqa: PLC0415 - listing data sets needs no arrays

    if count == 0 or count >= len(labels):
        return np.arange(len(labels))
    row = np.argsort(labels, kind="stable")
    chosen: NDArray[np.int64] = np.sort(row[np.arange(count) * len(labels) // count])
    return chosen


def split_places(labels: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Places of the validation images and of the test images."""
    import numpy as np  # noqa: PLC0415 - listing data sets needs no arrays

    if len(labels) < _TEST_EVERY:
        found = f"{len(labels)} images"
        raise UsageError("too few test images to split", found=found, allowed=f"{_TEST_EVERY} or more")
    row = np.argsort(labels, kind="stable")
    is_test = np.arange(len(row)) % _TEST_EVERY == _TEST_EVERY - 1
    return np.sort(row[~is_test]), np.sort(row[is_test])


def sized(images: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Every pixel repeated as often as it fits, and an even black border around it: 8 x 8 becomes 28 x 28 that way."""
    import numpy as np  # noqa: PLC0415 - listing data sets needs no arrays

    height, width = images.shape[1:3]
    if side in (0, height) and side in (0, width):
        return images
    times = side // max(height, width)
    larger = images.repeat(times, axis=1).repeat(times, axis=2)
    borders = [((side - size) // 2, side - size - (side - size) // 2) for size in larger.shape[1:3]]
    return np.pad(larger, [(0, 0), *borders, (0, 0)])
