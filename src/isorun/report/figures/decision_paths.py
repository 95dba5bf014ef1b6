"""The paths of a sequential decision: every look, its statistic, and the boundaries of a claim."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from isorun.analysis.sequential import Decision, Look, PathPoint
from isorun.analysis.sequential.rules import null_sd_of_u
from isorun.errors import InputError
from isorun.report import Column, Table, p_value, significant
from isorun.report.figures.axes import value_axis
from isorun.report.figures.description import Axis, Band, Dot, Figure, Legend, Line
from isorun.report.figures.marks import ESTIMATE, GREY

__all__ = ["LookScale", "Pick", "look_scale", "sequential_path"]

_ALONE: Final = 0.5
"""How far a boundary reaches to either side where there is a single look."""

Pick = Callable[[PathPoint], float | None]
"""Which number of a look is meant."""
Polyline = list[tuple[float, float]]
_A, _B, _PATH = 0, 1, 3
_STATISTIC: Final[Pick] = attrgetter("statistic")
_LOWER: Final[Pick] = attrgetter("lower")
_UPPER: Final[Pick] = attrgetter("upper")
_FUTILITY: Final[Pick] = attrgetter("futility")


@dataclass(frozen=True, slots=True)
class LookScale:
    """The looks of a path. equal_sides: both sides have as many runs at every look.

    ranks: the statistic is a rank statistic, shown in its standard deviations when there is no difference.
    """

    path: tuple[PathPoint, ...]
    equal_sides: bool
    ranks: bool

    def x(self, point: PathPoint) -> float:
        """Runs a side, or of both sides together where they differ."""
        return float(point.n_a if self.equal_sides else point.n_a + point.n_b)

    def y(self, point: PathPoint, value: float | None) -> float | None:
        """A statistic or boundary as shown; None where there is none, or an infinite one."""
        if value is None or not math.isfinite(value):
            return None
        return value / null_sd_of_u(Look(point.n_a, point.n_b)) if self.ranks else value

    def x_axis(self) -> Axis:
        """The axis of runs, with a little room around the first and the last look."""
        label = "runs a side" if self.equal_sides else "runs of both sides"
        ends = [x + room for x in map(self.x, self.path) for room in (-_ALONE, _ALONE)]
        return value_axis(label, ends, whole=True)

    def farthest(self, *picks: Pick) -> float:
        """The largest distance from 0 of these numbers; 1 where there are none."""
        numbers = [self.y(point, pick(point)) for point in self.path for pick in picks]
        return max((abs(number) for number in numbers if number is not None), default=1.0) or 1.0

    def boundary(self, pick: Pick) -> Polyline:
        """The boundary at all looks that have one, also those ahead; a single one as a short line."""
        found = [(self.x(point), self.y(point, pick(point))) for point in self.path]
        points = [(x, y) for x, y in found if y is not None]
        if len(points) == 1:
            (x, y), *_ = points
            return [(x - _ALONE, y), (x + _ALONE, y)]
        return points

    def statistics(self, pick: Pick, y: Axis) -> list[tuple[PathPoint, float]]:
        """The looks made with their statistic; one that is infinite, since no run varies, stands at the edge."""
        found: list[tuple[PathPoint, float]] = []
        for point in self.path:
            value = pick(point)
            if value is not None and not math.isnan(value):
                edge = y.high if value > 0 else y.low
                inside = self.y(point, value)
                found.append((point, edge if inside is None else inside))
        return found


def look_scale(decision: Decision, *, ranks: bool) -> LookScale:
    """The scale of a decision's looks; an error when it has none."""
    if not decision.path:
        raise InputError("there is no path to draw", found="a decision without looks")
    return LookScale(decision.path, all(point.n_a == point.n_b for point in decision.path), ranks)


def sequential_path(
    decision: Decision, a: str = "A", b: str = "B", *, name: str = "sequential-path", title: str = ""
) -> Figure:
    """The path of a decision between approaches called `a` and `b`, and the boundaries of all its looks.

    Rank statistics are shown in standard deviations under no difference, so that early and late looks can be compared.
    """
    scale = look_scale(decision, ranks=decision.test == "mann-whitney")
    heading = title or f"{a} against {b}: the path to the verdict"
    y = _sequential_y_axis(scale, decision)
    made = scale.statistics(_STATISTIC, y)
    return Figure(
        name=name,
        title=heading,
        sentence=_sequential_sentence(decision, a, b),
        x=scale.x_axis(),
        y=y,
        data=_sequential_data_table(name, heading, scale),
        bands=tuple(_zones(scale, y)),
        lines=(
            Line(tuple(scale.boundary(_UPPER)), _A, dashed=True),
            Line(tuple(scale.boundary(_LOWER)), _B, dashed=True),
            Line(tuple((scale.x(point), at) for point, at in made), _PATH),
        ),
        dots=tuple(Dot(scale.x(point), at, ESTIMATE, _PATH, _words(point, at, (a, b))) for point, at in made),
        legend=tuple(_sequential_legend(decision.path, a, b)),
    )


def _sequential_y_axis(scale: LookScale, decision: Decision) -> Axis:
    """An axis around 0 that leaves room for the zones beyond the boundaries."""
    reach = 1.1 * scale.farthest(_UPPER, _LOWER, _STATISTIC)
    label = "Student's t" if decision.method == "e-process" else "rank statistic, in standard deviations"
    return value_axis(label, [-reach, reach])


def _zones(scale: LookScale, y: Axis) -> Iterator[Band]:
    """Where A is claimed, where B is, and where the comparison is hopeless."""
    yield Band(tuple((x, low, y.high) for x, low in scale.boundary(_UPPER)), _A, zone=True)
    yield Band(tuple((x, y.low, high) for x, high in scale.boundary(_LOWER)), _B, zone=True)
    yield Band(tuple((x, -reach, reach) for x, reach in scale.boundary(_FUTILITY)), GREY, zone=True)


def _words(point: PathPoint, at: float, names: tuple[str, str]) -> str:
    runs = f"{point.n_a} runs of {names[0]}, {point.n_b} of {names[1]}"
    return f"{runs}: {significant(at)}, p {p_value(point.p_value)}"


def _sequential_legend(path: Sequence[PathPoint], a: str, b: str) -> Iterator[Legend]:
    yield Legend("a look", ESTIMATE, _PATH)
    yield Legend(f"{a} better", None, _A, area=True)
    yield Legend(f"{b} better", None, _B, area=True)
    if any(point.futility for point in path):
        yield Legend("hopeless: may be given up", None, GREY, area=True)
    if any(point.upper is not None for point in path):
        yield Legend("boundary of a claim", None, _A, dashed=True)


def _sequential_sentence(decision: Decision, a: str, b: str) -> str:
    names = "" if (a, b) == ("A", "B") else f" (A is {a}, B is {b})"
    why = f"{decision.why[:1].upper()}{decision.why[1:]}{names}."
    return f"{why} A claim is made at the first look in the zone of either side."


def _sequential_data_table(name: str, title: str, scale: LookScale) -> Table:
    columns = (
        Column("runs of A", key=True),
        Column("runs of B", key=True),
        Column("statistic"),
        Column("claim for B at or below"),
        Column("claim for A at or above"),
        Column("hopeless within ±"),
        Column("p"),
    )
    rows = tuple(
        (
            str(point.n_a),
            str(point.n_b),
            *(significant(scale.y(point, pick(point))) for pick in (_STATISTIC, _LOWER, _UPPER, _FUTILITY)),
            p_value(point.p_value),
        )
        for point in scale.path
    )
    return Table(f"data-{name}", f"Data: {title}", columns, rows, folded=True)
