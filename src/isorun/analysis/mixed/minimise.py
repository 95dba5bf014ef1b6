"""Newton's method for variance ratios, which may not be negative and are often exactly zero.

Steps are taken in θ = sqrt(γ), as lme4 parametrises: there a minimum on the boundary is an ordinary minimum at θ = 0,
reached in a few steps. A ratio that reaches zero is held there, and released only when the derivative in γ says that
the deviance falls from zero; so a zero that is reported is exactly zero, and one that should not be is not kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from isorun.analysis.mixed.deviance import Factored, Objective
from isorun.errors import InputError

__all__ = ["descended", "minimise"]

Floats = NDArray[np.float64]

_TOLERANCE: Final = 1e-11
"""Stop when a step is expected to lower the deviance by less than this, which is about its noise; or, to save looking
again, after a step when the next one would, if it gains as much less than this one as this one did than the last."""
_ZERO: Final = 3e-5
"""A θ below this is tried as exactly zero."""
_LARGEST: Final = 1e4
"""A random effect this many times the residual's standard deviation leaves too few digits for the residual."""
_DIVERGED: Final = 1e6
_MOST_STEPS: Final = 200
_MOST_STALLS: Final = 4
"""Steps in a row that change the deviance by no more than its noise: nothing more can be seen."""
_LONGEST_STEP: Final = 2.0
"""A step changes no θ by more than this, or by more than this many times itself."""


@dataclass(frozen=True, slots=True)
class _Reached:
    """A point on the way, with its deviance."""

    theta: Floats
    point: Factored
    value: float


@dataclass(frozen=True, slots=True)
class _Model:
    """The quadratic model of the deviance in θ at a place; slope and bend are its derivatives in γ."""

    slope: Floats
    bend: Floats
    gradient: Floats
    curvature: Floats


def minimise(objective: Objective, start: Floats, free: NDArray[np.bool_]) -> Factored:
    """The point of lowest deviance; ratios that are not `free` stay zero.

    Raises InputError when the deviance has no minimum because the residual variance goes to zero.
    """
    point = descended(objective, np.where(free, start, 0.0), free)
    if point is None or point.ratios.max() > _LARGEST**2:
        raise _no_residual()
    return point


def descended(objective: Objective, start: Floats, free: NDArray[np.bool_]) -> Factored | None:
    """The point of lowest deviance, however small the residual variance is there; None where `start` has no model."""
    place = _place(objective, np.sqrt(start))
    return None if place is None else _descend(objective, place, free)


def _descend(objective: Objective, place: _Reached, free: NDArray[np.bool_]) -> Factored:
    previous, stalls = 0.0, 0
    for _ in range(_MOST_STEPS):
        model = _model(objective, place)
        released = _release(objective, model, place.theta, free)
        step, expected = _newton_step(model, place.theta > 0.0)
        if released is not None:
            step = step + released
        elif expected < _TOLERANCE:
            return place.point
        taken = _try(objective, place, step)
        if taken is None:
            return place.point
        whole = np.array_equal(taken.theta, place.theta + step)
        stalls = stalls + 1 if place.value - taken.value <= _noise(place) else 0
        if stalls == _MOST_STALLS or (released is None and whole and expected * expected < _TOLERANCE * previous):
            return taken.point
        place, previous = taken, expected
        if place.theta.max() > _DIVERGED:
            return place.point
    raise InputError("the mixed model did not converge", found=f"{_MOST_STEPS} steps", hint="simplify the formula")


def _place(objective: Objective, theta: Floats) -> _Reached | None:
    point = objective.at(theta**2)
    return None if point is None else _Reached(theta, point, objective.value(point))


def _model(objective: Objective, place: _Reached) -> _Model:
    slope, bend = objective.derivatives(place.point)
    theta = place.theta
    curvature = 4.0 * (theta[:, None] * bend * theta) + np.diag(2.0 * slope)
    return _Model(slope, bend, 2.0 * theta * slope, curvature)


def _newton_step(model: _Model, active: NDArray[np.bool_]) -> tuple[Floats, float]:
    """A descent step among the active ratios, and by how much it should lower the deviance.

    Directions of negative curvature are followed downhill as if they curved the other way.
    """
    step = np.zeros(len(active))
    if not active.any():
        return step, 0.0
    gradient = model.gradient[active]
    curvature = model.curvature if active.all() else model.curvature[np.ix_(active, active)]
    _, solved, failed = lapack.dposv(curvature, gradient)
    if not failed:
        step[active] = -solved
        return step, float(gradient @ solved) / 2.0
    values, vectors = np.linalg.eigh(curvature)
    size = np.maximum(np.abs(values), 1e-12 * np.abs(values).max() + 1e-300)
    along = vectors.T @ gradient
    step[active] = -(vectors @ (along / size))
    return step, float((along**2 / size).sum() / 2.0)


def _release(objective: Objective, model: _Model, theta: Floats, free: NDArray[np.bool_]) -> Floats | None:
    """A step away from zero for the held ratio from which the deviance falls most steeply, if that gains anything."""
    held = free & (theta == 0.0) & (model.slope < 0.0)
    if not held.any():
        return None
    steepest = int(np.argmin(np.where(held, model.slope, 0.0)))
    slope, bend = model.slope[steepest], model.bend[steepest, steepest]
    if slope**2 < 2.0 * _TOLERANCE * bend:
        return None
    step = np.zeros(len(theta))
    step[steepest] = objective.first_root(steepest)
    return step


def _try(objective: Objective, place: _Reached, step: Floats) -> _Reached | None:
    """Halve the step until the deviance does not rise; None when no step helps, which is convergence to noise."""
    theta = place.theta
    step = step / max(1.0, float((np.abs(step) / (_LONGEST_STEP * np.maximum(theta, 1.0))).max()))
    while np.abs(step).max() > 1e-12 * (1.0 + theta.max()):
        moved = theta + step
        trial = _place(objective, np.where(moved < _ZERO, 0.0, moved))
        if trial is not None and trial.value <= place.value + _noise(place) and (trial.theta != theta).any():
            return trial
        step = step / 2.0
    return None


def _noise(place: _Reached) -> float:
    """How far two evaluations of the same deviance may differ by rounding.

    The residual sum of squares is what remains of the total; the more the effects explain, the fewer digits it has.
    """
    data = place.point.data
    digits_lost = data.gram[-1, -1] / place.point.residual_square
    return 1e-12 * (1.0 + abs(place.value)) + 1e-15 * data.rows * float(digits_lost)


def _no_residual() -> InputError:
    return InputError(
        "the mixed model has no residual variance left",
        found=f"the effects explain the response exactly, or to less than 1 part in {_LARGEST:,.0f}",
        hint="leave out the finest random effect: its levels hold identical values",
    )
