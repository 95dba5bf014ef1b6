"""Which combinations of coefficients answer a question: type III hypotheses and mean differences of factor levels.

Type III hypotheses are built as SAS and lmerTest do, so they equal theirs also where cells are empty. Marginal means
give every level of the other factors the same weight and hold numeric variables at their mean (the middle of two
values), as emmeans does.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from isorun.analysis.mixed.columns import Factor
from isorun.analysis.mixed.design import CodedTerm, FixedDesign, column_names, indicator, multiply_out
from isorun.analysis.mixed.formula import Variable

__all__ = ["estimable", "marginal_means", "pairs", "type_three"]

Floats = NDArray[np.float64]


def type_three(design: FixedDesign) -> dict[str, Floats]:
    """For each fixed term but the intercept, the contrasts (a row each) that are zero if the term has no effect."""
    wider = [_containing(design, place) for place in range(len(design.terms))]
    rows, coded_rows = _generating_rows(design) if any(wider) else (np.eye(design.rank), np.arange(design.rank))
    for place in sorted(range(len(design.terms)), key=lambda place: -len(design.terms[place].term)):
        if wider[place]:
            own = design.owner == place
            rows[:, own] = _residual(rows[:, np.isin(design.owner, wider[place])], rows[:, own])
    hypotheses = {}
    for place, coded in enumerate(design.terms):
        contrasts = rows[coded_rows][:, design.owner == place].T
        contrasts = contrasts[np.abs(contrasts).sum(axis=1) > 1e-8]
        if coded.term and len(contrasts):
            hypotheses[coded.label] = contrasts
    return hypotheses


def _containing(design: FixedDesign, place: int) -> list[int]:
    """The terms that contain this one: more factors, the same numeric variables."""
    term = set(design.terms[place].term)
    if not term:
        return []
    return [
        other
        for other, coded in enumerate(design.terms)
        if term < set(coded.term) and all(_is_factor(design, variable) for variable in set(coded.term) - term)
    ]


def _generating_rows(design: FixedDesign) -> tuple[Floats, NDArray[np.intp]]:
    """Every term with one column a level, each column in terms of the coefficients; and where the coded columns are."""
    overfull = tuple(CodedTerm(coded.term, (True,) * len(coded.term)) for coded in design.terms)

    def block(variable: Variable, full: bool) -> Floats:
        return indicator(design.variables[variable.label], full)

    matrix = multiply_out(overfull, block, len(design.basis))
    names = {name: place for place, name in enumerate(column_names(overfull, design.variables))}
    explained = (design.upper_inverse @ (design.basis.T @ matrix)).T
    return explained, np.array([names[name] for name in design.names], dtype=np.intp)


def _residual(known: Floats, columns: Floats) -> Floats:
    solution = np.linalg.lstsq(known, columns, rcond=1e-7)[0]
    residual: Floats = columns - known @ solution
    return np.where(np.abs(residual) < 1e-10, 0.0, residual)


def _is_factor(design: FixedDesign, variable: Variable) -> bool:
    return isinstance(design.variables[variable.label], Factor)


def marginal_means(design: FixedDesign, chosen: Variable) -> Floats:
    """The mean response at each level of a factor, as rows over all coded columns, dropped ones included."""
    factor = design.variables[chosen.label]
    assert isinstance(factor, Factor)
    levels = len(factor.levels)

    def block(variable: Variable, full: bool) -> Floats:
        column = design.variables[variable.label]
        if not isinstance(column, Factor):
            return np.full((levels, 1), _typical(column))
        coded = np.eye(len(column.levels))[:, 0 if full else 1 :]
        return coded if variable == chosen else np.broadcast_to(coded.mean(axis=0), (levels, coded.shape[1]))

    return multiply_out(design.terms, block, levels)


def _typical(column: Floats) -> float:
    """Where a number is held: its mean; the middle of two values, which emmeans takes for the levels of a factor."""
    values = np.unique(column)
    return float((values if len(values) == 2 else column).mean())


def pairs(levels: int) -> list[tuple[int, int]]:
    """Every pair of levels, first against later."""
    return list(combinations(range(levels), 2))


def estimable(design: FixedDesign, rows: Floats) -> NDArray[np.bool_]:
    """Whether each row over all coded columns means the same whichever dependent columns are left out."""
    gap = rows[:, design.dropped] - rows[:, design.kept] @ design.aliases
    return np.asarray(np.abs(gap).sum(axis=1) < 1e-8 * (1.0 + np.abs(rows).sum(axis=1)))
