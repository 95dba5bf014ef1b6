"""Coincidence: could independent runs have given the very same numbers, or must they be copies of each other?

Accuracies on a hundred examples tie all the time; losses with eight digits never do. What tells them apart is how
finely the numbers lie: the step of which all of them are multiples, against the width over which they spread. n runs
that spread over a width R in steps of g make about n(n - 1)/2 · 2g/R tied pairs by chance (2: densities have a peak).
Many more than that are copies. A single number that keeps coming back is no copy but a place where runs end: a ceiling
(500), a failure (0.5), a training that is stuck. So the commonest number is left out of the count, and where others
repeat it must be three of them, or all there are.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc

from isorun.analysis.inputs.samples import FloatArray

__all__ = ["BOUNDS", "distinct_among", "expected_ties", "significant_digits", "step_of"]

_IMPOSSIBLE: Final = 0.001
"""Ties as many as there are would happen by chance less often than this: they are copies."""
BOUNDS: Final = frozenset({0.0, 1.0, 100.0})
"""Numbers that many independent runs may well end at: nothing or everything right."""
_FINEST: Final = 1e-6
"""Steps below this share of the largest number are not told apart from none: single precision blurs them."""
_MOST_NUMBERS: Final = 24
_MOST_STEPS: Final = 100_000


def distinct_among(values: FloatArray) -> NDArray[np.intp]:
    """The places of the values to keep: all of them, or the first of each where ties cannot be chance."""
    same = _alike(values)
    _, first, sizes = np.unique(same, return_index=True, return_counts=True)
    repeated = np.sort(sizes[sizes > 1])
    everything = np.arange(values.size, dtype=np.intp)
    if repeated.size < min(3, sizes.size):
        return everything
    others = repeated[:-1]
    ties = int((others * (others - 1) // 2).sum())
    if not ties or _chance_of(ties, expected_ties(values)) >= _IMPOSSIBLE:
        return everything
    return np.sort(first)


def _alike(values: FloatArray) -> FloatArray:
    """The values without what single precision or a sum in another order does to them."""
    finest = _FINEST * float(np.abs(values).max(initial=0.0))
    return values if finest == 0.0 else np.round(values / finest)


def significant_digits(value: float) -> int:
    """How many significant digits the number is written with."""
    return len(repr(abs(value)).partition("e")[0].replace(".", "").strip("0"))


def _chance_of(ties: int, expected: float) -> float:
    """How likely so many ties or more are by chance: rare events that hardly depend on each other, so Poisson's law."""
    return 1.0 if math.isinf(expected) else float(gammainc(ties, expected))


def expected_ties(values: FloatArray) -> float:
    """How many ties so many independent runs would make by chance; inf where the values do not vary."""
    low, high = np.percentile(values, (25, 75))
    # Four quartile ranges hold nearly all of a sample and are not stretched by a single run that went astray.
    width = 4.0 * float(high - low) or float(values.max() - values.min())
    if width == 0.0:
        return math.inf
    return values.size * (values.size - 1) / 2.0 * min(1.0, 2.0 * step_of(values) / width)


def step_of(values: FloatArray) -> float:
    """The largest step of which all values are multiples: a decimal place, or one example of so many; 0 for zeros.

    Found by trying: 1, 1/2, 1/3, … (of a hundred for percentages), as far as single precision tells such steps from
    none, and as few different values do not fit one by chance. Numbers without a step have the finest told apart.
    """
    sizes = np.unique(np.abs(values))
    largest = float(sizes.max(initial=0.0))
    tried = sizes[sizes > _FINEST * largest][:_MOST_NUMBERS]
    if not tried.size:
        return 0.0
    scales = (1.0, 100.0) if 1.0 < largest <= 100.0 else (1.0,)
    found = [scale * step for scale in scales if (step := _unit_fraction(tried / scale, largest / scale))]
    return max(found, default=_FINEST * largest)


def _unit_fraction(sizes: FloatArray, largest: float) -> float:
    """The largest 1/n of which all are multiples; 0 where there is none that is not chance."""
    blur = _FINEST * largest / 4.0
    # So many different values fit 1/n within the blur by chance for one n in a hundred searches up to this one.
    most = (0.01 * (sizes.size + 1) / (2.0 * blur) ** sizes.size) ** (1.0 / (sizes.size + 1))
    candidates = np.arange(1, 1 + int(min(most, _MOST_STEPS)), dtype=np.float64)
    for size in sizes.tolist():
        misses = np.abs(size * candidates - np.rint(size * candidates))
        candidates = candidates[misses <= blur * candidates]
    return 1.0 / float(candidates[0]) if candidates.size else 0.0
