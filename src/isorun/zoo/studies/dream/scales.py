"""How much of the paper's comparison each scale carries out: the only place with these numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from isorun.zoo.studies.dream.space import SPACE, Value

__all__ = ["ATTACHED_AFTER", "CLASSES", "COSTS", "EVERY_FAMILY", "PUBLISHED_TARGET", "SIZES", "Size"]

CLASSES: Final = {"digits": 10, "fashion-mnist": 10, "cifar100": 100}
EVERY_FAMILY: Final = ("residual", "separable", "inverted")
"""As the paper tells architectures apart: ResNet, Xception, EfficientNet."""
PUBLISHED_TARGET: Final = 0.7
"""Of Table 2."""
ATTACHED_AFTER: Final = 10
"""Trials that an engine had made before the search was repaired (Figure 7)."""


@dataclass(frozen=True, slots=True)
class Size:
    """What one data set gets. families: a search stays within one; each is searched from `seeds` initial models.

    controls, ablations: of these seeds, how many are also searched by the controls of Table 4 and Figure 10, and
    by what Figures 7 and 9 and the search without a prior need. target: the score whose time is told. shrink: images
    are averaged over so many pixels each way. largest: limits on what is searched, for networks that fit a CPU.
    """

    families: tuple[str, ...]
    seeds: int
    controls: int
    ablations: int
    trials: int
    epochs: int
    train_images: int
    judged_images: int
    target: float
    shrink: int = 1
    largest: Mapping[str, Value] = field(default_factory=dict)
    attached_after: int = ATTACHED_AFTER

    def choices(self, name: str) -> tuple[Value, ...]:
        """What a parameter may be at this size."""
        limit = self.largest.get(name)
        return tuple(value for value in SPACE[name] if limit is None or value <= limit)  # type: ignore[operator]


_SMALL: Final[Mapping[str, Value]] = {"depth": 2, "filters": 32, "kernel_size": 3}
_SMALLER: Final[Mapping[str, Value]] = {"depth": 2, "filters": 16, "kernel_size": 3}
_SMALLEST: Final[Mapping[str, Value]] = {"stages": 1, "depth": 1, "filters": 8, "kernel_size": 3}

SIZES: Final[Mapping[str, Mapping[str, Size]]] = {
    "smoke": {"digits": Size(("residual",), 2, 1, 1, 3, 1, 160, 80, 0.5, largest=_SMALLEST, attached_after=2)},
    "cpu": {
        "digits": Size(EVERY_FAMILY, 3, 3, 1, 25, 6, 800, 400, 0.9, largest=_SMALL),
        "fashion-mnist": Size(EVERY_FAMILY, 2, 1, 0, 25, 3, 600, 400, 0.7, shrink=2, largest=_SMALLER),
    },
    "gpu": {
        "cifar100": Size(EVERY_FAMILY, 2, 2, 1, 25, 8, 3000, 1000, 0.12),
        "fashion-mnist": Size(EVERY_FAMILY, 2, 1, 0, 25, 6, 4000, 2000, 0.85),
    },
    "paper": {"cifar100": Size(EVERY_FAMILY, 5, 5, 5, 25, 200, 0, 0, PUBLISHED_TARGET)},
}

COSTS: Final = {
    "smoke": "about a minute on 2 CPU cores",
    "cpu": "about an hour on 2 CPU cores with -j 2",
    "gpu": "about 25 minutes on one data-centre GPU (H200) with -j 16",
    "paper": "weeks on one data-centre GPU (the authors: months)",
}
