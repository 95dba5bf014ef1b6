"""The questions people ask of results: of any table, and of studies alike.

    summarize("runs.csv", value="accuracy", by="model")       how do the runs of each group look?
    compare("study.toml")                                      is A better than B?
    mixed_model("runs.csv", "accuracy ~ model + (1|seed)")     where does the variance come from?
    power(effect_size=1.0)                                     how many runs does it take?
    rank("runs.csv", value="score", by="model", task="game")   which of many approaches is best?
    agree("runs.csv", value="accuracy", by="device", pair="seed")   do they put the same seeds in the same order?

A study stands for the table of its finished runs; its declared metric, direction and varying factor are the defaults.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

from isorun import workflow
from isorun.analysis.agreements.shared_runs import AgreementTable, agreement_table, metrics_of, sides_of
from isorun.analysis.inputs.pairing import matched
from isorun.analysis.inputs.samples import FloatArray
from isorun.analysis.inputs.tables import Group, Table, Values, read_table
from isorun.analysis.leaderboards.board_table import BoardScores, board_scores
from isorun.analysis.leaderboards.leaderboard import BoardOptions, Leaderboard, leaderboard
from isorun.analysis.mixed.checks import checked
from isorun.analysis.mixed.model import mixed_model as fit_model
from isorun.analysis.mixed.result import DegreesOfFreedom, MixedResult
from isorun.analysis.pairwise.compare import compare as compare_table
from isorun.analysis.pairwise.comparison import Comparison
from isorun.analysis.planning.power import power as power_from_runs
from isorun.analysis.planning.power_curves import PAIRED_TESTS
from isorun.analysis.planning.power_question import PowerResult
from isorun.analysis.spreads.summary import GroupSummary, column_names
from isorun.analysis.spreads.summary import summarize as summarize_table
from isorun.analysis.studies.run_table import run_table
from isorun.analysis.studies.study_result import StudyResult
from isorun.errors import InputError, known_names
from isorun.study.design import Study

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
    "summarize",
]

GROUP_FACTORS = ("approach", "config", "environment", "level")


@dataclass(frozen=True, slots=True)
class Results:
    """A table of results, with what its study says about it if it comes from one."""

    table: Table
    study: StudyResult | None = None

    def value(self, chosen: str | None) -> str:
        """The column with the results: as chosen, or a study's first metric."""
        if chosen:
            return chosen
        if self.study is None or self.study.primary is None:
            what = "which column holds the results is not said"
            raise InputError(what, allowed=", ".join(self.table.columns), hint="value=… (--value on the command line)")
        return self.study.primary.name

    def direction(self, chosen: str | None) -> str:
        """Which direction is better: as chosen, or as the study says, else higher."""
        known = self.study.primary.direction if self.study and self.study.primary else "higher"
        return chosen or known

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


def results(data: Any, *, store: str | Path | None = None, rule: str | None = None) -> Results:
    """Whatever holds results: a table file or frame, a study or its file (rule: the selection rule to judge by)."""
    if isinstance(data, Results):
        return data
    if not _is_study(data):
        return Results(read_table(data))
    analysed = workflow.analyse(data, store=store)
    return Results(read_table(run_table(analysed, rule)), analysed)


def summarize(
    data: Any,
    *,
    value: str | None = None,
    by: str | Sequence[str] | None = None,
    where: Mapping[str, str] | None = None,
    drop_missing: bool = False,
) -> tuple[GroupSummary, ...]:
    """How the runs of each group look: n, mean, sd with its interval, median, IQM, extremes."""
    found = results(data)
    grouping = _grouping(found, by)
    return summarize_table(found.table, value=found.value(value), by=grouping, where=where, drop_missing=drop_missing)


def groups_of(
    data: Any,
    value: str | None = None,
    by: str | Sequence[str] | None = None,
    *,
    where: Mapping[str, str] | None = None,
    drop_missing: bool = False,
) -> tuple[Group, ...]:
    """The values of each group, for figures."""
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
    direction: str | None = None,
    **options: Any,
) -> Comparison:
    """Is A better than B? Two lists of results, a table, or a study; options as in `pairwise.compare`."""
    if second is not None:
        return compare_table(data, second, direction=direction or "higher", **options)
    found = results(data)
    if found.study is not None:
        part = found.table.where(options.get("where") or {})
        refuse_pooling({name: part.labels(name) for name in GROUP_FACTORS}, found.factor(by))
    return compare_table(
        found.table,
        value=found.value(value),
        by=found.factor(by),
        direction=found.direction(direction),
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
    **options: Any,
) -> PowerResult:
    """How many runs for a difference of this size, or what these runs could see; options as in `planning.power`.

    data, second: two lists of results to simulate from; or a table or study of which a and b name the sides. pair: for
    paired tests from a table, the column whose labels tell which runs belong together.
    """
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
    if options.get("test") in PAIRED_TESTS:
        return power_from_runs(*_paired_runs(table, pair, [groups[name].values for name in names]), **options)
    return power_from_runs(*(groups[name].values.finite for name in names), **options)


def _paired_runs(table: Table, pair: str | None, sides: list[Values]) -> tuple[FloatArray, FloatArray]:
    if pair is None or len(sides) != 2:
        raise InputError(
            "a paired design needs pairs of runs",
            found=f"sides: {len(sides)}, pair: {pair!r}",
            hint="name both sides (a, b) and the column that pairs their runs: pair=… (--pair)",
        )
    pairs = matched(table, pair, *sides)
    return pairs.first, pairs.second


def board_of(
    data: Any,
    *,
    value: str | None = None,
    by: str | None = None,
    task: str | None = None,
    pair: str | None = None,
    where: Mapping[str, str] | None = None,
    drop_missing: bool = False,
) -> BoardScores:
    """The scores of many approaches, by task where there are several; for `rank` and for figures."""
    found = results(data)
    table = found.table.where(where or {})
    return board_scores(table, found.value(value), found.factor(by), task=task, pair=pair, drop_missing=drop_missing)


def rank(
    data: Any,
    *,
    direction: str | None = None,
    post_hoc: str | None = None,
    adjust: str = "holm",
    statistic: str = "iqm",
    best_of: int = 5,
    repetitions: int = 5_000,
    **selection: Any,
) -> Leaderboard:
    """Which of many approaches is best, over one task or many; `selection` as in `board_of`.

    adjust: of the p of pairs, "holm", "bh" or "none". statistic: what is ranked by, "iqm", "mean" or "median".
    """
    found = results(data)
    better = found.direction(direction)
    board = board_of(found, **selection)
    compared = board.compared(direction=better, post_hoc=post_hoc, correction=adjust)
    options = BoardOptions(statistic, best_of, repetitions)
    return leaderboard(board.scores, compared, direction=better, options=options, notes=board.notes)


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
) -> AgreementTable:
    """Do devices or environments put the same seeds in the same order, or metrics the same runs?

    value, by, pair: one metric of the groups in column `by`, whose runs belong together by `pair`. Without `by`: value
    names two or more metrics of the same runs. sides: only these groups. decimals: to which means are published.
    """
    found = results(data)
    table = found.table.where(where or {})
    columns = column_names(value or found.value(None), tuple(table.columns))
    if by is None and len(columns) > 1:
        metrics, notes = metrics_of(table, columns, drop_missing=drop_missing)
        return agreement_table(metrics, comparable=False, notes=notes)
    if len(columns) > 1 or pair is None:
        raise InputError(
            "agreement needs one metric of several groups, or several metrics of the same runs",
            found=f"value: {', '.join(columns)}; by: {by}; pair: {pair}",
            hint="--value METRIC --by COLUMN --pair seed, or --value METRIC,METRIC",
        )
    groups, notes = sides_of(table, columns[0], found.factor(by), pair, only=sides, drop_missing=drop_missing)
    return agreement_table(groups, direction=found.direction(direction), decimals=decimals, notes=notes)


def _is_study(data: Any) -> bool:
    return isinstance(data, Study) or (isinstance(data, (str, Path)) and Path(data).suffix == ".toml")


def _is_list_of_numbers(data: Any) -> bool:
    """A list, an array or a series of one dimension, as against tables, whose rows have names for their cells."""
    shape = getattr(data, "shape", None)
    if shape is not None:
        return len(shape) == 1
    return isinstance(data, Sequence) and not isinstance(data, str) and all(isinstance(x, Real) for x in data)
