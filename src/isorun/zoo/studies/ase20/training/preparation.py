"""Images as the networks take them: bytes become normalised floats on the device, a batch at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from isorun.zoo.studies.ase20.training.moves import Moves, moved_images

__all__ = ["Preparation", "made_preparation"]

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
