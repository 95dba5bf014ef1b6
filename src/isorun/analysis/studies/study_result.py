"""A study's result, the table of its runs, and the sides that a verdict on it is about.

Do two levels differ in spread? Levene's test with medians as centres (Brown and Forsythe 1974).

The paper uses it to ask whether fixing the seed makes the spread smaller (section 5.2).

The result of a study: everything its reports say, computed once.

A study's finished runs as a table, one row a run, so that every statistic for tables works on studies too.

What touches a verdict on two or more sides of a study: their own conditions, and what they differ in besides.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, ClassVar, Final, Protocol

import numpy as np

from isorun.analysis import Told
from isorun.analysis.evidence import Condition
from isorun.analysis.evidence.judged import JudgedMetric
from isorun.analysis.evidence.provenance import between_sides
from isorun.analysis.pairwise import levene
from isorun.analysis.samples import Significance
from isorun.analysis.studies.conditions import StudyFacts, study_conditions
from isorun.analysis.studies.foreign_runs import Foreign, more_runs, steps_for_such_runs
from isorun.analysis.studies.group_result import GroupKey, GroupResult, JudgedRun, SelectionResult, analyse_group
from isorun.analysis.studies.selection import selections_of
from isorun.analysis.studies.study_metrics import WeakRule, judged_metrics, logged_metrics, weak_rule
from isorun.analysis.studies.study_provenance import ProvenanceFact, study_provenance
from isorun.errors import InputError, NothingRecorded, known_names
from isorun.study.cells import GROUP_FACTORS, Level, cells_of
from isorun.study.design import Metric, Selection, Study
from isorun.study.records import RunRecord, RunState, states

__all__ = [
    "DISTINCT",
    "FACTORS",
    "UNIT",
    "LevelComparison",
    "SearchTold",
    "StudyResult",
    "StudySides",
    "analyse_recorded",
    "analyse_study",
    "compare_levels",
    "not_logged",
    "refuse_pooling",
    "run_table",
    "study_sides",
]


@dataclass(frozen=True, slots=True)
class LevelComparison:
    """Two levels of one approach, config and environment, judged by one selection.

    test: None when no test could be made; why_not says why.
    """

    approach: str
    config: str
    environment: str
    selection: str
    metric: str
    level_a: str
    level_b: str
    sd_a: float | None
    sd_b: float | None
    test: Significance | None
    why_not: str = ""


def compare_levels(a: Sequence[float], b: Sequence[float], *, several_seeds: bool) -> tuple[Significance | None, str]:
    """The test, or None and the reason: with several seeds the spread also holds what the seeds do."""
    if several_seeds:
        return None, "several seeds: their spread also holds what the seed does"
    if min(len(a), len(b)) < 2:
        return None, "fewer than two runs on a side"
    outcome = levene([np.asarray(side, dtype=np.float64) for side in (a, b)])
    if outcome.statistic is None:
        return None, "the runs of each level are all equally far from their median"
    return outcome, ""


class SearchTold(Protocol):
    """What is said of one search of a study. Who knows searches lies above, and hands it down."""

    def view(self, *, figures: bool = False) -> Any:
        """For people, as a view."""

    def to_json(self) -> dict[str, Any]:
        """For machines."""


@dataclass(frozen=True, slots=True)
class StudyResult(Told):
    """What a study found.

    metrics: what the runs are judged by, the primary one first; empty when no run logged any.
    selections: the primary one first. logged: every metric that any finished run logged.
    weak: when a run counts as weak by the primary metric; None without a metric.
    searches: what is said of each, by name; its trials are groups, whose spread nobody asked for.
    provenance: what the finished runs come from. foreign: whose the runs are where isorun did not make them.
    """

    told_as: ClassVar[str] = "study"

    study: str
    metrics: tuple[JudgedMetric, ...]
    selections: tuple[Selection, ...]
    weak: WeakRule | None
    groups: tuple[GroupResult, ...]
    levels: tuple[LevelComparison, ...]
    states: Mapping[RunState, int]
    logged: tuple[str, ...]
    conditions: tuple[Condition, ...]
    searches: Mapping[str, SearchTold] = field(default_factory=dict)
    provenance: tuple[ProvenanceFact, ...] = ()
    foreign: Foreign = Foreign.OWN

    @property
    def primary(self) -> JudgedMetric | None:
        """The metric the verdict is about."""
        return self.metrics[0] if self.metrics else None


def analyse_study(study: Study, records: Sequence[RunRecord]) -> StudyResult:
    """The result of the study from its records, failed attempts included; only finished runs enter statistics."""
    if not records:
        raise NothingRecorded(f"the study {study.name!r} has no runs yet", hint="isorun run study.toml")
    planned = Counter(GroupKey(cell.approach, cell.config, cell.environment, cell.level) for cell in cells_of(study))
    return analyse_recorded(study.name, records, study.metrics, study.selections, planned)


def analyse_recorded(
    name: str,
    records: Sequence[RunRecord],
    metrics: Mapping[str, Metric],
    selections: Mapping[str, Selection],
    planned: Mapping[GroupKey, int] | None = None,
) -> StudyResult:
    """The same of records whose study is not at hand. planned: the cells of each group; without it, those that ran."""
    finished = [record for record in records if record.state is RunState.FINISHED]
    if planned is None:
        planned = Counter(GroupKey.of(record) for record in {record.cell.id: record for record in records}.values())
    judged = judged_metrics(metrics, finished)
    chosen = selections_of(selections, finished, judged)
    weak = weak_rule(judged[0]) if judged else None
    by_group, foreign = _by_group(planned, records), Foreign.of(records)
    groups = tuple(
        analyse_group(key, runs, planned=planned.get(key, 0), metrics=judged, selections=chosen, weak=weak)
        for key, runs in by_group.items()
    )
    ended = _by_group(by_group, finished)
    told = study_conditions(StudyFacts(groups, ended, judged, logged_metrics(finished)))
    return StudyResult(
        study=name,
        metrics=judged,
        selections=chosen,
        weak=weak,
        groups=groups,
        levels=tuple(_level_comparisons(groups, judged, chosen)),
        states=states(records),
        logged=logged_metrics(finished),
        conditions=steps_for_such_runs(told, foreign, judged),
        provenance=study_provenance([record for runs in ended.values() for record in runs]),
        foreign=foreign,
    )


def _by_group(order: Iterable[GroupKey], records: Iterable[RunRecord]) -> dict[GroupKey, list[RunRecord]]:
    """Records by group, in the order the study declares them; groups no longer in the study come last."""
    found: dict[GroupKey, list[RunRecord]] = {key: [] for key in order}
    for record in records:
        found.setdefault(GroupKey.of(record), []).append(record)
    return found


def _level_comparisons(
    groups: Sequence[GroupResult], metrics: Sequence[JudgedMetric], selections: Sequence[Selection]
) -> Iterator[LevelComparison]:
    """Every pair of levels of the same approach, config and environment, by the first metric under every selection."""
    families: dict[tuple[str, ...], list[int]] = {}  # not all pairs of groups: a search has thousands of them
    for place, group in enumerate(groups):
        if group.finished:
            families.setdefault((group.key.approach, group.key.config, group.key.environment), []).append(place)
    pairs = sorted(pair for family in families.values() for pair in itertools.combinations(family, 2))
    for selection, metric in itertools.product(selections, metrics[:1]):
        for a, b in pairs:
            yield _compared(groups[a], groups[b], selection.name, metric.name)


def _compared(a: GroupResult, b: GroupResult, selection: str, metric: str) -> LevelComparison:
    sides = [[value for value in group.selection(selection).values(metric) if math.isfinite(value)] for group in (a, b)]
    test, why_not = compare_levels(*sides, several_seeds=max(len(a.identical), len(b.identical)) > 1)
    sd_a, sd_b = (group.selection(selection).every.metrics[metric].overall.sd for group in (a, b))
    return LevelComparison(
        a.key.approach,
        a.key.config,
        a.key.environment,
        selection,
        metric,
        str(a.key.level),
        str(b.key.level),
        sd_a,
        sd_b,
        test,
        why_not,
    )


FACTORS = ("approach", "config", "environment", "level", "seed", "repeat")
UNIT = "unit"
DISTINCT = "distinct"
"""Columns that say what runs are worth: the independent draw that each belongs to, and the run that it copies."""


def run_table(result: StudyResult, selection: str | None = None) -> dict[str, list[Any]]:
    """Columns by name: the run's id, its factors, what it is worth, and every judged metric as selected.

    selection: the name of one; the study's first one when not given. A metric that a run lacks is NaN.
    """
    names = [item.name for item in result.selections]
    chosen = selection or names[0]
    if chosen not in names:
        raise InputError(f"the study has no selection {chosen!r}", allowed=known_names(chosen, names))
    metrics = [metric.name for metric in result.metrics]
    rows = [_row(group, run, metrics) for group in result.groups for run in _in_order(group.selection(chosen))]
    return {name: [row[name] for row in rows] for name in ("run", *FACTORS, UNIT, DISTINCT, *metrics)}


def _in_order(judged: SelectionResult) -> list[JudgedRun]:
    """Runs in the order they were planned, which is the order sequential tests look at them."""
    return sorted(judged.runs, key=lambda run: (run.repeat, -1 if run.seed is None else run.seed))


def _row(group: GroupResult, run: JudgedRun, metrics: list[str]) -> dict[str, Any]:
    key = group.key
    factors = (key.approach, key.config, key.environment, str(key.level), _seed_text(run), str(run.repeat))
    values = {name: run.selected.values.get(name, float("nan")) for name in metrics}
    worth = {UNIT: run.unit, DISTINCT: run.distinct}
    return {"run": run.run_id, **dict(zip(FACTORS, factors, strict=True)), **worth, **values}


def _seed_text(run: JudgedRun) -> str:
    return "" if run.seed is None else str(run.seed)


_ABOUT_OTHER_THINGS: Final = frozenset(("runs-missing", "launch-differs", "few-runs", "no-identical-runs"))
"""Conditions of a report's tables, of times and of identical runs, which say nothing about who is better."""


@dataclass(frozen=True, slots=True)
class StudySides:
    """The groups of a study that a verdict is about, and the factor that tells them apart."""

    result: StudyResult
    by: str
    groups: tuple[GroupResult, ...]

    @property
    def noun(self) -> str:
        """What a unit of these groups is: a run where everything is drawn anew, else a seed."""
        drawn = {group.key.level is Level.DEFAULT for group in self.groups}
        return {frozenset({True}): "run", frozenset({False}): "seed"}.get(frozenset(drawn), "unit")

    @property
    def real_runs(self) -> str:
        """The next step towards more independent units."""
        known = self.conditions()
        merged = [item for item in known if item.code in {"default-not-independent", "seed-without-effect"}]
        if merged:
            return merged[0].next_step
        if self.noun == "run":
            own = "raise repeats in the study (or -n) to 10 and run again: finished runs are kept"
        else:
            own = (
                "add seeds to the study (seeds = [1, 2, …, 10]; --seed) and run again: finished runs are kept; or ask "
                "about one seed alone: --unit repeat"
            )
        return more_runs(self.result.foreign, own)

    def conditions(self) -> tuple[Condition, ...]:
        """Everything known against a verdict on these groups."""
        labels = {group.key.label for group in self.groups}
        own = (_touching(condition, labels) for condition in self.result.conditions)
        found = (
            condition
            for a, b in combinations(self.groups, 2)
            for condition in between_sides(a.provenance, b.provenance, self.by)
        )
        between = steps_for_such_runs(found, self.result.foreign)
        return (*(condition for condition in own if condition is not None), *dict.fromkeys(between))


def study_sides(
    result: StudyResult, by: str, labels: Sequence[str] = (), where: Mapping[str, str] | None = None
) -> StudySides:
    """The groups where `by` is one of the labels (any, when none is given) and the other factors are as in `where`."""
    fixed = {name: label for name, label in (where or {}).items() if name in GROUP_FACTORS}
    chosen = [
        group
        for group in result.groups
        if group.finished
        and (by not in GROUP_FACTORS or not labels or _factor(group, by) in labels)
        and all(_factor(group, name) == label for name, label in fixed.items())
    ]
    return StudySides(result, by, tuple(chosen))


def not_logged(metric: str, logged: Iterable[str]) -> InputError:
    """What to say where a metric is asked for that no run left. metric: empty where none is asked for."""
    what = f"no run left the metric {metric!r}" if metric else "no run left a metric"
    return InputError(what, allowed=known_names(metric, logged), hint="isorun scan shows what is read from output")


def refuse_pooling(labels: Mapping[str, Iterable[str]], compared: str) -> None:
    """Runs of several configs, environments or levels are not repetitions of one another.

    labels: what each factor of the study is in the runs at hand. compared: the factors that tell the sides apart.
    """
    named = {name.strip() for name in compared.split(",")}
    for name, seen in labels.items():
        distinct = list(dict.fromkeys(seen))
        if name not in named and len(distinct) > 1:
            raise InputError(
                "the sides differ in more than one factor",
                found=f"{name} is one of {', '.join(distinct)}",
                hint=f"where={{{name!r}: …}} (--where {name}=…), or isorun mixed for all of them together",
            )


def _factor(group: GroupResult, name: str) -> str:
    return str(getattr(group.key, name))


def _touching(condition: Condition, labels: set[str]) -> Condition | None:
    """The condition as far as it is about these groups; None where it is not, or is about other things."""
    if condition.code in _ABOUT_OTHER_THINGS:
        return None
    touched = tuple(group for group in condition.groups if group in labels)
    return replace(condition, groups=touched) if touched or not condition.groups else None
