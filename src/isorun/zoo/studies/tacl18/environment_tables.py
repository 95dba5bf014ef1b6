"""Tables 6, 7 and 8: one seed under several thread counts, CPU paths and devices, ours beside the published.

A section a data set, and only the data sets that have runs of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

from isorun.report.numbers import UNKNOWN, fixed
from isorun.report.tables import Column, Table
from isorun.zoo.studies.tacl18.effects import largest_difference
from isorun.zoo.studies.tacl18.measured import METRICS, Condition
from isorun.zoo.studies.tacl18.published import DEVICES, MATH_LIBRARIES, THREADS, Score

__all__ = ["DECIMALS", "device_table", "path_table", "shown", "thread_number", "thread_table"]

DECIMALS: Final = 4
"""As trec_eval prints them."""
_LARGEST: Final = "largest difference"
_WEIGHTS_NOTE: Final = "weights: whether the final weights are bit for bit those of the data set's first row."
_SPAN_NOTE: Final = "A span (low to high) stands where identical runs differ."


def thread_table(found: Sequence[Condition], tests: str = "") -> Table:
    """Table 7, a row a thread count. tests: a sentence on significance, as under the paper's tables."""
    columns = [Column("data", key=True), Column("threads", key=True), Column("used")]
    columns += [Column(title, group=metric) for metric in METRICS for title in ("ours", "published")]
    rows = [row for data in _data_sets(found) for row in _thread_rows(data, found)]
    title = "Table 7: effect of the number of threads (one seed)"
    return Table("table-7", title, (*columns, Column("weights")), tuple(rows), _notes(found, tests))


def path_table(found: Sequence[Condition], tests: str = "") -> Table:
    """Table 6's factor: our CPU paths, then the paper's libraries and processors, which are others."""
    processors = ", ".join(dict.fromkeys(_hardware(item) for item in found))
    notes = _notes(found, f"Processor of our runs: {processors}.", *_other_starts(found), tests)
    title = "Table 6: effect of the math path on the CPU (one seed, one thread)"
    return Table("table-6", title, _columns("path"), tuple(_beside(found, _path_name, MATH_LIBRARIES)), notes)


def device_table(found: Sequence[Condition], tests: str = "") -> Table:
    """Table 8, our hardware first, then the paper's."""
    title = "Table 8: effect of the computation hardware (one seed)"
    rows = _beside(found, lambda item: f"{item.side}: {_hardware(item)}", DEVICES)
    return Table("table-8", title, _columns("computation"), tuple(rows), _notes(found, tests))


def shown(values: Sequence[float]) -> str:
    """A score; the span of scores where identical runs differ."""
    if not values:
        return UNKNOWN
    low, high = fixed(min(values), DECIMALS), fixed(max(values), DECIMALS)
    return low if low == high else f"{low} to {high}"


def thread_number(environment: str) -> int:
    """How many threads an environment of the threads part asks for."""
    return int(environment.split(maxsplit=1)[0])


def _thread_rows(data: str, found: Sequence[Condition]) -> Iterator[tuple[str, ...]]:
    ours = {thread_number(item.environment): item for item in found if item.data == data}
    theirs = {number: scores[data] for number, scores in THREADS.items() if data in scores}
    first = next(iter(ours.values()))
    for number in sorted({*ours, *theirs}):
        item = ours.get(number)
        pairs = [(_score(item, metric), _printed(theirs.get(number), metric)) for metric in METRICS]
        used = UNKNOWN if item is None else _threads(item)
        yield (data, _count(number), used, *(text for pair in pairs for text in pair), _weights(item, first))
    differences = [(_range(ours.values(), metric), _printed_range(theirs.values(), metric)) for metric in METRICS]
    yield (data, _LARGEST, "", *(text for pair in differences for text in pair), "")


def _columns(name: str) -> tuple[Column, ...]:
    keys = [Column(title, key=True) for title in ("data", "whose", name)]
    return (*keys, *map(Column, METRICS), Column("weights"))


def _beside(
    found: Sequence[Condition], name_of: Callable[[Condition], str], published: Mapping[str, Mapping[str, Score]]
) -> Iterator[tuple[str, ...]]:
    """Our settings and the paper's, which are no pairs: ours with their range, then theirs with theirs."""
    for data in _data_sets(found):
        ours = [item for item in found if item.data == data]
        for item in ours:
            scores = [_score(item, metric) for metric in METRICS]
            yield (data, "ours", name_of(item), *scores, _weights(item, ours[0]))
        yield (data, "ours", _LARGEST, *(_range(ours, metric) for metric in METRICS), "")
        theirs = {name: scores[data] for name, scores in published.items() if data in scores}
        for name, score in theirs.items():
            yield (data, "published", name, *(_printed(score, metric) for metric in METRICS), "")
        yield (data, "published", _LARGEST, *(_printed_range(theirs.values(), metric) for metric in METRICS), "")


def _data_sets(found: Sequence[Condition]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item.data for item in found))


def _score(item: Condition | None, metric: str) -> str:
    return UNKNOWN if item is None else shown(item.values(metric))


def _printed(score: Score | None, metric: str) -> str:
    return UNKNOWN if score is None else score.text(metric)


def _range(found: Collection[Condition], metric: str) -> str:
    return _difference([item.mean(metric) for item in found])


def _printed_range(scores: Collection[Score], metric: str) -> str:
    return _difference([score.value(metric) for score in scores])


def _difference(values: Sequence[float]) -> str:
    difference = largest_difference(values)
    return UNKNOWN if difference is None else ("0" if difference == 0 else fixed(difference, DECIMALS))


def _weights(condition: Condition | None, first: Condition) -> str:
    if condition is None or not condition.weights or not first.weights:
        return UNKNOWN
    if len(condition.weights) > 1:
        return f"{len(condition.weights)} of {len(condition.runs)} runs"
    if condition is first:
        return "the first"
    return "same" if condition.weights == first.weights else "other"


def _notes(found: Sequence[Condition], *others: str) -> tuple[str, ...]:
    spans = any(" to " in _score(item, metric) for item in found for metric in METRICS)
    return (_WEIGHTS_NOTE, *((_SPAN_NOTE,) if spans else ()), *(note for note in others if note))


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


def _count(number: int) -> str:
    return f"{number} {'thread' if number == 1 else 'threads'}"
