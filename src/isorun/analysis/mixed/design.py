"""The fixed-effects design matrix, coded and named as R does by default.

Factors are coded by treatment contrasts against their first level where the term without them is in the model, and by
one column a level where it is not. Columns that depend on earlier ones are left out, as R does, and named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from isorun.analysis.mixed.columns import Column, Factor
from isorun.analysis.mixed.formula import Formula, Term, Variable, term_label
from isorun.errors import InputError

__all__ = ["Block", "CodedTerm", "FixedDesign", "code_terms", "design_of", "indicator", "multiply_out"]

Floats = NDArray[np.float64]
Block = Callable[[Variable, bool], Floats]
"""Gives a variable's coded columns; the flag asks for one column a level instead of contrasts."""

_DEPENDENT = 1e-7
"""R's tolerance: a column whose part not explained by earlier columns is smaller than this share of it is dependent."""


@dataclass(frozen=True, slots=True)
class CodedTerm:
    """A term with, for each of its variables, whether it has one column a level (True) or contrasts (False)."""

    term: Term
    full: tuple[bool, ...]

    @property
    def label(self) -> str:
        """`a:b`; the intercept has R's name for it."""
        return term_label(self.term) if self.term else "(Intercept)"


@dataclass(frozen=True, slots=True)
class FixedDesign:
    """The fixed part of a model.

    matrix = basis @ upper, with orthonormal basis columns; both hold the kept columns only.
    names, owner: of the kept columns; owner is the place of a column's term in `terms`.
    kept, dropped: places among all coded columns; aliases[:, j] writes dropped column j in terms of the kept ones.
    """

    terms: tuple[CodedTerm, ...]
    variables: Mapping[str, Column]
    names: tuple[str, ...]
    owner: NDArray[np.intp]
    basis: Floats
    upper: Floats
    kept: NDArray[np.intp]
    dropped: NDArray[np.intp]
    aliases: Floats
    notes: tuple[str, ...]

    @property
    def rank(self) -> int:
        """The number of fixed coefficients."""
        return len(self.names)


def design_of(formula: Formula, variables: Mapping[str, Column], rows: int) -> FixedDesign:
    """Code the fixed part of `formula` for `rows` rows of `variables`."""
    _check_levels(variables)
    terms = code_terms(formula)

    def block(variable: Variable, full: bool) -> Floats:
        return indicator(variables[variable.label], full)

    matrix = multiply_out(terms, block, rows)
    names = [name for coded in terms for name in _column_names(coded, variables)]
    owner = np.repeat(np.arange(len(terms)), [len(_column_names(coded, variables)) for coded in terms])
    kept, dropped, basis, upper = _independent(matrix)
    if not len(kept):
        raise InputError("every fixed-effects column is zero", found=", ".join(names))
    aliases = solve_triangular(upper, basis.T @ matrix[:, dropped]) if len(dropped) else np.zeros((len(kept), 0))
    return FixedDesign(
        terms=terms,
        variables=variables,
        names=tuple(names[place] for place in kept),
        owner=owner[kept],
        basis=basis,
        upper=upper,
        kept=kept,
        dropped=dropped,
        aliases=aliases,
        notes=_dropped_note([names[place] for place in dropped]),
    )


def code_terms(formula: Formula) -> tuple[CodedTerm, ...]:
    """The terms with R's choice of coding; the intercept, if any, comes first."""
    present = {frozenset(term) for term in formula.terms} | ({frozenset()} if formula.intercept else set())
    intercept = (CodedTerm((), ()),) if formula.intercept else ()
    coded = (
        CodedTerm(term, tuple(frozenset(term) - {variable} not in present for variable in term))
        for term in formula.terms
    )
    return (*intercept, *coded)


def indicator(column: Column, full: bool) -> Floats:
    """The coded columns of a variable: the number itself, or one column a level (without the first if not `full`)."""
    if not isinstance(column, Factor):
        return column[:, None]
    first = 0 if full else 1
    columns = np.zeros((len(column.codes), len(column.levels) - first))
    rows = np.flatnonzero(column.codes >= first)
    columns[rows, column.codes[rows] - first] = 1.0
    return columns


def multiply_out(terms: tuple[CodedTerm, ...], block: Block, rows: int) -> Floats:
    """The columns of all terms side by side; in an interaction the first variable varies fastest."""
    parts: list[Floats] = []
    for coded in terms:
        part = np.ones((rows, 1))
        for variable, full in zip(coded.term, coded.full, strict=True):
            columns = block(variable, full)
            part = (columns[:, :, None] * part[:, None, :]).reshape(rows, -1) if coded.term[0] != variable else columns
        parts.append(np.broadcast_to(part, (rows, part.shape[1])))
    return np.hstack(parts)


def _column_names(coded: CodedTerm, variables: Mapping[str, Column]) -> list[str]:
    if not coded.term:
        return [coded.label]
    names = [""]
    for variable, full in zip(coded.term, coded.full, strict=True):
        column = variables[variable.label]
        levels = column.levels[0 if full else 1 :] if isinstance(column, Factor) else ("",)
        names = [f"{name}:{variable.label}{level}" for level in levels for name in names]
    return [name.removeprefix(":") for name in names]


def _check_levels(variables: Mapping[str, Column]) -> None:
    for label, column in variables.items():
        if isinstance(column, Factor) and len(column.levels) < 2:
            raise InputError(
                f"the factor {label!r} has only one level",
                found=repr(column.levels[0]),
                allowed="two levels or more",
                hint=f"leave {label!r} out of the formula",
            )


def _independent(matrix: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats, Floats]:
    """Kept and dropped columns, and the QR decomposition of the kept ones.

    The diagonal of an unpivoted QR is what remains of each column after the earlier ones. A column is judged against
    the kept columns before it, so after the first dependent one the rest is decomposed again without it.
    """
    sizes = np.linalg.norm(matrix, axis=0)
    kept = np.flatnonzero(sizes > 0.0)
    while True:
        kept = kept[: len(matrix)] if len(kept) > len(matrix) and len(matrix) == 0 else kept
        basis, upper = np.linalg.qr(matrix[:, kept[: len(matrix)]])
        remaining = np.abs(np.diagonal(upper)) / sizes[kept[: len(matrix)]]
        bad = np.flatnonzero(remaining < _DEPENDENT)
        if not len(bad) and len(kept) <= len(matrix):
            break
        kept = np.delete(kept, bad[0] if len(bad) else np.arange(len(matrix), len(kept)))
    dropped = np.setdiff1d(np.arange(matrix.shape[1]), kept)
    return kept, dropped, basis, upper


def _dropped_note(names: list[str]) -> tuple[str, ...]:
    if not names:
        return ()
    return (f"the fixed effects are rank-deficient; left out as in R: {', '.join(names)}",)
