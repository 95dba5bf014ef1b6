"""The papers that can be reproduced, isorun's own and those that other distributions bring, and how they are shown."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, Final

from isorun.errors import InputError, UsageError, known_names
from isorun.report.tables import Column, Table
from isorun.report.view import Listing, View
from isorun.zoo.paper import SCALES, AbstractPaper, Omission, Presentation, Request

__all__ = ["NAMES", "check_request", "paper", "papers", "papers_to_json", "papers_view", "presentation_view"]

_CLASSES: Final = {"ase20": "Ase20", "tacl18": "Tacl18", "fewshot": "Fewshot", "dream": "Dream"}
_DEVICES: Final = ("auto", "cpu", "cuda")
NAMES: Final = tuple(_CLASSES)


def paper(name: str) -> AbstractPaper:
    """The paper of that name."""
    if name not in _CLASSES:
        raise InputError(
            f"there is no paper {name!r} to reproduce", allowed=known_names(name, NAMES), hint="isorun reproduce"
        )
    module = importlib.import_module(f"isorun.zoo.studies.{name}.paper")
    found: AbstractPaper = getattr(module, _CLASSES[name])()
    return found


def papers() -> tuple[AbstractPaper, ...]:
    """All of them, in the order in which they are listed."""
    return tuple(paper(name) for name in NAMES)


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
    if request.device not in _DEVICES:
        raise UsageError(f"there is no device {request.device!r}", allowed=", ".join(_DEVICES))
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


def papers_view(papers: Sequence[AbstractPaper]) -> View:
    """The papers, their exhibits, networks and data, and the cost of each scale."""
    verdict = (f"{len(papers)} papers can be reproduced: {', '.join(paper.name for paper in papers)}.",)
    return View(verdict, (_exhibits(papers), _networks(papers), _scales(papers)))


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
    return Table("scales", "Cost at each scale", columns, _once(rows), parts)


def _once(rows: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
    """The rows with a paper's name in the first of its rows only."""
    before = ("", *(row[0] for row in rows))
    return tuple(("" if row[0] == last else row[0], *row[1:]) for last, row in zip(before, rows, strict=False))


def papers_to_json(papers: Sequence[AbstractPaper]) -> dict[str, Any]:
    """The same for machines."""
    return {"papers": [_to_json(paper) for paper in papers]}


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
        "scales": [
            {"name": name, "cost": paper.scales[name].cost, "scaled_down": list(paper.scales[name].scaled_down)}
            for name in SCALES
            if name in paper.scales
        ],
    }
