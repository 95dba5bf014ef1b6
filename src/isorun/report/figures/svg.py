"""Figures as SVG: no script, the same bytes for the same figure, readable by screen readers.

Colours come from classes, so that a page can style them for light, dark and print; STYLE holds the rules, which a
stand-alone file carries in itself.
"""

from __future__ import annotations

import hashlib
import math
import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Final

from isorun.report import escaped
from isorun.report.figures.description import Axis, Band, Box, Dot, Figure, Legend, Line, Shape, Tile

__all__ = ["NARROW", "OUTLINES", "STYLE", "WIDE", "Outline", "render"]

Outline = tuple[tuple[float, float], ...]

WIDE: Final = 760
NARROW: Final = 350
"""The widths that pages draw figures in: for a window, and for a telephone, which would shrink the letters of that."""
_ROW: Final = 46
_DOT_ROW: Final = 24
_TILE_ROW: Final = 32
_LABEL_LINE: Final = 15
_LONGEST_LABEL: Final = 34
_LONGEST_NARROW_LABEL: Final = 15
_PANEL_HEIGHT: Final = 190
_PANEL_GAP: Final = 12
_PANEL_TITLE: Final = 22
_CURVE_HEIGHT: Final = 300
_TOP: Final = 8
_BOTTOM: Final = 46
_RIGHT: Final = 16
_LEGEND_LINE: Final = 20
_LEGEND_LEFT: Final = 14.0

STYLE: Final = resources.files(__package__).joinpath("figure.css").read_text("utf-8").strip()
_SERIES: Final = 6
_RADIUS: Final = 4.2
_SMALL_RADIUS: Final = 2.2
_STRONGEST: Final = 0.6
"""The opacity of the strongest tile: text on it stays readable."""
_EM: Final = 13.0
"""The size of labels in pixels. Shares of it are those of DejaVu Sans, the widest of the fonts a browser may take."""
_NARROW: Final = frozenset("iljtfrI.,:;'|!()[]/\\ -\"\N{NO-BREAK SPACE}")
_WIDE: Final = frozenset("mwMW@%−+<>=~—")


def render(figure: Figure, *, standalone: bool = False, width: int = WIDE) -> str:
    """The figure as one SVG element; `standalone` adds the name space and the style, for a file of its own."""
    marks, bottom = _panels(figure, width) if figure.panels else _plot(figure, width)
    legend = _legend_places(figure.legend, width)
    height = bottom + _LEGEND_LINE * (legend[-1].line + len(legend[-1].words) if legend else 0)
    mark = hashlib.sha256(f"{figure.name}/{figure.title}/{width}".encode()).hexdigest()[:8]
    parts = [
        element("title", escaped(figure.title), id=f"t{mark}"),
        element("desc", escaped(figure.sentence), id=f"d{mark}"),
        *([element("style", STYLE)] if standalone else []),
        *marks,
        *_legend_marks(legend, bottom),
    ]
    attributes = {"xmlns": "http://www.w3.org/2000/svg"} if standalone else {}
    return element(
        "svg",
        "\n".join(["", *parts, ""]),
        **attributes,
        class_="figure",
        viewBox=f"0 0 {width} {height:.0f}",
        role="img",
        aria_labelledby=f"t{mark} d{mark}",
    )


def _plot(figure: Figure, width: int) -> tuple[list[str], float]:
    """The marks of one plot, and the height that they take."""
    area = _plot_area(figure, width)
    return [*_plot_marks(figure, area)], area.top + area.height + _BOTTOM + _LABEL_LINE * (len(area.x_label()) - 1)


def _plot_marks(figure: Figure, area: PlotArea) -> Iterator[str]:
    yield from _axis_marks(area)
    yield from (band_mark(band, area) for band in figure.bands if band.points)
    yield from (part for tile in figure.tiles for part in tile_marks(tile, area))
    yield from (line_mark(line, area) for line in figure.lines if line.points)
    yield from (part for box in figure.boxes for part in box_marks(box, area))
    yield from (dot_mark(dot, area) for dot in figure.dots if dot.title)
    yield from _crowds([dot for dot in figure.dots if not dot.title], area)


def _crowds(dots: Sequence[Dot], area: PlotArea) -> Iterator[str]:
    """Dots that say nothing one by one, as one path a series: ten times smaller than as many circles."""
    for series in dict.fromkeys(dot.series for dot in dots):
        places = ((area.x(dot.x), area.y(dot.y)) for dot in dots if dot.series == series)
        points = "".join(f"M{number(x)} {number(y)}h0" for x, y in places)
        yield element("path", class_=f"crowd {series_class(series)}", d=points)


def _panels(figure: Figure, width: int) -> tuple[list[str], float]:
    """The panels in rows of `figure.columns`, one below the other where there is no room beside."""
    columns = figure.columns if width >= WIDE else 1
    share = (width - _PANEL_GAP * (columns - 1)) / columns
    row = _PANEL_TITLE + _PANEL_HEIGHT + _TOP + _BOTTOM
    marks = []
    for place, panel in enumerate(figure.panels):
        left, top = (share + _PANEL_GAP) * (place % columns), row * (place // columns)
        area = replace(_plot_area(panel, int(share)), top=_PANEL_TITLE + _TOP, height=_PANEL_HEIGHT)
        heading = element("text", escaped(panel.title), class_="heading", x=area.left, y=_PANEL_TITLE - 6)
        content = "\n".join(["", heading, *_plot_marks(panel, area), ""])
        marks.append(element("g", content, transform=f"translate({number(left)} {number(top)})"))
    return marks, row * math.ceil(len(figure.panels) / columns)


def _plot_area(figure: Figure, width: int) -> PlotArea:
    rows, longest = figure.y.rows, _LONGEST_LABEL if width >= WIDE else _LONGEST_NARROW_LABEL
    lines = [_label_lines(tick.label, longest) for tick in figure.y.ticks]
    left = 14 + max((text_width(line) for label in lines for line in label), default=0.0) + (0 if rows else 20)
    row = _ROW if figure.boxes else _TILE_ROW if figure.tiles else _DOT_ROW
    row = max(row, 9 + _LABEL_LINE * max(map(len, lines), default=1))
    height = row * len(figure.y.ticks) if rows else _CURVE_HEIGHT
    return PlotArea(left, _TOP, width - left - _RIGHT, height, figure.x, figure.y, longest)


def _label_lines(label: str, longest: int) -> list[str]:
    return textwrap.wrap(label, longest) or [""]


def _axis_marks(area: PlotArea) -> Iterator[str]:
    bottom, right = area.top + area.height, area.left + area.width
    free = -math.inf
    for tick in area.x_axis.ticks:
        at, half = area.x(tick.at), text_width(tick.label) / 2
        if not area.x_axis.rows:
            yield element("line", class_="grid", x1=at, x2=at, y1=area.top, y2=bottom)
        if at - half >= free:  # where labels would run into each other, some are left out
            free = at + half + 3
            inside = min(at, right + _RIGHT - half)
            yield element("text", escaped(tick.label), class_="soft", x=inside, y=bottom + 17, text_anchor="middle")
    yield element("line", class_="axis", x1=area.left, x2=right, y1=bottom, y2=bottom)
    middle = max(area.left + area.width / 2, max(map(text_width, area.x_label())) / 2)
    for place, line in enumerate(area.x_label()):
        yield element("text", escaped(line), x=middle, y=bottom + 36 + _LABEL_LINE * place, text_anchor="middle")
    yield from _row_labels(area) if area.y_axis.rows else _value_labels(area)


def _row_labels(area: PlotArea) -> Iterator[str]:
    for tick in area.y_axis.ticks:
        lines = _label_lines(tick.label, area.longest_label)
        first = area.y(tick.at) + 4.5 - 7.5 * (len(lines) - 1)
        for place, line in enumerate(lines):
            yield element("text", escaped(line), x=area.left - 10, y=first + _LABEL_LINE * place, text_anchor="end")


def _value_labels(area: PlotArea) -> Iterator[str]:
    for tick in area.y_axis.ticks:
        at = area.y(tick.at)
        yield element("line", class_="grid", x1=area.left, x2=area.left + area.width, y1=at, y2=at)
        yield element("text", escaped(tick.label), class_="soft", x=area.left - 8, y=at + 4, text_anchor="end")
    turned = f"translate(12 {number(area.top + area.height / 2)}) rotate(-90)"
    yield element("text", escaped(area.y_axis.label), transform=turned, text_anchor="middle")


@dataclass(frozen=True, slots=True)
class _LegendPlace:
    """Where an entry of the legend starts: x in pixels, and the number of its first line."""

    entry: Legend
    x: float
    line: int
    words: tuple[str, ...]


def _legend_places(legend: Sequence[Legend], width: int) -> list[_LegendPlace]:
    """Beside each other as far as they fit; one that is longer than a line has lines of its own."""
    places: list[_LegendPlace] = []
    x, line = _LEGEND_LEFT, 0
    for entry in legend:
        words = tuple(textwrap.wrap(entry.label, _letters(width - 30)) or [""])
        length = 36 + text_width(entry.label)
        if places and (x + length > width or len(words) > 1):
            x, line = _LEGEND_LEFT, places[-1].line + len(places[-1].words)
        places.append(_LegendPlace(entry, x, line, words))
        x += length if len(words) == 1 else width
    return places


def _legend_marks(places: Sequence[_LegendPlace], top: float) -> Iterator[str]:
    for place in places:
        entry, x, y = place.entry, place.x, top + _LEGEND_LINE * place.line + 6
        if entry.area:
            yield element("rect", class_=f"area {series_class(entry.series)}", x=x - 8, y=y - 5, width=17, height=10)
        elif entry.shape is None:
            kind = _line_class(entry, entry.series)
            yield element("line", class_=kind, x1=x - 8, x2=x + 9, y1=y, y2=y)
        else:
            yield shape_mark(entry.shape, x, y, entry.series)
        for below, words in enumerate(place.words):
            yield element("text", escaped(words), class_="soft", x=x + 13, y=y + 4.5 + _LEGEND_LINE * below)


def _letters(width: float) -> int:
    """How many letters a line of this many pixels surely holds."""
    return max(int(width / (0.66 * _EM)), 8)


@dataclass(frozen=True, slots=True)
class PlotArea:
    """The rectangle the axes span, in pixels."""

    left: float
    top: float
    width: float
    height: float
    x_axis: Axis
    y_axis: Axis
    longest_label: int = _LONGEST_LABEL

    def x_label(self) -> list[str]:
        """The label below the x axis, in as many lines as it takes."""
        return textwrap.wrap(self.x_axis.label, _letters(self.left + self.width)) or [""]

    def x(self, value: float) -> float:
        """The pixel of a value on the x axis."""
        return self.left + self.width * (value - self.x_axis.low) / (self.x_axis.high - self.x_axis.low)

    def y(self, value: float) -> float:
        """The pixel of a value on the y axis; rows run downwards, numbers upwards."""
        share = (value - self.y_axis.low) / (self.y_axis.high - self.y_axis.low)
        return self.top + self.height * (share if self.y_axis.rows else 1.0 - share)


def number(value: float) -> str:
    """A coordinate with one decimal at most, so that the same figure gives the same bytes."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def element(name: str, content: str | None = None, **attributes: str | float) -> str:
    """One element; attribute names with a trailing underscore lose it; everything is escaped but the content."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escaped(value if isinstance(value, str) else number(value))}"'
        for key, value in attributes.items()
    )
    return f"<{name}{written}/>" if content is None else f"<{name}{written}>{content}</{name}>"


def box_marks(box: Box, area: PlotArea) -> Iterator[str]:
    """Whiskers with caps, the box, and the median."""
    middle, half = area.y(box.y), abs(area.y(box.height / 2) - area.y(0.0))
    low, high = area.x(box.low), area.x(box.high)
    group = series_class(box.series)
    for end, start in ((area.x(box.low_whisker), low), (area.x(box.high_whisker), high)):
        yield element("line", class_=f"whisker {group}", x1=start, x2=end, y1=middle, y2=middle)
        yield element("line", class_=f"whisker {group}", x1=end, x2=end, y1=middle - half / 2, y2=middle + half / 2)
    yield element(
        "rect", class_=f"box {group}", x=low, y=middle - half, width=max(high - low, 0.8), height=2 * half, rx=2
    )
    at = area.x(box.median)
    yield element("line", class_=f"median {group}", x1=at, x2=at, y1=middle - half, y2=middle + half)


def dot_mark(dot: Dot, area: PlotArea) -> str:
    """The dot with a title that a pointer shows."""
    title = element("title", escaped(dot.title))
    if dot.small:
        kind = f"dot small {series_class(dot.series)}"
        return element("circle", title, class_=kind, cx=area.x(dot.x), cy=area.y(dot.y), r=_SMALL_RADIUS)
    return shape_mark(dot.shape, area.x(dot.x), area.y(dot.y), dot.series, title)


def shape_mark(shape: Shape, x: float, y: float, series: int, title: str = "") -> str:
    """A shape around a place; the mean's triangle stands out by an ink outline."""
    kind = f"{_KINDS.get(shape, 'dot')} {series_class(series)}"
    if shape in (Shape.CIRCLE, Shape.RING):
        return element("circle", title, class_=kind, cx=x, cy=y, r=_RADIUS)
    if shape is Shape.CROSS:
        path = f"M{number(x - _RADIUS)} {number(y - _RADIUS)}l8.4 8.4m0-8.4l-8.4 8.4"
        return element("path", title, class_=kind, d=path)
    return element("path", title, class_=kind, d=f"{_path([(x + dx, y + dy) for dx, dy in OUTLINES[shape]])}z")


def line_mark(line: Line, area: PlotArea) -> str:
    """A line; a faint one is thin and pale."""
    points = _path([(area.x(x), area.y(y)) for x, y in line.points])
    faint = "faint " if line.faint else ""
    return element("path", class_=f"{faint}{_line_class(line, line.series)}", d=points)


def _line_class(line: Line | Legend, series: int) -> str:
    styles = [style for style in ("thin", "dashed", "dotted") if getattr(line, style)]
    return " ".join(["line", *styles, series_class(series)])


def tile_marks(tile: Tile, area: PlotArea) -> Iterator[str]:
    """The rectangle with a title that a pointer shows, and its text."""
    left, right = area.x(tile.x[0]), area.x(tile.x[1])
    top, bottom = sorted((area.y(tile.y[0]), area.y(tile.y[1])))
    yield element(
        "rect",
        element("title", escaped(tile.title)),
        class_=f"cell {series_class(tile.series)}",
        x=left,
        y=top,
        width=right - left,
        height=bottom - top,
        fill_opacity=f"{_STRONGEST * tile.strength:.2f}",
    )
    if tile.text:
        kind = "value strong" if tile.strong else "value"
        middle = (top + bottom) / 2 + 4.5
        yield element("text", escaped(tile.text), class_=kind, x=(left + right) / 2, y=middle, text_anchor="middle")


def band_mark(band: Band, area: PlotArea) -> str:
    """The area between the low and the high line."""
    upper = [(area.x(x), area.y(high)) for x, _, high in band.points]
    lower = [(area.x(x), area.y(low)) for x, low, _ in reversed(band.points)]
    return element("path", class_=f"band {series_class(band.series)}", d=f"{_path([*upper, *lower])}z")


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)


def _star(points: int, outer: float, inner: float) -> Outline:
    """Corners far and near in turn, the first on top; as many of both the same is a regular polygon."""
    turns = [math.pi * place / points for place in range(2 * points)]
    reach = [inner if place % 2 else outer for place in range(2 * points)]
    return tuple((far * math.sin(turn), -far * math.cos(turn)) for turn, far in zip(turns, reach, strict=True))


OUTLINES: Final[dict[Shape, Outline]] = {
    Shape.SQUARE: ((-4, -4), (4, -4), (4, 4), (-4, 4)),
    Shape.OPEN_SQUARE: ((-3.6, -3.6), (3.6, -3.6), (3.6, 3.6), (-3.6, 3.6)),
    Shape.DIAMOND: ((0, -5.4), (5.4, 0), (0, 5.4), (-5.4, 0)),
    Shape.OPEN_DIAMOND: ((0, -5.2), (5.2, 0), (0, 5.2), (-5.2, 0)),
    Shape.TRIANGLE: ((0, -6), (6, 4.5), (-6, 4.5)),
    Shape.STAR: _star(5, 6.4, 2.7),
    Shape.PLUS: (
        *((-2, -5.6), (2, -5.6), (2, -2), (5.6, -2), (5.6, 2), (2, 2)),
        *((2, 5.6), (-2, 5.6), (-2, 2), (-5.6, 2), (-5.6, -2), (-2, -2)),
    ),
    Shape.PENTAGON: _star(5, 5.4, 5.4 * math.cos(math.pi / 5)),
    Shape.HOURGLASS: ((-5.4, -5.4), (5.4, -5.4), (-5.4, 5.4), (5.4, 5.4)),
    Shape.BAR: ((-2.1, -6), (2.1, -6), (2.1, 6), (-2.1, 6)),
    Shape.CHEVRON: ((-4.5, -5.2), (0.5, -5.2), (5, 0), (0.5, 5.2), (-4.5, 5.2), (0, 0)),
    Shape.UP: ((0, -5), (4.5, 3), (1.5, 3), (1.5, 7), (-1.5, 7), (-1.5, 3), (-4.5, 3)),
    Shape.DOWN: ((0, 5), (4.5, -3), (1.5, -3), (1.5, -7), (-1.5, -7), (-1.5, -3), (-4.5, -3)),
}
"""The corners of shapes in pixels around their place, y downwards."""
_KINDS: Final = {
    Shape.CROSS: "cross",
    Shape.TRIANGLE: "mean",
    **dict.fromkeys((Shape.RING, Shape.OPEN_SQUARE, Shape.OPEN_DIAMOND), "open"),
}


def series_class(series: int) -> str:
    """The class that gives a mark the colour of its series."""
    return f"s{series % _SERIES}"


def text_width(text: str) -> float:
    """The width of a line of label text in pixels, rather too large than too small."""
    return _EM * sum(_share(char) for char in text)


def _share(char: str) -> float:
    if char in _NARROW:
        return 0.42
    if char in _WIDE or unicodedata.east_asian_width(char) in "WF":
        return 1.0
    return 0.72 if char.isupper() else 0.64
