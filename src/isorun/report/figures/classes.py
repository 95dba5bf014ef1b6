"""Per-class differences: how far two runs can be apart in every class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from isorun.analysis.evidence.judged import JudgedMetric
from isorun.analysis.studies.group_result import SelectionResult
from isorun.analysis.studies.study_result import StudyResult
from isorun.report.figures.axes import row_axis, value_axis
from isorun.report.figures.description import Dot, Figure, Legend
from isorun.report.figures.series import distinct_series, row_name, shape_of
from isorun.report.numbers import UNKNOWN, NumberStyle, style_for
from isorun.report.tables import Column, Table

__all__ = ["class_figure"]

_MOST_CLASSES: Final = 25
_MOST_GROUPS: Final = 5


@dataclass(frozen=True, slots=True)
class _Group:
    """The largest difference in every class of one group, as shown."""

    name: str
    series: int
    differences: Mapping[str, float]


def class_figure(result: StudyResult, metric: JudgedMetric) -> Figure | None:
    """The largest difference between two runs in every class, by the primary rule; None without per-class values.

    With many classes those that vary most are shown, with many groups the first ones; the sentence says so.
    """
    style = style_for(metric.scale)
    groups = _groups(result, metric, style.factor)
    if not groups:
        return None
    shown = groups[:_MOST_GROUPS]
    classes = _widest_classes(shown)
    title = f"{metric.name}: differences between runs in every class"
    values = [group.differences[name] for group in shown for name in classes if name in group.differences]
    return Figure(
        name=f"{metric.name}-classes",
        title=title,
        sentence=_sentence(groups, len(classes), style),
        x=value_axis(f"largest difference between two runs ({style.difference_unit or metric.name})", [0.0, *values]),
        y=row_axis("class", [f"class {name}" for name in classes]),
        data=_data_table(metric.name, title, groups, style),
        dots=tuple(_dots(shown, classes)),
        legend=tuple(Legend(group.name, shape_of(group.series), group.series) for group in shown),
    )


def _groups(result: StudyResult, metric: JudgedMetric, factor: float) -> list[_Group]:
    keys = [group.key for group in result.groups]
    found = [
        _Group(row_name(group.key, keys), series, _differences(group.selections[0], metric.name, factor))
        for group, series in zip(result.groups, distinct_series(keys), strict=True)
    ]
    return [group for group in found if group.differences]


def _differences(rule: SelectionResult, metric: str, factor: float) -> dict[str, float]:
    spreads = rule.every.metrics[metric].classes.items()
    return {name: factor * spread.max_difference for name, spread in spreads if spread.max_difference is not None}


def _widest_classes(groups: Sequence[_Group]) -> list[str]:
    """All classes in their order, or those that vary most where there are too many to show."""
    names = _class_names(groups)
    widest = {name: max(group.differences.get(name, 0.0) for group in groups) for name in names}
    if len(names) <= _MOST_CLASSES:
        return names
    return sorted(names, key=lambda name: -widest[name])[:_MOST_CLASSES]


def _class_names(groups: Sequence[_Group]) -> list[str]:
    return list(dict.fromkeys(name for group in groups for name in group.differences))


def _dots(groups: Sequence[_Group], classes: Sequence[str]) -> Iterator[Dot]:
    for group in groups:
        for row, name in enumerate(classes):
            if name in group.differences:
                difference = group.differences[name]
                title = f"class {name}, {group.name}: {difference:.3g}"
                yield Dot(difference, float(row), shape_of(group.series), group.series, title)


def _sentence(groups: Sequence[_Group], shown_classes: int, style: NumberStyle) -> str:
    worst = max(groups, key=lambda group: max(group.differences.values()))
    name = max(worst.differences, key=lambda name: worst.differences[name])
    if not worst.differences[name]:
        return "No class varies between runs."
    amount = style.difference_with_unit(style.difference(worst.differences[name] / style.factor))
    sentence = f"A single class varies by up to {amount} between two runs (class {name}, {worst.name})."
    classes = len(_class_names(groups))
    if shown_classes < classes:
        sentence += f" Shown are the {shown_classes} of {classes} classes that vary most."
    if len(groups) > _MOST_GROUPS:
        sentence += f" Shown are the first {_MOST_GROUPS} of {len(groups)} groups."
    return sentence


def _data_table(metric: str, title: str, groups: Sequence[_Group], style: NumberStyle) -> Table:
    rows = tuple(
        (name, *(f"{group.differences[name]:.3g}" if name in group.differences else UNKNOWN for group in groups))
        for name in _class_names(groups)
    )
    columns = (Column("class", key=True), *(Column(group.name, style.difference_sign) for group in groups))
    return Table(f"data-{metric}-classes", f"Data: {title}", columns, rows, folded=True)
