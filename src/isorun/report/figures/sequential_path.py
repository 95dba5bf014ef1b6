"""The sequential path: the statistic at every look, and the boundaries at which a claim is made or hope given up."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from isorun.analysis.sequential.decision import Decision, PathPoint
from isorun.analysis.sequential.futility import null_sd_of_u
from isorun.analysis.sequential.looks import Look
from isorun.errors import InputError
from isorun.report.figures.axes import value_axis
from isorun.report.figures.description import Axis, Band, Dot, Figure, Legend, Line, Shape
from isorun.report.numbers import UNKNOWN, p_value, significant
from isorun.report.tables import Column, Table

__all__ = ["sequential_path"]

_A, _B, _PATH, _HOPELESS = 0, 1, 3, 5
_ALONE: Final = 0.5
"""How far a boundary reaches to either side where there is a single look."""

Pick = Callable[[PathPoint], float | None]


@dataclass(frozen=True, slots=True)
class _Scale:
    """Where a look stands on x, and by what its statistic is divided: ranks by their null standard deviation."""

    equal_sides: bool
    ranks: bool

    def x(self, point: PathPoint) -> float:
        """Runs a side, or of both sides together where they differ."""
        return float(point.n_a if self.equal_sides else point.n_a + point.n_b)

    def y(self, point: PathPoint, value: float | None) -> float | None:
        """A statistic or boundary in standard deviations; None where there is none, or an infinite one."""
        if value is None or not math.isfinite(value):
            return None
        return value / null_sd_of_u(Look(point.n_a, point.n_b)) if self.ranks else value


def sequential_path(
    decision: Decision, a: str = "A", b: str = "B", *, name: str = "sequential-path", title: str = ""
) -> Figure:
    """The path of a decision between approaches called `a` and `b`; boundaries of looks ahead are dashed.

    Rank statistics are shown in standard deviations under no difference, so that early and late looks can be compared.
    """
    path = decision.path
    if not path:
        raise InputError("there is no path to draw", found="a decision without looks")
    scale = _Scale(all(point.n_a == point.n_b for point in path), decision.method != "e-process")
    heading = title or f"{a} against {b}: the path to the verdict"
    y = _y_axis(path, scale)
    return Figure(
        name=name,
        title=heading,
        sentence=_sentence(decision, a, b),
        x=_x_axis(path, scale),
        y=y,
        data=_data_table(name, heading, path, scale),
        bands=tuple(_zones(path, scale, y)),
        lines=(*_boundaries(path, scale), _statistic_line(path, scale, y)),
        dots=tuple(_dots(path, scale, y, (a, b))),
        legend=tuple(_legend(path, a, b)),
    )


def _x_axis(path: Sequence[PathPoint], scale: _Scale) -> Axis:
    label = "runs a side" if scale.equal_sides else "runs of both sides"
    return value_axis(label, [x + end for x in map(scale.x, path) for end in (-_ALONE, _ALONE)], whole=True)


def _y_axis(path: Sequence[PathPoint], scale: _Scale) -> Axis:
    """An axis around 0 that leaves room for the zones beyond the boundaries."""
    numbers = [scale.y(point, number) for point in path for number in (point.upper, point.lower, point.statistic)]
    farthest = max((abs(number) for number in numbers if number is not None), default=1.0)
    what = "rank statistic, in standard deviations" if scale.ranks else "Student's t"
    return value_axis(what, [-1.1 * farthest, 1.1 * farthest])


def _steps(path: Sequence[PathPoint], scale: _Scale, pick: Pick) -> list[tuple[float, float]]:
    """The boundary at the looks that have one; a single one as a short line."""
    found = [(scale.x(point), scale.y(point, pick(point))) for point in path]
    points = [(x, y) for x, y in found if y is not None]
    if len(points) == 1:
        (x, y), *_ = points
        return [(x - _ALONE, y), (x + _ALONE, y)]
    return points


def _boundaries(path: Sequence[PathPoint], scale: _Scale) -> Iterator[Line]:
    """Solid up to the last look made, dashed from there on."""
    made = [point for point in path if not point.planned]
    ahead = path[max(len(made) - 1, 0) :]
    sides: tuple[tuple[Pick, int], ...] = ((_upper, _A), (_lower, _B))
    for pick, series in sides:
        seen = sum(pick(point) is not None for point in made)
        if seen > 1 or (seen and len(ahead) == 1):
            yield Line(tuple(_steps(made, scale, pick)), series)
        if len(ahead) > 1 or not made:
            yield Line(tuple(_steps(ahead, scale, pick)), series, dashed=True)


def _upper(point: PathPoint) -> float | None:
    return point.upper


def _lower(point: PathPoint) -> float | None:
    return point.lower


def _zones(path: Sequence[PathPoint], scale: _Scale, y: Axis) -> Iterator[Band]:
    """Where A is claimed, where B is, and where the comparison is hopeless."""
    yield Band(tuple((x, low, y.high) for x, low in _steps(path, scale, _upper)), _A)
    yield Band(tuple((x, y.low, high) for x, high in _steps(path, scale, _lower)), _B)
    hopeless = _steps(path, scale, lambda point: point.futility)
    yield Band(tuple((x, -reach, reach) for x, reach in hopeless), _HOPELESS)


def _shown(point: PathPoint, scale: _Scale, y: Axis) -> float | None:
    """The statistic of a look made; one that is infinite, since no run varies, stands at the edge."""
    if point.statistic is None or math.isnan(point.statistic):
        return None
    inside = scale.y(point, point.statistic)
    return inside if inside is not None else math.copysign(y.high, point.statistic)


def _statistic_line(path: Sequence[PathPoint], scale: _Scale, y: Axis) -> Line:
    points = [(scale.x(point), _shown(point, scale, y)) for point in path]
    return Line(tuple((x, at) for x, at in points if at is not None), _PATH)


def _dots(path: Sequence[PathPoint], scale: _Scale, y: Axis, names: tuple[str, str]) -> Iterator[Dot]:
    for point in path:
        at = _shown(point, scale, y)
        if at is not None:
            runs = f"{point.n_a} runs of {names[0]}, {point.n_b} of {names[1]}"
            yield Dot(scale.x(point), at, Shape.CIRCLE, _PATH, f"{runs}: {significant(at)}, p {p_value(point.p_value)}")


def _legend(path: Sequence[PathPoint], a: str, b: str) -> Iterator[Legend]:
    yield Legend("a look", Shape.CIRCLE, _PATH)
    yield Legend(f"{a} better", Shape.SQUARE, _A)
    yield Legend(f"{b} better", Shape.SQUARE, _B)
    if any(point.futility for point in path):
        yield Legend("hopeless: may be given up", Shape.SQUARE, _HOPELESS)
    if any(point.planned for point in path):
        yield Legend("boundary of looks ahead", None, _HOPELESS, dashed=True)


def _sentence(decision: Decision, a: str, b: str) -> str:
    names = "" if (a, b) == ("A", "B") else f" (A is {a}, B is {b})"
    why = f"{decision.why[:1].upper()}{decision.why[1:]}{names}."
    return f"{why} A claim is made at the first look in a coloured zone."


def _data_table(name: str, title: str, path: Sequence[PathPoint], scale: _Scale) -> Table:
    columns = (
        Column("runs of A", key=True),
        Column("runs of B", key=True),
        Column("statistic"),
        Column("claim for B at or below"),
        Column("claim for A at or above"),
        Column("hopeless within ±"),
        Column("p"),
    )
    rows = tuple((str(point.n_a), str(point.n_b), *_cells(point, scale)) for point in path)
    return Table(f"data-{name}", f"Data: {title}", columns, rows, folded=True)


def _cells(point: PathPoint, scale: _Scale) -> tuple[str, ...]:
    numbers = (point.statistic, point.lower, point.upper, point.futility)
    written = [significant(scale.y(point, number)) for number in numbers]
    return (*written, UNKNOWN if point.p_value is None else p_value(point.p_value))
