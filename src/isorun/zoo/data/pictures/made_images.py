"""Small images made on the spot, with the sizes and classes of a real data set and something to learn.

They stand in where a workload is only tried out (scale "smoke") and the real images are not at hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from isorun.errors import DataError, known_names
from isorun.zoo.data.pictures.cifar import CIFAR10_CLASSES
from isorun.zoo.data.pictures.digits import CLASSES as DIGITS
from isorun.zoo.data.pictures.image_set import Images
from isorun.zoo.data.pictures.mnist import CLASSES as IDX_CLASSES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["made_images"]

_SHAPES: Final = {
    "mnist": (28, 28, 1),
    "fashion-mnist": (28, 28, 1),
    "digits": (8, 8, 1),
    "cifar10": (32, 32, 3),
    "cifar100": (32, 32, 3),
}
_CLASSES: Final = {
    **IDX_CLASSES,
    "digits": DIGITS,
    "cifar10": CIFAR10_CLASSES,
    "cifar100": tuple(f"class {number}" for number in range(100)),
}
_COARSE: Final = 4
_NOISE: Final = 32.0


def made_images(name: str, *, train: int = 512, test: int = 128, seed: int = 0) -> Images:
    """Images of `name`'s size: each class has a coarse pattern of its own, seen through noise; the seed decides all."""
    import numpy as np  # noqa: PLC0415 - listing data sets needs no arrays

    if name not in _SHAPES:
        raise DataError(f"no images like {name!r} can be made", allowed=known_names(name, _SHAPES))
    if train < 1 or test < 1:
        raise DataError("images can only be made in positive numbers", found=f"train={train}, test={test}")
    generator = np.random.default_rng([seed, *name.encode()])
    patterns = _patterns(generator, len(_CLASSES[name]), _SHAPES[name])
    train_images, train_labels = _noisy(generator, patterns, train)
    test_images, test_labels = _noisy(generator, patterns, test)
    origin = f"made on the spot like {name}: {train:,} + {test:,} images, seed {seed} (not real data)"
    return Images(train_images, train_labels, test_images, test_labels, _CLASSES[name], origin)


def _patterns(generator: np.random.Generator, classes: int, shape: tuple[int, int, int]) -> NDArray[np.float64]:
    """A pattern of 4 x 4 patches for each class, at full size."""
    import numpy as np  # noqa: PLC0415 - listing data sets needs no arrays

    height, width, channels = shape
    coarse = generator.uniform(40.0, 215.0, (classes, _COARSE, _COARSE, channels))
    rows = np.arange(height) * _COARSE // height
    columns = np.arange(width) * _COARSE // width
    return coarse[:, rows][:, :, columns]


def _noisy(
    generator: np.random.Generator, patterns: NDArray[np.float64], count: int
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    import numpy as np  # noqa: PLC0415 - listing data sets needs no arrays

    labels = generator.permutation(np.arange(count, dtype=np.int64) % len(patterns))
    noisy = patterns[labels] + generator.normal(0.0, _NOISE, (count, *patterns.shape[1:]))
    return noisy.clip(0, 255).astype(np.uint8), labels
