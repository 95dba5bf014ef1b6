"""How many runs there are, what they took, and which left no result."""

from __future__ import annotations

from collections.abc import Iterator

from isorun.analysis.studies.group_result import GroupResult
from isorun.analysis.studies.study_result import StudyResult
from isorun.report.numbers import memory, seconds
from isorun.report.row_keys import GROUP_COLUMNS, group_cells
from isorun.report.tables import Column, Table
from isorun.study.records import RunState

__all__ = ["run_tables"]


def run_tables(result: StudyResult) -> Iterator[Table]:
    """Counts and cost, and the failures."""
    yield _cost_table(result)
    yield _failures_table(result)


def _cost_table(result: StudyResult) -> Table:
    columns = (
        *GROUP_COLUMNS,
        Column("planned", group="runs"),
        Column("finished", group="runs"),
        Column("failed", group="runs"),
        Column("mean", "s", "wall time"),
        Column("sd", "s", "wall time"),
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
        seconds(cost.wall_seconds.mean),
        seconds(cost.wall_seconds.sd),
        seconds(cost.cpu_seconds.mean),
        memory(cost.peak_memory_bytes.maximum),
    )


def _run_notes(result: StudyResult) -> Iterator[str]:
    states = [
        f"{number} {state}" for state, number in result.states.items() if number and state is not RunState.FINISHED
    ]
    if states:
        yield f"Not finished: {', '.join(states)}; failed counts attempts, also those that a retry made good."
    yield "Peak memory: the largest of all runs. Time, CPU and memory are those of finished runs."


def _failures_table(result: StudyResult) -> Table:
    columns = (
        *GROUP_COLUMNS,
        Column("run", key=True),
        Column("state", key=True),
        Column("reason", key=True),
        Column("last line of its log", key=True),
    )
    rows = tuple(
        (*group_cells(group.key), run.run_id, str(run.state), run.reason + _later(run.finished_later), run.log_end)
        for group in result.groups
        for run in group.failed
    )
    return Table("failures", "Runs that left no result", columns, rows)


def _later(finished_later: bool) -> str:
    return " (a later attempt finished)" if finished_later else ""
