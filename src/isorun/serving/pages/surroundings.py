"""What differs between the environments of two runs, the most suspicious first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from isorun.analysis.environments import difference_of
from isorun.errors import NothingRecorded
from isorun.report import Section
from isorun.report.environments import diff_view
from isorun.serving.pages import Page, TypedCommand
from isorun.serving.pages.choices import Choice, stated
from isorun.serving.pages.links import run_address, store_option, study_address
from isorun.serving.pages.study import beside, study_trail
from isorun.study.records import RunState

if TYPE_CHECKING:
    from isorun.serving.kept import AnalysedStudy
    from isorun.study.records import RunRecord

__all__ = ["environments_page"]

_MOST_NAMED: Final = 5


def environments_page(found: AnalysedStudy, query: Mapping[str, str]) -> Page:
    """Two runs by their ids; without any the first and the last that finished, or of all where none did."""
    records = found.study.records
    asked = stated("environments", query)
    page = Page(
        title="What differs between two environments",
        kicker=found.name,
        path=study_address(found.shelf, found.name, "environments"),
        trail=study_trail(found, here="environments"),
        related=beside(found, "environments"),
    )
    if not records:
        return replace(page, first=("No run has ended yet.",), data={"study": found.name})
    finished = [record for record in records if record.state is RunState.FINISHED]  # others may not know what they had
    ordered = sorted(finished or records, key=lambda record: record.started_at)
    a = _run(records, asked["a"]) if "a" in asked else ordered[0]
    b = _run(records, asked["b"]) if "b" in asked else ordered[-1]
    difference = difference_of(a, b)
    view = diff_view(difference)
    store = store_option(found.study)
    sides = tuple((f"run {one.run_id}", run_address(found.shelf, found.name, one.run_id)) for one in (a, b))
    return replace(
        page,
        query={"a": a.run_id, "b": b.run_id},
        first=view.verdict[:1],
        rest=view.verdict[1:],
        choices=(Choice("a", "run", a.run_id), Choice("b", "beside run", b.run_id)),
        related=(*sides, *page.related),
        sections=(Section("differences", "Differences", (), view.tables),) if view.tables else (),
        commands=(TypedCommand("the same in a terminal", f"isorun env diff {a.run_id} {b.run_id}{store}"),),
        data=difference.to_json(),
    )


def _run(records: tuple[RunRecord, ...], said: str) -> RunRecord:
    """The run of this id, or the newest attempt of the only cell whose id begins so."""
    exact = [record for record in records if record.run_id == said]
    begun = exact or [record for record in records if record.run_id.startswith(said)]
    if len({record.cell.id for record in begun}) != 1:
        what = "several runs begin so" if begun else "no run of this study is called so"
        runs = sorted(one.run_id for one in begun)[:_MOST_NAMED]
        raise NothingRecorded(what, found=said[:100], allowed=", ".join(runs), hint="the page of runs lists all")
    return max(begun, key=lambda record: record.attempt)
