"""All runs of a rule, or those that are not weak."""

from __future__ import annotations

from isorun.analysis.studies.group_result import SelectionResult, SelectionSpread
from isorun.analysis.studies.study_result import StudyResult

__all__ = ["has_weak", "view"]


def has_weak(result: StudyResult) -> bool:
    """Whether any rule finds a weak run."""
    return any(rule.without_weak is not None for group in result.groups for rule in group.selections)


def view(rule: SelectionResult, without_weak: bool) -> SelectionSpread:
    """The spread of all runs, or of those that are not weak; the same for a group without weak runs."""
    return rule.without_weak if without_weak and rule.without_weak is not None else rule.every
