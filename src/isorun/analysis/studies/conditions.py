"""Conditions of a study: what a reader has to know before trusting its numbers.

Each check is one function that yields conditions. Those of `group_conditions` look at the runs of one group; those of
STUDY_CHECKS at the whole study: are its runs all there, and are the values it is judged by those that were meant? That
is the order they are shown in. Codes are stable, so that scripts can rely on them.
"""

from __future__ import annotations

import json
import keyword
import math
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from isorun.analysis.evidence import Condition, first_of, some
from isorun.analysis.evidence.judged import JudgedMetric, MetricKind, direction_conditions, how_to_declare, kind_of
from isorun.analysis.evidence.places import places, several_places
from isorun.analysis.evidence.run_units import run_units
from isorun.analysis.evidence.shared_files import shared_file_conditions
from isorun.analysis.studies.group_conditions import AT_ONCE, GROUP_CHECKS
from isorun.analysis.studies.group_result import GroupKey, GroupResult, JudgedRun
from isorun.analysis.studies.selection import FINAL, selections_of
from isorun.analysis.studies.study_metrics import judged_metrics, logged_metrics
from isorun.errors import known_names
from isorun.sources.messages import plain
from isorun.study.cells import Level
from isorun.study.design import Study
from isorun.study.records import RunRecord

__all__ = ["FEWEST_RUNS", "StudyFacts", "study_conditions", "told_at_once"]

_OFFERED, _RELIED = "files.offered", "files.relied"
_NOT_READ: Final = (".left-out", ".unread", ".not-taken", ".no-metrics", ".bad-line", ".no-header", "source-failed")
_NOT_READ_TOLD: Final = 2
_FILES_TOLD: Final = 3
_SOME_NOT_READ: Final = frozenset(
    ["stdout.values-left-out", "stdout.replaced", "stdout.after-end", "stdout.several", "files.not-a-number"]
)
_SOME_ROWS_NOT_READ: Final = frozenset(["files.bad-line", "files.limit"])
_EXAMPLE_BEFORE, _EXAMPLE_LENGTH = 40, 100
_DIGIT: Final = re.compile(r"\d|\b(?:nan|inf)", re.IGNORECASE)
_RUNS_NAMED: Final = 3
_REASONS_TOLD: Final = 3

FEWEST_RUNS: Final = 5
"""Below this many runs a standard deviation says next to nothing: its 90 % interval at n = 4 is 0.6 to 2.9 times sd."""


@dataclass(frozen=True, slots=True)
class StudyFacts:
    """What the checks look at. records: the finished runs by group."""

    groups: Sequence[GroupResult]
    records: Mapping[GroupKey, Sequence[RunRecord]]
    metrics: Sequence[JudgedMetric]
    logged: Sequence[str]


def study_conditions(evidence: StudyFacts) -> tuple[Condition, ...]:
    """All conditions, those on how the runs were made first; the same one of several groups is one."""
    units = {group.key: group.units for group in evidence.groups}
    in_groups = (
        replace(condition, groups=(key.label,))
        for check in GROUP_CHECKS
        for key, records in evidence.records.items()
        if records
        for condition in check(key, records, units[key])
    )
    return (*_merged(in_groups), *(condition for check in STUDY_CHECKS for condition in check(evidence)))


def _merged(warnings: Iterable[Condition]) -> Iterable[Condition]:
    merged: dict[tuple[str, str], Condition] = {}
    for warning in warnings:
        same = merged.get((warning.code, warning.message), replace(warning, groups=()))
        merged[warning.code, warning.message] = replace(same, groups=(*same.groups, *warning.groups))
    return merged.values()


def told_at_once(study: Study, records: Sequence[RunRecord]) -> tuple[Condition, ...]:
    """What runs that were just made say of themselves, for whoever started them and can still change it."""
    groups: dict[GroupKey, list[RunRecord]] = {}
    for record in records:
        groups.setdefault(GroupKey.of(record), []).append(record)
    noted = (
        replace(condition, groups=(key.label,))
        for check in AT_ONCE
        for key, made in groups.items()
        for condition in check(key, made, run_units(made))
    )
    metrics = judged_metrics(study.metrics, records)
    picking = {selection.metric for selection in selections_of(study.selections, records, metrics)}
    restarts = _restarts(records, {*picking, *(metric.name for metric in metrics)})
    shared = shared_file_conditions(records)
    return (*shared, *_merged(noted), *(_not_logged(metrics, logged_metrics(records)) if records else ()), *restarts)


def _runs_failed(evidence: StudyFacts) -> Iterator[Condition]:
    failed = [run for group in evidence.groups for run in group.failed if not run.finished_later]
    if failed:
        reasons = dict.fromkeys(run.reason or run.state for run in failed)
        yield Condition(
            "runs-failed",
            f"{some(len(failed), 'run')} left no result ({first_of(reasons, _REASONS_TOLD)}); "
            "the tables show only those that finished",
            "isorun run with the same study: only what is missing or failed is run",
        )


def _draws_failed_before(evidence: StudyFacts) -> Iterator[Condition]:
    """At level default another attempt is another draw: who tries until a run ends well keeps the better ones."""
    failed = {
        group.key.label: sum(bool(run.draw) and run.finished_later for run in group.failed)
        for group in evidence.groups
        if group.key.level is Level.DEFAULT
    }
    told = {label: count for label, count in failed.items() if count}
    if told:
        yield Condition(
            "draws-failed-before",
            f"{some(sum(told.values()), 'run')} failed and their places were taken by others: at level default each "
            "attempt draws anew, so that runs which ended may be the better ones",
            "find out why: isorun report names the reason; a training that sometimes fails is a result, too",
            tuple(told),
        )


def _runs_missing(evidence: StudyFacts) -> Iterator[Condition]:
    missing = sum(max(group.planned - sum(group.states.values()), 0) for group in evidence.groups)
    if missing:
        planned = sum(group.planned for group in evidence.groups)
        has = "has" if missing == 1 else "have"
        yield Condition(
            "runs-missing",
            f"{some(missing, 'run')} of the {planned} in the study {has} not been made yet",
            "isorun run with the same study: only what is missing is run",
        )


def _files_shared(evidence: StudyFacts) -> Iterator[Condition]:
    yield from shared_file_conditions([record for records in evidence.records.values() for record in records])


def _several_places(evidence: StudyFacts) -> Iterator[Condition]:
    yield from several_places({key.label: places(records) for key, records in evidence.records.items()})


def _launch_differs(evidence: StudyFacts) -> Iterator[Condition]:
    """Seconds count from the end of start-up. Where nobody knows when that was, fresh and warm runs do not compare."""
    unknown = {
        key: [record for record in records if record.startup_seconds is None]
        for key, records in evidence.records.items()
    }
    modes = {key: {record.launch for record in records} for key, records in unknown.items() if records}
    fresh = sorted({str(key.level) for key, used in modes.items() if used == {"fresh"}})
    warm = sorted({str(key.level) for key, used in modes.items() if used == {"warm"}})
    if fresh and warm:
        yield Condition(
            "launch-differs",
            f"runs at {', '.join(fresh)} were started fresh, those at {', '.join(warm)} warm: the seconds of fresh "
            "runs include importing frameworks, so compare times within a level only",
            "isorun run with a new --store, where times matter: start-up is then recorded apart",
        )


def _metric_not_logged(evidence: StudyFacts) -> Iterator[Condition]:
    finished = any(evidence.records.values())
    for condition in _not_logged(evidence.metrics if finished else (), evidence.logged):
        name = next((one.name for one in evidence.metrics if f"metric {one.name!r};" in condition.message), "")
        how = _how_to_read(evidence, name) if name else ""
        yield replace(condition, next_step=f"a file of the runs has it: {how}") if how else condition
    if finished and not evidence.metrics:
        yield Condition(
            "no-metric",
            f"no run logged a metric, so there is nothing to judge by{_what_was_not_read(evidence)}",
            _how_to_read(evidence)
            or _pattern_that_reads(evidence)
            or "isorun.result(test_acc=...) in the training, or print lines such as 'test_acc: 0.98'",
        )


def _runs_without(evidence: StudyFacts) -> Iterator[Condition]:
    """Finished runs without the metric that others gave: their training ended otherwise, or was read otherwise."""
    records = [record for group in evidence.records.values() for record in group]
    for metric in evidence.metrics:
        name = metric.name
        without = sorted(run.run_id for run in records if name not in run.series and name not in run.results)
        if without and len(without) < len(records):
            yield Condition(
                "runs-without-metric",
                f"{name} is missing from {len(without)} of {some(len(records), 'finished run')} "
                f"({first_of(without, _RUNS_NAMED)}): the figures are those of the others",
                f"look at runs/{without[0]}/output.log in the store, or log it: isorun.result({name}=...)",
            )


def _how_to_read(evidence: StudyFacts, metric: str = "") -> str:
    """The command that reads what lies in files of the runs; empty where nothing does, or nothing of this metric."""
    for record in (record for records in evidence.records.values() for record in records):
        for note in record.notes:
            option, would, values = note.message.partition(" would read ")
            if note.code == _OFFERED and would and (not metric or f", {metric} " in f", {values} "):
                return _read_by(option, record.cell.command)
    return ""


def _pattern_that_reads(evidence: StudyFacts) -> str:
    """The command with a pattern made from a line that was printed and not read; empty where no line names a number."""
    from isorun.sources.patterns import proposed_pattern  # only where nothing was read

    for record in (record for records in evidence.records.values() for record in records):
        pattern, command = proposed_pattern(record.log_tail.splitlines()), record.cell.command
        if not pattern:
            continue
        in_a_study = f"patterns = [{json.dumps(pattern, ensure_ascii=False)}] under [sources] in a study file"
        by_command = (
            f"isorun run --pattern {shlex.quote(pattern)} --store NEW -- {shlex.join(command)}, or {in_a_study}"
        )
        return f"{in_a_study if command[:1] == ('function',) else by_command}, or isorun.result(...) in the training"
    return ""


def _read_by(option: str, command: Sequence[str]) -> str:
    """How a file is named: before a command, and in a study file."""
    [_, pattern] = shlex.split(option)
    in_a_study = f"files = [{json.dumps(pattern, ensure_ascii=False)}] under [sources] in a study file"
    if command[:1] == ("function",):
        return in_a_study
    return f"isorun run {option} --store NEW -- {shlex.join(command)}, or {in_a_study}"


def _not_logged(metrics: Sequence[JudgedMetric], logged: Sequence[str]) -> Iterator[Condition]:
    for metric in metrics:
        if metric.name not in logged:
            yield Condition(
                "metric-not-logged",
                f"no run logged the metric {metric.name!r}; logged were: {known_names(metric.name, logged)}",
                f"name one that was logged (--metric, or [metrics.…] in the study file), or log it: "
                f"isorun.result({metric.name}=...)",
            )


def _what_was_not_read(evidence: StudyFacts) -> str:
    """What was seen and not taken, and why, in the words of the source that saw it."""
    notes = (note for records in evidence.records.values() for record in records for note in record.notes)
    seen = list(dict.fromkeys(note.message for note in notes if note.code.endswith(_NOT_READ)))
    return f"; {first_of(seen, _NOT_READ_TOLD)}" if seen else ""


def _from_files(evidence: StudyFacts) -> Iterator[Condition]:
    """Files that nobody named are relied on where a run printed and logged nothing; told with their values."""
    records = [record for group in evidence.records.values() for record in group]
    noted = [note.message for record in records for note in record.notes if note.code == _RELIED]
    told = list({message.partition(" reads ")[0]: message for message in noted}.values())
    if told:
        files = [f"{option.removeprefix('--file ')} ({values})" for option, _, values in map(_reads, told)]
        yield Condition(
            "metric-from-files",
            "the runs logged no metric and none was read from what they printed; read from files that they wrote: "
            + first_of(files, _FILES_TOLD),
            f"check the values; to be sure, name the file: {told[0].partition(' reads ')[0]}, or log them",
        )


def _reads(message: str) -> tuple[str, str, str]:
    return message.partition(" reads ")


def _metric_chosen(evidence: StudyFacts) -> Iterator[Condition]:
    for metric in evidence.metrics:
        if not metric.declared:
            yield Condition(
                "metric-chosen",
                f"{metric.name} was chosen: {metric.chosen_because}",
                f"declare the one you mean: {how_to_declare(metric)}",
            )


def _directions(evidence: StudyFacts) -> Iterator[Condition]:
    for metric in evidence.metrics:
        yield from direction_conditions(metric)


def _few_runs(evidence: StudyFacts) -> Iterator[Condition]:
    few = [group for group in evidence.groups if group.finished < FEWEST_RUNS]
    if few:
        yield Condition(
            "few-runs",
            f"fewer than {FEWEST_RUNS} finished runs: the spread is hardly known",
            "raise repeats in the study (or -n) and run again: finished runs are kept",
            tuple(f"{group.key.label}: {group.finished}" for group in few),
        )


def _weak_runs(evidence: StudyFacts) -> Iterator[Condition]:
    weak = {
        group.key.label: len(group.selections[0].weak_runs)
        for group in evidence.groups
        if group.selections[0].weak_runs
    }
    if weak:
        yield Condition(
            "weak-runs",
            f"weak runs, which learned next to nothing: {sum(weak.values())}; they are part of every figure that does "
            "not say otherwise",
            "look at their output in the store: a training that sometimes fails is a result, too",
            tuple(weak),
        )


def _not_finite(evidence: StudyFacts) -> Iterator[Condition]:
    for metric in evidence.metrics:
        runs = {run.run_id for group in evidence.groups for run in _runs_with_gaps(group, metric.name)}
        if runs:
            named = ", ".join(sorted(runs)[:3]) + (", …" if len(runs) > 3 else "")
            yield Condition(
                "metric-not-finite",
                f"{metric.name} is NaN or infinite in {some(len(runs), 'run')} ({named}), left out of its figures",
                f"look at runs/{min(runs)}/output.log in the store",
            )


def _diverged_afterwards(evidence: StudyFacts) -> Iterator[Condition]:
    """Runs judged at an epoch before they ended in NaN or infinity: nothing of the values that are shown tells."""
    lost: dict[str, list[str]] = {}
    labels: dict[str, None] = {}
    for group in evidence.groups:
        picking = [judged for judged in group.selections if judged.selection != FINAL]
        judged_before = {run.run_id for judged in picking for run in judged.runs}
        asked = {judged.selection.metric for judged in picking} | {metric.name for metric in evidence.metrics}
        for record in evidence.records.get(group.key, ()):
            told = {name for name in record.series if name in asked or kind_of(name) is MetricKind.LOSS}
            ended = [name for name in sorted(told) if _ends_lost(record.series[name].values)]
            if ended and record.run_id in judged_before:
                lost[record.run_id] = ended
                labels[group.key.label] = None
    if lost:
        finished = sum(len(records) for records in evidence.records.values())
        names = first_of(dict.fromkeys(name for ended in lost.values() for name in ended), _REASONS_TOLD, ", ")
        yield Condition(
            "diverged-afterwards",
            f"{len(lost)} of {some(finished, 'finished run')} ended with NaN or infinite values of {names}, after an "
            "epoch that they are judged at: what is shown is from before they diverged",
            f"look at runs/{min(lost)}/output.log in the store; say that these values are those of the best epoch: a "
            "training that diverges is a result, too",
            tuple(labels),
        )


def _ends_lost(values: Sequence[float]) -> bool:
    """Whether a series that had finite values ends without one.

    What stands for epochs without a value, such as NaN where nothing was validated, comes as long before and is none.
    """
    finite = np.flatnonzero(np.isfinite(np.asarray(values, dtype=np.float64)))
    after = len(values) - 1 - int(finite[-1]) if finite.size else 0
    return after > int(np.diff(finite, prepend=-1).max(initial=1)) - 1


def _runs_with_gaps(group: GroupResult, metric: str) -> Iterator[JudgedRun]:
    for judged in group.selections:
        for run in judged.runs:
            if not math.isfinite(run.selected.values.get(metric, 0.0)):
                yield run


def _epochs_restart(evidence: StudyFacts) -> Iterator[Condition]:
    picking = {one.selection.metric for group in evidence.groups for one in group.selections}
    records = [record for records in evidence.records.values() for record in records]
    yield from _restarts(records, {*picking, *(metric.name for metric in evidence.metrics)})


def _without_epoch(evidence: StudyFacts) -> Iterator[Condition]:
    """Values that stand in no order but that of the lines: epochs of a training, or results of several models."""
    picking = {one.selection.metric for group in evidence.groups for one in group.selections}
    for metric in sorted({*picking, *(metric.name for metric in evidence.metrics)}):
        notes = [note for group in evidence.records.values() for record in group for note in record.notes]
        noted = [note.message for note in notes if note.code == "stdout.no-epoch" and f"{metric!r}" in note.message]
        if noted:
            yield Condition(
                "printed-without-epoch",
                f"{noted[0]}, whose last value counts unless a selection picks another ({some(len(noted), 'run')})",
                "print the epoch on the same line; of several models, print each under a name of its own",
            )


def _values_left_out(evidence: StudyFacts) -> Iterator[Condition]:
    """Values of a judged metric that were seen and not read, or of which another one counts: a best may be missing."""
    picking = {one.selection.metric for group in evidence.groups for one in group.selections}
    names = sorted({*picking, *(metric.name for metric in evidence.metrics)} - {""})
    told: dict[str, list[str]] = {}  # by what is said, whatever the run: a file of its own has the run's id in its path
    for record in (record for records in evidence.records.values() for record in records):
        files = [record.origins.get(name, "").removeprefix("file: ") for name in names]
        for note in record.notes:
            of_a_metric = note.code in _SOME_NOT_READ and any(f"{name!r}" in note.message for name in names)
            of_a_file = note.code in _SOME_ROWS_NOT_READ and note.message.startswith(tuple(filter(None, files)))
            if of_a_metric or of_a_file or note.code == "files.left-out":
                told.setdefault(note.message.replace(record.run_id, ""), []).append(note.message)
    if told:
        first = first_of([messages[0] for messages in told.values()], _NOT_READ_TOLD)
        yield Condition(
            "values-left-out",
            f"not every value was read: {first} ({some(max(map(len, told.values())), 'run')})",
            "print or write one number for each name in every row, or log it: isorun.log(epoch=..., val_acc=...)",
        )


def _restarts(records: Sequence[RunRecord], metrics: Collection[str]) -> Iterator[Condition]:
    """Runs that are several trainings by their steps: the best of all their epochs is that of one of them."""
    again = {
        record.run_id: name
        for record in records
        for name in sorted(metrics)
        if name in record.series and record.series[name].begins_again
    }
    if again:
        names = ", ".join(sorted(set(again.values())))
        yield Condition(
            "epochs-restart",
            f"epochs begin again in {len(again)} of {some(len(records), 'run')} ({names}): "
            "stages or folds are judged as one training, at the best or the last of all their epochs",
            "make each fold or stage a run of its own, or log what stands for all: "
            f"isorun.result({_given(min(again.values()))})",
        )


def _unjudged(evidence: StudyFacts) -> Iterator[Condition]:
    for number, judged in enumerate(evidence.groups[0].selections if evidence.groups else ()):
        problems = [problem for group in evidence.groups for problem in group.selections[number].unjudged.values()]
        if problems:
            yield Condition(
                "selection-without-epoch",
                f"the selection {judged.selection.name} picked no epoch in {some(len(problems), 'run')} "
                f"({problems[0]}); they are missing from its rows",
                f"log {judged.selection.metric} every epoch, or change [selections.{judged.selection.name}]",
            )


def _selected_on_itself(evidence: StudyFacts) -> Iterator[Condition]:
    judged = evidence.groups[0].selections if evidence.groups else ()
    names = {metric.name for metric in evidence.metrics}
    runs = [run for group in evidence.records.values() for run in group]
    both = [one.selection for one in judged if one.selection.metric in names and _picks(one.selection.metric, runs)]
    if both:
        yield Condition(
            "selected-on-itself",
            f"{both[0].metric} both picks the epoch and is the result: the best of many epochs is too good",
            "log a value on data that picks nothing: isorun.log(epoch=..., test_acc=...)",
        )


def _picks(metric: str, records: Sequence[RunRecord]) -> bool:
    """Whether there is anything to pick from: the only value of a run is not the best of many."""
    return any(len(record.series[metric].values) > 1 for record in records if metric in record.series)


def _judged_at_end(evidence: StudyFacts) -> Iterator[Condition]:
    for metric, selections in _of_the_end(evidence, lambda run: run.selected.at_end):
        yield Condition(
            "final-value-used",
            f"{metric} was not logged at the epoch picked by {selections}: its value at the end of the run is shown",
            f"log it every epoch: {_log_call(metric)}",
        )


def _classes_at_end(evidence: StudyFacts) -> Iterator[Condition]:
    """Where classes are of another epoch than what is shown beside them."""
    for metric, selections in _of_the_end(evidence, lambda run: run.selected.classes_at_end - run.selected.at_end):
        yield Condition(
            "final-classes-used",
            f"{metric} of every class was not logged at the epoch picked by {selections}: "
            "the values that classes had at the end of the run are shown",
            "log them every epoch: isorun.log(epoch=..., per_class={'cat': ..., 'dog': ...})",
        )


def _of_the_end(evidence: StudyFacts, named: Callable[[JudgedRun], Collection[str]]) -> Iterator[tuple[str, str]]:
    """The metrics that are named of any run, each with the selections that picked another epoch than the last."""
    for metric in evidence.metrics:
        judged = [one for group in evidence.groups for one in group.selections]
        selections = {one.selection.name for one in judged if any(metric.name in named(run) for run in one.runs)}
        selections -= {FINAL.name}
        if selections:
            yield metric.name, " and ".join(sorted(selections))


def _from_output(evidence: StudyFacts) -> Iterator[Condition]:
    """Metrics read in the same way, from the same line where one is still known, are one warning."""
    judged = {metric.name for metric in evidence.metrics}
    judged |= {one.selection.metric for group in evidence.groups for one in group.selections}
    records = [record for group in evidence.records.values() for record in group]
    alike: dict[str, list[str]] = {}
    for metric in sorted(judged):
        origins = (record.origins.get(metric, "") for record in records)
        origin = next((origin for origin in origins if origin.startswith("stdout")), "")
        if origin:
            alike.setdefault(f"({origin}){_example(records, metric)}", []).append(metric)
    for where, metrics in alike.items():
        yield Condition(
            "metric-from-output",
            f"{', '.join(metrics)} read from the training's output {where}",
            f"check the values; to be sure, log them: {_log_call(metrics[0])}, or declare a pattern",
        )


def _log_call(metric: str) -> str:
    return f"isorun.log(epoch=..., {_given(metric)})"


def _given(metric: str) -> str:
    """A metric as an argument in Python: a name that is none of Python's is given in quotes."""
    is_plain = metric.isidentifier() and not keyword.iskeyword(metric)
    return f"{metric}=..." if is_plain else f"**{{{json.dumps(metric)}: ...}}"


def _example(records: Sequence[RunRecord], metric: str) -> str:
    """The first line of the log with a number after the metric's name, where the kept end of the log still has one.

    Only of runs that gave the metric: the log of another one may name it and say nothing of it.
    """
    gave = (record for record in records if record.origins.get(metric, "").startswith("stdout"))
    lines = (plain(line) for record in gave for line in record.log_tail.splitlines() if metric in line)
    line = next((line for line in lines if _DIGIT.search(line, line.find(metric) + len(metric))), "").strip()
    start = max(line.find(metric) - _EXAMPLE_BEFORE, 0)
    shown = f"{'…' if start else ''}{line[start : start + _EXAMPLE_LENGTH]}"
    return f', as in "{shown}"' if line else ""


STUDY_CHECKS: Final[Sequence[Callable[[StudyFacts], Iterator[Condition]]]] = (
    _metric_not_logged,
    _runs_without,
    _not_finite,
    _diverged_afterwards,
    _runs_failed,
    _draws_failed_before,
    _runs_missing,
    _files_shared,
    _several_places,
    _launch_differs,
    _few_runs,
    _weak_runs,
    _epochs_restart,
    _without_epoch,
    _values_left_out,
    _unjudged,
    _selected_on_itself,
    _judged_at_end,
    _classes_at_end,
    _from_output,
    _from_files,
    _metric_chosen,
    _directions,
)
