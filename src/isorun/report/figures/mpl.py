"""Figures by matplotlib: PDF and PNG for papers, and an Axes for those who style on."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, Final

from isorun.errors import InputError, MissingExtra
from isorun.report.figures.description import Axis, Box, Dot, Figure, Shape

__all__ = ["FORMATS", "draw", "save"]

FORMATS: Final = ("pdf", "png", "svg", "eps")
_COLOURS: Final = ("#0b62a4", "#b4530a", "#0a7a55", "#7a3e9d", "#8a6d00", "#5b6472")
_MARKERS: Final = {Shape.CIRCLE: "o", Shape.SQUARE: "s", Shape.DIAMOND: "D", Shape.TRIANGLE: "^", Shape.CROSS: "x"}
_WIDTH_INCHES: Final = 6.5


def draw(figure: Figure, axes: Any = None) -> Any:
    """The figure on the given matplotlib Axes, or on a new one; the Axes is returned."""
    target = axes if axes is not None else _new_axes(figure)
    for band in figure.bands:
        xs, lows, highs = zip(*band.points, strict=True) if band.points else ((), (), ())
        target.fill_between(xs, lows, highs, color=_colour(band.series), alpha=0.16, linewidth=0)
    for line in figure.lines:
        xs, ys = zip(*line.points, strict=True) if line.points else ((), ())
        width, alpha = (0.6, 0.3) if line.faint else (1.8, 1.0)
        target.plot(xs, ys, color=_colour(line.series), linewidth=width, alpha=alpha)
    for box in figure.boxes:
        _draw_box(target, box)
    for dot in figure.dots:
        _draw_dot(target, dot)
    _set_axes(target, figure)
    _draw_legend(target, figure)
    return target


def save(figure: Figure, path: Path) -> None:
    """The figure in a file; the ending of its name tells the format."""
    if path.suffix.lstrip(".") not in FORMATS:
        found = f"the ending {path.suffix!r}"
        raise InputError(f"cannot draw a figure into {path}", found=found, allowed=", ".join(FORMATS))
    # Without dates and with fixed ids the same figure gives the same bytes.
    metadata = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "eps": {"CreationDate": None}}
    axes = draw(figure)
    with _module("matplotlib").rc_context({"svg.hashsalt": "isorun"}):
        axes.figure.savefig(path, bbox_inches="tight", dpi=200, metadata=metadata.get(path.suffix.lstrip(".")))


def _new_axes(figure: Figure) -> Any:
    rows = len(figure.y.ticks)
    height = 1.0 + (0.42 if figure.boxes else 0.24) * rows if figure.y.rows else 3.2
    return _module("matplotlib.figure").Figure(figsize=(_WIDTH_INCHES, height), layout="constrained").add_subplot()


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


def _draw_dot(axes: Any, dot: Dot) -> None:
    colour = _colour(dot.series)
    if dot.shape is Shape.TRIANGLE:
        style = {"facecolor": "white", "edgecolor": "black", "s": 42, "linewidth": 1.1, "zorder": 4}
    elif dot.shape is Shape.CROSS:
        style = {"color": colour, "s": 32, "linewidth": 1.6, "zorder": 3}
    else:
        style = {"facecolor": colour, "edgecolor": "white", "s": 24, "linewidth": 0.5, "zorder": 3}
    axes.scatter([dot.x], [dot.y], marker=_MARKERS[dot.shape], **style)


def _set_axes(axes: Any, figure: Figure) -> None:
    for which, axis in (("x", figure.x), ("y", figure.y)):
        _set_axis(axes, which, axis)
    if figure.y.rows:
        axes.set_ylim(figure.y.high, figure.y.low)
    axes.grid(visible=True, axis="x" if figure.y.rows else "both", linewidth=0.5, alpha=0.5)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _set_axis(axes: Any, which: str, axis: Axis) -> None:
    axes.set(
        **{
            f"{which}lim": (axis.low, axis.high),
            f"{which}label": axis.label,
            f"{which}ticks": [tick.at for tick in axis.ticks],
            f"{which}ticklabels": [tick.label for tick in axis.ticks],
        }
    )


def _draw_legend(axes: Any, figure: Figure) -> None:
    lines = _module("matplotlib.lines")
    handles = [
        lines.Line2D(
            [],
            [],
            color=_colour(entry.series),
            marker="" if entry.shape is None else _MARKERS[entry.shape],
            linestyle="-" if entry.shape is None else "",
            markerfacecolor="white" if entry.shape is Shape.TRIANGLE else _colour(entry.series),
            label=entry.label,
        )
        for entry in figure.legend
    ]
    axes.legend(
        handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2, frameon=False, fontsize="small"
    )


def _colour(series: int) -> str:
    return _COLOURS[series % len(_COLOURS)]
