"""Environments: a description for a paper, as text and LaTeX, and what differs between two."""

from __future__ import annotations

from typing import Final

from isorun.analysis.descriptions import IN_PART, MISSING, RECORDED, EnvironmentDescription
from isorun.analysis.environments import COSMETIC, NUMERICS, SPEED, EnvironmentDiff
from isorun.report import UNKNOWN, Column, Listing, Table, View, count

__all__ = ["description_latex", "description_view", "diff_view"]

_KINDS: Final = {
    NUMERICS: "what can change numbers, the most suspicious first",
    SPEED: "what changes the time it takes",
    COSMETIC: "what changes nothing",
}


def description_view(result: EnvironmentDescription) -> View:
    """The sentence first, then the checklist and what would make it whole."""
    steps = [f"{item.what}: {item.next_step}" for item in result.checklist if item.next_step]
    listings = (Listing("what would make it whole", tuple(dict.fromkeys(steps))),) if steps else ()
    return View((result.sentence, _counted(result)), (_checklist(result),), listings=listings)


def _counted(result: EnvironmentDescription) -> str:
    parts = [f"{number} {state}" for state in (RECORDED, IN_PART, MISSING) if (number := len(result.in_state(state)))]
    return f"Of {count(len(result.checklist), 'thing')} that a reader needs to make it again: {', '.join(parts)}."


def _checklist(result: EnvironmentDescription) -> Table:
    return Table(
        name="checklist",
        title="what is recorded, and what is not",
        columns=tuple(Column(title, key=True) for title in ("what", "state", "detail")),
        rows=tuple((item.what, item.state, item.detail) for item in result.checklist),
    )


def description_latex(result: EnvironmentDescription) -> str:
    """The sentence as a paragraph, and the checklist as a table; needs the packages booktabs and graphicx."""
    from isorun.report.latex import PACKAGES, breakable_text, render_table  # noqa: PLC0415 - it stands on what studies need

    head = f"% needs {PACKAGES}"
    return "\n\n".join([head, breakable_text(result.sentence), render_table(_checklist(result))]) + "\n"


def diff_view(result: EnvironmentDiff) -> View:
    """Whether anything can change numbers first, then all differences by what they can change."""
    tables = tuple(_differences(result, kind, title) for kind, title in _KINDS.items() if result.of_kind(kind))
    return View((_found(result), *_seeds(result)), tables)


def _found(result: EnvironmentDiff) -> str:
    pair = f"{result.first} and {result.second}"
    numeric = result.of_kind(NUMERICS)
    if not numeric:
        others = count(len(result.differences), "difference")
        return f"{pair}: nothing differs that can change numbers ({others} of other kinds, {result.same} facts alike)."
    return (
        f"{pair}: {count(len(numeric), 'difference')} that can change numbers, {numeric[0].what} first: "
        f"{numeric[0].reason}."
    )


def _seeds(result: EnvironmentDiff) -> list[str]:
    first, second = result.seeds
    if first == second:
        return []
    return [f"The runs had different seeds ({first} and {second}), which moves results in any environment."]


def _differences(result: EnvironmentDiff, kind: str, title: str) -> Table:
    return Table(
        name=kind,
        title=title,
        columns=tuple(Column(name, key=True) for name in ("what", "first", "second", "why")),
        rows=tuple(
            (item.what, item.first or UNKNOWN, item.second or UNKNOWN, item.reason) for item in result.of_kind(kind)
        ),
    )
