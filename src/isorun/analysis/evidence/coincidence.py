"""Coincidence: could independent runs have given the very same number, or must they be copies of one run?

Accuracies on a hundred examples tie all the time; losses with eight digits never do. What tells them apart is how
finely the numbers lie: the step of which all of them are multiples, against the width over which they spread. n runs
that spread over a width R in steps of g make about n(n - 1)/2 · 2g/R ties by chance (2: densities have a peak).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from isorun.analysis.inputs.samples import FloatArray

__all__ = ["copies_among", "expected_ties", "step_of"]

_IMPOSSIBLE: Final = 0.01
"""Fewer ties than this are expected: those that are there are no chance."""
_FINEST: Final = 1e-9
"""Steps below this share of the largest number are not told apart from none: floating point blurs them."""
_MOST_NUMBERS: Final = 2_000


def copies_among(values: FloatArray) -> NDArray[np.intp]:
    """The places of the values to keep: all of them, or the first of each where ties cannot be chance."""
    distinct, first = np.unique(values, return_index=True)
    everything = np.arange(values.size, dtype=np.intp)
    if distinct.size == values.size or expected_ties(values) >= _IMPOSSIBLE:
        return everything
    return np.sort(first)


def expected_ties(values: FloatArray) -> float:
    """How many ties so many independent runs would make by chance; inf where the values do not vary."""
    low, high = np.percentile(values, (25, 75))
    # Four quartile ranges hold nearly all of a sample and are not stretched by a single run that went astray.
    width = 4.0 * float(high - low) or float(values.max() - values.min())
    if width == 0.0:
        return math.inf
    return values.size * (values.size - 1) / 2.0 * min(1.0, 2.0 * step_of(values) / width)


def step_of(values: FloatArray) -> float:
    """The largest step of which all values are multiples, by Euclid's algorithm; 0 when all are zero.

    For numbers without a common step this is what floating point can just resolve.
    """
    sizes = np.unique(np.abs(values))[::-1][:_MOST_NUMBERS]
    largest = float(sizes.max(initial=0.0))
    finest = _FINEST * largest
    step = largest
    for size in sizes[sizes > finest].tolist():
        step = _common_step(step, size, finest)
        if step <= finest:
            return finest
        # The largest number holds many steps, so it tells the step to more digits than a remainder does.
        step = largest / round(largest / step)
    return step


def _common_step(first: float, second: float, finest: float) -> float:
    larger, smaller = max(first, second), min(first, second)
    while smaller > finest:
        rest = math.fmod(larger, smaller)
        larger, smaller = smaller, 0.0 if smaller - rest <= finest else rest
    return larger
