"""The parts of a study's report in reading order, each with its figures and tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from isorun.analysis.studies.study_result import StudyResult
from isorun.report.class_tables import class_tables
from isorun.report.figures.description import Figure
from isorun.report.figures.study_figures import class_figures, curve_figures, overall_figures, time_figures
from isorun.report.identical_tables import identical_tables
from isorun.report.row_keys import named_rows
from isorun.report.run_tables import run_tables
from isorun.report.spread_tables import spread_tables
from isorun.report.tables import Table
from isorun.report.time_tables import time_tables

__all__ = ["Section", "study_sections", "study_tables"]

_TITLES: Final = {
    "spread": "How much the results vary",
    "classes": "How much single classes vary",
    "identical": "What is left when everything is the same",
    "time": "How long it takes",
    "curves": "How it gets there",
    "runs": "What was run",
}


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report. name: stable, for links."""

    name: str
    title: str
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]


def study_sections(result: StudyResult) -> tuple[Section, ...]:
    """The parts that have something to show."""
    tables = {name: _named(result, made) for name, made in _tables_by_section(result).items()}
    figures = {
        "spread": overall_figures(result),
        "classes": class_figures(result),
        "time": time_figures(result),
        "curves": curve_figures(result),
    }
    sections = (
        Section(name, title, tuple(figures.get(name, ())), tables.get(name, ())) for name, title in _TITLES.items()
    )
    return tuple(section for section in sections if section.figures or section.tables)


def study_tables(result: StudyResult) -> tuple[Table, ...]:
    """All tables in reading order, for reports without figures."""
    return tuple(table for made in _tables_by_section(result).values() for table in _named(result, made))


def _tables_by_section(result: StudyResult) -> dict[str, Iterable[Table]]:
    return {
        "spread": (table for metric in result.metrics for table in spread_tables(result, metric)),
        "classes": (table for metric in result.metrics for table in class_tables(result, metric)),
        "identical": identical_tables(result),
        "time": time_tables(result),
        "runs": run_tables(result),
    }


def _named(result: StudyResult, tables: Iterable[Table]) -> tuple[Table, ...]:
    keys = [group.key for group in result.groups]
    return tuple(named_rows(table, keys) for table in tables if table.rows)
