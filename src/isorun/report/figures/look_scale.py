"""Looks on axes: where each stands, its statistic, and boundaries that are solid where looks were made."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from isorun.analysis.sequential.decision import Decision, PathPoint
from isorun.analysis.sequential.plan import Look
from isorun.analysis.sequential.rules import null_sd_of_u
from isorun.errors import InputError
from isorun.report.figures.axes import value_axis
from isorun.report.figures.description import Axis, Line

__all__ = ["LookScale", "Pick", "look_scale"]

_ALONE: Final = 0.5
"""How far a boundary reaches to either side where there is a single look."""

Pick = Callable[[PathPoint], float | None]
"""Which number of a look is meant."""
Points = list[tuple[float, float]]


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

    def boundary(self, pick: Pick) -> Points:
        """The boundary at all looks that have one; a single one as a short line."""
        return self._through(self.path, pick)

    def boundary_lines(self, pick: Pick, series: int) -> Iterator[Line]:
        """The boundary, solid up to the last look made and dashed from there on."""
        made = [point for point in self.path if not point.planned]
        ahead = self.path[max(len(made) - 1, 0) :] if len(made) < len(self.path) else ()
        seen = sum(pick(point) is not None for point in made)
        if seen > 1 or (seen and not ahead):
            yield Line(tuple(self._through(made, pick)), series)
        if ahead:
            yield Line(tuple(self._through(ahead, pick)), series, dashed=True)

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

    def _through(self, path: Sequence[PathPoint], pick: Pick) -> Points:
        found = [(self.x(point), self.y(point, pick(point))) for point in path]
        points = [(x, y) for x, y in found if y is not None]
        if len(points) == 1:
            (x, y), *_ = points
            return [(x - _ALONE, y), (x + _ALONE, y)]
        return points


def look_scale(decision: Decision, *, ranks: bool) -> LookScale:
    """The scale of a decision's looks; an error when it has none."""
    if not decision.path:
        raise InputError("there is no path to draw", found="a decision without looks")
    return LookScale(decision.path, all(point.n_a == point.n_b for point in decision.path), ranks)
