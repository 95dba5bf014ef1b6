"""Learning curves: the median over runs with a band, every run faint behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from isorun.analysis.evidence.judged import JudgedMetric
from isorun.analysis.studies.group_result import GroupResult
from isorun.analysis.studies.selection import LearningCurves
from isorun.analysis.studies.study_result import StudyResult
from isorun.report.figures.axes import value_axis
from isorun.report.figures.description import Band, Figure, Legend, Line
from isorun.report.figures.series import series_of
from isorun.report.numbers import count, significant, style_for
from isorun.report.tables import Column, Table
from isorun.study.records import Series

__all__ = ["curve_figures"]

_MOST_FIGURES: Final = 4
_MOST_POINTS: Final = 200
_MOST_RUNS: Final = 50


def curve_figures(result: StudyResult) -> Iterator[Figure]:
    """A figure for each approach, config and environment, the levels as series, of the primary metric.

    At most four, the first ones: the study's JSON has the medians of all groups.
    """
    metric = result.primary
    if metric is None:
        return
    families: dict[str, list[tuple[GroupResult, LearningCurves]]] = {}
    for group in result.groups:
        curves = next((curves for curves in group.curves if curves.metric == metric.name), None)
        if curves is not None:
            name = group.key.label.removesuffix(f" at level {group.key.level}")
            families.setdefault(name, []).append((group, curves))
    for name, members in list(families.items())[:_MOST_FIGURES]:
        yield _figure(name, members, metric, len(families))


def _figure(
    name: str, members: Sequence[tuple[GroupResult, LearningCurves]], metric: JudgedMetric, families: int
) -> Figure:
    style = style_for(metric.scale)
    factor = style.factor
    lines = [line for group, curves in members for line in _lines(curves, series_of(group.key), factor)]
    bands = [_band(curves, series_of(group.key), factor) for group, curves in members]
    title = f"{name}: {metric.name} while training"
    return Figure(
        name=f"curves-{name}",
        title=title,
        sentence=_sentence(members, families),
        x=value_axis("epoch", [x for line in lines for x, _ in line.points], whole=True),
        y=value_axis(
            f"{metric.name} ({style.unit})" if style.unit else metric.name,
            [y for line in lines for _, y in line.points],
        ),
        data=_data_table(name, title, members, factor),
        lines=tuple(lines),
        bands=tuple(bands),
        legend=tuple(Legend(str(group.key.level), None, series_of(group.key)) for group, _ in members),
    )


def _lines(curves: LearningCurves, series: int, factor: float) -> Iterator[Line]:
    for run in curves.runs[:_MOST_RUNS]:
        yield Line(_points(run, factor), series, faint=True)
    median = Series(curves.steps, curves.steps, curves.median)
    yield Line(_points(median, factor), series)


def _points(run: Series, factor: float) -> tuple[tuple[float, float], ...]:
    finite = [(step, factor * value) for step, value in zip(run.steps, run.values, strict=True) if abs(value) < 1e300]
    return tuple(_thinned(finite))


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Every k-th point of a long line, and its last."""
    every = -(-len(points) // _MOST_POINTS)
    return points if every <= 1 else [*points[:-1:every], points[-1]]


def _band(curves: LearningCurves, series: int, factor: float) -> Band:
    points = zip(curves.steps, curves.low, curves.high, strict=True)
    return Band(tuple((step, factor * low, factor * high) for step, low, high in points), series)


def _sentence(members: Sequence[tuple[GroupResult, LearningCurves]], families: int) -> str:
    runs = count(sum(len(curves.runs) for _, curves in members), "run")
    sentence = f"Thick: the median over {runs}; band: the middle 80 % of the runs; thin: single runs"
    sentence += f" (the first {_MOST_RUNS} of a level)." if any(len(c.runs) > _MOST_RUNS for _, c in members) else "."
    if families > _MOST_FIGURES:
        sentence += f" Curves of the first {_MOST_FIGURES} of {families} groups are shown."
    return sentence


def _data_table(name: str, title: str, members: Sequence[tuple[GroupResult, LearningCurves]], factor: float) -> Table:
    columns = (Column("level", key=True), Column("epoch"), Column("median"), Column("10 %"), Column("90 %"))
    rows = tuple(
        (str(group.key.level), f"{step:g}", *(significant(factor * value, 4) for value in band))
        for group, curves in members
        for step, *band in zip(curves.steps, curves.median, curves.low, curves.high, strict=True)
    )
    return Table(f"data-curves-{name}", f"Data: {title}", columns, rows, folded=True)
