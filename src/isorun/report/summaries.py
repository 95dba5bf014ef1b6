"""Group summaries."""

from __future__ import annotations

from isorun.analysis.spreads import GroupSummary, Summaries
from isorun.report import (
    UNKNOWN,
    Column,
    Table,
    View,
    count,
    decimals_for,
    fixed,
    share_of_size,
    whole,
    without_constant_columns,
)
from isorun.study.cells import GROUP_FACTORS

__all__ = ["summaries_view"]

_NOTE = (
    "sd: standard deviation over runs (n - 1), with its chi-square interval for normal values. IQM: mean of the middle "
    "half. max diff: largest minus smallest run. rel sd: sd over mean; rel max diff: max diff over min. Units: what "
    "was drawn independently."
)


def summaries_view(summaries: Summaries) -> View:
    """One row a group; the verdict says which varies most. Factors that all runs of a study share are left out."""
    table = without_constant_columns(_table(summaries), GROUP_FACTORS)
    return View((_verdict(summaries),), (table,), summaries.all_conditions)


def _verdict(summaries: Summaries) -> str:
    value = summaries.value
    runs = count(sum(item.n for item in summaries), "run")
    known = [item for item in summaries if item.sd is not None]
    if not known:
        return f"{value}: {runs} in {count(len(summaries), 'group')}; no group has two runs, so no spread is known."
    widest = max(known, key=lambda item: item.sd or 0.0)
    beside = widest.sd or 0.0
    decimals = decimals_for(beside)
    mean, sd, most = (fixed(number, decimals, beside) for number in (widest.mean, widest.sd, widest.max_diff))
    spread = f"mean {mean} ± {sd} (sd of {widest.n} runs)"
    gap = f"max difference {most}"
    if len(summaries) == 1:
        return f"{value}: {spread}, {gap}."
    return f"{value}: {runs} in {len(summaries)} groups; {summaries.name_of(widest)} varies most: {spread}, {gap}."


def _table(summaries: Summaries) -> Table:
    keys = tuple(Column(name, key=True) for name in summaries[0].group) or (Column("group", key=True),)
    titles = ("n", "units", "mean", "sd", "90 % interval of sd", "median", "IQM", "min", "max", "max diff")
    relative = (Column("rel sd", "%"), Column("rel max diff", "%"))
    return Table(
        name="summary",
        title=f"{summaries.value} by group",
        columns=(*keys, *(Column(title) for title in titles), *relative),
        rows=tuple(_row(item) for item in summaries),
        notes=(_NOTE,),
    )


def _row(item: GroupSummary) -> tuple[str, ...]:
    beside = item.sd or abs(item.mean) / 1000
    decimals = decimals_for(beside)
    interval = UNKNOWN if item.sd_ci90 is None else "–".join(fixed(end, decimals, beside) for end in item.sd_ci90)
    numbers = (item.median, item.iqm, item.min, item.max, item.max_diff)
    return (
        *(item.group.values() or ("all runs",)),
        whole(item.n),
        whole(item.units),
        fixed(item.mean, decimals, beside),
        fixed(item.sd, decimals, beside),
        interval,
        *(fixed(number, decimals, beside) for number in numbers),
        share_of_size(item.rel_sd),
        share_of_size(item.rel_max_diff),
    )
