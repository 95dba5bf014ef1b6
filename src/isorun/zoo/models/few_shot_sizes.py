"""How many parameters the few-shot learners have, counted without building them, so that a listing needs no torch."""

from __future__ import annotations

__all__ = ["conv4_features", "parameters"]


def parameters(
    method: str, *, backbone: str = "", channels: int = 3, side: int = 84, width: int = 64, classes: int = 64
) -> int:
    """Trainable parameters of a method. classes: those of TADAM's auxiliary classifier."""
    kind = backbone or ("resnet12" if method == "tadam" else "conv4")
    count = _resnet12(channels, width) if kind == "resnet12" else _conv4(channels, width)
    features = 8 * width if kind == "resnet12" else conv4_features(side, width)
    if method == "matching":
        count += _context(features)
    if method == "tadam":
        count += _task_encoders(width) + classes * (features + 1)
    return count


def conv4_features(side: int, width: int = 64) -> int:
    """The size of Conv-4's features: four times halved, rounded down."""
    return int(width * (side // 16) ** 2)


def _conv4(channels: int, width: int) -> int:
    convolutions = (9 * channels + 1) * width + 3 * (9 * width + 1) * width
    return convolutions + 4 * 2 * width


def _resnet12(channels: int, width: int) -> int:
    count, before = 0, channels
    for after in (width, 2 * width, 4 * width, 8 * width):
        count += 9 * before * after + 2 * 9 * after * after + before * after + 4 * 2 * after
        before = after
    return count


def _context(size: int) -> int:
    """A bidirectional LSTM over the labelled images, and one whose input is a query and what it read."""
    both_ways = 2 * 4 * size * (2 * size + 2)
    return both_ways + 4 * size * (3 * size + 2)


def _task_encoders(width: int) -> int:
    """Two networks of three dense layers and a multiplier for each of the twelve convolutions."""
    widths = [width * 2**block for block in range(4) for _ in range(3)]
    return sum(2 * ((8 * width + 1) * w + 2 * (w + 1) * w + 1) for w in widths)
