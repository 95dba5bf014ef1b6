"""Images on the device they are trained on: all of them once, as bytes; batches become numbers when they are needed."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from isorun.zoo.data.classes.class_images import ClassImages

__all__ = ["Pictures", "normalisation"]

IMAGES_FOR_MOMENTS = 20_000


def normalisation(source: ClassImages) -> tuple[Any, Any]:
    """Mean and standard deviation of each channel, from at most 20,000 images spread over the training classes."""
    step = max(1, len(source.images) // IMAGES_FOR_MOMENTS)
    pixels = source.images[::step].reshape(-1, source.images.shape[3]).astype(np.float32)
    return pixels.mean(axis=0, dtype=np.float64), np.maximum(pixels.std(axis=0, dtype=np.float64), 1.0)


class Pictures:
    """The images of one split, normalised when they are taken."""

    def __init__(self, source: ClassImages, moments: tuple[Any, Any], device: Any) -> None:
        self._bytes = torch.from_numpy(np.ascontiguousarray(source.images)).to(device)
        mean, deviation = (torch.as_tensor(moment, dtype=torch.float32, device=device) for moment in moments)
        self._scale = 1 / deviation
        self._shift = mean / deviation

    def take(self, numbers: Any) -> Any:
        """The images of those numbers, of any shape: (…, channels, height, width), channels last in memory."""
        return (self._bytes[numbers] * self._scale - self._shift).movedim(-1, -3)
