"""Figures in files: SVG is our own; PDF and PNG for papers, and an Axes for those who style on, are by matplotlib."""

from __future__ import annotations

import importlib
import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from isorun.errors import InputError, MissingExtra, harmless
from isorun.replaceable import refuse_other
from isorun.report.figures import svg
from isorun.report.figures.description import Axis, Box, Dot, Figure, Legend, Line, Shape, Tile

__all__ = ["ENDINGS", "FORMATS", "draw", "save_by_matplotlib", "save_figure"]

ENDINGS: Final = (".svg", ".pdf", ".png")

FORMATS: Final = ("pdf", "png", "svg", "eps")
_COLOURS: Final = ("#0b62a4", "#b4530a", "#0a7a55", "#7a3e9d", "#8a6d00", "#5b6472")
_MARKERS: Final = {Shape.CIRCLE: "o", Shape.RING: "o", Shape.CROSS: "x"}
"""Others are drawn by their outlines."""
_OPEN: Final = frozenset((Shape.RING, Shape.OPEN_SQUARE, Shape.OPEN_DIAMOND))
_WIDTH_INCHES: Final = 6.5
_CURVE_INCHES: Final = 2.6
_PANEL_INCHES: Final = 2.1
_LINE_INCHES: Final = 0.16
_LEGEND_COLUMNS: Final = 2
_LONGEST_LABEL: Final = 34
_STRONGEST: Final = 0.6
"""The opacity of the strongest tile: text on it stays readable."""


def save_figure(figure: Figure, path: str | Path) -> Path:
    """Write the figure and return its path. SVG is our own; PDF and PNG need matplotlib (isorun[figures])."""
    target = Path(path)
    ending = target.suffix.lower()
    if ending not in ENDINGS:
        found = f"the ending {target.suffix!r}" if target.suffix else "no ending"
        raise InputError(f"cannot tell how to draw {target}", found=found, allowed=", ".join(ENDINGS))
    refuse_other(target, ending.lstrip("."))
    try:
        if ending == ".svg":
            target.write_text(svg.render(figure, standalone=True) + "\n", encoding="utf-8")
        else:
            save_by_matplotlib(figure, target)
    except OSError as error:
        raise InputError(f"cannot write the figure {target}", found=str(error.strerror or error)) from error
    return target


def draw(figure: Figure, axes: Any = None) -> Any:
    """The figure on the given matplotlib Axes, or on a new one; the Axes is returned. Panels take its place."""
    target = axes if axes is not None else _new_axes(figure)
    if figure.panels:
        return _draw_panels(figure, target)
    for band in figure.bands:
        xs, lows, highs = zip(*band.points, strict=True) if band.points else ((), (), ())
        target.fill_between(xs, lows, highs, color=_colour(band.series), alpha=0.16, linewidth=0)
    for tile in figure.tiles:
        _draw_tile(target, tile)
    for line in figure.lines:
        xs, ys = zip(*line.points, strict=True) if line.points else ((), ())
        width, alpha = (0.6, 0.3) if line.faint else (_line_width(line), 1.0)
        target.plot(xs, ys, color=_colour(line.series), linewidth=width, alpha=alpha, linestyle=_line_style(line))
    for box in figure.boxes:
        _draw_box(target, box)
    for alike in _alike(figure.dots):
        _draw_dots(target, alike)
    _set_axes(target, figure)
    _draw_legend(target, figure)
    return target


def _draw_panels(figure: Figure, target: Any) -> Any:
    """Each panel on an Axes of its own within the given one, which holds the legend."""
    target.set_axis_off()
    grid = target.get_subplotspec().subgridspec(math.ceil(len(figure.panels) / figure.columns), figure.columns)
    for place, panel in enumerate(figure.panels):
        drawn = draw(panel, target.figure.add_subplot(grid[divmod(place, figure.columns)]))
        drawn.set_title(_plain(panel.title), loc="left", fontsize="medium")
    _draw_legend(target, figure)
    return target


def save_by_matplotlib(figure: Figure, path: Path) -> None:
    """The figure in a file; the ending of its name tells the format."""
    ending = path.suffix.lstrip(".").lower()
    if ending not in FORMATS:
        found = f"the ending {path.suffix!r}"
        raise InputError(f"cannot draw a figure into {path}", found=found, allowed=", ".join(FORMATS))
    # Without dates and with fixed ids the same figure gives the same bytes.
    metadata = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "eps": {"CreationDate": None}}
    axes = draw(figure)
    with _module("matplotlib").rc_context({"svg.hashsalt": "isorun"}):
        axes.figure.savefig(path, bbox_inches="tight", dpi=200, metadata=metadata.get(ending))


def _new_axes(figure: Figure) -> Any:
    height = _rows_height(figure) if figure.y.rows else _CURVE_INCHES
    if figure.panels:
        height = _PANEL_INCHES * math.ceil(len(figure.panels) / figure.columns)
    legend = sum(_line_count(entry.label) for entry in figure.legend) / _LEGEND_COLUMNS
    size = (_WIDTH_INCHES, height + 0.7 + _LINE_INCHES * math.ceil(legend))
    return _module("matplotlib.figure").Figure(figsize=size, layout="constrained").add_subplot()


def _rows_height(figure: Figure) -> float:
    row = 0.42 if figure.boxes else 0.32 if figure.tiles else 0.24
    lines = max((_line_count(tick.label) for tick in figure.y.ticks), default=1)
    return max(row, 0.12 + _LINE_INCHES * lines) * len(figure.y.ticks)


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingExtra("matplotlib", "figures", "drawing a figure as PDF or PNG") from None


def _draw_box(axes: Any, box: Box) -> None:
    numbers = {
        "whislo": box.low_whisker,
        "q1": box.low,
        "med": box.median,
        "q3": box.high,
        "whishi": box.high_whisker,
        "fliers": [],
    }
    colour = _colour(box.series)
    drawn = axes.bxp([numbers], positions=[box.y], widths=box.height, orientation="horizontal", showfliers=False)
    for artists in drawn.values():
        for artist in artists:
            artist.set(color=colour, linewidth=1.2)
    drawn["medians"][0].set_linewidth(2.2)


def _alike(dots: Sequence[Dot]) -> list[list[Dot]]:
    """Dots that look the same together: one call for each dot would take seconds."""
    kinds: dict[tuple[Shape, int, bool], list[Dot]] = {}
    for dot in dots:
        kinds.setdefault((dot.shape, dot.series, dot.small), []).append(dot)
    return list(kinds.values())


def _draw_dots(axes: Any, dots: Sequence[Dot]) -> None:
    dot = dots[0]
    colour = _colour(dot.series)
    if dot.shape is Shape.TRIANGLE:
        style = {"facecolor": "white", "edgecolor": "black", "s": 42, "linewidth": 1.1, "zorder": 4}
    elif dot.shape is Shape.CROSS:
        style = {"color": colour, "s": 32, "linewidth": 1.6, "zorder": 3}
    elif dot.shape in _OPEN:
        style = {"facecolor": "white", "edgecolor": colour, "s": 28, "linewidth": 1.2, "zorder": 3}
    elif dot.small:
        style = {"facecolor": colour, "edgecolor": "none", "s": 7, "alpha": 0.5, "zorder": 3}
    else:
        size = 24 if dot.shape in (Shape.CIRCLE, Shape.SQUARE) else 44
        style = {"facecolor": colour, "edgecolor": "white", "s": size, "linewidth": 0.5, "zorder": 3}
    axes.scatter([one.x for one in dots], [one.y for one in dots], marker=_marker(dot.shape), **style)


def _marker(shape: Shape) -> Any:
    """A sign that matplotlib knows, or the outline, which its y axis turns over."""
    known = _MARKERS.get(shape)
    return known or [(x, -y) for x, y in (*svg.OUTLINES[shape], svg.OUTLINES[shape][0])]


def _line_style(line: Line | Legend) -> str:
    return "--" if line.dashed else ":" if line.dotted else "-"


def _line_width(line: Line | Legend) -> float:
    return 0.9 if line.thin else 1.2 if line.dashed else 1.8


def _draw_tile(axes: Any, tile: Tile) -> None:
    (left, right), (low, high) = tile.x, tile.y
    colour = (*_module("matplotlib.colors").to_rgb(_colour(tile.series)), _STRONGEST * tile.strength)
    rectangle = _module("matplotlib.patches").Rectangle
    axes.add_patch(rectangle((left, low), right - left, high - low, facecolor=colour, edgecolor="white", linewidth=1.2))
    weight = "bold" if tile.strong else "normal"
    middle = (left + right) / 2, (low + high) / 2
    axes.text(*middle, _plain(tile.text), ha="center", va="center", fontsize="small", fontweight=weight)


def _set_axes(axes: Any, figure: Figure) -> None:
    for which, axis in (("x", figure.x), ("y", figure.y)):
        _set_axis(axes, which, axis)
    if figure.y.rows:
        axes.set_ylim(figure.y.high, figure.y.low)
    for which, axis in (("x", figure.x), ("y", figure.y)):
        axes.grid(visible=not axis.rows, axis=which, **({} if axis.rows else {"linewidth": 0.5, "alpha": 0.5}))
        if axis.rows:
            axes.tick_params(axis=which, length=0)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _set_axis(axes: Any, which: str, axis: Axis) -> None:
    axes.set(
        **{
            f"{which}lim": (axis.low, axis.high),
            f"{which}label": _plain(axis.label),
            f"{which}ticks": [tick.at for tick in axis.ticks],
            f"{which}ticklabels": [_wrapped(tick.label) for tick in axis.ticks],
        }
    )


def _draw_legend(axes: Any, figure: Figure) -> None:
    """Below the label of the x axis, at the same distance however tall the figure is."""
    if not figure.legend:
        return
    below = _module("matplotlib.transforms").offset_copy(axes.transAxes, axes.figure, y=-40, units="points")
    axes.legend(
        handles=[_legend_handle(entry) for entry in figure.legend],
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=below,
        ncols=_LEGEND_COLUMNS,
        frameon=False,
        fontsize="small",
    )


def _legend_handle(entry: Legend) -> Any:
    if entry.area:
        patch = _module("matplotlib.patches").Patch
        return patch(facecolor=_colour(entry.series), alpha=0.3, label=_wrapped(entry.label))
    hollow = entry.shape is Shape.TRIANGLE or entry.shape in _OPEN
    return _module("matplotlib.lines").Line2D(
        [],
        [],
        color=_colour(entry.series),
        marker="" if entry.shape is None else _marker(entry.shape),
        linestyle=_line_style(entry) if entry.shape is None else "",
        linewidth=_line_width(entry),
        markerfacecolor="white" if hollow else _colour(entry.series),
        label=_wrapped(entry.label),
    )


def _wrapped(label: str) -> str:
    """A label on as many lines as it takes."""
    return "\n".join(_plain(line) for line in textwrap.wrap(harmless(label), _LONGEST_LABEL))


def _line_count(label: str) -> int:
    return max(1, len(_wrapped(label).splitlines()))


def _plain(text: str) -> str:
    """Text that matplotlib takes for nothing but text: a dollar sign starts no formula."""
    return harmless(text).replace("$", r"\$")


def _colour(series: int) -> str:
    return _COLOURS[series % len(_COLOURS)]
