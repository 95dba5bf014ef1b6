"""How a metric is written, and what of that would turn a comparison into one of something else.

An accuracy is a fraction in one table and a percent in the next. Where one side has fractions and the other percents,
the second is "better" a hundredfold; where a margin is meant in points and the values are fractions, everything is
"equivalent". Neither can be seen in a verdict.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from isorun.analysis.evidence import Condition
from isorun.analysis.evidence.judged import MetricKind, kind_of
from isorun.analysis.samples import FloatArray

__all__ = ["scale_of_values", "unlike_scales", "wide_margin"]

_WIDE: Final = 0.5
_SURELY_PERCENT: Final = 2.0
"""Whatever is called an accuracy and goes a little beyond 1 may be no share at all."""


def scale_of_values(metric: str, values: FloatArray) -> str:
    """How a metric is written, as `JudgedMetric.scale` says it, where only its numbers are known."""
    finite = values[np.isfinite(values)]
    if kind_of(metric) is not MetricKind.ACCURACY or not finite.size or finite.min() < 0 or finite.max() > 100:
        return ""
    return "fraction" if finite.max() <= 1.0 else "percent"


def unlike_scales(metric: str, sides: Mapping[str, FloatArray]) -> tuple[Condition, ...]:
    """That some sides look like fractions and all runs of others like percents; nothing where it may be one scale.

    A percent of 1 or less on the side that looks like fractions is possible: once both are written as fractions that
    is plain, too.
    """
    fractions = [name for name, values in sides.items() if scale_of_values(metric, values) == "fraction"]
    percents = [
        name
        for name, values in sides.items()
        if scale_of_values(metric, values) == "percent" and float(np.nanmin(values)) >= _SURELY_PERCENT
    ]
    if not fractions or not percents:
        return ()
    message = (
        f"{metric} looks like a fraction in {fractions[0]} and like a percent in {percents[0]}: what is compared may "
        "be how it is written"
    )
    return (Condition("other-scale", message, "write it alike on both sides, as fractions", voids=True),)


def wide_margin(margin: float, words: str, typical: float, groups: tuple[str, ...] = ()) -> tuple[Condition, ...]:
    """That a margin is so large beside a typical value that it was hardly meant in the metric's own numbers."""
    if not typical or margin < _WIDE * abs(typical):
        return ()
    message = f"the margin of {words} is half of the value itself or more: hardly a difference would be found"
    return (Condition("margin-wide", message, "give it in the metric's own numbers", groups),)
