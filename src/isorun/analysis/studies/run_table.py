"""A study's finished runs as a table, one row a run, so that every statistic for tables works on studies too."""

from __future__ import annotations

from typing import Any

from isorun.analysis.studies.group_result import GroupResult, JudgedRun, RuleResult
from isorun.analysis.studies.study_result import StudyResult
from isorun.errors import InputError, known_names

__all__ = ["DISTINCT", "FACTORS", "UNIT", "run_table"]

FACTORS = ("approach", "config", "environment", "level", "seed", "repeat")
UNIT = "unit"
DISTINCT = "distinct"
"""Columns that say what runs are worth: the independent draw that each belongs to, and the run that it copies."""


def run_table(result: StudyResult, rule: str | None = None) -> dict[str, list[Any]]:
    """Columns by name: the run's id, its factors, what it is worth, and every judged metric at the epoch `rule` picks.

    rule: the name of a selection rule; the study's first one when not given. A metric that a run lacks is NaN.
    """
    names = [item.name for item in result.rules]
    chosen = rule or names[0]
    if chosen not in names:
        raise InputError(f"the study has no selection rule {chosen!r}", allowed=known_names(chosen, names))
    metrics = [metric.name for metric in result.metrics]
    rows = [_row(group, run, metrics) for group in result.groups for run in _in_order(group.rule(chosen))]
    return {name: [row[name] for row in rows] for name in ("run", *FACTORS, UNIT, DISTINCT, *metrics)}


def _in_order(rule: RuleResult) -> list[JudgedRun]:
    """Runs in the order they were planned, which is the order sequential tests look at them."""
    return sorted(rule.runs, key=lambda run: (run.repeat, -1 if run.seed is None else run.seed))


def _row(group: GroupResult, run: JudgedRun, metrics: list[str]) -> dict[str, Any]:
    key = group.key
    factors = (key.approach, key.config, key.environment, str(key.level), _seed_text(run), str(run.repeat))
    values = {name: run.selected.values.get(name, float("nan")) for name in metrics}
    worth = {UNIT: run.unit, DISTINCT: run.distinct}
    return {"run": run.run_id, **dict(zip(FACTORS, factors, strict=True)), **worth, **values}


def _seed_text(run: JudgedRun) -> str:
    return "" if run.seed is None else str(run.seed)
