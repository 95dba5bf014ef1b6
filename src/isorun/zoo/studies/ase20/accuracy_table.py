"""Table 2 in the paper's layout, each row of ours above the published one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from isorun.analysis.spreads.spread import Spread
from isorun.report.numbers import UNKNOWN
from isorun.report.tables import Column, Table
from isorun.study.levels import Level
from isorun.zoo.studies.ase20.cells import OURS, PAPER, published_spread, spread_cells
from isorun.zoo.studies.ase20.measured import (
    Extreme,
    Measured,
    by_level,
    class_extreme,
    of_papers_data,
    overall_extreme,
)
from isorun.zoo.studies.ase20.published import TABLE_2
from isorun.zoo.studies.ase20.sizes import PUBLISHED_RUNS
from isorun.zoo.studies.ase20.table_notes import few_runs_notes

__all__ = ["accuracy_tables"]

_SPREAD_NOTE: Final = (
    "Diff: best minus worst run, in points. SDev: standard deviation over runs (n - 1), (CI): its 90 % chi-square "
    "interval. Of both selection rules the one with the larger Diff, named in the row, as in the paper; per class the "
    "class with the largest Diff. The two may differ within a row."
)
_DETERMINISTIC_NOTE: Final = "The level deterministic is ours: the paper has no such setting."


def accuracy_tables(groups: Sequence[Measured]) -> Iterator[Table]:
    """Table 2; the same without weak runs where there are some, and for further data where any two runs can differ."""
    own = of_papers_data(groups)
    others = [group for group in groups if not group.is_papers_own]
    if any(group.finished for group in own):
        rows = tuple(row for group in by_level(own) for row in _accuracy_rows(group))
        notes = (_SPREAD_NOTE, _DETERMINISTIC_NOTE, *_chance_notes(own), *few_runs_notes(own))
        yield Table("table-2", "Table 2: differences in accuracy between identical runs", _columns(), rows, notes)
    strong = [group for group in groups if _is_left_without_weak(group)]
    if strong:
        rows = tuple(_our_accuracy(group, without_weak=True) for group in by_level(strong))
        title = "Table 2 without weak runs, where there are some and two others"
        yield Table("table-2-without-weak", title, _columns(), rows)
    if any(group.finished > 1 for group in others):
        rows = tuple(_our_accuracy(group) for group in by_level(others))
        title = "Table 2 on further data, which the paper does not have"
        yield Table("table-2-other-data", title, _columns(), rows, tuple(few_runs_notes(others)))


def _is_left_without_weak(group: Measured) -> bool:
    """Whether there are weak runs, and two or more others."""
    has_weak = group.group is not None and any(rule.weak_runs for rule in group.group.selections)
    return has_weak and overall_extreme(group.group, without_weak=True) is not None


def _columns() -> tuple[Column, ...]:
    titles = ("Diff", "SDev", "(CI)", "judged at")
    return (
        Column("setting", key=True),
        Column("network", key=True),
        Column("from", key=True),
        Column("n"),
        *(Column(title, "", "overall (points)") for title in titles),
        *(Column(title, "", "per class (points)") for title in (*titles, "class")),
    )


def _accuracy_rows(group: Measured) -> Iterator[tuple[str, ...]]:
    yield _our_accuracy(group)
    published = TABLE_2.get(group.level, {}).get(group.network.name)
    if published is not None:
        overall, per_class = published_spread(published.overall), published_spread(published.per_class)
        cells = (*overall, UNKNOWN, *per_class, UNKNOWN, UNKNOWN)
        yield (str(group.level), group.network.name, PAPER, str(PUBLISHED_RUNS), *cells)


def _our_accuracy(group: Measured, *, without_weak: bool = False) -> tuple[str, ...]:
    name = group.network.name if group.is_papers_own else f"{group.network.name} on {group.data}"
    overall = overall_extreme(group.group, without_weak=without_weak)
    per_class = class_extreme(group.group, without_weak=without_weak)
    runs = overall.spread.n if overall else group.finished
    return (
        str(group.level),
        name,
        OURS,
        str(runs),
        *spread_cells(_spread(overall)),
        overall.rule if overall else UNKNOWN,
        *spread_cells(_spread(per_class)),
        per_class.rule if per_class else UNKNOWN,
        per_class.class_name if per_class and per_class.difference else UNKNOWN,
    )


def _chance_notes(groups: Sequence[Measured]) -> Iterator[str]:
    """For each level whether its widest gap of a class is more than so few test images give by chance."""
    for level in Level:
        gaps = [(gap, item) for item in groups if item.group and item.level is level for gap in item.group.gaps]
        widest = max(gaps, key=lambda pair: pair[0].gap, default=None)
        if widest is not None and widest[0].gap > 0:
            yield f"{widest[1].label}, {widest[0].sentence}."


def _spread(extreme: Extreme | None) -> Spread | None:
    return extreme.spread if extreme else None
