"""Comparing with stored runs: is a study better than a baseline that is not run again?

compare_with("study.toml", "resnet56.isorun")     the stored runs enter the verdict as units, as those of the study do

The baseline is whatever `baselines.open_runs` knows: a store, a package, a study, a table; or `registry:…`. What is not
comparable (metric, data, split, level, class of the environment) is refused with the reason, or with `anyway` told.

`TwoSides` is the comparison of runs that are open already; pages ask it as the command does, so that both say the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from isorun.analysis.checks.sides import CountedRows, GroupName, group_name
from isorun.analysis.comparability import ComparedSide, is_arguable, unknown_to_compare, unlike_sides
from isorun.analysis.comparison import NO_EXTRAS, Comparison, Extras
from isorun.analysis.comparison import compare as compare_sides
from isorun.analysis.evidence import Condition, voided
from isorun.analysis.evidence.judged import DIRECTION_CODES, JudgedMetric, direction_conditions
from isorun.analysis.evidence.provenance import between_sides
from isorun.analysis.evidence.scales import scale_of_values
from isorun.analysis.evidence.units import Counting
from isorun.analysis.measurements import read_table
from isorun.analysis.sequential import Decision
from isorun.analysis.studies.group_result import GroupResult
from isorun.analysis.studies.study_result import UNIT, StudySides, analyse_recorded, not_logged
from isorun.baselines import KnownRuns, open_runs
from isorun.errors import InputError, known_names
from isorun.questions import Results, study_results
from isorun.session import Store
from isorun.study.cells import GROUP_FACTORS
from isorun.study.design import Metric, Selection, Study
from isorun.study.records import RunRecord
from isorun.workflow import opened

__all__ = ["SIDE", "HowCompared", "TwoSides", "compare_with"]

SIDE: Final = "side"
"""The column that tells the sides apart."""
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
    sides = TwoSides.of(runs, held, (labels, theirs), value=value, direction=direction, selection=selection)
    return sides.compared(HowCompared(pair, drop_missing, margin, test, extras or Extras(), anyway))


@dataclass(frozen=True, slots=True)
class HowCompared:
    """How the sides are compared; the words of `compare`, and whether although something is not comparable."""

    pair: str | None = None
    drop_missing: bool = False
    margin: float | None = None
    test: str | None = None
    extras: Extras = NO_EXTRAS
    anyway: bool = False


@dataclass(frozen=True, slots=True)
class _Side:
    """One group, as units. rows: unit, seed and value of each of its runs. records, selection: none of a table."""

    name: GroupName
    label: str
    metric: JudgedMetric
    rows: tuple[tuple[str, str, float], ...]
    noun: str
    records: tuple[RunRecord, ...] | None = None
    group: GroupResult | None = None
    selection: Selection | None = None
    conditions: tuple[Condition, ...] = ()
    real_runs: str = ""

    @classmethod
    def of_records(
        cls,
        runs: KnownRuns,
        metrics: Mapping[str, Metric],
        labels: Mapping[str, str],
        *,
        selection: str | None = None,
        direction: str | None = None,
        like: GroupName | None = None,
    ) -> _Side:
        """like: the group that it is held against, where the labels leave a choice."""
        assert runs.records is not None
        declared = {} if runs.study is None else runs.study.selections
        analysed = analyse_recorded(runs.place, runs.records, metrics, declared)
        wanted = next(iter(metrics), "")
        if analysed.primary is None or (wanted or analysed.primary.name) not in analysed.logged:
            error = not_logged(wanted, analysed.logged)
            raise InputError(f"{error.what} ({runs.place})", allowed=error.allowed, hint=error.hint)
        chosen = _selection(analysed.selections, selection, runs.place)
        found = study_results(analysed, chosen.name)
        metric = found.metric(None, direction)
        group = _one_group([one for one in analysed.groups if one.finished], labels, like, runs.place)
        name = group_name(group)
        sides = StudySides(analysed, "approach", (group,))
        others = (*(one for one in sides.conditions() if one.code not in DIRECTION_CODES), *runs.told)
        records = tuple(record for record in runs.records if record.cell.group == _labels(name))
        rows = tuple(_rows(found, name, metric.name))
        return cls(name, name.label, metric, rows, sides.noun, records, group, chosen, others, sides.real_runs)

    @classmethod
    def of(cls, held: KnownRuns, own: _Side, labels: Mapping[str, str], selection: str | None) -> _Side:
        """The side of the baseline, by the metric of the study's own."""
        if held.records is not None:
            metrics = {own.metric.name: Metric(own.metric.name, own.metric.direction)}
            return cls.of_records(held, metrics, labels, selection=selection, like=own.name)
        if held.numbers is not None and labels:
            raise InputError(f"{held.place} has no groups", found=", ".join(labels), hint="leave baseline_where out")
        name = replace(own.name, **labels)
        table = read_table({own.metric.name: held.numbers}) if held.table is None else held.table
        found = CountedRows.of(replace(table, source=held.place), own.metric.name, name)
        if found is None:
            raise InputError(f"no row of {held.place} belongs to {name.label}", hint="--baseline-where FACTOR=LABEL")
        values = np.array([value for _, _, value in found.rows])
        metric = replace(own.metric, scale=scale_of_values(own.metric.name, values))
        told = (*held.told, *found.conditions)
        return cls(own.name, held.place, metric, found.rows, own.noun, conditions=told)

    def lost(self, name: str) -> frozenset[str]:
        """The units without a result, as the table of both sides calls them. name: of the side there."""
        if self.group is None or self.selection is None:
            return frozenset()
        return frozenset(f"{name} {unit}" for unit in self.group.lost(self.selection.name))

    def held(self, runs: KnownRuns) -> ComparedSide:
        """What says whether it can be compared. runs: those that it is a group of."""
        declared = runs.study.metrics.get(self.metric.name) if runs.study is not None else None
        provenance = None if self.group is None else self.group.provenance
        direction = None if declared is None else declared.direction
        return ComparedSide(runs.place, self.metric, direction, self.selection, self.records, provenance)


def _refuse_factors(labels: Iterable[str]) -> None:
    for name in labels:
        if name not in GROUP_FACTORS:
            raise InputError(f"runs are not told apart by {name!r}", allowed=known_names(name, GROUP_FACTORS))


def _selection(known: Sequence[Selection], asked: str | None, place: str) -> Selection:
    names = [one.name for one in known]
    if asked is not None and asked not in names:
        raise InputError(f"{place} has no selection {asked!r}", allowed=known_names(asked, names))
    return known[0 if asked is None else names.index(asked)]


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


@dataclass(frozen=True, slots=True)
class TwoSides:
    """A group of a study, and one of stored runs that it is held against.

    place: where the stored runs are, for people. unlike: why the two are not comparable.
    """

    study: str
    place: str
    unlike: tuple[Condition, ...]
    _own: _Side
    _other: _Side

    @classmethod
    def of(
        cls,
        runs: KnownRuns,
        held: KnownRuns,
        labels: tuple[Mapping[str, str], Mapping[str, str]],
        *,
        value: str | None = None,
        direction: str | None = None,
        selection: str | None = None,
    ) -> TwoSides:
        """The groups with these labels, of recorded runs of a study and of whatever they are held against."""
        assert runs.study is not None
        _refuse_factors([*labels[0], *labels[1]])
        declared = runs.study.metrics
        metrics = declared if value is None else {value: declared.get(value, Metric(value))}
        own = _Side.of_records(runs, metrics, labels[0], selection=selection, direction=direction)
        other = _Side.of(held, own, labels[1], selection)
        unlike = unlike_sides(own.held(runs), other.held(held))
        return cls(runs.study.name, held.place, tuple(unlike), own, other)

    @property
    def names(self) -> tuple[str, str]:
        """What the sides are called: by what tells them apart, and the baseline by its place."""
        other = self._other
        return self._own.label, other.label if other.records is None else f"{other.label} ({self.place})"

    @property
    def metric(self) -> JudgedMetric:
        """What both are judged by."""
        return self._own.metric

    @property
    def is_arguable(self) -> bool:
        """Whether who asks for it may compare them all the same."""
        return is_arguable(self.unlike)

    def table(self) -> dict[str, list[Any]]:
        """The runs of both sides, one row a run."""
        sides = zip(self.names, (self._own, self._other), strict=True)
        rows = [(name, f"{name} {unit}", seed, value) for name, side in sides for unit, seed, value in side.rows]
        columns = (SIDE, UNIT, "seed", self.metric.name)
        return dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True))

    def compared(self, asked: HowCompared) -> Comparison:
        """Every test, effect and interval, and a verdict; refused where the sides are not comparable."""
        if self.unlike and not (asked.anyway and self.is_arguable):
            raise self._refusal()
        own, other = self._own, self._other
        a, b = self.names
        compared = compare_sides(
            self.table(),
            value=self.metric.name,
            by=SIDE,
            a=a,
            b=b,
            pair=asked.pair,
            direction=self.metric.direction or "higher",
            drop_missing=asked.drop_missing,
            margin=asked.margin,
            unit=Counting(UNIT, own.noun if own.noun == other.noun else "unit", recorded=True),
            test=asked.test,
            conditions=self._conditions(),
            real_runs=own.real_runs,
            extras=asked.extras,
            lost={a: own.lost(a), b: other.lost(b)},
        )
        return replace(compared, decision=self._told_anyway(compared.decision, compared.conditions))

    def _told_anyway(self, decision: Decision, conditions: Iterable[Condition]) -> Decision:
        """The decision with what is not comparable in its sentence, because sentences are quoted without footnotes."""
        if not self.unlike or voided(conditions) is not None:
            return decision
        reasons = "; ".join(one.message for one in self.unlike)
        return replace(decision, why=f"{decision.why} (compared although {reasons})")

    def _refusal(self) -> InputError:
        first, *others = sorted(self.unlike, key=lambda one: is_arguable([one]))
        anyway = "; --anyway compares all the same, and says so" if self.is_arguable else ""
        return InputError(
            f"{self.study} cannot be compared with the baseline {self.place}: {first.message}",
            found="; ".join(condition.message for condition in others),
            hint=f"{first.next_step}{anyway}",
        )

    def _conditions(self) -> tuple[Condition, ...]:
        """What weakens the verdict: of either side, between them, and what is compared although it is not comparable.

        A condition of one side says nothing of the other: only the very same one is told once.
        """
        own, other = self._own, self._other
        told = [*direction_conditions(own.metric), *own.conditions, *other.conditions]
        if own.group is not None and other.group is not None:
            classes = {condition.code for condition in self.unlike}
            for one in between_sides(own.group.provenance, other.group.provenance, "approach"):
                # Who compares environments of two classes all the same was told of it, and has asked for the verdict.
                asked = one.code in _BETWEEN and "other-environment" in classes
                told.append(replace(one, voids=False) if asked else one)
        told += [*self.unlike, *unknown_to_compare(own.records or (), other.records, self.place)]
        return tuple(dict.fromkeys(told))
