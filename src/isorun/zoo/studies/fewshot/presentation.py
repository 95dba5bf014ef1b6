"""From records to what is shown: verdict, warnings, what could not be had, tables, figures, JSON.

The keys of the JSON are documented in docs/papers/fewshot.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from isorun.analysis.evidence import Condition
from isorun.analysis.mixed.result import Difference, VarianceShare
from isorun.report import Column, Table, count, percentage, significant
from isorun.report.figures.description import Figure
from isorun.report.figures.effects import ForestRow, forest, shares_figure
from isorun.study.records import RunRecord
from isorun.zoo.paper import Presentation, Request, smoke_verdict
from isorun.zoo.studies.fewshot import tables
from isorun.zoo.studies.fewshot.design import asked_plan, main_name
from isorun.zoo.studies.fewshot.findings import ALPHA, Findings, Judgement, find, published_judgements, stated_p
from isorun.zoo.studies.fewshot.published import PLANNED_RUNS, RUNS, TABLE_1, TABLE_2, TABLE_4, TABLE_5
from isorun.zoo.studies.fewshot.scales import less_than_paper
from isorun.zoo.studies.fewshot.tables import control_table, random_tests

__all__ = ["figures_of", "not_had", "numbers_of", "presented", "verdict", "warnings"]


def presented(request: Request, records: Mapping[str, Sequence[RunRecord]]) -> Presentation:
    """The paper with our numbers; where there are none, the paper's stand alone."""
    found = find(request, records)
    numbers = numbers_of(found)
    return Presentation(
        verdict=smoke_verdict(len(found.collected.runs))
        if request.scale == "smoke" and found.collected.runs
        else verdict(found),
        tables=tuple(_tables(found, records.get(main_name(request.scale), ()))),
        figures=tuple(figures_of(numbers)),
        scaled_down=_scaled_down(request, found),
        not_had=not_had(found),
        warnings=warnings(found),
        numbers=numbers,
    )


def _scaled_down(request: Request, found: Findings) -> tuple[str, ...]:
    plan = asked_plan(request)
    return less_than_paper(replace(plan, data=found.data, made=False) if found.data else plan)


def _tables(found: Findings, records: Sequence[RunRecord]) -> Iterator[Table]:
    """A table whose part was not asked for is left out; one whose runs are missing is not."""
    if found.experiments:
        yield tables.hypotheses_table(found.judged)
        yield tables.random_table(found.model)
        yield tables.rerun_table(found.model, found.experiments)
        yield tables.fixed_table(found.model)
        if found.fitting.result:
            yield tables.fitting_table(found.fitting)
    if found.control_asked:
        yield control_table(found.controls)
    if found.nested.shares:
        yield tables.shares_table(found.nested)
    if found.experiments:
        yield _configs_table(records)


def _configs_table(records: Sequence[RunRecord]) -> Table:
    """What was drawn from the distributions of Table 3."""
    drawn = {record.cell.config: record.cell.config_values for record in records}
    rows = [(name, key, f"{value:.4g}") for name, values in sorted(drawn.items()) for key, value in values.items()]
    columns = (Column("config", key=True), Column("parameter", key=True), Column("value"))
    return Table("table-3", "Table 3: what was drawn from its distributions", columns, tuple(rows), folded=True)


def figures_of(numbers: Mapping[str, Any]) -> Iterator[Figure]:
    """The shares of the variance and the two rounds, from the numbers alone."""
    shares = [VarianceShare(**row) for row in numbers["variance_shares"]]
    if shares:
        yield shares_figure(shares, name="fewshot-shares")
    known = {name: row for name, row in numbers["table_2"].items() if row is not None}
    if known:
        rows = [ForestRow(name, row["estimate"], (row["lower"], row["upper"]), row["p"]) for name, row in known.items()]
        label = "accuracy of round 1 minus round 2"
        yield forest(rows, label, name="fewshot-reruns", title="Table 2 as a figure: the two rounds of each experiment")


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


def numbers_of(found: Findings) -> dict[str, Any]:
    """Ours, and under "published" the paper's."""
    return {
        "scale": found.scale,
        "data": list(found.data),
        "runs": len(found.collected.runs),
        "failed": dict(found.collected.failed),
        "unusable": dict(found.collected.unusable),
        "without_runs": list(found.without_runs),
        "formula": found.model.formula,
        "fitting": _fitting(found),
        "why_no_model": found.model.why_not,
        "table_1": [asdict(row) for row in random_tests(found.model)],
        "table_2": {name: _difference(found.model.rerun(name)) for name in found.experiments},
        "table_4": _f_test(found),
        "table_5": {row.control: asdict(row) for row in found.controls},
        "hypotheses": [_judgement(row) for row in found.judged],
        "identical_settings": asdict(found.identical),
        "each_once": _each_once(found),
        "variance_shares": [asdict(row) for row in found.nested.shares],
        "seed_p": found.nested.seed_p,
        "published": {
            "table_1": [asdict(row) for row in TABLE_1],
            "table_2": {name: asdict(row) for name, row in TABLE_2.items()},
            "table_4": asdict(TABLE_4),
            "table_5": {name: asdict(row) for name, row in TABLE_5.items()},
            "hypotheses": [_judgement(row) for row in published_judgements()],
        },
    }


def _difference(row: Difference | None) -> dict[str, float] | None:
    if row is None:
        return None
    return {key: getattr(row, key) for key in ("estimate", "se", "df", "lower", "upper", "p")}


def _f_test(found: Findings) -> dict[str, Any] | None:
    return None if found.model.f_test is None else asdict(found.model.f_test)


def _fitting(found: Findings) -> dict[str, Any]:
    """The model that fits: formula, results it was fitted to, and the test of every random effect."""
    model = found.fitting
    tests = model.result.ranova if model.result else ()
    return {
        "formula": model.formula,
        "results": model.rows,
        "why_no_model": model.why_not,
        "random": [{"term": row.term, "lrt": row.lrt, "p": row.p_boundary} for row in tests],
        "reruns": {name: _difference(model.rerun(name)) for name in found.experiments},
        "without_noise": None if model.without_noise is None else asdict(model.without_noise),
    }


def _each_once(found: Findings) -> dict[str, Any] | None:
    once = found.once
    return None if once is None else {"runs": once.runs, "results": once.results, "h2": _judgement(once.h2)}


def _judgement(row: Judgement) -> dict[str, Any]:
    return {key: value for key, value in asdict(row).items() if key not in ("words", "fitting_words")}
