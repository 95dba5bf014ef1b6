"""Comparing with stored runs: is a study better than a baseline that is not run again?

compare_with("study.toml", "resnet56.isorun")     the stored runs enter the verdict as units, as those of the study do

The baseline is whatever `baselines.open_runs` knows: a store, a package, a study, a table; or `registry:…`. What is not
comparable (metric, data, split, level, class of the environment) is refused with the reason, or with `anyway` told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from isorun.analysis.checks.comparable import refuse_same_runs
from isorun.analysis.checks.sides import GroupName, group_name, list_side, scale_of_values, table_sides
from isorun.analysis.comparability import incomparable, unknown_to_compare
from isorun.analysis.comparison import Comparison, Extras
from isorun.analysis.comparison import compare as compare_sides
from isorun.analysis.evidence import Condition
from isorun.analysis.evidence.judged import DIRECTION_CODES, JudgedMetric
from isorun.analysis.evidence.provenance import between_sides
from isorun.analysis.evidence.units import Counting
from isorun.analysis.studies.group_result import GroupResult
from isorun.analysis.studies.study_result import UNIT, StudySides, analyse_recorded, not_logged
from isorun.baselines import KnownRuns, open_runs
from isorun.errors import InputError, known_names
from isorun.questions import Results, study_results
from isorun.session import Store
from isorun.study.cells import GROUP_FACTORS
from isorun.study.design import Metric, Study
from isorun.study.records import RunRecord
from isorun.workflow import opened

if TYPE_CHECKING:
    from isorun.analysis.samples import FloatArray

__all__ = ["compare_with"]

_SIDE: Final = "side"
_BETWEEN: Final = frozenset(("sides-differ-in-host", "sides-differ-in-machine", "sides-differ-in-code"))


def compare_with(
    study: Study | str | Path,
    baseline: Any,
    *,
    value: str | None = None,
    by: str | None = None,
    a: str | None = None,
    b: str | None = None,
    where: Mapping[str, str] | None = None,
    baseline_where: Mapping[str, str] | None = None,
    baseline_study: str | None = None,
    pair: str | None = None,
    direction: str | None = None,
    drop_missing: bool = False,
    margin: float | None = None,
    test: str | None = None,
    extras: Extras | None = None,
    store: Store = None,
    selection: str | None = None,
    anyway: bool = False,
) -> Comparison:
    """Compare one group of the study with one of the baseline. a, b: their labels in factor `by`, by default approach.

    where, baseline_where: other labels of the group that is meant on either side. anyway: compare although something is
    not comparable, which is then told. All else is as in `compare`.
    """
    factor = by or "approach"
    labels = {**(where or {}), **({factor: a} if a else {})}
    theirs = {**(baseline_where or {}), **({factor: b} if b else {})}
    with opened(study, store) as (declared, place):
        held = open_runs(baseline, like=declared, store=place, study=baseline_study)
        runs = open_runs(declared, store=place)
        metrics = declared.metrics if value is None else {value: declared.metrics.get(value, Metric(value))}
        own = _Side.of_records(runs, metrics, declared, labels, selection=selection, direction=direction)
    assert runs.records is not None
    other = _Side.of(held, own, theirs)
    found = list(_refusals(own, other, held))
    if found and not anyway:
        raise InputError(
            f"{declared.name} cannot be compared with the baseline {held.place}: {found[0].message}",
            found="; ".join(condition.message for condition in found[1:]),
            hint=f"{found[0].next_step}; --anyway compares all the same, and says so",
        )
    return _compared(own, other, held, found, _Asked(pair, drop_missing, margin, test, extras or Extras()))


@dataclass(frozen=True, slots=True)
class _Asked:
    """How the sides are compared; the words of `compare`."""

    pair: str | None
    drop_missing: bool
    margin: float | None
    test: str | None
    extras: Extras


@dataclass(frozen=True, slots=True)
class _Side:
    """One group, as units. rows: unit, seed and value of each of its runs. records: none of a table."""

    name: GroupName
    label: str
    metric: JudgedMetric
    rows: tuple[tuple[str, str, float], ...]
    noun: str
    records: tuple[RunRecord, ...] | None = None
    group: GroupResult | None = None
    conditions: tuple[Condition, ...] = ()
    real_runs: str = ""

    @classmethod
    def of_records(
        cls,
        runs: KnownRuns,
        metrics: Mapping[str, Metric],
        study: Study | None,
        labels: Mapping[str, str],
        *,
        selection: str | None = None,
        direction: str | None = None,
        like: GroupName | None = None,
    ) -> _Side:
        """like: the group that it is held against, where the labels leave a choice."""
        assert runs.records is not None
        analysed = analyse_recorded(runs.place, runs.records, metrics, {} if study is None else study.selections)
        wanted = next(iter(metrics), "")
        if analysed.primary is None or (wanted or analysed.primary.name) not in analysed.logged:
            error = not_logged(wanted, analysed.logged)
            raise InputError(f"{error.what} ({runs.place})", allowed=error.allowed, hint=error.hint)
        found = study_results(analysed, selection)
        metric = found.metric(None, direction)
        group = _one_group([one for one in analysed.groups if one.finished], labels, like, runs.place)
        name = group_name(group)
        sides = StudySides(analysed, "approach", (group,))
        others = (one for one in sides.conditions() if one.code not in DIRECTION_CODES)
        records = tuple(record for record in runs.records if record.cell.group == _labels(name))
        rows = tuple(_rows(found, name, metric.name))
        return cls(name, name.label, metric, rows, sides.noun, records, group, tuple(others), sides.real_runs)

    @classmethod
    def of(cls, held: KnownRuns, own: _Side, labels: Mapping[str, str]) -> _Side:
        """The side of the baseline, by the metric of the study's own."""
        if held.records is not None:
            metrics = {own.metric.name: Metric(own.metric.name, own.metric.direction)}
            return cls.of_records(held, metrics, held.study, labels, like=own.name)
        if held.numbers is not None:
            side = list_side(held.numbers)
        else:
            assert held.table is not None
            name = replace(own.name, **labels)
            found = table_sides(held.table, own.metric.name, [name])
            if name not in found:
                raise InputError(
                    f"no row of {held.place} belongs to {name.label}", hint="--baseline-where FACTOR=LABEL"
                )
            side = found[name]
        rows = tuple((label, label, value) for label, value in zip(side.labels, side.values.tolist(), strict=True))
        metric = replace(own.metric, scale=scale_of_values(own.metric.name, side.values))
        return cls(own.name, held.place, metric, rows, side.noun)

    @property
    def values(self) -> FloatArray:
        """Of all runs."""
        import numpy as np  # noqa: PLC0415

        return np.array([value for *_, value in self.rows], dtype=np.float64)


def _labels(name: GroupName) -> tuple[str, ...]:
    return (name.approach, name.config, name.environment, name.level)


def _rows(found: Results, name: GroupName, metric: str) -> list[tuple[str, str, float]]:
    table = found.table
    for factor in GROUP_FACTORS:
        table = table.where({factor: getattr(name, factor)})
    return list(zip(table.labels(UNIT), table.labels("seed"), table.numbers(metric).tolist(), strict=True))


def _one_group(
    groups: Sequence[GroupResult], labels: Mapping[str, str], like: GroupName | None, place: str
) -> GroupResult:
    """The group that is meant: by its labels; else that of the same name, or at the same level, as the other side."""
    for name, label in labels.items():
        if name not in GROUP_FACTORS:
            raise InputError(f"runs are not told apart by {name!r}", allowed=known_names(name, GROUP_FACTORS))
        known = [str(getattr(group_name(group), name)) for group in groups]
        if label not in known:
            raise InputError(
                f"no {name} of {place} is {label!r}", allowed=known_names(label, list(dict.fromkeys(known)))
            )
        groups = [group for group in groups if getattr(group_name(group), name) == label]
    if len(groups) > 1 and like is not None:
        same = [group for group in groups if group_name(group) == like]
        groups = same or [group for group in groups if group_name(group).level == like.level] or groups
    if len(groups) != 1:
        option = "--where" if like is None else "--baseline-where"
        raise InputError(
            f"which group of {place} is compared is not said",
            found="; ".join(group_name(group).label for group in groups) or "no run has finished",
            hint=f"{option} FACTOR=LABEL (approach, config, environment, level)",
        )
    return groups[0]


def _refusals(own: _Side, other: _Side, held: KnownRuns) -> list[Condition]:
    """Why the sides are not comparable. What would make no sense at all is refused, whatever is said."""
    theirs = held.study.metrics.get(own.metric.name) if held.study is not None else None
    if theirs is not None and {theirs.direction, own.metric.direction} == {"higher", "lower"}:
        raise InputError(
            f"of {own.metric.name} {own.metric.direction} is better here, and {theirs.direction} in {held.place}",
            hint="correct the direction in the study",
        )
    if own.metric.scale and other.metric.scale and own.metric.scale != other.metric.scale:
        raise InputError(
            f"{own.metric.name} is not on the same scale on both sides",
            found=f"a {own.metric.scale} here, a {other.metric.scale} in {held.place}",
        )
    if own.records is None or other.records is None or own.group is None or other.group is None:
        return []
    refuse_same_runs(own.records, other.records, held.place)
    return list(incomparable(own.records, other.records, (own.group.provenance, other.group.provenance)))


def _compared(
    own: _Side,
    other: _Side,
    held: KnownRuns,
    found: Sequence[Condition],
    asked: _Asked,
) -> Comparison:
    mine, theirs = _names(own, other, held)
    sides = [(mine, own), (theirs, other)]
    rows = [(name, f"{name} {unit}", seed, value) for name, side in sides for unit, seed, value in side.rows]
    columns = (_SIDE, UNIT, "seed", own.metric.name)
    table = dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True))
    return compare_sides(
        table,
        value=own.metric.name,
        by=_SIDE,
        a=mine,
        b=theirs,
        pair=asked.pair,
        direction=own.metric.direction or "higher",
        drop_missing=asked.drop_missing,
        margin=asked.margin,
        unit=Counting(UNIT, own.noun if own.noun == other.noun else "unit", recorded=True),
        test=asked.test,
        conditions=_conditions(own, other, held, found),
        real_runs=own.real_runs,
        extras=asked.extras,
    )


def _names(own: _Side, other: _Side, held: KnownRuns) -> tuple[str, str]:
    """What the sides are called: by what tells them apart, and the baseline by its place."""
    return own.label, other.label if other.records is None else f"{other.label} ({held.place})"


def _conditions(own: _Side, other: _Side, held: KnownRuns, found: Sequence[Condition]) -> tuple[Condition, ...]:
    """What weakens the verdict: of either side, between them, and what is compared although it is not comparable."""
    from isorun.analysis.evidence.judged import direction_conditions  # noqa: PLC0415 - beside what needs it

    told = [*direction_conditions(own.metric), *own.conditions]
    told += [one for one in (*other.conditions, *held.told) if one.code not in {known.code for known in told}]
    if own.group is not None and other.group is not None:
        classes = {condition.code for condition in found}
        for one in between_sides(own.group.provenance, other.group.provenance, "approach"):
            # Who compares environments of two classes all the same was told of it, and has asked for the verdict.
            asked = one.code in _BETWEEN and "other-environment" in classes
            told.append(replace(one, voids=False) if asked else one)
    return (*told, *found, *unknown_to_compare(own.records or (), other.records, held.place))
