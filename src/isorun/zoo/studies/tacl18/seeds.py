"""Sections 4.4 and 4.6: many seeds on two sides, and what rounding hides.

Their spread, the change from side to side, Table 9, which orders change when scores are rounded, and how many digits
the seeds support.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import comb
from typing import Any, Final

import numpy as np

from isorun.analysis.agreements.agreement import Agreement, agreement
from isorun.analysis.agreements.shared_runs import RankChange, SupportedDigits, rank_changes, rounded, supported_digits
from isorun.analysis.pairwise import paired_t
from isorun.analysis.samples import Pairs
from isorun.analysis.spreads import spread
from isorun.report import UNKNOWN, Column, Table, fixed, p_value
from isorun.zoo.studies.tacl18.measured import METRICS, Effect, ScoredRun, effect
from isorun.zoo.studies.tacl18.published import AGREEMENTS, DEVICES, MATH_LIBRARIES, RANGES, SYSTEMS, THREADS, Score
from isorun.zoo.studies.tacl18.tables import DECIMALS

__all__ = [
    "Change",
    "Rounding",
    "SeedRuns",
    "SeedScore",
    "agreement_table",
    "change_table",
    "changes",
    "digits_table",
    "published_roundings",
    "range_table",
    "rounding_table",
    "seed_agreements",
    "seed_digits",
    "seed_effects",
    "seed_roundings",
    "seed_runs",
]

_FEWEST: int = 3
"""Fewer seeds have no order to agree on."""


@dataclass(frozen=True, slots=True)
class SeedScore:
    """What one seed scored, where nothing else of its run is known."""

    ap: float
    rr: float

    def value(self, metric: str) -> float:
        """The value behind "AP" or "RR"."""
        return self.ap if metric == "AP" else self.rr


@dataclass(frozen=True, slots=True)
class SeedRuns:
    """The runs of one data set, by side and then seed, the first identical run of each."""

    data: str
    sides: Mapping[str, Mapping[int, ScoredRun | SeedScore]]

    @property
    def pair_of_sides(self) -> tuple[str, str] | None:
        """The first two sides that share a seed; None where there is one side only."""
        return next((pair for pair in combinations(self.sides, 2) if self.shared(*pair)), None)

    def shared(self, *sides: str) -> tuple[int, ...]:
        """The seeds that all of these sides have, in the order of the first."""
        first, *others = (self.sides[side] for side in sides)
        return tuple(seed for seed in first if all(seed in other for other in others))

    def values(self, side: str, metric: str, seeds: Sequence[int] | None = None) -> list[float]:
        """The metric over these seeds, or over all that the side has."""
        runs = self.sides[side]
        return [runs[seed].value(metric) for seed in (runs if seeds is None else seeds)]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        sides = {
            side: [{"seed": seed, "ap": run.ap, "rr": run.rr} for seed, run in runs.items()]
            for side, runs in self.sides.items()
        }
        return {"data": self.data, "sides": sides}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> SeedRuns:
        """What was written: the scores alone."""
        sides = {
            side: {run["seed"]: SeedScore(run["ap"], run["rr"]) for run in runs} for side, runs in told["sides"].items()
        }
        return cls(told["data"], sides)


@dataclass(frozen=True, slots=True)
class Change:
    """One metric when the side changes and the seed stays. p: of the paired t-test, None where there is none."""

    data: str
    metric: str
    sides: tuple[str, str]
    seeds: tuple[int, ...]
    pairs: Pairs
    p: float | None

    @property
    def values(self) -> list[float]:
        """Second side minus first, a value a seed."""
        return [float(value) for value in -self.pairs.differences]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        values = self.values
        return {
            "data": self.data,
            "metric": self.metric,
            "from": self.sides[0],
            "to": self.sides[1],
            "n": len(values),
            "mean": float(np.mean(values)),
            "min": min(values),
            "max": max(values),
            "higher": sum(value > 0 for value in values),
            "lower": sum(value < 0 for value in values),
            "paired_t_p": self.p,
        }


def seed_runs(runs: Sequence[ScoredRun]) -> tuple[SeedRuns, ...]:
    """The runs by data set, side and seed, in the order in which they come."""
    found: dict[str, dict[str, dict[int, ScoredRun]]] = {}
    for run in runs:
        found.setdefault(run.data, {}).setdefault(run.side, {}).setdefault(run.seed, run)
    return tuple(SeedRuns(data, sides) for data, sides in found.items())


def seed_effects(found: Sequence[SeedRuns]) -> tuple[Effect, ...]:
    """The range over the seeds for every data set, side and metric."""
    effects = []
    for item in found:
        for side, metric in product(item.sides, METRICS):
            printed = RANGES.get((item.data, side))
            published = None if printed is None else printed.value(metric)
            values = item.values(side, metric)
            effects.append(effect(f"seed ({side})", item.data, metric, values, published, seeds=True))
    return tuple(one for one in effects if one is not None)


def seed_agreements(item: SeedRuns) -> tuple[Agreement, ...]:
    """Kendall and Spearman between all metrics and sides; a side's own metrics over its own seeds.

    Lists are named "AP CPU", "RR CPU", "AP GPU", "RR GPU" as in Table 9. None where fewer than three seeds are shared.
    """
    sides = item.pair_of_sides or tuple(item.sides)[:1]
    lists = [(metric, side) for side in sides for metric in METRICS]
    found = []
    for (metric, side), (other_metric, other_side) in combinations(lists, 2):
        seeds = item.shared(side, other_side)
        if len(seeds) >= _FEWEST:
            first, second = item.values(side, metric, seeds), item.values(other_side, other_metric, seeds)
            found.append(agreement(first, second, a=f"{metric} {side}", b=f"{other_metric} {other_side}"))
    return tuple(found)


def changes(item: SeedRuns) -> tuple[Change, ...]:
    """The change of both metrics from the first side to the second; none where there is one side only."""
    sides = item.pair_of_sides
    return () if sides is None else tuple(_change(item, sides, metric) for metric in METRICS)


def _change(item: SeedRuns, sides: tuple[str, str], metric: str) -> Change:
    seeds = item.shared(*sides)
    first, second = (np.asarray(item.values(side, metric, seeds), dtype=np.float64) for side in sides)
    alone = tuple(str(seed) for seed in {**item.sides[sides[0]], **item.sides[sides[1]]} if seed not in seeds)
    pairs = Pairs(first, second, alone)
    return Change(item.data, metric, sides, seeds, pairs, paired_t(pairs.differences).p)


_COEFFICIENTS: Final[Mapping[str, str]] = {"kendall": "Kendall's tau", "spearman": "Spearman's rho"}
_PUBLISHED_SIDES: Final = ("CPU", "GPU")


def range_table(found: Sequence[SeedRuns]) -> Table:
    """The spread over the seeds, a row for each data set, side and metric."""
    columns = (
        *(Column(title, key=True) for title in ("data", "side", "metric")),
        *(Column(title) for title in ("seeds", "mean", "sd", "min", "max", "range", "range published")),
    )
    rows = [row for item in found for row in _range_rows(item)]
    note = "A range grows with the number of seeds; the published ones are of 200."
    return Table("seed-ranges", "Section 4.4: scores over the seeds", columns, tuple(rows), (note,))


def _range_rows(item: SeedRuns) -> Iterator[tuple[str, ...]]:
    for side, metric in product(item.sides, METRICS):
        seen, printed = spread(item.values(side, metric)), RANGES.get((item.data, side))
        numbers = (seen.mean, seen.sd, seen.minimum, seen.maximum, seen.max_difference)
        published = UNKNOWN if printed is None else printed.text(metric)
        yield (item.data, side, metric, str(seen.n), *(fixed(number, DECIMALS) for number in numbers), published)


def agreement_table(found: Mapping[str, Sequence[Agreement]], sides: tuple[str, str | None]) -> Table:
    """Table 9 in its layout: the upper triangle of AP and RR on both sides, for both coefficients.

    sides: the first and the second side of ours; None where there was no second one.
    """
    names = [f"{metric} {side}" for side in (sides[0], sides[1] or _PUBLISHED_SIDES[1]) for metric in METRICS]
    columns = [Column(title, key=True) for title in ("data", "coefficient", "ranking")]
    columns += [Column(title, group=name) for name in names[1:] for title in ("ours", "published")]
    rows = [
        (data, _COEFFICIENTS[coefficient], names[place], *_triangle_row(found[data], data, coefficient, names, place))
        for data, coefficient, place in product(found, _COEFFICIENTS, range(len(names) - 1))
    ]
    return Table(
        "table-9", "Table 9: agreement of the rankings of seeds", tuple(columns), tuple(rows), _notes(found, sides)
    )


def _triangle_row(
    found: Sequence[Agreement], data: str, coefficient: str, names: Sequence[str], place: int
) -> Iterator[str]:
    published_names = [f"{metric} {side}" for side in _PUBLISHED_SIDES for metric in METRICS]
    ours = {(item.a, item.b): getattr(item, coefficient).estimate for item in found}
    theirs = AGREEMENTS.get(data, {}).get(coefficient, {})
    for other in range(1, len(names)):
        if other <= place:
            yield from ("", "")
            continue
        yield fixed(ours.get((names[place], names[other])), DECIMALS)
        yield fixed(theirs.get((published_names[place], published_names[other])), DECIMALS)


def _notes(found: Mapping[str, Sequence[Agreement]], sides: tuple[str, str | None]) -> tuple[str, ...]:
    tested = [one.p for items in found.values() for item in items for one in (item.kendall, item.spearman)]
    sure = sum(p is not None and p < 0.01 for p in tested)
    notes = [f"p < 0.01 in {sure} of our {len(tested)} coefficients; in all of the paper's."]
    if sides[1] is not None and sides[1] != _PUBLISHED_SIDES[1]:
        notes.append(f"The second side is {sides[1]}; the paper's is the GPU.")
    return tuple(notes)


def change_table(found: Sequence[Change]) -> Table:
    """What changes with the side when the seed stays."""
    titles = ("seeds", "higher", "lower", "mean change", "lowest", "highest", "paired t, p")
    columns = (*(Column(title, key=True) for title in ("data", "metric", "change")), *map(Column, titles))
    rows = [_change_row(item) for item in found]
    note = "The paper finds no difference of the means (p far above 0.05) where single seeds change much."
    return Table("changes", "Figure 3 in numbers: the same seed on the other side", columns, tuple(rows), (note,))


def _change_row(item: Change) -> tuple[str, ...]:
    values = item.values
    mean, low, high = sum(values) / len(values), min(values), max(values)
    counts = (len(values), sum(value > 0 for value in values), sum(value < 0 for value in values))
    texts = (*map(str, counts), *(fixed(value, DECIMALS) for value in (mean, low, high)), p_value(item.p))
    return (item.data, item.metric, f"{item.sides[0]} to {item.sides[1]}", *texts)


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
    return Table(
        "rounding", "Section 4.6: orders that rounding hides", columns, tuple(rows), tuple(_rounding_notes(found))
    )


def _rounding_notes(found: Sequence[Rounding]) -> Iterator[str]:
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
