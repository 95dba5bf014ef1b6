"""Newton's method for covariance matrices, which must stay positive semidefinite and are often singular.

Steps are taken in the lower triangular L with Σ = LL', as lme4 parametrises: a minimum on the boundary is an ordinary
minimum there. L = 0 in a direction is always stationary, so the minimum is checked in Σ itself: where the deviance
falls towards some v v', that direction is opened and the descent goes on. What ends at zero is exactly zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from isorun.analysis.mixed.slopes.objective import SlopeObjective, SlopePoint
from isorun.analysis.mixed.slopes.roots import ZERO, gradient_matrices, root_curvature, root_jacobian, triangular
from isorun.errors import InputError

__all__ = ["minimise_covariances"]

Floats = NDArray[np.float64]

_TOLERANCE: Final = 1e-11
"""Stop when a step is expected to lower the deviance by less than this, which is about its noise."""
_LARGEST: Final = 1e8
_MOST_STEPS: Final = 200
_LONGEST_STEP: Final = 2.0
_FLAT: Final = 1e-9
"""Curvatures below this share of the largest are rounding: rotations of L that leave Σ as it is."""


@dataclass(frozen=True, slots=True)
class _Place:
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


def _newton(objective: SlopeObjective, place: _Place) -> tuple[_Place, bool]:
    """One step, and whether there is nothing more to gain."""
    gradient, bend = objective.second_derivatives(place.point)
    roots, moved = place.point.roots, objective.elements
    jacobian = root_jacobian(moved, dict(enumerate(roots)), moved)
    curvature = jacobian.T @ bend @ jacobian + root_curvature(gradient_matrices(objective.widths, gradient), moved)
    values, vectors = np.linalg.eigh((curvature + curvature.T) / 2.0)
    along = vectors.T @ (jacobian.T @ gradient)
    steep = np.abs(values) > _FLAT * np.abs(values).max()
    along, sizes, vectors = along[steep], np.abs(values[steep]), vectors[:, steep]
    if float((along**2 / sizes).sum() / 2.0) < _TOLERANCE:
        return place, True
    taken = _try(objective, place, -(vectors @ (along / sizes)))
    return (place, True) if taken is None else (taken, False)


def _try(objective: SlopeObjective, place: _Place, step: Floats) -> _Place | None:
    """Halve the step until the deviance falls; None when no step helps, which is convergence to noise."""
    roots = place.point.roots
    largest = max(1.0, *(float(np.abs(root).max()) for root in roots))
    step = step / max(1.0, float(np.abs(step).max()) / (_LONGEST_STEP * largest))
    while np.abs(step).max() > 1e-10 * largest:
        moved = [root.copy() for root in roots]
        for item, change in zip(objective.elements, step.tolist(), strict=True):
            moved[item.term][item.row, item.column] += change
        trial = _place(objective, moved)
        if trial is not None and trial.value < place.value:
            return trial
        step = step / 2.0
    return None


def _snapped(objective: SlopeObjective, place: _Place) -> _Place:
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


def _opened(objective: SlopeObjective, place: _Place) -> _Place | None:
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


def _place(objective: SlopeObjective, roots: Sequence[Floats]) -> _Place | None:
    point = objective.at(roots)
    return None if point is None else _Place(point, objective.value(point))


def _no_residual() -> InputError:
    return InputError(
        "the mixed model has no residual variance left",
        found="the effects explain the response exactly, or nearly so",
        hint="leave out the finest random effect or its slopes",
    )
