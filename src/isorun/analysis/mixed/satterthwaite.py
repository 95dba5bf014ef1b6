"""Satterthwaite's degrees of freedom, from the observed curvature of the deviance at the estimates.

As lmerTest does it (Kuznetsova, Brockhoff and Christensen 2017), with exact derivatives in place of numerical ones.
Variances estimated as exactly zero are taken as known.
"""

from __future__ import annotations

import numpy as np

from isorun.analysis.mixed.degrees_of_freedom import FixedInference, sensitivities
from isorun.analysis.mixed.fit import Fit

__all__ = ["satterthwaite"]

_FLAT = 1e-10
"""Curvatures below this share of the largest are rounding, or turn a singular covariance's root into another root."""


def satterthwaite(fit: Fit) -> FixedInference:
    """The fixed effects with Satterthwaite's method."""
    point, objective = fit.point, fit.objective
    gradient, curvature = objective.second_derivatives(point)
    directions, bend = objective.tangent(point, gradient)
    covariance = fit.residual_variance * point.covariance
    return FixedInference(
        fixed=fit.fixed_in_basis,
        covariance=covariance,
        unadjusted=covariance,
        derivatives=np.tensordot(directions.T, sensitivities(fit), 1),
        residual_df=float(objective.degrees),
        centre=directions.T @ objective.squares(point) / point.residual_square,
        spread=_inverse_of_positive_part(directions.T @ curvature @ directions + bend),
        scaled_f=False,
    )


def _inverse_of_positive_part(curvature: np.ndarray) -> np.ndarray:
    """The inverse, directions without positive curvature left out as lmerTest does."""
    if not len(curvature):
        return curvature
    values, vectors = np.linalg.eigh(curvature)
    positive = values > _FLAT * np.abs(values).max()
    kept = vectors[:, positive]
    return np.asarray((kept / values[positive]) @ kept.T)
