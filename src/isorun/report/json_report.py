"""The report for machines: strict JSON with stable keys, described in docs/report-json.md.

Numbers that JSON has no sign for (NaN, infinities) and numbers that are not known are null.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from isorun.analysis.evidence.judged import JudgedMetric
from isorun.analysis.evidence.run_units import IdenticalRuns
from isorun.analysis.spreads import Spread
from isorun.analysis.studies.group_result import FailedRun, GroupResult, JudgedRun, SelectionResult, SelectionSpread
from isorun.analysis.studies.selection import LearningCurves
from isorun.analysis.studies.study_result import LevelComparison, StudyResult
from isorun.report.study_view import verdict, warnings
from isorun.study.records import RunState

__all__ = ["VERSION", "to_json"]

VERSION: Final = 2
"""Raised when a key changes its meaning or goes; new keys do not raise it."""


def to_json(result: StudyResult) -> dict[str, Any]:
    """The whole result."""
    weak = result.weak
    return {
        "report": VERSION,
        "study": result.study,
        "verdict": list(verdict(result)),
        "metrics": [_metric(metric) for metric in result.metrics],
        "selections": [
            {"name": judged.name, "metric": judged.metric, "direction": judged.direction}
            for judged in result.selections
        ],
        "weak_rule": None if weak is None else {"metric": weak.metric, "below": weak.below, "reason": weak.reason},
        "logged": list(result.logged),
        "runs": _states(result.states),
        "provenance": [fact.to_json() for fact in result.provenance],
        "groups": [_group(group) for group in result.groups],
        "levels": [_level(item) for item in result.levels],
        "warnings": [
            {"number": number, **warning.to_json()} for number, warning in enumerate(warnings(result), start=1)
        ],
        "searches": [{"name": name or None, **told.to_json()} for name, told in result.searches.items()],
    }


def _metric(metric: JudgedMetric) -> dict[str, Any]:
    return {
        "name": metric.name,
        "direction": metric.direction or None,
        "direction_from": metric.direction_from or None,
        "scale": metric.scale or "number",
        "chance": metric.chance,
        "chance_from": metric.chance_from or None,
        "declared": metric.declared,
        "chosen_because": metric.chosen_because or None,
    }


def _states(states: Mapping[RunState, int]) -> dict[str, int]:
    return {str(state): number for state, number in states.items()}


def _group(group: GroupResult) -> dict[str, Any]:
    return {
        "approach": group.key.approach,
        "config": group.key.config,
        "environment": group.key.environment,
        "level": str(group.key.level),
        "planned": group.planned,
        "runs": _states(group.states),
        "units": group.units.count,
        "unit": "seed" if group.key.level.fixes_seed else "run",
        "selections": [_selection(judged) for judged in group.selections],
        "identical": [_identical(same) for same in group.identical],
        "cost": {
            "wall_seconds": _spread(group.cost.wall_seconds),
            "startup_seconds": _spread(group.cost.startup_seconds),
            "training_seconds": _spread(group.cost.training_seconds),
            "cpu_seconds": _spread(group.cost.cpu_seconds),
            "peak_memory_bytes": _spread(group.cost.peak_memory_bytes),
        },
        "curves": [_curves(curves) for curves in group.curves],
        "failed": [_failed(run) for run in group.failed],
        "class_gaps": [gap.to_json() for gap in group.gaps],
        "test_noise": None if group.noise is None else group.noise.to_json(),
        "churn": None if group.churn is None else group.churn.to_json(),
    }


def _selection(judged: SelectionResult) -> dict[str, Any]:
    return {
        "selection": judged.selection.name,
        "weak_runs": list(judged.weak_runs),
        "unjudged": dict(judged.unjudged),
        "all": _selection_spread(judged.every),
        "without_weak": None if judged.without_weak is None else _selection_spread(judged.without_weak),
        "within_seed_sd": {metric: _number(judged.within_seed_sd(metric)) for metric in judged.every.metrics},
        "runs": [_run(run) for run in judged.runs],
    }


def _selection_spread(spread: SelectionSpread) -> dict[str, Any]:
    return {
        "metrics": {
            name: {
                "overall": _spread(item.overall),
                "classes": {class_name: _spread(of_class) for class_name, of_class in item.classes.items()},
                "largest_class": item.largest_class,
            }
            for name, item in spread.metrics.items()
        },
        "seconds": _spread(spread.seconds),
        "epochs": _spread(spread.epochs),
    }


def _spread(spread: Spread) -> dict[str, Any]:
    """The keys are those of `isorun summarize`, as far as both know them."""
    return {
        "n": spread.n,
        "excluded": spread.excluded,
        "mean": _number(spread.mean),
        "sd": _number(spread.sd),
        "sd_ci90": None if spread.sd_interval is None else [_number(bound) for bound in spread.sd_interval],
        "sd_draws": spread.sd_draws,
        "median": _number(spread.median),
        "min": _number(spread.minimum),
        "max": _number(spread.maximum),
        "max_diff": _number(spread.max_difference),
        "rel_sd": _number(spread.relative_sd),
        "rel_max_diff": _number(spread.relative_difference),
    }


def _run(run: JudgedRun) -> dict[str, Any]:
    selected = run.selected
    return {
        "run_id": run.run_id,
        "seed": run.seed,
        "repeat": run.repeat,
        "unit": run.unit,
        "weights": run.weights or None,
        "folder": run.folder or None,
        "epoch": _number(selected.step),
        "epochs": selected.epochs,
        "seconds": _number(selected.seconds),
        "values": _numbers(selected.values),
        "per_class": {metric: _numbers(values) for metric, values in selected.per_class.items()},
        "at_end": sorted(selected.at_end),
        "classes_at_end": sorted(selected.classes_at_end),
        "weak": run.weak,
    }


def _identical(same: IdenticalRuns) -> dict[str, Any]:
    digests = {
        count.name: {"runs": count.runs, "distinct": count.distinct, "largest_set": count.largest_set}
        for count in same.digests
    }
    return {"seed": same.seed, "runs": same.runs, "digests": digests, "differing": list(same.differing)}


def _curves(curves: LearningCurves) -> dict[str, Any]:
    return {
        "metric": curves.metric,
        "runs": len(curves.runs),
        "steps": list(curves.steps),
        "median": [_number(value) for value in curves.median],
        "p10": [_number(value) for value in curves.low],
        "p90": [_number(value) for value in curves.high],
    }


def _failed(run: FailedRun) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "state": str(run.state),
        "reason": run.reason,
        "log_end": run.log_end,
        "finished_later": run.finished_later,
    }


def _level(item: LevelComparison) -> dict[str, Any]:
    test = item.test
    return {
        "approach": item.approach,
        "config": item.config,
        "environment": item.environment,
        "selection": item.selection,
        "metric": item.metric,
        "level_a": item.level_a,
        "level_b": item.level_b,
        "sd_a": _number(item.sd_a),
        "sd_b": _number(item.sd_b),
        "levene": None if test is None else {"statistic": _number(test.statistic), "p": _number(test.p)},
        "why_not": item.why_not or None,
    }


def _numbers(values: Mapping[str, float]) -> dict[str, float | None]:
    return {name: _number(value) for name, value in values.items()}


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
