"""Covariance matrices by their free elements and by their roots, Σ = LL', with the derivatives of one by the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["ZERO", "Element", "elements", "gradient_matrices", "root_curvature", "root_jacobian", "triangular"]

Floats = NDArray[np.float64]

ZERO: Final = 1e-9
"""An eigenvalue of a relative covariance below this is none."""


@dataclass(frozen=True, slots=True)
class Element:
    """A free element of a covariance: of term `term`, row >= column."""

    term: int
    row: int
    column: int

    @property
    def weight(self) -> float:
        """How often it stands in the symmetric matrix."""
        return 1.0 if self.row == self.column else 2.0


def elements(widths: Sequence[int]) -> tuple[Element, ...]:
    """The free elements of all covariances, term by term."""
    return tuple(Element(k, a, b) for k, q in enumerate(widths) for b in range(q) for a in range(b, q))


def gradient_matrices(widths: Sequence[int], gradient: Floats) -> list[Floats]:
    """The gradient by elements as symmetric matrices S_k, so that the deviance changes by tr(S_k dΣ_k)."""
    matrices = [np.zeros((width, width)) for width in widths]
    for item, slope in zip(elements(widths), gradient.tolist(), strict=True):
        own = matrices[item.term]
        own[item.row, item.column] = own[item.column, item.row] = slope / item.weight
    return matrices


def root_jacobian(elements: Sequence[Element], roots: Mapping[int, Floats], moved: Sequence[Element]) -> Floats:
    """The derivatives of the covariances' elements by the entries `moved` of their roots."""
    jacobian = np.zeros((len(elements), len(moved)))
    for i, item in enumerate(elements):
        for j, entry in enumerate(moved):
            if item.term == entry.term:
                root = roots[item.term]
                jacobian[i, j] = (item.row == entry.row) * root[item.column, entry.column]
                jacobian[i, j] += (item.column == entry.row) * root[item.row, entry.column]
    return jacobian


def root_curvature(slopes: Sequence[Floats], moved: Sequence[Element]) -> Floats:
    """What the curvature of Σ = LL' adds to that of the deviance."""
    count = len(moved)
    extra = np.zeros((count, count))
    for i, one in enumerate(moved):
        for j, two in enumerate(moved):
            if one.term == two.term and one.column == two.column:
                extra[i, j] = 2.0 * slopes[one.term][one.row, two.row]
    return extra


def triangular(sigma: Floats) -> Floats:
    """A lower triangular root of a positive semidefinite matrix, also of a singular one."""
    values, vectors = np.linalg.eigh(sigma)
    _, upper = np.linalg.qr((vectors * np.sqrt(np.maximum(values, 0.0))).T)
    return np.asarray(np.tril(upper.T))
