"""Tables: of the two cases, what was stated beside what the logs say; of our searches, the paper's Tables 2 to 4."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from isorun.report import UNKNOWN, Column, Table, fixed, significant
from isorun.zoo.data.search_logs import LoggedSearch
from isorun.zoo.paper import OURS, THEIRS
from isorun.zoo.studies.dream.design import COMPARED, METHODS
from isorun.zoo.studies.dream.findings import DAY, HOUR, TARGET, TRIALS, CheckedStatement, RunningAgreement
from isorun.zoo.studies.dream.measured import MeasuredSearch, equal_seconds, replay
from isorun.zoo.studies.dream.published import STRATEGIES, TABLE_2, TABLE_3, TABLE_4, TUNERS, PublishedSearch

__all__ = [
    "ProblemRow",
    "cost_shares",
    "cost_table",
    "expansion_table",
    "in_papers_order",
    "label",
    "overall_tables",
    "problem_rows",
    "running_table",
    "searches_table",
    "stated_and_found",
    "statements_table",
    "time_shares",
]

_LABELS: Final = {"dream": "DREAM"}
Told = TypeVar("Told")


def label(tuner: str) -> str:
    """A tuner as readers know it."""
    return _LABELS.get(tuner, tuner.capitalize())


def in_papers_order(by_tuner: Mapping[str, Told]) -> dict[str, Told]:
    """What is told of each tuner, those of the paper first."""
    known = [tuner for tuner in TUNERS if tuner in by_tuner]
    return {tuner: by_tuner[tuner] for tuner in (*known, *(name for name in by_tuner if name not in known))}


def statements_table(findings: Sequence[CheckedStatement], stated_by: str) -> Table:
    """Every stated number beside the log's, and whether they are equal at the decimals that were stated."""
    columns = (
        Column("case", key=True),
        Column("strategy", key=True),
        Column("quantity", key=True),
        Column(stated_by),
        Column("ours"),
        Column("same", key=True),
    )
    rows = tuple(_statement_row(finding) for finding in findings)
    notes = tuple(
        f"{label(statement.tuner)}, {statement.quantity.name}: {statement.remark}."
        for statement in (finding.statement for finding in findings if finding.present and not finding.agrees)
        if statement.remark
    )
    return Table("stated-and-replayed", "The stated numbers, and what the logs say", columns, rows, notes)


def _statement_row(finding: CheckedStatement) -> tuple[str, ...]:
    statement = finding.statement
    unit = statement.quantity.unit
    name = f"{statement.quantity.name} ({unit})" if unit else statement.quantity.name
    same = ("yes" if finding.agrees else "no") if finding.present else "no log"
    return statement.case, label(statement.tuner), name, *stated_and_found(finding), same


def stated_and_found(finding: CheckedStatement) -> tuple[str, str]:
    """Both numbers as written; a difference that the stated decimals would hide gets one more."""
    statement = finding.statement
    stated = _written(statement.value, statement.decimals)
    if not finding.present:
        return stated, UNKNOWN
    found = _written(finding.measured, statement.decimals)
    hidden = found == stated and not finding.agrees
    return stated, _written(finding.measured, statement.decimals + 1) if hidden else found


def _written(value: float | None, decimals: int) -> str:
    return "never" if value is None else fixed(value, decimals)


def running_table(checked: Sequence[RunningAgreement]) -> Table:
    """How far the authors' own running bests and the replay of their trials are the same."""
    columns = (
        Column("case", key=True),
        Column("strategy", key=True),
        Column("by", key=True),
        Column("points"),
        Column("equal"),
    )
    rows = tuple((best.case, label(best.tuner), best.axis, str(best.points), str(best.equal)) for best in checked)
    notes = ("Where few points are equal, the authors' curve cannot come from the log beside it.",)
    return Table("running-bests", "Running bests the authors kept, against the replay", columns, rows, notes)


def searches_table(case: str, searches: Mapping[str, LoggedSearch], title: str) -> Table:
    """The searches of a case at equal trials and at equal time: the two need not favour the same strategy."""
    group = f"first {TRIALS} trials"
    columns = (
        Column("strategy", key=True),
        Column("first", "%", group),
        Column("best", "%", group),
        Column("improving", "", group),
        Column("took", "h", group),
        Column("best", "%", "within 24 h"),
        Column(f"to {100 * TARGET:g} %", "h", "whole log"),
        Column("trials", "", "whole log"),
        Column("took", "h", "whole log"),
    )
    rows = tuple(_search_row(search) for search in searches.values())
    notes = ("One search for each strategy: how much a second one would differ, the logs cannot say.",)
    return Table(f"case-{case.lower()}", title, columns, rows, notes)


def _search_row(search: LoggedSearch) -> tuple[str, ...]:
    start, whole = replay(search, TRIALS), replay(search, None)
    hit = whole.reached(TARGET)
    return (
        label(search.tuner),
        _percent(start.start),
        _percent(start.best),
        str(len(start.improving)),
        significant(start.elapsed_s / HOUR),
        _percent(whole.best_within(DAY)),
        "never" if hit is None else significant(hit.elapsed_s / HOUR),
        str(len(whole.curve)),
        significant(whole.elapsed_s / HOUR),
    )


def _percent(score: float | None) -> str:
    return UNKNOWN if score is None else fixed(100 * score, 2)


@dataclass(frozen=True, slots=True)
class ProblemRow:
    """A row of Table 2 of ours: the searches of all methods from one initial model; None for one that is not complete.

    equal_s: the time in which the quickest of them made all its trials.
    """

    data: str
    family: str
    seed: int
    searches: tuple[MeasuredSearch | None, ...]
    equal_s: float | None

    @property
    def initial(self) -> float | None:
        """The score of the model that all start from; where trainings vary on a GPU, the mean."""
        found = [search.progress.start for search in self.searches if search]
        return statistics.fmean(found) if found else None

    def each(self, told: Callable[[MeasuredSearch], float | None]) -> tuple[float | None, ...]:
        """A number for each method."""
        return tuple(told(search) if search else None for search in self.searches)


def problem_rows(searches: Iterable[MeasuredSearch]) -> tuple[ProblemRow, ...]:
    """The rows, in the order of the searches; those without any complete search are left out."""
    found: dict[tuple[str, str, int], dict[str, MeasuredSearch]] = {}
    for search in searches:
        if search.method in COMPARED and search.is_complete:
            found.setdefault(search.problem, {})[search.method.name] = search
    return tuple(
        ProblemRow(
            *problem, tuple(by_method.get(method.name) for method in COMPARED), equal_seconds(by_method.values())
        )
        for problem, by_method in found.items()
    )


_Values = tuple[float | None, ...]
_STANDS: Final = "; ".join(f"{method.stands_for}: {method.label}" for method in COMPARED)


def _four(group: str, unit: str = "") -> tuple[Column, ...]:
    return tuple(Column(strategy, unit, group) for strategy in STRATEGIES)


def overall_tables(rows: Sequence[ProblemRow], trials: int) -> tuple[Table, ...]:
    """Table 2 in two halves: by trials, and by time. Of the published rows the means, and all of them folded."""
    keys = (Column("", key=True), Column("data", key=True), Column("family", key=True), Column("seed", key=True))
    first = (*keys, Column("initial", "%"), *_four(f"best in {trials} trials", "%"), *_four("improvement", "points"))
    second = (*keys, *_four("time to reach the target"), *_four("best at equal time", "%"))
    notes = (
        f"In the place of the paper's strategies: {_STANDS}.",
        f"Published: means of {len(TABLE_2)} searches on other data with AutoKeras and pretrained networks.",
    )
    time_notes = (
        "Time: seconds of all trials one after another (published: hours of GPU); a dash: not reached.",
        f"Equal time: when the quickest of the four had made its {trials} trials (published: after 24 hours).",
        "Where runs shared a GPU or CPUs, their seconds include waiting for each other.",
    )
    return (
        Table("table-2", "Table 2. Overall search results", first, tuple(_score_rows(rows)), notes),
        Table(
            "table-2-time", "Table 2. Time to the target, and equal time", second, tuple(_time_rows(rows)), time_notes
        ),
        Table(
            "table-2-published", "Table 2 as published", _PUBLISHED, tuple(map(_published_row, TABLE_2)), folded=True
        ),
    )


def _score_rows(rows: Sequence[ProblemRow]) -> Iterator[tuple[str, ...]]:
    def numbers(row: ProblemRow) -> _Values:
        best = row.each(lambda search: search.progress.best)
        gain = row.each(lambda search: search.progress.best - search.progress.start)
        return (row.initial, *best, *gain)

    yield from _with_means(rows, numbers, lambda values: tuple(map(_percent, values)))
    for data in (*dict.fromkeys(row.data for row in TABLE_2), ""):
        published = [row for row in TABLE_2 if not data or row.data == data]
        means = _means((row.initial, *row.best, *row.improvement) for row in published)
        yield (THEIRS, data or "all", "", "mean", *(_written_share(mean) for mean in means))


def _time_rows(rows: Sequence[ProblemRow]) -> Iterator[tuple[str, ...]]:
    def numbers(row: ProblemRow) -> _Values:
        def at_equal_time(search: MeasuredSearch) -> float | None:
            return None if row.equal_s is None else search.progress.best_within(row.equal_s)

        return (*row.each(_seconds_to_target), *row.each(at_equal_time))

    def written(values: _Values) -> tuple[str, ...]:
        half = len(STRATEGIES)
        times = (UNKNOWN if value is None else f"{significant(value)} s" for value in values[:half])
        return (*times, *map(_percent, values[half:]))

    yield from _with_means(rows, numbers, written, of_means=slice(len(STRATEGIES), None))
    for data in (*dict.fromkeys(row.data for row in TABLE_2), ""):
        published = [row for row in TABLE_2 if not data or row.data == data]
        hours = [_all_or_none(column) for column in zip(*(row.hours for row in published), strict=True)]
        best = _means(row.best_in_24_hours for row in published)
        times = (UNKNOWN if value is None else f"{fixed(value, 2)} h" for value in hours)
        yield (THEIRS, data or "all", "", "mean", *times, *(_written_share(mean) for mean in best))


def _seconds_to_target(search: MeasuredSearch) -> float | None:
    point = search.progress.reached(search.target)
    return None if point is None else point.elapsed_s


def _with_means(
    rows: Sequence[ProblemRow],
    numbers: Callable[[ProblemRow], _Values],
    written: Callable[[_Values], tuple[str, ...]],
    of_means: slice = slice(None),
) -> Iterator[tuple[str, ...]]:
    """Our rows, and below those of a data set their means. of_means: the numbers that every complete search has.

    A mean is over the rows in which all methods are complete, or methods would be compared over other searches. As in
    the paper, a mean time to the target is told only where all of these searches reached it.
    """
    for data in dict.fromkeys(row.data for row in rows):
        own = [row for row in rows if row.data == data]
        found = [numbers(row) for row in own]
        for row, values in zip(own, found, strict=True):
            yield (OURS, row.data, row.family, str(row.seed), *written(values))
        whole = [values for values in found if None not in values[of_means]]
        if whole:
            title = "mean" if len(whole) == len(found) else f"mean of {len(whole)}"
            yield (OURS, data, "", title, *written(tuple(map(_all_or_none, zip(*whole, strict=True)))))


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _means(rows: Iterable[Iterable[float | None]]) -> list[float | None]:
    """Column by column."""
    return [_mean(column) for column in zip(*rows, strict=True)]


def _all_or_none(values: Sequence[float | None]) -> float | None:
    return None if None in values else _mean(values)


def _written_share(percent: float | None) -> str:
    return UNKNOWN if percent is None else fixed(percent, 2)


_PUBLISHED: Final = (
    Column("data", key=True),
    Column("No.", key=True),
    Column("initial", "%"),
    *_four("best in 25 trials", "%"),
    *_four("improvement", "points"),
    *_four("time to reach the target", "h"),
    *_four("best in 24 hours", "%"),
)


def _published_row(row: PublishedSearch) -> tuple[str, ...]:
    numbers = (row.initial, *row.best, *row.improvement, *row.hours, *row.best_in_24_hours)
    return (row.data, str(row.number), *map(_written_share, numbers))


def time_shares(searches: Iterable[MeasuredSearch]) -> dict[str, dict[str, float]]:
    """The shares of watching and of training by data set, where they were told."""
    by_data: dict[str, list[MeasuredSearch]] = {}
    for search in searches:
        by_data.setdefault(search.data, []).append(search)
    shares = {data: cost_shares(own) for data, own in by_data.items()}
    return {data: {"watching": found[0], "training": found[1]} for data, found in shares.items() if found is not None}


def cost_shares(searches: Iterable[MeasuredSearch]) -> tuple[float, float] | None:
    """Of the time of repaired searches, the shares of watching and of all else; None where it was not told."""
    trials = [trial for search in searches if search.method.is_repaired for trial in search.trials]
    told = [(trial.watched_s, trial.seconds) for trial in trials if trial.watched_s is not None]
    whole = sum(seconds for _, seconds in told)
    if not whole:
        return None
    watching = sum(watched or 0.0 for watched, _ in told) / whole
    return watching, 1.0 - watching


def cost_table(searches: Sequence[MeasuredSearch]) -> Table:
    """Table 3: the memory of a search's trainings by method, and what watching takes of the time."""
    columns = (
        Column("", key=True),
        Column("data", key=True),
        *_four("memory", "GB"),
        Column("monitor", "%", "time"),
        Column("choosing", "%", "time"),
        Column("training", "%", "time"),
    )
    rows = [_cost_row(data, searches) for data in dict.fromkeys(search.data for search in searches)]
    rows += [
        (
            THEIRS,
            row.data,
            *(fixed(value, 2) for value in row.gigabytes),
            *(fixed(value, 2) for value in (row.monitor, row.choosing, row.training)),
        )
        for row in TABLE_3
    ]
    notes = (
        "Memory of ours: the mean over trainings of the most that one held.",
        "Choosing happens outside of the trainings, so their records do not tell it.",
    )
    return Table("table-3", "Table 3. Memory, and shares of the time", columns, tuple(rows), notes)


def _cost_row(data: str, searches: Iterable[MeasuredSearch]) -> tuple[str, ...]:
    own = [search for search in searches if search.data == data]
    memory = [
        _mean(
            trial.memory / 1e9 for search in own if search.method is method for trial in search.trials if trial.memory
        )
        for method in COMPARED
    ]
    shares = cost_shares(own)
    times = (UNKNOWN, UNKNOWN) if shares is None else tuple(fixed(100 * share, 2) for share in shares)
    return (OURS, data, *map(_written_share, memory), times[0], UNKNOWN, times[1])


def expansion_table(searches: Sequence[MeasuredSearch]) -> Table:
    """Table 4: the same method on the original and on the expanded space, means over the pairs."""
    columns = (
        Column("", key=True),
        Column("data", key=True),
        Column("method", key=True),
        Column("initial", "%"),
        Column("original", "%", "best score"),
        Column("expanded", "%", "best score"),
        Column("ratio", "", "best score"),
        Column("original", "points", "improvement"),
        Column("expanded", "points", "improvement"),
        Column("ratio", "", "improvement"),
    )
    rows = [row for data in dict.fromkeys(one.data for one in searches) for row in _expansion_rows(data, searches)]
    for row in TABLE_4:
        numbers = _expansion_numbers(row.initial, row.original, row.expanded)
        rows.append((THEIRS, row.data, row.strategy, *numbers))
    notes = (f"In the place of the paper's strategies: {_STANDS}.",)
    return Table("table-4", "Table 4. What the expanded space brings", columns, tuple(rows), notes)


def _expansion_rows(data: str, searches: Iterable[MeasuredSearch]) -> Iterator[tuple[str, ...]]:
    own = {(one.method.name, one.problem): one.progress for one in searches if one.data == data and one.is_complete}
    for method in COMPARED[:-1]:
        wider = METHODS[f"{method.name}-expanded"]
        pairs = [
            (own[method.name, at], own[wider.name, at])
            for name, at in own
            if name == wider.name and (method.name, at) in own
        ]
        if pairs:
            initial = statistics.fmean(first.start for first, _ in pairs)
            bests = (statistics.fmean(one.best for one in side) for side in zip(*pairs, strict=True))
            yield (OURS, data, method.label, *_expansion_numbers(100 * initial, *(100 * best for best in bests)))


def _expansion_numbers(initial: float, original: float, expanded: float) -> tuple[str, ...]:
    gains = original - initial, expanded - initial
    return (
        *(fixed(value, 2) for value in (initial, original, expanded)),
        _ratio(expanded, original),
        *(fixed(value, 2) for value in gains),
        _ratio(gains[1], gains[0]),
    )


def _ratio(above: float, below: float) -> str:
    return fixed(above / below, 2) if below > 0 else UNKNOWN
