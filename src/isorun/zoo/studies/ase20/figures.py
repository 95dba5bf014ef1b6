"""All figures, from the numbers alone: boxplots of the accuracy of every run.

Figures 2 and 3, and 4 with other libraries; ours: runs with single factors varied, and repeats within seeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from isorun.analysis.spreads import spread
from isorun.report import decimals_for
from isorun.report.figures.description import Figure
from isorun.report.figures.distributions import BoxRow, RunValue, box_figure
from isorun.report.figures.groups import COLOURS
from isorun.study.cells import Level
from isorun.zoo.paper import Undrawn
from isorun.zoo.studies.ase20.libraries import library_figures
from isorun.zoo.studies.ase20.nested import nested_figures
from isorun.zoo.studies.ase20.tables import POINTS

__all__ = ["figures_of"]

_FIGURES: Final = {Level.DEFAULT: "Figure 2", Level.FIXED_SEED: "Figure 3"}
_LABEL: Final = "test accuracy (%)"
_Numbers = Mapping[str, Any]


def figures_of(numbers: _Numbers) -> Iterator[Figure | Undrawn]:
    """Every figure that has a run; the oldest numbers have no repeats within seeds, and no libraries."""
    yield from _accuracy_figures(numbers["groups"])
    yield from map(_factor_figure, numbers["factors"])
    if numbers.get("nested"):
        yield from nested_figures(numbers["nested"])
    yield from library_figures(numbers.get("libraries", ()))


def _accuracy_figures(groups: Sequence[_Numbers]) -> Iterator[Figure]:
    """One figure for each of the two levels and each data set, whose accuracies are of one size."""
    for level, figure in _FIGURES.items():
        for data in dict.fromkeys(group["data"] for group in groups):
            shown = [group for group in groups if group["level"] == level and group["data"] == data]
            drawn = _figure(f"{figure.lower().replace(' ', '-')}-{data}", f"{figure}, {data}", level, shown)
            if drawn is not None:
                yield drawn


def _factor_figure(factors: _Numbers) -> Figure | Undrawn:
    """The accuracy of every run, a row for what was varied."""
    name = f"factors-{factors['network'].lower()}"
    if any("values" not in arm for arm in factors["arms"].values()):
        return Undrawn(name, "the accuracy of every run of a factor, of which it has the variance alone")
    rows = [
        _row(arm, told["values"], told.get("runs"), told["weak"], place % COLOURS)
        for place, (arm, told) in enumerate(factors["arms"].items())
    ]
    title = f"{factors['network']} on {factors['data']}: test accuracy of every run, by what was varied"
    drawn = box_figure(name, title, _LABEL, rows, _sentence(rows), factor=100.0, decimals=_decimals(rows))
    return drawn or Undrawn(name, "a finished run")


def _figure(name: str, figure: str, level: Level, groups: Sequence[_Numbers]) -> Figure | None:
    rows = list(_level_rows(groups, list(Level).index(level)))
    title = f"{figure}: test accuracy of every {level} run"
    return box_figure(name, title, _LABEL, rows, _sentence(rows), factor=100.0, decimals=_decimals(rows))


def _level_rows(groups: Sequence[_Numbers], series: int) -> Iterator[BoxRow]:
    """Every network under the selection with the larger difference, as in the paper."""
    for group in groups:
        judged = group["selections"]
        if judged:
            extreme = group["overall"]["selection"] if group["overall"] else next(iter(judged))
            told = judged[extreme]
            yield _row(group["network"], told["values"], told.get("runs"), len(told["weak_runs"]), series)


def _row(name: str, values: Sequence[float | None], runs: Sequence[str] | None, weak: int, series: int) -> BoxRow:
    """A run is weak by its accuracy, so that the weak ones are the lowest. runs: None where they have no names."""
    named = zip(runs or map(str, range(1, len(values) + 1)), values, strict=True)
    found = [(run, value) for run, value in named if value is not None]
    lowest = {run for run, _ in sorted(found, key=lambda one: one[1])[:weak]}
    return BoxRow(
        name,
        spread(value for _, value in found),
        tuple(RunValue(run, value, run in lowest) for run, value in found),
        series,
    )


def _sentence(rows: Sequence[BoxRow]) -> str:
    varying = [row for row in rows if row.spread.max_difference is not None]
    if not varying:
        return "One run a row says nothing about spread."
    most = max(varying, key=lambda row: row.spread.max_difference or 0.0)
    if not most.spread.max_difference:
        return "All runs of a row have the same accuracy."
    amount = POINTS.difference_with_unit(POINTS.difference(most.spread.max_difference))
    return f"{most.name} varies most: its best and its worst run differ by {amount}."


def _decimals(rows: Sequence[BoxRow]) -> int:
    return max((decimals_for(100.0 * row.spread.sd, 3) for row in rows if row.spread.sd), default=2)
