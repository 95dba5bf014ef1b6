"""The tables of a study: overall spread, identical runs, levels, time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from isorun.analysis.evidence.judged import JudgedMetric
from isorun.analysis.evidence.run_units import FINAL_WEIGHTS, INITIAL_WEIGHTS, IdenticalRuns
from isorun.analysis.spreads import Spread
from isorun.analysis.studies.foreign_runs import more_repeats
from isorun.analysis.studies.group_result import GroupKey, GroupResult, MetricSpread, SelectionResult, SelectionSpread
from isorun.analysis.studies.selection import FINAL
from isorun.analysis.studies.study_result import LevelComparison, StudyResult
from isorun.report import (
    UNKNOWN,
    Column,
    NumberStyle,
    Table,
    count,
    p_value,
    seconds,
    share_of_size,
    significant,
    style_for,
    whole,
    without_constant_columns,
)
from isorun.study.cells import GROUP_FACTORS

__all__ = [
    "GROUP_COLUMNS",
    "NO_DIGEST",
    "RESTS_ON",
    "group_cells",
    "has_weak",
    "identical_tables",
    "interval_cell",
    "named_rows",
    "rests_on_cell",
    "runs_seen",
    "spread_columns",
    "spread_rows",
    "spread_tables",
    "time_tables",
    "told_what_rests",
]

NO_DIGEST: Final = (
    "— under weights: no run left such a digest. Trainings with libraries that isorun follows leave them, "
    'isorun.digest("weights.final", …) any other.'
)

GROUP_COLUMNS: Final = tuple(Column(title, key=True) for title in GROUP_FACTORS)
RESTS_ON: Final = "interval from"
_INTERVAL: Final = "The 90 % interval of sd is the chi-square interval for normal values."
_DRAWS: Final = (
    f"{RESTS_ON}: repeats of a seed and copies of a run count once in the interval of sd; of one seed alone, copies do."
)


def group_cells(key: GroupKey) -> tuple[str, ...]:
    """The cells that go with GROUP_COLUMNS."""
    return tuple(str(getattr(key, name)) for name in GROUP_FACTORS)


def interval_cell(spread: Spread, style: NumberStyle) -> str:
    """The interval of a standard deviation; a plain 0 where nothing varies."""
    if spread.sd_interval is None:
        return UNKNOWN
    return "–".join(style.difference(bound, spread.sd) for bound in spread.sd_interval) if spread.sd else "0"


def rests_on_cell(spread: Spread) -> str:
    """What the interval of a standard deviation rests on: the runs, or the fewer draws that they are."""
    if not spread.sd:
        return UNKNOWN
    return count(spread.n, "run") if spread.sd_draws == spread.n else count(spread.sd_draws, "draw")


def told_what_rests(table: Table) -> Table:
    """The table with what its intervals rest on where that is fewer draws than runs; elsewhere n says it."""
    place = next(place for place, column in enumerate(table.columns) if column.title == RESTS_ON)
    if any("draw" in row[place] for row in table.rows):
        return replace(table, notes=(*table.notes, _DRAWS))
    rows = tuple((*row[:place], *row[place + 1 :]) for row in table.rows)
    return replace(table, columns=(*table.columns[:place], *table.columns[place + 1 :]), rows=rows)


def named_rows(table: Table, groups: Iterable[GroupKey]) -> Table:
    """The table without key columns that are the same in every row.

    What they say moves below the table, unless it holds for the whole study and so needs no saying.
    """
    if not table.rows:
        return table
    shorter = without_constant_columns(table, (*GROUP_FACTORS, "selection"))
    gone = [place for place, column in enumerate(table.columns) if column.key and column not in shorter.columns]
    if not any(table.columns[place].title in GROUP_FACTORS for place in gone):
        return shorter  # there may be as many tables as groups: not every one asks them all
    everywhere = [set(cells) for cells in zip(*(group_cells(key) for key in groups), strict=True)]
    said = [
        f"{table.columns[place].title} {table.rows[0][place]}"
        for place in gone
        if table.columns[place].title in GROUP_FACTORS
        and len(everywhere[GROUP_FACTORS.index(table.columns[place].title)]) > 1
    ]
    return replace(shorter, notes=(*shorter.notes, f"All rows: {', '.join(said)}.") if said else shorter.notes)


def has_weak(result: StudyResult) -> bool:
    """Whether any selection finds a weak run."""
    return any(judged.without_weak is not None for group in result.groups for judged in group.selections)


def runs_seen(judged: SelectionResult, without_weak: bool) -> SelectionSpread:
    """The spread of all runs, or of those that are not weak; the same for a group without weak runs."""
    return judged.without_weak if without_weak and judged.without_weak is not None else judged.every


def spread_columns(titles: Sequence[str], metric: JudgedMetric) -> Iterator[Column]:
    """Columns of a spread, each in the unit that its title takes: levels of the metric, differences, or counts."""
    style = style_for(metric.scale)
    units = {"n": "", RESTS_ON: "", "class": "", "mean": style.unit, "min": style.unit, "max": style.unit}
    for title in titles:
        yield Column(title, units.get(title, style.difference_sign), key=title == "class")


def spread_rows(
    result: StudyResult,
    metric: JudgedMetric,
    cells: Callable[[MetricSpread], Iterable[str]],
    *,
    without_weak: bool,
    with_classes: bool = False,
) -> Iterator[tuple[str, ...]]:
    """A row for each group and selection: what it is, and the cells of what the metric showed there.

    with_classes: only those where the metric has values by class.
    """
    for group in result.groups:
        for judged in group.selections:
            if judged.every.metrics[metric.name].classes or not with_classes:
                found = runs_seen(judged, without_weak).metrics[metric.name]
                yield (*group_cells(group.key), judged.selection.name, *cells(found))


def spread_tables(result: StudyResult, metric: JudgedMetric) -> Iterator[Table]:
    """All runs; where some are weak, also the others alone."""
    yield _overall_table(result, metric, without_weak=False)
    if has_weak(result):
        yield _overall_table(result, metric, without_weak=True)


def _overall_table(result: StudyResult, metric: JudgedMetric, *, without_weak: bool) -> Table:
    titles = ("n", "mean", "sd", "90 % interval of sd", RESTS_ON, "max diff", "min", "max")
    rows = spread_rows(result, metric, lambda found: _spread_cells(found.overall, metric), without_weak=without_weak)
    ending = ", without weak runs" if without_weak else ""
    table = Table(
        name=f"overall-{metric.name}{'-without-weak' if without_weak else ''}",
        title=f"{metric.name}: spread between runs{ending}",
        columns=(*GROUP_COLUMNS, Column("selection", key=True), *spread_columns(titles, metric)),
        rows=tuple(rows),
        notes=(_weak_counts(result),) if without_weak else tuple(_overall_notes(result, metric)),
    )
    return told_what_rests(table)


def _overall_notes(result: StudyResult, metric: JudgedMetric) -> Iterator[str]:
    points = " pts: percentage points." if style_for(metric.scale).difference_sign else ""
    yield f"sd: standard deviation over runs (n - 1). {_INTERVAL} max diff: largest minus smallest run.{points}"
    picked = [f"{one.name} judges the epoch with the best {one.metric}" for one in result.selections if one != FINAL]
    if picked:
        yield f"Selection: {'; '.join(picked)}."
    if metric == result.primary and result.weak is not None:
        yield _weak_note(result)
    if metric == result.primary:
        yield from (_noise_note(group) for group in result.groups if group.noise is not None)
    excluded = sum(
        judged.every.metrics[metric.name].overall.excluded for group in result.groups for judged in group.selections
    )
    if excluded:
        yield f"{count(excluded, 'value')} not finite (NaN or infinite) and left out."


def _noise_note(group: GroupResult) -> str:
    """What the test set does; of other answers than those that the table judges it has a spread of its own."""
    of_the_end = ", by the answers that runs ended with" if group.answers_of_the_end else ""
    return f"{group.key.label}{of_the_end}: {group.noise.sentence if group.noise else ''}"


def _weak_note(result: StudyResult) -> str:
    assert result.weak is not None
    assert result.primary is not None
    if result.weak.below is None:
        return f"{result.weak.reason[0].upper()}{result.weak.reason[1:]}."
    style = style_for(result.primary.scale)
    below = style.with_unit(significant(result.weak.below * style.factor, 3))
    return f"Weak: {result.primary.name} below {below}, {result.weak.reason}. {_weak_counts(result)}"


def _weak_counts(result: StudyResult) -> str:
    weak = [group for group in result.groups if group.selections[0].weak_runs]
    if not weak:
        return "No run is weak."
    parts = [
        f"{len(group.selections[0].weak_runs)} of {len(group.selections[0].runs)} ({group.key.label})" for group in weak
    ]
    return f"Weak runs: {'; '.join(parts)}."


def _spread_cells(spread: Spread, metric: JudgedMetric) -> tuple[str, ...]:
    style = style_for(metric.scale)
    return (
        str(spread.n),
        style.value(spread.mean, spread.sd),
        style.difference(spread.sd),
        interval_cell(spread, style),
        rests_on_cell(spread),
        style.difference(spread.max_difference, spread.sd),
        style.value(spread.minimum, spread.sd),
        style.value(spread.maximum, spread.sd),
    )


def identical_tables(result: StudyResult) -> Iterator[Table]:
    """Distinct weights among identical runs, and Levene's test between levels."""
    yield _identical_table(result)
    yield _levels_table(result)


def _identical_table(result: StudyResult) -> Table:
    metric = result.primary
    columns = (
        *GROUP_COLUMNS,
        Column("seed", key=True),
        Column("runs"),
        Column("initial", group="distinct weights"),
        Column("final", group="distinct weights"),
        *_same_seed_columns(metric),
    )
    title = "Identical runs: do the same seeds give the same weights?"
    if not any(_repeated(group) for group in result.groups):
        return Table("identical", title, columns, (), instead=_never_twice(result))
    rows = tuple(row for group in result.groups for row in _identical_rows(group, metric))
    note = "Runs in one row had everything fixed that their level fixes. 1 distinct: bit for bit the same weights."
    digests = [cell for group in result.groups for same in _repeated(group) for cell in _digest_cells(same)]
    unknown = (NO_DIGEST,) if UNKNOWN in digests else ()
    return Table("identical", title, columns, rows, (note, *unknown))


def _same_seed_columns(metric: JudgedMetric | None) -> tuple[Column, ...]:
    if metric is None:
        return ()
    unit = style_for(metric.scale).difference_sign
    return Column("sd", unit, metric.name), Column("max diff", unit, metric.name)


def _repeated(group: GroupResult) -> list[IdenticalRuns]:
    """Seeds of which two runs can be held against each other."""
    return [same for same in group.identical if same.runs > 1]


def _never_twice(result: StudyResult) -> str:
    """Why nothing is known about identical runs, and what to do about it; empty where nothing finished at all."""
    if not any(group.identical for group in result.groups):
        return ""
    found = (one.next_step for one in result.conditions if one.code == "no-identical-runs")
    step = next(found, more_repeats(result.foreign))
    return f"No seed ran twice, so nothing is known about identical runs; next: {step}."


def _identical_rows(group: GroupResult, metric: JudgedMetric | None) -> Iterator[tuple[str, ...]]:
    spreads = group.selections[0].by_seed(metric.name) if metric else {}
    for same in _repeated(group):
        cells = _same_seed_cells(spreads.get(same.seed), metric)
        yield (*group_cells(group.key), _seed(same), str(same.runs), *_digest_cells(same), *cells)
    once = [same for same in group.identical if same.runs == 1]
    if once:  # one row for all of them, since there is nothing to hold such a run against
        named = _seed(once[0]) if len(once) == 1 else f"each of {len(once)}"
        yield (*group_cells(group.key), named, "1", *(UNKNOWN,) * (2 + len(_same_seed_columns(metric))))


def _seed(same: IdenticalRuns) -> str:
    return "drawn anew" if same.seed is None else str(same.seed)


def _digest_cells(same: IdenticalRuns) -> tuple[str, ...]:
    counts = (same.digest(name) for name in (INITIAL_WEIGHTS, FINAL_WEIGHTS))
    return tuple(UNKNOWN if item is None else _distinct(item.distinct, item.runs, same.runs) for item in counts)


def _distinct(distinct: int, digested: int, runs: int) -> str:
    return str(distinct) if digested == runs else f"{distinct} (of {digested})"


def _same_seed_cells(spread: Spread | None, metric: JudgedMetric | None) -> tuple[str, ...]:
    if metric is None or spread is None:
        return (UNKNOWN,) * len(_same_seed_columns(metric))
    style = style_for(metric.scale)
    return style.difference(spread.sd), style.difference(spread.max_difference, spread.sd)


def _levels_table(result: StudyResult) -> Table:
    unit = style_for(result.primary.scale).difference_sign if result.primary else ""
    columns = (
        *(column for column in GROUP_COLUMNS if column.title != "level"),
        Column("levels", key=True),
        Column("selection", key=True),
        Column("first", unit, "sd"),
        Column("second", unit, "sd"),
        Column("W"),
        Column("p"),
    )
    rows = tuple(_level_cells(item, result) for item in result.levels)
    reasons = dict.fromkeys(f"—: {item.why_not}." for item in result.levels if item.why_not)
    note = "Levene's test, centred at medians, weak runs included: a small p says that the two levels differ in spread."
    return Table("levels", "Does fixing more make the spread smaller?", columns, rows, (note, *reasons))


def _level_cells(item: LevelComparison, result: StudyResult) -> tuple[str, ...]:
    assert result.primary is not None
    style = style_for(result.primary.scale)
    return (
        item.approach,
        item.config,
        item.environment,
        f"{item.level_a} / {item.level_b}",
        item.selection,
        style.difference(item.sd_a),
        style.difference(item.sd_b),
        UNKNOWN if item.test is None else significant(item.test.statistic, 3),
        UNKNOWN if item.test is None else p_value(item.test.p),
    )


def time_tables(result: StudyResult) -> Iterator[Table]:
    """Seconds, also without weak runs where there are some, and epochs."""
    yield _convergence_table(result, without_weak=False)
    if has_weak(result):
        yield _convergence_table(result, without_weak=True)
    yield _epochs_table(result)


def _convergence_table(result: StudyResult, *, without_weak: bool) -> Table:
    titles = (("mean", "s"), ("Diff", "s"), ("RelDiff", "%"), ("RelSDev", "%"))
    columns = [Column(title, unit, judged.name) for judged in result.selections for title, unit in titles]
    rows = tuple(
        (
            *group_cells(group.key),
            *(cell for judged in group.selections for cell in _time_cells(runs_seen(judged, without_weak))),
        )
        for group in result.groups
        if group.finished
    )
    return Table(
        name=f"time{'-without-weak' if without_weak else ''}",
        title=f"Seconds to the epoch judged{', without weak runs' if without_weak else ''}",
        columns=(*GROUP_COLUMNS, *columns),
        rows=rows,
        notes=(
            "Seconds from the end of start-up on.",
            "Diff: slowest minus fastest run. RelDiff: Diff over the fastest. RelSDev: sd over mean.",
        ),
    )


def _time_cells(spread: SelectionSpread) -> tuple[str, ...]:
    time = spread.seconds
    return (
        seconds(time.mean),
        seconds(time.max_difference),
        share_of_size(time.relative_difference),
        share_of_size(time.relative_sd),
    )


def _epochs_table(result: StudyResult) -> Table:
    titles = (("mean", ""), ("min", ""), ("max", ""), ("RelSDev", "%"))
    columns = [Column(title, unit, judged.name) for judged in result.selections for title, unit in titles]
    rows = tuple(
        (*group_cells(group.key), *(cell for judged in group.selections for cell in _epoch_cells(judged.every.epochs)))
        for group in result.groups
        if any(judged.every.epochs.n for judged in group.selections)
    )
    note = (
        "How many led to the epoch judged, it included: epoch 9 of a training that counts from 0 is its tenth. Steps "
        "where it numbers steps, lines where it numbers nothing."
    )
    return Table("epochs", "Epochs to the epoch judged", (*GROUP_COLUMNS, *columns), rows, (note,))


def _epoch_cells(epochs: Spread) -> tuple[str, ...]:
    return (
        whole(epochs.mean),
        whole(epochs.minimum),
        whole(epochs.maximum),
        share_of_size(epochs.relative_sd),
    )
