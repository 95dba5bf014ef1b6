"""From the records of all studies to the paper's tables and figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from isorun.analysis.evidence.condition import Condition, some
from isorun.report.figures.description import Figure
from isorun.report.tables import Table
from isorun.study.records import RunRecord, RunState
from isorun.zoo.paper import Presentation, Request
from isorun.zoo.studies.tacl18 import baseline_tables, environment_tables, figures, rounding, seed_tables
from isorun.zoo.studies.tacl18.data_versions import version_table
from isorun.zoo.studies.tacl18.design import PARTS, SIDES
from isorun.zoo.studies.tacl18.findings import Findings, find
from isorun.zoo.studies.tacl18.limits import not_had
from isorun.zoo.studies.tacl18.masks import mask_table
from isorun.zoo.studies.tacl18.numbers import findings_to_json
from isorun.zoo.studies.tacl18.question_tests import question_note
from isorun.zoo.studies.tacl18.scaling import scaled_down
from isorun.zoo.studies.tacl18.verdicts import verdict

__all__ = ["present_records"]

_MADE: Final = "Our numbers are of small data made on the spot; do not read them against the published ones."
_MADE_DATA: Final = "small data made on the spot, because a data set is not at hand"
_SETTING_TABLES: Final = {
    "cpu-paths": environment_tables.path_table,
    "threads": environment_tables.thread_table,
    "devices": environment_tables.device_table,
}


def present_records(request: Request, records: Mapping[str, Sequence[RunRecord]]) -> Presentation:
    """The presentation of the parts that were asked for."""
    parts = tuple(part for part in PARTS if part in (request.only or PARTS))
    found = find(records, request.scale)
    return Presentation(
        verdict=verdict(found, request.scale, parts),
        tables=tuple(_with_origin(_tables(found, parts), made_data=found.made_data)),
        figures=tuple(_figures(found)),
        scaled_down=(
            *scaled_down(request.scale, found.begun or parts, request.runs, found.seeds_everywhere),
            *((_MADE_DATA,) if found.made_data else ()),
        ),
        not_had=not_had(request, parts, found, records),
        warnings=tuple(_warnings(found)),
        numbers=findings_to_json(found),
    )


def _tables(found: Findings, parts: Sequence[str]) -> Iterator[Table]:
    """The tables that have a run of ours; rounding asks published scores too and needs none."""
    if found.baselines:
        yield baseline_tables.data_table(found.baselines)
        yield from baseline_tables.system_tables(found.baselines)
    if found.versions:
        yield version_table(found.versions)
    for part, build in _SETTING_TABLES.items():
        if found.conditions[part]:
            yield build(found.conditions[part], question_note(found.tests[part]))
    if found.seeds:
        yield seed_tables.range_table(found.seeds)
        yield seed_tables.agreement_table(found.agreements, found.sides)
    if any(found.changes):
        yield seed_tables.change_table([change for pair in found.changes for change in pair])
    if found.masks:
        yield mask_table(found.masks)
    if "rounding" in parts:
        yield rounding.rounding_table(found.roundings)
        if found.digits:
            yield rounding.digits_table(found.digits)


def _with_origin(tables: Iterable[Table], *, made_data: bool) -> Iterator[Table]:
    """Where made data stood in, every table says so: it may be read alone."""
    for table in tables:
        yield replace(table, notes=(*table.notes, _MADE)) if made_data else table


def _figures(found: Findings) -> Iterator[Figure]:
    yield from figures.seed_figures(found.seeds, published=not found.made_data)
    distribution = figures.distribution_figure(found.seeds)
    if distribution is not None:
        yield distribution
    yield from figures.change_figures(found.changes)


def _warnings(found: Findings) -> Iterator[Condition]:
    diverged = [record for record in found.lost if record.state is RunState.FINISHED]
    if diverged:
        names = sorted({record.cell.label for record in diverged})
        message = f"{some(len(diverged), 'run')} without finite scores stand in no table"
        yield Condition("lost-runs", message, "look at the losses with isorun report", tuple(names[:10]))
    strays = sorted(found.side_names - set(SIDES))
    if strays:
        message = f"runs that asked for a GPU were made without one: {'; '.join(strays)}"
        yield Condition("not-on-gpu", message, "check that torch sees the GPU")
