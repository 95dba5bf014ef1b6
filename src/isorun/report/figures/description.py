"""What a figure shows, apart from how it is drawn.

All marks are in the units of the axes. Renderers decide about pixels, fonts and colours; `series` numbers tell them
which marks belong together.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from isorun.report import Table

__all__ = ["Axis", "Band", "Box", "Dot", "Figure", "Legend", "Line", "Shape", "Tick", "Tile"]


class Shape(enum.StrEnum):
    """The shapes of dots: each says by itself what it is, without its colour. What they mean is said in `marks.py`."""

    CIRCLE = "circle"
    RING = "ring"
    CROSS = "cross"
    DIAMOND = "diamond"
    OPEN_DIAMOND = "open diamond"
    TRIANGLE = "triangle"
    SQUARE = "square"
    OPEN_SQUARE = "open square"
    STAR = "star"
    PLUS = "plus"
    PENTAGON = "pentagon"
    HOURGLASS = "hourglass"
    BAR = "bar"
    CHEVRON = "chevron"
    UP = "up"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class Tick:
    """A place on an axis with its label."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis from low to high. rows: its ticks name rows, the first on top, or columns, and have no grid lines."""

    label: str
    low: float
    high: float
    ticks: tuple[Tick, ...]
    rows: bool = False


@dataclass(frozen=True, slots=True)
class Box:
    """A box in the row at `y`: whiskers, quartiles and median along x; as tall as `height` in units of rows."""

    y: float
    low_whisker: float
    low: float
    median: float
    high: float
    high_whisker: float
    series: int
    height: float = 0.5


@dataclass(frozen=True, slots=True)
class Dot:
    """One value. title: what a pointer resting on it tells; without one it is drawn small, as one of many.

    small: one of so many that large ones would hide all.
    """

    x: float
    y: float
    shape: Shape
    series: int
    title: str
    small: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A line through points. thin: a single run or pair; faint: one among many of them. dashed: a reference.

    dotted: one more group of a colour that another has.
    """

    points: tuple[tuple[float, float], ...]
    series: int
    faint: bool = False
    dashed: bool = False
    dotted: bool = False
    thin: bool = False


@dataclass(frozen=True, slots=True)
class Band:
    """The area between two lines over the same x: (x, low, high). zone: a region of its own, around no line."""

    points: tuple[tuple[float, float, float], ...]
    series: int
    zone: bool = False


@dataclass(frozen=True, slots=True)
class Tile:
    """A filled rectangle: a tile of a matrix, or a bar. x and y: its (low, high) ends.

    strength: from 0 (paper) to 1 (the colour of the series). text: written in its middle, bold where `strong`.
    """

    x: tuple[float, float]
    y: tuple[float, float]
    series: int
    strength: float
    title: str
    text: str = ""
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Legend:
    """What a mark means. shape None: a line, thick unless it is thin, dashed or dotted; or an area."""

    label: str
    shape: Shape | None
    series: int
    dashed: bool = False
    dotted: bool = False
    thin: bool = False
    area: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure. sentence: what it shows, in plain words. data: its numbers as a table.

    panels: figures beside and below each other, `columns` in a row, which make this one; only their titles, axes and
    marks are drawn, and the legend is that of the whole.
    """

    name: str
    title: str
    sentence: str
    x: Axis
    y: Axis
    data: Table
    boxes: tuple[Box, ...] = ()
    dots: tuple[Dot, ...] = ()
    lines: tuple[Line, ...] = ()
    bands: tuple[Band, ...] = ()
    legend: tuple[Legend, ...] = ()
    tiles: tuple[Tile, ...] = ()
    panels: tuple[Figure, ...] = ()
    columns: int = 1
