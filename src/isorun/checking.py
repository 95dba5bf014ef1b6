"""Checking: a change against its baseline, for CI.

check("study.toml", ".isorun-main", margin=0.5)     runs what is missing of the study, then judges it
check_runs(records, baseline, CheckQuestion(…))     judges runs that are at hand, of whatever kind

What is not comparable is refused, and as far as it is declared before the first run: another metric, direction, scale
or level, other data, groups that the baseline does not have, and a baseline that is the very runs that are checked. So
is a store whose finished runs were made by other code than there is now: a check is about the code as it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from isorun import workflow
from isorun.analysis.checks import (
    METRIC,
    POINTS,
    Check,
    CheckedSide,
    GroupEvidence,
    Margin,
    judge_changes,
    refuse_nonsense,
)
from isorun.analysis.checks.comparable import (
    commands,
    data_conditions,
    nothing_matches,
    other_data,
    refuse_same_runs,
    without_baseline,
)
from isorun.analysis.checks.sides import (
    GroupName,
    group_name,
    list_side,
    paired,
    record_side,
    table_sides,
)
from isorun.analysis.evidence import Condition, first_of, some
from isorun.analysis.evidence.judged import JudgedMetric, direction_conditions, how_to_declare, judged_column
from isorun.analysis.evidence.provenance import between_sides, edited_between
from isorun.analysis.evidence.scales import scale_of_values
from isorun.analysis.sequential import FEWEST_RUNS
from isorun.analysis.studies.group_result import GroupKey, GroupResult
from isorun.analysis.studies.study_result import StudyResult, StudySides, analyse_recorded, not_logged
from isorun.baselines import KnownRuns, open_runs
from isorun.errors import InputError, known_names
from isorun.scheduling import INTERRUPTED, Observer
from isorun.session import Store, place_of, store_if_there
from isorun.study.cells import GROUP_FACTORS, cells_of
from isorun.study.design import Metric, Selection, Study
from isorun.study.records import RunRecord, RunState

if TYPE_CHECKING:
    from isorun.execution import AbstractExecutor

__all__ = ["CheckQuestion", "check", "check_runs"]

_ALONE: Final = GroupName("runs", "default", "default", "default")


@dataclass(frozen=True, slots=True)
class CheckQuestion:
    """What is asked; the same words for a study and for runs at hand.

    margin: a drop that does not matter. margin_unit: "points" (hundredths of a share, or of a percentage) or "metric"
    (its own numbers); without it, points for accuracies, and the metric's own numbers for all else. pair: hold the same
    seeds against each other; without it, where both sides have the same ones. other_data: judge although the data
    differ. metrics, selections: as the study declares them.
    """

    margin: float = 0.0
    margin_unit: str | None = None
    metric: str | None = None
    direction: str | None = None
    where: Mapping[str, str] = field(default_factory=dict)
    selection: str | None = None
    pair: bool | None = None
    alpha: float = 0.05
    other_data: bool = False
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    selections: Mapping[str, Selection] = field(default_factory=dict)

    def __post_init__(self) -> None:
        refuse_nonsense(self.margin, self.alpha)
        if self.margin_unit not in {None, POINTS, METRIC}:
            raise InputError("the unit of a margin", found=repr(self.margin_unit), allowed=f"{POINTS}, {METRIC}")
        if wrong := [name for name in self.where if name not in GROUP_FACTORS]:
            raise InputError(f"runs are not told apart by {wrong[0]!r}", allowed=known_names(wrong[0], GROUP_FACTORS))
        if self.metric is not None or self.metrics:
            name = self.metric or next(iter(self.metrics))
            declared = self.metrics.get(name, Metric(name))
            chosen = replace(declared, direction=self.direction or declared.direction)
            object.__setattr__(self, "metrics", {name: chosen})

    @property
    def declared(self) -> Metric | None:
        """The metric that is judged by, as far as it is known without a run."""
        return next(iter(self.metrics.values()), None)


def check(
    study: Study | str | Path,
    baseline: Any,
    *,
    margin: float = 0.0,
    margin_unit: str | None = None,
    metric: str | None = None,
    direction: str | None = None,
    where: Mapping[str, str] | None = None,
    selection: str | None = None,
    pair: bool | None = None,
    alpha: float = 0.05,
    run: bool = True,
    other_data: bool = False,
    baseline_study: str | None = None,
    store: Store = None,
    jobs: int | None = None,
    launch: str = "auto",
    devices: str = "auto",
    executor: str | AbstractExecutor = "local",
    observer: Observer | None = None,
    command: str = "",
) -> Check:
    """Is the study, as the code is now, worse than its baseline by more than the margin?

    What is missing of the study is run first; run=False judges what is recorded. baseline: a store, a study file or
    the name of a kept study, a table of runs, records or an outcome. baseline_study: the study that is meant, where a
    store keeps it under another name. margin, margin_unit, pair, other_data: see `CheckQuestion`. alpha: the error rate
    of either claim, worse and not worse. command: what repeats it, for its comment.
    """
    with workflow.opened(study, store) as (declared, place):
        question = CheckQuestion(
            margin=margin,
            margin_unit=margin_unit,
            metric=metric,
            direction=direction,
            where=where or {},
            selection=selection,
            pair=pair,
            alpha=alpha,
            other_data=other_data,
            metrics=declared.metrics,
            selections=declared.selections,
        )
        held = open_runs(baseline, like=declared, store=place, study=baseline_study)
        _refuse_before_runs(declared, held, question)
        told = _made(declared, place, held, observer, (jobs, launch, devices, executor)) if run else ()
        new = open_runs(declared, store=place)
        told = told if run else (*_as_recorded(declared, place), *told)
    answer = check_runs(replace(new, place=declared.name), held, question)
    return replace(answer, conditions=(*told, *answer.conditions), command=command)


def _made(
    study: Study,
    store: Store,
    held: KnownRuns,
    observer: Observer | None,
    session: tuple[int | None, str, str, str | AbstractExecutor],
) -> tuple[Condition, ...]:
    """Make what is missing of the study, with the code as it is; what there is to know of that."""
    jobs, launch, devices, executor = session
    with store_if_there(place_of(study, store)) as kept:
        stale = () if kept is None else workflow.reuse_conditions(workflow.known_to(study, kept), kept)
        if kept is not None and held.records is not None:
            own = kept.records(cell.id for cell in cells_of(workflow.known_to(study, kept)))
            refuse_same_runs(own, held.records, held.place)
    for condition in stale:
        if condition.code in {"code-changed", "input-changed"}:
            raise InputError(
                f"finished runs of {study.name} were not made by the code as it is now",
                found=condition.message,
                hint="a new --store FOLDER makes all runs anew; --no-run judges what is recorded",
            )
    outcome = workflow.run(
        study, store=store, jobs=jobs, launch=launch, devices=devices, executor=executor, observer=observer
    )
    if outcome.stopped == INTERRUPTED:
        raise KeyboardInterrupt
    return tuple(condition for condition in outcome.conditions if condition.code not in {"metric-not-logged"})


def _as_recorded(study: Study, store: Store) -> Iterator[Condition]:
    """What to know where nothing was run: runs that are missing, or that other code made."""
    left, all_cells = len(workflow.missing(study, store=store)), len(workflow.cells(study, store=store))
    if left:
        message = f"{left} of {some(all_cells, 'run')} of {study.name} are missing, and are not judged"
        yield Condition("runs-missing", message, "without --no-run they are made first")
    with store_if_there(place_of(study, store)) as kept:
        if kept is not None:
            yield from workflow.reuse_conditions(workflow.known_to(study, kept), kept)


def check_runs(new: KnownRuns, held: KnownRuns, question: CheckQuestion) -> Check:
    """Judge runs that are at hand. What is not comparable is refused."""
    judged = _Judged.of(new, question)
    _refuse_incomparable(new, held, question, judged.metric)
    sides = judged.sides
    base = _Judged.of(held, replace(question, metrics=_as_judged(judged.metric)), like=judged)
    matching = [name for name in sides if name in base.sides]
    if not matching:
        raise nothing_matches(sides, base.sides, held.place)
    if judged.metric.scale and base.metric.scale and judged.metric.scale != base.metric.scale:
        raise InputError(
            f"{judged.metric.name} is not on the same scale on both sides",
            found=f"a {judged.metric.scale} here, a {base.metric.scale} in {held.place}",
            hint="make the baseline again with the code that logs it as it does now",
        )
    scale = judged.metric.scale or base.metric.scale  # that of the baseline alone, where no new run has a value
    margin = Margin.of(question.margin, question.margin_unit, scale)
    evidence = [_evidence(name, question, judged, base) for name in matching]
    return Check(
        study=new.place,
        baseline=held.place,
        metric=judged.metric.name,
        direction=judged.metric.direction,
        scale=scale,
        margin=margin,
        alpha=question.alpha,
        groups=judge_changes(evidence, direction=judged.metric.direction, margin=margin, alpha=question.alpha),
        conditions=(
            *direction_conditions(judged.metric),
            *without_baseline(sides, base.sides, held.place),
            *data_conditions(new.records or (), held.records or ()),
            *held.told,
        ),
        changed=_changed(new, held, judged, base),
    )


@dataclass(frozen=True, slots=True)
class _Judged:
    """The runs of one side, each group as units, by the metric that is asked for."""

    metric: JudgedMetric
    sides: dict[GroupName, CheckedSide]
    groups: Mapping[GroupName, GroupResult] = field(default_factory=dict)
    result: StudyResult | None = None
    selection: str = ""

    @classmethod
    def of(cls, runs: KnownRuns, question: CheckQuestion, like: _Judged | None = None) -> _Judged:
        """like: the side that this one is held against, whose groups, metric and selection are looked for."""
        if runs.records is not None:
            return _judged_records(runs, question, like)
        name = (question.declared or Metric("")).name
        if runs.numbers is not None:
            side = list_side(runs.numbers)
            key = next(iter(like.sides)) if like is not None and len(like.sides) == 1 else _ALONE
            metric = (
                like.metric
                if like is not None
                else _directed(judged_column(name or "results", question.direction or ""))
            )
            return cls(metric, {key: side})
        assert runs.table is not None
        if not name:
            raise InputError(
                f"which column of {runs.place} holds the results is not said",
                allowed=", ".join(runs.table.columns),
                hint="metric=… (--metric on the command line)",
            )
        asked = list(like.sides) if like is not None else _groups_of_table(runs, question)
        sides = table_sides(runs.table, name, asked)
        numbers = np.concatenate([side.values for side in sides.values()] or [np.empty(0)])
        directed = (
            like.metric if like is not None else judged_column(name, (question.declared or Metric(name)).direction)
        )
        return cls(replace(_directed(directed), scale=scale_of_values(name, numbers)), sides)


def _judged_records(runs: KnownRuns, question: CheckQuestion, like: _Judged | None) -> _Judged:
    assert runs.records is not None
    result = analyse_recorded(runs.place, runs.records, question.metrics, question.selections)
    # Where every run failed, a declared metric is judged all the same: what is told is that they failed.
    is_new_and_broken = like is None and _none_finished(runs.records)
    if result.primary is None or (result.primary.name not in result.logged and not is_new_and_broken):
        raise _metric_missing(runs, (question.declared or Metric("")).name, result.logged)
    names = [item.name for item in result.selections]
    chosen = question.selection or (like.selection if like is not None and like.selection else names[0])
    if chosen not in names:
        raise InputError(f"{runs.place} has no selection {chosen!r}", allowed=known_names(chosen, names))
    by_group: defaultdict[GroupKey, list[RunRecord]] = defaultdict(list)
    for record in runs.records:
        by_group[GroupKey.of(record)].append(record)
    groups = {
        group_name(group): group
        for group in result.groups
        if all(getattr(group_name(group), name) == label for name, label in question.where.items())
    }
    if not groups:
        raise _nothing_meant(runs.place, question, map(group_name, result.groups))
    metric = _directed(result.primary)
    sides = {name: record_side(group, by_group[group.key], chosen, metric.name) for name, group in groups.items()}
    kept = {name: side for name, side in sides.items() if side.units or side.failed}
    return _Judged(metric, kept, groups, result, chosen)


def _nothing_meant(place: str, question: CheckQuestion, groups: Iterable[GroupName]) -> InputError:
    return InputError(
        f"no run of {place} is meant",
        found=", ".join(f"{name} = {label}" for name, label in question.where.items()),
        allowed="; ".join(sorted(name.label for name in groups)),
    )


def _none_finished(records: Collection[RunRecord]) -> bool:
    return bool(records) and not any(record.state is RunState.FINISHED for record in records)


def _metric_missing(runs: KnownRuns, name: str, logged: Iterable[str]) -> InputError:
    if runs.records and _none_finished(runs.records):
        reasons = dict.fromkeys(record.reason or record.state for record in runs.records)
        return InputError(
            f"none of {some(len(runs.records), 'run')} of {runs.place} finished",
            found=first_of(reasons, 3),
            hint="isorun report says what became of each, with the last lines of its output",
        )
    error = not_logged(name, logged)
    return InputError(f"{error.what} ({runs.place})", allowed=error.allowed, hint=error.hint)


def _directed(metric: JudgedMetric) -> JudgedMetric:
    """A check without a direction could only pass or fail by chance."""
    if not metric.direction:
        raise InputError(
            f"the name {metric.name!r} does not tell which direction is better",
            hint=f"direction=… (--direction), or {how_to_declare(metric)}",
        )
    return metric


def _as_judged(metric: JudgedMetric) -> dict[str, Metric]:
    return {metric.name: Metric(metric.name, metric.direction, metric.chance)}


def _groups_of_table(runs: KnownRuns, question: CheckQuestion) -> list[GroupName]:
    """The groups that a table of new runs holds; what it has no column for is the default."""
    assert runs.table is not None
    columns = {name: runs.table.labels(name) for name in GROUP_FACTORS if name in runs.table.columns}
    rows = [{name: labels[row] for name, labels in columns.items()} for row in range(runs.table.rows)]
    names = dict.fromkeys(replace(_ALONE, **row) for row in rows)
    return [name for name in names if all(getattr(name, key) == label for key, label in question.where.items())]


def _evidence(name: GroupName, question: CheckQuestion, judged: _Judged, base: _Judged) -> GroupEvidence:
    new, old = judged.sides[name], base.sides[name]
    shared = [label for label in new.labels if label in old.labels] if name.fixes_seed else []
    same_seeds = len(shared) >= FEWEST_RUNS and len(shared) == len(new.labels) == len(old.labels)
    if question.pair and not shared:
        why = "at level default no seed is fixed" if not name.fixes_seed else "the sides have no seed in common"
        raise InputError(f"the runs of {name.label} cannot be paired: {why}", hint="leave pair (--pair) out")
    pairs = same_seeds if question.pair is None else question.pair
    own = _of_group(judged, name)
    theirs = (one for one in _of_group(base, name) if one.code not in {condition.code for condition in own})
    conditions = (*own, *theirs, *_between(judged, base, name))
    if pairs:
        new, old = paired(new, old)
    return GroupEvidence(name.label, new, old, pairs, conditions)


def _of_group(judged: _Judged, name: GroupName) -> tuple[Condition, ...]:
    """What is known against the group alone; failures and values that are missing are counted by the check itself."""
    if judged.result is None:
        return judged.sides[name].conditions
    counted = {"runs-failed", "not-finite", "runs-missing", "unjudged", "direction-guessed", "direction-unknown"}
    sides = StudySides(judged.result, "approach", (judged.groups[name],))
    return tuple(condition for condition in sides.conditions() if condition.code not in counted)


def _between(judged: _Judged, base: _Judged, name: GroupName) -> tuple[Condition, ...]:
    """What the sides differ in besides the code, which is what is checked."""
    if judged.result is None or base.result is None or not judged.groups[name].finished:
        return ()
    found = between_sides(judged.groups[name].provenance, base.groups[name].provenance, "approach")
    next_step = "make the baseline again where the check runs"
    return tuple(replace(item, next_step=next_step) for item in found if item.code != "sides-differ-in-code")


def _changed(new: KnownRuns, held: KnownRuns, judged: _Judged, base: _Judged) -> tuple[str, ...]:
    """Files, settings and commands that differ from the baseline's, as far as both are known."""
    both = [name for name in judged.groups if name in base.groups]
    files = [
        path
        for name in both
        for path in edited_between(judged.groups[name].provenance.files, base.groups[name].provenance.files)
    ]
    mine, theirs = commands(new.records or ()), commands(held.records or ())
    moved = [f"the command of {key}" for key in mine if key in theirs and mine[key] != theirs[key]]
    return tuple(dict.fromkeys([*files, *moved]))


def _refuse_before_runs(study: Study, held: KnownRuns, question: CheckQuestion) -> None:
    """What is refused as far as it is declared: hours of runs are not made for it."""
    _refuse_direction(held, question.declared)
    new = {GroupName(cell.approach, cell.config, cell.environment, str(cell.level)) for cell in cells_of(study)}
    asked = {name for name in new if all(getattr(name, key) == label for key, label in question.where.items())}
    if new and not asked:
        raise _nothing_meant(study.name, question, new)
    names = list(study.selections)
    if names and question.selection is not None and question.selection not in names:
        raise InputError(
            f"the study has no selection {question.selection!r}", allowed=known_names(question.selection, names)
        )
    if held.records is None:
        if held.table is not None and question.declared is not None:
            held.table.column(question.declared.name)
        return
    wanted = question.declared
    logged = {name for record in held.records for name in (*record.results, *record.series)}
    if wanted is not None and wanted.name not in logged:
        raise _metric_missing(held, wanted.name, sorted(logged))
    old = {GroupName(r.cell.approach, r.cell.config, r.cell.environment, str(r.cell.level)) for r in held.records}
    if asked and not study.searches and not asked & old:
        raise nothing_matches(asked, old, held.place)


def _refuse_direction(held: KnownRuns, metric: Metric | None) -> None:
    theirs = held.study.metrics.get(metric.name) if held.study is not None and metric is not None else None
    if metric is not None and theirs is not None and {metric.direction, theirs.direction} == {"higher", "lower"}:
        raise InputError(
            f"of {metric.name} {metric.direction} is better here, and {theirs.direction} in the baseline {held.place}",
            hint="correct the direction in the study, or make the baseline again",
        )


def _refuse_incomparable(new: KnownRuns, held: KnownRuns, question: CheckQuestion, metric: JudgedMetric) -> None:
    _refuse_direction(held, Metric(metric.name, metric.direction))
    if new.records is None or held.records is None:
        return
    refuse_same_runs(new.records, held.records, held.place)
    differing = other_data(new.records, held.records)
    if differing and not question.other_data:
        raise InputError(
            "the two sides were trained on different data",
            found=f"{first_of(differing, 4, ', ')} differ from the baseline's",
            hint="make the baseline again with these data, or other_data=True (--other-data) judges all the same",
        )
