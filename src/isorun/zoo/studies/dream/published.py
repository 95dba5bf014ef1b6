"""What the paper says: of its two motivating cases (section 3.1) number by number, and its Tables 2 to 4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from isorun.zoo.studies.dream.findings import (
    BEST,
    BEST_IN_3_DAYS,
    BEST_OF_ALL,
    COUNT,
    GAIN,
    IMPROVING,
    LENGTH,
    MINUTES_TO_TARGET,
    SAVED,
    TO_TARGET,
    Statement,
)

__all__ = [
    "PUBLISHED",
    "SECTION",
    "STRATEGIES",
    "TABLE_2",
    "TABLE_3",
    "TABLE_4",
    "TUNERS",
    "ByStrategy",
    "PublishedCost",
    "PublishedExpansion",
    "PublishedSearch",
]

SECTION: Final = "section 3.1"
TUNERS: Final = ("dream", "hyperband", "bayesian", "greedy")
"""The paper's own strategy, then the three of AutoKeras."""

PUBLISHED: Final = (
    Statement("I", "bayesian", TO_TARGET, 9.5, 1),
    Statement("I", "hyperband", TO_TARGET, None, 1),
    Statement("I", "greedy", TO_TARGET, None, 1),
    Statement("I", "dream", MINUTES_TO_TARGET, 95, 0),
    Statement("I", "dream", SAVED, 7.92, 2),
    Statement("I", "hyperband", LENGTH, 24, 0),
    Statement("I", "hyperband", COUNT, 242, 0, "the log numbers its trials from 0, and the last is number 242"),
    Statement("I", "hyperband", BEST_OF_ALL, 71.2, 1, "no trial of the log has the stated score as its running best"),
    Statement("I", "greedy", BEST_IN_3_DAYS, 70.8, 1),
    Statement("II", "hyperband", BEST, 68.21, 2),
    Statement("II", "bayesian", BEST, 67.79, 2),
    Statement("II", "greedy", BEST, 34.23, 2),
    Statement("II", "dream", BEST, 82.66, 2),
    Statement("II", "hyperband", IMPROVING, 4, 0),
    Statement(
        "II", "bayesian", IMPROVING, 3, 0, "three only if the first trial, which every search starts from, counts"
    ),
    Statement("II", "greedy", IMPROVING, 3, 0),
    Statement("II", "dream", IMPROVING, 5, 0),
    Statement(
        "II", "hyperband", GAIN, 17, 0, "the final score divided by four is 17; the gain over the first trial is not"
    ),
)

STRATEGIES: Final = ("AKG", "AKB", "AKH", "DREAM")
"""The columns of Table 2: AutoKeras with its greedy, Bayesian and Hyperband strategies, and the paper's own."""

ByStrategy = tuple[float, float, float, float]
"""A number for each of the STRATEGIES."""


@dataclass(frozen=True, slots=True)
class PublishedSearch:
    """A row of Table 2: one search by each strategy from one initial model. Scores in %, times in hours of GPU.

    improvement: as printed. hours: to the target; None where it was not reached.
    """

    data: str
    number: int
    initial: float
    best: ByStrategy
    improvement: ByStrategy
    hours: tuple[float | None, float | None, float | None, float | None]
    best_in_24_hours: ByStrategy


# fmt: off
TABLE_2: Final = tuple(PublishedSearch(*row) for row in (
    ("CIFAR-100", 1, 10.59, (63.04, 65.77, 78.78, 83.32),
     (52.45, 55.18, 68.19, 72.72), (None, None, 1.63, 0.92), (63.04, 52.51, 79.19, 83.32)),
    ("CIFAR-100", 2, 20.74, (65.38, 78.88, 36.35, 85.85),
     (44.64, 58.15, 15.61, 65.12), (None, 47.52, 2.45, 2.34), (59.51, 45.29, 81.57, 83.55)),
    ("CIFAR-100", 3, 2.58, (34.23, 67.79, 68.21, 82.66),
     (31.65, 65.21, 65.63, 80.09), (18.32, None, 5.45, 1.8), (77.79, 67.79, 80.21, 82.66)),
    ("CIFAR-100", 4, 8.19, (37.63, 64.49, 73.15, 82.62),
     (29.44, 56.3, 64.97, 74.44), (None, 17.97, 1.36, 0.53), (42.57, 76.52, 78.89, 82.62)),
    ("CIFAR-100", 5, 4.81, (64.82, 46.92, 54.3, 83.03),
     (60.01, 42.11, 49.5, 78.22), (None, None, 20.49, 0.53), (63.61, 33.03, 77.01, 83.03)),
    ("Food-101", 6, 8.37, (72.67, 57.47, 51.59, 83.13),
     (64.31, 49.1, 43.22, 74.77), (40.35, None, None, 21.66), (61.68, 57.47, 59.42, 71.56)),
    ("Food-101", 7, 2.3, (61.44, 41.37, 50.16, 78.23),
     (59.14, 39.07, 47.86, 75.93), (None, None, None, 45.04), (13.57, 31.93, 58.74, 65.74)),
    ("Food-101", 8, 8.48, (68.8, 75.72, 55.61, 82.62),
     (60.32, 67.25, 47.13, 74.14), (None, 82.24, None, 13.34), (13.54, 35.94, 55.61, 72.03)),
    ("Stanford Cars", 9, 0.74, (24.75, 79.64, 48.33, 85.02),
     (24.01, 78.9, 47.59, 84.28), (None, 9.48, None, 4.03), (30.76, 77.6, 55.57, 83.79)),
    ("Stanford Cars", 10, 0.56, (42.7, 81.99, 24.44, 83.66),
     (42.14, 81.44, 23.89, 83.11), (16.87, 8.38, None, 7.85), (71.53, 81.99, 46.66, 83.35)),
    ("Stanford Cars", 11, 0.8, (60.33, 16.4, 20.17, 83.48),
     (59.53, 15.59, 19.37, 82.67), (None, None, None, 17.57), (7.61, 16.4, 40.72, 70.61)),
    ("Stanford Cars", 12, 0.62, (44.06, 46.23, 32.86, 83.42),
     (43.44, 45.61, 32.24, 82.8), (None, None, None, 7.06), (14.79, 46.23, 58.17, 83.42)),
    ("Stanford Cars", 13, 0.68, (39.42, 8.29, 16.58, 84.1),
     (38.74, 7.61, 15.9, 83.42), (19.57, None, None, 5.33), (81.31, 8.29, 43.01, 84.1)),
    ("TinyImageNet", 14, 21.57, (29.34, 21.57, 71.51, 83.8),
     (10.45, 2.68, 52.62, 64.92), (None, None, 1.71, 2.6), (27.38, 21.57, 76.98, 77.67)),
    ("TinyImageNet", 15, 9.44, (62.86, 42.29, 44.7, 79.9),
     (53.43, 32.86, 35.27, 70.46), (None, None, 4.17, 2.85), (62.78, 42.29, 80.26, 76.66)),
    ("TinyImageNet", 16, 4.84, (47.44, 66.39, 61.04, 83.95),
     (42.6, 61.56, 56.2, 79.12), (None, None, 10.0, 2.54), (42.13, 41.7, 80.09, 77.02)),
    ("TinyImageNet", 17, 7.68, (37.89, 46.74, 53.59, 83.6),
     (30.21, 39.06, 45.91, 75.92), (None, None, 13.5, 4.41), (35.24, 46.74, 76.61, 77.22)),
    ("TinyImageNet", 18, 8.54, (63.2, 75.89, 67.14, 85.41),
     (54.66, 67.35, 58.6, 76.87), (None, 39.35, 7.63, 2.44), (63.2, 38.28, 77.1, 85.41)),
))
# fmt: on


@dataclass(frozen=True, slots=True)
class PublishedCost:
    """A row of Table 3. gigabytes: of memory, by strategy. monitor, choosing, training: shares of the time, in %."""

    data: str
    gigabytes: ByStrategy
    monitor: float
    choosing: float
    training: float


TABLE_3: Final = (
    PublishedCost("CIFAR-100", (4.34, 4.27, 4.50, 5.60), 1.00, 0.08, 98.92),
    PublishedCost("Food-101", (7.38, 8.90, 8.52, 8.51), 0.31, 0.02, 99.67),
    PublishedCost("Stanford Cars", (7.36, 8.85, 9.13, 7.79), 1.98, 0.07, 97.95),
    PublishedCost("TinyImageNet", (7.35, 9.35, 8.25, 7.50), 0.36, 0.07, 99.57),
)


@dataclass(frozen=True, slots=True)
class PublishedExpansion:
    """A row of Table 4: the same strategy on the original and on the expanded space. All in %."""

    data: str
    strategy: str
    initial: float
    original: float
    expanded: float


TABLE_4: Final = (
    PublishedExpansion("CIFAR-100", "AKG", 20.73, 34.23, 83.66),
    PublishedExpansion("CIFAR-100", "AKB", 22.26, 67.79, 80.47),
    PublishedExpansion("CIFAR-100", "AKH", 4.68, 68.21, 82.70),
    PublishedExpansion("TinyImageNet", "AKG", 21.58, 29.34, 81.40),
    PublishedExpansion("TinyImageNet", "AKB", 22.24, 22.24, 78.07),
    PublishedExpansion("TinyImageNet", "AKH", 19.94, 71.50, 81.28),
)
