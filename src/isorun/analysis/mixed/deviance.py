"""The profiled REML or ML deviance of the variance ratios γ, with its exact first and second derivatives.

With V = I + sum γ_k Z_k Z_k' and P = V⁻¹ - V⁻¹X(X'V⁻¹X)⁻¹X'V⁻¹, both fixed effects and residual variance maximised out,
    REML: log|V| + log|X'V⁻¹X| + (n-p)(1 + log(2π y'Py/(n-p))),    ML: log|V| + n(1 + log(2π y'Py/n)),
as in Bates et al. (2015), Fitting Linear Mixed-Effects Models Using lme4. Derivatives need only the traces of Z_i'PZ_j
(Z_i'V⁻¹Z_j for ML) and products with them; nothing has the size of the rows. γ_k = 0 is an ordinary point.

What the optimiser minimises: the deviance, its gradient and its curvature in the variance ratios.

`Criterion` and `Point` say what tests need of a fit, whether its random effects are intercepts alone (`Objective` here)
or have slopes (`slopes.objective`). Both are linear: V = I + sum of parameters times known matrices G.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from isorun.analysis.mixed.products import CrossProducts, SlopeProducts

__all__ = [
    "Criterion",
    "Factored",
    "Objective",
    "Point",
    "ProfiledDeviance",
    "RestrictedObjective",
    "degrees_of",
    "factor_at",
    "first_traces",
    "fixed_scores",
    "inverse_from_cholesky",
    "products_with",
    "profiled_deviance",
    "projector",
    "traces",
]

Floats = NDArray[np.float64]

_Products = TypeVar("_Products", CrossProducts, SlopeProducts)

_SMALL: Final = 200


@dataclass(frozen=True, slots=True)
class Factored:
    """The model's matrices at given ratios.

    shrink: 1 / (1 + γ counts) of the absorbed term. scale: square roots of the ratios of the rest's columns, 1 for the
    fixed effects and the response. reduced: cross-products of the rest with the absorbed term taken out.
    lower: the Cholesky factor of scale reduced scale, plus 1 on the diagonal of random columns.
    """

    data: CrossProducts
    ratios: Floats
    shrink: Floats
    scale: Floats
    reduced: Floats
    lower: Floats

    @property
    def residual_square(self) -> float:
        """The generalised residual sum of squares, y'Py."""
        return float(self.lower[-1, -1] ** 2)

    @property
    def covariance(self) -> Floats:
        """(X'V⁻¹X)⁻¹ in the orthonormal basis of X."""
        block = slice(self.data.levels, -1)
        return inverse_from_cholesky(self.lower[block, block])

    def coefficients(self) -> Floats:
        """The rest's solution: random effects over their ratio's root times that root, then fixed effects."""
        solved, _ = lapack.dtrtrs(self.lower[:-1, :-1], self.lower[-1, :-1], lower=1, trans=1)
        solution: Floats = solved * self.scale[:-1]
        return solution

    def fixed_effects(self) -> Floats:
        """The fixed effects in X's orthonormal basis, but for the least-squares ones that were taken out before."""
        return self.coefficients()[self.data.levels :]

    @property
    def covariances(self) -> tuple[Floats, ...]:
        """The relative covariance of each term: its ratio as a matrix."""
        return tuple(np.array([[ratio]]) for ratio in self.ratios.tolist())

    def random_effects(self) -> list[Floats]:
        """The predicted effects of each term, as (1, levels)."""
        return [(ratio * score)[None] for ratio, score in zip(self.ratios.tolist(), self.scores(), strict=True)]

    def deviance(self, *, reml: bool) -> float:
        """-2 log likelihood, but for the log-determinant of X's basis."""
        return profiled_deviance(self.data, self.lower, -float(np.log(self.shrink).sum()), reml=reml)

    def scores(self) -> list[Floats]:
        """Z_k'Py for each term; times γ_k these are the predicted random effects."""
        data, solution = self.data, self.coefficients()
        toward_y = np.append(-solution, 1.0)
        rest = self.reduced[: data.levels] @ toward_y
        absorbed = self.shrink * data.table.times(toward_y)
        return [absorbed if part is None else rest[part] for part in data.slices]


def degrees_of(data: CrossProducts | SlopeProducts, *, reml: bool) -> int:
    """What the residual sum of squares is divided by: n - p for REML, n for ML."""
    return data.rows - (data.fixed if reml else 0)


def profiled_deviance(
    data: CrossProducts | SlopeProducts, lower: Floats, absorbed_log_determinant: float, *, reml: bool
) -> float:
    """-2 log likelihood, but for the log-determinant of X's basis; lower: the Cholesky factor of the rest."""
    degrees = degrees_of(data, reml=reml)
    pivots = np.diagonal(lower)[: -1 if reml else data.levels]
    determinants = 2.0 * float(np.log(pivots).sum()) + absorbed_log_determinant
    return determinants + degrees * (1.0 + math.log(2.0 * math.pi * float(lower[-1, -1] ** 2) / degrees))


def factor_at(data: CrossProducts, ratios: Floats) -> Factored | None:
    """The model's matrices at `ratios`, or None where they are numerically singular."""
    ratio = ratios[data.absorbed]
    shrink = 1.0 / (1.0 + ratio * data.counts)
    reduced = data.gram - data.table.weighted(ratio * shrink) if ratio > 0.0 else data.gram
    scale = np.ones(len(reduced))
    for part, own in zip(data.slices, ratios, strict=True):
        if part is not None:
            scale[part] = math.sqrt(own)
    system = scale[:, None] * reduced * scale
    diagonal = np.arange(data.levels)
    system[diagonal, diagonal] += 1.0
    lower, failed = lapack.dpotrf(system.T, lower=1, clean=1, overwrite_a=1)
    return None if failed else Factored(data, ratios, shrink, scale, reduced, lower)


def fixed_scores(point: Factored) -> list[Floats]:
    """Z_k'V⁻¹X for each term, X in its orthonormal basis."""
    data = point.data
    fixed = slice(data.levels, data.levels + data.fixed)
    reduced = point.reduced[: data.levels]
    toward = np.vstack([-projector(point, with_fixed=False) @ reduced[:, fixed], np.eye(data.fixed)])
    rest = reduced[:, : fixed.stop] @ toward
    absorbed = point.shrink[:, None] * data.table.times(toward)
    return [absorbed if part is None else rest[part] for part in data.slices]


def projector(point: Factored, *, with_fixed: bool) -> Floats:
    """R such that P (or V⁻¹, without the fixed effects) is A - A T R T' A, where A takes out the absorbed term."""
    size = point.data.levels + (point.data.fixed if with_fixed else 0)
    scale = point.scale[:size]
    return scale[:, None] * inverse_from_cholesky(point.lower[:size, :size]) * scale


def traces(point: Factored, middle: Floats) -> tuple[Floats, Floats]:
    """tr(P G_k) and tr(P G_k P G_j), with G_k = Z_k Z_k' and P given by its `projector`; V⁻¹ likewise."""
    data, size = point.data, len(middle)
    shrunk = point.shrink * data.counts
    reduced = point.reduced[:size, :size]
    left = -middle @ reduced[:, : data.levels]
    left[np.arange(data.levels), np.arange(data.levels)] += 1.0
    inner = reduced[: data.levels] @ left
    squares = data.table.weighted(point.shrink**2)[:size, :size]
    cubes = data.table.weighted(point.shrink**2 * shrunk)[:size, :size]
    spread = middle @ squares
    first, second = np.empty(data.terms), np.empty((data.terms, data.terms))
    own = data.absorbed
    first[own] = shrunk.sum() - np.trace(spread)
    second[own, own] = (shrunk**2).sum() - 2.0 * np.vdot(middle, cubes) + np.vdot(spread, spread.T)
    crossed = (left * (squares @ left)).sum(axis=0)
    for row, part in enumerate(data.slices):
        if part is None:
            continue
        first[row] = np.trace(inner[part, part])
        second[row, own] = second[own, row] = crossed[part].sum()
        for column, other in enumerate(data.slices):
            if other is not None:
                second[row, column] = (inner[part, other] ** 2).sum()
    return first, second


def first_traces(point: Factored, middle: Floats) -> Floats:
    """tr(P G_k) alone, without the products of large matrices that `traces` needs.

    For a positive ratio, Z_k'PZ_k is (I - B⁻¹)/γ_k, where B is the matrix that was factored.
    """
    data, size = point.data, len(middle)
    squares = data.table.weighted(point.shrink**2)[:size, :size]
    first = np.empty(data.terms)
    first[data.absorbed] = (point.shrink * data.counts).sum() - np.vdot(middle, squares)
    for row, part in enumerate(data.slices):
        if part is None:
            continue
        ratio = point.ratios[row]
        if ratio * data.level_counts[row] > 1e-4:
            first[row] = (part.stop - part.start - np.trace(middle[part, part]) / ratio) / ratio
        else:
            own = point.reduced[:size, part]
            first[row] = np.trace(own[part]) - np.vdot(own, middle @ own)
    return first


def products_with(point: Factored, middle: Floats, vectors: list[Floats]) -> Floats:
    """v_i' Z_i'PZ_j v_j for every pair of terms, with P given by its `projector`.

    vectors[k] has a row for each level of term k and c columns; the products have shape (terms, terms, c, c).
    """
    data, size, width = point.data, len(middle), vectors[0].shape[1]
    own = slice(data.absorbed * width, (data.absorbed + 1) * width)
    shrunk = point.shrink[:, None] * vectors[data.absorbed]
    toward = np.zeros((size, data.terms * width))
    for place, part in enumerate(data.slices):
        if part is not None:
            toward[part, place * width : (place + 1) * width] = vectors[place]
    outer = point.reduced[:size, :size] @ toward
    outer[:, own] = data.table.transposed_times(shrunk, size)
    change = middle @ outer
    rest = outer[: data.levels] - point.reduced[: data.levels, :size] @ change
    absorbed = point.shrink[:, None] * data.table.times(toward - change)
    absorbed[:, own] += data.counts[:, None] * shrunk
    images = [absorbed if part is None else rest[part] for part in data.slices]
    products = np.stack([vector.T @ image for vector, image in zip(vectors, images, strict=True)])
    return products.reshape(data.terms, width, data.terms, width).transpose(0, 2, 1, 3)


def inverse_from_cholesky(lower: Floats) -> Floats:
    """Small inverses avoid dpotri, which starts threads that cost more than the work."""
    if len(lower) <= _SMALL:
        root: Floats = lapack.dtrtri(lower, lower=1)[0] if len(lower) else lower
        return root.T @ root
    triangle, _ = lapack.dpotri(lower, lower=1)
    inverse: Floats = triangle + triangle.T
    diagonal = np.arange(len(lower))
    inverse[diagonal, diagonal] /= 2.0
    return inverse


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

    def deviance(self, *, reml: bool) -> float:
        """-2 log likelihood, but for the log-determinant of X's basis."""

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
class ProfiledDeviance(Generic[_Products]):
    """The profiled deviance of a model, by REML or ML, as a function of its relative covariances."""

    data: _Products
    reml: bool

    @property
    def degrees(self) -> int:
        """What the residual sum of squares is divided by."""
        return degrees_of(self.data, reml=self.reml)

    def value(self, point: Point) -> float:
        """The deviance, but for the constant of X's basis."""
        return point.deviance(reml=self.reml)


@dataclass(frozen=True, slots=True)
class Objective(ProfiledDeviance[CrossProducts]):
    """The deviance where each random term has one variance, as a function of their ratios to the residual's."""

    @property
    def exact(self) -> bool:
        """Whether `derivatives` gives exact second derivatives."""
        return len(self.data.gram) <= _EXACT_UP_TO

    def at(self, ratios: Floats) -> Factored | None:
        """The model at these ratios, None where it is numerically singular."""
        return factor_at(self.data, ratios)

    def first_root(self, place: int) -> float:
        """The root of a ratio, from zero, that is a first step away from it."""
        return math.sqrt(0.1 / self.data.level_counts[place])

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


@dataclass(frozen=True, slots=True)
class RestrictedObjective(Objective):
    """The deviance of all ratios but one, which follows from them: ratios = mapping @ others + offset.

    place: of the one that follows. Where it would be negative there is no model.
    """

    mapping: Floats
    offset: Floats
    place: int

    def at(self, ratios: Floats) -> Factored | None:
        """The model at these ratios of the others."""
        every = self.mapping @ ratios + self.offset
        return None if every[self.place] < 0.0 else factor_at(self.data, every)

    def first_root(self, place: int) -> float:
        """That of the ratio itself, whose place is another one here."""
        return Objective.first_root(self, place + (place >= self.place))

    def derivatives(self, point: Factored) -> tuple[Floats, Floats]:
        """By the others."""
        gradient, curvature = Objective.derivatives(self, point)
        return self.mapping.T @ gradient, self.mapping.T @ curvature @ self.mapping
