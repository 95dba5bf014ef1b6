"""Weak runs: trainings that learned next to nothing.

The paper calls a model weak below 20 % accuracy with 10 classes, twice what guessing gives. Twice chance would call
every model of a two-class task weak, so the bound is also kept within a ninth of the way from chance to a perfect
score; for 10 classes the two agree.
"""

from __future__ import annotations

from dataclasses import dataclass

from isorun.analysis.evidence.directions import direction_unknown
from isorun.analysis.studies.judged import JudgedMetric

__all__ = ["WeakRule", "weak_rule"]


@dataclass(frozen=True, slots=True)
class WeakRule:
    """When a run counts as weak. below: the bound, None where chance is unknown and no run is flagged."""

    metric: str
    below: float | None
    reason: str

    def is_weak(self, value: float) -> bool:
        """Whether a run with this value is weak; NaN is not weak but missing."""
        return self.below is not None and value < self.below


def weak_rule(metric: JudgedMetric) -> WeakRule:
    """The rule for one metric, with the words that explain it."""
    if not metric.direction:
        return WeakRule(metric.name, None, f"no run is flagged as weak: {direction_unknown(metric.name)}")
    if metric.direction == "lower":
        reason = f"no run is flagged as weak: of {metric.name} less is better, so it has no chance level"
        return WeakRule(metric.name, None, reason)
    if metric.chance is None or metric.chance <= 0:
        declare = f"declare it as metrics.{metric.name}.chance"
        return WeakRule(metric.name, None, f"no run is flagged as weak: chance of {metric.name} is unknown ({declare})")
    twice = 2.0 * metric.chance
    if metric.perfect is None or metric.chance + (metric.perfect - metric.chance) / 9.0 >= twice:
        return WeakRule(metric.name, twice, f"twice chance ({metric.chance_from})")
    below = metric.chance + (metric.perfect - metric.chance) / 9.0
    return WeakRule(metric.name, below, f"a ninth of the way from chance ({metric.chance_from}) to a perfect score")
