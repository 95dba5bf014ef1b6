"""Critical-difference diagram: mean ranks, and bars that join approaches which cannot be told apart (Demšar 2006)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from isorun.analysis.leaderboards.compare_many import ManyComparison
from isorun.report.figures.axes import row_axis, value_axis
from isorun.report.figures.cliques import maximal_cliques
from isorun.report.figures.description import Axis, Dot, Figure, Legend, Line, Shape
from isorun.report.numbers import count, fixed, p_value
from isorun.report.tables import Column, Table

__all__ = ["critical_difference"]

_APPROACH, _CLIQUE, _UNIT = 0, 1, 5
_MOST_BARS: Final = 12
_CORRECTIONS: Final = {"holm": "Holm", "bh": "Benjamini and Hochberg"}
_UNIT_ALPHA: Final = 0.05
"""The level of the critical difference that a comparison carries."""

Clique = tuple[str, ...]


def critical_difference(
    compared: ManyComparison,
    *,
    alpha: float = 0.05,
    name: str = "critical-difference",
    title: str = "Mean ranks, and who cannot be told apart",
) -> Figure:
    """The approaches by mean rank, the best on top; below them a bar for each set without a significant difference.

    A dot on a bar is a member. Where the test is Nemenyi's at 0.05, a line as long as the critical difference is
    shown too.
    """
    ranks = dict(sorted(compared.mean_ranks.items(), key=lambda item: (item[1], item[0])))
    alike = [(pair.a, pair.b) for pair in compared.pairs if pair.p_adjusted > alpha]
    cliques = maximal_cliques(list(ranks), alike)
    shown = _largest(cliques)
    unit = compared.critical_difference if compared.post_hoc == "nemenyi" and alpha == _UNIT_ALPHA else None
    return Figure(
        name=name,
        title=title,
        sentence=_sentence(compared, ranks, cliques, alpha),
        x=_rank_axis(compared, unit),
        y=row_axis("", list(_row_names(ranks, len(shown), unit))),
        data=_data_table(name, title, compared),
        lines=(*_drops(ranks, shown), *_bars(ranks, shown), *_unit_line(unit, len(ranks) + len(shown))),
        dots=(*_rank_dots(ranks), *_members(ranks, shown)),
        legend=tuple(_legend(shown)),
    )


def _rank_axis(compared: ManyComparison, unit: float | None) -> Axis:
    """Ranks within blocks go from 1 to the number of approaches; those among all runs, to the number of runs."""
    blocks = compared.test == "friedman"
    ends = [1.0, float(len(compared.mean_ranks))] if blocks else []
    ends += [] if unit is None else [1.0 + unit]
    return value_axis(
        "mean rank (1 is best)" if blocks else "mean rank of runs", [*ends, *compared.mean_ranks.values()]
    )


def _row_names(ranks: Mapping[str, float], bars: int, unit: float | None) -> Iterator[str]:
    yield from (f"{name} ({fixed(rank, 2)})" for name, rank in ranks.items())
    yield from ("" if bar else "not told apart" for bar in range(bars))
    if unit is not None:
        yield f"critical difference {fixed(unit, 2)}"


def _largest(cliques: Sequence[Clique]) -> list[Clique]:
    """Those with most members, in their order, as many as are drawn."""
    kept = sorted(cliques, key=len, reverse=True)[:_MOST_BARS]
    return [clique for clique in cliques if clique in kept]


def _drops(ranks: Mapping[str, float], cliques: Sequence[Clique]) -> Iterator[Line]:
    """A faint line from each approach down to the lowest bar it is a member of."""
    for row, (name, rank) in enumerate(ranks.items()):
        bars = [place for place, clique in enumerate(cliques) if name in clique]
        if bars:
            yield Line(((rank, float(row)), (rank, float(len(ranks) + bars[-1]))), _UNIT, faint=True)


def _bars(ranks: Mapping[str, float], cliques: Sequence[Clique]) -> Iterator[Line]:
    for row, clique in enumerate(cliques, start=len(ranks)):
        ends = (min(ranks[name] for name in clique), max(ranks[name] for name in clique))
        yield Line(tuple((end, float(row)) for end in ends), _CLIQUE)


def _unit_line(unit: float | None, row: int) -> Iterator[Line]:
    if unit is not None:
        yield Line(((1.0, float(row)), (1.0 + unit, float(row))), _UNIT)


def _rank_dots(ranks: Mapping[str, float]) -> Iterator[Dot]:
    for row, (name, rank) in enumerate(ranks.items()):
        yield Dot(rank, float(row), Shape.CIRCLE, _APPROACH, f"{name}: mean rank {fixed(rank, 2)}")


def _members(ranks: Mapping[str, float], cliques: Sequence[Clique]) -> Iterator[Dot]:
    for row, clique in enumerate(cliques, start=len(ranks)):
        words = f"not told apart: {', '.join(clique)}"
        for name in clique:
            yield Dot(ranks[name], float(row), Shape.SQUARE, _CLIQUE, words)


def _legend(cliques: Sequence[Clique]) -> Iterator[Legend]:
    yield Legend("mean rank", Shape.CIRCLE, _APPROACH)
    if cliques:
        yield Legend("a set of approaches of which no two differ significantly", Shape.SQUARE, _CLIQUE)


def _sentence(compared: ManyComparison, ranks: Mapping[str, float], cliques: Sequence[Clique], alpha: float) -> str:
    best = next(iter(ranks))
    rivals = {name for clique in cliques if best in clique for name in clique} - {best}
    differ = sum(pair.p_adjusted <= alpha for pair in compared.pairs)
    sentence = f"{best} has the best mean rank"
    sentence += f"; {count(len(rivals), 'other')} cannot be told from it" if rivals else ", and differs from all others"
    sentence += f". {differ} of {count(len(compared.pairs), 'pair')} differ at {alpha:g} ({_test(compared)})."
    if len(cliques) > _MOST_BARS:
        sentence += f" Drawn are the {_MOST_BARS} largest of {len(cliques)} sets."
    return sentence


def _test(compared: ManyComparison) -> str:
    name = compared.post_hoc.title()
    if compared.correction == "none":
        return name
    return f"{name}, corrected by {_CORRECTIONS.get(compared.correction, compared.correction)}"


def _data_table(name: str, title: str, compared: ManyComparison) -> Table:
    columns = (
        Column("a", key=True),
        Column("b", key=True),
        Column("mean rank of a"),
        Column("mean rank of b"),
        Column("p"),
        Column("p adjusted"),
    )
    ranks = compared.mean_ranks
    rows = tuple(
        (pair.a, pair.b, fixed(ranks[pair.a], 2), fixed(ranks[pair.b], 2), p_value(pair.p), p_value(pair.p_adjusted))
        for pair in compared.pairs
    )
    return Table(f"data-{name}", f"Data: {title}", columns, rows, folded=True)
