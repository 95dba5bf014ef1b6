"""Corrections for several tests at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from isorun.analysis.inputs.samples import FloatArray
from isorun.errors import InputError, known_names

__all__ = ["CORRECTIONS", "adjusted"]


def _holm(ordered: FloatArray) -> FloatArray:
    """Holm (1979): bounds the chance of any false claim."""
    return np.maximum.accumulate(ordered * np.arange(ordered.size, 0, -1))


def _benjamini_hochberg(ordered: FloatArray) -> FloatArray:
    """Benjamini and Hochberg (1995): bounds the expected share of false claims."""
    scaled = ordered * ordered.size / np.arange(1, ordered.size + 1)
    return np.minimum.accumulate(scaled[::-1])[::-1]


def _none(ordered: FloatArray) -> FloatArray:
    return ordered


CORRECTIONS: Final[dict[str, Callable[[FloatArray], FloatArray]]] = {
    "holm": _holm,
    "bh": _benjamini_hochberg,
    "none": _none,
}


def adjusted(p_values: Sequence[float], correction: str = "holm") -> tuple[float, ...]:
    """The adjusted p of each test, in the order given (R's `p.adjust`)."""
    if correction not in CORRECTIONS:
        raise InputError("unknown correction", found=repr(correction), allowed=known_names(correction, CORRECTIONS))
    values = np.array(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    result = np.empty_like(values)
    result[order] = np.minimum(CORRECTIONS[correction](values[order]), 1.0)
    return tuple(result.tolist())
