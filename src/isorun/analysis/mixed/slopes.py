"""The profiled REML or ML deviance of random terms with slopes, with its exact first and second derivatives.

V = I + sum_k Z_k (I ⊗ Σ_k) Z_k' is linear in the elements of the relative covariances Σ_k. An element (a, b) of Σ_k
multiplies G = Z_a Z_b' + Z_b Z_a' (Z_a Z_a' on the diagonal), so that everything `deviance` says of variance ratios
holds here with these G; traces and products need M = Z'PZ only, by pairs of columns.

Newton's method for covariance matrices, which must stay positive semidefinite and are often singular.

Steps are taken in the lower triangular L with Σ = LL', as lme4 parametrises: a minimum on the boundary is an ordinary
minimum there. L = 0 in a direction is always stationary, so the minimum is checked in Σ itself: where the deviance
falls towards some v v', that direction is opened and the descent goes on. What ends at zero is exactly zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag, lapack

from isorun.analysis.mixed.deviance import ProfiledDeviance, inverse_from_cholesky, profiled_deviance
from isorun.analysis.mixed.products import (
    ZERO,
    Element,
    SlopeProducts,
    TermShape,
    elements,
    gradient_matrices,
    root_curvature,
    root_jacobian,
    triangular,
)
from isorun.errors import InputError

__all__ = ["SlopeObjective", "SlopePoint", "minimise_covariances"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SlopePoint:
    """The model's matrices at given roots: Σ_k = root_k root_k'.

    kernel[l]: what of level l of the absorbed term is taken out. reduced: the rest's cross-products without it.
    lower: the Cholesky factor of the rest, scaled by the roots, plus 1 on the diagonal of random columns.
    """

    data: SlopeProducts
    roots: tuple[Floats, ...]
    kernel: Floats
    absorbed_log_determinant: float
    reduced: Floats
    lower: Floats

    @property
    def covariances(self) -> tuple[Floats, ...]:
        """Σ_k, relative to the residual variance."""
        return tuple(root @ root.T for root in self.roots)

    @property
    def residual_square(self) -> float:
        """Y'Py."""
        return float(self.lower[-1, -1] ** 2)

    @property
    def covariance(self) -> Floats:
        """(X'V⁻¹X)⁻¹ in the orthonormal basis of X."""
        block = slice(self.data.levels, -1)
        return inverse_from_cholesky(self.lower[block, block])

    def deviance(self, *, reml: bool) -> float:
        """-2 log likelihood, but for the log-determinant of X's basis."""
        return profiled_deviance(self.data, self.lower, self.absorbed_log_determinant, reml=reml)

    @cached_property
    def solution(self) -> Floats:
        """The rest's coefficients: random effects, then fixed effects."""
        solved, _ = lapack.dtrtrs(self.lower[:-1, :-1], self.lower[-1, :-1], lower=1, trans=1)
        return _scaled(self.data, self.roots, solved[:, None], transposed=False)[:, 0]

    def fixed_effects(self) -> Floats:
        """The fixed effects in X's basis."""
        return self.solution[self.data.levels :]

    def projector(self, *, with_fixed: bool) -> Floats:
        """R such that P (or V⁻¹) is A - A T R T' A, where A takes out the absorbed term."""
        size = self.data.levels + (self.data.fixed if with_fixed else 0)
        left = _scaled(self.data, self.roots, inverse_from_cholesky(self.lower[:size, :size]), transposed=False)
        return _scaled(self.data, self.roots, left.T.copy(), transposed=False)

    @cached_property
    def apart(self) -> tuple[Floats, Floats]:
        """Z_a'AZ_a by level and Z_a'AT, of the absorbed term."""
        own, cross = self.data.own, self.data.cross
        remaining = np.eye(own.shape[1]) - own @ self.kernel
        return remaining @ own, remaining @ cross

    def images(self, toward: Floats) -> list[Floats]:
        """Z_k'A T toward, as (columns, levels, width of `toward`) for each term; toward: rows of the rest."""
        rest = self.reduced[: self.data.levels, : len(toward)] @ toward
        absorbed = self.apart[1][:, :, : len(toward)] @ toward
        return [
            absorbed.transpose(1, 0, 2)
            if shape.part is None
            else rest[shape.part].reshape(shape.width, shape.levels, -1)
            for shape in self.data.shapes
        ]

    def scores(self) -> list[Floats]:
        """Z_k'Py for each term, as (columns, levels)."""
        toward = np.append(-self.solution, 1.0)[:, None]
        return [image[:, :, 0] for image in self.images(toward)]

    def fixed_scores(self) -> list[Floats]:
        """Z_k'V⁻¹X for each term, as (columns, levels, fixed effects)."""
        data = self.data
        fixed = slice(data.levels, data.levels + data.fixed)
        own = -self.projector(with_fixed=False) @ self.reduced[: data.levels, fixed]
        return self.images(np.vstack([own, np.eye(data.fixed)]))

    def random_effects(self) -> list[Floats]:
        """The predicted coefficients of each term, as (columns, levels)."""
        return [sigma @ score for sigma, score in zip(self.covariances, self.scores(), strict=True)]


@dataclass(frozen=True, slots=True)
class SlopeObjective(ProfiledDeviance[SlopeProducts]):
    """The deviance where random terms have slopes, as a function of their relative covariances."""

    @property
    def widths(self) -> tuple[int, ...]:
        """The number of columns of each term."""
        return tuple(shape.width for shape in self.data.shapes)

    @property
    def elements(self) -> tuple[Element, ...]:
        """What the derivatives are by."""
        return elements(self.widths)

    def at(self, roots: Sequence[Floats]) -> SlopePoint | None:
        """The model at these roots, None where it is numerically singular."""
        data, root = self.data, roots[self.data.absorbed]
        inner = np.eye(root.shape[1]) + root.T @ data.own @ root
        try:
            pivots = np.diagonal(np.linalg.cholesky(inner), axis1=1, axis2=2)
        except np.linalg.LinAlgError:
            return None
        kernel = root @ np.linalg.inv(inner) @ root.T
        taken = (kernel @ data.cross).reshape(-1, data.cross.shape[2])
        reduced = data.gram - data.cross.reshape(taken.shape).T @ taken
        system = _scaled(data, roots, _scaled(data, roots, reduced, transposed=True).T.copy(), transposed=True)
        diagonal = np.arange(data.levels)
        system[diagonal, diagonal] += 1.0
        lower, failed = lapack.dpotrf(system, lower=1, clean=1)
        if failed:
            return None
        return SlopePoint(data, tuple(roots), kernel, 2.0 * float(np.log(pivots).sum()), reduced, lower)

    def second_derivatives(self, point: SlopePoint) -> tuple[Floats, Floats]:
        """Gradient and curvature by the elements of the covariances."""
        middle = point.projector(with_fixed=True)
        first, second = self._traces(point, middle if self.reml else point.projector(with_fixed=False))
        squares, weight = self.squares(point), self.degrees / point.residual_square
        toward = self._toward([score[:, :, None] for score in point.scores()])
        products = self._products(point, middle, toward)[:, :, 0, 0]
        shared = np.outer(squares, squares) * (weight / point.residual_square)
        return first - weight * squares, 2.0 * weight * products - shared - second

    def squares(self, point: SlopePoint) -> Floats:
        """Y'P G P y for each element's G."""
        return self._sums([score[:, :, None] for score in point.scores()])[:, 0, 0]

    def fixed_squares(self, point: SlopePoint) -> Floats:
        """X'V⁻¹ G V⁻¹X for each element's G."""
        return self._sums(point.fixed_scores())

    def fixed_products(self, point: SlopePoint) -> Floats:
        """X'V⁻¹ G_i P G_j V⁻¹X for each pair of elements."""
        return self._products(point, point.projector(with_fixed=True), self._toward(point.fixed_scores()))

    def expected_traces(self, point: SlopePoint) -> tuple[Floats, Floats]:
        """tr(P G_i) and tr(P G_i P G_j)."""
        return self._traces(point, point.projector(with_fixed=True))

    def tangent(self, point: SlopePoint, gradient: Floats) -> tuple[Floats, Floats]:
        """A covariance of full rank varies freely; a singular one among those of its rank, by its root's entries."""
        slopes = gradient_matrices(self.widths, gradient)
        columns, bends = [np.zeros((len(gradient), 0))], [np.zeros((0, 0))]
        for term, sigma in enumerate(point.covariances):
            values, vectors = np.linalg.eigh(sigma)
            kept = values > ZERO
            own = [place for place, item in enumerate(self.elements) if item.term == term]
            if kept.all():
                columns.append(np.eye(len(gradient))[:, own])
                bends.append(np.zeros((len(own), len(own))))
                continue
            roots = {term: vectors[:, kept] * np.sqrt(values[kept])}
            moved = [Element(term, a, b) for b in range(int(kept.sum())) for a in range(len(sigma))]
            columns.append(root_jacobian(self.elements, roots, moved))
            bends.append(root_curvature(slopes, moved))
        return np.hstack(columns), block_diag(*bends)

    def _sums(self, scores: Sequence[Floats]) -> Floats:
        """s_a's_b + s_b's_a for each element, once on the diagonal."""
        grams = [np.einsum("alx,bly->abxy", score, score) for score in scores]
        found = []
        for item in self.elements:
            one = grams[item.term][item.row, item.column]
            found.append(one if item.row == item.column else one + grams[item.term][item.column, item.row])
        return np.array(found)

    def _toward(self, scores: Sequence[Floats]) -> list[Floats]:
        """G v in terms of Z's columns: for each term (columns, levels, elements, width), where v has these scores."""
        width = scores[0].shape[2]
        out = [np.zeros((*score.shape[:2], len(self.elements), width)) for score in scores]
        for place, item in enumerate(self.elements):
            score, own = scores[item.term], out[item.term]
            own[item.row, :, place] = score[item.column]
            own[item.column, :, place] = score[item.row]
        return out

    def _products(self, point: SlopePoint, middle: Floats, toward: Sequence[Floats]) -> Floats:
        """U'MU for the columns U that `toward` holds, as (elements, elements, width, width)."""
        data, size = self.data, len(middle)
        count, width = toward[0].shape[2:]
        flat = [item.reshape(*item.shape[:2], -1) for item in toward]
        others = [part.reshape(-1, count * width) for part, shape in zip(flat, data.shapes, strict=True) if shape.part]
        rest = np.vstack(others) if others else np.zeros((0, count * width))
        absorbed = flat[data.absorbed].transpose(1, 0, 2)
        own, cross = point.apart
        outer = point.reduced[:size, : data.levels] @ rest + np.tensordot(
            cross[:, :, :size], absorbed, ((0, 1), (0, 1))
        )
        change = middle @ outer
        rest_image = outer[: data.levels] - point.reduced[: data.levels, :size] @ change
        absorbed_image = own @ absorbed + cross[:, :, : data.levels] @ rest - cross[:, :, :size] @ change
        products = rest.T @ rest_image + np.tensordot(absorbed, absorbed_image, ((0, 1), (0, 1)))
        return products.reshape(count, width, count, width).transpose(0, 2, 1, 3)

    def _traces(self, point: SlopePoint, middle: Floats) -> tuple[Floats, Floats]:
        data, size = self.data, len(middle)
        left = -middle @ point.reduced[:size, : data.levels]
        left[np.arange(data.levels), np.arange(data.levels)] += 1.0
        own, cross = point.apart
        cross = cross[:, :, :size]
        parts = _Parts(point.reduced[: data.levels, :size] @ left, cross @ left, own, cross, middle)
        traces = [parts.traces(shape) for shape in data.shapes]
        sums = {(k, j): parts.sums(data.shapes[k], data.shapes[j]) for k in range(len(traces)) for j in range(k + 1)}
        first = np.array([item.weight * traces[item.term][item.row, item.column] for item in self.elements])
        second = np.empty((len(first), len(first)))
        for i, one in enumerate(self.elements):
            for j, two in enumerate(self.elements[: i + 1]):
                a, b, c, d = one.row, one.column, two.row, two.column
                pairs = sums[one.term, two.term]
                crossed = pairs[d, a, c, b] + pairs[c, a, d, b] if c != d else pairs[d, a, c, b]
                second[i, j] = second[j, i] = one.weight * crossed
        return first, second


@dataclass(frozen=True, slots=True)
class _Parts:
    """M = Z'PZ by terms: inner within the rest, outside between the absorbed term and the rest.

    The absorbed term's own is never formed: it is block-diagonal (`own`) less cross middle cross'.
    """

    inner: Floats
    outside: Floats
    own: Floats
    cross: Floats
    middle: Floats

    @property
    def taken(self) -> Floats:
        """What the rest takes out of the absorbed term's blocks."""
        return np.asarray(self.cross @ self.middle @ self.cross.transpose(0, 2, 1))

    def traces(self, shape: TermShape) -> Floats:
        """tr(M_ab) for all columns a and b of a term."""
        if shape.part is None:
            return np.asarray((self.own - self.taken).sum(axis=0))
        return np.asarray(self._within(shape, shape).trace(axis1=2, axis2=3))

    def sums(self, one: TermShape, two: TermShape) -> Floats:
        """sums[d, a, c, b] of M_da * M_cb, with a, b of `one` and c, d of `two`."""
        if one.part is not None and two.part is not None:
            return _gram_of(self._within(two, one))
        if one.part is None and two.part is None:
            return self._absorbed_sums()
        rest = two if one.part is None else one
        block = self.outside[:, :, rest.part].reshape(len(self.own), -1, rest.width, rest.levels)
        return _gram_of(block.transpose(2, 1, 3, 0) if one.part is None else block.transpose(1, 2, 0, 3))

    def _within(self, rows: TermShape, columns: TermShape) -> Floats:
        """M between terms of the rest, as (row columns, column columns, row levels, column levels)."""
        block = self.inner[rows.part, columns.part].reshape(rows.width, rows.levels, columns.width, columns.levels)
        return np.asarray(block.transpose(0, 2, 1, 3))

    def _absorbed_sums(self) -> Floats:
        taken, width = self.taken, self.own.shape[1]
        diagonal = _gram_of((self.own - taken).transpose(1, 2, 0)) - _gram_of(taken.transpose(1, 2, 0))
        # Over all pairs of levels: tr(R S_ab R S_cd), with S_ab the cross-products of columns a and b over levels.
        columns = [self.cross[:, place] for place in range(width)]
        halves = np.array([[self.middle @ (a.T @ b) for b in columns] for a in columns])
        return np.asarray(diagonal + np.einsum("abxy,cdyx->dacb", halves, halves))


def _gram_of(block: Floats) -> Floats:
    """sums[d, a, c, b] = sum over levels of block[d, a] * block[c, b]."""
    flat = block.reshape(block.shape[0] * block.shape[1], -1)
    return (flat @ flat.T).reshape(*block.shape[:2], *block.shape[:2])


def _scaled(data: SlopeProducts, roots: Sequence[Floats], matrix: Floats, *, transposed: bool) -> Floats:
    """The rows of random effects multiplied by their roots (or roots' transposes); others stay."""
    out = matrix.copy()
    for shape, root in zip(data.shapes, roots, strict=True):
        if shape.part is not None:
            rows = matrix[shape.part].reshape(shape.width, -1)
            out[shape.part] = ((root.T if transposed else root) @ rows).reshape(-1, matrix.shape[1])
    return out


_TOLERANCE: Final = 1e-11
"""Stop when a step is expected to lower the deviance by less than this, which is about its noise."""
_LARGEST: Final = 1e8
_MOST_STEPS: Final = 200
_LONGEST_STEP: Final = 2.0
_SHARE_KEPT: Final = 0.1
"""Of the fall in deviance that its slope promises, what a step must bring; a good one brings half of it."""
_FLAT: Final = 1e-9
"""Curvatures below this share of the largest are rounding: rotations of L that leave Σ as it is."""


@dataclass(frozen=True, slots=True)
class _Reached:
    """A point on the way, with its deviance."""

    point: SlopePoint
    value: float


def minimise_covariances(objective: SlopeObjective, start: Sequence[Floats]) -> SlopePoint:
    """The point of lowest deviance, from these relative covariances on."""
    place = _place(objective, [triangular(sigma) for sigma in start])
    if place is None:
        raise _no_residual()
    for _ in range(_MOST_STEPS):
        place, stopped = _newton(objective, place)
        if max(float(np.abs(root).max()) for root in place.point.roots) ** 2 > _LARGEST:
            raise _no_residual()
        if stopped:
            place = _snapped(objective, place)
            opened = _opened(objective, place)
            if opened is None:
                return place.point
            place = opened
    raise InputError("the mixed model did not converge", found=f"{_MOST_STEPS} steps", hint="simplify the formula")


def _newton(objective: SlopeObjective, place: _Reached) -> tuple[_Reached, bool]:
    """One step, and whether there is nothing more to gain."""
    gradient, bend = objective.second_derivatives(place.point)
    roots, moved = place.point.roots, objective.elements
    jacobian = root_jacobian(moved, dict(enumerate(roots)), moved)
    curvature = jacobian.T @ bend @ jacobian + root_curvature(gradient_matrices(objective.widths, gradient), moved)
    values, vectors = np.linalg.eigh((curvature + curvature.T) / 2.0)
    slope = jacobian.T @ gradient
    along = vectors.T @ slope
    steep = np.abs(values) > _FLAT * np.abs(values).max()
    along, sizes, vectors = along[steep], np.abs(values[steep]), vectors[:, steep]
    if float((along**2 / sizes).sum() / 2.0) < _TOLERANCE:
        return place, True
    taken = _try(objective, place, -(vectors @ (along / sizes)), slope)
    return (place, True) if taken is None else (taken, False)


def _try(objective: SlopeObjective, place: _Reached, step: Floats, slope: Floats) -> _Reached | None:
    """Halve the step until the deviance falls by a share of what it promises; None when none does: that is noise.

    L and its mirror image give the same Σ, so a step to near the image falls by next to nothing, again and again.
    """
    roots = place.point.roots
    largest = max(1.0, *(float(np.abs(root).max()) for root in roots))
    step = step / max(1.0, float(np.abs(step).max()) / (_LONGEST_STEP * largest))
    while np.abs(step).max() > 1e-10 * largest:
        moved = [root.copy() for root in roots]
        for item, change in zip(objective.elements, step.tolist(), strict=True):
            moved[item.term][item.row, item.column] += change
        trial = _place(objective, moved)
        if trial is not None and trial.value < place.value + _SHARE_KEPT * float(slope @ step):
            return trial
        step = step / 2.0
    return None


def _snapped(objective: SlopeObjective, place: _Reached) -> _Reached:
    """Directions of next to no variance set to exactly none, where the deviance does not mind."""
    for term, sigma in enumerate(place.point.covariances):
        values, vectors = np.linalg.eigh(sigma)
        if not (small := (values < ZERO) & (values != 0.0)).any():
            continue
        kept = (vectors * np.where(small, 0.0, np.maximum(values, 0.0))) @ vectors.T
        roots = list(place.point.roots)
        roots[term] = triangular(kept)
        trial = _place(objective, roots)
        if trial is not None and trial.value <= place.value + 1e-9:
            place = trial
    return place


def _opened(objective: SlopeObjective, place: _Reached) -> _Reached | None:
    """A better place in a direction that is closed, if there is one."""
    gradient, _ = objective.second_derivatives(place.point)
    for term, slope in enumerate(gradient_matrices(objective.widths, gradient)):
        values, vectors = np.linalg.eigh(slope)
        size = 0.1 * len(place.point.roots[term]) * objective.data.shapes[term].levels / objective.data.rows
        while values[0] * size < -1e-9:
            roots = list(place.point.roots)
            wider = place.point.covariances[term] + size * np.outer(vectors[:, 0], vectors[:, 0])
            roots[term] = triangular(wider)
            trial = _place(objective, roots)
            if trial is not None and trial.value < place.value - 1e-9:
                return trial
            size /= 4.0
    return None


def _place(objective: SlopeObjective, roots: Sequence[Floats]) -> _Reached | None:
    point = objective.at(roots)
    return None if point is None else _Reached(point, objective.value(point))


def _no_residual() -> InputError:
    return InputError(
        "the mixed model has no residual variance left",
        found="the effects explain the response exactly, or nearly so",
        hint="leave out the finest random effect or its slopes",
    )
