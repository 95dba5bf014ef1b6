"""The images of a training on its device, and the rule by which validation and test images are told apart.

The published test images are put in the order of their classes (as they come within a class). Every fourth of that
row is a test image, the other three are for validation: of ten thousand 2,500 and 7,500, every class in both parts.
A smaller number of images is taken from the same row at even distances. Nothing here is random.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from isorun.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isorun.zoo.data.pictures.image_set import Images

__all__ = ["COUNTS", "Material", "evenly_chosen", "made_material", "split_places"]

COUNTS: Final = ("train_images", "validation_images", "test_images")
"""The results under which a run records how many images there were for what."""

_TEST_EVERY: Final = 4


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """Images as uint8 (images, height, width, channels), labels as int64, all on the device.

    judged: validation images first, `validation` of them, then the test images.
    class_sizes: test images of each class, as plain numbers.
    """

    train_images: Any
    train_labels: Any
    judged_images: Any
    judged_labels: Any
    validation: int
    class_sizes: tuple[int, ...]
    origin: str

    @property
    def classes(self) -> int:
        """How many classes there are, also such as no test image shows."""
        return len(self.class_sizes)

    @property
    def test_labels(self) -> Any:
        """The labels of the test images."""
        return self.judged_labels[self.validation :]

    @property
    def counts(self) -> dict[str, int]:
        """How many images there are for what."""
        judged = len(self.judged_labels)
        return dict(zip(COUNTS, (len(self.train_labels), self.validation, judged - self.validation), strict=True))


def made_material(images: Images, device: str, train_images: int = 0, test_images: int = 0, side: int = 0) -> Material:
    """Put images on the device. Numbers: how many to take, 0 for all. side: small images are brought to this size."""
    import numpy as np  # noqa: PLC0415 - arrays only when there are images

    train = evenly_chosen(images.train_labels, train_images)
    asked = evenly_chosen(images.test_labels, test_images)
    validation, test = (asked[places] for places in split_places(images.test_labels[asked]))
    judged = np.concatenate([validation, test])
    return Material(
        train_images=_on_device(_sized(images.train_images[train], side), device),
        train_labels=_on_device(images.train_labels[train], device),
        judged_images=_on_device(_sized(images.test_images[judged], side), device),
        judged_labels=_on_device(images.test_labels[judged], device),
        validation=len(validation),
        class_sizes=tuple(np.bincount(images.test_labels[test], minlength=len(images.classes)).tolist()),
        origin=images.origin,
    )


def evenly_chosen(labels: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Places of `count` images, every class in its share; all places for 0 or more than there are."""
    import numpy as np  # noqa: PLC0415 - arrays only when there are images

    if count == 0 or count >= len(labels):
        return np.arange(len(labels))
    row = np.argsort(labels, kind="stable")
    chosen: NDArray[np.int64] = np.sort(row[np.arange(count) * len(labels) // count])
    return chosen


def split_places(labels: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Places of the validation images and of the test images."""
    import numpy as np  # noqa: PLC0415 - arrays only when there are images

    if len(labels) < _TEST_EVERY:
        found = f"{len(labels)} images"
        raise UsageError("too few test images to split", found=found, allowed=f"{_TEST_EVERY} or more")
    row = np.argsort(labels, kind="stable")
    is_test = np.arange(len(row)) % _TEST_EVERY == _TEST_EVERY - 1
    return np.sort(row[~is_test]), np.sort(row[is_test])


def _sized(images: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Every pixel repeated as often as it fits, and an even black border around it: 8 x 8 becomes 28 x 28 that way."""
    import numpy as np  # noqa: PLC0415 - arrays only when there are images

    height, width = images.shape[1:3]
    if side in (0, height) and side in (0, width):
        return images
    times = side // max(height, width)
    larger = images.repeat(times, axis=1).repeat(times, axis=2)
    borders = [((side - size) // 2, side - size - (side - size) // 2) for size in larger.shape[1:3]]
    return np.pad(larger, [(0, 0), *borders, (0, 0)])


def _on_device(array: NDArray[Any], device: str) -> Any:
    import torch  # noqa: PLC0415 - arrays only when there are images

    return torch.from_numpy(array.copy()).to(device)
