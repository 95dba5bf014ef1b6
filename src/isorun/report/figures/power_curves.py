"""How the chance to see a difference grows with the runs."""

from __future__ import annotations

from isorun.analysis.planning.power import PowerResult
from isorun.report import Column, Table, percentage, significant
from isorun.report.figures.axes import value_axis
from isorun.report.figures.description import Axis, Band, Dot, Figure, Legend, Line
from isorun.report.figures.distributions import SHARE_TICKS
from isorun.report.figures.marks import ESTIMATE

__all__ = ["power_figure"]


def power_figure(result: PowerResult, *, name: str = "power", title: str = "") -> Figure:
    """The chance by the number of runs; the square is the answer, the band what a simulated chance leaves open."""
    curve = result.curve()
    heading = title or f"Chance to see a difference of {significant(result.difference, 3)}"
    points = tuple((float(runs), chance.power) for runs, chance in curve)
    band = tuple(
        (
            float(runs),
            max(chance.power - 2 * chance.standard_error, 0.0),
            min(chance.power + 2 * chance.standard_error, 1.0),
        )
        for runs, chance in curve
    )
    simulated = any(chance.standard_error > 0 for _, chance in curve)
    columns = (Column("runs a side"), Column("chance", "%"), Column("standard error", "%"))
    rows = tuple((str(runs), percentage(one.power), percentage(one.standard_error)) for runs, one in curve)
    words = f"{result.runs} runs: {result.power:.0%}"
    return Figure(
        name=name,
        title=heading,
        sentence=f"{result.sentence}.",
        x=value_axis("runs a side", [0.0, *(runs for runs, _ in points)], whole=True),
        y=Axis("chance to see it", -0.03, 1.03, SHARE_TICKS),
        data=Table(f"data-{name}", f"Data: {heading}", columns, rows, folded=True),
        lines=(Line(points, 0),),
        bands=(Band(band, 0),) if simulated else (),
        dots=(Dot(float(result.runs), result.power, ESTIMATE, 1, words),),
        legend=(
            Legend(f"the {result.test} test at {result.alpha:.1%}", None, 0),
            *([Legend("two standard errors of the simulation", None, 0, area=True)] if simulated else []),
            Legend(words, ESTIMATE, 1),
        ),
    )
