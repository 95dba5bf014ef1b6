"""What the optimiser minimises: the deviance, its gradient and its curvature in the variance ratios.

`Criterion` and `Point` say what tests need of a fit, whether its random effects are intercepts alone (`Objective` here)
or have slopes (`slopes.objective`). Both are linear: V = I + sum of parameters times known matrices G.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from isorun.analysis.mixed.cross_products import CrossProducts
from isorun.analysis.mixed.deviance import (
    Factored,
    factor_at,
    first_traces,
    fixed_scores,
    products_with,
    projector,
    traces,
)

__all__ = ["Criterion", "Objective", "Point"]

Floats = NDArray[np.float64]

_EXACT_UP_TO: Final = 500
"""Columns of the rest up to which the exact curvature costs about as much as the rest of a step."""


class Point(Protocol):
    """A model at given relative covariances of its random terms."""

    @property
    def covariances(self) -> tuple[Floats, ...]:
        """The relative covariance of each term, in the basis of its columns."""

    @property
    def residual_square(self) -> float:
        """Y'Py."""

    @property
    def covariance(self) -> Floats:
        """(X'V⁻¹X)⁻¹ in the orthonormal basis of X."""

    def fixed_effects(self) -> Floats:
        """In X's basis, but for the least-squares ones that were taken out before."""

    def random_effects(self) -> list[Floats]:
        """The predicted coefficients of each term, as (columns, levels)."""


class Criterion(Protocol):
    """A deviance with what tests need: K parameters, p fixed effects."""

    @property
    def reml(self) -> bool:
        """Whether by REML."""

    @property
    def degrees(self) -> int:
        """What the residual sum of squares is divided by."""

    def value(self, point: Any) -> float:
        """The deviance, but for the constant of X's basis."""

    def second_derivatives(self, point: Any) -> tuple[Floats, Floats]:
        """Gradient and exact curvature by the parameters."""

    def squares(self, point: Any) -> Floats:
        """Y'P G_k P y."""

    def fixed_squares(self, point: Any) -> Floats:
        """X'V⁻¹ G_k V⁻¹X, as (K, p, p)."""

    def fixed_products(self, point: Any) -> Floats:
        """X'V⁻¹ G_i P G_j V⁻¹X, as (K, K, p, p)."""

    def expected_traces(self, point: Any) -> tuple[Floats, Floats]:
        """tr(P G_k) and tr(P G_i P G_j)."""

    def tangent(self, point: Any, gradient: Floats) -> tuple[Floats, Floats]:
        """The directions in which the estimates can vary, a column each, and the curvature that their bend adds.

        What is estimated as exactly zero is taken as known.
        """


@dataclass(frozen=True, slots=True)
class Objective:
    """The profiled deviance of a model, by REML or ML."""

    data: CrossProducts
    reml: bool

    @property
    def degrees(self) -> int:
        """What the residual sum of squares is divided by: n - p for REML, n for ML."""
        return self.data.rows - (self.data.fixed if self.reml else 0)

    @property
    def exact(self) -> bool:
        """Whether `derivatives` gives exact second derivatives."""
        return len(self.data.gram) <= _EXACT_UP_TO

    def at(self, ratios: Floats) -> Factored | None:
        """The model at these ratios, None where it is numerically singular."""
        return factor_at(self.data, ratios)

    def value(self, point: Factored) -> float:
        """The deviance, but for the constant of X's basis."""
        return point.deviance(reml=self.reml)

    def derivatives(self, point: Factored) -> tuple[Floats, Floats]:
        """Gradient and a curvature that is good enough to step by.

        Small models have their exact second derivatives. Large ones have the average of observed and expected
        information (Gilmour, Thompson and Cullis 1995), which needs no products of large matrices.
        """
        if self.exact:
            return self.second_derivatives(point)
        middle = projector(point, with_fixed=True)
        for_trace = middle if self.reml else projector(point, with_fixed=False)
        return self._combine(point, middle, first_traces(point, for_trace), None)

    def second_derivatives(self, point: Factored) -> tuple[Floats, Floats]:
        """Gradient and exact second derivatives, at any size."""
        middle = projector(point, with_fixed=True)
        for_trace = middle if self.reml else projector(point, with_fixed=False)
        return self._combine(point, middle, *traces(point, for_trace))

    def _combine(self, point: Factored, middle: Floats, first: Floats, second: Floats | None) -> tuple[Floats, Floats]:
        scores = point.scores()
        weight = self.degrees / point.residual_square
        squares = np.array([score @ score for score in scores])
        products = products_with(point, middle, [score[:, None] for score in scores])[:, :, 0, 0]
        shared = np.outer(squares, squares) * (weight / point.residual_square)
        curvature = weight * products - shared if second is None else 2.0 * weight * products - shared - second
        return first - weight * squares, curvature

    def squares(self, point: Factored) -> Floats:
        """Y'P G_k P y."""
        return np.array([score @ score for score in point.scores()])

    def fixed_squares(self, point: Factored) -> Floats:
        """X'V⁻¹ G_k V⁻¹X."""
        return np.array([score.T @ score for score in fixed_scores(point)])

    def fixed_products(self, point: Factored) -> Floats:
        """X'V⁻¹ G_i P G_j V⁻¹X."""
        return products_with(point, projector(point, with_fixed=True), fixed_scores(point))

    def expected_traces(self, point: Factored) -> tuple[Floats, Floats]:
        """tr(P G_k) and tr(P G_i P G_j)."""
        return traces(point, projector(point, with_fixed=True))

    def tangent(self, point: Factored, gradient: Floats) -> tuple[Floats, Floats]:
        """Every ratio that is not zero, for itself."""
        inside = np.flatnonzero(point.ratios > 0.0)
        return np.eye(len(gradient))[:, inside], np.zeros((len(inside), len(inside)))
