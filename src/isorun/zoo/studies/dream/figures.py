"""The best score so far, by time and by trial: of the published logs (Figures 2, 3), and of our searches (5 to 10)."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from isorun.report import Column, Table, fixed
from isorun.report.figures.axes import value_axis
from isorun.report.figures.description import Axis, Figure, Legend, Line, Tick, Tile
from isorun.report.figures.marks import GREY
from isorun.report.figures.searches import BestCurve, best_so_far
from isorun.zoo.paper import Undrawn
from isorun.zoo.studies.dream.design import COMPARED, METHODS
from isorun.zoo.studies.dream.findings import HOUR, TARGET, TRIALS
from isorun.zoo.studies.dream.measured import MeasuredSearch, SearchPoint, SearchProgress, progress_of
from isorun.zoo.studies.dream.tables import in_papers_order, label

__all__ = ["case_figures", "case_title", "figures_of", "searched_figures"]

_TARGET_SERIES: Final = GREY
_MOMENTS: Final = 60
_TAKEN_OVER: Final = ", then repair"
_Across = Callable[[SearchPoint], float]


_TITLES: Final = {"I": "Case I: searches for a score of 75 %", "II": "Case II: searches of 25 trials"}


def figures_of(numbers: Mapping[str, Any]) -> Iterator[Figure | Undrawn]:
    """Every figure, from the numbers alone: our own searches first."""
    if "compared" in numbers:
        yield from searched_figures(numbers["compared"])
    if "searches" in numbers:
        yield from case_figures(numbers)


def case_title(case: str, *, made: bool) -> str:
    """A case by what was searched for in it. made: whether its logs are made ones."""
    return f"{_TITLES[case]} (made logs)" if made else _TITLES[case]


def case_figures(numbers: Mapping[str, Any]) -> Iterator[Figure | Undrawn]:
    """Figures 2 and 3: the two cases, replayed from their logs."""
    names = {"I": ("best-by-time", "Figure 2", _best_by_time), "II": ("best-by-trial", "Figure 3", _best_by_trial)}
    for case, (name, figure, draw) in names.items():
        own = {told["tuner"]: told for told in numbers["searches"] if told["case"] == case}
        if any("curve" not in told for told in own.values()):
            yield Undrawn(name, "the score of every trial of the logs")
        elif own:
            curves = {tuner: told["curve"] for tuner, told in in_papers_order(own).items()}
            yield draw(curves, f"{figure}. {case_title(case, made=numbers['made'])}")


_Curve = Sequence[Sequence[float]]
"""Number, seconds since the start and best score so far, trial by trial."""


def _points(curve: _Curve) -> Iterator[tuple[int, float, float]]:
    yield from ((int(trial), elapsed_s, best) for trial, elapsed_s, best in curve)


def _best_by_time(curves: Mapping[str, _Curve], title: str) -> Figure:
    """The best score over the hours of each search, and the score that was aimed at."""
    return _figure(
        "best-by-time",
        title,
        {label(tuner): progress_of(_points(curve)) for tuner, curve in curves.items()},
        ("hours of search", lambda point: point.elapsed_s / HOUR),
        target=100 * TARGET,
        sentence="The best score so far by time; a mark is a trial that improved it; dashed: the target.",
    )


def _best_by_trial(curves: Mapping[str, _Curve], title: str) -> Figure:
    """The best score over the first trials of each search."""
    return _figure(
        "best-by-trial",
        title,
        {label(tuner): progress_of(_points(curve[:TRIALS])) for tuner, curve in curves.items()},
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


_BY_TRIAL: Final = (
    ("Figure 5", "figure-5", "best by trial", tuple(method.name for method in COMPARED)),
    (
        "Figure 7",
        "figure-7",
        "repair takes over",
        ("edits", "tpe", "random", "edits-attached", "tpe-attached", "random-attached"),
    ),
    ("Figure 9", "figure-9", "within the original space", ("edits", "tpe", "random", "repair-original")),
    ("Figure 10", "figure-10", "priorities", ("repair", "shuffled", "no-prior")),
)


def searched_figures(compared: Mapping[str, Any]) -> Iterator[Figure | Undrawn]:
    """Figures 5 to 10 of each data set that has the searches for them, complete ones only."""
    searches = [MeasuredSearch.from_json(told) for told in compared["searches"]]
    for data in dict.fromkeys(search.data for search in searches):
        own = [search for search in searches if search.data == data and search.is_complete]
        for figure, name, told, methods in _BY_TRIAL:
            curves = _curves(own, methods)
            if len(curves) == len(methods):
                after = _attached_after(own) if figure == "Figure 7" else None
                yield _mean_by_trial(f"{name}-{data}", f"{figure}. {data}: {told}", curves, after)
        by_time = _curves(own, tuple(method.name for method in COMPARED))
        if by_time:
            yield _mean_by_time(f"figure-6-{data}", f"Figure 6. {data}: best by time", by_time)
    if "time_shares" not in compared:
        yield Undrawn("time-shares", "the seconds that watching took (Table 3 has their share)")
    elif compared["time_shares"]:
        yield _time_shares("Figure 8. Shares of the time", compared["time_shares"])


def _curves(searches: Sequence[MeasuredSearch], methods: Sequence[str]) -> dict[str, list[MeasuredSearch]]:
    """By label, the searches from those initial models that all of these methods have had."""
    found = {name: {search.problem: search for search in searches if search.method.name == name} for name in methods}
    shared = set.intersection(*(set(by_problem) for by_problem in found.values()))
    curves = {
        METHODS[name].label: [one for problem, one in by_problem.items() if problem in shared]
        for name, by_problem in found.items()
    }
    return {label: own for label, own in curves.items() if own}


def _attached_after(searches: Sequence[MeasuredSearch]) -> int | None:
    return next((search.attached_after for search in searches if search.method.group == "attached"), None)


Curves = Mapping[str, Sequence[MeasuredSearch]]
"""Searches by the method that made them."""


def _mean_by_trial(name: str, title: str, curves: Curves, attached_after: int | None = None) -> Figure:
    """The mean best so far after each trial, with the range of the searches. attached_after: where repair began."""
    means = {
        method: [
            (float(trial), *_middle_and_range([search.progress.curve[trial].best for search in searches]))
            for trial in range(min(len(search.trials) for search in searches))
        ]
        for method, searches in curves.items()
    }
    marks = []
    if attached_after is not None:
        highest = max(mean for points in means.values() for _, mean, *_ in points)
        marks = [Line(((float(attached_after), 0.0), (float(attached_after), highest)), _TARGET_SERIES, dashed=True)]
    legend = [Legend("repair begins", None, _TARGET_SERIES, dashed=True)] if marks else []
    sentence = f"The best score so far, mean of {_counted(curves)}; its data have the worst and the best."
    return _mean_figure((name, title, sentence), "trial", means, marks, legend)


def _mean_by_time(name: str, title: str, curves: Curves) -> Figure:
    """The mean best so far by time, trial after trial; the target is dashed."""
    every = [search for searches in curves.values() for search in searches]
    begin = max(search.progress.curve[0].elapsed_s for search in every)
    end = max(search.progress.elapsed_s for search in every)
    moments = [begin + (end - begin) * step / _MOMENTS for step in range(_MOMENTS + 1)]
    means = {
        method: [
            (moment, *_middle_and_range([search.progress.best_within(moment) or 0.0 for search in searches]))
            for moment in moments
        ]
        for method, searches in curves.items()
    }
    target = 100 * every[0].target
    mark = Line(((begin, target), (end, target)), _TARGET_SERIES, dashed=True)
    legend = [Legend("target", None, _TARGET_SERIES, dashed=True)]
    sentence = f"The best score so far by the seconds of the trials, mean of {_counted(curves)}; dashed: the target."
    return _mean_figure((name, title, sentence), "seconds of search", means, [mark], legend)


def _counted(curves: Curves) -> str:
    counts = sorted({len(searches) for searches in curves.values()})
    return f"{' or '.join(map(str, counts))} searches a method"


def _middle_and_range(values: Sequence[float]) -> tuple[float, float, float]:
    return 100 * statistics.fmean(values), 100 * min(values), 100 * max(values)


def _mean_figure(
    titles: tuple[str, str, str],
    unit: str,
    means: Mapping[str, Sequence[tuple[float, float, float, float]]],
    marks: Sequence[Line],
    marked: Sequence[Legend],
) -> Figure:
    """The means as lines; who takes another's search over has its colour, dotted. titles: name, title, sentence."""
    name, title, sentence = titles
    styles = {method: _style(method, list(means)) for method in means}
    lines = [
        Line(tuple((x, mean) for x, mean, *_ in points), styles[method][0], dotted=styles[method][1])
        for method, points in means.items()
    ]
    legend = [Legend(method, None, series, dotted=dotted) for method, (series, dotted) in styles.items()]
    highest = max(mean for points in means.values() for _, mean, *_ in points)
    columns = (Column("method", key=True), Column(unit), Column("mean", "%"), Column("worst", "%"), Column("best", "%"))
    rows = tuple(
        (method, f"{x:g}" if unit == "trial" else fixed(x, 1), fixed(mean, 2), fixed(low, 2), fixed(high, 2))
        for method, points in means.items()
        for x, mean, low, high in points
    )
    return Figure(
        name=name,
        title=title,
        sentence=sentence,
        x=value_axis(unit, [x for points in means.values() for x, *_ in points]),
        y=value_axis(
            "best validation accuracy so far (%)", [0.0, highest, *(y for line in marks for _, y in line.points)]
        ),
        data=Table(f"data-{name}", f"Data: {title}", columns, rows, folded=True),
        lines=(*lines, *marks),
        legend=(*legend, *marked),
    )


def _style(method: str, methods: Sequence[str]) -> tuple[int, bool]:
    """The colour, and whether it is dotted."""
    own = method.removesuffix(_TAKEN_OVER)
    return methods.index(own if own in methods else method), own in methods and own != method


def _time_shares(title: str, shares: Mapping[str, Mapping[str, float]]) -> Figure:
    """Figure 8: how the time of repaired searches is shared between watching and training, a bar a data set."""
    bars = []
    for row, (data, found) in enumerate(shares.items()):
        place, watching, rest = (row - 0.3, row + 0.3), found["watching"], found["training"]
        bars.append(Tile((0.0, 100 * rest), place, 0, 0.6, f"{data}, training: {100 * rest:.2f} %", "training"))
        bars.append(Tile((100 * rest, 100.0), place, 1, 1.0, f"{data}, watching: {100 * watching:.2f} %"))
    columns = (Column("data", key=True), Column("watching", "%"), Column("training", "%"))
    rows = tuple(
        (data, *(fixed(100 * found[of], 3) for of in ("watching", "training"))) for data, found in shares.items()
    )
    return Figure(
        name="time-shares",
        title=title,
        sentence="The time of repaired searches: training with all that belongs to a run; at the right end, watching.",
        x=value_axis("share of the time (%)", [0.0, 100.0]),
        y=Axis("", -0.5, len(shares) - 0.5, tuple(Tick(at, data) for at, data in enumerate(shares)), rows=True),
        data=Table("data-time-shares", f"Data: {title}", columns, rows, folded=True),
        tiles=tuple(bars),
    )
