"""Deciding: run, look, and run more until the verdict is in or the budget is out."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from isorun import workflow
from isorun.analysis import Told
from isorun.analysis.comparison import REAL_RUNS
from isorun.analysis.evidence import Condition, voided
from isorun.analysis.evidence.judged import ASSUMED
from isorun.analysis.evidence.scales import unlike_scales
from isorun.analysis.evidence.survivors import Survivors
from isorun.analysis.evidence.units import (
    FEWEST_UNITS,
    REPEAT,
    Counting,
    Units,
    listed_pairs,
    listed_units,
    paired_units,
    unit_conditions,
    units_of,
    units_without_value,
)
from isorun.analysis.measurements import Group, Measurements
from isorun.analysis.samples import FloatArray, Pairs, finite_sample
from isorun.analysis.sequential import Decision, Looks, Plan, Verdict, continued, named, withheld
from isorun.analysis.sequential.nearly_normal import taken_for_granted
from isorun.analysis.sequential.rules import planned_rule
from isorun.analysis.sequential.survivors import survivors_only
from isorun.analysis.sequential.verdict import PlanOptions, decide_by, next_action, plan_of
from isorun.analysis.studies.group_result import GroupKey
from isorun.analysis.studies.selection import DEFAULT_SELECTIONS
from isorun.analysis.studies.study_result import StudyResult, StudySides, not_logged, refuse_pooling
from isorun.errors import InputError, IsorunError, NothingRecorded, known_names
from isorun.execution import AbstractExecutor
from isorun.questions import Results, study_results
from isorun.scheduling import AbstractAgenda, Observer, Outcome
from isorun.session import Session
from isorun.showing import VIEWS
from isorun.store import PLANS, AbstractDocuments, AbstractStore
from isorun.study.cells import GROUP_FACTORS, Cell, Level, cells_of
from isorun.study.design import Study, extended, with_key
from isorun.study.records import RunRecord, RunState

if TYPE_CHECKING:
    from isorun.report import View

__all__ = ["Sides", "StudyDecision", "decide"]


def decide(
    data: Any,
    second: Any = None,
    /,
    *,
    direction: str | None = None,
    margin: float | None = None,
    max_runs: int | Sequence[int] | None = None,
    stages: Sequence[int] | None = None,
    min_runs: int | None = None,
    spending: str | None = None,
    alpha: float | None = None,
    futility: bool | None = None,
    method: str | None = None,
    looks: Looks | None = None,
    test: str | None = None,
    paired: bool = False,
    by: str | None = None,
    a: str | None = None,
    b: str | None = None,
    where: Mapping[str, str] | None = None,
    value: str | None = None,
    selection: str | None = None,
    unit: str | None = None,
    pair: str | None = None,
    store: workflow.Store = None,
    executor: str | AbstractExecutor = "local",
    jobs: int | None = None,
    launch: str = "auto",
    devices: str = "auto",
    observer: Observer | None = None,
    on_look: Callable[[Decision], None] | None = None,
    keep_study: bool = False,
) -> Decision | StudyDecision:
    """Who is better, with a bounded error rate however often one looks.

    decide(runs_a, runs_b, direction="higher"): from the runs made so far, in the order they were made (paired=True: the
    i-th runs belong together). decide("study.toml"): makes more runs until the verdict is in, or max_runs a side are
    made; its result also has the names of the sides and what their runs count as.

    margin: a difference that does not matter, which allows "equivalent". max_runs (30 if nothing is said, 0 for no
    maximum), stages, min_runs, looks, spending, alpha, futility, method, test: the plan, declared before the first look
    and kept from then on: what is not given is as it was then. by, a, b, where, value, selection, unit, pair: what of a
    study is asked about: unit="repeat" asks about one seed alone, pair="seed" runs both sides with the same seeds and
    judges the differences. store, executor, jobs, launch, devices: as in `run`. keep_study: keep the study in its store
    with all runs that are made, so that it can be reported on by its name.
    """
    options = {
        "max_runs": max_runs,
        "stages": stages,
        "margin": margin,
        "min_runs": min_runs,
        "spending": spending,
        "alpha": alpha,
        "futility": futility,
        "method": method,
        "looks": looks,
        "test": test,
    }
    given = {name: value for name, value in options.items() if value is not None}
    declared = cast("PlanOptions", {**given, "paired": paired or pair is not None})
    if second is not None:
        return _decide_lists(data, second, plan_of(**declared), direction)
    with workflow.opened(data, store) as (study, place):
        question = _Question(sides_of(study, by, a, b, where), value, direction, unit, pair, selection, declared)
        question.check(study)
        if not workflow.has_store(study, place):  # so no plan is kept, and what is refused leaves none behind
            question.plan()
        session = workflow.session_of(study, store=place, executor=executor, jobs=jobs, launch=launch, devices=devices)
        with session as opened:
            return _decide_in(opened, study, question, observer, on_look, keep_study=keep_study)


def _decide_lists(first: Any, second: Any, plan: Plan, direction: str | None) -> Decision:
    a, b = finite_sample(first, "A"), finite_sample(second, "B")
    units = {"A": listed_units(a), "B": listed_units(b)}
    if plan.paired:
        pairs = listed_pairs(a, b)
        units = {"A": replace(units["A"], values=pairs.first), "B": replace(units["B"], values=pairs.second)}
    values = [one.values for one in units.values()]
    decision = decide_by(plan, *values, direction=direction or "higher")
    skewed = taken_for_granted(decision, values[0], values[1])
    known = (*(() if direction else (ASSUMED,)), *skewed, *unit_conditions(units, next_step=REAL_RUNS))
    decision = withheld(named(decision, "A", "B"), known)
    return replace(decision, conditions=(*known, *decision.conditions))


@dataclass(frozen=True, slots=True)
class StudyDecision(Told):
    """A decision on a study: the names of both sides, what their runs count as, and what weakens them.

    stopped: why the work ended before the rule said so. study: with all runs that were made; to_keep: what to write
    into the study's file so that its reports show those beyond it.
    """

    told_as: ClassVar[str] = "study-decision"

    decision: Decision
    a: str
    b: str
    units: Mapping[str, Units]
    runs_made: int
    study: Study
    conditions: tuple[Condition, ...] = ()
    stopped: str = ""
    to_keep: str = ""

    @property
    def verdict(self) -> Verdict:
        """A better, B better, equivalent or undecided."""
        return self.decision.verdict

    @property
    def why(self) -> str:
        """The reason in one sentence, with the names of the sides."""
        return self.decision.why

    def to_json(self) -> dict[str, Any]:
        """Plain JSON: the sides and what they count as, then the decision's own keys."""
        first, second = self.units[self.a], self.units[self.b]
        warnings = (*self.conditions, *self.decision.conditions)
        return {
            "a": self.a,
            "b": self.b,
            "runs_made": self.runs_made,
            **self.decision.to_json(),
            "n_a": first.runs.size,
            "n_b": second.runs.size,
            "units_a": first.count,
            "units_b": second.count,
            "unit": first.noun,
            "stopped": self.stopped,
            "to_keep": self.to_keep,
            "warnings": [warning.to_json() for warning in warnings],
        }


def _view(result: StudyDecision) -> View:
    from isorun.report.comparisons import decision_view  # noqa: PLC0415 - loads when one is shown

    return decision_view(result.decision, result.a, result.b, units=result.units, warnings=result.conditions)


VIEWS["study-decision"] = _view


@dataclass(frozen=True, slots=True)
class Sides:
    """Which cells of a study are compared: those where `by` is a or b and every other factor is as in `fixed`."""

    by: str
    a: str
    b: str
    fixed: Mapping[str, str]

    @property
    def level(self) -> Level:
        """The level of both sides; when levels are compared, the one that leaves more open."""
        levels = [Level(self.a), Level(self.b)] if self.by == "level" else [Level(self.fixed["level"])]
        return Level.DEFAULT if Level.DEFAULT in levels else levels[0]

    def has(self, cell: Cell) -> bool:
        """Whether the cell belongs to one of the sides."""
        return _label(cell, self.by) in (self.a, self.b) and all(
            _label(cell, name) == label for name, label in self.fixed.items()
        )

    def first_cells(self, study: Study) -> tuple[Cell, ...]:
        """The first cell of either side."""
        cells = [cell for cell in cells_of(study) if self.has(cell)]
        return tuple(next(cell for cell in cells if _label(cell, self.by) == label) for label in (self.a, self.b))

    def groups(self, found: Results, value: str | None) -> tuple[Group, Group]:
        """The runs of both sides in the order they were planned."""
        table = found.table.where(self.fixed)
        groups = {group.name: group for group in table.groups(found.value(value), (self.by,), drop_missing=True)}
        for name in (self.a, self.b):
            if name not in groups:
                raise _nothing_finished(name)
            if not groups[name].values.finite.size:
                hint = "isorun report shows what became of each; a training that only diverges has no result to compare"
                raise NothingRecorded(f"no run of {name!r} has a finite {found.value(value)}", hint=hint)
        return groups[self.a], groups[self.b]


def _nothing_finished(side: str) -> NothingRecorded:
    return NothingRecorded(f"no run of {side!r} has finished", hint="isorun report shows why runs failed")


def sides_of(study: Study, by: str | None, a: str | None, b: str | None, where: Mapping[str, str] | None) -> Sides:
    """The two sides of a study, from what was said and what the study leaves no choice about."""
    cells = _cells_where(study, where or {})
    labels = {name: list(dict.fromkeys(_label(cell, name) for cell in cells)) for name in GROUP_FACTORS}
    varying = [name for name, values in labels.items() if len(values) > 1]
    factor = by or (varying[0] if len(varying) == 1 else "")
    if factor not in GROUP_FACTORS:
        raise InputError(
            "which factor tells the sides apart is not clear",
            found=by or f"the study varies in: {', '.join(varying) or 'nothing'}",
            allowed=known_names(by or "", GROUP_FACTORS),
            hint="by=… (--by), and where={…} (--where) for the others",
        )
    first, second = _two_labels(labels[factor], a, b)
    refuse_pooling(labels, factor)
    return Sides(factor, first, second, {name: labels[name][0] for name in GROUP_FACTORS if name != factor})


def _decide_in(
    session: Session,
    study: Study,
    question: _Question,
    observer: Observer | None,
    on_look: Callable[[Decision], None] | None,
    *,
    keep_study: bool,
) -> StudyDecision:
    """Make runs of the two sides until the rule says to stop."""
    study = with_key(study, session.store.key)
    kept = KeptPlan.of(session.store.documents(PLANS), question.sides.first_cells(study))
    agenda = _Rule(study, question, question.plan(kept), session.store, kept=kept, on_look=on_look)
    # The study is kept now that nothing is refused any more, and before hours of runs, which somebody may end.
    outcome = workflow.carry_out_agenda(agenda, session, study, observer, keep_study=keep_study)
    if not agenda.over:
        agenda.look(stopped=outcome.stopped)
    if keep_study:
        workflow.remember(agenda.larger, store=session.store)
    return agenda.decision(outcome, "" if keep_study else workflow.more_than(study, workflow.runs_of(agenda.larger)))


class _Rule(AbstractAgenda):
    """The agenda of a decision: when all runs up to a look have ended it looks; then it stops, or proposes more.

    larger: the study with all runs that were proposed. over: whether the rule, or something else, said to stop.
    """

    def __init__(
        self,
        study: Study,
        question: _Question,
        plan: Plan,
        store: AbstractStore,
        *,
        kept: KeptPlan,
        on_look: Callable[[Decision], None] | None,
    ) -> None:
        self.larger = study
        self.over = False
        self._study = study
        self._question = question
        self._plan = plan
        self._store = store
        self._kept = kept
        self._on_look = on_look
        # Two runs a side show whether runs are copies of one another, before many are made for nothing.
        self._units = FEWEST_UNITS
        self._look_is_due = False
        self._open: set[str] = set()
        self._known_cells: set[str] = set()
        self._records: dict[str, RunRecord] = {}
        self._heard: list[RunRecord] = []
        self._failed_draws: list[RunRecord] = []
        self._ran_any = False
        self._seen = (0, 0)
        self._last: _Look | None = None
        self._stopped = ""

    def propose(self, room: Callable[[], int]) -> Sequence[Cell]:  # noqa: ARG002 - a look waits for all its runs
        """What is missing up to the next look, once all up to the last one has ended."""
        while not self._open and not self.over:
            if self._look_is_due:
                self.look()
                continue
            missing = self._missing_to_next_look()
            self._look_is_due = True
            self._open = {cell.id for cell in missing}
            if missing:
                return missing
        return ()

    def hear(self, record: RunRecord, *, final: bool) -> None:
        """A run more, or one that failed."""
        self._records[record.run_id] = record
        self._heard.append(record)
        self._ran_any = True
        # At level default another attempt is another draw, and trying until one ends would draw the better ones.
        if record.state in (RunState.FAILED, RunState.TIMED_OUT) and record.cell.seed is None:
            self._failed_draws.append(record)
        if final:
            self._open.discard(record.cell.id)

    def _missing_to_next_look(self) -> list[Cell]:
        """The cells of both sides without a finished run; what the store has of the larger study is read once."""
        sides = self._question.sides
        self.larger = extended(self._study, sides.level, self._units, of_one_seed=self._question.unit == REPEAT)
        cells = cells_of(self.larger)
        new = {cell.id for cell in cells} - self._known_cells
        self._records |= {record.run_id: record for record in self._store.records(new)}
        self._known_cells |= new
        finished = {record.cell.id for record in self._records.values() if record.state is RunState.FINISHED}
        return [cell for cell in cells if sides.has(cell) and cell.id not in finished]

    def look(self, stopped: str = "") -> None:
        """Judge the runs made so far. stopped: why there will be no more of them."""
        found = sorted(self._records.values(), key=lambda record: (record.cell.id, record.attempt))
        told = workflow.store_conditions(self._store)
        analysed = workflow.analyse_records(self.larger, found, told)
        look = self._question.look(self._plan, analysed, self._failed_draws)
        if any(not point.planned for point in look.decision.path):
            self._kept.keep(self._plan, self.larger)
        if self._on_look is not None:
            self._on_look(look.decision)
        action = next_action(look.decision)
        ended = stopped or self._why_no_more(look)
        self.over = action.stop or bool(ended)
        self._stopped = "" if action.stop else ended
        self._last, self._heard, self._look_is_due = look, [], False
        self._seen = look.units[0].count, look.units[1].count
        self._units = look.drawn + max(action.runs_a, action.runs_b, 1)

    def _why_no_more(self, look: _Look) -> str:
        """Why no more runs are worth making although the rule would go on."""
        if self._heard and not any(record.state is RunState.FINISHED for record in self._heard):
            return "the last runs all failed"
        void = voided(look.conditions)
        # One run of a side with a result is too few as well, but more of them may still come.
        if void is not None and (void.code != "too-few-units" or look.drawn - look.without_value >= FEWEST_UNITS):
            return void.message
        seen = self._seen if self._ran_any else (0, 0)
        if any(seen) and all(units.count <= before for units, before in zip(look.units, seen, strict=True)):
            return "the last runs were copies of earlier ones"
        return ""

    def decision(self, outcome: Outcome, to_keep: str) -> StudyDecision:
        """What came of it. to_keep: what to write into the study for the runs beyond it."""
        assert self._last is not None
        sides = self._question.sides
        # What was known before the runs, and what the last look did not find in them itself.
        told = {condition.code for condition in self._last.conditions}
        others = [condition for condition in outcome.conditions if condition.code not in told]
        return StudyDecision(
            decision=replace(self._last.decision, stop=True),
            a=sides.a,
            b=sides.b,
            units=dict(zip((sides.a, sides.b), self._last.units, strict=True)),
            runs_made=len(outcome.records),
            study=self.larger,
            conditions=(*self._last.conditions, *others, *workflow.beyond_the_study(to_keep)),
            stopped=self._stopped,
            to_keep=to_keep,
        )


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """The plan of one comparison, kept in the store from its first look on: one that changes with the results is none.

    A plan belongs to the two sides, whatever metric or order they are asked about in: their runs are the same. cells:
    the ids of the first cell of either side, which stand for their content.
    """

    documents: AbstractDocuments
    cells: tuple[str, ...]

    @classmethod
    def of(cls, documents: AbstractDocuments, sides: Sequence[Cell]) -> KeptPlan:
        """The plan kept for these two sides, named by the content of their cells."""
        return cls(documents, tuple(sorted(cell.id for cell in sides)))

    def allows(self, asked: PlanOptions) -> Plan:
        """The plan to go on with: as asked at first, and later as far as the one kept allows it.

        What is not asked for stays as it was declared.
        """
        try:
            document = self.documents.read(self._name)
            kept = None if document is None else Plan.from_json(document["plan"])
        except (IsorunError, KeyError, TypeError) as error:
            what = f"the plan kept in {self.documents.place(self._name)} cannot be read: {error}"
            hint = "decide in a new --store: no error rate can be held without the plan of the earlier looks"
            raise InputError(what, hint=hint) from None
        if kept is None:
            return plan_of(**asked)
        declared = {name: getattr(kept, name) for name in PlanOptions.__annotations__}
        if "max_runs" in asked:  # it stands for itself: whether it is one of the stages is for the kept plan to say
            del declared["stages"]
        return continued(kept, plan_of(**cast("PlanOptions", {**declared, **asked})))

    def keep(self, plan: Plan, made: Study) -> None:
        """Keep the plan at its first look, its stage as it goes on, and which runs were made for it."""
        document = {"cells": list(self.cells), "plan": plan.to_json(), "made": workflow.runs_of(made)}
        self.documents.write(self._name, document)

    @property
    def _name(self) -> str:
        return hashlib.sha256(json.dumps(self.cells).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class _Look:
    """What is known after some runs. drawn: how many draws the side that has fewer has finished, copies included.

    without_value: of one side, the most of them that have no finite value.
    """

    decision: Decision
    units: tuple[Units, Units]
    conditions: tuple[Condition, ...]
    drawn: int
    without_value: int


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked of the runs at every look."""

    sides: Sides
    value: str | None
    direction: str | None
    unit: str | None
    pair: str | None
    selection: str | None
    declared: PlanOptions

    def check(self, study: Study) -> None:
        """Refuse what cannot be asked of the study, before a store or a run is made for it."""
        if self.unit not in {None, REPEAT}:
            allowed = f"{REPEAT} (about one seed alone); without it every seed, or at level default every run, counts"
            raise InputError(
                "a study's runs are counted by what was drawn", found=f"unit {self.unit!r}", allowed=allowed
            )
        known = tuple(study.selections) or DEFAULT_SELECTIONS
        if self.selection is not None and self.selection not in known:
            allowed = known_names(self.selection, known)
            raise InputError(f"the study has no selection {self.selection!r}", allowed=allowed)
        if self.pair not in {None, "seed"}:
            raise InputError("a study's runs are paired by their seed", found=f"pair {self.pair!r}", allowed="seed")
        if self.pair is not None and self.sides.level is Level.DEFAULT:
            raise InputError(
                "at level default every run draws its own seed, so that no two runs share one",
                hint="pair at level fixed-seed or deterministic (--where level=fixed-seed, or --level fixed-seed)",
            )

    def plan(self, kept: KeptPlan | None = None) -> Plan:
        """The plan as declared, together with the kept one where there is one; refused where no looks follow it."""
        plan = plan_of(**self.declared) if kept is None else kept.allows(self.declared)
        planned_rule(plan, np.empty(0), np.empty(0))
        return plan

    def look(self, plan: Plan, analysed: StudyResult, failed: Sequence[RunRecord]) -> _Look:
        """The decision under the plan on the runs made so far, with the conditions it stands under.

        failed: draws that left no result, whether or not their cells have a finished run by now.
        """
        sides = self.sides
        if not analysed.states[RunState.FINISHED]:
            raise _nothing_finished(sides.a)
        found = study_results(analysed, self.selection)
        study = found.sides(sides.by, (sides.a, sides.b), sides.fixed)
        assert study is not None
        counting = found.counting(self.unit, study)
        _refuse_unlogged(found, self.value)
        groups = sides.groups(found, self.value)
        table = found.table.where(sides.fixed)
        units = units_of(table, groups[0].values, counting), units_of(table, groups[1].values, counting)
        metric = found.metric(self.value, self.direction)
        known = (
            *found.conditions(metric, study),
            *unlike_scales(metric.name, {sides.a: units[0].values, sides.b: units[1].values}),
            *unit_conditions(dict(zip((sides.a, sides.b), units, strict=True)), next_step=study.real_runs),
        )
        judged = self._judged(table, groups, units, counting)
        decision = decide_by(plan, *judged, direction=metric.direction or "higher")
        known = (*known, *taken_for_granted(decision, *judged))
        survivors = [
            Survivors(
                group.name,
                unit,
                self._lost(study, group.name, failed) | units_without_value(table, group.values, counting),
            )
            for group, unit in zip(groups, units, strict=True)
        ]
        again = functools.partial(decide_by, replace(plan, margin=None), direction=decision.direction)
        known = (
            *known,
            *survivors_only(decision, (survivors[0], survivors[1]), Pairs(*judged) if self.pair else None, again),
        )
        decision = named(decision, sides.a, sides.b, units[0].noun, about=units[0].about)
        drawn = min(group.units.planned for group in study.groups)
        without_value = max(group.values.dropped for group in groups)
        return _Look(withheld(decision, known), units, known, drawn, without_value)

    def _lost(self, study: StudySides, side: str, failed: Sequence[RunRecord]) -> frozenset[str]:
        """The units of a side that left no result, and draws that failed before others; of one seed alone none."""
        if self.unit is not None:
            return frozenset()
        group = next(group for group in study.groups if _label(group.key, self.sides.by) == side)
        draws = [run for run in failed if self.sides.has(run.cell) and _label(run.cell, self.sides.by) == side]
        counted = {f"cell {run.cell.id}" for run in draws}
        return (group.lost(self.selection) - counted) | {run.run_id for run in draws}

    def _judged(
        self, table: Measurements, groups: Sequence[Group], units: Sequence[Units], counting: Counting
    ) -> tuple[FloatArray, FloatArray]:
        """One value a unit of either side; of pairs those that belong together."""
        if self.pair is None:
            return units[0].values, units[1].values
        first, second = paired_units(table, [group.values for group in groups], self.pair, counting).sides
        return first, second


def _refuse_unlogged(found: Results, value: str | None) -> None:
    """A metric that no run left would never lead anywhere."""
    assert found.study is not None
    name = found.value(value)
    if name not in found.study.logged:
        raise not_logged(name, found.study.logged)


def _cells_where(study: Study, where: Mapping[str, str]) -> list[Cell]:
    cells = list(cells_of(study))
    for name, label in where.items():
        if name not in GROUP_FACTORS:
            raise InputError(f"a study has no factor {name!r}", allowed=known_names(name, GROUP_FACTORS))
        labels = dict.fromkeys(_label(cell, name) for cell in cells)
        if label not in labels:
            raise InputError(f"no {name} of the study is {label!r}", allowed=known_names(label, labels))
        cells = [cell for cell in cells if _label(cell, name) == label]
    return cells


def _two_labels(labels: list[str], a: str | None, b: str | None) -> tuple[str, str]:
    for name in (a, b):
        if name is not None and name not in labels:
            raise InputError(f"the study has no {name!r} to compare", allowed=known_names(name, labels))
    if a is None and b is None and len(labels) == 2:
        return labels[0], labels[1]
    if a is None or b is None or a == b:
        raise InputError("say which two to compare: a and b (--a, --b)", allowed=", ".join(labels))
    return a, b


def _label(cell: Cell | GroupKey, factor: str) -> str:
    return str(getattr(cell, factor))
