"""From records to what is shown: sentences, tables, figures, JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from isorun.report.figures.description import Figure
from isorun.report.figures.effects import ForestRow, forest, variance_shares
from isorun.report.tables import Column, Table
from isorun.study.records import RunRecord
from isorun.zoo.paper import Presentation, Request, smoke_verdict
from isorun.zoo.studies.fewshot import tables
from isorun.zoo.studies.fewshot.control import control_table
from isorun.zoo.studies.fewshot.design import asked_plan, main_name
from isorun.zoo.studies.fewshot.findings import Findings, find
from isorun.zoo.studies.fewshot.numbers import numbers_of
from isorun.zoo.studies.fewshot.scales import less_than_paper
from isorun.zoo.studies.fewshot.sentences import not_had, verdict, warnings

__all__ = ["presentation"]


def presentation(request: Request, records: Mapping[str, Sequence[RunRecord]]) -> Presentation:
    """The paper with our numbers; where there are none, the paper's stand alone."""
    found = find(request, records)
    return Presentation(
        verdict=smoke_verdict(len(found.collected.runs))
        if request.scale == "smoke" and found.collected.runs
        else verdict(found),
        tables=tuple(_tables(found, records.get(main_name(request.scale), ()))),
        figures=tuple(_figures(found)),
        scaled_down=_scaled_down(request, found),
        not_had=not_had(found),
        warnings=warnings(found),
        numbers=numbers_of(found),
    )


def _scaled_down(request: Request, found: Findings) -> tuple[str, ...]:
    plan = asked_plan(request)
    return less_than_paper(replace(plan, data=found.data, made=False) if found.data else plan)


def _tables(found: Findings, records: Sequence[RunRecord]) -> Iterator[Table]:
    """A table whose part was not asked for is left out; one whose runs are missing is not."""
    if found.experiments:
        yield tables.hypotheses_table(found.judged)
        yield tables.random_table(found.model)
        yield tables.rerun_table(found.model, found.experiments)
        yield tables.fixed_table(found.model)
        if found.fitting.result:
            yield tables.fitting_table(found.fitting)
    if found.control_asked:
        yield control_table(found.controls)
    if found.nested.shares:
        yield tables.shares_table(found.nested)
    if found.experiments:
        yield _configs_table(records)


def _configs_table(records: Sequence[RunRecord]) -> Table:
    """What was drawn from the distributions of Table 3."""
    drawn = {record.cell.config: record.cell.config_values for record in records}
    rows = [(name, key, f"{value:.4g}") for name, values in sorted(drawn.items()) for key, value in values.items()]
    columns = (Column("config", key=True), Column("parameter", key=True), Column("value"))
    return Table("table-3", "Table 3: what was drawn from its distributions", columns, tuple(rows), folded=True)


def _figures(found: Findings) -> Iterator[Figure]:
    if found.nested.shares:
        yield variance_shares(found.nested.shares, name="fewshot-shares")
    known = [(name, row) for name in found.experiments if (row := found.model.rerun(name)) is not None]
    if known:
        rows = [ForestRow(name, row.estimate, (row.lower, row.upper), row.p) for name, row in known]
        label = "accuracy of round 1 minus round 2"
        yield forest(rows, label, name="fewshot-reruns", title="Table 2 as a figure: the two rounds of each experiment")
