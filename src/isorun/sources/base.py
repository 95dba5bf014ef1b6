"""What was found in a run's output and files, and how it is shown before anybody relies on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from isorun.study.records import Note, Series

__all__ = ["Found", "describe", "merged"]

EXAMPLE_LENGTH = 60


@dataclass(frozen=True, slots=True)
class Found:
    """Metrics read from one or more places.

    series: every metric that has values, also those with a single one. results: the metrics that a source gave as
    final values. origins: where each came from ("stdout: name: value", "file: metrics.csv"). examples: the first
    line each was seen in. notes: what was not taken, and why.
    """

    series: Mapping[str, Series] = field(default_factory=dict)
    results: Mapping[str, float] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    examples: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


def merged(*parts: Found) -> Found:
    """All parts as one; where two name the same metric, the earlier part wins and a note says so."""
    series: dict[str, Series] = {}
    results: dict[str, float] = {}
    origins: dict[str, str] = {}
    examples: dict[str, str] = {}
    notes: list[Note] = []
    for part in parts:
        doubled = sorted(set(part.origins) & set(origins))
        notes += part.notes
        notes += [_doubled_note(name, origins[name], part.origins[name]) for name in doubled]
        series |= {name: value for name, value in part.series.items() if name not in doubled}
        results |= {name: value for name, value in part.results.items() if name not in doubled}
        examples |= {name: value for name, value in part.examples.items() if name not in doubled}
        origins |= {name: value for name, value in part.origins.items() if name not in doubled}
    return Found(series, results, origins, examples, tuple(notes))


def _doubled_note(name: str, kept: str, dropped: str) -> Note:
    return Note("sources.doubled", f"metric {name!r} was found twice; kept the one from {kept}, not from {dropped}")


def describe(found: Found, better: Mapping[str, str] | None = None) -> list[str]:
    """The lines of a table: each metric, how many values, the first and last of them, and where they were read.

    better: for each metric which direction is better, for a column of its own. Empty when nothing was found.
    """
    if not found.series:
        return []
    rows: list[tuple[str, ...]] = [("metric", "values", "first .. last", "read from", "first seen in")]
    rows += [_row(found, name) for name in sorted(found.series)]
    if better is not None:
        column = ["better", *(better.get(name, "") for name in sorted(found.series))]
        rows = [(row[0], cell, *row[1:]) for row, cell in zip(rows, column, strict=True)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _row(found: Found, name: str) -> tuple[str, str, str, str, str]:
    values = found.series[name].values
    span = f"{values[0]:.6g}" if len(values) == 1 else f"{values[0]:.6g} .. {values[-1]:.6g}"
    final = " (final)" if name in found.results else ""
    example = _shortened(" ".join(found.examples.get(name, "").split()))
    return (name, str(len(values)), span + final, found.origins.get(name, ""), example)


def _shortened(text: str) -> str:
    return text if len(text) <= EXAMPLE_LENGTH else text[: EXAMPLE_LENGTH - 1] + "…"
