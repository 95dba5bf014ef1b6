"""From the records of one group to its result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from isorun.analysis.evidence.identical import identical_runs
from isorun.analysis.evidence.provenance import provenance
from isorun.analysis.evidence.run_units import RunUnits, run_units
from isorun.analysis.spreads.class_gaps import ClassGap
from isorun.analysis.spreads.spread import spread
from isorun.analysis.studies.curves import learning_curves
from isorun.analysis.studies.group_gaps import group_gaps
from isorun.analysis.studies.group_noise import group_noise
from isorun.analysis.studies.group_result import (
    Cost,
    FailedRun,
    GroupKey,
    GroupResult,
    JudgedRun,
    MetricSpread,
    RuleResult,
    RuleSpread,
    values_of,
)
from isorun.analysis.studies.judged import JudgedMetric
from isorun.analysis.studies.last_words import last_words
from isorun.analysis.studies.selection import select
from isorun.analysis.studies.weak import WeakRule
from isorun.study.design import Selection
from isorun.study.records import RunRecord, RunState, states

__all__ = ["analyse_group"]


def analyse_group(
    key: GroupKey,
    records: Sequence[RunRecord],
    *,
    planned: int,
    metrics: Sequence[JudgedMetric],
    rules: Sequence[Selection],
    weak: WeakRule | None,
) -> GroupResult:
    """The result of one group from all its records, failed ones included."""
    finished = [record for record in records if record.state is RunState.FINISHED]
    names = [metric.name for metric in metrics]
    shown = dict.fromkeys([*(rule.metric for rule in rules if rule.metric), *names])
    curves = (learning_curves(name, finished) for name in shown)
    units = run_units(finished)
    judged = tuple(_judge(finished, units, rule, names, weak) for rule in rules)
    return GroupResult(
        key=key,
        planned=planned,
        states=states(records),
        rules=judged,
        identical=identical_runs(finished),
        cost=_cost(finished),
        curves=tuple(curve for curve in curves if curve is not None),
        failed=_failed(records),
        noise=group_noise(finished, {run.run_id: run.selected.step for run in judged[0].runs}),
        gaps=_gaps(judged[0], finished, metrics[0]) if metrics else (),
        units=units,
        provenance=provenance(finished),
    )


def _gaps(rule: RuleResult, finished: Sequence[RunRecord], metric: JudgedMetric) -> tuple[ClassGap, ...]:
    per_class = [run.selected.per_class.get(metric.name, {}) for run in rule.runs]
    return group_gaps(per_class, finished, metric.perfect)


def _judge(
    finished: Sequence[RunRecord], units: RunUnits, rule: Selection, names: Sequence[str], weak: WeakRule | None
) -> RuleResult:
    every = [_judged_run(record, units, rule, names, weak) for record in finished]
    runs = tuple(run for run in every if not run.selected.problem)
    strong = [run for run in runs if not run.weak]
    return RuleResult(
        rule=rule,
        runs=runs,
        unjudged={run.run_id: run.selected.problem for run in every if run.selected.problem},
        every=_rule_spread(runs, names),
        without_weak=_rule_spread(strong, names) if len(strong) < len(runs) else None,
    )


def _judged_run(
    record: RunRecord, units: RunUnits, rule: Selection, names: Sequence[str], weak: WeakRule | None
) -> JudgedRun:
    selected = select(record, rule, names)
    is_weak = weak is not None and weak.metric in selected.values and weak.is_weak(selected.values[weak.metric])
    return JudgedRun(
        run_id=record.run_id,
        seed=record.cell.seed,
        repeat=record.cell.repeat,
        selected=selected,
        weak=is_weak,
        unit=units.unit[record.run_id],
        distinct=units.distinct[record.run_id],
    )


def _rule_spread(runs: Sequence[JudgedRun], names: Iterable[str]) -> RuleSpread:
    return RuleSpread(
        metrics={name: _metric_spread(name, runs) for name in names},
        seconds=spread(run.selected.seconds for run in runs if run.selected.seconds is not None),
        epochs=spread(run.selected.epochs for run in runs if run.selected.epochs is not None),
    )


def _metric_spread(name: str, runs: Sequence[JudgedRun]) -> MetricSpread:
    per_class = [run.selected.per_class.get(name, {}) for run in runs]
    classes = _in_order({class_name for values in per_class for class_name in values})
    return MetricSpread(
        overall=spread(values_of(runs, name)),
        classes={item: spread(values[item] for values in per_class if item in values) for item in classes},
    )


def _in_order(classes: Iterable[str]) -> list[str]:
    """Numbers by size, before names by alphabet."""
    return sorted(classes, key=lambda name: (not name.isdecimal(), int(name) if name.isdecimal() else 0, name))


def _cost(finished: Sequence[RunRecord]) -> Cost:
    return Cost(
        wall_seconds=spread(record.wall_seconds for record in finished),
        cpu_seconds=spread(record.cpu_seconds for record in finished),
        peak_memory_bytes=spread(record.peak_memory_bytes for record in finished),
    )


def _failed(records: Sequence[RunRecord]) -> tuple[FailedRun, ...]:
    done = {record.cell.id for record in records if record.state is RunState.FINISHED}
    return tuple(
        FailedRun(record.run_id, record.state, record.reason, last_words(record.log_tail), record.cell.id in done)
        for record in records
        if record.state is not RunState.FINISHED
    )
