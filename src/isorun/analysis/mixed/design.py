"""The fixed-effects design matrix, coded and named as R does by default.

Factors are coded by treatment contrasts against their first level where the term without them is in the model, and by
one column a level where it is not. Columns that depend on earlier ones are left out, as R does, and named.

The random part of a model over its rows: which groups there are, and which columns vary between them.

The columns of a term are replaced by an orthonormal basis of theirs (mean square 1 over the rows), so that a covariate
in milliseconds and one in hours are the same problem; `Random.outward` takes a covariance back to the columns as
written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from isorun.analysis.mixed.columns import Factor, ModelColumns, Regressor
from isorun.analysis.mixed.formula import Formula, RandomTerm, Term, Variable, term_label
from isorun.errors import InputError

__all__ = [
    "INTERCEPT",
    "Block",
    "CodedTerm",
    "FixedDesign",
    "Random",
    "code_terms",
    "coefficient_names",
    "design_of",
    "indicator",
    "multiply_out",
    "random_part",
    "random_term",
]

Floats = NDArray[np.float64]
Block = Callable[[Variable, bool], Floats]
"""Gives a variable's coded columns; the flag asks for one column a level instead of contrasts."""

_DEPENDENT = 1e-7
"""R's tolerance: a column whose part not explained by earlier columns is smaller than this share of it is dependent."""

_CLEARLY_INDEPENDENT = 1e-3


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
    variables: Mapping[str, Regressor]
    names: tuple[str, ...]
    owner: NDArray[np.intp]
    basis: Floats
    upper: Floats
    upper_inverse: Floats
    kept: NDArray[np.intp]
    dropped: NDArray[np.intp]
    aliases: Floats
    notes: tuple[str, ...]

    @property
    def rank(self) -> int:
        """The number of fixed coefficients."""
        return len(self.names)


def design_of(formula: Formula, variables: Mapping[str, Regressor], rows: int) -> FixedDesign:
    """Code the fixed part of `formula` for `rows` rows of `variables`."""
    _check_levels(variables)
    terms = code_terms(formula.intercept, formula.terms)

    def block(variable: Variable, full: bool) -> Floats:
        return indicator(variables[variable.label], full)

    matrix = multiply_out(terms, block, rows)
    names = coefficient_names(terms, variables)
    owner = np.repeat(np.arange(len(terms)), [len(_term_names(coded, variables)) for coded in terms])
    kept, dropped, basis, upper = _independent(matrix)
    if not len(kept):
        raise InputError("every fixed-effects column is zero", found=", ".join(names))
    upper_inverse: Floats = lapack.dtrtri(upper)[0]
    return FixedDesign(
        terms=terms,
        variables=variables,
        names=tuple(names[place] for place in kept),
        owner=owner[kept],
        basis=basis,
        upper=upper,
        kept=kept,
        dropped=dropped,
        upper_inverse=upper_inverse,
        aliases=upper_inverse @ (basis.T @ matrix[:, dropped]),
        notes=_dropped_note([names[place] for place in dropped]),
    )


def code_terms(intercept: bool, terms: tuple[Term, ...]) -> tuple[CodedTerm, ...]:
    """The terms with R's choice of coding; the intercept, if any, comes first."""
    present: set[frozenset[Variable]] = {frozenset(term) for term in terms}
    present |= {frozenset()} if intercept else set()
    first = (CodedTerm((), ()),) if intercept else ()
    coded = (CodedTerm(term, tuple(frozenset(term) - {variable} not in present for variable in term)) for term in terms)
    return (*first, *coded)


def indicator(column: Regressor, full: bool) -> Floats:
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
            part = (columns[:, :, None] * part[:, None, :]).reshape(rows, -1)
        parts.append(part)
    return np.hstack(parts)


def coefficient_names(terms: tuple[CodedTerm, ...], variables: Mapping[str, Regressor]) -> list[str]:
    """R's names of the columns that `multiply_out` makes."""
    return [name for coded in terms for name in _term_names(coded, variables)]


def _term_names(coded: CodedTerm, variables: Mapping[str, Regressor]) -> list[str]:
    if not coded.term:
        return [coded.label]
    names = [""]
    for variable, full in zip(coded.term, coded.full, strict=True):
        column = variables[variable.label]
        levels = column.levels[0 if full else 1 :] if isinstance(column, Factor) else ("",)
        names = [f"{name}:{variable.label}{level}" for level in levels for name in names]
    return [name.removeprefix(":") for name in names]


def _check_levels(variables: Mapping[str, Regressor]) -> None:
    for label, column in variables.items():
        if isinstance(column, Factor) and len(column.levels) < 2:
            raise InputError(
                f"the factor {label!r} has only one level",
                found=repr(column.levels[0]),
                allowed="two levels or more",
                hint=f"leave {label!r} out of the formula",
            )


def _independent(matrix: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats, Floats]:
    """Kept and dropped columns, and the QR decomposition of the kept ones."""
    every = np.arange(matrix.shape[1])
    quick = _well_conditioned_qr(matrix)
    if quick is not None:
        return every, every[:0], *quick
    kept = _first_independent(matrix)
    basis, upper = np.linalg.qr(matrix[:, kept])
    return kept, np.setdiff1d(every, kept), basis, upper


def _well_conditioned_qr(matrix: Floats) -> tuple[Floats, Floats] | None:
    """QR by Cholesky, done twice so that the basis is orthonormal to rounding; None unless clearly of full rank.

    Several times faster than Householder's for the tall, narrow matrices that factors make.
    """
    sizes = np.linalg.norm(matrix, axis=0)
    if matrix.shape[1] > matrix.shape[0] or not sizes.all():
        return None
    basis, upper = matrix / sizes, np.diag(sizes)
    for _ in range(2):
        lower, failed = lapack.dpotrf(basis.T @ basis, lower=1, clean=1)
        if failed or np.diagonal(lower).min() < _CLEARLY_INDEPENDENT:
            return None
        basis = basis @ lapack.dtrtri(lower, lower=1)[0].T
        upper = lower.T @ upper
    return basis, upper


def _first_independent(matrix: Floats) -> NDArray[np.intp]:
    """The columns that are not combinations of the kept columns before them, by Gram-Schmidt done twice."""
    basis = np.zeros((matrix.shape[0], min(matrix.shape)))
    kept: list[int] = []
    for place, column in enumerate(matrix.T):
        known = basis[:, : len(kept)]
        rest = column - known @ (known.T @ column)
        rest = rest - known @ (known.T @ rest)
        size = float(np.linalg.norm(rest))
        if len(kept) < basis.shape[1] and size > _DEPENDENT * float(np.linalg.norm(column)):
            basis[:, len(kept)] = rest / size
            kept.append(place)
    return np.array(kept, dtype=np.intp)


def _dropped_note(names: list[str]) -> tuple[str, ...]:
    if not names:
        return ()
    return (f"the fixed effects are rank-deficient; left out as in R: {', '.join(names)}",)


INTERCEPT = "(Intercept)"


@dataclass(frozen=True, slots=True, eq=False)
class Random:
    """A random term: a coefficient for each level of `factor` and each of `names`, as R names them.

    basis: the columns over the rows, in a basis of mean square 1. outward: q x q, from coefficients of that basis to
    coefficients of the columns as written.
    """

    term: RandomTerm
    factor: Factor
    names: tuple[str, ...]
    basis: Floats
    outward: Floats

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.names)

    @property
    def is_intercept(self) -> bool:
        """Whether it is a random intercept and nothing else."""
        return self.names == (INTERCEPT,)

    def covariance(self, inner: Floats) -> Floats:
        """A covariance of the basis' coefficients as one of the columns' own."""
        outer: Floats = self.outward @ inner @ self.outward.T
        return (outer + outer.T) / 2.0

    def inner_covariance(self, outer: Floats) -> Floats:
        """The reverse of `covariance`."""
        inward = np.linalg.inv(self.outward)
        return np.asarray(inward @ outer @ inward.T)


def random_part(formula: Formula, table: ModelColumns) -> tuple[tuple[Random, ...], tuple[str, ...]]:
    """The random terms of `formula`, and what the reader must be told of them."""
    rows = len(table.response)
    for name, factor in table.groups.items():
        _check_group(name, factor, rows)
    found = [random_term(term, table) for term in formula.random]
    contained = [random for random in found if _contained(random, found)]
    notes = tuple(
        f"{random.term.label} was left out: the levels of another random effect of {random.term.group} contain it"
        for random in contained
    )
    kept = tuple(random for random in found if random not in contained)
    for random in kept:
        _check_size(random, rows)
    return kept, notes


def random_term(term: RandomTerm, table: ModelColumns) -> Random:
    """The rows of one random term."""
    factor, rows = table.groups[term.group], len(table.response)
    coded = code_terms(term.intercept, term.terms)
    if not term.terms:
        return Random(term, factor, (INTERCEPT,), np.ones((rows, 1)), np.eye(1))

    def block(variable: Variable, full: bool) -> Floats:
        return indicator(table.variables[variable.label], full)

    names = coefficient_names(coded, table.variables)
    matrix = multiply_out(coded, block, rows)
    basis, upper = np.linalg.qr(matrix)
    sizes = np.linalg.norm(matrix, axis=0)
    if len(upper) < matrix.shape[1] or (np.abs(np.diagonal(upper)) <= _DEPENDENT * sizes).any():
        raise InputError(f"the columns of the random effect {term.label} depend on each other", found=", ".join(names))
    root = np.sqrt(rows)
    return Random(term, factor, tuple(names), basis * root, np.linalg.inv(upper / root))


def _contained(random: Random, every: Sequence[Random]) -> bool:
    """Whether an intercept is also what the levels of a factor of the same group add up to, as in `(f || g)`."""
    if not random.is_intercept:
        return False
    others = [item.basis for item in every if item is not random and item.term.group == random.term.group]
    if not others:
        return False
    known = np.linalg.qr(np.hstack(others))[0]
    rest = random.basis - known @ (known.T @ random.basis)
    return bool(np.linalg.norm(rest) <= _DEPENDENT * np.linalg.norm(random.basis))


def _check_group(name: str, factor: Factor, rows: int) -> None:
    levels = len(factor.levels)
    if levels < 2:
        raise InputError(
            f"the grouping factor {name!r} has only one level",
            found=repr(factor.levels[0]),
            allowed="two levels or more",
            hint=f"leave (1|{name}) out: one level shows no variance",
        )
    if levels >= rows:
        raise InputError(
            f"the grouping factor {name!r} has as many levels as there are rows",
            found=f"{levels} levels, {rows} rows",
            allowed="fewer levels than rows",
            hint=f"leave (1|{name}) out: it cannot be told from the residual",
        )


def _check_size(random: Random, rows: int) -> None:
    effects = len(random.factor.levels) * random.width
    if effects >= rows:
        raise InputError(
            f"the random effect {random.term.label} has as many coefficients as there are rows",
            found=f"{len(random.factor.levels)} levels x {random.width} columns, {rows} rows",
            allowed="fewer coefficients than rows",
            hint=f"(1 | {random.term.group}), or (x || {random.term.group}) for fewer variances",
        )
