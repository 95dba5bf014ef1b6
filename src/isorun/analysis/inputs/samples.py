"""Samples: the one-dimensional arrays of finite numbers that all tests and intervals work on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from isorun.errors import InputError

__all__ = [
    "FloatArray",
    "Interval",
    "Outcome",
    "finite_sample",
    "higher_is_better",
    "is_constant",
    "oriented",
    "recentred",
    "require_moderate",
]

FloatArray = npt.NDArray[np.float64]
Interval = tuple[float, float]

DIRECTIONS = ("higher", "lower")
_LARGEST = 1e150
"""The squares of larger values leave the range of floating point."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A test's statistic and two-sided p; both None where the data cannot be tested (constant, too few)."""

    statistic: float | None
    p: float | None

    def to_json(self) -> dict[str, float | None]:
        """Plain JSON."""
        return {"statistic": self.statistic, "p": self.p}


def finite_sample(values: npt.ArrayLike, name: str, *, minimum: int = 1) -> FloatArray:
    """The values as float64, or an error that says which are no finite numbers, or that there are too few."""
    sample = _as_numbers(values, name)
    if sample.ndim != 1:
        raise InputError(f"{name} must be one list of numbers", found=f"an array of shape {sample.shape}")
    _require_finite(sample, name)
    require_moderate(sample, name)
    if sample.size < minimum:
        raise InputError(f"{name} has too few values", found=f"{sample.size}", allowed=f"{minimum} or more")
    return sample


def _as_numbers(values: npt.ArrayLike, name: str) -> FloatArray:
    try:
        raw: npt.NDArray[Any] = np.asarray(values)
        if raw.dtype.kind in "USO" and any(isinstance(item, str | bytes) for item in raw.ravel()):
            raise ValueError("text")
        if raw.dtype.kind in "cMm":
            raise ValueError(str(raw.dtype))
        return raw.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers", found=f"{values!r:.200}", hint="give a list or an array") from error


def _require_finite(sample: FloatArray, name: str) -> None:
    bad = ~np.isfinite(sample)
    if not bad.any():
        return
    missing = int(np.isnan(sample).sum())
    first = int(np.flatnonzero(bad)[0])
    raise InputError(
        f"{name} has values that are not finite numbers",
        found=f"{missing} NaN and {int(bad.sum()) - missing} infinite of {sample.size}, the first at position {first}",
        allowed="finite numbers",
        hint="find out why these runs have no result; leave them out only if that has nothing to do with the result",
    )


def require_moderate(sample: FloatArray, name: str) -> None:
    """An error for values whose squares leave the range of floating point."""
    largest = float(np.abs(sample).max(initial=0.0))
    if largest > _LARGEST:
        raise InputError(
            f"{name} has values that are too large to compute with",
            found=f"{largest:g}",
            allowed=f"values up to {_LARGEST:g}",
            hint="such a run has diverged: look at it by itself",
        )


def recentred(first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both samples less the median of all values, so that means of values with a large common offset keep digits."""
    centre = float(np.median(np.concatenate([first, second])))
    return first - centre, second - centre


def is_constant(sample: FloatArray) -> bool:
    """Whether all values are the same number."""
    return bool(sample.size == 0 or sample.min() == sample.max())


def higher_is_better(direction: str) -> bool:
    """What "higher" and "lower" mean; anything else is an error."""
    if not direction:
        hint = "direction='lower' or 'higher' (--metric NAME:lower with a command, direction in [metrics])"
        raise InputError("which direction is better is not known", hint=hint)
    if direction not in DIRECTIONS:
        raise InputError("unknown direction of a metric", found=repr(direction), allowed=" or ".join(DIRECTIONS))
    return direction == "higher"


def oriented(sample: FloatArray, direction: str) -> FloatArray:
    """The sample with more always better: negated when lower is better."""
    return sample if higher_is_better(direction) else -sample
