"""How the variance that the fixed effects leave divides into random effects and residual, with profile intervals.

An interval holds every share at which the deviance, minimised over everything else, exceeds its minimum by no more than
the chi-square(1) quantile. It may end at 0 or 1, where the boundary itself is not rejected. The variance of a random
effect with slopes is its mean over the rows (Johnson 2014).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from isorun.analysis.mixed.fit import Fit
from isorun.analysis.mixed.objective import Objective
from isorun.analysis.mixed.result import MixedResult, VarianceShare
from isorun.analysis.mixed.slopes.objective import SlopeObjective
from isorun.analysis.mixed.slopes.roots import gradient_matrices, triangular
from isorun.errors import InputError

__all__ = ["variance_shares"]

Floats = NDArray[np.float64]

_EDGE = 1e-7
"""Shares this near to 0 or 1 stand for the boundary."""


def variance_shares(result: MixedResult, level: float = 0.95) -> tuple[VarianceShare, ...]:
    """The share of each random effect and, last, of the residual; they sum to 1."""
    if not 0.0 < level < 1.0:
        raise InputError("the confidence level is out of range", found=f"{level}", allowed="between 0 and 1, as 0.95")
    fit = result.fit
    total = 1.0 + float(fit.ratios.sum())
    shares = [*(fit.ratios / total).tolist(), 1.0 / total]
    rows = []
    for place, (group, share) in enumerate(zip([*_names(fit), "Residual"], shares, strict=True)):
        profile = _Profile(fit, place if place < len(fit.ratios) else None)
        rows.append(VarianceShare(group, share, *_interval(profile, share, level)))
    return tuple(rows)


def _names(fit: Fit) -> list[str]:
    """The groups; where a group has several random effects, or one with slopes, as the formula writes it."""
    groups = list(fit.problem.groups)
    return [
        item.term.group if item.is_intercept and groups.count(item.term.group) == 1 else item.term.label
        for item in fit.problem.random
    ]


@dataclass(frozen=True, slots=True)
class _Profile:
    """The deviance as a function of one share; place: of the random term, None for the residual."""

    fit: Fit
    place: int | None

    def rise(self, share: float) -> float:
        """How far the deviance at this share is above its minimum."""
        minimum = self.fit.objective.value(self.fit.point)
        objective = self.fit.objective
        if isinstance(objective, SlopeObjective):
            return max(0.0, self._best_slopes(objective, share) - minimum)
        assert isinstance(objective, Objective)
        point = objective.at(self._best_ratios(objective, share))
        return float("inf") if point is None else max(0.0, objective.value(point) - minimum)

    def _constraint(self, share: float) -> tuple[Floats, float]:
        """normal, offset such that the ratios with this share satisfy normal @ ratios = offset."""
        count = len(self.fit.ratios)
        if self.place is None:
            return np.ones(count), 1.0 / share - 1.0
        odds = share / (1.0 - share)
        normal = np.full(count, -odds)
        normal[self.place] = 1.0
        return normal, odds

    def _start(self, share: float) -> Floats:
        """Ratios with this share: the others keep their proportions to each other."""
        ratios = np.maximum(self.fit.ratios, 1e-6)
        if self.place is None:
            return np.asarray(ratios * (1.0 / share - 1.0) / ratios.sum())
        start = ratios.copy()
        start[self.place] = share / (1.0 - share) * (1.0 + ratios.sum() - ratios[self.place])
        return start

    def _best_ratios(self, objective: Objective, share: float) -> Floats:
        """The ratios of lowest deviance with this share."""
        start = self._start(share)
        if len(start) == 1:
            return start
        normal, offset = self._constraint(share)
        unit = np.maximum(start, 0.01 / objective.data.level_counts)
        found = optimize.minimize(
            _scaled(objective, unit),
            start / unit,
            jac=True,
            method="SLSQP",
            bounds=[(0.0, None)] * len(start),
            constraints={"type": "eq", "fun": lambda x: normal @ (x * unit) - offset, "jac": lambda _: normal * unit},
            options={"ftol": 1e-9, "maxiter": 200},
        )
        return np.asarray(np.maximum(found.x, 0.0) * unit)

    def _best_slopes(self, objective: SlopeObjective, share: float) -> float:
        """The lowest deviance with this share, over the covariances' roots, whose square sums are the ratios."""
        normal, offset = self._constraint(share)
        weights = normal[[item.term for item in objective.elements]]
        start = []
        for target, sigma in zip(self._start(share).tolist(), self.fit.point.covariances, strict=True):
            opened = sigma + 1e-3 * max(float(np.trace(sigma)), 1e-6) * np.eye(len(sigma))
            start.append(triangular(opened * target / float(np.trace(opened))))
        found = optimize.minimize(
            _of_roots(objective),
            [start[item.term][item.row, item.column] for item in objective.elements],
            jac=True,
            method="SLSQP",
            constraints={"type": "eq", "fun": lambda x: weights @ x**2 - offset, "jac": lambda x: 2.0 * weights * x},
            options={"ftol": 1e-9, "maxiter": 200},
        )
        return float(found.fun)


def _scaled(objective: Objective, unit: Floats) -> Callable[[Floats], tuple[float, Floats]]:
    """Deviance and gradient, with ratios in units that make them comparable."""

    def value_and_gradient(x: Floats) -> tuple[float, Floats]:
        point = objective.at(np.maximum(x, 0.0) * unit)
        if point is None:
            return float("inf"), np.zeros(len(x))
        return objective.value(point), objective.derivatives(point)[0] * unit

    return value_and_gradient


def _of_roots(objective: SlopeObjective) -> Callable[[Floats], tuple[float, Floats]]:
    """Deviance and gradient by the entries of the covariances' triangular roots."""

    def value_and_gradient(x: Floats) -> tuple[float, Floats]:
        roots = [np.zeros((width, width)) for width in objective.widths]
        for item, entry in zip(objective.elements, x.tolist(), strict=True):
            roots[item.term][item.row, item.column] = entry
        point = objective.at(roots)
        if point is None:
            return float("inf"), np.zeros(len(x))
        slopes = gradient_matrices(objective.widths, objective.second_derivatives(point)[0])
        gradients = [2.0 * slope @ root for slope, root in zip(slopes, roots, strict=True)]
        return objective.value(point), np.array([gradients[i.term][i.row, i.column] for i in objective.elements])

    return value_and_gradient


def _interval(profile: _Profile, share: float, level: float) -> tuple[float, float]:
    limit = float(special.chdtri(1, 1.0 - level))

    def above(logit: float) -> float:
        return profile.rise(float(special.expit(logit))) - limit

    return _end(above, share, _EDGE, 0.0), _end(above, share, 1.0 - _EDGE, 1.0)


def _end(above: Callable[[float], float], share: float, edge: float, boundary: float) -> float:
    """Where the deviance crosses the limit between the estimate and the edge, or the boundary if it does not."""
    inside, outside = float(special.logit(min(max(share, _EDGE), 1.0 - _EDGE))), float(special.logit(edge))
    if abs(inside - outside) < 1e-9 or above(outside) <= 0.0:
        return boundary
    return float(special.expit(optimize.brentq(above, inside, outside, xtol=1e-6)))
