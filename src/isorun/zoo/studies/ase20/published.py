"""The numbers Pham et al. published (ASE 2020, doi 10.1145/3324884.3416545), accuracies in points, times in seconds.

Table 1 stands in section 4, Table 2 in 5.1, Table 3 in 5.3; the example of ResNet38 and ResNet56 is in section 5.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from isorun.study.cells import Level

__all__ = [
    "DATA_SIZES",
    "EXAMPLE",
    "FINDINGS",
    "LEVENE_SIGNIFICANT",
    "TABLE_2",
    "TABLE_3",
    "WEAK_RUNS",
    "PublishedAccuracy",
    "PublishedExample",
    "PublishedSpread",
    "PublishedTime",
    "PublishedTimes",
]


@dataclass(frozen=True, slots=True)
class PublishedSpread:
    """Diff, SDev and its 90 % interval, in points; sd None stands for "< 0.1"."""

    difference: float
    sd: float | None
    sd_interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class PublishedAccuracy:
    """A row of Table 2."""

    overall: PublishedSpread
    per_class: PublishedSpread


@dataclass(frozen=True, slots=True)
class PublishedTime:
    """Time to the epoch that one selection picks: Diff in seconds, RelDiff and RelSDev in percent."""

    difference: float
    relative_difference: float
    relative_sd: float


@dataclass(frozen=True, slots=True)
class PublishedTimes:
    """A row of Table 3."""

    best_loss: PublishedTime
    best_accuracy: PublishedTime


@dataclass(frozen=True, slots=True)
class PublishedExample:
    """ResNet56 against ResNet38, 16 fixed-seed runs each: percent, points, and Cohen's d."""

    better_mean: float = 91.2
    worse_mean: float = 90.3
    difference: float = 0.9
    p_below: float = 0.01
    cohens_d: float = 1.7
    better_worst: float = 90.4
    worse_best: float = 91.4
    wrong_claim: float = 1.0


def _row(overall: tuple[float, ...], per_class: tuple[float, ...]) -> PublishedAccuracy:
    return PublishedAccuracy(_spread(*overall), _spread(*per_class))


def _spread(difference: float, sd: float | None = None, low: float = 0.0, high: float = 0.0) -> PublishedSpread:
    return PublishedSpread(difference, sd, None if sd is None else (low, high))


def _times(*numbers: float) -> PublishedTimes:
    return PublishedTimes(PublishedTime(*numbers[:3]), PublishedTime(*numbers[3:]))


DATA_SIZES: Final = {
    "mnist": (60_000, 7_500, 2_500),
    "cifar10": (50_000, 7_500, 2_500),
    "cifar100": (50_000, 7_500, 2_500),
}
"""Table 1: images for training, validation and test."""

TABLE_2: Final[Mapping[Level, Mapping[str, PublishedAccuracy]]] = {
    Level.DEFAULT: {
        "LeNet1": _row((10.8, 2.6, 2.0, 3.8), (99.6, 24.5, 19.0, 35.2)),
        "LeNet4": _row((10.6, 2.6, 2.0, 3.7), (100.0, 24.7, 19.1, 35.5)),
        "LeNet5": _row((90.4, 38.7, 30.0, 55.6), (100.0, 44.5, 34.4, 63.9)),
        "ResNet38": _row((1.9, 0.5, 0.4, 0.7), (11.7, 2.8, 2.2, 4.1)),
        "ResNet56": _row((2.1, 0.6, 0.4, 0.8), (11.9, 2.8, 2.2, 4.0)),
        "WRN-28-10": _row((2.8, 0.8, 0.6, 1.1), (50.0, 13.3, 10.3, 19.1)),
    },
    Level.FIXED_SEED: {
        "LeNet1": _row((0.1,), (0.8, 0.3, 0.2, 0.4)),
        "LeNet4": _row((0.5, 0.1, 0.1, 0.2), (1.9, 0.6, 0.5, 0.9)),
        "LeNet5": _row((1.2, 0.3, 0.2, 0.4), (4.8, 1.3, 1.0, 1.9)),
        "ResNet38": _row((2.7, 0.6, 0.5, 0.8), (12.2, 3.3, 2.6, 4.8)),
        "ResNet56": _row((1.9, 0.5, 0.4, 0.7), (10.6, 2.3, 1.8, 3.3)),
        "WRN-28-10": _row((2.9, 0.7, 0.6, 1.0), (52.4, 16.3, 12.6, 23.4)),
    },
}

TABLE_3: Final[Mapping[Level, Mapping[str, PublishedTimes]]] = {
    Level.DEFAULT: {
        "LeNet1": _times(27, 24.5, 6.5, 41, 47.2, 8.5),
        "LeNet4": _times(22, 17.4, 4.7, 25, 19.9, 4.0),
        "LeNet5": _times(155, 3_940.7, 54.2, 158, 4_014.8, 55.1),
        "ResNet38": _times(434, 21.4, 5.3, 2_953, 133.2, 18.7),
        "ResNet56": _times(699, 23.9, 6.0, 3_813, 116.5, 17.7),
        "WRN-28-10": _times(2_333, 12.9, 3.2, 6_316, 46.0, 8.8),
    },
    Level.FIXED_SEED: {
        "LeNet1": _times(17, 14.3, 3.8, 18, 14.4, 3.8),
        "LeNet4": _times(17, 13.3, 3.6, 25, 20.1, 6.2),
        "LeNet5": _times(31, 25.8, 5.6, 37, 30.0, 6.0),
        "ResNet38": _times(415, 20.4, 4.4, 2_782, 115.5, 15.9),
        "ResNet56": _times(467, 16.4, 3.6, 4_338, 145.3, 22.5),
        "WRN-28-10": _times(2_197, 12.2, 2.9, 5_625, 38.3, 10.1),
    },
}

WEAK_RUNS: Final = {(Level.DEFAULT, "LeNet5"): (4, 16)}
"""Section 5.1: runs that ended below 20 % accuracy, of how many."""

LEVENE_SIGNIFICANT: Final = frozenset({"LeNet5"})
"""Section 5.2: networks whose spread differs between default and fixed-seed with p < 0.05."""

EXAMPLE: Final = PublishedExample()

FINDINGS: Final[Mapping[str, float]] = {
    "accuracy-default": 10.8,
    "accuracy-fixed-seed": 2.9,
    "class-default": 100.0,
    "class-fixed-seed": 52.4,
    "time-default": 4_014.8,
    "time-fixed-seed": 145.3,
}
"""Findings 1 to 4: the largest differences, in points and, for times, percent."""
