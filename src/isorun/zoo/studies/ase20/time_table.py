"""Table 3 in the paper's layout, each row of ours above the published one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from isorun.analysis.studies.group_result import GroupResult
from isorun.report.numbers import UNKNOWN, percentage, seconds
from isorun.report.tables import Column, Table
from isorun.zoo.studies.ase20.cells import OURS, PAPER
from isorun.zoo.studies.ase20.measured import Measured, by_level, of_papers_data
from isorun.zoo.studies.ase20.published import TABLE_3, PublishedTime
from isorun.zoo.studies.ase20.table_notes import few_runs_notes, shared_times_notes

__all__ = ["time_tables"]


def time_tables(groups: Sequence[Measured]) -> Iterator[Table]:
    """Table 3, for the paper's own data."""
    own = of_papers_data(groups)
    if any(group.finished for group in own):
        yield _table_3(own)


def _table_3(groups: Sequence[Measured]) -> Table:
    titles = ("Diff (s)", "RelDiff (%)", "RelSDev (%)")
    columns = (
        Column("setting", key=True),
        Column("network", key=True),
        Column("from", key=True),
        *(Column(title, "", "Time, best loss") for title in titles),
        *(Column(title, "", "Time, best accuracy") for title in titles),
    )
    rows = tuple(row for group in by_level(groups) for row in _time_rows(group))
    notes = (
        "Time until the epoch that the rule picks. Diff: slowest minus fastest run.",
        "RelDiff: Diff over the fastest run. RelSDev: standard deviation over mean.",
        *shared_times_notes(groups),
        *few_runs_notes(groups),
    )
    return Table("table-3", "Table 3: differences in time to convergence", columns, rows, notes)


def _time_rows(group: Measured) -> Iterator[tuple[str, ...]]:
    names = (str(group.level), group.network.name)
    yield (*names, OURS, *_our_times(group.group, "best-loss"), *_our_times(group.group, "best-accuracy"))
    published = TABLE_3.get(group.level, {}).get(group.network.name)
    if published is not None:
        yield (*names, PAPER, *_published_times(published.best_loss), *_published_times(published.best_accuracy))


def _our_times(group: GroupResult | None, rule: str) -> tuple[str, ...]:
    if group is None:
        return (UNKNOWN,) * 3
    time = group.selection(rule).every.seconds
    return seconds(time.max_difference), percentage(time.relative_difference), percentage(time.relative_sd)


def _published_times(time: PublishedTime) -> tuple[str, ...]:
    return f"{time.difference:,.0f}", f"{time.relative_difference:,.1f}", f"{time.relative_sd:.1f}"
