"""The tables of the seeds: ranges (section 4.4), Table 9, and the change behind Figure 3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Final

from isorun.analysis.agreements.agreement import Agreement
from isorun.analysis.spreads.spread import spread
from isorun.report.numbers import UNKNOWN, fixed, p_value
from isorun.report.tables import Column, Table
from isorun.zoo.studies.tacl18.environment_tables import DECIMALS
from isorun.zoo.studies.tacl18.measured import METRICS
from isorun.zoo.studies.tacl18.published import AGREEMENTS, RANGES
from isorun.zoo.studies.tacl18.seeds_study import Change, SeedRuns

__all__ = ["agreement_table", "change_table", "range_table"]

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
