"""The sequential path: the statistic at every look, and the boundaries at which a claim is made or hope given up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Final

from isorun.analysis.sequential.decision import Decision, PathPoint
from isorun.report.figures.axes import value_axis
from isorun.report.figures.description import Axis, Band, Dot, Figure, Legend, Line, Shape
from isorun.report.figures.look_scale import LookScale, Pick, look_scale
from isorun.report.numbers import p_value, significant
from isorun.report.tables import Column, Table

__all__ = ["sequential_path"]

_A, _B, _PATH, _HOPELESS = 0, 1, 3, 5
_STATISTIC: Final[Pick] = attrgetter("statistic")
_LOWER: Final[Pick] = attrgetter("lower")
_UPPER: Final[Pick] = attrgetter("upper")
_FUTILITY: Final[Pick] = attrgetter("futility")


def sequential_path(
    decision: Decision, a: str = "A", b: str = "B", *, name: str = "sequential-path", title: str = ""
) -> Figure:
    """The path of a decision between approaches called `a` and `b`; boundaries of looks ahead are dashed.

    Rank statistics are shown in standard deviations under no difference, so that early and late looks can be compared.
    """
    scale = look_scale(decision, ranks=decision.test == "mann-whitney")
    heading = title or f"{a} against {b}: the path to the verdict"
    y = _y_axis(scale, decision)
    made = scale.statistics(_STATISTIC, y)
    return Figure(
        name=name,
        title=heading,
        sentence=_sentence(decision, a, b),
        x=scale.x_axis(),
        y=y,
        data=_data_table(name, heading, scale),
        bands=tuple(_zones(scale, y)),
        lines=(
            *scale.boundary_lines(_UPPER, _A),
            *scale.boundary_lines(_LOWER, _B),
            Line(tuple((scale.x(point), at) for point, at in made), _PATH),
        ),
        dots=tuple(Dot(scale.x(point), at, Shape.CIRCLE, _PATH, _words(point, at, (a, b))) for point, at in made),
        legend=tuple(_legend(decision.path, a, b)),
    )


def _y_axis(scale: LookScale, decision: Decision) -> Axis:
    """An axis around 0 that leaves room for the zones beyond the boundaries."""
    reach = 1.1 * scale.farthest(_UPPER, _LOWER, _STATISTIC)
    label = "Student's t" if decision.method == "e-process" else "rank statistic, in standard deviations"
    return value_axis(label, [-reach, reach])


def _zones(scale: LookScale, y: Axis) -> Iterator[Band]:
    """Where A is claimed, where B is, and where the comparison is hopeless."""
    yield Band(tuple((x, low, y.high) for x, low in scale.boundary(_UPPER)), _A)
    yield Band(tuple((x, y.low, high) for x, high in scale.boundary(_LOWER)), _B)
    yield Band(tuple((x, -reach, reach) for x, reach in scale.boundary(_FUTILITY)), _HOPELESS)


def _words(point: PathPoint, at: float, names: tuple[str, str]) -> str:
    runs = f"{point.n_a} runs of {names[0]}, {point.n_b} of {names[1]}"
    return f"{runs}: {significant(at)}, p {p_value(point.p_value)}"


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
    return f"{why} A claim is made at the first look in the zone of either side."


def _data_table(name: str, title: str, scale: LookScale) -> Table:
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
