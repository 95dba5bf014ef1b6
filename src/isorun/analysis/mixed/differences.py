"""Estimated means of the levels of factors and their differences, with intervals that match the adjusted p.

Tukey's and Dunnett's intervals, and Bonferroni's, hold together at their level. Holm's and Benjamini and Hochberg's
tests have no such intervals: there each interval has the level at which its own test was made, so that it leaves out 0
exactly when the adjusted p is below 1 - level; alone it covers at least at its level, all together they do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from isorun.analysis.inputs.multiplicity import CORRECTIONS, adjusted
from isorun.analysis.mixed.columns import Factor
from isorun.analysis.mixed.contrasts import estimable, marginal_means, pairs
from isorun.analysis.mixed.degrees_of_freedom import Contrasts, FixedInference
from isorun.analysis.mixed.fit import Fit
from isorun.analysis.mixed.formula import Variable
from isorun.analysis.mixed.result import Difference, Mean
from isorun.analysis.mixed.simultaneous import LargestT, Tail, TukeyRange, critical_value
from isorun.errors import InputError, known_names

__all__ = ["ADJUSTMENTS", "check_adjustment", "chosen_factors", "differences", "means"]

Floats = NDArray[np.float64]

ADJUSTMENTS: Final = ("tukey", "dunnett", *CORRECTIONS)


def check_adjustment(adjust: str, control: str | None) -> None:
    """Refuse an adjustment that is not known, or that does not go with comparisons against one control."""
    if adjust not in ADJUSTMENTS:
        raise InputError(f"there is no adjustment {adjust!r}", allowed=known_names(adjust, ADJUSTMENTS))
    if adjust == "dunnett" and control is None:
        raise InputError("Dunnett's comparisons are against one control", hint="control=… (--control LABEL) names it")
    if adjust == "tukey" and control is not None:
        raise InputError(
            "Tukey's comparisons are of every pair, not against one control",
            found=f"control {control!r}",
            hint="adjust='dunnett' (--adjust dunnett), or no control",
        )


def chosen_factors(fit: Fit, labels: Sequence[str] | None, control: str | None = None) -> tuple[Variable, ...]:
    """The factors with these labels, or all factors of the fixed part; with a control, those that have this level."""
    problem = fit.problem
    factors = {v.label: v for v in problem.formula.variables if isinstance(problem.table.variables[v.label], Factor)}
    for label in labels or ():
        if label not in factors:
            raise InputError(f"{label!r} is no factor of the fixed effects", allowed=known_names(label, factors))
    chosen = tuple(factors[label] for label in (factors if labels is None else labels))
    if control is None:
        return chosen
    levels = {variable: _factor(fit, variable).levels for variable in chosen}
    if not any(control in known for known in levels.values()):
        every = [level for known in levels.values() for level in known]
        raise InputError(f"there is no level {control!r} to compare with", allowed=known_names(control, every))
    return tuple(variable for variable, known in levels.items() if control in known)


def means(fit: Fit, inference: FixedInference, factor: Variable, *, level: float) -> list[Mean]:
    """The estimated mean of every level of one factor."""
    design = fit.problem.design
    rows = marginal_means(design, factor)
    known = estimable(design, rows)
    tested = inference.contrasts(fit.in_basis(rows[known][:, design.kept]))
    half = tested.half_width(level)
    numbers = np.full((len(rows), 5), np.nan)
    numbers[known] = np.column_stack(
        [tested.estimate, tested.se, tested.df, tested.estimate - half, tested.estimate + half]
    )
    names = _factor(fit, factor).levels
    return [Mean(factor.label, name, *values) for name, values in zip(names, numbers.tolist(), strict=True)]


def differences(
    fit: Fit, inference: FixedInference, factor: Variable, *, level: float, adjust: str, control: str | None = None
) -> list[Difference]:
    """Every pair of levels of one factor, or every level against the control; p is adjusted over these."""
    design, names = fit.problem.design, _factor(fit, factor).levels
    places = np.array(_compared(names, control), dtype=np.intp)
    mean_rows = marginal_means(design, factor)
    rows = mean_rows[places[:, 0]] - mean_rows[places[:, 1]]
    known = estimable(design, rows)
    in_basis = fit.in_basis(rows[known][:, design.kept])
    tested = inference.contrasts(in_basis)
    p, half = _judged(tested, _family(adjust, len(names), inference.covariance, in_basis), adjust, level)
    numbers = np.full((len(rows), 7), np.nan)
    numbers[known] = np.column_stack(
        [tested.estimate, tested.se, tested.df, tested.estimate - half, tested.estimate + half, tested.p, p]
    )
    return [
        Difference(factor.label, names[a], names[b], *values)
        for (a, b), values in zip(places.tolist(), numbers.tolist(), strict=True)
    ]


def _factor(fit: Fit, variable: Variable) -> Factor:
    column = fit.problem.table.variables[variable.label]
    assert isinstance(column, Factor)
    return column


def _compared(names: Sequence[str], control: str | None) -> list[tuple[int, int]]:
    if control is None:
        return pairs(len(names))
    against = names.index(control)
    return [(place, against) for place in range(len(names)) if place != against]


def _family(adjust: str, levels: int, covariance: Floats, rows: Floats) -> Tail | None:
    """The distribution of the largest |t| where the method has one."""
    if adjust == "tukey":
        return TukeyRange(levels).tail
    if adjust == "dunnett" and len(rows):
        products = rows @ covariance @ rows.T
        sd = np.sqrt(np.diagonal(products))
        return LargestT(products / np.outer(sd, sd)).tail
    return None


def _judged(tested: Contrasts, family: Tail | None, adjust: str, level: float) -> tuple[Floats, Floats]:
    """Adjusted p, and half the lengths of the intervals that match them."""
    if family is not None:
        cases = list(zip(np.abs(tested.t).tolist(), tested.df.round(9).tolist(), strict=True))
        critical = {df: critical_value(family, level, df) for _, df in cases}
        p = np.array([family(t, df) for t, df in cases])
        return p, tested.se * np.array([critical[df] for _, df in cases])
    if adjust not in CORRECTIONS:
        return tested.p, tested.half_width(level)
    p = adjusted(tested.p, adjust)
    # How many times smaller than 1 - level the level of each one's own test is; a p of zero is the first of all.
    times = np.where(tested.p > 0.0, p / np.where(tested.p > 0.0, tested.p, 1.0), float(len(p)))
    if adjust == "bonferroni":
        times = np.full(len(p), float(len(p)))
    return p, np.asarray(-special.stdtrit(tested.df, (1.0 - level) / times / 2.0) * tested.se)
