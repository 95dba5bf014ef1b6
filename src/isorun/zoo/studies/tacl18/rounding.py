"""Section 4.6: which orders change when scores are rounded, and how many digits the seeds support."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import comb
from typing import Any, Final

from isorun.analysis.agreements.shared_runs import RankChange, SupportedDigits, rank_changes, rounded, supported_digits
from isorun.report.numbers import UNKNOWN
from isorun.report.tables import Column, Table
from isorun.zoo.studies.tacl18.measured import METRICS
from isorun.zoo.studies.tacl18.published import DEVICES, MATH_LIBRARIES, SYSTEMS, THREADS, Score
from isorun.zoo.studies.tacl18.seeds_study import SeedRuns

__all__ = ["Rounding", "digits_table", "published_roundings", "rounding_table", "seed_digits", "seed_roundings"]

_EXAMPLES: Final = ((0.7484, 0.7486), (0.7485, 0.7487))
"""The paper's own: how a difference may round, and the two results that its model gave."""


@dataclass(frozen=True, slots=True)
class Rounding:
    """A list of scores and what rounding them does. told_apart: pairs that differ before; changed: their fate after."""

    source: str
    metric: str
    scores: int
    decimals: int
    told_apart: int
    changed: tuple[RankChange, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "source": self.source,
            "metric": self.metric,
            "scores": self.scores,
            "decimals": self.decimals,
            "told_apart": self.told_apart,
            "tied": len(self.changed),
            "pairs": [change.to_json() for change in self.changed[:20]],
        }


def published_roundings() -> tuple[Rounding, ...]:
    """The paper's lists, each rounded to one decimal fewer than printed."""
    return tuple(
        _rounding(source, metric, {name: score.value(metric) for name, score in scores.items()}, decimals)
        for (source, scores, decimals), metric in product(_published_lists(), METRICS)
    )


def seed_roundings(found: Sequence[SeedRuns], decimals: int = 3) -> tuple[Rounding, ...]:
    """Our seeds, rounded as the papers of Table 2 report."""
    return tuple(
        _rounding(f"our seeds, {item.data}, {side}", metric, dict(_named_values(item, side, metric)), decimals)
        for item in found
        for side, metric in product(item.sides, METRICS)
    )


def seed_digits(found: Sequence[SeedRuns]) -> dict[tuple[str, str, str], SupportedDigits]:
    """How many digits the seeds support, by data set, side and metric; nothing where there is one seed only."""
    return {
        (item.data, side, metric): supported_digits(item.values(side, metric))
        for item in found
        for side, metric in product(item.sides, METRICS)
        if len(item.sides[side]) > 1
    }


def rounding_table(found: Sequence[Rounding]) -> Table:
    """The lists in which rounding ties anything; the paper's example and the other lists stand below."""
    titles = ("scores", "rounded to", "pairs told apart", "tied by rounding")
    columns = (Column("source", key=True), Column("metric", key=True), *map(Column, titles))
    tied = [item for item in found if item.changed]
    rows = [(item.source, item.metric, str(item.scores), f"{item.decimals} decimals", *_fate(item)) for item in tied]
    return Table("rounding", "Section 4.6: orders that rounding hides", columns, tuple(rows), tuple(_notes(found)))


def _notes(found: Sequence[Rounding]) -> Iterator[str]:
    yield from (_example(*pair) for pair in _EXAMPLES)
    first = next((item for item in found if item.changed), None)
    if first is not None:
        pair = first.changed[0]
        yield f"A tied pair: {pair.better} is above {pair.worse} in {first.metric} of {first.source}."
    untied = "; ".join(f"{item.source}, {item.metric}" for item in found if not item.changed)
    if untied:
        yield f"Nothing is tied in: {untied}."


def digits_table(found: Mapping[tuple[str, str, str], SupportedDigits]) -> Table:
    """The digits that are supported by the seeds, beside the four that trec_eval prints."""
    keys = [Column(title, key=True) for title in ("data", "side", "metric")]
    titles = ("seeds", "mean as supported", "decimals of the mean", "decimals of one run")
    rows = [(*key, *_digit_texts(digits)) for key, digits in found.items()]
    note = "The last decimal is the one in which the standard error (of one run: the standard deviation) begins."
    return Table(
        "digits", "Section 4.6: digits that the seeds support", (*keys, *map(Column, titles)), tuple(rows), (note,)
    )


def _published_lists() -> Iterator[tuple[str, Mapping[str, Score], int]]:
    for data, table, decimals in (
        ("TrecQA raw", "Table 2", 2),
        ("TrecQA clean", "Table 2", 2),
        ("WikiQA", "Table 3", 3),
    ):
        yield f"{table}, {data}", {system.name: system.score for system in SYSTEMS[data]}, decimals
    threads = {f"{number} threads": row for number, row in THREADS.items()}
    for table, rows in (("Table 6", MATH_LIBRARIES), ("Table 7", threads), ("Table 8", DEVICES)):
        for data in ("TrecQA", "WikiQA"):
            yield f"{table}, {data}", {name: row[data] for name, row in rows.items()}, 3


def _named_values(item: SeedRuns, side: str, metric: str) -> Iterator[tuple[str, float]]:
    for seed, run in item.sides[side].items():
        yield f"seed {seed}", run.value(metric)


def _rounding(source: str, metric: str, values: Mapping[str, float], decimals: int) -> Rounding:
    changed = rank_changes(values, decimals) if len(values) > 1 else ()
    equal = comb(len(values), 2) - sum(a != b for a, b in _pairs(list(values.values())))
    return Rounding(source, metric, len(values), decimals, comb(len(values), 2) - equal, changed)


def _pairs(values: Sequence[float]) -> Iterator[tuple[float, float]]:
    for place, value in enumerate(values):
        yield from ((value, other) for other in values[place + 1 :])


def _fate(item: Rounding) -> tuple[str, str]:
    return (str(item.told_apart), str(len(item.changed)))


def _example(low: float, high: float) -> str:
    ends = [rounded(value, 3) for value in (low, high)]
    before, after = round(high - low, 4), float(ends[1] - ends[0])
    fate = f"{after / before:.0f} times the difference" if after else "no difference at all"
    return f"{low} and {high} become {ends[0]} and {ends[1]}: {fate}."


def _digit_texts(digits: SupportedDigits) -> tuple[str, ...]:
    places = [UNKNOWN if number is None else str(number) for number in (digits.decimals, digits.single_run_decimals)]
    return (str(digits.n), digits.text, *places)
