"""Do two levels differ in spread? Levene's test with medians as centres (Brown and Forsythe 1974).

The paper uses it to ask whether fixing the seed makes the spread smaller (section 5.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from isorun.analysis.inputs.samples import Outcome
from isorun.analysis.pairwise.variance_tests import levene

__all__ = ["LevelComparison", "compare_levels"]


@dataclass(frozen=True, slots=True)
class LevelComparison:
    """Two levels of one approach, config and environment, judged by one rule.

    test: None when no test could be made; why_not says why.
    """

    approach: str
    config: str
    environment: str
    rule: str
    metric: str
    level_a: str
    level_b: str
    sd_a: float | None
    sd_b: float | None
    test: Outcome | None
    why_not: str = ""


def compare_levels(a: Sequence[float], b: Sequence[float], *, several_seeds: bool) -> tuple[Outcome | None, str]:
    """The test, or None and the reason: with several seeds the spread also holds what the seeds do."""
    if several_seeds:
        return None, "several seeds: their spread also holds what the seed does"
    if min(len(a), len(b)) < 2:
        return None, "fewer than two runs on a side"
    outcome = levene([np.asarray(side, dtype=np.float64) for side in (a, b)])
    if outcome.statistic is None:
        return None, "the runs of each level are all equally far from their median"
    return outcome, ""
