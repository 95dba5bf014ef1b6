"""Figures 2 and 3: boxplots of the accuracy of every run, and one of the runs with single factors varied."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from isorun.analysis.studies.group_result import SelectionResult
from isorun.report import decimals_for
from isorun.report.figures.description import Figure
from isorun.report.figures.distributions import BoxRow, RunValue, box_figure
from isorun.report.figures.groups import COLOURS, series_of
from isorun.study.cells import Level
from isorun.zoo.studies.ase20.design import METRIC
from isorun.zoo.studies.ase20.factors import arm_group
from isorun.zoo.studies.ase20.measured import Measured, PartResult, overall_extreme
from isorun.zoo.studies.ase20.tables import POINTS

__all__ = ["accuracy_figures", "factor_figures"]

_FIGURES: Final = {Level.DEFAULT: "Figure 2", Level.FIXED_SEED: "Figure 3"}
_LABEL: Final = "test accuracy (%)"


def accuracy_figures(groups: Sequence[Measured]) -> Iterator[Figure]:
    """One figure for each of the two levels and each data set, whose accuracies are of one size."""
    for level, figure in _FIGURES.items():
        for data in dict.fromkeys(group.data for group in groups):
            shown = [group for group in groups if group.level is level and group.data == data]
            drawn = _figure(f"{figure.lower().replace(' ', '-')}-{data}", f"{figure}, {data}", level, shown)
            if drawn is not None:
                yield drawn


def factor_figures(parts: Sequence[PartResult]) -> Iterator[Figure]:
    """The accuracy of every run, a row for what was varied."""
    for part in parts:
        if not part.planned.factors:
            continue
        network = part.planned.networks[0]
        groups = ((place, arm, arm_group(part, arm)) for place, arm in enumerate(part.planned.arms))
        rows = [_row(arm, group.selections[0], place % COLOURS) for place, arm, group in groups if group]
        title = f"{network.name} on {part.planned.data}: test accuracy of every run, by what was varied"
        drawn = box_figure(
            f"factors-{network.option}", title, _LABEL, rows, _sentence(rows), factor=100.0, decimals=_decimals(rows)
        )
        if drawn is not None:
            yield drawn


def _figure(name: str, figure: str, level: Level, groups: Sequence[Measured]) -> Figure | None:
    rows = list(_level_rows(groups))
    title = f"{figure}: test accuracy of every {level} run"
    return box_figure(name, title, _LABEL, rows, _sentence(rows), factor=100.0, decimals=_decimals(rows))


def _level_rows(groups: Sequence[Measured]) -> Iterator[BoxRow]:
    """Every network under the selection with the larger difference, as in the paper."""
    for item in groups:
        if item.group is None:
            continue
        extreme = overall_extreme(item.group)
        judged = item.group.selection(extreme.selection) if extreme else item.group.selections[0]
        yield _row(item.network.name, judged, series_of(item.group.key))


def _row(name: str, judged: SelectionResult, series: int) -> BoxRow:
    found = ((run, run.selected.values.get(METRIC, math.nan)) for run in judged.runs)
    runs = tuple(RunValue(run.run_id, value, run.weak) for run, value in found if math.isfinite(value))
    return BoxRow(name, judged.every.metrics[METRIC].overall, runs, series)


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
