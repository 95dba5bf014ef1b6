"""Classes made on the spot, for trainings where no data is at hand: learnable, and the same wherever they are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from isorun.zoo.data.classes.class_images import ClassImages, ClassSplits, by_class

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["made_class_splits", "made_classes"]

WAVES: Final = 4
SHIFT: Final = 0.06
NOISE: Final = 60.0


def made_class_splits(seed: int = 0, *, side: int = 28, channels: int = 1) -> ClassSplits:
    """40 classes to learn from, 12 to select by and 12 to test on, 20 images each."""
    return ClassSplits(
        *(
            made_classes(seed + part, names=tuple(f"{split}-{k}" for k in range(classes)), side=side, channels=channels)
            for part, (split, classes) in enumerate((("train", 40), ("val", 12), ("test", 12)))
        )
    )


def made_classes(
    seed: int, *, names: tuple[str, ...], each: int = 20, side: int = 28, channels: int = 1
) -> ClassImages:
    """Each class is a sum of slow waves of its own; each image moves it a little and adds noise."""
    generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, side, channels])))
    groups = [(name, _one_class(generator, each, side, channels)) for name in names]
    return by_class(groups, f"made on the spot (seed {seed}): {len(names)} classes, {each} images each")


def _one_class(generator: np.random.Generator, each: int, side: int, channels: int) -> NDArray[np.uint8]:
    frequency = generator.uniform(-2.5, 2.5, size=(2, WAVES, channels))
    phase = generator.uniform(0, 1, size=(WAVES, channels))
    shift = generator.normal(0, SHIFT, size=(2, each, 1, 1))
    down, right = np.meshgrid(np.linspace(0, 1, side), np.linspace(0, 1, side), indexing="ij")
    place = np.stack([down + shift[0], right + shift[1]])
    angle = np.einsum("aeij,awc->eijwc", place, frequency) + phase
    waves = np.sin(2 * np.pi * angle).sum(axis=3) * (100 / np.sqrt(WAVES))
    noisy = 128 + waves + generator.normal(0, NOISE, size=waves.shape)
    return np.asarray(np.clip(noisy, 0, 255), dtype=np.uint8)
