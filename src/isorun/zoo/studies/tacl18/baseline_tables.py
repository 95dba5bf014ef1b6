"""Tables 1, 2 and 3: the data, and the published systems with the baseline that learns nothing among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from isorun.report.numbers import UNKNOWN, fixed
from isorun.report.tables import Column, Table
from isorun.study.records import RunRecord
from isorun.zoo.studies.tacl18.environment_tables import DECIMALS
from isorun.zoo.studies.tacl18.measured import METRICS, used_made_data
from isorun.zoo.studies.tacl18.published import BASELINE, DATA_SETS, SYSTEMS, Split, System, gains

__all__ = ["Baseline", "baselines", "data_table", "system_tables"]

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
    splits: Mapping[str, Split]
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


def _split(name: str, values: Mapping[str, float]) -> Split:
    return Split(*(int(values[f"{name}_{what}"]) for what in ("questions", "positive", "negative")))


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


def _size_texts(split: Split | None) -> tuple[str, ...]:
    if split is None:
        return (UNKNOWN,) * 3
    return tuple(f"{number:,}" for number in (split.questions, split.positive, split.negative))


def system_tables(found: Sequence[Baseline]) -> Iterator[Table]:
    """Table 2 in its two versions and Table 3; our baseline stands where the systems rise above it."""
    ours = {item.data: item for item in found}
    for data, systems in SYSTEMS.items():
        columns = [Column("model", key=True), *map(Column, METRICS)]
        columns += [Column(metric, group="gain over the best before") for metric in METRICS]
        notes = (*_notes(ours.get(data)), *_MISPRINTS.get(data, ()))
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


def _notes(ours: Baseline | None) -> tuple[str, ...]:
    if ours is None:
        return ("The baseline was not run on these data.",)
    if ours.made_data:
        return ("Our row is of made data and stands beside no published score.",)
    ap, rr = (fixed(ours.without_stop_words[metric], DECIMALS) for metric in METRICS)
    below = f"{ours.beats('AP')} of {len(SYSTEMS[ours.data])} published systems have a lower AP than the baseline."
    return (below, f"Without stop words the baseline has AP {ap} and RR {rr}.")
