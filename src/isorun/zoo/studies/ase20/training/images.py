"""The images of a training: on its device, told apart, moved, and normalised.

Which images are for validation and which for test, and which a smaller number takes, is said in `zoo/data/images.py`,
and not random. In augmentation every image of an epoch is shifted and perhaps mirrored, all drawn at once and carried
out in batches: a batch is cut out of the whole data with one lookup, where the shift and the mirroring are part of the
index. Bytes become normalised floats on the device, a batch at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from isorun.zoo.data.images import evenly_chosen, sized, split_places
from isorun.zoo.studies.ase20.training.options import COUNTS
from isorun.zoo.studies.ase20.training.recipes import Moves

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isorun.zoo.data.images import Images

__all__ = [
    "Material",
    "Preparation",
    "drawn_moves",
    "made_material",
    "made_preparation",
    "moved_images",
]


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
    train = evenly_chosen(images.train_labels, train_images)
    asked = evenly_chosen(images.test_labels, test_images)
    validation, test = (asked[places] for places in split_places(images.test_labels[asked]))
    judged = np.concatenate([validation, test])
    return Material(
        train_images=_on_device(sized(images.train_images[train], side), device),
        train_labels=_on_device(images.train_labels[train], device),
        judged_images=_on_device(sized(images.test_images[judged], side), device),
        judged_labels=_on_device(images.test_labels[judged], device),
        validation=len(validation),
        class_sizes=tuple(np.bincount(images.test_labels[test], minlength=len(images.classes)).tolist()),
        origin=images.origin,
    )


def _on_device(array: NDArray[Any], device: str) -> Any:
    return torch.from_numpy(array.copy()).to(device)


def drawn_moves(moves: Moves, images: int, side: int, generator: Any) -> Any:
    """For each image: rows down, columns to the right, and 1 where it is mirrored; float32 of shape (images, 3)."""
    most = moves.most * side
    drawn = torch.rand(images, 3, generator=generator)
    shifts = drawn[:, :2] * (2 * int(most) + 1) - int(most) if moves.whole_pixels else (drawn[:, :2] * 2 - 1) * most
    drawn[:, :2] = shifts.floor() if moves.whole_pixels else shifts
    drawn[:, 2] = drawn[:, 2].lt(0.5).to(drawn.dtype)
    return drawn


def moved_images(moves: Moves, images: Any, chosen: Any, drawn: Any) -> Any:
    """The chosen images after their moves, as floats of shape (batch, height, width, channels). images: uint8."""
    height, width, channels = images.shape[1:]
    whole = drawn[:, :2].floor()
    mirrored = drawn[:, 2:] > 0.5
    more = 0 if moves.whole_pixels else 1  # between two pixels one more is needed
    rows = _positions(moves, whole[:, :1], height, more, mirrored=None)
    columns = _positions(moves, whole[:, 1:], width, more, mirrored)
    index = (chosen[:, None, None] * height + rows[:, :, None]) * width + columns[:, None, :]
    cut = images.view(-1, channels)[index].float()
    return cut if moves.whole_pixels else _between_pixels(cut, drawn[:, :2] - whole, mirrored)


def _positions(moves: Moves, shift: Any, side: int, more: int, mirrored: Any) -> Any:
    """Where in the original each row or column comes from: (batch, side + more)."""
    places = torch.arange(side + more, device=shift.device)[None, :]
    if mirrored is not None:
        places = torch.where(mirrored, side + more - 1 - places, places)
    places = places + shift.long()
    if moves.edge == "nearest":
        return places.clamp(0, side - 1)
    return side - 1 - (side - 1 - places.abs()).abs()


def _between_pixels(cut: Any, fraction: Any, mirrored: Any) -> Any:
    """Linear interpolation along both axes; a mirrored image lies the other way round."""
    down = fraction[:, 0, None, None, None]
    right = torch.where(mirrored[:, 0], 1 - fraction[:, 1], fraction[:, 1])[:, None, None, None]
    rows = torch.lerp(cut[:, :-1], cut[:, 1:], down)
    return torch.lerp(rows[:, :, :-1], rows[:, :, 1:], right)


_MOST = 255.0
_AT_ONCE = 5000


@dataclass(frozen=True, slots=True, eq=False)
class Preparation:
    """How bytes become what the network sees: less `mean`, times `scale`, both on the device.

    The mean image is taken off after an image was moved; Keras does so before, which differs by the mean's slope alone.
    """

    mean: Any
    scale: Any
    moves: Moves | None
    channels_last: bool

    def training_batch(self, images: Any, chosen: Any, drawn: Any) -> Any:
        """The chosen images with their moves."""
        if self.moves is None:
            return self.as_they_are(images.index_select(0, chosen))
        return self._normalised(moved_images(self.moves, images, chosen, drawn))

    def as_they_are(self, images: Any) -> Any:
        """Images without moves: for evaluation."""
        return self._normalised(images.float())

    def _normalised(self, pixels: Any) -> Any:
        pixels = pixels.sub_(self.mean).mul_(self.scale)
        if self.channels_last:
            return pixels.permute(0, 3, 1, 2)
        if pixels.shape[3] == 1:
            return pixels.view(pixels.shape[0], 1, *pixels.shape[1:3])
        return pixels.permute(0, 3, 1, 2).contiguous()


def made_preparation(normalisation: str, train_images: Any, moves: Moves | None, *, channels_last: bool) -> Preparation:
    """The preparation for a recipe; means and deviations are those of the training images."""
    device = train_images.device
    mean, scale = torch.zeros(1, device=device), torch.full((1,), 1.0 / _MOST, device=device)
    if normalisation == "pixel-mean":
        mean = _mean(train_images, (0,))
    elif normalisation == "channels":
        mean = _mean(train_images, (0, 1, 2))
        scale = _spread(train_images, mean).reciprocal()
    return Preparation(mean.float(), scale.float(), moves, channels_last)


def _mean(images: Any, over: tuple[int, ...]) -> Any:
    """Exact: bytes are added as whole numbers."""
    count = len(images) if over == (0,) else images[..., 0].numel()
    return images.sum(over, dtype=torch.int64).double() / count


def _spread(images: Any, mean: Any) -> Any:
    squares = sum(part.long().square().sum((0, 1, 2)) for part in images.split(_AT_ONCE))
    variance = squares.double() / images[..., 0].numel() - mean.square()
    return variance.clamp_min(1.0).sqrt()
