"""Corrections for several tests at once (R's `p.adjust`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from isorun.analysis.inputs.samples import FloatArray
from isorun.errors import InputError, known_names

__all__ = ["CORRECTIONS", "adjusted"]


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
