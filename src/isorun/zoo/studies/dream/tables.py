"""The searches of the two cases as tables: what was stated beside what the logs say, and the searches side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from isorun.report import UNKNOWN, Column, Table, fixed, significant
from isorun.zoo.data.search_logs import LoggedSearch
from isorun.zoo.studies.dream.findings import DAY, HOUR, TARGET, TRIALS, CheckedStatement, RunningAgreement
from isorun.zoo.studies.dream.measured import replay

__all__ = ["label", "running_table", "searches_table", "stated_and_found", "statements_table"]

_LABELS: Final = {"dream": "DREAM"}


def label(tuner: str) -> str:
    """A tuner as readers know it."""
    return _LABELS.get(tuner, tuner.capitalize())


def statements_table(findings: Sequence[CheckedStatement], stated_by: str) -> Table:
    """Every stated number beside the log's, and whether they are equal at the decimals that were stated."""
    columns = (
        Column("case", key=True),
        Column("strategy", key=True),
        Column("quantity", key=True),
        Column(stated_by),
        Column("ours"),
        Column("same", key=True),
    )
    rows = tuple(_statement_row(finding) for finding in findings)
    notes = tuple(
        f"{label(statement.tuner)}, {statement.quantity.name}: {statement.remark}."
        for statement in (finding.statement for finding in findings if finding.present and not finding.agrees)
        if statement.remark
    )
    return Table("stated-and-replayed", "The stated numbers, and what the logs say", columns, rows, notes)


def _statement_row(finding: CheckedStatement) -> tuple[str, ...]:
    statement = finding.statement
    unit = statement.quantity.unit
    name = f"{statement.quantity.name} ({unit})" if unit else statement.quantity.name
    same = ("yes" if finding.agrees else "no") if finding.present else "no log"
    return statement.case, label(statement.tuner), name, *stated_and_found(finding), same


def stated_and_found(finding: CheckedStatement) -> tuple[str, str]:
    """Both numbers as written; a difference that the stated decimals would hide gets one more."""
    statement = finding.statement
    stated = _written(statement.value, statement.decimals)
    if not finding.present:
        return stated, UNKNOWN
    found = _written(finding.measured, statement.decimals)
    hidden = found == stated and not finding.agrees
    return stated, _written(finding.measured, statement.decimals + 1) if hidden else found


def _written(value: float | None, decimals: int) -> str:
    return "never" if value is None else fixed(value, decimals)


def running_table(checked: Sequence[RunningAgreement]) -> Table:
    """How far the authors' own running bests and the replay of their trials are the same."""
    columns = (
        Column("case", key=True),
        Column("strategy", key=True),
        Column("by", key=True),
        Column("points"),
        Column("equal"),
    )
    rows = tuple((best.case, label(best.tuner), best.axis, str(best.points), str(best.equal)) for best in checked)
    notes = ("Where few points are equal, the authors' curve cannot come from the log beside it.",)
    return Table("running-bests", "Running bests the authors kept, against the replay", columns, rows, notes)


def searches_table(case: str, searches: Mapping[str, LoggedSearch], title: str) -> Table:
    """The searches of a case at equal trials and at equal time: the two need not favour the same strategy."""
    group = f"first {TRIALS} trials"
    columns = (
        Column("strategy", key=True),
        Column("first", "%", group),
        Column("best", "%", group),
        Column("improving", "", group),
        Column("took", "h", group),
        Column("best", "%", "within 24 h"),
        Column(f"to {100 * TARGET:g} %", "h", "whole log"),
        Column("trials", "", "whole log"),
        Column("took", "h", "whole log"),
    )
    rows = tuple(_search_row(search) for search in searches.values())
    notes = ("One search for each strategy: how much a second one would differ, the logs cannot say.",)
    return Table(f"case-{case.lower()}", title, columns, rows, notes)


def _search_row(search: LoggedSearch) -> tuple[str, ...]:
    start, whole = replay(search, TRIALS), replay(search, None)
    hit = whole.reached(TARGET)
    return (
        label(search.tuner),
        _percent(start.start),
        _percent(start.best),
        str(len(start.improving)),
        significant(start.elapsed_s / HOUR),
        _percent(whole.best_within(DAY)),
        "never" if hit is None else significant(hit.elapsed_s / HOUR),
        str(len(whole.curve)),
        significant(whole.elapsed_s / HOUR),
    )


def _percent(score: float | None) -> str:
    return UNKNOWN if score is None else fixed(100 * score, 2)
