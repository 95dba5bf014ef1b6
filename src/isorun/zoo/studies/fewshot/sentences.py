"""What the findings say in sentences: the verdict, warnings, and what could not be had."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isorun.analysis.evidence.condition import Condition
from isorun.report.numbers import count, percentage, significant
from isorun.zoo.studies.fewshot.findings import Findings
from isorun.zoo.studies.fewshot.hypotheses import ALPHA, published_judgements, stated_p
from isorun.zoo.studies.fewshot.published import PLANNED_RUNS, RUNS

__all__ = ["not_had", "verdict", "warnings"]

_CHANCE: Final = 0.2
_WEAK: Final = _CHANCE + (1.0 - _CHANCE) / 9.0
"""A ninth of the way from guessing to a perfect score, as in the reports of studies."""


def verdict(found: Findings) -> tuple[str, ...]:
    """The answer first, then each hypothesis, then where the variance comes from."""
    return (*_opening(found), *_identical(found), *_once(found), *_shares(found), *_control(found), _published_remark())


def warnings(found: Findings) -> tuple[Condition, ...]:
    """Runs that are missing, and what makes the numbers weaker than they look."""
    return tuple(_warnings(found))


def not_had(found: Findings) -> tuple[str, ...]:
    """What of the paper cannot be had here, and why."""
    gone = []
    if found.data != ("miniimagenet",):
        used = f"; these runs used {' and '.join(found.data)}" if found.data else ""
        gone.append(
            "miniImageNet: its images are ImageNet's, which may not be passed on; who has them can bring them "
            f"(isorun data list says how){used}"
        )
    gone.append(
        "the implementations of the paper (Torch7, PyTorch 0.4, TensorFlow 1.13): here all methods are one PyTorch "
        "implementation, so differences between implementations cannot show"
    )
    gone.append(
        f"the paper's seeds and drawn configs, and why {PLANNED_RUNS - RUNS} of its {PLANNED_RUNS:,} runs are missing: "
        "not published"
    )
    return tuple(gone)


def _opening(found: Findings) -> Iterator[str]:
    if found.scale == "smoke" and (found.collected.runs or any(row.n for row in found.controls)):
        yield "A smoke run only shows that everything works here; its numbers mean nothing."
    if not found.experiments:
        yield "Only the control was asked for: the paper's hypotheses are about the experiments."
    elif not found.collected.runs:
        yield "No run of the main design has finished, so the paper's hypotheses cannot be judged."
    else:
        yield from _verdict_sentence(found)
        yield _agreement(found)
        yield from (row.sentence for row in found.judged)


def _verdict_sentence(found: Findings) -> Iterator[str]:
    judged = [row for row in found.judged if row.rejected_fitting is not None]
    if judged:
        ours = ", ".join(f"{row.name} {_decided(row.rejected_fitting)}" for row in judged)
        yield f"By the model that fits, in which seeds may act in each experiment in their own way: {ours}."


def _agreement(found: Findings) -> str:
    theirs = {row.name: row for row in published_judgements()}
    tested = [row for row in found.judged if row.rejected is not None]
    if not tested:
        return "None of the paper's hypotheses could be tested with these runs."
    differing = [row.name for row in tested if row.rejected != theirs[row.name].rejected]
    ours = ", ".join(f"{row.name} {_decided(row.rejected)}" for row in found.judged)
    paper = ", ".join(f"{row.name} {_decided(row.rejected)}" for row in theirs.values())
    end = f"{' and '.join(differing)} came out differently" if differing else "the same, where tested"
    return f"By the paper's rule: {ours}. The paper: {paper}. So: {end}."


def _decided(rejected: bool | None) -> str:
    return {None: "not tested", True: "rejected", False: "not rejected"}[rejected]


def _identical(found: Findings) -> Iterator[str]:
    seen = found.identical
    if not seen.settings:
        return
    weights = "" if seen.same_weights is None else f", and the same weights, bit for bit, in {seen.same_weights}"
    settings = count(seen.settings, "setting")
    yield f"Runs with the same config and seed gave the same accuracy in {seen.same_accuracy} of {settings}{weights}."


def _once(found: Findings) -> Iterator[str]:
    once = found.once
    if once is None or once.h2.rejected is None:
        return
    yield (
        f"So the {once.runs:,} runs behind Tables 1, 2 and 4 are {count(once.results, 'result')}, each counted several "
        f"times; with each counted once, H2 {once.h2.words}."
    )


def _shares(found: Findings) -> Iterator[str]:
    if not found.nested.shares:
        return
    shares = ", ".join(f"{row.group} {percentage(row.share)} %" for row in found.nested.shares)
    yield f"With seeds nested in configs, what the experiments' means leave comes from: {shares}."
    p, crossed = found.nested.seed_p, found.judged[1].rejected
    if p is not None and p < ALPHA and crossed is False:
        yield (
            f"Seeds do matter within a config ({stated_p(p)}): the paper's test of H2 cannot see it, because it looks "
            "for an effect that a seed has in all experiments alike."
        )


def _control(found: Findings) -> Iterator[str]:
    several = [row for row in found.controls if row.n > 1 and row.sd is not None]
    if not several:
        return
    steady = [row.control for row in several if row.sd == 0.0]
    moving = [f"{row.control} (sd {significant(100.0 * row.sd, 2)} points)" for row in several if row.sd]
    parts = [f"always the same with {', '.join(steady)}"] if steady else []
    parts += [f"varying with {', '.join(moving)}"] if moving else []
    yield f"One seed, identical runs (Table 5): {'; '.join(parts)}."


def _published_remark() -> str:
    rerun = published_judgements()[2]
    kept = "would not be" if not rerun.rejected_corrected else "would still be"
    return (
        f"About the paper itself: corrected for its six comparisons, its H3 {kept} rejected "
        f"({stated_p(rerun.p_corrected)} instead of {stated_p(rerun.p)}, alpha {ALPHA})."
    )


def _warnings(found: Findings) -> Iterator[Condition]:
    if found.without_runs:
        message = "no usable run in some of the groups"
        yield Condition("no-runs", message, "isorun reproduce again makes what is missing", found.without_runs)
    if unusable := found.collected.unusable:
        runs = count(sum(unusable.values()), "run")
        message = f"{runs} ended without a finite accuracy (diverged), left out of the tables"
        groups = tuple(f"{name}: {number}" for name, number in unusable.items())
        yield Condition("no-accuracy", message, "isorun report has the runs and the ends of their logs", groups)
    if weak := _weak(found):
        message = f"hardly better than guessing (mean accuracy below {percentage(_WEAK)} %)"
        yield Condition("weak", message, "a weak training says little about stability", weak)
    if found.collected.runs:
        yield from _model_warnings(found)


def _model_warnings(found: Findings) -> Iterator[Condition]:
    for note in (*found.model.left_out, *(found.model.result.notes if found.model.result else ())):
        yield Condition("model", note, "see Table 1")
    models = (
        (found.model.why_not, "Tables 1, 2 and 4"),
        (found.fitting.why_not, "the verdict"),
        (found.nested.why_not, "the variance shares"),
    )
    for why, table in models:
        if why:
            yield Condition("no-model", f"no model for {table}: {why}", "more configs, seeds or repeats (--runs)")


def _weak(found: Findings) -> tuple[str, ...]:
    by_approach: dict[str, list[float]] = {}
    for run in found.collected.runs:
        by_approach.setdefault(run.approach, []).append(run.accuracy)
    return tuple(name for name, values in by_approach.items() if sum(values) / len(values) < _WEAK)
