"""The mixed model from a table to its result, with the tests of its random effects.

The likelihood-ratio test of every random effect, as lmerTest's ranova.

A random intercept is left out; of slopes, each term that no other contains is taken away and the rest of its random
effect stays, so that `(x | g)` is tested against `(1 | g)`.

The mixed model from a table to its result: fit, test, compare.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from isorun.analysis.mixed.columns import Missing
from isorun.analysis.mixed.degrees_of_freedom import FixedInference, kenward_roger, satterthwaite
from isorun.analysis.mixed.design import Random, random_term
from isorun.analysis.mixed.deviance import Objective
from isorun.analysis.mixed.differences import check_adjustment, chosen_factors, means, type_three
from isorun.analysis.mixed.differences import differences as factor_differences
from isorun.analysis.mixed.fit import Fit, fit_problem, fit_without, other_fit, prepare, refit
from isorun.analysis.mixed.formula import RandomTerm, Term, term_label
from isorun.analysis.mixed.products import CrossProducts
from isorun.analysis.mixed.result import (
    AnovaRow,
    DegreesOfFreedom,
    EffectCorrelation,
    FixedEffect,
    MixedResult,
    RandomEffect,
    RanovaRow,
)
from isorun.errors import InputError, known_names

__all__ = ["NO_GAIN", "DegreesOfFreedom", "boundary_p", "mixed_model", "ranova", "result_of"]


def ranova(fit: Fit) -> list[RanovaRow]:
    """Leave out each random effect in turn and fit the others again."""
    data = fit.problem.data
    if isinstance(data, CrossProducts):
        return [_intercept_test(fit, data, place) for place in range(len(fit.ratios))]
    return [row for place, item in enumerate(fit.problem.random) for row in _slope_tests(fit, place, item)]


# Two fits that are equal differ by rounding, which must not decide between p = 1 and p = 0.5.
NO_GAIN: Final = 1e-9


def boundary_p(lrt: float, df: int) -> float:
    """P of a statistic that is zero half of the time under the null.

    A variance cannot be negative. One of df parameters being a variance, the others covariances with it, the mixture of
    chi-square(df - 1) and chi-square(df) is right (Stram and Lee 1994).
    """
    if lrt <= NO_GAIN or df < 1:
        return 1.0
    fewer = float(special.chdtrc(df - 1, lrt)) if df > 1 else 0.0
    return (fewer + float(special.chdtrc(df, lrt))) / 2.0


def _intercept_test(fit: Fit, data: CrossProducts, place: int) -> RanovaRow:
    """Leaving out an effect is fixing its ratio at zero; where it is zero already there is nothing to fit.

    Its variance mostly goes to the residual, which tells where to start.
    """
    term = fit.problem.random[place].term
    free = np.arange(len(fit.ratios)) != place
    if fit.ratios[place] == 0.0:
        return RanovaRow(term.label, 0.0, 1, 1.0, 1.0, term.group)
    start = fit.ratios / (1.0 + fit.ratios[place])
    return _row(fit, refit(Objective(data, fit.objective.reml), fit.problem, start, free), term.label, 1, term.group)


def _slope_tests(fit: Fit, place: int, item: Random) -> Iterator[RanovaRow]:
    problem, term = fit.problem, item.term
    others = [other for at, other in enumerate(problem.random) if at != place]
    if item.is_intercept:
        yield _row(fit, fit_without(fit, others), term.label, 1, term.group)
        return
    for gone in _droppable(term):
        smaller = _smaller(fit, item, gone)
        known = {(other.term.group, other.names) for other in others}
        kept = [] if smaller is None or (smaller.term.group, smaller.names) in known else [smaller]
        without = fit_without(fit, [*others[:place], *kept, *others[place:]])
        df = problem.parameters - sum(part.width * (part.width + 1) // 2 for part in [*others, *kept])
        yield _row(fit, without, f"{term_label(gone)} in {term.label}", df, term.group)


def _droppable(term: RandomTerm) -> list[Term]:
    """The terms that are not part of another."""
    return [one for one in term.terms if not any(set(one) < set(other) for other in term.terms)]


def _smaller(fit: Fit, item: Random, gone: Term) -> Random | None:
    """The random effect without one of its terms; an intercept where the columns contain one, else nothing."""
    term = item.term
    rest = tuple(other for other in term.terms if other != gone)
    if rest:
        written = " + ".join(["1" if term.intercept else "0", *map(term_label, rest)])
        return random_term(replace(term, terms=rest, written=written), fit.problem.table)
    ones = np.ones(len(item.basis))
    explained = item.basis @ (item.basis.T @ ones) / len(ones)
    if not np.allclose(explained, ones, atol=1e-7):
        return None
    return random_term(RandomTerm(term.columns, True, (), "1"), fit.problem.table)


def _row(fit: Fit, without: Fit, label: str, df: int, group: str) -> RanovaRow:
    lrt = max(0.0, 2.0 * (fit.log_likelihood - without.log_likelihood))
    return RanovaRow(label, lrt, df, float(special.chdtrc(df, lrt)), boundary_p(lrt, df), group)


_METHODS: Final = ("satterthwaite", "kenward-roger")


def mixed_model(
    data: Mapping[str, ArrayLike],
    formula: str,
    *,
    reml: bool = True,
    ddf: DegreesOfFreedom = "satterthwaite",
    adjust: str = "holm",
    level: float = 0.95,
    differences: Sequence[str] | None = None,
    control: str | None = None,
    missing: Missing = "error",
) -> MixedResult:
    """Fit a linear mixed model with random intercepts and slopes, and test it.

    data: columns by name, equally long; text columns are factors, numbers are numbers (`factor(x)` makes levels of
    them).
    formula: as in R, such as `accuracy ~ experiment + (1|seed) + (1|repeat)`.
    reml: restricted maximum likelihood, or maximum likelihood for estimates and Satterthwaite's tests.
    ddf: the degrees of freedom of F tests and differences; the coefficients have both.
    differences: the factors whose levels are compared, all by default; p and intervals are adjusted within each.
    adjust: "tukey", "dunnett" (against `control`), "holm", "bonferroni", "bh" or "none". control: the level that all
    others are compared with; without it every pair is.
    missing: "error", or "drop" for rows with missing or infinite values.
    """
    _check_choices(ddf, level)
    check_adjustment(adjust, control)
    return result_of(
        fit_problem(prepare(data, formula, missing), reml=reml),
        ddf=ddf,
        adjust=adjust,
        level=level,
        compare=differences,
        control=control,
    )


def result_of(
    fit: Fit,
    *,
    ddf: DegreesOfFreedom,
    adjust: str,
    level: float,
    compare: Sequence[str] | None,
    control: str | None = None,
) -> MixedResult:
    """Every test of a fit."""
    problem = fit.problem
    by_reml, by_ml = (fit, other_fit(fit)) if fit.objective.reml else (other_fit(fit), fit)
    observed, expected = satterthwaite(fit), kenward_roger(by_reml)
    inference = observed if ddf == "satterthwaite" else expected
    rows = [
        row
        for factor in chosen_factors(fit, compare, control)
        for row in factor_differences(fit, inference, factor, level=level, adjust=adjust, control=control)
    ]
    averages = [row for factor in chosen_factors(fit, compare) for row in means(fit, inference, factor, level=level)]
    return MixedResult(
        formula=problem.formula.text,
        reml=fit.objective.reml,
        ddf=ddf,
        adjust=adjust,
        control=control,
        level=level,
        rows=problem.data.rows,
        loglik_reml=by_reml.log_likelihood,
        loglik_ml=by_ml.log_likelihood,
        aic=fit.aic,
        fixed=_fixed_effects(fit, observed, expected),
        random=_random_effects(fit),
        correlations=_correlations(fit),
        residual_sd=float(np.sqrt(fit.residual_variance)),
        singular=bool(fit.deficient),
        ranova=tuple(ranova(fit)),
        anova=_anova(fit, inference),
        means=tuple(averages),
        differences=tuple(rows),
        random_effects=fit.random_effects(),
        notes=problem.notes + _notes(fit, unknown=sum(np.isnan(row.estimate) for row in rows)),
        fit=fit,
    )


def _fixed_effects(fit: Fit, observed: FixedInference, expected: FixedInference) -> tuple[FixedEffect, ...]:
    names = fit.problem.design.names
    rows = fit.in_basis(np.eye(len(names)))
    plain, adjusted = observed.contrasts(rows), expected.contrasts(rows)
    columns = (plain.estimate, plain.se, plain.t, plain.df, plain.p, adjusted.se, adjusted.df, adjusted.p)
    return tuple(
        FixedEffect(name, *values) for name, values in zip(names, np.column_stack(columns).tolist(), strict=True)
    )


def _random_effects(fit: Fit) -> tuple[RandomEffect, ...]:
    return tuple(
        RandomEffect(item.term.group, variance, variance**0.5, name)
        for item, covariance in zip(fit.problem.random, fit.covariances, strict=True)
        for name, variance in zip(item.names, np.maximum(np.diagonal(covariance), 0.0).tolist(), strict=True)
    )


def _correlations(fit: Fit) -> tuple[EffectCorrelation, ...]:
    found = []
    for item, covariance in zip(fit.problem.random, fit.covariances, strict=True):
        sd = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
        for a, b in combinations(range(item.width), 2):
            known = sd[a] > 0.0 and sd[b] > 0.0
            value = float(np.clip(covariance[a, b] / (sd[a] * sd[b]), -1.0, 1.0)) if known else float("nan")
            found.append(EffectCorrelation(item.term.group, item.names[a], item.names[b], value))
    return tuple(found)


def _anova(fit: Fit, inference: FixedInference) -> tuple[AnovaRow, ...]:
    rows = []
    for term, contrasts in type_three(fit.problem.design).items():
        test = inference.f_test(fit.in_basis(contrasts))
        mean_square = test.wald * fit.residual_variance
        rows.append(AnovaRow(term, mean_square * test.num_df, mean_square, test.num_df, test.den_df, test.f, test.p))
    return tuple(rows)


def _notes(fit: Fit, *, unknown: int) -> tuple[str, ...]:
    zero = [item.term.group for item in fit.deficient if item.is_intercept]
    notes = [f"the fit is singular: the variance of {', '.join(zero)} is estimated as exactly zero"] if zero else []
    bound = [item.term.label for item in fit.deficient if not item.is_intercept]
    notes += [f"the fit is singular: the coefficients of {', '.join(bound)} follow from fewer of them"] if bound else []
    notes += [f"{unknown} differences cannot be estimated because of empty cells"] if unknown else []
    return tuple(notes)


def _check_choices(ddf: str, level: float) -> None:
    if ddf not in _METHODS:
        raise InputError(f"there is no method {ddf!r} for degrees of freedom", allowed=known_names(ddf, _METHODS))
    if not 0.0 < level < 1.0:
        raise InputError("the confidence level is out of range", found=f"{level}", allowed="between 0 and 1, as 0.95")
