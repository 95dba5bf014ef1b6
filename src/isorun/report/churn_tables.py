"""Churn: on how many examples runs of a group disagree, and the examples that flip most."""

from __future__ import annotations

from collections.abc import Iterator

from isorun.analysis.spreads.churn import FlippedExample
from isorun.analysis.studies.study_result import StudyResult
from isorun.report import UNKNOWN, Column, Table, percentage
from isorun.report.study_tables import GROUP_COLUMNS, group_cells

__all__ = ["churn_tables"]


def churn_tables(result: StudyResult) -> Iterator[Table]:
    """How many examples flip, and which; nothing where no group kept predictions."""
    found = [(group, group.churn) for group in result.groups if group.churn is not None]
    if not found:
        return
    columns = (
        *GROUP_COLUMNS,
        Column("runs"),
        Column("examples"),
        Column("two runs disagree on", "%"),
        Column("examples that flip"),
        Column("right in one run, wrong in another"),
    )
    rows = tuple(
        (
            *group_cells(group.key),
            str(churn.runs),
            str(churn.examples),
            percentage(churn.mean),
            str(churn.flipping),
            UNKNOWN if churn.wrong_in_turn is None else str(churn.wrong_in_turn),
        )
        for group, churn in found
    )
    note = "Two runs disagree on: the share of test examples that they call differently, on average over all pairs."
    of_the_end = "Of the answers that runs ended with: not all left theirs at the epoch judged."
    notes = (note, of_the_end) if any(group.answers_of_the_end for group, _ in found) else (note,)
    yield Table("churn", "On which examples do runs disagree?", columns, rows, notes)
    columns = (*GROUP_COLUMNS, Column("example"), Column("label"), Column("predicted", key=True), Column("pairs", "%"))
    rows = tuple((*group_cells(group.key), *_cells(one)) for group, churn in found for one in churn.most)
    notes = (
        "Examples by their number in the test set, from 0. pairs: the share of pairs of runs that call it differently.",
    )
    yield Table("flipped", "The examples that flip most", columns, rows, notes, folded=True)


def _cells(example: FlippedExample) -> tuple[str, ...]:
    votes = ", ".join(f"{name} in {runs}" for name, runs in example.votes)
    label = UNKNOWN if example.label is None else str(example.label)
    return (str(example.place), label, votes, percentage(example.disagreement))
