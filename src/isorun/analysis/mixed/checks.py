"""What speaks against a mixed model, and how much evidence its rows are.

Numbers that may be labels: a straight line through few values, against a level for each of them.

Does a group act alike at every level of a fixed factor? A model that takes this for granted may count runs twice.

`y ~ experiment + (1|seed)` says that a seed shifts all experiments by the same amount, so that it cancels from every
difference, and each run of it counts. Where seeds act in each experiment in their own way, it does not cancel: the mean
of an experiment is then known no better than its seeds are many, and the test of the experiment rejects far too often.
The model with `(1|experiment:seed)` holds its error rate either way. It can be had where the design is replicated:
several runs of a seed in an experiment.

What a reader must know before trusting a mixed model: effects it lacks, and numbers that may be labels.

`with_checks` adds to a result the tests and conditions that need further fits. Where one voids the error rate, no
claim about the fixed effects may be made from the model as it is; the condition names the formula to use instead.

How much evidence a model's rows are for its fixed effects: runs, and the seeds that they share.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from scipy import special

from isorun.analysis.evidence import Condition, some
from isorun.analysis.evidence.units import names_seed
from isorun.analysis.mixed.columns import Factor, interaction, levels_of
from isorun.analysis.mixed.degrees_of_freedom import kenward_roger
from isorun.analysis.mixed.design import Random, random_term
from isorun.analysis.mixed.fit import Fit, fit_problem, fit_without, reduced, with_random
from isorun.analysis.mixed.formula import RandomTerm, Variable, parse_formula, with_factor
from isorun.analysis.mixed.model import NO_GAIN, boundary_p, result_of
from isorun.analysis.mixed.result import AnovaRow, DegreesOfFreedom, InteractionTest, MixedResult
from isorun.errors import InputError

__all__ = [
    "Drawn",
    "as_levels",
    "drawn_in",
    "few_values",
    "interaction_tests",
    "joint_test",
    "lack_of_fit",
    "model_that_fits",
    "with_checks",
]

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
    return lrt, math.fsum(tails) if lrt > NO_GAIN else 1.0, count


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


_ALPHA: Final = 0.05


def with_checks(result: MixedResult) -> MixedResult:
    """The result with what was found about its model."""
    interactions = interaction_tests(result)
    numbers = (_number_or_factor(result.fit, *found) for found in few_values(result.fit))
    conditions = (*numbers, *_missing_interactions(interactions, _with_interaction(result)))
    return replace(result, interactions=interactions, conditions=(*conditions, *_notes(result)))


def _notes(result: MixedResult) -> Iterator[Condition]:
    for note in result.notes:
        yield Condition("model", note, "see the model's formula and the data")


def _with_interaction(result: MixedResult) -> set[str]:
    """The columns of fixed factors that have a random effect of their own in the model already."""
    return {column for item in result.fit.problem.random if len(item.term.columns) > 1 for column in item.term.columns}


def _missing_interactions(tests: Sequence[InteractionTest], had: set[str]) -> Iterator[Condition]:
    """One for each that is shown; where none is, one for factors whose effects nothing in the model may vary."""
    shown = [test for test in tests if test.p is not None and test.p < _ALPHA]
    for test in shown:
        yield Condition(
            "interaction-missing",
            f"the effects of {test.group} are particular to each {test.factor} (likelihood-ratio test of {test.term}: "
            f"p {_stated(test.p)}), which this model does not know: its p and intervals of {test.factor} take runs "
            f"that share a {test.group} for independent ones, and reject too often",
            f'use "{_with_all(shown)}" with --ddf kenward-roger',
            (test.factor,),
            voids=True,
        )
    if not shown and (tests := [test for test in tests if test.term.split(":")[0].removeprefix("(1 | ") not in had]):
        named = "; ".join(f"{test.term} {_outcome(test)}" for test in tests)
        factors = tuple(dict.fromkeys(test.factor for test in tests))
        yield Condition(
            "interaction-missing",
            f"the model has no effects particular to each {' or '.join(factors)}, though the data could show them "
            f"({named}); a test that does not show them does not rule them out",
            f'to be safe: "{_with_all(tests)}" with --ddf kenward-roger',
            factors,
        )


def _outcome(test: InteractionTest) -> str:
    return f"could not be tested: {test.why_not}" if test.p is None else f"p {_stated(test.p)}"


def _with_all(tests: Sequence[InteractionTest]) -> str:
    """The formula with the terms of all these tests."""
    added = [test.term.replace(" | ", "|") for test in tests]
    own = tests[0].formula.removesuffix(f" + {added[0]}")
    return " + ".join([own, *added])


def _number_or_factor(fit: Fit, variable: Variable, values: int) -> Condition:
    name, formula = variable.column, with_factor(fit.problem.formula.text, variable.column)
    p = lack_of_fit(fit, variable)
    opening = f"{name} is a number with {values} values, and the model draws a straight line through them"
    if p is None:
        fits = "whether they lie on it could not be tested"
    elif p < _ALPHA:
        fits = f"they do not lie on it (lack of fit: p {_stated(p)}), so its slope and p mislead"
    else:
        fits = f"that they do not lie on it is not shown (lack of fit: p {_stated(p)})"
    ask = f'if the numbers are labels: "{formula}"'
    voids = p is not None and p < _ALPHA
    return Condition(
        "number-or-factor", f"{opening}; {fits}", f'use "{formula}"' if voids else ask, (name,), voids=voids
    )


def _stated(p: float | None) -> str:
    assert p is not None
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


@dataclass(frozen=True, slots=True)
class Drawn:
    """What was drawn: n runs (rows) of `units` seeds; unit: their column. None where no random effect is of seeds."""

    n: int
    units: int | None
    unit: str | None

    def sentence(self, test: AnovaRow) -> str:
        """What the runs count as for one fixed term, as its degrees of freedom say; empty without seeds."""
        if self.unit is None or self.units is None:
            return ""
        what = f"{some(self.n, 'run')} of {some(self.units, self.unit)}"
        df = f"{test.den_df:.1f} degrees of freedom"
        # A term that varies within seeds has at most one error degree of freedom a seed and level.
        if test.den_df <= (test.num_df + 1) * self.units:
            return f"{what} count as {self.units} for {test.term}: its test has {df}."
        return f"{what}: for {test.term} this model counts every run ({df}), as seeds act alike in it."


def drawn_in(result: MixedResult) -> Drawn:
    """Count what was drawn; a random effect of seeds alone tells their number more surely than one within levels."""
    for item in sorted(result.fit.problem.random, key=lambda item: len(item.term.columns)):
        for place, column in enumerate(item.term.columns):
            if names_seed(column):
                parts = [level.split(":") for level in item.factor.levels]
                plain = all(len(part) == len(item.term.columns) for part in parts)
                labels = {part[place] for part in parts} if plain else set(item.factor.levels)
                return Drawn(result.rows, len(labels), column)
    return Drawn(result.rows, None, None)
