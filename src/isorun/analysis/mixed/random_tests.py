"""The likelihood-ratio test of every random effect, as lmerTest's ranova."""

from __future__ import annotations

import numpy as np
from scipy import special

from isorun.analysis.mixed.fit import Fit, refit
from isorun.analysis.mixed.result import RanovaRow

__all__ = ["ranova"]


def ranova(fit: Fit) -> list[RanovaRow]:
    """Leave out each random effect in turn and fit the others again.

    Leaving out an effect is fixing its ratio at zero; where it is zero already there is nothing to fit. Its variance
    mostly goes to the residual, which tells where to start.
    """
    return [_test(fit, place) for place in range(len(fit.ratios))]


def _test(fit: Fit, place: int) -> RanovaRow:
    term = f"(1 | {fit.problem.groups[place]})"
    free = np.arange(len(fit.ratios)) != place
    if fit.ratios[place] == 0.0:
        return RanovaRow(term, 0.0, 1, 1.0, 1.0)
    start = fit.ratios / (1.0 + fit.ratios[place])
    reduced = refit(fit.objective, fit.problem, start, free)
    lrt = max(0.0, 2.0 * (fit.log_likelihood - reduced.log_likelihood))
    p = float(special.chdtrc(1, lrt))
    return RanovaRow(term, lrt, 1, p, p / 2.0 if lrt > 0.0 else 1.0)
