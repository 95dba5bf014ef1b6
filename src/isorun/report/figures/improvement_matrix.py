"""Probability of improvement of every pair of approaches, as a matrix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from isorun.analysis.leaderboards.aggregate import Aggregate
from isorun.analysis.pairwise.effects import Improvement
from isorun.errors import InputError
from isorun.report.figures.axes import row_axis
from isorun.report.figures.description import Axis, Cell, Figure, Legend, Shape, Tick
from isorun.report.numbers import UNKNOWN, percentage
from isorun.report.tables import Column, Table

__all__ = ["improvement_matrix"]

_BETTER, _WORSE = 0, 1
_MOST_WRITTEN: Final = 20
"""With more approaches the cells are too narrow for a number."""

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Chance:
    """How often the one is better, and its interval."""

    estimate: float
    interval: tuple[float, float] | None

    @property
    def clear(self) -> bool:
        """Whether the interval leaves even odds out."""
        return self.interval is not None and not self.interval[0] <= 0.5 <= self.interval[1]

    def turned(self) -> _Chance:
        """The same seen from the other side."""
        interval = None if self.interval is None else (1.0 - self.interval[1], 1.0 - self.interval[0])
        return _Chance(1.0 - self.estimate, interval)


def improvement_matrix(
    pairs: Mapping[Pair, Improvement | Aggregate],
    *,
    name: str = "improvement",
    title: str = "How often one run of the row beats one of the column",
) -> Figure:
    """The matrix of the probabilities that the first of a pair is better, the approach that wins most on top.

    One direction of each pair is enough: the other is 1 minus it. Pairs that are not given stay empty.
    """
    chances = _both_ways(pairs)
    names = _best_first(chances)
    return Figure(
        name=name,
        title=title,
        sentence=_sentence(chances, names),
        x=Axis("the column's approach, by its number", -0.5, len(names) - 0.5, _column_ticks(names), rows=True),
        y=row_axis("", [f"{place}. {row}" for place, row in enumerate(names, start=1)]),
        data=_data_table(name, title, chances, names),
        cells=tuple(_cells(chances, names)),
        legend=(
            Legend("the row is better (% of pairs of runs)", Shape.SQUARE, _BETTER),
            Legend("the column is better", Shape.SQUARE, _WORSE),
        ),
    )


def _both_ways(pairs: Mapping[Pair, Improvement | Aggregate]) -> dict[Pair, _Chance]:
    if not pairs:
        raise InputError("there is nothing to draw", found="no pair", allowed="at least one pair of approaches")
    same = next((a for a, b in pairs if a == b), None)
    if same is not None:
        raise InputError("an approach cannot be compared with itself", found=repr(same))
    given = {pair: _Chance(result.estimate, result.ci95) for pair, result in pairs.items()}
    return {(b, a): chance.turned() for (a, b), chance in given.items()} | given


def _best_first(chances: Mapping[Pair, _Chance]) -> list[str]:
    won: dict[str, list[float]] = {}
    for (first, _), chance in chances.items():
        won.setdefault(first, []).append(chance.estimate)
    return sorted(won, key=lambda name: (-sum(won[name]) / len(won[name]), name))


def _column_ticks(names: list[str]) -> tuple[Tick, ...]:
    return tuple(Tick(float(place), str(place + 1)) for place in range(len(names)))


def _cells(chances: Mapping[Pair, _Chance], names: list[str]) -> Iterator[Cell]:
    for row, first in enumerate(names):
        for column, second in enumerate(names):
            chance = chances.get((first, second))
            x, y = (column - 0.5, column + 0.5), (row - 0.5, row + 0.5)
            if first == second:
                yield Cell(x, y, _BETTER, 0.0, f"{first} itself", "–")
            elif chance is not None:
                text = f"{100 * chance.estimate:.0f}" if len(names) <= _MOST_WRITTEN else ""
                series = _BETTER if chance.estimate >= 0.5 else _WORSE
                strength = abs(2.0 * chance.estimate - 1.0)
                yield Cell(x, y, series, strength, _words(first, second, chance), text, chance.clear)


def _words(first: str, second: str, chance: _Chance) -> str:
    words = f"{first} beats {second} in {percentage(chance.estimate)} % of pairs of runs"
    if chance.interval is None:
        return words
    return f"{words} ({percentage(chance.interval[0])} to {percentage(chance.interval[1])} %)"


def _sentence(chances: Mapping[Pair, _Chance], names: list[str]) -> str:
    (first, second), most = max(chances.items(), key=lambda item: item[1].estimate)
    sentence = f"{_words(first, second, most)}."
    if len(names) > 2:
        sentence = f"The clearest pair: {sentence}"
    clear = sum(chance.clear for chance in chances.values()) // 2
    return f"{sentence} Bold: the interval leaves 50 % out ({clear} of {len(chances) // 2} pairs)."


def _data_table(name: str, title: str, chances: Mapping[Pair, _Chance], names: list[str]) -> Table:
    columns = (
        Column("approach", key=True),
        Column("better than", key=True),
        Column("probability", "%"),
        Column("lower", "%"),
        Column("upper", "%"),
    )
    ordered = [(a, b) for a in names for b in names if (a, b) in chances]
    rows = tuple((a, b, percentage(chances[a, b].estimate), *_ends(chances[a, b])) for a, b in ordered)
    return Table(f"data-{name}", f"Data: {title}", columns, rows, folded=True)


def _ends(chance: _Chance) -> tuple[str, str]:
    if chance.interval is None:
        return UNKNOWN, UNKNOWN
    return percentage(chance.interval[0]), percentage(chance.interval[1])
