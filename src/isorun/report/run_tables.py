"""What was run: what runs took, each with its value, those that left no result, and what all of them come from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from isorun.analysis.evidence.surroundings import SHORT
from isorun.analysis.studies.group_result import FailedRun, GroupResult, JudgedRun
from isorun.analysis.studies.study_result import StudyResult
from isorun.report import UNKNOWN, Column, NumberStyle, Table, count, memory, seconds, style_for
from isorun.report.study_tables import GROUP_COLUMNS, group_cells
from isorun.study.records import RunState

__all__ = ["provenance_tables", "run_tables"]

_LOG: Final = "output.log"


def run_tables(result: StudyResult) -> Iterator[Table]:
    """Counts and cost, the failures, and every run."""
    yield _cost_table(result)
    yield _failures_table(result)
    yield _every_run_table(result)


def provenance_tables(result: StudyResult) -> Iterator[Table]:
    """What the runs come from."""
    named = any(fact.of for fact in result.provenance)
    columns = (Column("what", key=True), *([Column("of", key=True)] if named else []), Column("found", key=True))
    rows = tuple((fact.what, *([fact.of] if named else []), fact.value, str(fact.runs)) for fact in result.provenance)
    note = "Of the finished runs; isorun env describe RUN has all that is known of one."
    yield Table("provenance", "What the runs come from", (*columns, Column("runs")), rows, (note,))


def _every_run_table(result: StudyResult) -> Table:
    metric = result.primary
    style = style_for(metric.scale) if metric else NumberStyle()
    judged = result.selections[0].name if result.selections else ""
    columns = (
        *GROUP_COLUMNS,
        Column("run", key=True, unbroken=True),
        Column("seed", key=True),
        *([Column(metric.name, style.unit)] if metric else []),
        Column("epoch"),
        Column("weights", key=True, unbroken=True),
        Column("log", key=True, unbroken=True),
    )
    runs = [(group, run) for group in result.groups if group.selections for run in group.selections[0].runs]
    rows = tuple((*group_cells(group.key), *_run_cells(group, run, result, style)) for group, run in runs)
    notes = (
        f"Value and epoch as judged by {judged}. weights: the first {SHORT} digits of the digest of the final ones."
        if judged
        else "No metric was judged.",
    )
    links = tuple(str(Path(run.folder) / _LOG) if run.folder else "" for _, run in runs)
    return Table("every-run", "Every finished run", columns, rows, notes, folded=True, links=links)


def _run_cells(group: GroupResult, run: JudgedRun, result: StudyResult, style: NumberStyle) -> tuple[str, ...]:
    metric, selected = result.primary, run.selected
    value = selected.values.get(metric.name) if metric else None
    sd = group.selections[0].every.metrics[metric.name].overall.sd if metric else None
    return (
        run.run_id,
        "drawn anew" if run.seed is None else str(run.seed),
        *([style.value(value, sd)] if metric else []),
        "end" if selected.step is None else f"{selected.step:.12g}",
        run.weights[:SHORT] or UNKNOWN,
        f"{Path(run.folder).name}/{_LOG}" if run.folder else UNKNOWN,
    )


def _cost_table(result: StudyResult) -> Table:
    columns = (
        *GROUP_COLUMNS,
        Column("planned", group="runs"),
        Column("finished", group="runs"),
        Column("failed", group="runs"),
        Column("start-up", "s"),
        Column("mean", "s", "training"),
        Column("sd", "s", "training"),
        Column("CPU mean", "s"),
        Column("peak memory", "MiB"),
    )
    rows = tuple((*group_cells(group.key), *_cost_cells(group)) for group in result.groups)
    return Table("runs", "Runs and what they took", columns, rows, tuple(_run_notes(result)))


def _cost_cells(group: GroupResult) -> tuple[str, ...]:
    cost = group.cost
    failed = sum(number for state, number in group.states.items() if state is not RunState.FINISHED)
    return (
        str(group.planned),
        str(group.finished),
        str(failed),
        seconds(cost.startup_seconds.mean),
        seconds(cost.training_seconds.mean),
        seconds(cost.training_seconds.sd),
        seconds(cost.cpu_seconds.mean),
        memory(cost.peak_memory_bytes.maximum),
    )


def _run_notes(result: StudyResult) -> Iterator[str]:
    states = [
        f"{number} {state}" for state, number in result.states.items() if number and state is not RunState.FINISHED
    ]
    if states:
        yield f"Not finished: {', '.join(states)}; failed counts attempts, also those that a retry made good."
    yield "Start-up: interpreter and imports, on average. Training: the wall time after it. CPU: of both."
    yield "Peak memory: the largest of all runs. Time, CPU and memory are those of finished runs."
    unknown = sum(group.cost.wall_seconds.n - group.cost.startup_seconds.n for group in result.groups)
    if unknown:
        yield f"Start-up of {count(unknown, 'run')} is not known: the seconds of training hold it."


def _failures_table(result: StudyResult) -> Table:
    columns = (
        *GROUP_COLUMNS,
        Column("run", key=True, unbroken=True),
        Column("state", key=True),
        Column("reason", key=True),
        Column("what its log ends with", key=True),
    )
    rows = tuple(
        (
            *group_cells(group.key),
            run.run_id,
            str(run.state),
            run.reason + _later(run.finished_later),
            _beyond_the_reason(run),
        )
        for group in result.groups
        for run in group.failed
    )
    if rows and not any(row[-1] for row in rows):  # the reasons have it all, and the room that is left
        columns, rows = columns[:-1], tuple(row[:-1] for row in rows)
    return Table("failures", "Runs that left no result", columns, rows)


def _beyond_the_reason(run: FailedRun) -> str:
    """What the log of a run ends with, where the reason does not say all of it."""
    return "" if run.log_end in run.reason else run.log_end


def _later(finished_later: bool) -> str:
    return " (a later attempt finished)" if finished_later else ""
