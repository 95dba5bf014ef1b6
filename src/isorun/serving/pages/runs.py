"""The runs of a study, and one of them: its attempts, its curve in the band of its group, digests, log, command."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from isorun.analysis.descriptions import description_of_run
from isorun.analysis.studies.group_result import GroupKey
from isorun.analysis.studies.selection import final_value
from isorun.errors import NothingRecorded, StudyError, harmless
from isorun.report import UNKNOWN, Column, Section, Table, count, memory, seconds, significant
from isorun.report.environments import description_view
from isorun.report.figures.curves import run_curve
from isorun.report.figures.thinning import thinned
from isorun.report.run_tables import run_tables
from isorun.report.study_tables import named_rows
from isorun.serving.pages import Page, TypedCommand
from isorun.serving.pages.choices import (
    address_of_group,
    factor_choices,
    metric_choice,
    narrowed,
    selection_choice,
    stated,
)
from isorun.serving.pages.exact import every_run
from isorun.serving.pages.links import address, run_address, store_option, study_address
from isorun.serving.pages.paging import Paging
from isorun.serving.pages.study import beside, study_trail
from isorun.study.cells import fill_placeholders
from isorun.study.records import step_text

if TYPE_CHECKING:
    from isorun.analysis.studies.group_result import GroupResult
    from isorun.analysis.studies.study_result import StudyResult
    from isorun.serving.kept import AnalysedStudy
    from isorun.study.records import RunRecord

__all__ = ["run_page", "runs_page"]

_A_PAGE: Final = 100
_MOST_CURVES: Final = 4
_LONGEST_LOG: Final = 20_000


def runs_page(found: AnalysedStudy, query: Mapping[str, str]) -> Page:
    """Every run with its value, a page at a time, and those that left no result."""
    asked = stated("runs", query)
    path = study_address(found.shelf, found.name, "runs")
    page = Page(
        title=f"Runs of {found.name}",
        kicker="runs",
        path=path,
        query=asked,
        trail=study_trail(found, here="runs"),
        related=beside(found, "runs"),
        linked=lambda column, text, _: run_address(found.shelf, found.name, text) if column.title == "run" else "",
    )
    if found.result is None:
        return replace(page, first=("No run has ended yet.",), data={"study": found.name, "runs": []})
    result = narrowed(found.result, asked)
    tables = {table.name: table for table in run_tables(result)}
    every, failed = tables["every-run"], tables["failures"]
    paging = Paging.of(max(len(every.rows), len(failed.rows)), query, _A_PAGE)
    keys = [group.key for group in result.groups]
    shown = [
        named_rows(replace(table, rows=tuple(paging.part(table.rows)), links=(), folded=False), keys)
        for table in (every, failed)
        if paging.part(table.rows)
    ]
    return replace(
        page,
        query={**asked, "page": query.get("page", "")},
        facts=(f"{count(len(every.rows), 'run')} judged", f"{len(failed.rows)} without a result"),
        choices=(
            *metric_choice(found.result, asked.get("metric", "")),
            *selection_choice(found.result, asked.get("selection", "")),
            *factor_choices(found.result, asked),
        ),
        sections=(Section("runs", "Every run", (), tuple(shown)),),
        related=(*paging.links(lambda number: address(path, {**asked, "page": number})), *page.related),
        data={"study": found.name, "runs": list(_plain_runs(found, result))},
        further=(every_run(result), failed),
    )


def _plain_runs(found: AnalysedStudy, result: StudyResult) -> Iterator[dict[str, Any]]:
    """The runs of the groups that are asked for, with what they are judged by; None where they were not."""
    asked = {group.key for group in result.groups}
    judged = {run.run_id: run for group in result.groups for one in group.selections[:1] for run in one.runs}
    metrics = [metric.name for metric in result.metrics]
    selection = result.selections[0].name if result.selections else None
    for record in found.study.records:
        if GroupKey.of(record) not in asked:
            continue
        run = judged.get(record.run_id)
        yield {
            **_listed(record),
            "selection": None if run is None else selection,
            "epoch": None if run is None else run.selected.step,
            "values": {} if run is None else {name: run.selected.values.get(name) for name in metrics},
        }


def _listed(record: RunRecord) -> dict[str, Any]:
    cell = record.cell
    return {
        "run": record.run_id,
        "approach": cell.approach,
        "config": cell.config,
        "environment": cell.environment,
        "level": str(cell.level),
        "seed": cell.seed,
        "repeat": cell.repeat,
        "state": str(record.state),
        "reason": record.reason or None,
        "started_at": record.started_at,
        "wall_seconds": record.wall_seconds,
        "results": dict(record.results),
    }


def run_page(found: AnalysedStudy, run: str, query: Mapping[str, str]) -> Page:  # noqa: ARG001 - all pages are asked alike
    """One run: what it gave, how it went, what it was made with, and how to make it again."""
    record = next((one for one in found.study.records if one.run_id == run), None)
    if record is None:
        raise NothingRecorded(
            f"the study {found.name} has no such run", found=run[:100], hint="the page of all its runs lists them"
        )
    attempts = [one for one in found.study.records if one.cell.id == record.cell.id]
    described = description_view(description_of_run(record))
    return Page(
        title=f"Run {run}",
        kicker="run",
        path=run_address(found.shelf, found.name, run),
        trail=(*study_trail(found, here="run"), ("runs", study_address(found.shelf, found.name, "runs"))),
        facts=tuple(_facts(record)),
        first=(_sentence(record),),
        rest=tuple(note.message for note in record.notes),
        related=tuple(_related(found, record)),
        commands=tuple(_commands(found, record)),
        sections=(
            Section("values", "What it gave", tuple(_curves(found, record)), (_values(found, record),)),
            Section("attempts", "Attempts", (), (_attempts(attempts),)),
            *_digests(record),
            Section("environment", "What it was made with", (), described.tables, described.verdict),
            *([Section("log", "The end of its output", (), ())] if record.log_tail else []),
        ),
        log=harmless_lines(record.log_tail),
        listings=described.listings,
        data=_plain(record),
        linked=lambda column, text, _: run_address(found.shelf, found.name, text) if column.title == "run" else "",
    )


def harmless_lines(text: str) -> str:
    """A log as it may stand on a page: its lines, without what a screen would act on."""
    return "\n".join(harmless(line) for line in text[-_LONGEST_LOG:].splitlines())


def _facts(record: RunRecord) -> Iterator[str]:
    cell = record.cell
    yield str(record.state)
    yield GroupKey.of(record).label
    yield "seed drawn anew" if cell.seed is None else f"seed {cell.seed}"
    yield f"repeat {cell.repeat}"
    yield f"began {record.started_at[:19].replace('T', ' ')} UTC"


def _sentence(record: RunRecord) -> str:
    told = ", ".join(f"{name} {significant(value, 5)}" for name, value in list(record.results.items())[:4])
    took = f"in {seconds(record.wall_seconds)} s"
    if record.reason:
        return f"It {record.state} {took}: {record.reason}."
    return f"It {record.state} {took}{f' with {told}' if told else ''}."


def _related(found: AnalysedStudy, record: RunRecord) -> Iterator[tuple[str, str]]:
    group = address_of_group(GroupKey.of(record))
    others = [one for one in found.study.records if one.run_id != record.run_id]
    if others:
        alike = next((one for one in others if address_of_group(GroupKey.of(one)) == group), others[0])
        here = study_address(found.shelf, found.name, "environments", a=record.run_id, b=alike.run_id)
        yield f"its environment beside that of {alike.run_id}", here
    yield "every run", study_address(found.shelf, found.name, "runs")


def _commands(found: AnalysedStudy, record: RunRecord) -> Iterator[TypedCommand]:
    """How to make it again."""
    store = store_option(found.study)
    yield TypedCommand("the same run again, compared bit by bit", f"isorun replay {record.run_id}{store}")
    yield TypedCommand("its environment, for a paper", f"isorun env describe {record.run_id}{store}")
    if record.cell.command[:1] != ("function",):
        yield TypedCommand("what it ran", shlex.join(_ran(record)))


def _ran(record: RunRecord) -> tuple[str, ...]:
    """Its command with its settings; the folder of a run was its own, and nobody else has it."""
    cell = record.cell
    fixed = {"level": str(cell.level), "repeat": str(cell.repeat)}
    if record.seed_used is not None:
        fixed["seed"] = str(record.seed_used)
    try:
        return fill_placeholders(cell.command, fixed, cell.config_values, f"approaches.{cell.approach}")
    except StudyError:  # a package may say anything
        return cell.command


def _group(found: AnalysedStudy, record: RunRecord) -> GroupResult | None:
    key = GroupKey.of(record)
    return next((group for group in found.result.groups if group.key == key), None) if found.result else None


def _curves(found: AnalysedStudy, record: RunRecord) -> Iterator[Any]:
    group, result = _group(found, record), found.result
    for metric in (result.metrics if result else ())[:_MOST_CURVES]:
        series = record.series.get(metric.name)
        others = next((one for one in group.curves if one.metric == metric.name), None) if group else None
        figure = None if series is None else run_curve(record.run_id, series, metric, others)
        if figure is not None:
            yield thinned(figure)


def _values(found: AnalysedStudy, record: RunRecord) -> Table:
    result, group = found.result, _group(found, record)
    judged = {
        name: one
        for name in ([metric.name for metric in result.metrics] if result else [])
        for one in ([run for run in group.selections[0].runs if run.run_id == record.run_id] if group else [])
    }
    names = dict.fromkeys([*judged, *record.results, *record.series])
    rows = tuple(
        (
            name,
            significant(judged[name].selected.values.get(name), 6) if name in judged else UNKNOWN,
            _epoch(judged[name].selected.step) if name in judged else UNKNOWN,
            significant(final_value(record, name), 6),
            record.origins.get(name, UNKNOWN),
        )
        for name in names
    )
    titles = ("metric", "as judged", "epoch", "at the end", "read from")
    columns = tuple(Column(title, key=title in {"metric", "read from"}) for title in titles)
    notes = ("At the end: as the training told it there, else the last value that it logged.",) if rows else ()
    return Table("values", "Its values", columns, rows, notes, instead="" if rows else "It left no value.")


def _epoch(step: float | None) -> str:
    return "end" if step is None else step_text(step)


def _attempts(attempts: Sequence[RunRecord]) -> Table:
    titles = (
        "run",
        "state",
        "reason",
        "began",
        "host",
        "launch",
        "exit code",
        "seconds",
        "CPU seconds",
        "memory (MiB)",
    )
    rows = tuple(
        (
            one.run_id,
            str(one.state),
            one.reason or UNKNOWN,
            one.started_at[:19].replace("T", " "),
            one.where.get("host", UNKNOWN),
            one.launch,
            UNKNOWN if one.exit_code is None else str(one.exit_code),
            seconds(one.wall_seconds),
            seconds(one.cpu_seconds),
            memory(one.peak_memory_bytes),
        )
        for one in attempts
    )
    columns = tuple(Column(title, key=place < 6) for place, title in enumerate(titles))
    return Table("attempts", "Every attempt at its cell", columns, rows)


def _digests(record: RunRecord) -> Iterator[Section]:
    if record.digests:
        columns = (Column("of", key=True), Column("digest", key=True, unbroken=True))
        table = Table("digests", "Digests", columns, tuple(record.digests.items()))
        yield Section("digests", "What it is known by, bit by bit", (), (table,))


def _plain(record: RunRecord) -> dict[str, Any]:
    """What the page shows; series and predictions are in the package or the store."""
    whole = record.to_json()
    return {"run": record.run_id, **{name: whole[name] for name in whole if name not in {"series", "predictions"}}}
