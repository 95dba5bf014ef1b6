"""The questions people ask of results: of any table, and of studies alike.

    summarize("runs.csv", value="accuracy", by="model")       how do the runs of each group look?
    compare("study.toml")                                      is A better than B?
    mixed_model("runs.csv", "accuracy ~ model + (1|seed)")     where does the variance come from?
    power(effect_size=1.0)                                     how many runs does it take?

A study stands for the table of its finished runs; its declared metric, direction and varying factor are the defaults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isorun import workflow
from isorun.analysis.inputs.tables import Group, Table, read_table
from isorun.analysis.mixed.model import DegreesOfFreedom
from isorun.analysis.mixed.model import mixed_model as fit_model
from isorun.analysis.mixed.result import MixedResult
from isorun.analysis.pairwise.compare import compare as compare_table
from isorun.analysis.pairwise.comparison import Comparison
from isorun.analysis.planning.power import power as power_from_runs
from isorun.analysis.planning.power_question import PowerResult
from isorun.analysis.spreads.summary import GroupSummary, column_names
from isorun.analysis.spreads.summary import summarize as summarize_table
from isorun.analysis.studies.run_table import run_table
from isorun.analysis.studies.study_result import StudyResult
from isorun.errors import InputError, known_names
from isorun.study.design import Study

__all__ = ["Results", "compare", "groups_of", "mixed_model", "power", "results", "summarize"]

_GROUPING = ("approach", "config", "environment", "level")


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
        columns = _GROUPING if self.study else ()
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
    return by if by is not None else (_GROUPING if found.study else ())


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
    return compare_table(
        found.table,
        value=found.value(value),
        by=found.factor(by),
        direction=found.direction(direction),
        **options,
    )


def mixed_model(
    data: Any,
    formula: str,
    *,
    where: Mapping[str, str] | None = None,
    reml: bool = True,
    ddf: DegreesOfFreedom = "satterthwaite",
    adjust: str = "holm",
    drop_missing: bool = False,
) -> MixedResult:
    """Where the variance comes from: a linear mixed model with random intercepts, tested as R's lmerTest does."""
    table = results(data).table.where(where or {})
    return fit_model(
        table.typed(),
        formula,
        reml=reml,
        ddf=ddf,
        adjust=adjust,
        missing="drop" if drop_missing else "error",
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
    where: Mapping[str, str] | None = None,
    drop_missing: bool = False,
    **options: Any,
) -> PowerResult:
    """How many runs for a difference of this size, or what these runs could see; options as in `planning.power`.

    data, second: two lists of results to simulate from; or a table or study of which a and b name the sides.
    """
    if data is None or second is not None or _is_plain_list(data):
        return power_from_runs(data, second, **options)
    found = results(data)
    by_column = (found.factor(by),) if a or b else ()
    groups = found.table.where(where or {}).groups(found.value(value), by_column, drop_missing=drop_missing)
    values = {group.name: group.values.finite for group in groups}
    names = (a, b) if a or b else (next(iter(values)), None)
    for name in names:
        if name is not None and name not in values:
            raise InputError(f"no run belongs to {name!r}", allowed=known_names(name, values))
    first, other = (None if name is None else values[name] for name in names)
    return power_from_runs(first, other, **options)


def _is_study(data: Any) -> bool:
    return isinstance(data, Study) or (isinstance(data, (str, Path)) and Path(data).suffix == ".toml")


def _is_plain_list(data: Any) -> bool:
    return isinstance(data, Sequence) and not isinstance(data, str) and all(isinstance(x, (int, float)) for x in data)
