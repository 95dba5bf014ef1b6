"""The metric that runs are judged by, and which direction is better.

A direction is declared, or guessed from the metric's name. A verdict that rests on a guess says so, and without a
direction there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from isorun.analysis.evidence.condition import Condition
from isorun.analysis.evidence.metric_names import direction_of

__all__ = [
    "ASSUMED",
    "DECLARED",
    "DIRECTION_CODES",
    "JudgedMetric",
    "direction_conditions",
    "direction_unknown",
    "how_to_declare",
    "judged_column",
]

DECLARED: Final = "declared"
DIRECTION_CODES: Final = ("direction-guessed", "direction-unknown")
ASSUMED: Final = Condition(
    "direction-guessed",
    "that higher is better is assumed: a list of numbers has no name that could tell",
    'say it: direction="higher" or direction="lower"',
)


@dataclass(frozen=True, slots=True)
class JudgedMetric:
    """A metric the runs are compared by.

    direction: "higher" or "lower" is better; "" when it is not declared and the name does not tell.
    direction_from: how the direction became known ("declared", "guessed from 'err'"), "" when it is not.
    scale: "fraction" for accuracies in [0, 1], "percent" for accuracies in [0, 100], "" for any other number.
    chance_from: how chance became known ("declared", "10 classes"), "" when it is not.
    chosen_because: why this metric was taken, "" when the study declares it.
    """

    name: str
    direction: str
    scale: str
    chance: float | None = None
    chance_from: str = ""
    chosen_because: str = ""
    direction_from: str = DECLARED

    @property
    def declared(self) -> bool:
        """Whether the study names this metric."""
        return not self.chosen_because

    @property
    def perfect(self) -> float | None:
        """The best possible value, where the scale tells it."""
        return {"fraction": 1.0, "percent": 100.0}.get(self.scale) if self.direction == "higher" else None


def judged_column(name: str, direction: str = "") -> JudgedMetric:
    """A metric with its direction as declared, which always wins, else as far as the name tells."""
    if direction:
        return JudgedMetric(name, direction, "")
    told = direction_of(name)
    source = f"guessed from {told.word!r}" if told.known else ""
    return JudgedMetric(name, told.better, "", direction_from=source)


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
