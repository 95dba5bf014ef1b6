"""Pairwise mean differences of the levels of factors, with intervals and adjusted p."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from isorun.analysis.inputs.multiplicity import adjusted
from isorun.analysis.mixed.columns import Factor
from isorun.analysis.mixed.contrasts import estimable, marginal_means, pairs
from isorun.analysis.mixed.degrees_of_freedom import FixedInference
from isorun.analysis.mixed.fit import Fit
from isorun.analysis.mixed.formula import Variable
from isorun.analysis.mixed.result import Difference
from isorun.errors import InputError, known_names

__all__ = ["chosen_factors", "differences"]

Floats = NDArray[np.float64]


def chosen_factors(fit: Fit, labels: Sequence[str] | None) -> tuple[Variable, ...]:
    """The factors with these labels, or all factors of the fixed part."""
    problem = fit.problem
    factors = {v.label: v for v in problem.formula.variables if isinstance(problem.table.variables[v.label], Factor)}
    for label in labels or ():
        if label not in factors:
            raise InputError(f"{label!r} is no factor of the fixed effects", allowed=known_names(label, factors))
    return tuple(factors[label] for label in (factors if labels is None else labels))


def differences(
    fit: Fit, inference: FixedInference, factor: Variable, *, level: float, adjust: str
) -> list[Difference]:
    """Every pair of levels of one factor; p is adjusted over these pairs."""
    column = fit.problem.table.variables[factor.label]
    assert isinstance(column, Factor)
    design = fit.problem.design
    places = np.array(pairs(len(column.levels)), dtype=np.intp)
    means = marginal_means(design, factor)
    rows = means[places[:, 0]] - means[places[:, 1]]
    known = estimable(design, rows)
    tested = inference.contrasts(fit.in_basis(rows[known][:, design.kept]))
    half = tested.half_width(level)
    numbers = np.full((len(rows), 7), np.nan)
    numbers[known, :6] = np.column_stack(
        [tested.estimate, tested.se, tested.df, tested.estimate - half, tested.estimate + half, tested.p]
    )
    numbers[:, 6] = adjusted(numbers[:, 5], adjust)
    names = column.levels
    return [
        Difference(factor.label, names[a], names[b], *values)
        for (a, b), values in zip(places.tolist(), numbers.tolist(), strict=True)
    ]
