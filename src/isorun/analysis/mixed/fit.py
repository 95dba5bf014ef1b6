"""Fit the variance ratios of a model by REML or ML: what `lmer` does, before any test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isorun.analysis.mixed.columns import Missing, ModelColumns, model_columns
from isorun.analysis.mixed.design import INTERCEPT, FixedDesign, Random, design_of, random_part
from isorun.analysis.mixed.deviance import Criterion, Objective, Point
from isorun.analysis.mixed.formula import Formula, parse_formula
from isorun.analysis.mixed.minimise import minimise
from isorun.analysis.mixed.products import (
    ZERO,
    CrossProducts,
    SlopeProducts,
    cross_products,
    slope_products,
    triangular,
)
from isorun.analysis.mixed.slopes import SlopeObjective, minimise_covariances
from isorun.errors import InputError

__all__ = ["Fit", "FitProblem", "fit_at", "fit_problem", "fit_without", "other_fit", "prepare", "refit", "with_random"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FitProblem:
    """A formula and its data, reduced to what fits need.

    random: the random terms. data: cross-products, of their own kind where there are slopes.
    least_squares: the ordinary least-squares coefficients in X's orthonormal basis, which every fit starts from.
    """

    formula: Formula
    table: ModelColumns
    design: FixedDesign
    random: tuple[Random, ...]
    data: CrossProducts | SlopeProducts
    least_squares: Floats
    notes: tuple[str, ...]

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups of the random terms."""
        return tuple(item.term.group for item in self.random)

    @property
    def parameters(self) -> int:
        """How many variances and covariances the random terms have."""
        return sum(item.width * (item.width + 1) // 2 for item in self.random)


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted model."""

    problem: FitProblem
    objective: Criterion
    point: Point

    @property
    def covariances(self) -> tuple[Floats, ...]:
        """The covariance of each random term's coefficients, of its columns as written."""
        found = zip(self.problem.random, self.point.covariances, strict=True)
        return tuple(self.residual_variance * item.covariance(inner) for item, inner in found)

    @property
    def ratios(self) -> Floats:
        """What each random term adds to the variance of a row, on average over the rows, over the residual variance.

        For an intercept it is the ratio of variances (θ² in lme4's words), exactly zero on the boundary.
        """
        return np.array([np.trace(inner) for inner in self.point.covariances])

    @property
    def deficient(self) -> tuple[Random, ...]:
        """The random terms with a variance of exactly zero, or slopes that follow from each other exactly."""
        found = zip(self.problem.random, self.point.covariances, strict=True)
        return tuple(
            item
            for item, inner in found
            if (inner[0, 0] == 0.0 if len(inner) == 1 else np.linalg.eigvalsh(inner)[0] < ZERO)
        )

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
        """As R's AIC: fixed coefficients, variances and covariances, and the residual variance are counted."""
        return 2.0 * (self.problem.design.rank + self.problem.parameters + 1) - 2.0 * self.log_likelihood

    @property
    def fixed_in_basis(self) -> Floats:
        """The fixed effects in X's orthonormal basis."""
        return self.problem.least_squares + self.point.fixed_effects()

    def in_basis(self, contrasts: Floats) -> Floats:
        """Contrasts of coefficients (a row each) as contrasts of the basis coefficients."""
        return contrasts @ self.problem.design.upper_inverse

    def random_effects(self) -> dict[str, dict[str, float]]:
        """The predicted effect of every level (R's ranef), by group; slopes by group and column, as `g: x`."""
        named: dict[str, dict[str, float]] = {}
        for item, effects in zip(self.problem.random, self.point.random_effects(), strict=True):
            for name, row in zip(item.names, item.outward @ effects, strict=True):
                key = item.term.group if name == INTERCEPT else f"{item.term.group}: {name}"
                named[key] = dict(zip(item.factor.levels, row.tolist(), strict=True))
        return named


def prepare(data: Mapping[str, ArrayLike], formula: str, missing: Missing = "error") -> FitProblem:
    """Parse the formula, check the data and reduce them."""
    parsed = parse_formula(formula)
    return reduced(parsed, model_columns(data, parsed, missing))


def reduced(formula: Formula, table: ModelColumns) -> FitProblem:
    """A formula and its checked columns as a problem."""
    rows = len(table.response)
    random, notes = random_part(formula, table)
    design = design_of(formula, table.variables, rows)
    least_squares = design.basis.T @ table.response
    residual = table.response - design.basis @ least_squares
    notes = table.notes + design.notes + notes
    problem = FitProblem(formula, table, design, random, _products(random, design, residual), least_squares, notes)
    parameters = design.rank + problem.parameters + 1
    if parameters > rows:
        raise InputError("the model has more parameters than rows", found=f"{parameters} parameters, {rows} rows")
    _check_response(formula.response, table.response, residual)
    return problem


def with_random(problem: FitProblem, random: Sequence[Random]) -> FitProblem:
    """The same fixed part and rows with other random terms, of which there must be one."""
    residual = problem.table.response - problem.design.basis @ problem.least_squares
    return replace(problem, random=tuple(random), data=_products(random, problem.design, residual))


def _products(random: Sequence[Random], design: FixedDesign, residual: Floats) -> CrossProducts | SlopeProducts:
    if all(item.is_intercept for item in random):
        return cross_products({item.term.group: item.factor for item in random}, design, residual)
    return slope_products(random, design, residual)


def fit_problem(problem: FitProblem, *, reml: bool = True) -> Fit:
    """Fit all variances and covariances.

    A fit that ends on the boundary may be a local minimum, so it is checked from a second start: equal random and
    residual variances, where lme4 starts.
    """
    data = problem.data
    if isinstance(data, SlopeProducts):
        first = [np.eye(shape.width) * shape.levels * shape.width / data.rows for shape in data.shapes]
        slopes = _slopes_from(problem, first, reml=reml)
        if not slopes.deficient:
            return slopes
        return _better(slopes, _slopes_from(problem, [np.eye(len(item)) for item in first], reml=reml))
    objective, start = Objective(data, reml), _start(data)
    fit = refit(objective, problem, start, start > 0.0)
    if len(start) == 1 or fit.ratios.all():
        return fit
    return _better(fit, refit(objective, problem, np.ones(len(start)), start > 0.0))


def _better(fit: Fit, second: Fit) -> Fit:
    return second if second.objective.value(second.point) < fit.objective.value(fit.point) - 1e-9 else fit


def other_fit(fit: Fit) -> Fit:
    """The fit by ML of a model fitted by REML, and the other way round; the two are close, so it starts from there."""
    problem, reml = fit.problem, not fit.objective.reml
    if isinstance(problem.data, SlopeProducts):
        return _slopes_from(problem, fit.point.covariances, reml=reml)
    return refit(Objective(problem.data, reml), problem, fit.ratios, np.ones(len(fit.ratios), dtype=bool))


def fit_without(fit: Fit, random: Sequence[Random]) -> Fit:
    """Fit again with these random terms alone, which may be none."""
    problem, reml = fit.problem, fit.objective.reml
    if random:
        return fit_problem(with_random(problem, random), reml=reml)
    if isinstance(problem.data, SlopeProducts):
        return fit_at(problem, [np.zeros((item.width, item.width)) for item in problem.random], reml=reml)
    return fit_at(problem, np.zeros(len(problem.random)), reml=reml)


def _slopes_from(problem: FitProblem, start: Sequence[Floats], *, reml: bool) -> Fit:
    assert isinstance(problem.data, SlopeProducts)
    objective = SlopeObjective(problem.data, reml)
    return Fit(problem, objective, minimise_covariances(objective, start))


def _start(data: CrossProducts) -> Floats:
    """A first guess: each term's ratio from its own one-way analysis of variance, and never near the boundary."""
    total, ratios = data.gram[-1, -1], []
    for counts, sums in data.sums_of_response():
        between = float((sums**2 / counts).sum())
        within = (total - between) / (data.rows - len(counts))
        mean_square = between / (len(counts) - 1)
        ratios.append((mean_square / max(within, 1e-12 * mean_square) - 1.0) * len(counts) / data.rows)
    return np.asarray(np.clip(ratios, 1.0 / data.level_counts, 1e4))


def refit(objective: Objective, problem: FitProblem, start: Floats, free: NDArray[np.bool_]) -> Fit:
    """Fit random intercepts from other ratios, or with some terms left out (not `free`)."""
    return Fit(problem, objective, minimise(objective, start, free))


def fit_at(problem: FitProblem, given: Floats | Sequence[Floats], *, reml: bool = True) -> Fit:
    """The model at given variance ratios or, with slopes, relative covariances of the columns as written."""
    point: Point | None
    objective: Criterion
    if isinstance(problem.data, SlopeProducts):
        objective = slopes = SlopeObjective(problem.data, reml)
        inner = [item.inner_covariance(outer) for item, outer in zip(problem.random, given, strict=True)]
        point = slopes.at([triangular(sigma) for sigma in inner])
    else:
        objective = ratios = Objective(problem.data, reml)
        point = ratios.at(np.asarray(given, dtype=np.float64))
    if point is None:
        raise InputError("the model is singular at these variance ratios", found=str(given))
    return Fit(problem, objective, point)


def _check_response(name: str, response: Floats, residual: Floats) -> None:
    if np.ptp(response) == 0.0:
        raise InputError(
            f"the response {name!r} is constant",
            found=f"{response[0]:g} in all {len(response)} rows",
            hint="there is no variance to explain",
        )
    if float(np.linalg.norm(residual)) <= 1e-12 * float(np.linalg.norm(response)):
        raise InputError(f"the fixed effects explain the response {name!r} exactly", hint="there is no noise to model")
