"""Nested disagreement: on how many examples two runs give another answer, within groups (one seed) and between them.

Of answers instead of a score, and therefore far sharper: with answers as indicators, half the disagreement of two runs
is a variance; that of two runs of one group is the variance within, that of runs of two groups the whole. Their ratio
is the share of the variance that lies within groups. Its interval leaves out one group at a time (jackknife, on the log
scale, Student's t); an example counts as fixed, so that the interval is about groups.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from isorun.analysis.spreads.nested_variance import SHARE_CONFIDENCE

__all__ = ["NestedDisagreement", "nested_disagreement"]

_FEWEST_GROUPS = 3
"""Leaving out one of fewer groups leaves no pair of groups."""


@dataclass(frozen=True, slots=True)
class NestedDisagreement:
    """Shares of examples on which two runs differ, means over all pairs of runs. ratio: within over between."""

    groups: int
    runs: int
    examples: int
    within: float
    between: float
    ratio: float | None
    ratio_interval: tuple[float, float] | None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "groups": self.groups,
            "runs": self.runs,
            "examples": self.examples,
            "within": self.within,
            "between": self.between,
            "ratio": self.ratio,
            "ratio_ci95": self.ratio_interval and list(self.ratio_interval),
        }


def nested_disagreement(
    answers: NDArray[np.int64], groups: Sequence[Hashable], confidence: float = SHARE_CONFIDENCE
) -> NestedDisagreement | None:
    """From answers (runs x examples) and the group of each run; None below two groups, or without a pair within one."""
    names = list(dict.fromkeys(groups))
    places = [np.array([place for place, name in enumerate(groups) if name == each]) for each in names]
    if len(names) < 2 or all(place.size < 2 for place in places):
        return None
    means = _mean_disagreements(answers, places)
    within, between = _within_and_between(means)
    ratio = within / between if between > 0.0 else None
    interval = None if ratio is None else _ratio_interval(means, ratio, confidence)
    return NestedDisagreement(len(names), len(groups), answers.shape[1], within, between, ratio, interval)


def _mean_disagreements(answers: NDArray[np.int64], places: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
    """Groups x groups: the mean over pairs of runs; on the diagonal over pairs of different runs, NaN without any."""
    differ = np.array([(answers != row).mean(axis=1) for row in answers])
    means = np.array([[differ[np.ix_(a, b)].mean() for b in places] for a in places])
    for number, place in enumerate(places):
        pairs = place.size * (place.size - 1)
        means[number, number] = differ[np.ix_(place, place)].sum() / pairs if pairs else math.nan
    return means


def _within_and_between(means: NDArray[np.float64]) -> tuple[float, float]:
    return float(np.nanmean(np.diag(means))), float(means[np.triu_indices(len(means), 1)].mean())


def _ratio_interval(means: NDArray[np.float64], ratio: float, confidence: float) -> tuple[float, float] | None:
    count = len(means)
    if count < _FEWEST_GROUPS or ratio == 0.0 or np.isnan(np.diag(means)).any():
        return None
    kept = [np.delete(np.delete(means, out, 0), out, 1) for out in range(count)]
    pairs = [_within_and_between(part) for part in kept]
    if not all(within > 0.0 and between > 0.0 for within, between in pairs):
        return None
    logs = np.array([math.log(within / between) for within, between in pairs])
    error = math.sqrt((count - 1) / count * float(((logs - logs.mean()) ** 2).sum()))
    reach = float(stdtrit(count - 1, (1.0 + confidence) / 2.0)) * error
    return ratio * math.exp(-reach), ratio * math.exp(reach)
