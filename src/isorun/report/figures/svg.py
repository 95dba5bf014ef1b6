"""Figures as SVG: no script, the same bytes for the same figure, readable by screen readers.

Colours come from classes, so that a page can style them for light, dark and print; STYLE holds the rules, which a
stand-alone file carries in itself.
"""

from __future__ import annotations

import hashlib
import textwrap
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import Final

from isorun.report.figures.description import Figure, Legend
from isorun.report.figures.svg_marks import (
    Frame,
    band_mark,
    box_marks,
    cell_marks,
    dot_mark,
    element,
    line_mark,
    number,
    series_class,
    shape_mark,
)
from isorun.report.figures.text_width import text_width
from isorun.report.plain_text import escaped

__all__ = ["STYLE", "render"]

_WIDTH: Final = 760
_ROW: Final = 46
_DOT_ROW: Final = 24
_CELL_ROW: Final = 32
_LABEL_LINE: Final = 15
_LONGEST_LABEL: Final = 34
_CURVE_HEIGHT: Final = 300
_TOP: Final = 8
_BOTTOM: Final = 46
_RIGHT: Final = 16
_LEGEND_LINE: Final = 20

STYLE: Final = resources.files(__package__).joinpath("figure.css").read_text("utf-8").strip()


def render(figure: Figure, *, standalone: bool = False) -> str:
    """The figure as one SVG element; `standalone` adds the name space and the style, for a file of its own."""
    frame = _frame(figure)
    legend = _legend_places(figure.legend)
    height = frame.top + frame.height + _BOTTOM + _LEGEND_LINE * (legend[-1][1] + 1 if legend else 0)
    mark = hashlib.sha256(f"{figure.name}/{figure.title}".encode()).hexdigest()[:8]
    parts = [
        element("title", escaped(figure.title), id=f"t{mark}"),
        element("desc", escaped(figure.sentence), id=f"d{mark}"),
        *([element("style", STYLE)] if standalone else []),
        *_axis_marks(frame),
        *(band_mark(band, frame) for band in figure.bands if band.points),
        *(part for cell in figure.cells for part in cell_marks(cell, frame)),
        *(line_mark(line, frame) for line in figure.lines if line.points),
        *(part for box in figure.boxes for part in box_marks(box, frame)),
        *(dot_mark(dot, frame) for dot in figure.dots),
        *_legend_marks(legend, frame.top + frame.height + _BOTTOM),
    ]
    attributes = {"xmlns": "http://www.w3.org/2000/svg"} if standalone else {}
    return element(
        "svg",
        "\n".join(["", *parts, ""]),
        **attributes,
        class_="figure",
        viewBox=f"0 0 {_WIDTH} {height:.0f}",
        role="img",
        aria_labelledby=f"t{mark} d{mark}",
    )


def _frame(figure: Figure) -> Frame:
    rows = figure.y.rows
    labels = [line for tick in figure.y.ticks for line in _label_lines(tick.label)]
    left = 14 + max(map(text_width, labels), default=0.0) + (0 if rows else 20)
    row = _ROW if figure.boxes else _CELL_ROW if figure.cells else _DOT_ROW
    row = max(row, 9 + _LABEL_LINE * max((len(_label_lines(tick.label)) for tick in figure.y.ticks), default=1))
    height = row * len(figure.y.ticks) if rows else _CURVE_HEIGHT
    return Frame(left, _TOP, _WIDTH - left - _RIGHT, height, figure.x, figure.y)


def _label_lines(label: str) -> list[str]:
    return textwrap.wrap(label, _LONGEST_LABEL) or [""]


def _axis_marks(frame: Frame) -> Iterator[str]:
    bottom, right = frame.top + frame.height, frame.left + frame.width
    for tick in frame.x_axis.ticks:
        at = frame.x(tick.at)
        if not frame.x_axis.rows:
            yield element("line", class_="grid", x1=at, x2=at, y1=frame.top, y2=bottom)
        yield element("text", escaped(tick.label), class_="soft", x=at, y=bottom + 17, text_anchor="middle")
    yield element("line", class_="axis", x1=frame.left, x2=right, y1=bottom, y2=bottom)
    middle = frame.left + frame.width / 2
    yield element("text", escaped(frame.x_axis.label), x=middle, y=bottom + 36, text_anchor="middle")
    yield from _row_labels(frame) if frame.y_axis.rows else _value_labels(frame)


def _row_labels(frame: Frame) -> Iterator[str]:
    for tick in frame.y_axis.ticks:
        lines = _label_lines(tick.label)
        first = frame.y(tick.at) + 4.5 - 7.5 * (len(lines) - 1)
        for place, line in enumerate(lines):
            yield element("text", escaped(line), x=frame.left - 10, y=first + _LABEL_LINE * place, text_anchor="end")


def _value_labels(frame: Frame) -> Iterator[str]:
    for tick in frame.y_axis.ticks:
        at = frame.y(tick.at)
        yield element("line", class_="grid", x1=frame.left, x2=frame.left + frame.width, y1=at, y2=at)
        yield element("text", escaped(tick.label), class_="soft", x=frame.left - 8, y=at + 4, text_anchor="end")
    turned = f"translate(12 {number(frame.top + frame.height / 2)}) rotate(-90)"
    yield element("text", escaped(frame.y_axis.label), transform=turned, text_anchor="middle")


def _legend_places(legend: Sequence[Legend]) -> list[tuple[float, int, Legend]]:
    """Where each entry starts: x in pixels and the number of its line."""
    places: list[tuple[float, int, Legend]] = []
    x, line = 14.0, 0
    for entry in legend:
        length = 36 + text_width(entry.label)
        if places and x + length > _WIDTH:
            x, line = 14.0, line + 1
        places.append((x, line, entry))
        x += length
    return places


def _legend_marks(places: Sequence[tuple[float, int, Legend]], top: float) -> Iterator[str]:
    for x, line, entry in places:
        y = top + _LEGEND_LINE * line + 6
        if entry.shape is None:
            kind = f"line {'dashed ' if entry.dashed else ''}{series_class(entry.series)}"
            yield element("line", class_=kind, x1=x - 8, x2=x + 9, y1=y, y2=y)
        else:
            yield shape_mark(entry.shape, x, y, entry.series)
        yield element("text", escaped(entry.label), class_="soft", x=x + 13, y=y + 4.5)
