"""What the optimiser minimises: the deviance, its gradient and its curvature in the variance ratios."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from isorun.analysis.mixed.cross_products import CrossProducts
from isorun.analysis.mixed.deviance import Factored, factor_at, first_traces, products_with, projector, traces

__all__ = ["Objective"]

Floats = NDArray[np.float64]

_EXACT_UP_TO: Final = 500
"""Columns of the rest up to which the exact curvature costs about as much as the rest of a step."""


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
