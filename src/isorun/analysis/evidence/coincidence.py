"""Coincidence: could independent runs have given the very same number, or must they be copies of one run?

Accuracies on a hundred examples tie all the time; losses with eight digits never do. What tells them apart is how
finely the numbers lie: the step of which all of them are multiples, against the width over which they spread. n runs
that spread over a width R in steps of g make about n(n - 1)/2 · 2g/R ties by chance (2: densities have a peak). Many
more than that are copies. Numbers of fewer than a thousand steps (500, 0.95) may be a ceiling that many runs
reach, and prove nothing.
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
_TELLING_STEPS: Final = 1_000
BOUNDS: Final = frozenset({0.0, 1.0, 100.0})
"""Numbers that many independent runs may well end at: nothing or everything right."""
_FINEST: Final = 1e-9
"""Steps below this share of the largest number are not told apart from none: floating point blurs them."""
_MOST_NUMBERS: Final = 2_000


def distinct_among(values: FloatArray) -> NDArray[np.intp]:
    """The places of the values to keep: all of them, or the first of each where ties cannot be chance."""
    distinct, first, sizes = np.unique(values, return_index=True, return_counts=True)
    everything = np.arange(values.size, dtype=np.intp)
    telling = (sizes > 1) & (np.abs(distinct) >= _TELLING_STEPS * step_of(values))
    ties = int((sizes[telling] - 1).sum())
    if not ties or _chance_of(ties, expected_ties(values)) >= _IMPOSSIBLE:
        return everything
    repeated = np.isin(values, distinct[telling])
    return np.sort(np.concatenate([everything[~repeated], first[telling]]))


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
