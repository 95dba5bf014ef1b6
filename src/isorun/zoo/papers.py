"""The papers that can be reproduced, isorun's own and those that other distributions bring, and how they are shown.

A distribution brings one as the entry point "name = module:PAPER" of the group `isorun.papers`: an `AbstractPaper`, or
a class of one that takes no arguments. Each is loaded when it is asked for; one that is broken is named, and all else
works.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from isorun import plugins
from isorun.analysis.evidence import Condition
from isorun.errors import InputError, IsorunError, PluginError, UsageError, foreign_errors, known_names
from isorun.report import Column, Listing, Table, View
from isorun.zoo.paper import SCALES, AbstractPaper, Omission, Presentation, Request
from isorun.zoo.training import DEVICES

__all__ = [
    "NAMES",
    "brought_papers",
    "check_request",
    "paper",
    "papers",
    "papers_to_json",
    "papers_view",
    "presentation_view",
]

NAMES: Final = ("ase20", "tacl18", "fewshot", "dream")
"""isorun's own, in the order in which they are listed; each is `PAPER` in the paper.py of its folder."""
_TOLD: Final = ("title", "reference", "exhibits", "not_attempted", "networks", "data", "parts", "scales")


def paper(name: str) -> AbstractPaper:
    """The paper of that name."""
    if name in NAMES:
        found: AbstractPaper = importlib.import_module(f"isorun.zoo.studies.{name}.paper").PAPER
        return found
    brought = plugins.brought(plugins.PAPERS)
    if name not in brought:
        known = known_names(name, (*NAMES, *(other for other in brought if other not in NAMES)))
        raise InputError(f"there is no paper {name!r} to reproduce", allowed=known, hint="isorun reproduce")
    return _checked(name, plugins.load(plugins.PAPERS, name))


def papers() -> tuple[AbstractPaper, ...]:
    """Isorun's own, in the order in which they are listed."""
    return tuple(paper(name) for name in NAMES)


def brought_papers() -> tuple[tuple[AbstractPaper, ...], tuple[IsorunError, ...]]:
    """What other distributions bring, by name, and what is wrong with those that cannot be loaded."""
    found: list[AbstractPaper] = []
    broken: list[IsorunError] = []
    for name in plugins.brought(plugins.PAPERS):
        try:
            found.append(_checked(name, plugins.load(plugins.PAPERS, name)))
        except IsorunError as error:
            broken.append(error)
    return tuple(found), tuple(broken)


def _checked(name: str, brought: Any) -> AbstractPaper:
    """The paper behind an entry point, or an error that says what it is instead."""
    with foreign_errors(partial(_broken, name), but=()):
        found = brought() if isinstance(brought, type) else brought
    if not isinstance(found, AbstractPaper):
        raise _broken(name, type(found).__name__)
    missing = [told for told in _TOLD if not hasattr(found, told)]
    if missing:
        raise _broken(name, f"no {', '.join(missing)}")
    if name in NAMES or found.name != name:
        raise _broken(
            name, f"a paper named {found.name}", "a name of its own, the same in the entry point and the paper"
        )
    return found


def _broken(
    name: str, found: str, allowed: str = "an isorun.zoo.paper.AbstractPaper with all that it tells"
) -> PluginError:
    hint = f"mend or remove the distribution with the entry point {name!r} of {plugins.PAPERS!r}; all else works"
    return PluginError(f"paper {name!r} cannot be used", found=found, allowed=allowed, hint=hint)


def check_request(chosen: AbstractPaper, request: Request) -> None:
    """Refuse a scale, part, device or number of runs that the paper does not have."""
    if request.scale not in chosen.scales:
        known = tuple(scale for scale in SCALES if scale in chosen.scales)
        allowed = known_names(request.scale, known)
        raise UsageError(
            f"there is no scale {request.scale!r}", allowed=allowed, hint=f"isorun reproduce {chosen.name}"
        )
    for part in request.only:
        if part not in chosen.parts:
            allowed = known_names(part, chosen.parts) if chosen.parts else "nothing: it has no parts"
            raise UsageError(f"{chosen.name} has no part {part!r}", allowed=allowed, hint="isorun reproduce")
    if request.device not in DEVICES:
        raise UsageError(f"there is no device {request.device!r}", allowed=", ".join(DEVICES))
    if request.runs is not None and request.runs < 1:
        raise UsageError("the number of runs is too small", found=str(request.runs), allowed="1 or more")


def presentation_view(shown: Presentation, not_attempted: Sequence[Omission] = ()) -> View:
    """Verdict, tables, what was scaled down, what could not be had, what is not attempted at all, warnings."""
    listings = (
        Listing("Scaled down", shown.scaled_down),
        Listing("Not to be had here", shown.not_had),
        Listing("Not attempted", tuple(item.sentence for item in not_attempted)),
    )
    return View(shown.verdict, shown.tables, shown.warnings, shown.figures, listings)


def papers_view(papers: Sequence[AbstractPaper], broken: Sequence[IsorunError] = ()) -> View:
    """The papers, their exhibits, networks and data, and the cost of each scale. broken: what cannot be loaded."""
    verdict = (f"{len(papers)} papers can be reproduced: {', '.join(paper.name for paper in papers)}.",)
    warnings = tuple(Condition("broken-paper", f"{item.what} ({item.found})", item.hint) for item in broken)
    return View(verdict, (_exhibits(papers), _networks(papers), _scales(papers)), warnings)


def _exhibits(papers: Sequence[AbstractPaper]) -> Table:
    columns = (Column("paper", key=True), Column("shows", key=True), Column("what it is", key=True))
    rows = tuple((paper.name, item.name, item.title) for paper in papers for item in paper.exhibits)
    notes = (
        *(f"{paper.name}: {paper.title} ({paper.reference})" for paper in papers),
        *(f"{paper.name}, not attempted: {item.sentence}" for paper in papers for item in paper.not_attempted),
    )
    return Table("exhibits", "Tables and figures", columns, _once(rows), notes)


def _networks(papers: Sequence[AbstractPaper]) -> Table:
    columns = (Column("paper", key=True), Column("network", key=True), Column("parameters"), Column("data", key=True))
    rows = tuple(
        (paper.name, network.name, f"{network.parameters:,}", ", ".join(network.data))
        for paper in papers
        for network in paper.networks
    )
    notes = ("isorun data list says which data are at hand; isorun data get NAME gets them.",)
    return Table("networks", "Networks and the data they need", columns, _once(rows), notes)


def _scales(papers: Sequence[AbstractPaper]) -> Table:
    columns = (Column("paper", key=True), Column("scale", key=True), Column("cost", key=True))
    rows = tuple(
        (paper.name, name, paper.scales[name].cost) for paper in papers for name in SCALES if name in paper.scales
    )
    parts = tuple(f"{paper.name} --only: {', '.join(paper.parts)}" for paper in papers if paper.parts)
    named = tuple(
        f"{paper.name}: {', '.join(paper.on_request)} only when named (packages of gigabytes are installed for it)"
        for paper in papers
        if paper.on_request
    )
    return Table("scales", "Cost at each scale", columns, _once(rows), (*parts, *named))


def _once(rows: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
    """The rows with a paper's name in the first of its rows only."""
    before = ("", *(row[0] for row in rows))
    return tuple(("" if row[0] == last else row[0], *row[1:]) for last, row in zip(before, rows, strict=False))


def papers_to_json(papers: Sequence[AbstractPaper], broken: Sequence[IsorunError] = ()) -> dict[str, Any]:
    """The same for machines."""
    return {
        "papers": [_to_json(paper) for paper in papers],
        "broken": [{"what": item.what, "found": item.found} for item in broken],
    }


def _to_json(paper: AbstractPaper) -> dict[str, Any]:
    return {
        "name": paper.name,
        "title": paper.title,
        "reference": paper.reference,
        "exhibits": [{"name": item.name, "title": item.title} for item in paper.exhibits],
        "not_attempted": [{"names": item.names, "reason": item.reason} for item in paper.not_attempted],
        "networks": [
            {"name": network.name, "parameters": network.parameters, "data": list(network.data)}
            for network in paper.networks
        ],
        "data": list(paper.data),
        "parts": list(paper.parts),
        "on_request": list(paper.on_request),
        "scales": [
            {"name": name, "cost": paper.scales[name].cost, "scaled_down": list(paper.scales[name].scaled_down)}
            for name in SCALES
            if name in paper.scales
        ],
    }
