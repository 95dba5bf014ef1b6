"""Figures 2 and 3 of the paper: the best score so far, by time and by trial."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from isorun.report import Column, Table, fixed
from isorun.report.figures.axes import value_axis
from isorun.report.figures.description import Dot, Figure, Legend, Line, Shape
from isorun.zoo.data.search_logs import LoggedSearch
from isorun.zoo.studies.dream.findings import HOUR, TARGET, TRIALS
from isorun.zoo.studies.dream.measured import SearchPoint, SearchProgress, replay
from isorun.zoo.studies.dream.tables import label

__all__ = ["best_by_time", "best_by_trial"]

_SHAPES: Final = (Shape.CIRCLE, Shape.SQUARE, Shape.DIAMOND, Shape.TRIANGLE)
_TARGET_SERIES: Final = 5
_Across = Callable[[SearchPoint], float]


def best_by_time(searches: Mapping[str, LoggedSearch], title: str) -> Figure:
    """The best score over the hours of each search, and the score that was aimed at (Figure 2 of the paper)."""
    runs = {label(tuner): replay(search, None) for tuner, search in searches.items()}
    longest = max(run.elapsed_s for run in runs.values()) / HOUR
    target = Line(((0.0, 100 * TARGET), (longest, 100 * TARGET)), _TARGET_SERIES, dashed=True)
    return _figure(
        "best-by-time",
        title,
        runs,
        ("hours of search", lambda point: point.elapsed_s / HOUR),
        target=target,
        sentence="The best score so far by time; a mark is a trial that improved it; dashed: the target.",
    )


def best_by_trial(searches: Mapping[str, LoggedSearch], title: str) -> Figure:
    """The best score over the first trials of each search (Figure 3 of the paper)."""
    return _figure(
        "best-by-trial",
        title,
        {label(tuner): replay(search, TRIALS) for tuner, search in searches.items()},
        ("trial", lambda point: float(point.trial)),
        sentence=f"The best score so far over the first {TRIALS} trials, trial 0 being the model a search starts from; "
        "a mark is a trial that improved it.",
    )


def _figure(
    name: str,
    title: str,
    runs: Mapping[str, SearchProgress],
    across: tuple[str, _Across],
    *,
    sentence: str,
    target: Line | None = None,
) -> Figure:
    unit, place = across
    numbered = [(number, tuner, run) for number, (tuner, run) in enumerate(runs.items())]
    lines = [Line(_steps(run, place), number) for number, _, run in numbered]
    lines += [target] if target else []
    points = [point for line in lines for point in line.points]
    legend = [Legend(tuner, _SHAPES[number % len(_SHAPES)], number) for number, tuner, _ in numbered]
    return Figure(
        name=name,
        title=title,
        sentence=sentence,
        x=value_axis(unit, [x for x, _ in points]),
        y=value_axis("best validation accuracy so far (%)", [0.0, *(y for _, y in points)]),
        data=_data_table(name, title, runs),
        lines=tuple(lines),
        dots=tuple(dot for number, tuner, run in numbered for dot in _dots(number, tuner, run, place)),
        legend=(*legend, *([Legend("target", None, _TARGET_SERIES, dashed=True)] if target else [])),
    )


def _steps(run: SearchProgress, place: _Across) -> tuple[tuple[float, float], ...]:
    """The curve as stairs: the best stays what it was until the trial that improves it has ended."""
    corners: list[tuple[float, float]] = []
    for point in _changes(run):
        corners += [(place(point), corners[-1][1])] if corners else []
        corners.append((place(point), 100 * point.best))
    return (*corners, (place(run.curve[-1]), 100 * run.best))


def _changes(run: SearchProgress) -> list[SearchPoint]:
    """The first trial and those that improved on all before."""
    return [run.curve[0], *(point for point in run.curve if point.trial in set(run.improving))]


def _dots(number: int, tuner: str, run: SearchProgress, place: _Across) -> list[Dot]:
    return [
        Dot(
            place(point),
            100 * point.best,
            _SHAPES[number % len(_SHAPES)],
            number,
            f"{tuner}, trial {point.trial}, {point.elapsed_s / HOUR:.2f} h: {100 * point.best:.2f} %",
        )
        for point in _changes(run)
    ]


def _data_table(name: str, title: str, runs: Mapping[str, SearchProgress]) -> Table:
    columns = (Column("strategy", key=True), Column("trial"), Column("hours"), Column("best so far", "%"))
    rows = tuple(
        (tuner, str(point.trial), fixed(point.elapsed_s / HOUR, 2), fixed(100 * point.best, 2))
        for tuner, run in runs.items()
        for point in _changes(run)
    )
    return Table(f"data-{name}", f"Data: {title}", columns, rows, folded=True)
