"""The marks of a figure as SVG elements, from places in pixels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from isorun.report.figures.description import Axis, Band, Box, Cell, Dot, Line, Shape
from isorun.report.plain_text import escaped

__all__ = [
    "Frame",
    "band_mark",
    "box_marks",
    "cell_marks",
    "dot_mark",
    "element",
    "line_mark",
    "number",
    "series_class",
    "shape_mark",
]

_SERIES: Final = 6
_RADIUS: Final = 4.2
_SMALL_RADIUS: Final = 2.2
_STRONGEST: Final = 0.6
"""The opacity of the strongest cell: text on it stays readable."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The rectangle the axes span, in pixels."""

    left: float
    top: float
    width: float
    height: float
    x_axis: Axis
    y_axis: Axis

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


def box_marks(box: Box, frame: Frame) -> Iterator[str]:
    """Whiskers with caps, the box, and the median."""
    middle, half = frame.y(box.y), abs(frame.y(box.height / 2) - frame.y(0.0))
    low, high = frame.x(box.low), frame.x(box.high)
    group = series_class(box.series)
    for end, start in ((frame.x(box.low_whisker), low), (frame.x(box.high_whisker), high)):
        yield element("line", class_=f"whisker {group}", x1=start, x2=end, y1=middle, y2=middle)
        yield element("line", class_=f"whisker {group}", x1=end, x2=end, y1=middle - half / 2, y2=middle + half / 2)
    yield element(
        "rect", class_=f"box {group}", x=low, y=middle - half, width=max(high - low, 0.8), height=2 * half, rx=2
    )
    at = frame.x(box.median)
    yield element("line", class_=f"median {group}", x1=at, x2=at, y1=middle - half, y2=middle + half)


def dot_mark(dot: Dot, frame: Frame) -> str:
    """The dot with a title that a pointer shows."""
    title = element("title", escaped(dot.title))
    if dot.small:
        kind = f"dot small {series_class(dot.series)}"
        return element("circle", title, class_=kind, cx=frame.x(dot.x), cy=frame.y(dot.y), r=_SMALL_RADIUS)
    return shape_mark(dot.shape, frame.x(dot.x), frame.y(dot.y), dot.series, title)


def shape_mark(shape: Shape, x: float, y: float, series: int, title: str = "") -> str:
    """A shape around a place; the mean's triangle stands out by an ink outline."""
    group = series_class(series)
    if shape is Shape.CIRCLE:
        return element("circle", title, class_=f"dot {group}", cx=x, cy=y, r=_RADIUS)
    if shape is Shape.CROSS:
        reach = _RADIUS
        path = f"M{number(x - reach)} {number(y - reach)}l8.4 8.4m0-8.4l-8.4 8.4"
        return element("path", title, class_=f"cross {group}", d=path)
    kind = f"mean {group}" if shape is Shape.TRIANGLE else f"dot {group}"
    return element("path", title, class_=kind, d=_OUTLINES[shape](x, y))


def line_mark(line: Line, frame: Frame) -> str:
    """A line; a faint one is thin and pale."""
    points = _path([(frame.x(x), frame.y(y)) for x, y in line.points])
    style = ("faint " if line.faint else "") + ("dashed " if line.dashed else "")
    return element("path", class_=f"line {style}{series_class(line.series)}", d=points)


def cell_marks(cell: Cell, frame: Frame) -> Iterator[str]:
    """The rectangle with a title that a pointer shows, and its text."""
    left, right = frame.x(cell.x[0]), frame.x(cell.x[1])
    top, bottom = sorted((frame.y(cell.y[0]), frame.y(cell.y[1])))
    yield element(
        "rect",
        element("title", escaped(cell.title)),
        class_=f"cell {series_class(cell.series)}",
        x=left,
        y=top,
        width=right - left,
        height=bottom - top,
        fill_opacity=f"{_STRONGEST * cell.strength:.2f}",
    )
    if cell.text:
        kind = "value strong" if cell.strong else "value"
        middle = (top + bottom) / 2 + 4.5
        yield element("text", escaped(cell.text), class_=kind, x=(left + right) / 2, y=middle, text_anchor="middle")


def band_mark(band: Band, frame: Frame) -> str:
    """The area between the low and the high line."""
    upper = [(frame.x(x), frame.y(high)) for x, _, high in band.points]
    lower = [(frame.x(x), frame.y(low)) for x, low, _ in reversed(band.points)]
    return element("path", class_=f"band {series_class(band.series)}", d=f"{_path([*upper, *lower])}z")


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)


def _square(x: float, y: float) -> str:
    return f"M{number(x - 4)} {number(y - 4)}h8v8h-8z"


def _diamond(x: float, y: float) -> str:
    return f"M{number(x)} {number(y - 5.4)}l5.4 5.4l-5.4 5.4l-5.4-5.4z"


def _triangle(x: float, y: float) -> str:
    return f"M{number(x)} {number(y - 6)}l6 10.5h-12z"


_OUTLINES: Final[dict[Shape, Callable[[float, float], str]]] = {
    Shape.SQUARE: _square,
    Shape.DIAMOND: _diamond,
    Shape.TRIANGLE: _triangle,
}


def series_class(series: int) -> str:
    """The class that gives a mark the colour of its series."""
    return f"s{series % _SERIES}"
