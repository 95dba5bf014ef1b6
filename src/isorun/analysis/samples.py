"""Samples: the one-dimensional arrays of finite numbers that all tests and intervals work on.

Ranks: tied values share the mean of the ranks they stand on.

Pairs: runs of two approaches that belong together because they share a seed, a task or a split.

Corrections for several tests at once (R's `p.adjust`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from isorun.errors import InputError, known_names

__all__ = [
    "CORRECTIONS",
    "FloatArray",
    "Interval",
    "Pairs",
    "Significance",
    "adjusted",
    "as_numbers",
    "finite_sample",
    "has_ties",
    "higher_is_better",
    "is_constant",
    "mean_of",
    "midranks",
    "oriented",
    "recentred",
    "require_moderate",
    "several_samples",
    "snapped",
    "tie_term",
    "two_samples",
]

FloatArray = npt.NDArray[np.float64]
Interval = tuple[float, float]

DIRECTIONS = ("higher", "lower")
_LARGEST = 1e150
"""The squares of larger values leave the range of floating point."""


@dataclass(frozen=True, slots=True)
class Significance:
    """A test's statistic and two-sided p; both None where the data cannot be tested (constant, too few)."""

    statistic: float | None
    p: float | None

    def to_json(self) -> dict[str, float | None]:
        """Plain JSON."""
        return {"statistic": self.statistic, "p": self.p}


def finite_sample(values: npt.ArrayLike, name: str, *, minimum: int = 1) -> FloatArray:
    """The values as float64, or an error that says which are no finite numbers, or that there are too few."""
    sample = as_numbers(values, name)
    if sample.ndim != 1:
        raise InputError(f"{name} must be one list of numbers", found=f"an array of shape {sample.shape}")
    _require_finite(sample, name)
    require_moderate(sample, name)
    if sample.size < minimum:
        raise InputError(f"there are too few values in {name}", found=f"{sample.size}", allowed=f"{minimum} or more")
    return sample


def two_samples(first: npt.ArrayLike, second: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Both as samples of at least one finite number."""
    return finite_sample(first, "the first sample"), finite_sample(second, "the second sample")


def several_samples(samples: Sequence[npt.ArrayLike]) -> list[FloatArray]:
    """All of them as samples of at least one finite number."""
    return [finite_sample(sample, f"sample {place}") for place, sample in enumerate(samples, start=1)]


def as_numbers(values: npt.ArrayLike, name: str) -> FloatArray:
    """The values as float64, whatever their shape, or an error that names them."""
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


def mean_of(values: FloatArray | Sequence[float]) -> float:
    """The mean of one or more finite numbers, the same to the last bit in whatever order they come.

    All that shows the mean of runs takes it from here: what numpy makes of a sum depends on the order of its terms, and
    a mean that lies on the edge of two roundings then has two texts. Equal values have exactly their value as mean.
    """
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    low, high = min(listed), max(listed)
    if low == high:
        return float(low)
    try:
        mean = math.fsum(listed) / len(listed)
    except OverflowError:  # the sum, not the mean: powers of two scale exactly
        mean = math.ldexp(math.fsum(math.ldexp(value, -64) for value in listed) / len(listed), 64)
    return min(max(mean, low), high)  # of neighbours, two roundings could lead past both


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


_NOISE = 64.0 * 2.0**-52


def midranks(values: FloatArray) -> FloatArray:
    """The rank of each value, 1 for the smallest; multiples of one half."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(sizes)
    shared: FloatArray = (last - (sizes - 1) / 2.0)[group]
    return shared


def tie_term(values: FloatArray) -> float:
    """The sum of t³ - t over groups of t equal values; the variances of rank statistics shrink with it."""
    sizes = np.unique(values, return_counts=True)[1].astype(np.float64)
    return float((sizes**3 - sizes).sum())


def has_ties(values: FloatArray) -> bool:
    """Whether any two values are equal."""
    return bool(np.unique(values).size < values.size)


def snapped(values: FloatArray, largest: float | None = None) -> FloatArray:
    """Values without the noise of floating point; `largest`: they are differences of values up to this size.

    0.85 - 0.80 and 0.80 - 0.75 are not the same double, but are the same difference, and have to share a rank; so have
    two means of the same numbers added in another order. Magnitudes less than 64 units in the last place apart, of
    their own size or of `largest`, are taken for one, the smallest of them; differences next to zero are zero. A fixed
    number of decimals would draw a line somewhere, and the same metric in percent would fall on the other side of it.
    """
    magnitudes = np.abs(values)
    order = np.argsort(magnitudes)
    ordered = magnitudes[order]
    begins = np.diff(ordered, prepend=0.0) > _NOISE * (ordered if largest is None else largest)
    settled = np.empty_like(values)
    settled[order] = np.concatenate([[0.0], ordered[begins]])[np.cumsum(begins)]
    return np.copysign(settled, values) + 0.0


@dataclass(frozen=True, slots=True)
class Pairs:
    """The values of both sides in the order of their labels, and the labels that only one side has."""

    first: FloatArray
    second: FloatArray
    unmatched: tuple[str, ...] = ()

    @property
    def differences(self) -> FloatArray:
        """First minus second; equal differences are equal whatever floating point makes of them."""
        return snapped(self.first - self.second, float(max(abs(self.first).max(), abs(self.second).max())))


def adjusted(p_values: ArrayLike, correction: str = "holm") -> FloatArray:
    """The adjusted p of each test, in the order given; NaN (a test that could not be made) stays and is not counted."""
    if correction not in CORRECTIONS:
        raise InputError(f"there is no correction {correction!r}", allowed=known_names(correction, CORRECTIONS))
    values = np.array(p_values, dtype=np.float64)
    known = np.flatnonzero(~np.isnan(values))
    order = known[np.argsort(values[known], kind="stable")]
    values[order] = np.minimum(CORRECTIONS[correction](values[order]), 1.0)
    return values


def _holm(ordered: FloatArray) -> FloatArray:
    """Holm (1979): bounds the chance of any false claim."""
    return np.maximum.accumulate(ordered * np.arange(ordered.size, 0, -1))


def _bonferroni(ordered: FloatArray) -> FloatArray:
    """Bonferroni: the same bound, more cautious."""
    return ordered * ordered.size


def _benjamini_hochberg(ordered: FloatArray) -> FloatArray:
    """Benjamini and Hochberg (1995): bounds the expected share of false claims."""
    scaled = ordered * (ordered.size / np.arange(1, ordered.size + 1))
    return np.minimum.accumulate(scaled[::-1])[::-1]


def _none(ordered: FloatArray) -> FloatArray:
    return ordered


CORRECTIONS: Final[Mapping[str, Callable[[FloatArray], FloatArray]]] = {
    "holm": _holm,
    "bonferroni": _bonferroni,
    "benjamini-hochberg": _benjamini_hochberg,
    "bh": _benjamini_hochberg,
    "none": _none,
}
