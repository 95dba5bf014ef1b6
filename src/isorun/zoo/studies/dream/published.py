"""What the paper says about its two motivating cases (section 3.1), number by number."""

from __future__ import annotations

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

__all__ = ["PUBLISHED", "SECTION", "TUNERS"]

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
