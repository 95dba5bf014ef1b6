"""Numbers that may be labels: a straight line through few values, against a level for each of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from isorun.analysis.mixed.columns import Factor, levels_of
from isorun.analysis.mixed.fit import Fit, fit_problem, reduced
from isorun.analysis.mixed.formula import Variable, parse_formula, with_factor
from isorun.analysis.mixed.kenward_roger import kenward_roger
from isorun.errors import InputError

__all__ = ["as_levels", "few_values", "lack_of_fit"]

_FEW = 6
"""A column of numbers with no more values than this may hold labels; two have no choice but to lie on a line."""


def few_values(fit: Fit) -> tuple[tuple[Variable, int], ...]:
    """The numbers of the fixed part with three to six values, each in two rows or more, and how many they have."""
    found = []
    for variable in fit.problem.formula.variables:
        column = fit.problem.table.variables[variable.label]
        if not isinstance(column, Factor):
            values, counts = np.unique(column, return_counts=True)
            if 3 <= len(values) <= _FEW and counts.min() >= 2:
                found.append((variable, len(values)))
    return tuple(found)


def as_levels(fit: Fit, variable: Variable) -> Fit:
    """The model with a level for each value of a number in the fixed part."""
    problem = fit.problem
    column = problem.table.variables[variable.label]
    assert not isinstance(column, Factor)
    variables = {**problem.table.variables, f"factor({variable.column})": levels_of(column)}
    formula = parse_formula(with_factor(problem.formula.text, variable.column))
    return fit_problem(reduced(formula, replace(problem.table, variables=variables)), reml=fit.objective.reml)


def lack_of_fit(fit: Fit, variable: Variable) -> float | None:
    """P of the means at the values of a number not lying on a line, by Kenward and Roger's F test; None if unknown.

    The model with a level for each value contains the line; tested is what it adds.
    """
    try:
        wider = as_levels(fit, variable)
    except InputError:
        return None
    wider = wider if wider.objective.reml else fit_problem(wider.problem)
    shared = wider.problem.design.basis.T @ fit.problem.design.basis
    added = np.linalg.qr(shared, mode="complete")[0][:, shared.shape[1] :].T
    return kenward_roger(wider).f_test(added).p if len(added) else None
