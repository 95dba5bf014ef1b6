"""The likelihood-ratio test of every random effect, as lmerTest's ranova.

A random intercept is left out; of slopes, each term that no other contains is taken away and the rest of its random
effect stays, so that `(x | g)` is tested against `(1 | g)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy import special

from isorun.analysis.mixed.cross_products import CrossProducts
from isorun.analysis.mixed.fit import Fit, fit_without, refit
from isorun.analysis.mixed.formula import RandomTerm, Term, term_label
from isorun.analysis.mixed.objective import Objective
from isorun.analysis.mixed.random_terms import Random, random_term
from isorun.analysis.mixed.result import RanovaRow

__all__ = ["boundary_p", "ranova"]


def ranova(fit: Fit) -> list[RanovaRow]:
    """Leave out each random effect in turn and fit the others again."""
    data = fit.problem.data
    if isinstance(data, CrossProducts):
        return [_intercept_test(fit, data, place) for place in range(len(fit.ratios))]
    return [row for place, item in enumerate(fit.problem.random) for row in _slope_tests(fit, place, item)]


def boundary_p(lrt: float, df: int) -> float:
    """P of a statistic that is zero half of the time under the null.

    A variance cannot be negative. One of df parameters being a variance, the others covariances with it, the mixture of
    chi-square(df - 1) and chi-square(df) is right (Stram and Lee 1994).
    """
    if lrt <= 0.0 or df < 1:
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
