"""The random part of a model over its rows: which groups there are, and which columns vary between them.

The columns of a term are replaced by an orthonormal basis of theirs (mean square 1 over the rows), so that a covariate
in milliseconds and one in hours are the same problem; `Random.outward` takes a covariance back to the columns as
written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isorun.analysis.mixed.columns import Factor, Table
from isorun.analysis.mixed.design import code_terms, column_names, indicator, multiply_out
from isorun.analysis.mixed.formula import Formula, RandomTerm, Variable
from isorun.errors import InputError

__all__ = ["INTERCEPT", "Random", "random_part", "random_term"]

Floats = NDArray[np.float64]

INTERCEPT = "(Intercept)"
_DEPENDENT = 1e-7


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


def random_part(formula: Formula, table: Table) -> tuple[tuple[Random, ...], tuple[str, ...]]:
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


def random_term(term: RandomTerm, table: Table) -> Random:
    """The rows of one random term."""
    factor, rows = table.groups[term.group], len(table.response)
    coded = code_terms(term.intercept, term.terms)
    if not term.terms:
        return Random(term, factor, (INTERCEPT,), np.ones((rows, 1)), np.eye(1))

    def block(variable: Variable, full: bool) -> Floats:
        return indicator(table.variables[variable.label], full)

    names = column_names(coded, table.variables)
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
