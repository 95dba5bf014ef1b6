"""Kenward and Roger's adjusted covariance and degrees of freedom (Biometrics 53, 1997), as pbkrtest computes them.

The variance structure is linear in (γ_1, …, γ_K, residual), where γ are variance ratios or, with slopes, elements of
relative covariances; the method does not depend on which basis of that linear space is used. With V itself as the last
element all its terms vanish from the adjustment, and what remains needs only traces and products with Z_i'PZ_j: no
matrix has the size of the rows.
"""

from __future__ import annotations

import numpy as np

from isorun.analysis.mixed.degrees_of_freedom import FixedInference, sensitivities
from isorun.analysis.mixed.fit import Fit

__all__ = ["kenward_roger"]


def kenward_roger(fit: Fit) -> FixedInference:
    """The fixed effects with Kenward and Roger's method; `fit` must be a REML fit."""
    point, objective = fit.point, fit.objective
    degrees = float(objective.degrees)
    first, second = objective.expected_traces(point)
    spread = _inverse(second - np.outer(first, first) / degrees)
    products = objective.fixed_products(point)
    basic = point.covariance
    adjustment = 4.0 * basic @ np.einsum("ij,ijab->ab", spread, products) @ basic
    return FixedInference(
        fixed=fit.fixed_in_basis,
        covariance=fit.residual_variance * (basic + (adjustment + adjustment.T) / 2.0),
        unadjusted=fit.residual_variance * basic,
        derivatives=sensitivities(fit),
        residual_df=degrees,
        centre=first / degrees,
        spread=spread,
        scaled_f=True,
    )


def _inverse(information: np.ndarray) -> np.ndarray:
    """The inverse, or the pseudo-inverse where random effects cannot be told apart and the information is singular."""
    return np.asarray(np.linalg.pinv(information, rcond=1e-12, hermitian=True))
