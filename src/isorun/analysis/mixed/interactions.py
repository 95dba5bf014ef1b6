"""Does a group act alike at every level of a fixed factor? A model that takes this for granted may count runs twice.

`y ~ experiment + (1|seed)` says that a seed shifts all experiments by the same amount, so that it cancels from every
difference, and each run of it counts. Where seeds act in each experiment in their own way, it does not cancel: the mean
of an experiment is then known no better than its seeds are many, and the test of the experiment rejects far too often.
The model with `(1|experiment:seed)` holds its error rate either way. It can be had where the design is replicated:
several runs of a seed in an experiment.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from isorun.analysis.mixed.columns import Factor, interaction, levels_of
from isorun.analysis.mixed.fit import Fit, fit_problem, fit_without, with_random
from isorun.analysis.mixed.formula import RandomTerm, Variable
from isorun.analysis.mixed.model import result_of
from isorun.analysis.mixed.random_terms import Random, random_term
from isorun.analysis.mixed.random_tests import boundary_p
from isorun.analysis.mixed.result import DegreesOfFreedom, InteractionTest, MixedResult
from isorun.analysis.mixed.values_as_levels import as_levels
from isorun.errors import InputError

__all__ = ["interaction_tests", "joint_test", "model_that_fits"]


@dataclass(frozen=True, slots=True)
class _Missing:
    """A random effect that the design supports and the model lacks: of `group`, in each level of `factor` its own."""

    factor: Variable
    group: str
    random: Random


def interaction_tests(result: MixedResult) -> tuple[InteractionTest, ...]:
    """Test every interaction of a random intercept with a fixed factor that the model could have and has not."""
    return tuple(_test(result, missing) for missing in _missing(result.fit))


def model_that_fits(result: MixedResult, group: str, ddf: DegreesOfFreedom = "kenward-roger") -> MixedResult | None:
    """The model with the effects of `group` particular to each level of every fixed factor; None if nothing is to add.

    They are in it whether or not a test shows them: with few seeds a test misses what already spoils the error rate.
    Kenward and Roger's degrees of freedom, because Satterthwaite's take a variance estimated as zero for known, and
    reject a little too often with three seeds.
    """
    fit = result.fit
    added = [missing.random for missing in _missing(fit) if missing.group == group]
    if not added:
        return None
    wider = fit_problem(with_random(fit.problem, [*fit.problem.random, *added]), reml=fit.objective.reml)
    text = " + ".join([result.formula, *(random.term.label.replace(" | ", "|") for random in added)])
    formula = replace(
        fit.problem.formula, text=text, random=(*fit.problem.formula.random, *(item.term for item in added))
    )
    named = replace(wider, problem=replace(wider.problem, formula=formula))
    compared = list(dict.fromkeys(row.factor for row in result.means))
    return result_of(named, ddf=ddf, adjust=result.adjust, level=result.level, compare=compared, control=result.control)


def joint_test(result: MixedResult, group: str) -> tuple[float, float, int]:
    """The likelihood ratio of all intercepts of `group`, alone and within levels of a factor; its p and their number.

    Each variance may be at its boundary, so the statistic is a mixture of chi-squares with 0 to k degrees of freedom;
    binomial weights are right for effects that are estimated independently, and cautious for those that compete.
    """
    fit = result.fit
    gone = [item for item in fit.problem.random if item.is_intercept and group in item.term.columns]
    kept = [item for item in fit.problem.random if item not in gone]
    lrt = _ratio(fit, fit_without(fit, kept))
    count = len(gone)
    tails = [math.comb(count, k) / 2.0**count * float(special.chdtrc(k, lrt)) for k in range(1, count + 1)]
    return lrt, math.fsum(tails) if lrt > 0.0 else 1.0, count


def _missing(fit: Fit) -> Iterator[_Missing]:
    problem = fit.problem
    for item in problem.random:
        if not item.is_intercept:
            continue
        for variable in problem.formula.variables:
            if variable.column in item.term.columns or _has_slope(fit, item, variable):
                continue
            column = problem.table.variables[variable.label]
            factor = column if isinstance(column, Factor) else levels_of(column)
            cells = interaction(factor, item.factor)
            if len(item.factor.levels) < len(cells.levels) < problem.data.rows and not _is_there(fit, cells):
                term = RandomTerm((variable.column, *item.term.columns), True, (), "1")
                groups = {**problem.table.groups, term.group: cells}
                yield _Missing(variable, item.term.group, random_term(term, replace(problem.table, groups=groups)))


def _has_slope(fit: Fit, item: Random, variable: Variable) -> bool:
    """Whether the variable's effect varies between the levels of the same group already."""
    same = [other for other in fit.problem.random if set(other.term.columns) == set(item.term.columns)]
    return any(variable.column == used.column for other in same for term in other.term.terms for used in term)


def _is_there(fit: Fit, cells: Factor) -> bool:
    """Whether a random intercept of the model has the same groups under whichever name."""
    for item in fit.problem.random:
        if item.is_intercept and len(item.factor.levels) == len(cells.levels):
            pairs = np.unique(item.factor.codes * len(cells.levels) + cells.codes)
            if len(pairs) == len(cells.levels):
                return True
    return False


def _test(result: MixedResult, missing: _Missing) -> InteractionTest:
    fit, term = result.fit, missing.random.term
    formula = f"{result.formula} + {term.label.replace(' | ', '|')}"
    named = (missing.factor.label, missing.group, term.label)
    try:
        # What a line through numbers leaves unexplained would pass for an interaction; a level for each value does not.
        is_number = not isinstance(fit.problem.table.variables[missing.factor.label], Factor)
        base = as_levels(fit, missing.factor) if is_number else fit
        wider = with_random(base.problem, [*base.problem.random, missing.random])
        lrt = _ratio(fit_problem(wider, reml=fit.objective.reml), base)
    except InputError as error:
        return InteractionTest(*named, None, None, formula, error.what)
    return InteractionTest(*named, lrt, boundary_p(lrt, 1), formula)


def _ratio(wider: Fit, narrower: Fit) -> float:
    return max(0.0, 2.0 * (wider.log_likelihood - narrower.log_likelihood))
