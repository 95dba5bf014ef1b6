"""The path to equivalence: how far the two one-sided tests are at every look from what a claim takes."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Final

from isorun.analysis.sequential.decision import Decision, Verdict
from isorun.errors import InputError
from isorun.report.figures.axes import value_axis
from isorun.report.figures.description import Axis, Band, Dot, Figure, Legend, Line, Shape
from isorun.report.figures.look_scale import LookScale, Pick, look_scale
from isorun.report.numbers import significant
from isorun.report.tables import Column, Table

__all__ = ["equivalence_path"]

_CLAIM, _PATH, _AHEAD = 2, 3, 5
_STATISTIC: Final[Pick] = attrgetter("equivalence")
_BOUNDARY: Final[Pick] = attrgetter("equivalence_boundary")


def equivalence_path(
    decision: Decision, *, name: str = "equivalence-path", title: str = "The path to equivalence"
) -> Figure:
    """The statistic of the two one-sided tests against its boundary, for a decision that was given a margin."""
    if decision.margin is None:
        raise InputError("there is no path to equivalence", found="a decision without margin", hint="state a margin")
    scale = look_scale(decision, ranks=False)
    y = _y_axis(scale)
    made = scale.statistics(_STATISTIC, y)
    return Figure(
        name=name,
        title=title,
        sentence=_sentence(decision, decision.margin),
        x=scale.x_axis(),
        y=y,
        data=_data_table(name, title, scale),
        bands=(Band(tuple((x, low, y.high) for x, low in scale.boundary(_BOUNDARY)), _CLAIM),),
        lines=(
            *scale.boundary_lines(_BOUNDARY, _CLAIM),
            Line(tuple((scale.x(point), at) for point, at in made), _PATH),
        ),
        dots=tuple(
            Dot(scale.x(point), at, Shape.CIRCLE, _PATH, f"{point.n_a} and {point.n_b} runs: {significant(at)}")
            for point, at in made
        ),
        legend=tuple(_legend(decision)),
    )


def _y_axis(scale: LookScale) -> Axis:
    finite = [scale.y(point, pick(point)) for point in scale.path for pick in (_STATISTIC, _BOUNDARY)]
    numbers = [number for number in finite if number is not None]
    room = 0.1 * scale.farthest(_STATISTIC, _BOUNDARY)
    label = "(margin − difference) / standard error"
    return value_axis(label, [0.0, *numbers, max(numbers, default=1.0) + room])


def _legend(decision: Decision) -> Iterator[Legend]:
    yield Legend("a look", Shape.CIRCLE, _PATH)
    yield Legend("equivalent", Shape.SQUARE, _CLAIM)
    if any(point.planned for point in decision.path):
        yield Legend("boundary of looks ahead", None, _AHEAD, dashed=True)


def _sentence(decision: Decision, margin: float) -> str:
    says = "are" if decision.verdict is Verdict.EQUIVALENT else "are not shown to be"
    sentence = f"After {decision.n_a} and {decision.n_b} runs the two {says} within ±{margin:g} of each other"
    return f"{sentence}; equivalence is claimed at a look in the coloured zone, unless a difference was claimed before."


def _data_table(name: str, title: str, scale: LookScale) -> Table:
    columns = (
        Column("runs of A", key=True),
        Column("runs of B", key=True),
        Column("statistic"),
        Column("equivalent at or above"),
    )
    rows = tuple(
        (
            str(point.n_a),
            str(point.n_b),
            *(significant(scale.y(point, pick(point))) for pick in (_STATISTIC, _BOUNDARY)),
        )
        for point in scale.path
    )
    return Table(f"data-{name}", f"Data: {title}", columns, rows, folded=True)
