"""The questions people ask of results: of any table, and of studies alike.

    summarize("runs.csv", value="accuracy", by="model")       how do the runs of each group look?
    compare("study.toml")                                      is A better than B?
    mixed_model("runs.csv", "accuracy ~ model + (1|seed)")     where does the variance come from?
    power(effect_size=1.0)                                     how many runs does it take?
    rank("runs.csv", value="score", by="model", task="game")   which of many approaches is best?
    agree("runs.csv", value="accuracy", by="device", pair="seed")   do they put the same seeds in the same order?

A study stands for the table of its finished runs; its declared metric, direction and varying factor are the defaults.
Here evidence meets statistics: runs are counted in units, and what weakens them goes with every answer. The parts that
answer a question load when it is asked, so that a small table does not wait for what it does not use.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from isorun.analysis.evidence.condition import Condition
from isorun.analysis.evidence.units import (
    REPEAT,
    Counting,
    counting_of,
    paired_units,
    shared_draws,
    unit_conditions,
    units_of,
)
from isorun.analysis.measurements import Group, Measurements, read_table
from isorun.errors import InputError, known_names

if TYPE_CHECKING:
    from isorun.analysis.agreements.shared_runs import AgreementTable
    from isorun.analysis.comparison import Comparison
    from isorun.analysis.evidence.judged import JudgedMetric
    from isorun.analysis.leaderboards.leaderboard import BoardScores, Leaderboard
    from isorun.analysis.mixed.result import DegreesOfFreedom, MixedResult
    from isorun.analysis.planning.power import PowerResult
    from isorun.analysis.spreads.spread import GroupSummary
    from isorun.analysis.studies.study_result import StudyResult, StudySides

__all__ = [
    "GROUP_FACTORS",
    "Results",
    "agree",
    "board_of",
    "compare",
    "groups_of",
    "mixed_model",
    "power",
    "rank",
    "refuse_pooling",
    "results",
    "study_results",
    "summarize",
]

GROUP_FACTORS: Final = ("approach", "config", "environment", "level")


@dataclass(frozen=True, slots=True)
class Results:
    """A table of results, with what its study says about it if it comes from one."""

    table: Measurements
    study: StudyResult | None = None

    def value(self, chosen: str | None) -> str:
        """The column with the results: as chosen, or a study's first metric."""
        if chosen:
            return chosen
        if self.study is None or self.study.primary is None:
            what = "which column holds the results is not said"
            raise InputError(what, allowed=", ".join(self.table.columns), hint="value=… (--value on the command line)")
        return self.study.primary.name

    def metric(self, value: str | None, direction: str | None) -> JudgedMetric:
        """What is judged, with its direction: as chosen, else as the study says, else as the name tells."""
        from isorun.analysis.evidence.judged import judged_column

        name = self.value(value)
        known = {metric.name: metric for metric in self.study.metrics} if self.study else {}
        return known[name] if name in known and not direction else judged_column(name, direction or "")

    def factor(self, chosen: str | None) -> str:
        """The column that tells groups apart: as chosen, or the only factor in which a study varies."""
        if chosen:
            return chosen
        columns = GROUP_FACTORS if self.study else ()
        varying = [name for name in columns if len(set(self.table.labels(name))) > 1]
        if len(varying) == 1:
            return varying[0]
        raise InputError(
            "which column tells the groups apart is not said",
            found=f"the study varies in: {', '.join(varying) or 'nothing'}" if self.study else "",
            allowed=", ".join(self.table.columns),
            hint="by=… (--by on the command line)",
        )

    def counting(self, asked: str | None, sides: StudySides | None = None) -> Counting:
        """How runs are counted: as asked, else as the records say, else as the table's columns say."""
        if self.study is None or asked not in {None, REPEAT}:
            return counting_of(self.table, asked)
        from isorun.analysis.studies.study_result import DISTINCT, UNIT

        if asked == REPEAT:
            return Counting(DISTINCT, REPEAT, asked=True, seeds="seed", recorded=True)
        return Counting(UNIT, sides.noun if sides else "unit", recorded=True)

    def sides(
        self, by: str = "", labels: Sequence[str] = (), where: Mapping[str, str] | None = None
    ) -> StudySides | None:
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
        return (*(direction_conditions(metric) if metric else ()), *others)


def results(data: Any, *, store: str | Path | None = None, selection: str | None = None) -> Results:
    """Whatever holds results: a table file or frame, a study, its file or its name (selection: by name)."""
    if isinstance(data, Results):
        return data
    if not _is_study(data, store):
        return Results(read_table(data))
    from isorun import workflow

    return study_results(workflow.analyse(data, store=store), selection)


def study_results(analysed: StudyResult, selection: str | None = None) -> Results:
    """The runs of an analysed study as a table, one row a run."""
    from dataclasses import replace

    from isorun.analysis.studies.study_result import run_table

    table = read_table(run_table(analysed, selection))
    return Results(replace(table, source=f"the study {analysed.study}", in_order=frozenset(GROUP_FACTORS)), analysed)


def summarize(
    data: Any,
    *,
    value: str | None = None,
    by: str | Sequence[str] | None = None,
    where: Mapping[str, str] | None = None,
    drop_missing: bool = False,
    unit: str | None = None,
) -> tuple[GroupSummary, ...]:
    """How the runs of each group look: runs and units, mean, sd with its interval, median, IQM, extremes."""
    from isorun.analysis.spreads.spread import summarize as summarize_table

    found = results(data)
    return summarize_table(
        found.table,
        value=found.value(value),
        by=_grouping(found, by),
        where=where,
        drop_missing=drop_missing,
        unit=found.counting(unit, found.sides(where=where)),
    )


def groups_of(
    data: Any,
    value: str | None = None,
    by: str | Sequence[str] | None = None,
    *,
    where: Mapping[str, str] | None = None,
    drop_missing: bool = False,
) -> tuple[Group, ...]:
    """The values of each group, for figures."""
    from isorun.analysis.spreads.spread import column_names

    found = results(data)
    table = found.table.where(where or {})
    columns = column_names(_grouping(found, by), tuple(table.columns))
    return table.groups(found.value(value), columns, drop_missing=drop_missing)


def _grouping(found: Results, by: str | Sequence[str] | None) -> str | Sequence[str]:
    return by if by is not None else (GROUP_FACTORS if found.study else ())


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
) -> Comparison:
    """Is A better than B? Two lists of results, a table, or a study.

    a, b: the labels of column `by`. pair: the column whose labels say which runs belong together (paired: two lists
    whose i-th runs do): the verdict is then about the differences. margin: a difference that does not matter, which
    allows the verdict "equivalent". unit: the column that says what was drawn independently, or "repeat" for the runs
    of one seed. test: "brunner-munzel" (holds its error rate for unequal spreads), "mann-whitney", or, for pairs,
    "signed-rank". also: further analyses by name, beside the verdict: "aso", and of pairs "bayesian-signed-rank" and
    "bayesian-correlated-t", with rope (a difference that does not matter) and correlation (of folds: 1 / folds).
    """
    from isorun.analysis.comparison import compare as compare_table

    options: dict[str, Any] = {"a": a, "b": b, "margin": margin, "test": test}
    options |= {"also": also, "rope": rope, "correlation": correlation}
    if second is not None:
        from isorun.analysis.evidence.judged import ASSUMED

        assumed = () if direction else (ASSUMED,)
        return compare_table(
            data, second, direction=direction or "higher", paired=paired, conditions=assumed, **options
        )
    found = results(data)
    factor = found.factor(by)
    if found.study is not None:
        part = found.table.where(where or {})
        refuse_pooling({name: part.labels(name) for name in GROUP_FACTORS}, factor)
    sides = found.sides(factor, [label for label in (a, b) if label], where)
    metric = found.metric(value, direction)
    return compare_table(
        found.table,
        value=metric.name,
        by=factor,
        pair=pair,
        direction=metric.direction or "higher",
        where=where,
        drop_missing=drop_missing,
        unit=found.counting(unit, sides),
        conditions=found.conditions(metric, sides),
        real_runs=_real_runs(sides),
        **options,
    )


def refuse_pooling(labels: Mapping[str, Iterable[str]], compared: str) -> None:
    """Runs of several configs, environments or levels are not repetitions of one another.

    labels: what each factor of the study is in the runs at hand. compared: the factors that tell the sides apart.
    """
    named = {name.strip() for name in compared.split(",")}
    for name, seen in labels.items():
        distinct = list(dict.fromkeys(seen))
        if name not in named and len(distinct) > 1:
            raise InputError(
                "the sides differ in more than one factor",
                found=f"{name} is one of {', '.join(distinct)}",
                hint=f"where={{{name!r}: …}} (--where {name}=…), or isorun mixed for all of them together",
            )


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
) -> MixedResult:
    """Where the variance comes from: a linear mixed model, tested as R's lmerTest does, and what speaks against it.

    adjust: of the differences between means, "tukey", "dunnett", "holm", "bonferroni", "bh" or "none". control: the
    level that all others are compared with. The result's `conditions` say when its tests do not hold.
    """
    from isorun.analysis.mixed.checks import checked
    from isorun.analysis.mixed.model import mixed_model as fit_model

    table = results(data).table.where(where or {})
    return checked(
        fit_model(
            table.typed(),
            formula,
            reml=reml,
            ddf=ddf,
            adjust=adjust,
            control=control,
            missing="drop" if drop_missing else "error",
        )
    )


def power(
    data: Any = None,
    second: Any = None,
    /,
    *,
    value: str | None = None,
    by: str | None = None,
    a: str | None = None,
    b: str | None = None,
    pair: str | None = None,
    where: Mapping[str, str] | None = None,
    drop_missing: bool = False,
    unit: str | None = None,
    **options: Any,
) -> PowerResult:
    """How many runs for a difference of this size, or what these runs could see; options as in `planning.power`.

    data, second: two lists of results to simulate from; or a table or study of which a and b name the sides, whose
    units are simulated from. pair: for paired tests from a table, the column whose labels tell which runs belong
    together.
    """
    from isorun.analysis.planning.power import power as power_from_runs
    from isorun.analysis.planning.power_curves import PAIRED_TESTS

    if data is None and options.get("difference") is not None and options.get("sd") is None:
        raise InputError(
            "a difference in units of the metric means nothing without the spread of its runs",
            found=f"difference {options['difference']}, no runs and no sd",
            hint="give runs to simulate from, or sd=… (--sd), or the effect in sd: effect_size=… (--effect)",
        )
    if data is None or second is not None or _is_list_of_numbers(data):
        return power_from_runs(data, second, **options)
    found = results(data)
    by_column = (found.factor(by),) if a or b else ()
    table = found.table.where(where or {})
    groups = {group.name: group for group in table.groups(found.value(value), by_column, drop_missing=drop_missing)}
    names = [name for name in (a, b) if name] or [next(iter(groups))]
    for name in names:
        if name not in groups:
            raise InputError(f"no run belongs to {name!r}", allowed=known_names(name, groups))
    sides = found.sides(by_column[0] if by_column else "", names, where)
    counting = found.counting(unit, sides)
    units = {name: units_of(table, groups[name].values, counting) for name in names}
    if options.get("test") in PAIRED_TESTS:
        runs = _paired_runs(table, pair, [groups[name] for name in names], counting)
    else:
        runs = tuple(one.values for one in units.values())
    answer = power_from_runs(*runs, **options)
    own = unit_conditions(units, next_step=_real_runs(sides))
    return answer.simulated_from(units, (*found.conditions(None, sides), *own))


def _real_runs(sides: StudySides | None) -> str:
    from isorun.analysis.comparison import REAL_RUNS

    return sides.real_runs if sides else REAL_RUNS


def _paired_runs(table: Measurements, pair: str | None, sides: Sequence[Group], counting: Counting) -> tuple[Any, ...]:
    if pair is None or len(sides) != 2:
        raise InputError(
            "a paired design needs pairs of runs",
            found=f"sides: {len(sides)}, pair: {pair!r}",
            hint="name both sides (a, b) and the column that pairs their runs: pair=… (--pair)",
        )
    return paired_units(table, (sides[0].values, sides[1].values), pair, counting).sides


def board_of(
    data: Any,
    *,
    value: str | None = None,
    by: str | None = None,
    task: str | None = None,
    pair: str | None = None,
    where: Mapping[str, str] | None = None,
    drop_missing: bool = False,
    unit: str | None = None,
) -> BoardScores:
    """The scores of many approaches, by task where there are several; for `rank` and for figures."""
    from isorun.analysis.leaderboards.leaderboard import board_scores

    found = results(data)
    table, factor = found.table.where(where or {}), found.factor(by)
    counting = found.counting(unit, found.sides(factor, where=where))
    return board_scores(
        table, found.value(value), factor, counting=counting, task=task, pair=pair, drop_missing=drop_missing
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
) -> Leaderboard:
    """Which of many approaches is best, over one task or many.

    adjust: of the p of pairs, "holm", "bh" or "none". statistic: what is ranked by, "iqm", "mean" or "median".
    """
    from isorun.analysis.leaderboards.leaderboard import BoardOptions, leaderboard

    found = results(data)
    metric = found.metric(value, direction)
    better = metric.direction or "higher"
    board = board_of(found, value=value, by=by, task=task, pair=pair, where=where, drop_missing=drop_missing, unit=unit)
    compared = board.compared(direction=better, post_hoc=post_hoc, correction=adjust)
    sides = found.sides(found.factor(by), where=where)
    smallest = {name: min(units, key=lambda one: one.count) for name, units in board.units.items()}
    return leaderboard(
        board.scores,
        compared,
        direction=better,
        options=BoardOptions(statistic, best_of, repetitions),
        notes=board.notes,
        units=board.units,
        conditions=(
            *found.conditions(metric, sides),
            *board.conditions,
            *unit_conditions(smallest, next_step=_real_runs(sides)),
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
) -> AgreementTable:
    """Do devices or environments put the same seeds in the same order, or metrics the same runs?

    value, by, pair: one metric of the groups in column `by`, whose runs belong together by `pair`; repeats of a label
    are averaged. Without `by`: value names two or more metrics of the same runs. sides: only these groups. decimals: to
    which means are published.
    """
    from isorun.analysis.agreements.shared_runs import agreement_table, metrics_of, sides_of
    from isorun.analysis.spreads.spread import column_names

    found = results(data)
    table = found.table.where(where or {})
    columns = column_names(value or found.value(None), tuple(table.columns))
    if by is None and len(columns) > 1:
        study = found.sides(where=where)
        metrics, notes = metrics_of(table, columns, counting=found.counting(unit, study), drop_missing=drop_missing)
        return agreement_table(metrics, comparable=False, notes=notes, conditions=found.conditions(None, study))
    if len(columns) > 1 or pair is None:
        raise InputError(
            "agreement needs one metric of several groups, or several metrics of the same runs",
            found=f"value: {', '.join(columns)}; by: {by}; pair: {pair}",
            hint="--value METRIC --by COLUMN --pair seed, or --value METRIC,METRIC",
        )
    factor = found.factor(by)
    study = found.sides(factor, sides, where)
    metric = found.metric(columns[0], direction)
    groups, notes = sides_of(table, columns[0], factor, pair, only=sides, drop_missing=drop_missing)
    return agreement_table(
        groups,
        direction=metric.direction or "higher",
        decimals=decimals,
        notes=notes,
        conditions=(*found.conditions(metric, study), *shared_draws(table, pair, found.counting(unit, study))),
    )


def _is_study(data: Any, store: str | Path | None) -> bool:
    if not isinstance(data, (str, Path)):
        from isorun.study.design import Study

        return isinstance(data, Study)
    if Path(data).suffix == ".toml" or Path(data).is_file():
        return Path(data).suffix == ".toml"
    from isorun import workflow

    return str(data) in workflow.recent(store)


def _is_list_of_numbers(data: Any) -> bool:
    """A list, an array or a series of one dimension, as against tables, whose rows have names for their cells."""
    shape = getattr(data, "shape", None)
    if shape is not None:
        return len(shape) == 1
    return isinstance(data, Sequence) and not isinstance(data, str) and all(isinstance(x, Real) for x in data)
