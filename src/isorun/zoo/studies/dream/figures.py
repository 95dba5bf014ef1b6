"""Figures 2 and 3 of the paper: the best score so far, by time and by trial."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from isorun.report import Column, Table, fixed
from isorun.report.figures.axes import value_axis
from isorun.report.figures.description import Figure
from isorun.report.figures.searches import BestCurve, best_so_far
from isorun.zoo.data.search_logs import LoggedSearch
from isorun.zoo.studies.dream.findings import HOUR, TARGET, TRIALS
from isorun.zoo.studies.dream.measured import SearchPoint, SearchProgress, replay
from isorun.zoo.studies.dream.tables import label

__all__ = ["best_by_time", "best_by_trial"]

_Across = Callable[[SearchPoint], float]


def best_by_time(searches: Mapping[str, LoggedSearch], title: str) -> Figure:
    """The best score over the hours of each search, and the score that was aimed at (Figure 2 of the paper)."""
    runs = {label(tuner): replay(search, None) for tuner, search in searches.items()}
    return _figure(
        "best-by-time",
        title,
        runs,
        ("hours of search", lambda point: point.elapsed_s / HOUR),
        target=100 * TARGET,
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
    target: float | None = None,
) -> Figure:
    unit, place = across
    curves = [
        BestCurve(tuner, tuple(_step(tuner, point, place) for point in _changes(run)), place(run.curve[-1]))
        for tuner, run in runs.items()
    ]
    points = [point for curve in curves for point in curve.corners]
    return best_so_far(
        (name, title, sentence),
        curves,
        value_axis(unit, [x for x, _ in points] + ([0.0] if target is not None else [])),
        value_axis(
            "best validation accuracy so far (%)", [0.0, *(y for _, y in points), *([target] if target else [])]
        ),
        data=_data_table(name, title, runs),
        target=target,
    )


def _step(tuner: str, point: SearchPoint, place: _Across) -> tuple[float, float, str]:
    words = f"{tuner}, trial {point.trial}, {point.elapsed_s / HOUR:.2f} h: {100 * point.best:.2f} %"
    return place(point), 100 * point.best, words


def _changes(run: SearchProgress) -> list[SearchPoint]:
    """The first trial and those that improved on all before."""
    return [run.curve[0], *(point for point in run.curve if point.trial in set(run.improving))]


def _data_table(name: str, title: str, runs: Mapping[str, SearchProgress]) -> Table:
    columns = (Column("strategy", key=True), Column("trial"), Column("hours"), Column("best so far", "%"))
    rows = tuple(
        (tuner, str(point.trial), fixed(point.elapsed_s / HOUR, 2), fixed(100 * point.best, 2))
        for tuner, run in runs.items()
        for point in _changes(run)
    )
    return Table(f"data-{name}", f"Data: {title}", columns, rows, folded=True)
