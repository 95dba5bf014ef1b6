"""Which single factor makes the accuracy vary most: named only where the runs can tell it from the others.

Two variances are told apart by the F test at 0.05 (for normal values), the largest against the next. With more than two
factors that errs less often than 0.05 still: the largest has to beat each of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from isorun.analysis.pairwise.mean_and_variance_tests import f_test
from isorun.analysis.studies.conditions import FEWEST_RUNS
from isorun.report.numbers import p_value, significant
from isorun.zoo.studies.ase20.cells import POINTS
from isorun.zoo.studies.ase20.factors import FactorArm, FactorShares

__all__ = ["FactorLead", "factor_lead", "lead_sentence"]

_LEVEL: Final = 0.05


@dataclass(frozen=True, slots=True)
class FactorLead:
    """The factor with the largest variance and those that it cannot be told from, largest first.

    following: the factor with the next largest variance. p: of the F test between the two.
    """

    largest: FactorArm
    following: FactorArm
    p: float
    alike: tuple[FactorArm, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON. largest: null where factors cannot be told apart."""
        return {
            "largest": None if self.alike else self.largest.name,
            "not_told_apart": [arm.name for arm in (self.largest, *self.alike)] if self.alike else [],
            "f_test_p": self.p,
        }


def factor_lead(shares: FactorShares) -> FactorLead | None:
    """None where a factor has too few runs, where nothing varies, and where there is no second factor."""
    arms = sorted(shares.factors, key=lambda arm: arm.variance or 0.0, reverse=True)
    if len(arms) < 2 or min(arm.spread.n for arm in arms) < FEWEST_RUNS or not arms[0].variance:
        return None
    largest, *others = arms
    alike = tuple(arm for arm in others if _p(largest, arm) >= _LEVEL)
    return FactorLead(largest, others[0], _p(largest, others[0]), alike)


def _p(larger: FactorArm, smaller: FactorArm) -> float:
    """Of the F test; 0 where only one of the two varies at all."""
    p = f_test(np.array(larger.values), np.array(smaller.values)).p
    return 0.0 if p is None else p


def lead_sentence(shares: FactorShares, lead: FactorLead) -> str:
    """Which factor varies most, or which cannot be told apart; then how that compares with all of them together."""
    named = (lead.largest, *lead.alike)
    test = f"F test p {p_value(lead.p)}"
    if lead.alike:
        spreads = _joined([_sd(arm) for arm in named])
        names = _joined([arm.name for arm in named])
        first = f"{names} cannot be told apart as sources of variance (SDev {spreads} points; {test})"
    else:
        first = (
            f"{lead.largest.name} makes the accuracy vary most (SDev {_sd(lead.largest)} points; "
            f"next is {lead.following.name} with {_sd(lead.following)}, {test})"
        )
    return f"{shares.network}, one factor varied at a time: {first}{_beside_all(lead.largest, shares.together)}."


def _beside_all(arm: FactorArm, together: FactorArm) -> str:
    """How the largest factor compares with all of them; it may be larger, and few runs easily make it seem so."""
    if arm.interval is None:
        return ""
    low, high = arm.interval
    found = f"90 % interval of the ratio of variances {significant(low, 2)} to {significant(high, 2)}"
    if low <= 1.0 <= high:
        seeds = min(arm.spread.n, together.spread.n)
        compared = f"which {seeds} seeds cannot tell from {arm.name} alone"
    else:
        compared = f"{'less' if low > 1.0 else 'more'} than with {arm.name} alone"
    return f"; with all factors varied it is {_sd(together)}, {compared} ({found})"


def _sd(arm: FactorArm) -> str:
    return POINTS.difference(arm.spread.sd)


def _joined(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"
