"""Tables 1 to 3 and 6 to 8, and the data in all versions, ours beside the published.

Tables 1, 2 and 3 are the data, and the published systems with the baseline that learns nothing among them; Tables 6, 7
and 8 have one seed under several thread counts, CPU paths and devices. Scores on different data cannot be compared.
A section a data set, and only the data sets that have runs of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from isorun.analysis.spreads import Spread, spread
from isorun.report import UNKNOWN, Column, Table, fixed
from isorun.study.records import RunRecord
from isorun.zoo.studies.tacl18.measured import METRICS, ScoredRun, Setting, largest_difference, used_made_data
from isorun.zoo.studies.tacl18.published import (
    BASELINE,
    DATA_SETS,
    DEVICES,
    MATH_LIBRARIES,
    SYSTEMS,
    THREADS,
    Score,
    SplitSizes,
    System,
    gains,
)

__all__ = [
    "DECIMALS",
    "Baseline",
    "Version",
    "baselines",
    "data_table",
    "device_table",
    "path_table",
    "shown",
    "system_tables",
    "thread_number",
    "thread_table",
    "version_rows",
    "version_table",
]

DECIMALS: Final = 4
"""As trec_eval prints them."""
_LARGEST: Final = "largest difference"
_WEIGHTS_NOTE: Final = "weights: whether the final weights are bit for bit those of the data set's first row."
_SPAN_NOTE: Final = "A span (low to high) stands where identical runs differ."


def thread_table(found: Sequence[Setting], tests: str = "") -> Table:
    """Table 7, a row a thread count. tests: a sentence on significance, as under the paper's tables."""
    columns = [Column("data", key=True), Column("threads", key=True), Column("used")]
    columns += [Column(title, group=metric) for metric in METRICS for title in ("ours", "published")]
    rows = [row for data in _data_sets(found) for row in _thread_rows(data, found)]
    title = "Table 7: effect of the number of threads (one seed)"
    return Table("table-7", title, (*columns, Column("weights")), tuple(rows), _notes(found, tests))


def path_table(found: Sequence[Setting], tests: str = "") -> Table:
    """Table 6's factor: our CPU paths, then the paper's libraries and processors, which are others."""
    processors = ", ".join(dict.fromkeys(_hardware(item) for item in found))
    notes = _notes(found, f"Processor of our runs: {processors}.", *_other_starts(found), tests)
    title = "Table 6: effect of the math path on the CPU (one seed, one thread)"
    return Table("table-6", title, _columns("path"), tuple(_beside(found, _path_name, MATH_LIBRARIES)), notes)


def device_table(found: Sequence[Setting], tests: str = "") -> Table:
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


def _thread_rows(data: str, found: Sequence[Setting]) -> Iterator[tuple[str, ...]]:
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
    found: Sequence[Setting], name_of: Callable[[Setting], str], published: Mapping[str, Mapping[str, Score]]
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


def _data_sets(found: Sequence[Setting]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item.data for item in found))


def _score(item: Setting | None, metric: str) -> str:
    return UNKNOWN if item is None else shown(item.values(metric))


def _printed(score: Score | None, metric: str) -> str:
    return UNKNOWN if score is None else score.text(metric)


def _range(found: Collection[Setting], metric: str) -> str:
    return _difference([item.mean(metric) for item in found])


def _printed_range(scores: Collection[Score], metric: str) -> str:
    return _difference([score.value(metric) for score in scores])


def _difference(values: Sequence[float]) -> str:
    difference = largest_difference(values)
    return UNKNOWN if difference is None else ("0" if difference == 0 else fixed(difference, DECIMALS))


def _weights(setting: Setting | None, first: Setting) -> str:
    if setting is None or not setting.weights or not first.weights:
        return UNKNOWN
    if len(setting.weights) > 1:
        return f"{len(setting.weights)} of {len(setting.runs)} runs"
    if setting is first:
        return "the first"
    return "same" if setting.weights == first.weights else "other"


def _notes(found: Sequence[Setting], *others: str) -> tuple[str, ...]:
    spans = any(" to " in _score(item, metric) for item in found for metric in METRICS)
    return (_WEIGHTS_NOTE, *((_SPAN_NOTE,) if spans else ()), *(note for note in others if note))


def _path_name(setting: Setting) -> str:
    return "oneDNN off" if setting.side == "CPU without oneDNN" else setting.environment


def _other_starts(found: Sequence[Setting]) -> tuple[str, ...]:
    """Some paths draw other random numbers, so that not the arithmetic alone differs; the reader must know."""
    first = {item.data: item.runs[0].initial for item in reversed(found)}
    other = dict.fromkeys(_path_name(item) for item in found if item.runs[0].initial != first[item.data])
    return (f"Other initial weights with the same seed: {', '.join(other)}.",) if other else ()


def _hardware(setting: Setting) -> str:
    return setting.runs[0].hardware or UNKNOWN


def _threads(setting: Setting) -> str:
    used = sorted({run.threads for run in setting.runs if run.threads is not None})
    return ", ".join(map(str, used)) or UNKNOWN


def _count(number: int) -> str:
    return f"{number} {'thread' if number == 1 else 'threads'}"


_SPLITS: Final = ("train", "dev", "test")
_OUR_ROW: Final = "idf-weighted sum, ours"
_NAMES: Final[Mapping[str, tuple[str, str]]] = {
    "TrecQA raw": ("table-2-raw", "Table 2: published systems on TrecQA raw, and the baseline"),
    "TrecQA clean": ("table-2-clean", "Table 2: published systems on TrecQA clean, and the baseline"),
    "WikiQA": ("table-3", "Table 3: published systems on WikiQA, and the baseline"),
}
_MISPRINTS: Final = {
    "WikiQA": ("Gains are computed from the scores; for Rao et al. (2016) the paper prints 0.0080 in AP.",),
}


@dataclass(frozen=True, slots=True)
class Baseline:
    """What the idf sum reaches on a data set, with and without stop words, and how large the splits are."""

    data: str
    scores: Mapping[str, float]
    without_stop_words: Mapping[str, float | None]
    splits: Mapping[str, SplitSizes]
    made_data: bool = False

    def beats(self, metric: str) -> int:
        """How many published systems lie below; none on made data, which they never saw."""
        return (
            0
            if self.made_data
            else sum(system.score.value(metric) < self.scores[metric] for system in SYSTEMS[self.data])
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        printed = BASELINE.get(self.data)
        return {
            "data": self.data,
            "ap": self.scores["AP"],
            "rr": self.scores["RR"],
            "ap_without_stop_words": self.without_stop_words["AP"],
            "rr_without_stop_words": self.without_stop_words["RR"],
            "published_ap": None if printed is None else printed.value("AP"),
            "published_rr": None if printed is None else printed.value("RR"),
            "systems": len(SYSTEMS[self.data]),
            "systems_below_ap": self.beats("AP"),
            "splits": {
                name: {"questions": split.questions, "positive": split.positive, "negative": split.negative}
                for name, split in self.splits.items()
            },
        }


def baselines(records: Sequence[RunRecord]) -> tuple[Baseline, ...]:
    """The finished baseline runs, one a data set."""
    found: dict[str, Baseline] = {}
    for record in records:
        if all(name in record.results for name in METRICS.values()) and record.cell.approach in SYSTEMS:
            found.setdefault(record.cell.approach, _baseline(record))
    return tuple(found.values())


def _baseline(record: RunRecord) -> Baseline:
    values = record.results
    plain = {metric: values[name] for metric, name in METRICS.items()}
    without = {metric: values.get(f"{name}_without_stop_words") for metric, name in METRICS.items()}
    splits = {name: _split(name, values) for name in _SPLITS if f"{name}_questions" in values}
    return Baseline(record.cell.approach, plain, without, splits, used_made_data([record]))


def _split(name: str, values: Mapping[str, float]) -> SplitSizes:
    return SplitSizes(*(int(values[f"{name}_{what}"]) for what in ("questions", "positive", "negative")))


def data_table(found: Sequence[Baseline]) -> Table:
    """Table 1, with our copies of the data beside the published sizes."""
    ours = {"TrecQA raw": "TrecQA", "WikiQA": "WikiQA"}
    sizes = {ours[item.data]: item.splits for item in found if item.data in ours}
    columns = [Column("data", key=True), Column("split", key=True)]
    titles = ("questions", "positive", "negative")
    columns += [Column(title, group=group) for group in ("ours", "published") for title in titles]
    rows = [
        (data, name, *_size_texts(sizes.get(data, {}).get(name)), *_size_texts(split))
        for data, splits in DATA_SETS.items()
        for name, split in splits.items()
    ]
    return Table("table-1", "Table 1: the data sets", tuple(columns), tuple(rows))


def _size_texts(split: SplitSizes | None) -> tuple[str, ...]:
    if split is None:
        return (UNKNOWN,) * 3
    return tuple(f"{number:,}" for number in (split.questions, split.positive, split.negative))


def system_tables(found: Sequence[Baseline]) -> Iterator[Table]:
    """Table 2 in its two versions and Table 3; our baseline stands where the systems rise above it."""
    ours = {item.data: item for item in found}
    for data, systems in SYSTEMS.items():
        columns = [Column("model", key=True), *map(Column, METRICS)]
        columns += [Column(metric, group="gain over the best before") for metric in METRICS]
        notes = (*_system_notes(ours.get(data)), *_MISPRINTS.get(data, ()))
        yield Table(*_NAMES[data], tuple(columns), tuple(_rows(data, systems, ours.get(data))), notes)


def _rows(data: str, systems: Sequence[System], ours: Baseline | None) -> Iterator[tuple[str, ...]]:
    added = {metric: gains(systems, metric) for metric in METRICS}
    place = _place(systems, ours, data)
    for number, system in enumerate(systems):
        if number == place:
            yield from _baseline_rows(data, ours)
        scores = [system.score.text(metric) for metric in METRICS]
        yield (system.name, *scores, *(_gain(added[metric][number], system, metric) for metric in METRICS))
    if place == len(systems):
        yield from _baseline_rows(data, ours)


def _place(systems: Sequence[System], ours: Baseline | None, data: str) -> int:
    """Before the first system of the rest that is above throughout: the paper puts its baseline there."""
    printed = BASELINE.get(data)
    ours_level = 0.0 if ours is None or ours.made_data else ours.scores["AP"]
    level = ours_level if printed is None else printed.value("AP")
    below = [number for number, system in enumerate(systems) if system.score.value("AP") < level]
    return below[-1] + 1 if below else 0


def _baseline_rows(data: str, ours: Baseline | None) -> Iterator[tuple[str, ...]]:
    printed = BASELINE.get(data)
    if printed is not None:
        yield ("idf-weighted sum, published", *(printed.text(metric) for metric in METRICS), "", "")
    texts = [UNKNOWN if ours is None else fixed(ours.scores[metric], DECIMALS) for metric in METRICS]
    yield (_OUR_ROW, *texts, "", "")


def _gain(gain: float | None, system: System, metric: str) -> str:
    return "" if gain is None else f"{gain:.{system.score.decimals(metric)}f}"


def _system_notes(ours: Baseline | None) -> tuple[str, ...]:
    if ours is None:
        return ("The baseline was not run on these data.",)
    if ours.made_data:
        return ("Our row is of made data and stands beside no published score.",)
    ap, rr = (fixed(ours.without_stop_words[metric], DECIMALS) for metric in METRICS)
    below = f"{ours.beats('AP')} of {len(SYSTEMS[ours.data])} published systems have a lower AP than the baseline."
    return (below, f"Without stop words the baseline has AP {ap} and RR {rr}.")


@dataclass(frozen=True, slots=True)
class Version:
    """The scores on one version over its seeds, by metric."""

    name: str
    scores: dict[str, Spread]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        parts = {
            metric.lower(): {"n": seen.n, "mean": seen.mean, "sd": seen.sd, "min": seen.minimum, "max": seen.maximum}
            for metric, seen in self.scores.items()
        }
        return {"data": self.name, **parts}


def version_rows(runs: Sequence[ScoredRun]) -> tuple[Version, ...]:
    """The runs by version, in the order in which they come."""
    names = dict.fromkeys(run.data for run in runs)
    return tuple(
        Version(name, {metric: spread(run.value(metric) for run in runs if run.data == name) for metric in METRICS})
        for name in names
    )


def version_table(found: Sequence[Version]) -> Table:
    """A row a version."""
    columns = [Column("data", key=True), Column("seeds")]
    columns += [Column(title, group=metric) for metric in METRICS for title in ("mean", "sd", "min", "max")]
    rows = [
        (item.name, str(item.scores["AP"].n), *(text for metric in METRICS for text in _texts(item.scores[metric])))
        for item in found
    ]
    note = (
        "The paper's tables are of WikiQA and of TrecQA raw with TRAIN-ALL. "
        "Clean leaves out questions whose answers have one label only."
    )
    return Table(
        "data-versions", "Section 2.3: the model on all versions of the data", tuple(columns), tuple(rows), (note,)
    )


def _texts(seen: Spread) -> list[str]:
    return [fixed(number, DECIMALS) for number in (seen.mean, seen.sd, seen.minimum, seen.maximum)]
