"""Conditions of a direction: a verdict that rests on a guess says so, and without a direction there is none."""

from __future__ import annotations

from typing import Final

from isorun.analysis.evidence.condition import Condition
from isorun.analysis.studies.judged import DECLARED, JudgedMetric

__all__ = ["ASSUMED", "DIRECTION_CODES", "direction_conditions", "direction_unknown", "how_to_declare"]

DIRECTION_CODES: Final = ("direction-guessed", "direction-unknown")
ASSUMED: Final = Condition(
    "direction-guessed",
    "that higher is better is assumed: a list of numbers has no name that could tell",
    'say it: direction="higher" or direction="lower"',
)


def direction_conditions(metric: JudgedMetric) -> tuple[Condition, ...]:
    """What a reader has to know about the metric's direction; nothing where it was declared."""
    if not metric.direction:
        message = f"the name {metric.name!r} does not tell which direction is better, so no claim is made by it"
        return (Condition("direction-unknown", message, f"say it: {how_to_declare(metric)}", voids=True),)
    if metric.direction_from == DECLARED:
        return ()
    message = f"that {metric.direction} {metric.name} is better is {metric.direction_from} in its name, not declared"
    return (Condition("direction-guessed", message, f"confirm or correct it: {how_to_declare(metric)}"),)


def direction_unknown(name: str) -> str:
    """What stands in a sentence in place of what needs a direction."""
    return f"direction unknown: give --metric {name}:lower or higher"


def how_to_declare(metric: JudgedMetric) -> str:
    """The two ways to declare the metric, with the direction as far as it is known."""
    better = metric.direction or "lower"
    other = "" if metric.direction else " (or higher)"
    return f'--metric {metric.name}:{better}{other}, or [metrics."{metric.name}"] direction = "{better}" in the study'
