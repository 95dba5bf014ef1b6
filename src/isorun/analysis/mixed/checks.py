"""What a reader must know before trusting a mixed model: effects it lacks, and numbers that may be labels.

`checked` adds to a result the tests and conditions that need further fits. Where a condition voids the error rate, no
claim about the fixed effects may be made from the model as it is; the condition names the formula to use instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from isorun.analysis.evidence.condition import Condition
from isorun.analysis.mixed.fit import Fit
from isorun.analysis.mixed.formula import Variable, with_factor
from isorun.analysis.mixed.interactions import interaction_tests
from isorun.analysis.mixed.result import InteractionTest, MixedResult
from isorun.analysis.mixed.values_as_levels import few_values, lack_of_fit

__all__ = ["checked"]

_ALPHA: Final = 0.05


def checked(result: MixedResult) -> MixedResult:
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
