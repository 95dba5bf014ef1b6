"""The result of a study: everything its reports say, computed once."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from isorun.analysis.evidence.condition import Condition
from isorun.analysis.evidence.study_conditions import Evidence, find_warnings
from isorun.analysis.studies.group_analysis import analyse_group
from isorun.analysis.studies.group_result import GroupKey, GroupResult
from isorun.analysis.studies.judged import JudgedMetric, judged_metrics, logged_metrics
from isorun.analysis.studies.level_comparison import LevelComparison, compare_levels
from isorun.analysis.studies.selection import selection_rules
from isorun.analysis.studies.weak import WeakRule, weak_rule
from isorun.errors import NothingRecorded
from isorun.study.cells import cells_of
from isorun.study.design import Selection, Study
from isorun.study.records import RunRecord, RunState, states

__all__ = ["StudyResult", "analyse_study"]


@dataclass(frozen=True, slots=True)
class StudyResult:
    """What a study found.

    metrics: what the runs are judged by, the primary one first; empty when no run logged any.
    rules: the selection rules, the primary one first. logged: every metric that any finished run logged.
    weak: when a run counts as weak by the primary metric; None without a metric.
    """

    study: str
    metrics: tuple[JudgedMetric, ...]
    rules: tuple[Selection, ...]
    weak: WeakRule | None
    groups: tuple[GroupResult, ...]
    levels: tuple[LevelComparison, ...]
    states: Mapping[RunState, int]
    logged: tuple[str, ...]
    warnings: tuple[Condition, ...]

    @property
    def primary(self) -> JudgedMetric | None:
        """The metric the verdict is about."""
        return self.metrics[0] if self.metrics else None


def analyse_study(study: Study, records: Sequence[RunRecord]) -> StudyResult:
    """The result of the study from its records, failed attempts included; only finished runs enter statistics."""
    if not records:
        raise NothingRecorded(f"the study {study.name!r} has no runs yet", hint="isorun run study.toml")
    finished = [record for record in records if record.state is RunState.FINISHED]
    metrics = judged_metrics(study.metrics, finished)
    rules = selection_rules(study.selections, finished, metrics)
    weak = weak_rule(metrics[0]) if metrics else None
    planned = Counter(GroupKey(cell.approach, cell.config, cell.environment, cell.level) for cell in cells_of(study))
    by_group = _by_group(planned, records)
    groups = tuple(
        analyse_group(key, runs, planned=planned[key], metrics=metrics, rules=rules, weak=weak)
        for key, runs in by_group.items()
    )
    evidence = Evidence(groups, _by_group(by_group, finished), metrics, logged_metrics(finished))
    return StudyResult(
        study=study.name,
        metrics=metrics,
        rules=rules,
        weak=weak,
        groups=groups,
        levels=tuple(_level_comparisons(groups, metrics, rules)),
        states=states(records),
        logged=logged_metrics(finished),
        warnings=find_warnings(evidence),
    )


def _by_group(order: Iterable[GroupKey], records: Iterable[RunRecord]) -> dict[GroupKey, list[RunRecord]]:
    """Records by group, in the order the study declares them; groups no longer in the study come last."""
    found: dict[GroupKey, list[RunRecord]] = {key: [] for key in order}
    for record in records:
        found.setdefault(GroupKey.of(record), []).append(record)
    return found


def _level_comparisons(
    groups: Sequence[GroupResult], metrics: Sequence[JudgedMetric], rules: Sequence[Selection]
) -> Iterator[LevelComparison]:
    """Every pair of levels of the same approach, config and environment, by the primary metric under every rule."""
    for rule, metric in itertools.product(rules, metrics[:1]):
        for a, b in itertools.combinations(groups, 2):
            same = (a.key.approach, a.key.config, a.key.environment) == (
                b.key.approach,
                b.key.config,
                b.key.environment,
            )
            if same and a.finished and b.finished:
                yield _compared(a, b, rule.name, metric.name)


def _compared(a: GroupResult, b: GroupResult, rule: str, metric: str) -> LevelComparison:
    sides = [[value for value in group.rule(rule).values(metric) if math.isfinite(value)] for group in (a, b)]
    test, why_not = compare_levels(*sides, several_seeds=max(len(a.identical), len(b.identical)) > 1)
    sd_a, sd_b = (group.rule(rule).every.metrics[metric].overall.sd for group in (a, b))
    return LevelComparison(
        a.key.approach,
        a.key.config,
        a.key.environment,
        rule,
        metric,
        str(a.key.level),
        str(b.key.level),
        sd_a,
        sd_b,
        test,
        why_not,
    )
