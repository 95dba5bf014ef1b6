"""Learning curves: every run of a level, the median and the middle of them, and the last epochs enlarged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from isorun.analysis.evidence.judged import JudgedMetric
from isorun.analysis.studies.group_result import GroupResult
from isorun.analysis.studies.selection import LearningCurves
from isorun.analysis.studies.study_result import StudyResult
from isorun.report import Column, Table, significant, style_for
from isorun.report.figures.axes import value_axis
from isorun.report.figures.description import Axis, Band, Figure, Legend, Line
from isorun.report.figures.groups import series_of
from isorun.report.figures.marks import GREY
from isorun.report.figures.thinning import drawn_places, stretches
from isorun.study.records import Series, step_text

__all__ = ["curve_figures", "run_curve"]

_MOST_FIGURES: Final = 4
_MOST_POINTS: Final = 400
_MOST_RUNS: Final = 50
_LARGEST: Final = 1e300
_OWN, _OTHERS = 1, GREY
_FEWEST_ENLARGED: Final = 8
"""Of fewer epochs than these the last ones are seen well enough."""


def curve_figures(result: StudyResult) -> Iterator[Figure]:
    """A figure for each approach, config and environment, of the primary metric: a row a level, beside it its end.

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
    drawn = [_drawn(group, curves, style.factor) for group, curves in members]
    title = f"{name}: {metric.name} while training"
    label = f"{metric.name} ({style.unit})" if style.unit else metric.name
    whole = _panel_axes(label, drawn)
    begin = _last_epochs(drawn)
    ends = [one.from_epoch(begin) for one in drawn] if begin is not None else []
    panels = [one.panel(f"{one.level} (n = {one.runs})", whole) for one in drawn]
    if ends:
        axes = _panel_axes(label, ends)
        enlarged = [one.panel(f"{one.level}, from epoch {begin:g} on", axes) for one in ends]
        panels = [panel for pair in zip(panels, enlarged, strict=True) for panel in pair]
    return Figure(
        name=f"curves-{name}",
        title=title,
        sentence=_curve_sentence(members, families, enlarged=bool(ends)),
        x=whole[0],
        y=whole[1],
        data=_curve_data_table(name, title, members, style.factor),
        panels=tuple(panels),
        columns=2 if ends else 1,
    )


def run_curve(run: str, series: Series, metric: JudgedMetric, others: LearningCurves | None) -> Figure | None:
    """One run while training, in the band of the finished runs of its group; None where it has less than two points.

    others: the curves of its group; None where no run of it has any.
    """
    style = style_for(metric.scale)
    own = Line(_points(series.steps, series.values, style.factor), _OWN, thin=True)
    if len(own.points) < 2:
        return None
    band = () if others is None else (_band(others, _OTHERS, style.factor),)
    median = () if others is None else (Line(_points(others.steps, others.median, style.factor), _OTHERS),)
    lines = (*median, own)
    title = f"{metric.name} of this run while training"
    drawn = [at for line in lines for at in line.points]
    low_high = [end for one in band for _, low, high in one.points for end in (low, high)]
    rows = tuple((f"{x:g}", significant(y, 6)) for x, y in own.points)
    label = f"{metric.name} ({style.unit})" if style.unit else metric.name
    return Figure(
        name=f"curve-{metric.name}",
        title=title,
        sentence=_own_sentence(run, metric, others),
        x=value_axis("epoch", [x for x, _ in drawn], whole=True),
        y=value_axis(label, [*(y for _, y in drawn), *low_high]),
        data=Table(f"data-curve-{metric.name}", f"Data: {title}", (Column("epoch", key=True), Column(label)), rows),
        lines=lines,
        bands=band,
        legend=(
            Legend("this run", None, _OWN, thin=True),
            *([Legend("median of its group", None, _OTHERS)] if others else []),
            *([Legend("the middle 80 % of its group", None, _OTHERS, area=True)] if others else []),
        ),
    )


def _own_sentence(run: str, metric: JudgedMetric, others: LearningCurves | None) -> str:
    if others is None:
        return f"{metric.name} of run {run}; no finished run of its group has a curve to hold it against."
    counted = f"{len(others.runs)} runs" if len(others.runs) > 1 else "the only run"
    said = f"Thin: run {run}. Thick: the median of {counted} of its group that finished; band: the middle 80 % of them."
    return said + _left_out([others])


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The curves of one level as they are drawn."""

    level: str
    runs: int
    lines: tuple[Line, ...]
    band: Band

    def from_epoch(self, begin: float) -> _Drawn:
        """Only what comes from this epoch on."""
        lines = (replace(line, points=tuple(at for at in line.points if at[0] >= begin)) for line in self.lines)
        band = replace(self.band, points=tuple(at for at in self.band.points if at[0] >= begin))
        return replace(self, lines=tuple(line for line in lines if line.points), band=band)

    def panel(self, title: str, axes: tuple[Axis, Axis]) -> Figure:
        """One panel; what it shows is said by the figure that it is a part of."""
        x, y = axes
        data = Table("", "", (), ())
        return Figure(f"panel-{title}", title, "", x, y, data, lines=self.lines, bands=(self.band,))


def _drawn(group: GroupResult, curves: LearningCurves, factor: float) -> _Drawn:
    series = series_of(group.key)
    lines = tuple(_lines(curves, series, factor))
    return _Drawn(str(group.key.level), len(curves.runs), lines, _band(curves, series, factor))


def _panel_axes(label: str, drawn: Sequence[_Drawn]) -> tuple[Axis, Axis]:
    """The same axes for all panels, so that they compare."""
    points = [at for one in drawn for line in one.lines for at in line.points]
    return value_axis("epoch", [x for x, _ in points], whole=True), value_axis(label, [y for _, y in points])


def _last_epochs(drawn: Sequence[_Drawn]) -> float | None:
    """Where the last quarter begins, which is enlarged; None where that would be next to nothing."""
    epochs = sorted({x for one in drawn for line in one.lines for x, _ in line.points})
    if len(epochs) < _FEWEST_ENLARGED:
        return None
    return epochs[-max(len(epochs) // 4, 3)]


def _lines(curves: LearningCurves, series: int, factor: float) -> Iterator[Line]:
    for run in curves.runs[:_MOST_RUNS]:
        yield Line(_points(run.steps, run.values, factor), series, faint=True)
    yield Line(_points(curves.steps, curves.median, factor), series)


def _points(steps: Sequence[float], values: Sequence[float], factor: float) -> tuple[tuple[float, float], ...]:
    """The points of a line that are drawn, without those no axis could hold."""
    x, y = np.asarray(steps, dtype=float), np.asarray(values, dtype=float)
    usable = np.abs(y) < _LARGEST
    x, y = x[usable], factor * y[usable]
    drawn = drawn_places(y, _MOST_POINTS)
    return tuple(zip(x[drawn].tolist(), y[drawn].tolist(), strict=True))


def _band(curves: LearningCurves, series: int, factor: float) -> Band:
    """The band; of a long one the outermost ends of each stretch, so that it holds all that the whole one does."""
    steps, low, high = (np.asarray(part, dtype=float) for part in (curves.steps, curves.low, curves.high))
    if steps.size > _MOST_POINTS:
        bounds = stretches(steps.size, _MOST_POINTS)
        starts = bounds[:-1]
        low, high = np.minimum.reduceat(low, starts), np.maximum.reduceat(high, starts)
        steps = np.concatenate([steps[starts[:-1]], steps[-1:]])
    return Band(tuple(zip(steps.tolist(), (factor * low).tolist(), (factor * high).tolist(), strict=True)), series)


def _curve_sentence(members: Sequence[tuple[GroupResult, LearningCurves]], families: int, *, enlarged: bool) -> str:
    sentence = "Thick: the median over the runs of a level; band: the middle 80 % of them; thin: single runs"
    sentence += f" (the first {_MOST_RUNS} of a level)." if any(len(c.runs) > _MOST_RUNS for _, c in members) else "."
    if enlarged:
        sentence += " After each level: its last epochs, enlarged."
    sentence += _left_out([curves for _, curves in members])
    if any(_is_thinned(curves) for _, curves in members):
        sentence += " Long curves are thinned: of each stretch of steps the smallest and the largest value are drawn."
    if families > _MOST_FIGURES:
        sentence += f" Curves of the first {_MOST_FIGURES} of {families} groups are shown."
    return sentence


def _left_out(drawn: Sequence[LearningCurves]) -> str:
    """What the number of runs does not say: values that have no place on an axis, and steps that some runs lack."""
    runs = [run for curves in drawn for run in curves.runs]
    diverged = sum(not np.isfinite(np.asarray(run.values, dtype=float)).all() for run in runs)
    said = ""
    if diverged:
        which = (
            "the run has" if len(runs) == 1 else f"{diverged} of {len(runs)} runs {'has' if diverged == 1 else 'have'}"
        )
        said = f" Values that are not finite (NaN or infinite), which {which}, are left out."
    if any(_lacks(run, curves) for curves in drawn for run in curves.runs):
        said += (
            " Where not all runs have a value, median and band are those of the runs that do, at least half of them."
        )
    return said


def _lacks(run: Series, curves: LearningCurves) -> bool:
    """Whether the median is drawn at a step where this run has no value."""
    values = np.isfinite(np.asarray(run.values, dtype=float))
    if values.all() and run.steps == curves.steps:
        return False
    return not np.isin(np.asarray(curves.steps, dtype=float), np.asarray(run.steps, dtype=float)[values]).all()


def _curve_data_table(
    name: str, title: str, members: Sequence[tuple[GroupResult, LearningCurves]], factor: float
) -> Table:
    columns = (Column("level", key=True), Column("epoch"), Column("median"), Column("10 %"), Column("90 %"))
    rows = tuple(row for group, curves in members for row in _curve_rows(str(group.key.level), curves, factor))
    thinned = [len(curves.steps) for _, curves in members if len(curves.steps) > _MOST_POINTS]
    note = f"Of {max(thinned):,} steps those at which the median is drawn; the JSON report has all." if thinned else ""
    return Table(f"data-curves-{name}", f"Data: {title}", columns, rows, (note,) if note else (), folded=True)


def _curve_rows(level: str, curves: LearningCurves, factor: float) -> Iterator[tuple[str, ...]]:
    for place in drawn_places(np.asarray(curves.median, dtype=float), _MOST_POINTS).tolist():
        band = (curves.median[place], curves.low[place], curves.high[place])
        yield (level, step_text(curves.steps[place]), *(significant(factor * value, 4) for value in band))


def _is_thinned(curves: LearningCurves) -> bool:
    return any(len(run.steps) > _MOST_POINTS for run in curves.runs[:_MOST_RUNS]) or len(curves.steps) > _MOST_POINTS
