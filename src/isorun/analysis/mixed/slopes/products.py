"""Everything a fit with random slopes needs of the rows, as cross-products (see `cross_products` for intercepts alone).

A random term has a block of q columns for each level of its group. The term with most coefficients is *absorbed*: its
Z'Z is block-diagonal, a q x q block a level. The other terms, the fixed effects and the response form the *rest*,
dense; a term's columns there are ordered by column first and level second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isorun.analysis.mixed.columns import Factor
from isorun.analysis.mixed.design import FixedDesign
from isorun.analysis.mixed.random_terms import Random
from isorun.errors import InputError

__all__ = ["Shape", "SlopeProducts", "slope_products"]

Floats = NDArray[np.float64]

_MOST_REST_COLUMNS = 6_000
"""Above, the dense algebra of the rest would need gigabytes."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Of a random term: columns, levels, and its columns in the rest (None: it is absorbed)."""

    width: int
    levels: int
    part: slice | None


@dataclass(frozen=True, slots=True)
class SlopeProducts:
    """own[l]: Z_l'Z_l of the absorbed term's level l. cross[l]: Z_l'T with the rest T = [other terms, X, y].

    gram: T'T. levels: how many columns of T are random effects; fixed: how many are fixed effects.
    """

    rows: int
    fixed: int
    shapes: tuple[Shape, ...]
    absorbed: int
    own: Floats
    cross: Floats
    gram: Floats
    levels: int


def slope_products(random: Sequence[Random], design: FixedDesign, residual: Floats) -> SlopeProducts:
    """Reduce the rows to cross-products; `residual` is the response's least-squares residual."""
    sizes = [item.width * len(item.factor.levels) for item in random]
    absorbed = int(np.argmax(sizes))
    levels = sum(sizes) - sizes[absorbed]
    if levels > _MOST_REST_COLUMNS:
        raise InputError(
            "the random effects have too many levels",
            found=f"{levels} coefficients besides those of {random[absorbed].term.label}",
            allowed=f"{_MOST_REST_COLUMNS}",
        )
    others = [item for place, item in enumerate(random) if place != absorbed]
    dense = np.column_stack([*(_spread(item) for item in others), design.basis, residual])
    one = random[absorbed]
    return SlopeProducts(
        rows=len(residual),
        fixed=design.rank,
        shapes=_shapes(random, absorbed),
        absorbed=absorbed,
        own=_by_level(one.factor, one.basis, one.basis),
        cross=_by_level(one.factor, one.basis, dense),
        gram=dense.T @ dense,
        levels=levels,
    )


def _shapes(random: Sequence[Random], absorbed: int) -> tuple[Shape, ...]:
    shapes, start = [], 0
    for place, item in enumerate(random):
        levels = len(item.factor.levels)
        stop = start + (0 if place == absorbed else item.width * levels)
        shapes.append(Shape(item.width, levels, None if place == absorbed else slice(start, stop)))
        start = stop
    return tuple(shapes)


def _spread(item: Random) -> Floats:
    """A term's columns, one for each pair of column and level."""
    rows, levels = len(item.factor.codes), len(item.factor.levels)
    spread = np.zeros((rows, item.width, levels))
    spread[np.arange(rows), :, item.factor.codes] = item.basis
    return spread.reshape(rows, -1)


def _by_level(factor: Factor, left: Floats, right: Floats) -> Floats:
    """left_l' right_l over the rows of each level l."""
    order = np.argsort(factor.codes, kind="stable")
    ends = np.cumsum(np.bincount(factor.codes, minlength=len(factor.levels)))
    out = np.empty((len(factor.levels), left.shape[1], right.shape[1]))
    start = 0
    for level, end in enumerate(ends.tolist()):
        rows = order[start:end]
        out[level] = left[rows].T @ right[rows]
        start = end
    return out
