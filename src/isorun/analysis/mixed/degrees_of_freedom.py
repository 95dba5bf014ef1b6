"""Tests of fixed effects whose variance is itself estimated: contrasts, F tests and their degrees of freedom.

Satterthwaite's and Kenward and Roger's methods both match the variance of an estimated variance. Both see the fixed
effects' covariance as a function of the variance ratios and the residual variance, and both need how much these
estimates vary; they differ in where that comes from (`satterthwaite`, `kenward_roger`). Profiling out the residual
variance gives 1/df = 1/d + (g - c)' S (g - c) for a contrast, with g the derivatives of the log of its variance.

Satterthwaite's degrees of freedom, from the observed curvature of the deviance at the estimates.

As lmerTest does it (Kuznetsova, Brockhoff and Christensen 2017), with exact derivatives in place of numerical ones.
Variances estimated as exactly zero are taken as known.

Kenward and Roger's adjusted covariance and degrees of freedom (Biometrics 53, 1997), as pbkrtest computes them.

The variance structure is linear in (γ_1, …, γ_K, residual), where γ are variance ratios or, with slopes, elements of
relative covariances; the method does not depend on which basis of that linear space is used. With V itself as the last
element all its terms vanish from the adjustment, and what remains needs only traces and products with Z_i'PZ_j: no
matrix has the size of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from isorun.analysis.mixed.fit import Fit

__all__ = ["Contrasts", "FTest", "FixedInference", "kenward_roger", "satterthwaite", "sensitivities"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Contrasts:
    """Estimates of linear combinations of fixed effects, with their standard errors, degrees of freedom and p."""

    estimate: Floats
    se: Floats
    df: Floats

    @property
    def t(self) -> Floats:
        """Estimate over standard error."""
        return self.estimate / self.se

    @property
    def p(self) -> Floats:
        """Two-sided p."""
        return np.asarray(2.0 * special.stdtr(self.df, -np.abs(self.t)))

    def half_width(self, level: float) -> Floats:
        """Half the length of the confidence intervals."""
        return np.asarray(special.stdtrit(self.df, (1.0 + level) / 2.0) * self.se)


@dataclass(frozen=True, slots=True)
class FTest:
    """An F test; den_df are approximate.

    wald: the statistic before Kenward and Roger's scaling, from which lmerTest computes sums of squares.
    """

    num_df: int
    den_df: float
    f: float
    wald: float

    @property
    def p(self) -> float:
        """The upper tail."""
        return float(special.fdtrc(self.num_df, self.den_df, self.f))


@dataclass(frozen=True, slots=True)
class FixedInference:
    """The fixed effects with what a method says about their covariance, all in X's orthonormal basis.

    covariance: used for standard errors; unadjusted: the plain one, whose variability the degrees of freedom describe.
    derivatives[k]: of the unadjusted covariance by ratio k. residual_df, centre, spread: d, c and S above.
    scaled_f: Kenward and Roger's scaling of F; else Satterthwaite's combination of single contrasts.
    """

    fixed: Floats
    covariance: Floats
    unadjusted: Floats
    derivatives: Floats
    residual_df: float
    centre: Floats
    spread: Floats
    scaled_f: bool

    def contrasts(self, rows: Floats) -> Contrasts:
        """Test each row."""
        estimate = rows @ self.fixed
        se = np.sqrt(_quadratic(rows, self.covariance))
        return Contrasts(estimate, se, self.degrees(rows))

    def degrees(self, rows: Floats) -> Floats:
        """The degrees of freedom of each row's t test."""
        variance = _quadratic(rows, self.unadjusted)
        growth = np.array([_quadratic(rows, part) for part in self.derivatives])
        growth = growth.reshape(len(self.derivatives), len(rows))
        off = (growth / variance).T - self.centre
        inverse: Floats = 1.0 / self.residual_df + _quadratic(off, self.spread)
        return 1.0 / inverse

    def f_test(self, rows: Floats) -> FTest:
        """Test that all rows are zero; rows must be linearly independent."""
        return self._scaled_f(rows) if self.scaled_f else self._combined_f(rows)

    def _combined_f(self, rows: Floats) -> FTest:
        """F from independent contrasts; its degrees of freedom give it its expectation (Fai and Cornelius 1996)."""
        values, vectors = np.linalg.eigh(rows @ self.covariance @ rows.T)
        independent = vectors.T @ rows
        f = float(((independent @ self.fixed) ** 2 / values).mean())
        return FTest(len(rows), _combined_degrees(self.degrees(independent)), f, f)

    def _scaled_f(self, rows: Floats) -> FTest:
        """F scaled to match expectation and variance (Kenward and Roger 1997, section 3)."""
        count = len(rows)
        root = np.linalg.inv(np.linalg.cholesky(rows @ self.unadjusted @ rows.T))
        whitened = root @ rows
        parts = np.array([whitened @ part @ whitened.T for part in self.derivatives])
        parts = parts - self.centre[:, None, None] * np.eye(count)
        sizes = np.trace(parts, axis1=1, axis2=2)
        a1 = 2.0 * (float(sizes @ self.spread @ sizes) + count**2 / self.residual_df)
        a2 = 2.0 * (float(np.einsum("ij,iab,jba->", self.spread, parts, parts)) + count / self.residual_df)
        estimate = rows @ self.fixed
        wald = float(estimate @ np.linalg.solve(rows @ self.covariance @ rows.T, estimate)) / count
        den_df, scale = _kenward_roger_match(count, a1, a2)
        return FTest(count, den_df, scale * wald, wald)


def _quadratic(rows: Floats, matrix: Floats) -> Floats:
    """The quadratic form row' matrix row, for each row."""
    return np.asarray(((rows @ matrix) * rows).sum(axis=1))


def _combined_degrees(degrees: Floats) -> float:
    if len(degrees) == 1 or np.ptp(degrees) < 1e-8:
        return float(degrees.mean())
    if degrees.min() <= 2.0:
        return 2.0
    expectation = float((degrees / (degrees - 2.0)).sum())
    return 2.0 * expectation / (expectation - len(degrees))


def _kenward_roger_match(count: int, a1: float, a2: float) -> tuple[float, float]:
    """Denominator degrees of freedom and scale of F."""
    if count == 1:
        return 2.0 / a2, 1.0
    b = (a1 + 6.0 * a2) / (2.0 * count)
    g = ((count + 1) * a1 - (count + 4) * a2) / ((count + 2) * a2)
    divisor = 3.0 * count + 2.0 * (1.0 - g)
    c1, c2, c3 = g / divisor, (count - g) / divisor, (count + 2.0 - g) / divisor
    expected, known = 1.0 - a2 / count, 1.0 - c2 * b
    # Both vanish at exactly two degrees of freedom, where their ratio goes to one.
    ratio = 1.0 if abs(expected) < 1e-14 and abs(known) < 1e-14 else expected / known
    rho = ratio**2 * (1.0 + c1 * b) / (1.0 - c3 * b) / count
    den_df = 4.0 + (count + 2.0) / (count * rho - 1.0)
    scale = 1.0 if abs(den_df - 2.0) < 1e-2 else den_df * expected / (den_df - 2.0)
    return den_df, scale


def sensitivities(fit: Fit) -> Floats:
    """The derivatives of the fixed effects' covariance by each parameter of the random effects' covariances."""
    covariance = fit.point.covariance
    return np.asarray(fit.residual_variance * (covariance @ fit.objective.fixed_squares(fit.point) @ covariance))


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
