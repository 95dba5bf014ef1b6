"""Everything the records say about the paper, computed once; tables, sentences and JSON are made of it.

H1, H2 and H3 are verdicts: by the model that fits, and beside it by the paper's own model and rule.
The paper's rule: chi-square p of the likelihood-ratio tests, and plain p of six comparisons, each against .05. Six
plain tests at .05 raise a false alarm about once in four studies without any difference, and a variance cannot be
negative; so the second rule corrects the p of reruns by Holm's method and the p of variances for their boundary. Both
rest on a model in which a seed acts alike in all experiments. The verdict has the second rule and a model without that
assumption (`models.fitting_model`): H2 asks there whether seeds act at all, in all experiments alike or in each its own
way, and H3's differences count what the runs of a seed in a round share.

Where identical runs give identical results, the paper's model takes repeats and reruns of one result for independent
ones, and is surer of seeds than it may be: H2 is
there also with each result counted once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from isorun.analysis.mixed.checks import joint_test
from isorun.analysis.mixed.result import MixedResult, RanovaRow
from isorun.analysis.samples import adjusted
from isorun.report import count, p_value, significant
from isorun.study.records import RunRecord
from isorun.zoo.paper import Request
from isorun.zoo.studies.fewshot.design import control_name, controls_of, experiments_of, main_name
from isorun.zoo.studies.fewshot.experiments import ROUNDS, approach_name
from isorun.zoo.studies.fewshot.measured import (
    Collected,
    ControlResult,
    FinishedRun,
    Identical,
    collect,
    control_results,
    control_runs,
    data_of,
    identical_settings,
)
from isorun.zoo.studies.fewshot.models import (
    FittingModel,
    NestedModel,
    PaperModel,
    WithoutNoise,
    fitting_model,
    nested_model,
    paper_model,
)
from isorun.zoo.studies.fewshot.published import REJECTED, TABLE_1, TABLE_2

__all__ = [
    "ALPHA",
    "STATEMENTS",
    "TESTS",
    "EachOnce",
    "Findings",
    "Judgement",
    "each_once",
    "find",
    "judge",
    "published_judgements",
    "stated_p",
]

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
    """One hypothesis.

    p, rejected: by the paper's model and rule; p_corrected, rejected_corrected: by its model and the rule that holds
    .05.
    p_fitting, rejected_fitting: by the model that fits; None where the runs allow no test or, of the paper, where its
    runs are not known; a decision without p is one that needs none, because identical runs never differ. words: what
    the paper's rule says and why; fitting_words: the same of the model that fits.
    """

    name: str
    p: float | None
    rejected: bool | None
    p_corrected: float | None
    rejected_corrected: bool | None
    words: str
    p_fitting: float | None = None
    rejected_fitting: bool | None = None
    fitting_words: str = ""

    @property
    def sentence(self) -> str:
        """Statement, decision and reason in one sentence, the model that fits first."""
        statement = f"{self.name} ({STATEMENTS[self.name]})"
        if self.rejected_fitting is None:
            return f"{statement} {self.words}."
        return f"{statement} {self.fitting_words}; by the paper's own model and rule it {self.words}."


def judge(model: PaperModel, experiments: Sequence[str], fitting: FittingModel | None = None) -> tuple[Judgement, ...]:
    """The three hypotheses from the fitted models; experiments: those whose rounds are compared."""
    if model.result is None:
        judged = tuple(_untested(name, f"there is no model: {model.why_not}") for name in STATEMENTS)
    else:
        tests = {row.term: row for row in model.result.ranova}
        judged = (
            _variance("H1", tests.get("(1 | repeat)"), "repeats"),
            _variance("H2", tests.get("(1 | seed)"), "seeds"),
            _reruns(model, experiments),
        )
    if fitting is None:
        return judged
    first, second, third = judged
    if fitting.without_noise is not None:
        return _certain(judged, fitting.without_noise, experiments)
    return (
        _fitted_variance(first, fitting.result, "repeat", "repeats"),
        _fitted_variance(second, fitting.result, "seed", "seeds"),
        _fitted_reruns(third, fitting, experiments),
    )


def _certain(judged: tuple[Judgement, ...], seen: WithoutNoise, experiments: Sequence[str]) -> tuple[Judgement, ...]:
    """Where identical runs never differ there is no chance to reckon with: what differs differs, and no p is needed."""
    first, second, third = judged
    same = "is not rejected: identical runs always gave the same"
    first = replace(first, rejected_fitting=False, fitting_words=same)
    if seen.configs:
        often = f"another seed gave another result in {seen.moved} of {count(seen.configs, 'config')}"
        words = "is rejected: identical runs never differ, and " if seen.moved else "is not rejected: "
        second = replace(second, rejected_fitting=seen.moved > 0, fitting_words=words + often)
    if rounds := [name for name in experiments if name in seen.rounds]:
        words = f"is not rejected: both rounds of {count(len(rounds), 'experiment')} gave the same results"
        third = replace(third, rejected_fitting=False, fitting_words=words)
    return first, second, third


def _fitted_variance(row: Judgement, result: MixedResult | None, group: str, what: str) -> Judgement:
    """Whether `group` acts at all: all its effects are left out at once."""
    if result is None or not any(group in item.term.columns for item in result.fit.problem.random):
        return row
    lrt, p, number = joint_test(result, group)
    effects = "" if number == 1 else f" of {number} effects"
    shown = f"likelihood ratio{effects} {significant(lrt)}, {stated_p(p)}"
    words = f"is rejected: results vary with {what} ({shown})" if p < ALPHA else f"is not rejected ({shown})"
    return replace(row, p_fitting=p, rejected_fitting=p < ALPHA, fitting_words=words)


def _fitted_reruns(row: Judgement, fitting: FittingModel, experiments: Sequence[str]) -> Judgement:
    known = {name: found for name in experiments if (found := fitting.rerun(name)) is not None}
    if not known:
        return row
    p = dict(zip(known, adjusted([found.p for found in known.values()]).tolist(), strict=True))
    smallest = min(p.values())
    differing = [name for name, own in p.items() if own < ALPHA]
    compared = f"{count(len(known), 'experiment')} (smallest {stated_p(smallest)} after Holm's correction)"
    if differing:
        words = f"is rejected: the rounds of {', '.join(differing)} differ, of {compared}"
    else:
        words = f"is not rejected: the rounds differ in none of {compared}"
    return replace(row, p_fitting=smallest, rejected_fitting=bool(differing), fitting_words=words)


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


@dataclass(frozen=True, slots=True)
class EachOnce:
    """runs: that the paper's model was fitted to. results: how many of them are different ones. h2: by those alone."""

    runs: int
    results: int
    h2: Judgement


def each_once(runs: Sequence[FinishedRun]) -> EachOnce | None:
    """None where identical runs do differ, so that each is a result of its own, or where there are none."""
    if not identical_settings(runs).no_noise:
        return None
    kept = {run.setting: replace(run, approach=run.experiment, repeat="") for run in reversed(runs)}
    h2 = next(row for row in judge(paper_model(list(kept.values())), ()) if row.name == "H2")
    return EachOnce(len(runs), len(kept), h2)


@dataclass(frozen=True, slots=True)
class Findings:
    """experiments, control_asked: the parts asked for. without_runs: approaches and controls that have no usable run.

    identical: how often identical runs gave identical results. once: H2 from different results alone, None where
    identical runs differ. data: what was trained on.
    """

    scale: str
    experiments: tuple[str, ...]
    control_asked: bool
    collected: Collected
    model: PaperModel
    fitting: FittingModel
    nested: NestedModel
    judged: tuple[Judgement, ...]
    controls: tuple[ControlResult, ...]
    without_runs: tuple[str, ...]
    identical: Identical
    once: EachOnce | None
    data: tuple[str, ...]


def find(request: Request, records: Mapping[str, Sequence[RunRecord]]) -> Findings:
    """Fit, test and count."""
    main, control = (records.get(name(request.scale), ()) for name in (main_name, control_name))
    experiments = tuple(item.name for item in experiments_of(request))
    collected = collect(main)
    model, fitting = paper_model(collected.runs), fitting_model(collected.runs)
    controls = control_results(control_runs(control))
    return Findings(
        scale=request.scale,
        experiments=experiments,
        control_asked=bool(controls_of(request)),
        collected=collected,
        model=model,
        fitting=fitting,
        nested=nested_model(collected.runs),
        judged=judge(model, experiments, fitting),
        controls=controls,
        without_runs=_without_runs(request, collected, controls),
        identical=identical_settings(collected.runs),
        once=each_once(collected.runs),
        data=data_of([*main, *control]),
    )


def _without_runs(request: Request, collected: Collected, controls: Sequence[ControlResult]) -> tuple[str, ...]:
    seen = {run.approach for run in collected.runs}
    approaches = [approach_name(item.name, number) for item in experiments_of(request) for number in ROUNDS]
    empty = {row.control for row in controls if not row.n}
    named = [f"control {item.name}" for item in controls_of(request) if item.name in empty]
    return (*(name for name in approaches if name not in seen), *named)
