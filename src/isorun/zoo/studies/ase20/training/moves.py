"""Augmentation: every image of an epoch is shifted and perhaps mirrored, all drawn at once and carried out in batches.

A batch is cut out of the whole data with one lookup, where the shift and the mirroring are part of the index.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Moves", "drawn_moves", "moved_images"]


@dataclass(frozen=True, slots=True)
class Moves:
    """Shifts up to `most` of the side in both directions, and mirroring of every second image on average.

    whole_pixels: shifts are whole pixels, otherwise any size, with values between pixels interpolated as Keras does.
    edge: what lies outside of the image: "nearest" (the border goes on) or "reflect" (mirrored at the border).
    """

    most: float
    whole_pixels: bool
    edge: str


def drawn_moves(moves: Moves, images: int, side: int, generator: Any) -> Any:
    """For each image: rows down, columns to the right, and 1 where it is mirrored; float32 of shape (images, 3)."""
    import torch  # noqa: PLC0415 - recipes are read without a framework

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
    import torch  # noqa: PLC0415 - recipes are read without a framework

    places = torch.arange(side + more, device=shift.device)[None, :]
    if mirrored is not None:
        places = torch.where(mirrored, side + more - 1 - places, places)
    places = places + shift.long()
    if moves.edge == "nearest":
        return places.clamp(0, side - 1)
    return side - 1 - (side - 1 - places.abs()).abs()


def _between_pixels(cut: Any, fraction: Any, mirrored: Any) -> Any:
    """Linear interpolation along both axes; a mirrored image lies the other way round."""
    import torch  # noqa: PLC0415 - recipes are read without a framework

    down = fraction[:, 0, None, None, None]
    right = torch.where(mirrored[:, 0], 1 - fraction[:, 1], fraction[:, 1])[:, None, None, None]
    rows = torch.lerp(cut[:, :-1], cut[:, 1:], down)
    return torch.lerp(rows[:, :, :-1], rows[:, :, 1:], right)
