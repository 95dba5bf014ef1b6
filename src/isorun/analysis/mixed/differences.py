"""Which combinations of coefficients answer a question: type III hypotheses and mean differences of factor levels.

Type III hypotheses are built as SAS and lmerTest do, so they equal theirs also where cells are empty. Marginal means
give every level of the other factors the same weight and hold numeric variables at their mean (the middle of two
values), as emmeans does.

Tests and intervals of several differences at once: Tukey's (every pair) and Dunnett's (all against one control).

Tukey: the largest of |t| over all pairs of k means with equal standard errors is a studentised range over sqrt(2); for
unequal ones it is conservative (Kramer 1956, Hayter 1984). Dunnett (1955): the largest |t| against the control is
multivariate t; correlations that come from one common factor, as in balanced designs, need one integral over it, others
Genz's transformation (1992) on a lattice, which is deterministic and right to about four digits of probability.

Estimated means of the levels of factors and their differences, with intervals that match the adjusted p.

Tukey's and Dunnett's intervals, and Bonferroni's, hold together at their level. Holm's and Benjamini and Hochberg's
tests have no such intervals: there each interval has the level at which its own test was made, so that it leaves out 0
exactly when the adjusted p is below 1 - level; alone it covers at least at its level, all together they do not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from isorun.analysis.mixed.columns import Factor
from isorun.analysis.mixed.degrees_of_freedom import Contrasts, FixedInference
from isorun.analysis.mixed.design import CodedTerm, FixedDesign, coefficient_names, indicator, multiply_out
from isorun.analysis.mixed.fit import Fit
from isorun.analysis.mixed.formula import Variable
from isorun.analysis.mixed.result import Difference, Mean
from isorun.analysis.samples import CORRECTIONS, adjusted
from isorun.errors import InputError, known_names

__all__ = [
    "ADJUSTMENTS",
    "LargestT",
    "TukeyRange",
    "check_adjustment",
    "chosen_factors",
    "critical_value",
    "differences",
    "estimable",
    "marginal_means",
    "means",
    "pairs",
    "type_three",
]

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
    names = {name: place for place, name in enumerate(coefficient_names(overfull, design.variables))}
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


Tail = Callable[[float, float], float]
"""P(the largest |t| exceeds t), by t and degrees of freedom."""

_KNOWN_SPREAD: Final = 1e6
"""Degrees of freedom above which the standard error counts as known."""
_LATTICE: Final = 20_011
_PRIMES: Final = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97)


def critical_value(tail: Tail, level: float, df: float) -> float:
    """The t that the largest |t| exceeds with probability 1 - level."""
    alpha = 1.0 - level
    low, high = 0.0, 4.0
    while tail(high, df) > alpha:
        low, high = high, 2.0 * high
    return float(optimize.brentq(lambda t: tail(t, df) - alpha, low, high, xtol=1e-10))


@dataclass(frozen=True, slots=True)
class TukeyRange:
    """The largest |t| over all pairs of `means` means."""

    means: int

    def tail(self, t: float, df: float) -> float:
        """P(largest > t): R's `ptukey(sqrt(2) * t, means, df, lower.tail = FALSE)`."""
        if self.means == 2:
            return float(2.0 * special.stdtr(df, -t))
        spread, weights = _spread(df)
        return float(weights @ self._normal_tail(np.sqrt(2.0) * t * spread))

    def _normal_tail(self, widths: Floats) -> Floats:
        """P(range of standard normals > w) = 1 - k ∫ φ(z) (Φ(z) - Φ(z - w))^(k - 1) dz."""
        z, weights = _panels(-8.5, 8.5, 3)
        inside = special.ndtr(z) - special.ndtr(z - widths[:, None])
        density = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
        below = self.means * (inside ** (self.means - 1)) @ (weights * density)
        return np.asarray(np.clip(1.0 - below, 0.0, 1.0))


@dataclass(frozen=True, slots=True, eq=False)
class LargestT:
    """The largest |t| of several t with these correlations."""

    correlation: Floats

    def tail(self, t: float, df: float) -> float:
        """P(largest > t), never below that of one t nor above the sum over all."""
        one = float(2.0 * special.stdtr(df, -t))
        count = len(self.correlation)
        if count == 1:
            return one
        loadings = _one_factor(self.correlation)
        found = self._by_lattice(t, df) if loadings is None else _by_factor(loadings, t, df)
        return float(np.clip(found, one, min(1.0, count * one)))

    def _by_lattice(self, t: float, df: float) -> float:
        lower = np.linalg.cholesky(self.correlation + 1e-12 * np.eye(len(self.correlation)))
        points = _lattice(len(lower) + 1)
        spread = _root_of_chi_square(points[0], df)
        inside, chosen = np.ones(points.shape[1]), np.zeros((len(lower), points.shape[1]))
        for place, row in enumerate(lower):
            given = row[:place] @ chosen[:place]
            low = special.ndtr((-t * spread - given) / row[place])
            width = special.ndtr((t * spread - given) / row[place]) - low
            inside *= width
            chosen[place] = special.ndtri(np.clip(low + points[place + 1] * width, 1e-16, 1.0 - 1e-16))
        return float(1.0 - inside.mean())


def _by_factor(loadings: Floats, t: float, df: float) -> float:
    spread, by_spread = _spread(df)
    z, by_factor = _panels(-8.5, 8.5, 3)
    density = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
    inside = np.ones((len(spread), len(z)))
    for loading in loadings.tolist():
        own = np.sqrt(1.0 - loading**2)
        centre, reach = loading * z / own, (t * spread / own)[:, None]
        inside *= special.ndtr(reach - centre) - special.ndtr(-reach - centre)
    return float(1.0 - by_spread @ inside @ (by_factor * density))


def _one_factor(correlation: Floats) -> Floats | None:
    """Loadings l with correlations l_i l_j, where there are any below 1."""
    count = len(correlation)
    off = correlation[~np.eye(count, dtype=bool)]
    if (off <= 0.0).any():
        return None
    logs = np.log(correlation)
    np.fill_diagonal(logs, 0.0)
    if count == 2:
        loadings = np.full(2, np.sqrt(correlation[0, 1]))
    else:
        # log r_ij = a_i + a_j, summed over j: (count - 2) a_i + the sum of all a.
        sums = logs.sum(axis=1)
        loadings = np.exp((sums - sums.sum() / (2.0 * (count - 1))) / (count - 2))
    fitted = np.outer(loadings, loadings)
    np.fill_diagonal(fitted, 1.0)
    return loadings if loadings.max() < 1.0 - 1e-9 and np.abs(fitted - correlation).max() < 1e-7 else None


@lru_cache(maxsize=64)
def _spread(df: float) -> tuple[Floats, Floats]:
    """Places and weights for the distribution of an estimated standard deviation over the true one."""
    if df > _KNOWN_SPREAD:
        return np.ones(1), np.ones(1)
    low, high = _root_of_chi_square(np.array([1e-15, 1.0 - 1e-15]), df)
    s, weights = _panels(float(low), float(high), 4)
    log_density = np.log(2.0) + df / 2.0 * np.log(df / 2.0) - special.gammaln(df / 2.0)
    log_density = log_density + (df - 1.0) * np.log(s) - df * s**2 / 2.0
    return s, weights * np.exp(log_density)


def _root_of_chi_square(probability: Floats, df: float) -> Floats:
    if df > _KNOWN_SPREAD:
        return np.ones(len(probability))
    return np.asarray(np.sqrt(2.0 * special.gammaincinv(df / 2.0, probability) / df))


@lru_cache(maxsize=64)
def _panels(low: float, high: float, count: int) -> tuple[Floats, Floats]:
    """Gauss and Legendre's places and weights over equal panels."""
    places, weights = np.polynomial.legendre.leggauss(40)
    ends = np.linspace(low, high, count + 1)
    half = (high - low) / (2.0 * count)
    middle = (ends[:-1] + ends[1:]) / 2.0
    return (middle[:, None] + half * places).ravel(), np.tile(half * weights, count)


@lru_cache(maxsize=64)
def _lattice(dimensions: int) -> Floats:
    """Richtmyer's lattice, folded so that its ends meet; each row a dimension."""
    roots = np.sqrt(np.resize(np.array(_PRIMES, dtype=np.float64), dimensions))
    roots = roots * (1.0 + np.arange(dimensions) // len(_PRIMES))
    points = np.outer(roots, np.arange(1, _LATTICE + 1)) % 1.0
    return np.asarray(np.abs(2.0 * points - 1.0))


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
