"""Figures with fewer marks, for pages that are sent over a line: what is seen stays, and what went is said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from isorun.analysis.samples import FloatArray
from isorun.report.figures.description import Band, Dot, Figure, Line
from isorun.report.figures.marks import RUN

__all__ = ["drawn_places", "stretches", "thinned"]

_NAMED_DOTS: Final = 60
"""So many dots can each be pointed at; more are drawn small, and are named by the figure's data alone."""
_MOST_DOTS: Final = 1_200
_FEWEST_IN_A_ROW: Final = 8
_FEWEST_FAINT: Final = 8
_MOST_POINTS: Final = 80
_MOST_FAINT_POINTS: Final = _FEWEST_FAINT * _MOST_POINTS
"""Of the faint lines of one colour: eight long curves, or many short lines, such as those of pairs."""
_MOST_BAND_POINTS: Final = 60


def drawn_places(values: FloatArray, most: int) -> npt.NDArray[np.intp]:
    """The places of a long line that are drawn: in each of equally long stretches its smallest and its largest value.

    So a line of a million points looks as the whole one would, and no peak gets lost. Its first and last point stay.
    """
    if values.size <= most:
        return np.arange(values.size)
    bounds = stretches(values.size, most)
    ends = [
        start + place(values[start:stop])
        for start, stop in pairwise(bounds.tolist())
        for place in (np.argmin, np.argmax)
    ]
    return np.unique([0, values.size - 1, *ends])


def stretches(size: int, most: int) -> npt.NDArray[np.intp]:
    """The bounds of equally long stretches, half as many as there may be points."""
    return np.linspace(0, size, most // 2 + 1).astype(np.intp)


def thinned(figure: Figure) -> Figure:
    """The figure as a served page has it: many dots as one crowd, few faint lines, long lines with fewer points."""
    drawn = replace(figure, panels=tuple(map(_thinned_marks, figure.panels))) if figure.panels else figure
    drawn = _thinned_marks(drawn)
    return replace(drawn, sentence=f"{figure.sentence}{_said(figure)}")


def _thinned_marks(figure: Figure) -> Figure:
    return replace(
        figure,
        dots=_crowded(figure.dots),
        lines=tuple(_shorter(line) for line in _few_faint(figure.lines)),
        bands=tuple(map(_shorter_band, figure.bands)),
    )


def _crowded(dots: Sequence[Dot]) -> tuple[Dot, ...]:
    """Where there are many, circles lose their names; other shapes say something by themselves, and keep theirs."""
    circles = [dot for dot in dots if dot.shape is RUN]
    if len(circles) <= _NAMED_DOTS:
        return tuple(dots)
    kept = {id(dot) for dot in _few_of_each_row(circles)}
    return tuple(
        replace(dot, title="", small=True) if dot.shape is RUN else dot
        for dot in dots
        if dot.shape is not RUN or id(dot) in kept
    )


def _few_of_each_row(dots: Sequence[Dot]) -> list[Dot]:
    """Of very many the same number in each row, evenly spaced by rank, with the smallest and the largest."""
    if len(dots) <= _MOST_DOTS:
        return list(dots)
    rows: dict[int, list[Dot]] = {}
    for dot in sorted(dots, key=lambda dot: dot.x):
        rows.setdefault(round(dot.y), []).append(dot)
    most = max(_MOST_DOTS // len(rows), _FEWEST_IN_A_ROW)
    return [row[place] for row in rows.values() for place in _evenly(len(row), most)]


def _evenly(size: int, most: int) -> Sequence[int]:
    return range(size) if size <= most else np.rint(np.linspace(0, size - 1, most)).astype(np.intp).tolist()


def _few_faint(lines: Sequence[Line]) -> list[Line]:
    """The first faint lines of each colour, as many as a page may hold, and all others."""
    seen: Counter[int] = Counter()
    points: Counter[int] = Counter()
    kept = []
    for line in lines:
        seen[line.series] += line.faint
        points[line.series] += min(len(line.points), _MOST_POINTS) if line.faint else 0
        few = seen[line.series] <= _FEWEST_FAINT or points[line.series] <= _MOST_FAINT_POINTS
        if not line.faint or few:
            kept.append(line)
    return kept


def _shorter(line: Line) -> Line:
    if len(line.points) <= _MOST_POINTS:
        return line
    places = drawn_places(np.asarray([y for _, y in line.points], dtype=np.float64), _MOST_POINTS)
    return replace(line, points=tuple(line.points[place] for place in places.tolist()))


def _shorter_band(band: Band) -> Band:
    """Of each stretch the outermost ends, so that the band holds all that the whole one does."""
    if len(band.points) <= _MOST_BAND_POINTS:
        return band
    bounds = stretches(len(band.points), 2 * _MOST_BAND_POINTS).tolist()
    parts = [band.points[start:stop] for start, stop in pairwise(bounds) if stop > start]
    ends = [(part[0][0], min(low for _, low, _ in part), max(high for _, _, high in part)) for part in parts]
    last = (band.points[-1][0], *ends[-1][1:])
    return replace(band, points=(*ends, last) if last != ends[-1] else tuple(ends))


def _thinned_faint(plot: Figure) -> list[int]:
    """How many faint lines are drawn of each colour of which some are not."""
    all_there = Counter(line.series for line in plot.lines if line.faint)
    drawn = Counter(line.series for line in _few_faint(plot.lines) if line.faint)
    return [drawn[series] for series, number in all_there.items() if drawn[series] < number]


def _said(figure: Figure) -> str:
    plots = figure.panels or (figure,)
    fewest = min((number for plot in plots for number in _thinned_faint(plot)), default=None)
    said = f" Of many thin lines of one colour the first ones are drawn, at least {fewest}." if fewest else ""
    circles = sum(dot.shape is RUN for plot in plots for dot in plot.dots)
    return said + (" Of rows with many runs some are drawn, evenly spaced by rank." if circles > _MOST_DOTS else "")
