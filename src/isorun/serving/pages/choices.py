"""What an address asks for: a metric, a selection, groups; and the form in which a reader asks for something else.

The words that an address may have are known of each page. Another one is refused: a misspelled `margin` would show
another answer than was asked for, and whatever somebody makes up would be a page of its own to keep.
"""

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

__all__ = [
    "SEVERAL",
    "TABLE",
    "Choice",
    "address_of_group",
    "asked_for",
    "canonical",
    "chosen_number",
    "factor_choices",
    "metric_choice",
    "narrowed",
    "refuse_unknown",
    "selection_choice",
    "stated",
]

_LONGEST: Final = 200
_MOST_OPTIONS: Final = 200
_JUDGED: Final = ("metric", "selection", *GROUP_FACTORS)
_NUMBERS: Final = ("margin", "difference")
TABLE: Final = "table"
"""The word that chooses one of a page's tables, as CSV."""
SEVERAL: Final = "of"
"""The word that may come several times: the studies that are ranked together."""
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "home": ("q", "page"),
    "study": (*_JUDGED, "difference"),
    "runs": (*_JUDGED, "page"),
    "run": (),
    "compare": ("a", "b", "with", "metric", "selection", "pair", "margin", "anyway"),
    "leaderboard": (*_JUDGED, SEVERAL, "anyway"),
    "environments": ("a", "b"),
    "searches": ("search",),
}
"""By page, what its address may say."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A field of the form. options: (value, text); none for one that is typed. chosen: as the address says."""

    name: str
    label: str
    chosen: str
    options: tuple[tuple[str, str], ...] = ()
    kind: str = "text"


def refuse_unknown(page: str, said: Iterable[str], further: Iterable[str] = ()) -> None:
    """InputError where an address has a word that the page does not know. further: what it may also have."""
    known = (*_WORDS[page], *further)
    for word in said:
        if word not in known:
            shown = word[:_LONGEST]
            raise InputError("this page asks for no such thing", found=shown, allowed=known_names(shown, known))


def stated(page: str, query: Mapping[str, str]) -> dict[str, str]:
    """What the address says, in the order of the page's words; what it leaves empty is not said."""
    return {name: query[name] for name in _WORDS[page] if query.get(name) and name not in {SEVERAL, "page"}}


def asked_for(query: Mapping[str, str], name: str, allowed: Iterable[str], default: str = "") -> str:
    """What the address says, which must be one of these; the default where it says nothing."""
    said = query.get(name, "")
    if not said:
        return default
    known = list(allowed)
    if said not in known:
        raise InputError(f"there is no such {name}", found=said[:_LONGEST], allowed=known_names(said[:_LONGEST], known))
    return said


def canonical(word: str, text: str) -> str:
    """What the address says, numbers in one form: 0.50, 5e-1 and 0,5 are one page, which is kept once."""
    if word not in _NUMBERS:
        return text
    try:
        return repr(float(text.replace(",", "."))).removesuffix(".0")
    except ValueError:
        return text  # refused where it is asked for


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
    factors = _asked_factors(result, query)
    groups = [one for one in result.groups if all(str(getattr(one.key, name)) == factors[name] for name in factors)]
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


def _asked_factors(result: StudyResult, query: Mapping[str, str]) -> dict[str, str]:
    """The factors of groups that the address says something of, and what."""
    said = {
        factor: asked_for(query, factor, dict.fromkeys(str(getattr(one.key, factor)) for one in result.groups))
        for factor in GROUP_FACTORS
        if result.groups and query.get(factor)
    }
    return {factor: wanted for factor, wanted in said.items() if wanted}


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
