"""Adjustments of p for many comparisons."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from isorun.errors import InputError, known_names

__all__ = ["ADJUSTMENTS", "adjusted"]

Floats = NDArray[np.float64]


def adjusted(p: Floats, method: str) -> Floats:
    """The adjusted p, in the order given; NaN stays NaN and is not counted."""
    if method not in ADJUSTMENTS:
        raise InputError(f"there is no adjustment {method!r}", allowed=known_names(method, ADJUSTMENTS))
    out = np.full(len(p), np.nan)
    known = ~np.isnan(p)
    out[known] = np.minimum(ADJUSTMENTS[method](p[known]), 1.0)
    return out


def _none(p: Floats) -> Floats:
    return p


def _bonferroni(p: Floats) -> Floats:
    return p * len(p)


def _holm(p: Floats) -> Floats:
    order = np.argsort(p, kind="stable")
    return _back(order, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))


def _benjamini_hochberg(p: Floats) -> Floats:
    order = np.argsort(p, kind="stable")[::-1]
    return _back(order, np.minimum.accumulate(p[order] * (len(p) / np.arange(len(p), 0, -1))))


def _back(order: NDArray[np.intp], values: Floats) -> Floats:
    out = np.empty(len(values))
    out[order] = values
    return out


ADJUSTMENTS: Final[Mapping[str, Callable[[Floats], Floats]]] = {
    "holm": _holm,
    "bonferroni": _bonferroni,
    "benjamini-hochberg": _benjamini_hochberg,
    "none": _none,
}
