"""Tables 6, 7 and 8: one seed under several thread counts, CPU paths and devices, ours beside the published."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from isorun.report.numbers import UNKNOWN, fixed
from isorun.report.tables import Column, Table
from isorun.zoo.studies.tacl18.effects import largest_difference
from isorun.zoo.studies.tacl18.measured import METRICS, Condition
from isorun.zoo.studies.tacl18.published import DEVICES, MATH_LIBRARIES, THREADS, Score

__all__ = ["DECIMALS", "device_table", "path_table", "shown", "thread_table"]

DECIMALS: Final = 4
"""As trec_eval prints them."""
_DATA: Final = ("TrecQA", "WikiQA")
_WEIGHTS_NOTE: Final = (
    "weights: whether the final weights are bit for bit those of the first row. "
    "A span (low to high) stands where identical runs differ."
)


@dataclass(frozen=True, slots=True)
class _Row:
    """A row: its name, what was in effect, our runs and the published scores by data set."""

    name: str
    used: str
    ours: Mapping[str, Condition]
    theirs: Mapping[str, Score]


def thread_table(found: Sequence[Condition], tests: str = "") -> Table:
    """Table 7, a row a thread count. tests: a sentence on significance, as under the paper's tables."""
    counts = list(dict.fromkeys(condition.environment for condition in found))
    rows = [
        _row(name, found, THREADS.get(_number(name), {}), lambda item: item.environment, _threads) for name in counts
    ]
    had = {_number(name) for name in counts}
    rows += [_Row(_count(number), UNKNOWN, {}, scores) for number, scores in THREADS.items() if number not in had]
    title = "Table 7: effect of the number of threads (one seed)"
    return _table("table-7", title, ("threads", "used"), rows, (_WEIGHTS_NOTE, tests))


def path_table(found: Sequence[Condition], tests: str = "") -> Table:
    """Table 6's factor: our CPU paths, then the paper's libraries and processors, which are others."""
    names = list(dict.fromkeys(_path_name(condition) for condition in found))
    rows = [_row(name, found, {}, _path_name, _hardware) for name in names]
    rows += [_Row(name, "the paper's", {}, scores) for name, scores in MATH_LIBRARIES.items()]
    title = "Table 6: effect of the math path on the CPU (one seed, one thread)"
    return _table("table-6", title, ("path", "processor"), rows, (_WEIGHTS_NOTE, *_other_starts(found), tests))


def device_table(found: Sequence[Condition], tests: str = "") -> Table:
    """Table 8, our hardware first, then the paper's."""
    sides = list(dict.fromkeys(condition.side for condition in found))
    rows = [_row(name, found, {}, lambda item: item.side, _hardware) for name in sides]
    rows += [_Row(name, "the paper's", {}, scores) for name, scores in DEVICES.items()]
    title = "Table 8: effect of the computation hardware (one seed)"
    return _table("table-8", title, ("computation", "hardware"), rows, (_WEIGHTS_NOTE, tests))


def shown(values: Sequence[float]) -> str:
    """A score; the span of scores where identical runs differ."""
    if not values:
        return UNKNOWN
    low, high = fixed(min(values), DECIMALS), fixed(max(values), DECIMALS)
    return low if low == high else f"{low} to {high}"


def _row(
    name: str,
    found: Sequence[Condition],
    theirs: Mapping[str, Score],
    name_of: Callable[[Condition], str],
    used: Callable[[Condition], str],
) -> _Row:
    ours = {item.data: item for item in found if name_of(item) == name}
    return _Row(name, next((used(item) for item in ours.values()), UNKNOWN), ours, theirs)


def _table(name: str, title: str, keys: tuple[str, str], rows: Sequence[_Row], notes: tuple[str, ...]) -> Table:
    columns = [Column(key, key=True) for key in keys]
    for data in _DATA:
        heads = [head for metric in METRICS for head in (metric, f"{metric} published")]
        columns += [Column(head, group=data) for head in (*heads, "weights")]
    cells = [(row.name, row.used, *_scores(row, rows)) for row in rows]
    return Table(name, title, tuple(columns), (*cells, _differences(rows)), tuple(note for note in notes if note))


def _scores(row: _Row, rows: Sequence[_Row]) -> list[str]:
    texts = []
    for data in _DATA:
        for metric in METRICS:
            texts.append(shown(row.ours[data].values(metric)) if data in row.ours else UNKNOWN)
            texts.append(row.theirs[data].text(metric) if data in row.theirs else UNKNOWN)
        texts.append(_weights(row.ours.get(data), rows[0].ours.get(data)))
    return texts


def _weights(condition: Condition | None, first: Condition | None) -> str:
    if condition is None or first is None or not condition.weights or not first.weights:
        return UNKNOWN
    if len(condition.weights) > 1:
        return f"{len(condition.weights)} of {len(condition.runs)} runs"
    if condition is first:
        return "the first"
    return "same" if condition.weights == first.weights else "other"


def _differences(rows: Sequence[_Row]) -> tuple[str, ...]:
    texts = []
    for data in _DATA:
        for metric in METRICS:
            ours = [row.ours[data].mean(metric) for row in rows if data in row.ours]
            theirs = [row.theirs[data].value(metric) for row in rows if data in row.theirs]
            texts += [_difference(ours), _difference(theirs)]
        texts.append("")
    return ("largest difference", "", *texts)


def _difference(values: Sequence[float]) -> str:
    difference = largest_difference(values)
    return UNKNOWN if difference is None else ("0" if difference == 0 else fixed(difference, DECIMALS))


def _path_name(condition: Condition) -> str:
    return "oneDNN off" if condition.side == "CPU without oneDNN" else condition.environment


def _other_starts(found: Sequence[Condition]) -> tuple[str, ...]:
    """Some paths draw other random numbers, so that not the arithmetic alone differs; the reader must know."""
    first = {item.data: item.runs[0].initial for item in reversed(found)}
    other = dict.fromkeys(_path_name(item) for item in found if item.runs[0].initial != first[item.data])
    return (f"Other initial weights with the same seed: {', '.join(other)}.",) if other else ()


def _hardware(condition: Condition) -> str:
    return condition.runs[0].hardware or UNKNOWN


def _threads(condition: Condition) -> str:
    used = sorted({run.threads for run in condition.runs if run.threads is not None})
    return ", ".join(map(str, used)) or UNKNOWN


def _number(name: str) -> int:
    return int(name.split(maxsplit=1)[0])


def _count(number: int) -> str:
    return f"{number} threads"
