"""The searches of a study: what is said of each, as `isorun report` says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from isorun.errors import NothingRecorded
from isorun.report import Section
from isorun.report.figures.thinning import thinned
from isorun.serving.pages import Page
from isorun.serving.pages.choices import Choice, asked_for
from isorun.serving.pages.links import study_address
from isorun.serving.pages.study import beside, study_trail

if TYPE_CHECKING:
    from isorun.serving.kept import AnalysedStudy

__all__ = ["searches_page"]


def searches_page(found: AnalysedStudy, query: Mapping[str, str]) -> Page:
    """One search of the study; the first where none is named."""
    searches = found.result.searches if found.result else {}
    if not searches:
        raise NothingRecorded(f"no search was kept with the study {found.name}", hint="its page says what it has")
    name = asked_for(query, "search", searches, next(iter(searches)))
    view = searches[name].view(figures=True)
    options = tuple((one, one or "the only one") for one in searches)
    return Page(
        title=f"Search {name} of {found.name}".replace("  ", " "),
        kicker="search",
        path=study_address(found.shelf, found.name, "searches"),
        query={"search": name},
        trail=study_trail(found, here="searches"),
        first=view.verdict[:1],
        rest=view.verdict[1:],
        choices=(Choice("search", "search", name, options),) if len(searches) > 1 else (),
        related=beside(found, "searches"),
        sections=(Section("search", "How it went", tuple(map(thinned, view.figures)), view.tables),),
        listings=tuple(replace(one) for one in view.listings),
        conditions=view.warnings,
        data=searches[name].to_json(),
    )
