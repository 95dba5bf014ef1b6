"""What touches a verdict on two or more sides of a study: their own conditions, and what they differ in besides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

from isorun.analysis.evidence.condition import Condition
from isorun.analysis.evidence.provenance import between_sides
from isorun.analysis.studies.group_result import GroupResult
from isorun.analysis.studies.study_result import StudyResult
from isorun.study.levels import Level

__all__ = ["StudySides", "study_sides"]

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
        merged = [item for item in self.conditions() if item.code in {"default-not-independent", "seed-without-effect"}]
        if merged:
            return merged[0].next_step
        if self.noun == "run":
            return "raise repeats in the study (or -n) to 10 and run again: finished runs are kept"
        return (
            "add seeds to the study (seeds = [1, 2, …, 10]; --seed) and run again: finished runs are kept; or ask "
            "about one seed alone: --unit repeat"
        )

    def conditions(self) -> tuple[Condition, ...]:
        """Everything known against a verdict on these groups."""
        labels = {group.key.label for group in self.groups}
        own = (_touching(condition, labels) for condition in self.result.warnings)
        between = [
            condition
            for a, b in combinations(self.groups, 2)
            for condition in between_sides(a.provenance, b.provenance, self.by)
        ]
        return (*(condition for condition in own if condition is not None), *dict.fromkeys(between))


def study_sides(
    result: StudyResult, by: str, labels: Sequence[str] = (), where: Mapping[str, str] | None = None
) -> StudySides:
    """The groups where `by` is one of the labels (any, when none is given) and the other factors are as in `where`."""
    fixed = {name: label for name, label in (where or {}).items() if name in _FACTORS}
    chosen = [
        group
        for group in result.groups
        if group.finished
        and (by not in _FACTORS or not labels or _factor(group, by) in labels)
        and all(_factor(group, name) == label for name, label in fixed.items())
    ]
    return StudySides(result, by, tuple(chosen))


_FACTORS: Final = ("approach", "config", "environment", "level")


def _factor(group: GroupResult, name: str) -> str:
    return str(getattr(group.key, name))


def _touching(condition: Condition, labels: set[str]) -> Condition | None:
    """The condition as far as it is about these groups; None where it is not, or is about other things."""
    if condition.code in _ABOUT_OTHER_THINGS:
        return None
    touched = tuple(group for group in condition.groups if group in labels)
    return replace(condition, groups=touched) if touched or not condition.groups else None
