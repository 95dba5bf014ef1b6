"""What an address asks for: a metric, a selection, groups; and the form in which a reader asks for something else."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from isorun.errors import InputError, known_names
from isorun.study.cells import GROUP_FACTORS

if TYPE_CHECKING:
    from isorun.analysis.studies.group_result import GroupKey, GroupResult
    from isorun.analysis.studies.study_result import StudyResult

__all__ = ["Choice", "address_of_group", "asked_for", "chosen_number", "metric_choice", "narrowed", "selection_choice"]

_LONGEST: Final = 200
_MOST_OPTIONS: Final = 200


@dataclass(frozen=True, slots=True)
class Choice:
    """A field of the form. options: (value, text); none for one that is typed. chosen: as the address says."""

    name: str
    label: str
    chosen: str
    options: tuple[tuple[str, str], ...] = ()
    kind: str = "text"


def asked_for(query: Mapping[str, str], name: str, allowed: Iterable[str], default: str = "") -> str:
    """What the address says, which must be one of these; the default where it says nothing."""
    said = query.get(name, "")
    if not said:
        return default
    known = list(allowed)
    if said not in known:
        raise InputError(f"there is no such {name}", found=said[:_LONGEST], allowed=known_names(said[:_LONGEST], known))
    return said


def chosen_number(query: Mapping[str, str], name: str) -> float | None:
    """A positive number that the address says; None where it says nothing."""
    said = query.get(name, "")
    if not said:
        return None
    try:
        number = float(said.replace(",", "."))
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise InputError(f"{name} is no positive number", found=said[:_LONGEST])
    return number


def address_of_group(key: GroupKey) -> str:
    """What an address calls a group: its four factors."""
    return ",".join(str(getattr(key, factor)) for factor in GROUP_FACTORS)


def metric_choice(result: StudyResult, metric: str) -> list[Choice]:
    """The metrics, where there are several."""
    names = [one.name for one in result.metrics]
    return [Choice("metric", "metric", metric, _options(names))] if len(names) > 1 else []


def selection_choice(result: StudyResult, selection: str) -> list[Choice]:
    """The selections, where there are several."""
    names = [one.name for one in result.selections]
    return [Choice("selection", "judged at", selection, _options(names))] if len(names) > 1 else []


def _options(names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, name) for name in names[:_MOST_OPTIONS])


def narrowed(result: StudyResult, query: Mapping[str, str]) -> StudyResult:
    """The result as the address asks for it: one metric, one selection first, the groups with these factors.

    Without a word all groups, judged by the study's first metric and selection.
    """
    metric = asked_for(query, "metric", [one.name for one in result.metrics])
    selection = asked_for(query, "selection", [one.name for one in result.selections])
    groups = [group for group in result.groups if _is_asked(group, result, query)]
    if metric:
        result = replace(result, metrics=tuple(one for one in result.metrics if one.name == metric))
    if selection:
        order = sorted(result.selections, key=lambda one: one.name != selection)
        groups = [_judged_first(group, selection) for group in groups]
        result = replace(result, selections=tuple(order))
    if len(groups) == len(result.groups):
        return replace(result, groups=tuple(groups))
    labels = {group.key.label for group in groups}
    touching = tuple(one for one in result.conditions if not one.groups or labels & set(one.groups))
    kept = {(group.key.approach, group.key.config, group.key.environment, str(group.key.level)) for group in groups}
    levels = tuple(
        one
        for one in result.levels
        if {(one.approach, one.config, one.environment, level) for level in (one.level_a, one.level_b)} <= kept
    )
    return replace(result, groups=tuple(groups), levels=levels, conditions=touching)


def _is_asked(group: GroupResult, result: StudyResult, query: Mapping[str, str]) -> bool:
    for factor in GROUP_FACTORS:
        known = dict.fromkeys(str(getattr(one.key, factor)) for one in result.groups)
        wanted = asked_for(query, factor, known)
        if wanted and str(getattr(group.key, factor)) != wanted:
            return False
    return True


def _judged_first(group: GroupResult, selection: str) -> GroupResult:
    return replace(group, selections=tuple(sorted(group.selections, key=lambda one: one.selection.name != selection)))


def factor_choices(result: StudyResult, query: Mapping[str, str]) -> list[Choice]:
    """The factors in which groups differ."""
    choices = []
    for factor in GROUP_FACTORS:
        known = list(dict.fromkeys(str(getattr(one.key, factor)) for one in result.groups))
        if len(known) > 1:
            choices.append(Choice(factor, factor, query.get(factor, ""), (("", "all"), *_options(known))))
    return choices
