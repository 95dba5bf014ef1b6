"""The questions people ask of results: of any table, and of studies alike.

    summarize("runs.csv", value="accuracy", by="model")       how do the runs of each group look?
    compare("study.toml")                                      is A better than B?
    mixed_model("runs.csv", "accuracy ~ model + (1|seed)")     where does the variance come from?
    power(effect_size=1.0)                                     how many runs does it take?
    rank("runs.csv", value="score", by="model", task="game")   which of many approaches is best?
    agree("runs.csv", value="accuracy", by="device", pair="seed")   do they put the same seeds in the same order?
    factors("factors.toml")                                    what exactly changed the result?

A study stands for the table of its finished runs; its declared metric, direction and varying factor are the defaults.
Here evidence meets statistics: runs are counted in units, and what weakens them goes with every answer. The parts that
answer a question load when it is asked, so that a small table does not wait for what it does not use. Every answer
tells itself: `print(compare(…))` says what the command prints, and a notebook shows it as HTML.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from isorun.analysis.evidence import Condition, of_draws
from isorun.analysis.evidence.units import (
    REPEAT,
    Counting,
    counting_of,
    paired_units,
    shared_draws,
    unit_conditions,
    units_of,
)
from isorun.analysis.measurements import Group, Measurements, is_list_of_numbers, read_table
from isorun.errors import InputError, NothingRecorded, known_names

if TYPE_CHECKING:
    from isorun.analysis.agreements.shared_runs import AgreementTable
    from isorun.analysis.comparison import Comparison
    from isorun.analysis.evidence.judged import JudgedMetric
    from isorun.analysis.factors import FactorEffects
    from isorun.analysis.leaderboards.leaderboard import BoardScores, Leaderboard
    from isorun.analysis.mixed.result import DegreesOfFreedom, MixedResult
    from isorun.analysis.planning.power import PowerResult
    from isorun.analysis.samples import FloatArray
    from isorun.analysis.spreads import Summaries
    from isorun.analysis.studies.group_result import GroupResult
    from isorun.analysis.studies.study_result import StudyResult, StudySides
    from isorun.store import AbstractStore
    from isorun.study.records import RunRecord
    from isorun.workflow import AnalysedRuns

__all__ = [
    "Asked",
    "Results",
    "agree",
    "board_of",
    "compare",
    "factors",
    "groups_of",
    "mixed_model",
    "power",
    "rank",
    "results",
    "study_results",
    "summarize",
]

_STUDIES: Final = (".toml", ".isorun")
"""Files of these names are studies, all others tables."""


@dataclass(frozen=True, slots=True)
class Results:
    """A table of results, with what its study says about it if it comes from one.

    told: what whoever made the table says against answers that count runs by a column (`conditions_for` of an object
    that is a table): parts of conditions. records: the study's runs, where they are at hand.
    """

    table: Measurements
    study: StudyResult | None = None
    told: Callable[[str | None], Sequence[Mapping[str, Any]]] = lambda _: ()
    records: Sequence[RunRecord] = ()

    @property
    def factors(self) -> tuple[str, ...]:
        """The columns that tell the groups of a study apart; none of a table that comes from no study."""
        if self.study is None:
            return ()
        from isorun.study.cells import GROUP_FACTORS

        return GROUP_FACTORS

    @property
    def of_draws(self) -> tuple[Condition, ...]:
        """What is not known of how the runs of a study were drawn, because a tracker kept them."""
        return of_draws(self.study.conditions) if self.study else ()

    def value(self, chosen: str | None, option: str = "value") -> str:
        """The column with the results: as chosen, or a study's first metric. option: what chooses it is called."""
        hint = f"{option}=… (--{option} on the command line)"
        if self.study is None:
            if chosen:
                return chosen
            what = "which column holds the results is not said"
            raise InputError(what, allowed=", ".join(self.table.columns), hint=hint)
        if self.study.primary is None:
            [told] = [condition for condition in self.study.conditions if condition.code == "no-metric"]
            raise InputError(f"{told.message} (study {self.study.study})", hint=told.next_step)
        metrics = [metric.name for metric in self.study.metrics]
        if chosen in self.table.columns and chosen not in metrics:
            what = f"the column {chosen!r} says which run it is, and not how good it was"
            raise InputError(what, allowed=", ".join(metrics), hint=hint)
        if chosen and chosen not in self.table.columns:
            from isorun.analysis.studies.study_result import not_logged

            if chosen not in self.study.logged:
                raise not_logged(chosen, self.study.logged)
            raise InputError(
                f"the study {self.study.study} judges no metric {chosen!r}",
                allowed=known_names(chosen, metrics),
                hint=self._declaring(chosen),
            )
        return chosen or self.study.primary.name

    def _declaring(self, metric: str) -> str:
        """How the study gets to judge a metric that its runs have."""
        from isorun.analysis.studies.foreign_runs import Foreign

        if self.study is not None and self.study.foreign is Foreign.TRACKER:
            return f"isorun import … --metric {shlex.quote(metric)} judges it"
        return f"declare it in the study file: [metrics.{metric}]; no run is made again"

    def metric(self, value: str | None, direction: str | None) -> JudgedMetric:
        """What is judged, with its direction: as chosen, else as the study says, else as the name tells."""
        from isorun.analysis.evidence.judged import judged_column

        name = self.value(value)
        known = {metric.name: metric for metric in self.study.metrics} if self.study else {}
        return known[name] if name in known and not direction else judged_column(name, direction or "")

    def factor(self, chosen: str | None, where: Mapping[str, str] | None = None) -> str:
        """The column that tells groups apart: as chosen, or the only factor in which the runs of a study vary.

        where: the labels that these runs have.
        """
        if chosen:
            return chosen
        asked = self.table.where(where or {})
        varying = [name for name in self.factors if len(set(asked.labels(name))) > 1]
        if len(varying) == 1:
            return varying[0]
        others = ", and where={…} (--where) for the others" if len(varying) > 1 else ""
        raise InputError(
            "which column tells the groups apart is not said",
            found=f"the study varies in: {', '.join(varying) or 'nothing'}" if self.study else "",
            allowed=", ".join(self.factors or self.table.columns),
            hint=f"by=… (--by on the command line){others}",
        )

    def counting(self, asked: str | None, sides: StudySides | None = None) -> Counting:
        """How runs are counted: as asked, else as the records say, else as the table's columns say."""
        if self.study is None or asked not in {None, REPEAT}:
            return counting_of(self.table, asked)
        from isorun.analysis.studies.study_result import DISTINCT, UNIT

        if asked == REPEAT:
            return Counting(DISTINCT, REPEAT, asked=True, seeds="seed", recorded=True)
        return Counting(UNIT, sides.noun if sides else "unit", recorded=True)

    def sides(self, by: str, labels: Sequence[str], where: Mapping[str, str] | None) -> StudySides | None:
        """The groups of the study that a question is about; None for a table that comes from no study."""
        if self.study is None:
            return None
        from isorun.analysis.studies.study_result import study_sides

        return study_sides(self.study, by, labels, where)

    def conditions(self, metric: JudgedMetric | None, sides: StudySides | None) -> tuple[Condition, ...]:
        """What is known against an answer by this metric before its runs are counted."""
        from isorun.analysis.evidence.judged import DIRECTION_CODES, direction_conditions

        known = sides.conditions() if sides else ()
        others = tuple(condition for condition in known if condition.code not in DIRECTION_CODES)
        told = direction_conditions(metric) if metric else ()
        if self.study is not None and metric is not None:
            from isorun.analysis.studies.foreign_runs import steps_for_such_runs

            told = steps_for_such_runs(told, self.study.foreign, [metric])
        return (*told, *others)


def results(data: Any, *, store: str | Path | AbstractStore | None = None, selection: str | None = None) -> Results:
    """Whatever holds results: a table file or frame, a study, its file, package or name (selection: by name)."""
    if isinstance(data, Results):
        return data
    analysed = _analysed(data, store)
    if analysed is not None:
        return replace(study_results(analysed.result, selection), records=analysed.records)
    told = getattr(data, "conditions_for", None) if isinstance(data, Mapping) else None
    return Results(read_table(data), told=told) if callable(told) else Results(read_table(data))


def _analysed(data: Any, store: str | Path | AbstractStore | None) -> AnalysedRuns | None:
    """What the runs of a study say; None for what is none, as a table."""
    if isinstance(data, (str, Path)):
        if Path(data).suffix not in _STUDIES and Path(data).is_file():
            return None
    else:
        from isorun.study.design import Study

        if not isinstance(data, Study):
            return None
    from isorun import workflow
    from isorun.session import is_package, is_registered

    is_text = isinstance(data, (str, Path))
    is_name = is_text and Path(data).suffix != ".toml" and not is_package(data) and not is_registered(data)
    return workflow.kept_analysed(str(data), store=store) if is_name else workflow.runs_analysed(data, store=store)


def study_results(analysed: StudyResult, selection: str | None = None) -> Results:
    """The runs of an analysed study as a table, one row a run."""
    from isorun.analysis.studies.study_result import run_table

    rows = run_table(analysed, selection)
    if not any(map(len, rows.values())):
        what = f"no run of the study {analysed.study} has finished"
        raise NothingRecorded(what, hint=f"isorun report {analysed.study} says what became of each")
    found = Results(read_table(rows), analysed)
    table = replace(found.table, source=f"the study {analysed.study}", in_order=frozenset(found.factors))
    return replace(found, table=table)


@dataclass(frozen=True, slots=True)
class Asked:
    """Which runs a question is about, and how they are counted and judged; the same words in every question.

    value: the column with the results. by: the column that tells the sides apart. where: only runs with these labels.
    unit: the column that says what was drawn independently. drop_missing: leave out values that are not finite, and
    say so. pair: the column whose labels say which runs belong together. task: that of the tasks, where there are many.
    direction: "higher" or "lower" is better. Of a study, store: where its records are kept; selection: which epoch its
    runs are judged at, by default the first that it declares.
    """

    value: str | None = None
    by: str | None = None
    where: Mapping[str, str] | None = None
    unit: str | None = None
    drop_missing: bool = False
    pair: str | None = None
    task: str | None = None
    direction: str | None = None
    store: str | Path | AbstractStore | None = None
    selection: str | None = None

    def of(self, data: Any) -> Results:
        """The results that are asked about."""
        return results(data, store=self.store, selection=self.selection)


@dataclass(frozen=True, slots=True)
class _Part:
    """The part of the results that is asked about, and what their study says about it, looked up once."""

    found: Results
    asked: Asked
    table: Measurements
    factor: str
    sides: StudySides | None
    counting: Counting

    @property
    def metric(self) -> JudgedMetric:
        """What is judged, with its direction."""
        return self.found.metric(self.asked.value, self.asked.direction)

    @property
    def real_runs(self) -> str:
        """The next step towards more independent units."""
        from isorun.analysis.comparison import REAL_RUNS

        return self.sides.real_runs if self.sides else REAL_RUNS

    def conditions(self, metric: JudgedMetric | None = None) -> tuple[Condition, ...]:
        """What is known against an answer before its runs are counted."""
        told = (Condition(**one) for one in self.found.told(self.counting.column))
        return (*self.found.conditions(metric, self.sides), *told)

    def unlike(self, a: str, b: str) -> tuple[Condition, ...]:
        """What of the two groups with these labels is not alike; nothing where the runs are not at hand."""
        named = self._named_groups()
        if not named or not self.found.records:
            return ()
        from isorun.analysis.comparability import unlike_groups

        return tuple(unlike_groups(self.found.records, (named[a], named[b]), self._factors))

    def lost(self) -> dict[str, frozenset[str]]:
        """By the label of a group of the study, the units that left no result; where the records say what units are."""
        if (
            not self.counting.recorded
            or self.counting.asked
            or not set(self.asked.where or {}) <= set(self.found.factors)
        ):
            return {}
        return {label: group.lost(self.asked.selection) for label, group in self._named_groups().items()}

    @property
    def _factors(self) -> list[str]:
        return [name.strip() for name in self.factor.split(",")]

    def _named_groups(self) -> dict[str, GroupResult]:
        """The groups of the study by their labels; none where something else tells the sides apart."""
        factors = self._factors
        if self.sides is None or not set(factors) <= set(self.found.factors):
            return {}
        return {",".join(str(getattr(one.key, name)) for name in factors): one for one in self.sides.groups}

    def groups(self, columns: Sequence[str]) -> tuple[Group, ...]:
        """The values of each group."""
        return self.table.groups(self.found.value(self.asked.value), columns, drop_missing=self.asked.drop_missing)


def _part(data: Any, asked: Asked, factor: str = "", labels: Sequence[str | None] = ()) -> _Part:
    """factor: what tells the sides apart, "" where all runs are one. labels: the sides asked about; all without any."""
    found = asked.of(data)
    sides = found.sides(factor, [label for label in labels if label], asked.where)
    table = found.table.where(asked.where or {})
    return _Part(found, asked, table, factor, sides, found.counting(asked.unit, sides))


def summarize(
    data: Any,
    *,
    value: str | None = None,
    by: str | Sequence[str] | None = None,
    where: Mapping[str, str] | None = None,
    drop_missing: bool = False,
    unit: str | None = None,
    store: str | Path | AbstractStore | None = None,
    selection: str | None = None,
) -> Summaries:
    """How the runs of each group look: runs and units, mean, sd with its interval, median, IQM, extremes."""
    from isorun.analysis.spreads import summarize as summarize_table

    part = _part(
        data, Asked(value, where=where, drop_missing=drop_missing, unit=unit, store=store, selection=selection)
    )
    summaries = summarize_table(
        part.table,
        value=part.found.value(value),
        by=part.found.factors if by is None else by,
        drop_missing=drop_missing,
        unit=part.counting,
    )
    return replace(summaries, about_draws=part.found.of_draws)


def groups_of(data: Any, asked: Asked, by: str | Sequence[str] | None = None) -> tuple[Group, ...]:
    """The values of each group, for figures."""
    from isorun.analysis.spreads import column_names

    part = _part(data, asked)
    return part.groups(column_names(part.found.factors if by is None else by, tuple(part.table.columns)))


def compare(
    data: Any,
    second: Any = None,
    /,
    *,
    value: str | None = None,
    by: str | None = None,
    a: str | None = None,
    b: str | None = None,
    pair: str | None = None,
    paired: bool = False,
    direction: str | None = None,
    where: Mapping[str, str] | None = None,
    drop_missing: bool = False,
    margin: float | None = None,
    unit: str | None = None,
    test: str | None = None,
    also: Sequence[str] = (),
    rope: float = 0.0,
    correlation: float = 0.0,
    store: str | Path | AbstractStore | None = None,
    selection: str | None = None,
) -> Comparison:
    """Is A better than B? Two lists of results, a table, or a study.

    a, b: the labels of column `by`. pair: the column whose labels say which runs belong together (paired: two lists
    whose i-th runs do): the verdict is then about the differences. margin: a difference that does not matter, which
    allows the verdict "equivalent". unit: the column that says what was drawn independently, or "repeat" for the runs
    of one seed. test: "brunner-munzel" (holds its error rate for unequal spreads), "mann-whitney", or, for pairs,
    "signed-rank". also: further analyses by name, beside the verdict: "aso", and of pairs "bayesian-signed-rank" and
    "bayesian-correlated-t", with rope (a difference that does not matter) and correlation (of folds: 1 / folds).
    """
    from isorun.analysis.comparison import Extras
    from isorun.analysis.comparison import compare as compare_sides

    extras = Extras(tuple(also), rope, correlation)
    if second is not None:
        from isorun.analysis.evidence.judged import ASSUMED

        return compare_sides(
            data,
            second,
            a=a,
            b=b,
            paired=paired,
            direction=direction or "higher",
            margin=margin,
            test=test,
            conditions=() if direction else (ASSUMED,),
            extras=extras,
        )
    asked = Asked(value, by, where, unit, drop_missing, pair, direction=direction, store=store, selection=selection)
    found = asked.of(data)
    part = _part(found, asked, found.factor(by, where), (a, b))
    if found.study is not None:
        from isorun.analysis.studies.study_result import refuse_pooling

        for name in part.factor.split(","):  # a column that is not there is named before what it leaves out
            part.table.column(name.strip())
        refuse_pooling({name: part.table.labels(name) for name in found.factors}, part.factor)
    metric = part.metric
    compared = compare_sides(
        part.table,
        value=metric.name,
        by=part.factor,
        a=a,
        b=b,
        pair=pair,
        direction=metric.direction or "higher",
        drop_missing=drop_missing,
        margin=margin,
        unit=part.counting,
        test=test,
        conditions=part.conditions(metric),
        real_runs=part.real_runs,
        extras=extras,
        lost=part.lost(),
    )
    return replace(compared, conditions=(*compared.conditions, *part.unlike(compared.a.name, compared.b.name)))


def mixed_model(
    data: Any,
    formula: str,
    *,
    where: Mapping[str, str] | None = None,
    reml: bool = True,
    ddf: DegreesOfFreedom = "satterthwaite",
    adjust: str = "holm",
    control: str | None = None,
    drop_missing: bool = False,
    store: str | Path | AbstractStore | None = None,
    selection: str | None = None,
) -> MixedResult:
    """Where the variance comes from: a linear mixed model, tested as R's lmerTest does, and what speaks against it.

    adjust: of the differences between means, "tukey", "dunnett", "holm", "bonferroni", "bh" or "none". control: the
    level that all others are compared with. The result's `conditions` say when its tests do not hold.
    """
    from isorun.analysis.mixed.checks import with_checks
    from isorun.analysis.mixed.model import mixed_model as fit_model

    found = results(data, store=store, selection=selection)
    checked = with_checks(
        fit_model(
            found.table.where(where or {}).typed(),
            formula,
            reml=reml,
            ddf=ddf,
            adjust=adjust,
            control=control,
            missing="drop" if drop_missing else "error",
        )
    )
    return replace(checked, conditions=(*found.of_draws, *checked.conditions))


def power(
    data: Any = None,
    second: Any = None,
    /,
    *,
    runs: int | None = None,
    difference: float | None = None,
    effect_size: float | None = None,
    power: float = 0.8,
    test: str = "brunner-munzel",
    alpha: float = 0.05,
    sd: float | None = None,
    spending: str = "power-1.5",
    min_runs: int = 5,
    step: int = 1,
    futility: bool = True,
    value: str | None = None,
    by: str | None = None,
    a: str | None = None,
    b: str | None = None,
    pair: str | None = None,
    where: Mapping[str, str] | None = None,
    drop_missing: bool = False,
    unit: str | None = None,
    store: str | Path | AbstractStore | None = None,
    selection: str | None = None,
) -> PowerResult:
    """How many runs for a difference of this size, or what these runs could see: whichever of the two is not given.

    data, second: two lists of results to simulate from; or a table or study of which a and b name the sides, whose
    units are simulated from; without any, normal runs with this sd. difference: in units of the metric; effect_size:
    in standard deviations. test: "brunner-munzel", "mann-whitney", "welch", of pairs "signed-rank" or "paired-t", and
    the rules of `decide`: "sequential", "sequential-mann-whitney", "sequential-signed-rank", which have spending,
    min_runs, step and futility. pair: for paired tests from a table, the column whose labels tell which runs belong
    together.
    """
    from isorun.analysis.planning.power import PowerOptions
    from isorun.analysis.planning.power import power as power_from_runs

    options = PowerOptions(
        test=test, alpha=alpha, sd=sd, spending=spending, min_runs=min_runs, step=step, futility=futility
    )
    if data is None and difference is not None and sd is None:
        raise InputError(
            "a difference in units of the metric means nothing without the spread of its runs",
            found=f"difference {difference}, no runs and no sd",
            hint="give runs to simulate from, or sd=… (--sd), or the effect in sd: effect_size=… (--effect)",
        )
    ask = partial(power_from_runs, runs=runs, difference=difference, effect_size=effect_size, power=power, **options)
    if data is None or second is not None or is_list_of_numbers(data):
        return ask(data, second)
    asked = Asked(value, by, where, unit, drop_missing, pair, store=store, selection=selection)
    found = asked.of(data)
    part = _part(found, asked, found.factor(by, where) if a or b else by or "", (a, b))
    sides = _sides_to_simulate(part, [name for name in (a, b) if name])
    units = {group.name: units_of(part.table, group.values, part.counting) for group in sides}
    answer = ask(*_simulated(part, sides, test, [one.values for one in units.values()]))
    own = unit_conditions(units, next_step=part.real_runs)
    return answer.simulated_from(units, (*part.conditions(), *own))


def _sides_to_simulate(part: _Part, names: Sequence[str]) -> list[Group]:
    groups = {group.name: group for group in part.groups((part.factor,) if part.factor else ())}
    for name in names:
        if name not in groups:
            raise InputError(f"no run belongs to {name!r}", allowed=known_names(name, groups))
    if not names and len(groups) > 1:
        raise InputError(
            "which runs to simulate from is not said",
            found=f"{part.factor} is one of {', '.join(groups)}",
            hint="a=… (--a on the command line)",
        )
    for name in names or [""]:
        _refuse_several_groups(part, name)
    return [groups[name] for name in names or groups]


def _refuse_several_groups(part: _Part, side: str) -> None:
    """Runs of several groups of a study do not spread as those of one do. side: "" where all runs are one."""
    rows = part.table.where({part.factor: side}) if side else part.table
    for name in part.found.factors:
        labels = list(dict.fromkeys(rows.labels(name)))
        if name != part.factor and len(labels) > 1:
            either = "" if part.factor else f", or by={name!r}, a=… (--by {name} --a …)"
            raise InputError(
                "which runs to simulate from is not said: those of several groups do not spread as those of one",
                found=f"{name} is one of {', '.join(labels)}",
                hint=f"where={{{name!r}: …}} (--where {name}=…){either}",
            )


def _simulated(part: _Part, sides: Sequence[Group], test: str, units: Sequence[FloatArray]) -> Sequence[FloatArray]:
    """One value a unit of either side; of pairs those that belong together."""
    from isorun.analysis.planning.power_curves import PAIRED_TESTS

    if test not in PAIRED_TESTS:
        return units
    if part.asked.pair is None or len(sides) != 2:
        raise InputError(
            "a paired design needs pairs of runs",
            found=f"sides: {len(sides)}, pair: {part.asked.pair!r}",
            hint="name both sides (a, b) and the column that pairs their runs: pair=… (--pair)",
        )
    return paired_units(part.table, (sides[0].values, sides[1].values), part.asked.pair, part.counting).sides


def board_of(data: Any, asked: Asked) -> BoardScores:
    """The scores of many approaches, by task where there are several; for figures."""
    found = asked.of(data)
    return _board(_part(found, asked, found.factor(asked.by, asked.where)))


def _board(part: _Part) -> BoardScores:
    from isorun.analysis.leaderboards.leaderboard import board_scores

    asked = part.asked
    return board_scores(
        part.table,
        part.found.value(asked.value),
        part.factor,
        counting=part.counting,
        task=asked.task,
        pair=asked.pair,
        drop_missing=asked.drop_missing,
        lost={} if asked.task else part.lost(),
    )


def rank(
    data: Any,
    *,
    value: str | None = None,
    by: str | None = None,
    task: str | None = None,
    pair: str | None = None,
    where: Mapping[str, str] | None = None,
    drop_missing: bool = False,
    unit: str | None = None,
    direction: str | None = None,
    post_hoc: str | None = None,
    adjust: str = "holm",
    statistic: str = "iqm",
    best_of: int = 5,
    repetitions: int = 5_000,
    store: str | Path | AbstractStore | None = None,
    selection: str | None = None,
) -> Leaderboard:
    """Which of many approaches is best, over one task or many.

    adjust: of the p of pairs, "holm", "bh" or "none". statistic: what is ranked by, "iqm", "mean" or "median".
    """
    from isorun.analysis.leaderboards.leaderboard import BoardOptions, leaderboard

    asked = Asked(value, by, where, unit, drop_missing, pair, task, direction, store, selection)
    found = asked.of(data)
    part = _part(found, asked, found.factor(by, where))
    metric = part.metric
    better = metric.direction or "higher"
    board = _board(part)
    smallest = {name: min(units, key=lambda one: one.count) for name, units in board.units.items()}
    return leaderboard(
        board.scores,
        board.compared(direction=better, post_hoc=post_hoc, correction=adjust),
        metric=metric.name,
        direction=better,
        options=BoardOptions(statistic, best_of, repetitions),
        notes=board.notes,
        units=board.units,
        worst=board.with_the_worst(better),
        conditions=(
            *part.conditions(metric),
            *board.conditions,
            *unit_conditions(smallest, next_step=part.real_runs),
        ),
    )


def agree(
    data: Any,
    *,
    value: str | Sequence[str] | None = None,
    by: str | None = None,
    pair: str | None = None,
    sides: Sequence[str] = (),
    direction: str | None = None,
    decimals: int | None = None,
    where: Mapping[str, str] | None = None,
    drop_missing: bool = False,
    unit: str | None = None,
    store: str | Path | AbstractStore | None = None,
    selection: str | None = None,
) -> AgreementTable:
    """Do devices or environments put the same seeds in the same order, or metrics the same runs?

    value, by, pair: one metric of the groups in column `by`, whose runs belong together by `pair`; repeats of a label
    are averaged. Without `by`: value names two or more metrics of the same runs. sides: only these groups. decimals: to
    which means are published.
    """
    from isorun.analysis.agreements.shared_runs import agreement_table, metrics_of, sides_of
    from isorun.analysis.spreads import column_names

    found = results(data, store=store, selection=selection)
    columns = column_names(value or found.value(None), tuple(found.table.columns))
    asked = Asked(columns[0], by, where, unit, drop_missing, pair, direction=direction)
    if by is None and len(columns) > 1:
        part = _part(found, asked)
        metrics, notes = metrics_of(part.table, columns, counting=part.counting, drop_missing=drop_missing)
        return agreement_table(metrics, comparable=False, notes=notes, conditions=part.conditions())
    if len(columns) > 1 or pair is None:
        raise InputError(
            "agreement needs one metric of several groups, or several metrics of the same runs",
            found=f"value: {', '.join(columns)}; by: {by}; pair: {pair}",
            hint="--value METRIC --by COLUMN --pair seed, or --value METRIC,METRIC",
        )
    part = _part(found, asked, found.factor(by, where), sides)
    metric = part.metric
    groups, notes = sides_of(part.table, columns[0], part.factor, pair, only=sides, drop_missing=drop_missing)
    return agreement_table(
        groups,
        direction=metric.direction or "higher",
        decimals=decimals,
        notes=notes,
        conditions=(*part.conditions(metric), *shared_draws(part.table, pair, part.counting)),
    )


def factors(
    study: Any,
    *,
    value: str | None = None,
    where: Mapping[str, str] | None = None,
    drop_missing: bool = False,
    unit: str | None = None,
    store: str | Path | AbstractStore | None = None,
    selection: str | None = None,
) -> FactorEffects:
    """What exactly changed the result? The effect of each value of each factor against the study's baseline.

    Seeds are paired, and a seed counts once. unit: "question" counts test questions instead, where runs kept their
    predictions with labels, or values by question; "repeat" the runs of one seed.
    """
    from isorun import workflow
    from isorun.analysis.factors.attribution import QUESTION, FactorQuestion, attributed
    from isorun.study.cells import cells_of

    with workflow.opened(study, store) as (declared, place):
        if declared.factors is None:
            raise InputError(
                f"the study {declared.name!r} declares no factors",
                hint="add a [factors] table: docs/study-file.md; or isorun compare --by environment",
            )
        with workflow.recorded(place, declared) as kept:
            known = workflow.known_to(declared, kept)
            records = list(kept.records(cell.id for cell in cells_of(known)))
            told = workflow.store_conditions(kept)
    found = study_results(workflow.analyse_records(known, records, told), selection)
    assert found.study is not None
    sides = found.sides("environment", (), where)
    return attributed(
        FactorQuestion.of_study(
            declared.factors,
            found.study,
            records,
            found.metric(value, None),
            table=found.table.where(where or {}),
            counting=found.counting(None if unit == QUESTION else unit, sides),
            selection=selection or None,
            unit=unit,
            drop_missing=drop_missing,
        )
    )
