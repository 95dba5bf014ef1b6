"""Everything a fit needs of the rows, as cross-products: after this no step depends on the number of rows.

The model is y = X b + sum_k Z_k u_k + e with var(u_k) = s γ_k I and var(e) = s I. One grouping factor, that with most
levels, is *absorbed*: its Z'Z is diagonal, so it is inverted level by level. The others, the fixed effects and the
response form the *rest*, whose cross-products are small and dense. X is replaced by an orthonormal basis of its columns
and y by its least-squares residual, so that a large mean or badly scaled covariate costs no digits.

Covariance matrices by their free elements and by their roots, Σ = LL', with the derivatives of one by the other.

Everything a fit with random slopes needs of the rows, as cross-products (see above for intercepts alone).

A random term has a block of q columns for each level of its group. The term with most coefficients is *absorbed*: its
Z'Z is block-diagonal, a q x q block a level. The other terms, the fixed effects and the response form the *rest*,
dense; a term's columns there are ordered by column first and level second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from isorun.analysis.mixed.columns import Factor
from isorun.analysis.mixed.design import FixedDesign, Random
from isorun.errors import InputError

__all__ = [
    "ZERO",
    "Absorbed",
    "CrossProducts",
    "Element",
    "SlopeProducts",
    "TermShape",
    "cross_products",
    "elements",
    "gradient_matrices",
    "root_curvature",
    "root_jacobian",
    "slope_products",
    "triangular",
]

Floats = NDArray[np.float64]

_DENSE_CELLS = 200_000
"""Tables of level pairs up to this size are kept dense; the sparse form has a higher cost a call."""
_MOST_REST_LEVELS = 12_000
"""Above, the dense algebra of the rest would need gigabytes."""


class Absorbed(Protocol):
    """C, the cross-products of the absorbed factor's levels (rows) with the rest (columns)."""

    def weighted(self, weights: Floats) -> Floats:
        """C' diag(weights) C."""

    def times(self, rest: Floats) -> Floats:
        """C[:, :len(rest)] @ rest."""

    def transposed_times(self, levels: Floats, columns: int) -> Floats:
        """C[:, :columns]' @ levels."""


@dataclass(frozen=True, slots=True)
class DenseAbsorbed:
    """C as one array."""

    table: Floats

    def weighted(self, weights: Floats) -> Floats:
        """C' diag(weights) C."""
        return self.table.T @ (weights[:, None] * self.table)

    def times(self, rest: Floats) -> Floats:
        """C[:, :len(rest)] @ rest."""
        return self.table[:, : len(rest)] @ rest

    def transposed_times(self, levels: Floats, columns: int) -> Floats:
        """C[:, :columns]' @ levels."""
        return self.table[:, :columns].T @ levels


@dataclass(frozen=True, slots=True)
class SparseAbsorbed:
    """C as a sparse table of level pairs and a dense table for the fixed effects and the response."""

    pairs: sparse.csr_array
    transposed: sparse.csr_array
    fixed: Floats

    def weighted(self, weights: Floats) -> Floats:
        """C' diag(weights) C."""
        count = self.pairs.shape[1]
        scaled = sparse.csr_array(
            (self.pairs.data * np.repeat(weights, np.diff(self.pairs.indptr)), self.pairs.indices, self.pairs.indptr),
            shape=self.pairs.shape,
        )
        scaled_fixed = weights[:, None] * self.fixed
        out = np.empty((count + self.fixed.shape[1],) * 2)
        out[:count, :count] = (self.transposed @ scaled).toarray()
        out[:count, count:] = self.transposed @ scaled_fixed
        out[count:, :count] = out[:count, count:].T
        out[count:, count:] = self.fixed.T @ scaled_fixed
        return out

    def times(self, rest: Floats) -> Floats:
        """C[:, :len(rest)] @ rest."""
        count = self.pairs.shape[1]
        product: Floats = self.pairs @ rest[:count]
        return product + self.fixed[:, : len(rest) - count] @ rest[count:]

    def transposed_times(self, levels: Floats, columns: int) -> Floats:
        """C[:, :columns]' @ levels."""
        fixed = self.fixed[:, : columns - self.pairs.shape[1]]
        return np.concatenate([self.transposed @ levels, fixed.T @ levels])


@dataclass(frozen=True, slots=True)
class CrossProducts:
    """The cross-products of a model.

    rows, fixed: numbers of rows and of fixed coefficients.
    absorbed: the place of the absorbed term among the random terms; counts: rows in each of its levels; table: C.
    slices: the columns of each random term in the rest, None for the absorbed one.
    gram: T'T of the rest T = [other terms, X, y]; levels: number of columns of the other terms.
    """

    rows: int
    fixed: int
    absorbed: int
    counts: Floats
    table: Absorbed
    slices: tuple[slice | None, ...]
    gram: Floats
    levels: int

    @property
    def terms(self) -> int:
        """The number of random terms."""
        return len(self.slices)

    def sums_of_response(self) -> list[tuple[Floats, Floats]]:
        """For each random term, the numbers of rows and the sums of the response's residual, by level."""
        absorbed = self.table.times(np.eye(len(self.gram))[-1])
        counts = np.diagonal(self.gram)
        return [
            (self.counts, absorbed) if part is None else (counts[part], self.gram[part, -1]) for part in self.slices
        ]

    @property
    def level_counts(self) -> Floats:
        """The mean number of rows a level of each term has."""
        sizes = [len(self.counts) if part is None else part.stop - part.start for part in self.slices]
        return self.rows / np.array(sizes, dtype=np.float64)


def cross_products(groups: Mapping[str, Factor], design: FixedDesign, residual: Floats) -> CrossProducts:
    """Reduce the rows to cross-products; `residual` is the response's least-squares residual."""
    factors = list(groups.values())
    sizes = [len(factor.levels) for factor in factors]
    absorbed = int(np.argmax(sizes))
    others = [factor for place, factor in enumerate(factors) if place != absorbed]
    levels = sum(len(factor.levels) for factor in others)
    if levels > _MOST_REST_LEVELS:
        raise InputError(
            "the random effects have too many levels",
            found=f"{levels} levels besides those of {list(groups)[absorbed]!r}",
            allowed=f"{_MOST_REST_LEVELS}",
        )
    fixed = np.column_stack([design.basis, residual])
    counts = np.bincount(factors[absorbed].codes, minlength=sizes[absorbed]).astype(np.float64)
    return CrossProducts(
        rows=len(residual),
        fixed=design.rank,
        absorbed=absorbed,
        counts=counts,
        table=_absorbed_table(factors[absorbed], others, fixed),
        slices=_slices(sizes, absorbed),
        gram=_gram(others, levels, fixed),
        levels=levels,
    )


def _slices(sizes: list[int], absorbed: int) -> tuple[slice | None, ...]:
    slices: list[slice | None] = []
    start = 0
    for place, size in enumerate(sizes):
        slices.append(None if place == absorbed else slice(start, start + size))
        start += 0 if place == absorbed else size
    return tuple(slices)


def _absorbed_table(absorbed: Factor, others: list[Factor], fixed: Floats) -> Absorbed:
    sums = _sums_by_level(absorbed, fixed)
    size = len(absorbed.levels) * sum(len(other.levels) for other in others)
    if size <= _DENSE_CELLS:
        return DenseAbsorbed(np.hstack([*(_pair_counts(absorbed, other) for other in others), sums]))
    pairs = [_sparse_pair_counts(absorbed, other) for other in others]
    table = sparse.csr_array(sparse.hstack(pairs, format="csr"))
    return SparseAbsorbed(table, sparse.csr_array(table.T), sums)


def _gram(others: list[Factor], levels: int, fixed: Floats) -> Floats:
    gram = np.zeros((levels + fixed.shape[1],) * 2)
    gram[levels:, levels:] = fixed.T @ fixed
    start = 0
    for place, factor in enumerate(others):
        stop = start + len(factor.levels)
        gram[start:stop, levels:] = _sums_by_level(factor, fixed)
        gram[levels:, start:stop] = gram[start:stop, levels:].T
        column = start
        for second in others[place:]:
            end = column + len(second.levels)
            gram[start:stop, column:end] = _pair_counts(factor, second)
            gram[column:end, start:stop] = gram[start:stop, column:end].T
            column = end
        start = stop
    return gram


def _pair_counts(first: Factor, second: Factor) -> Floats:
    """How many rows have each pair of levels."""
    shape = (len(first.levels), len(second.levels))
    pairs = np.bincount(first.codes * shape[1] + second.codes, minlength=shape[0] * shape[1])
    return pairs.reshape(shape).astype(np.float64)


def _sparse_pair_counts(first: Factor, second: Factor) -> sparse.csr_array:
    """How many rows have each pair of levels, for tables that are mostly empty."""
    ones = np.ones(len(first.codes))
    shape = (len(first.levels), len(second.levels))
    return sparse.csr_array(sparse.coo_array((ones, (first.codes, second.codes)), shape=shape))


def _sums_by_level(factor: Factor, columns: Floats) -> Floats:
    """The sums of `columns` over the rows of each level."""
    size = len(factor.levels)
    return np.column_stack([np.bincount(factor.codes, column, minlength=size) for column in columns.T])


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


_MOST_REST_COLUMNS = 6_000
"""Above, the dense algebra of the rest would need gigabytes."""


@dataclass(frozen=True, slots=True)
class TermShape:
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
    shapes: tuple[TermShape, ...]
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


def _shapes(random: Sequence[Random], absorbed: int) -> tuple[TermShape, ...]:
    shapes, start = [], 0
    for place, item in enumerate(random):
        levels = len(item.factor.levels)
        stop = start + (0 if place == absorbed else item.width * levels)
        shapes.append(TermShape(item.width, levels, None if place == absorbed else slice(start, stop)))
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
