"""H1, H2 and H3 as verdicts, by the paper's own rule and by a rule that holds its error rate.

The paper's rule: chi-square p of the likelihood-ratio tests, and plain p of six comparisons, each against .05. Six
plain tests at .05 raise a false alarm about once in four studies without any difference, and a variance cannot be
negative; so the second rule corrects the p of reruns by Holm's method and the p of variances for their boundary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from isorun.analysis.inputs.multiplicity import adjusted
from isorun.analysis.mixed.result import RanovaRow
from isorun.report.numbers import count, p_value, significant
from isorun.zoo.studies.fewshot.models import PaperModel
from isorun.zoo.studies.fewshot.published import REJECTED, TABLE_1, TABLE_2

__all__ = ["ALPHA", "STATEMENTS", "TESTS", "Judgement", "judge", "published_judgements", "stated_p"]

ALPHA: Final = 0.05
STATEMENTS: Final = {
    "H1": "with config and seed fixed, repeating a training changes nothing that a model can see",
    "H2": "with the config fixed, another seed changes nothing that a model can see",
    "H3": "carrying out a whole experiment again gives the same mean accuracy",
}
TESTS: Final = {
    "H1": "likelihood ratio: variance of repeats is zero",
    "H2": "likelihood ratio: variance of seeds is zero",
    "H3": "t tests: round 1 minus round 2 of each experiment is zero",
}


@dataclass(frozen=True, slots=True)
class Judgement:
    """One hypothesis. p, rejected: by the paper's rule; p_corrected, rejected_corrected: by the rule that holds .05.

    All four are None where the runs allow no test, and `words` says why.
    """

    name: str
    p: float | None
    rejected: bool | None
    p_corrected: float | None
    rejected_corrected: bool | None
    words: str

    @property
    def sentence(self) -> str:
        """Statement, decision and reason in one sentence."""
        return f"{self.name} ({STATEMENTS[self.name]}) {self.words}."


def judge(model: PaperModel, experiments: Sequence[str]) -> tuple[Judgement, ...]:
    """The three hypotheses from the fitted model; experiments: those whose rounds are compared."""
    if model.result is None:
        return tuple(_untested(name, f"there is no model: {model.why_not}") for name in STATEMENTS)
    tests = {row.term: row for row in model.result.ranova}
    return (
        _variance("H1", tests.get("(1 | repeat)"), "repeats"),
        _variance("H2", tests.get("(1 | seed)"), "seeds"),
        _reruns(model, experiments),
    )


def published_judgements() -> tuple[Judgement, ...]:
    """The same two rules on the paper's own numbers."""
    by_effect = {row.effect: row.p for row in TABLE_1}
    rows = [_decided(name, by_effect[effect], by_effect[effect], "") for name, effect in _EFFECTS.items()]
    plain = [row.p for row in TABLE_2.values()]
    rows.append(_decided("H3", min(plain), float(adjusted(plain).min()), ""))
    assert {row.name: row.rejected for row in rows} == REJECTED
    return tuple(rows)


def stated_p(p: float | None) -> str:
    """As it stands in a sentence: p = 0.123, or p < 0.001 below that."""
    text = p_value(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


_EFFECTS: Final = {"H1": "(1 | repeat)", "H2": "(1 | seed)"}


def _variance(name: str, test: RanovaRow | None, what: str) -> Judgement:
    if test is None:
        return _untested(name, f"there is only one of the {what}")
    shown = f"likelihood ratio {significant(test.lrt)}, {stated_p(test.p)}"
    rejected = test.p < ALPHA
    words = f"is rejected: results vary with {what} ({shown})" if rejected else f"is not rejected ({shown})"
    return _decided(name, test.p, test.p_boundary, words)


def _reruns(model: PaperModel, experiments: Sequence[str]) -> Judgement:
    known = {name: row for name in experiments if (row := model.rerun(name)) is not None}
    if not known:
        return _untested("H3", "no experiment has runs in both rounds")
    plain = [row.p for row in known.values()]
    corrected = float(adjusted(plain).min())
    differing = [name for name, row in known.items() if row.p < ALPHA]
    compared = count(len(known), "experiment")
    if differing:
        words = f"is rejected: the rounds of {', '.join(differing)} differ, of {compared}"
    else:
        words = f"is not rejected: the rounds differ in none of {compared}"
    size = f"smallest {stated_p(min(plain))}; after Holm's correction {stated_p(corrected)}"
    return _decided("H3", min(plain), corrected, f"{words} ({size})")


def _decided(name: str, p: float | None, corrected: float | None, words: str) -> Judgement:
    assert p is not None
    assert corrected is not None
    return Judgement(name, p, p < ALPHA, corrected, corrected < ALPHA, words)


def _untested(name: str, reason: str) -> Judgement:
    return Judgement(name, None, None, None, None, f"was not tested: {reason}")
