"""Satterthwaite's degrees of freedom, from the observed curvature of the deviance at the estimates.

As lmerTest does it (Kuznetsova, Brockhoff and Christensen 2017), with exact derivatives in place of numerical ones.
Variances estimated as exactly zero are taken as known.
"""

from __future__ import annotations

import numpy as np

from isorun.analysis.mixed.degrees_of_freedom import FixedInference, fixed_scores, sensitivities
from isorun.analysis.mixed.fit import Fit

__all__ = ["satterthwaite"]


def satterthwaite(fit: Fit) -> FixedInference:
    """The fixed effects with Satterthwaite's method."""
    point = fit.point
    inside = fit.ratios > 0.0
    _, curvature = fit.objective.second_derivatives(point)
    squares = np.array([score @ score for score in point.scores()])
    covariance = fit.residual_variance * point.covariance
    return FixedInference(
        fixed=fit.fixed_in_basis,
        covariance=covariance,
        unadjusted=covariance,
        derivatives=sensitivities(fit, fixed_scores(point))[inside],
        residual_df=float(fit.objective.degrees),
        centre=(squares / point.residual_square)[inside],
        spread=_inverse_of_positive_part(curvature[np.ix_(inside, inside)]),
        scaled_f=False,
    )


def _inverse_of_positive_part(curvature: np.ndarray) -> np.ndarray:
    """The inverse, directions without positive curvature left out as lmerTest does."""
    if not len(curvature):
        return curvature
    values, vectors = np.linalg.eigh(curvature)
    positive = values > 1e-12 * np.abs(values).max()
    kept = vectors[:, positive]
    return np.asarray((kept / values[positive]) @ kept.T)
