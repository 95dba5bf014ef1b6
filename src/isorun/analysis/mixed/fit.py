"""Fit the variance ratios of a model by REML or ML: what `lmer` does, before any test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isorun.analysis.mixed.columns import Factor, Missing, Table, read_table
from isorun.analysis.mixed.cross_products import CrossProducts, cross_products
from isorun.analysis.mixed.design import FixedDesign, design_of
from isorun.analysis.mixed.deviance import Factored
from isorun.analysis.mixed.formula import Formula, parse_formula
from isorun.analysis.mixed.minimise import minimise
from isorun.analysis.mixed.objective import Objective
from isorun.errors import InputError

__all__ = ["Fit", "Problem", "fit_at", "fit_problem", "prepare", "refit"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Problem:
    """A formula and its data, reduced to what fits need.

    least_squares: the ordinary least-squares coefficients in X's orthonormal basis, which every fit starts from.
    """

    formula: Formula
    table: Table
    design: FixedDesign
    data: CrossProducts
    least_squares: Floats

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the random terms."""
        return tuple(self.table.groups)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader must be told about the data."""
        return self.table.notes + self.design.notes


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted model.

    ratios: variances of the random terms over the residual variance, exactly zero on the boundary.
    """

    problem: Problem
    objective: Objective
    point: Factored

    @property
    def ratios(self) -> Floats:
        """γ = θ² in lme4's words."""
        return self.point.ratios

    @property
    def residual_variance(self) -> float:
        """The residual variance."""
        return self.point.residual_square / self.objective.degrees

    @property
    def log_likelihood(self) -> float:
        """As R's logLik: of the REML criterion if fitted by REML."""
        pivots = np.abs(np.diagonal(self.problem.design.upper))
        basis = 2.0 * float(np.log(pivots).sum()) if self.objective.reml else 0.0
        return -(self.objective.value(self.point) + basis) / 2.0

    @property
    def aic(self) -> float:
        """As R's AIC: fixed coefficients, random variances and the residual variance are counted."""
        return 2.0 * (self.problem.design.rank + len(self.ratios) + 1) - 2.0 * self.log_likelihood

    @property
    def fixed_in_basis(self) -> Floats:
        """The fixed effects in X's orthonormal basis."""
        solution = self.point.coefficients()
        return self.problem.least_squares + solution[self.problem.data.levels :]

    def in_basis(self, contrasts: Floats) -> Floats:
        """Contrasts of coefficients (a row each) as contrasts of the basis coefficients."""
        return contrasts @ self.problem.design.upper_inverse

    def random_effects(self) -> dict[str, dict[str, float]]:
        """The predicted effect of every level (R's ranef)."""
        scores = self.point.scores()
        named = zip(self.problem.table.groups.items(), self.ratios, scores, strict=True)
        return {
            group: dict(zip(factor.levels, (ratio * score).tolist(), strict=True))
            for (group, factor), ratio, score in named
        }


def prepare(data: Mapping[str, ArrayLike], formula: str, missing: Missing = "error") -> Problem:
    """Parse the formula, check the data and reduce them."""
    parsed = parse_formula(formula)
    table = read_table(data, parsed, missing)
    rows = len(table.response)
    for name, factor in table.groups.items():
        _check_group(name, factor, rows)
    design = design_of(parsed, table.variables, rows)
    parameters = design.rank + len(table.groups) + 1
    if parameters > rows:
        raise InputError("the model has more parameters than rows", found=f"{parameters} parameters, {rows} rows")
    least_squares = design.basis.T @ table.response
    residual = table.response - design.basis @ least_squares
    _check_response(parsed.response, table.response, residual)
    return Problem(parsed, table, design, cross_products(table.groups, design, residual), least_squares)


def fit_problem(problem: Problem, *, reml: bool = True) -> Fit:
    """Fit all variance ratios.

    A fit that ends on the boundary may be a local minimum, so it is checked from a second start: equal random and
    residual variances, where lme4 starts.
    """
    objective, start = Objective(problem.data, reml), _start(problem.data)
    fit = refit(objective, problem, start, start > 0.0)
    if len(start) == 1 or fit.ratios.all():
        return fit
    second = refit(objective, problem, np.ones(len(start)), start > 0.0)
    return second if objective.value(second.point) < objective.value(fit.point) - 1e-9 else fit


def _start(data: CrossProducts) -> Floats:
    """A first guess: each term's ratio from its own one-way analysis of variance, and never near the boundary."""
    total, ratios = data.gram[-1, -1], []
    for counts, sums in data.sums_of_response():
        between = float((sums**2 / counts).sum())
        within = (total - between) / (data.rows - len(counts))
        mean_square = between / (len(counts) - 1)
        ratios.append((mean_square / max(within, 1e-12 * mean_square) - 1.0) * len(counts) / data.rows)
    return np.asarray(np.clip(ratios, 1.0 / data.level_counts, 1e4))


def refit(objective: Objective, problem: Problem, start: Floats, free: NDArray[np.bool_]) -> Fit:
    """Fit from other ratios, or with some terms left out (not `free`)."""
    return Fit(problem, objective, minimise(objective, start, free))


def fit_at(problem: Problem, ratios: Floats, *, reml: bool = True) -> Fit:
    """The model at given ratios, nothing optimised."""
    objective = Objective(problem.data, reml)
    point = objective.at(np.asarray(ratios, dtype=np.float64))
    if point is None:
        raise InputError("the model is singular at these variance ratios", found=str(ratios))
    return Fit(problem, objective, point)


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


def _check_response(name: str, response: Floats, residual: Floats) -> None:
    if np.ptp(response) == 0.0:
        raise InputError(
            f"the response {name!r} is constant",
            found=f"{response[0]:g} in all {len(response)} rows",
            hint="there is no variance to explain",
        )
    if float(np.linalg.norm(residual)) <= 1e-12 * float(np.linalg.norm(response)):
        raise InputError(f"the fixed effects explain the response {name!r} exactly", hint="there is no noise to model")
