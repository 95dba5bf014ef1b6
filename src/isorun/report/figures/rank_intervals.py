"""The places of many approaches with their intervals; who is not told apart lies in one band."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from isorun.analysis.leaderboards.leaderboard import Leaderboard, Standing
from isorun.report import UNKNOWN, Column, Table, count
from isorun.report.figures.axes import row_axis
from isorun.report.figures.description import Axis, Dot, Figure, Legend, Line, Tick, Tile
from isorun.report.figures.leaderboards import maximal_cliques
from isorun.report.figures.marks import ESTIMATE, GREY

__all__ = ["rank_figure", "tied_letters"]

_ALPHA: Final = 0.05
_RANKED, _BAND = 0, 1
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
_MOST_TICKS: Final = 12


def _ranked(board: Leaderboard) -> list[Standing]:
    return [one for one in board.standings if one.ranked.rank is not None]


def _bands(board: Leaderboard) -> list[tuple[str, ...]]:
    """Sets of ranked approaches of whom no two are told apart by the tests of all pairs, the best first."""
    names = [one.approach for one in _ranked(board)]
    alike = [(pair.a, pair.b) for pair in board.compared.pairs if not pair.p_adjusted <= _ALPHA]
    return maximal_cliques(names, [pair for pair in alike if set(pair) <= set(names)])


def tied_letters(board: Leaderboard) -> Mapping[str, str]:
    """For each ranked approach the letters of its bands: those that share a letter are not told apart."""
    bands = _bands(board)
    return {
        one.approach: "".join(_letter(place) for place, band in enumerate(bands) if one.approach in band)
        for one in _ranked(board)
    }


def _letter(place: int) -> str:
    return _LETTERS[place] if place < len(_LETTERS) else f"[{place + 1}]"


def rank_figure(board: Leaderboard, others: Sequence[str] = ()) -> Figure | None:
    """A row for each approach, the best on top; below a line those that cannot be ranked. None where nobody can be.

    others: further ones that cannot be ranked, which the board has not.
    """
    ranked = _ranked(board)
    if not ranked:
        return None
    others = [*(one.approach for one in board.standings if one.ranked.rank is None), *others]
    title = f"Places by {board.metric or 'score'}, with 95\N{NO-BREAK SPACE}% intervals"
    return Figure(
        name="ranks",
        title=title,
        sentence=_sentence(board, ranked, others),
        x=_axis(len(ranked)),
        y=row_axis("", [*(f"{one.approach} ({count(one.units, 'unit')})" for one in ranked), *others]),
        data=_data(title, ranked, others, tied_letters(board)),
        tiles=tuple(_tiles(board, ranked)),
        lines=(*_intervals(ranked), *_line_below(ranked, others)),
        dots=tuple(_dots(ranked)),
        legend=tuple(_legend(board, others)),
    )


def _axis(ranked: int) -> Axis:
    step = max(1, -(-ranked // _MOST_TICKS))
    ticks = tuple(Tick(float(place), str(place)) for place in range(1, ranked + 1, step))
    return Axis("rank (1 is best)", 0.4, ranked + 0.6, ticks)


def _tiles(board: Leaderboard, ranked: Sequence[Standing]) -> Iterator[Tile]:
    """A band where its members stand below each other; letters name the others."""
    places = {one.approach: place for place, one in enumerate(ranked)}
    for number, band in enumerate(_bands(board)):
        rows = sorted(places[name] for name in band)
        if rows[-1] - rows[0] == len(rows) - 1:
            words = f"band {_letter(number)}, not told apart: {', '.join(band)}"
            yield Tile((0.45, len(ranked) + 0.55), (rows[0] - 0.46, rows[-1] + 0.46), _BAND, 0.22, words)


def _intervals(ranked: Sequence[Standing]) -> Iterator[Line]:
    for place, one in enumerate(ranked):
        if one.ranked.interval is not None:
            low, high = one.ranked.interval
            yield Line(((float(low), float(place)), (float(high), float(place))), _RANKED)


def _line_below(ranked: Sequence[Standing], others: Sequence[str]) -> Iterator[Line]:
    if others:
        at = len(ranked) - 0.5
        yield Line(((0.4, at), (len(ranked) + 0.6, at)), GREY, dashed=True)


def _dots(ranked: Sequence[Standing]) -> Iterator[Dot]:
    for place, one in enumerate(ranked):
        assert one.ranked.rank is not None
        ends = "" if one.ranked.interval is None else " ({} to {})".format(*one.ranked.interval)
        words = f"{one.approach}: rank {one.ranked.rank}{ends}"
        yield Dot(float(one.ranked.rank), float(place), ESTIMATE, _RANKED, words)


def _legend(board: Leaderboard, others: Sequence[str]) -> Iterator[Legend]:
    yield Legend("rank and its interval", ESTIMATE, _RANKED)
    if _bands(board):
        yield Legend("not told apart", None, _BAND, area=True)
    if others:
        yield Legend("below: not rankable", None, GREY, dashed=True)


def _sentence(board: Leaderboard, ranked: Sequence[Standing], others: Sequence[str]) -> str:
    apart = len(_bands(board))
    said = f"{len(ranked)} ranked; "
    said += f"{count(apart, 'band')} of those that are not told apart." if apart else "all are told apart."
    return said + (f" {len(others)} not rankable: a single draw says nothing about spread." if others else "")


def _data(title: str, ranked: Sequence[Standing], others: Sequence[str], letters: Mapping[str, str]) -> Table:
    columns = (Column("approach", key=True), Column("rank"), Column("from"), Column("to"), Column("band", key=True))
    rows = [
        (
            one.approach,
            str(one.ranked.rank),
            *((UNKNOWN, UNKNOWN) if one.ranked.interval is None else map(str, one.ranked.interval)),
            letters[one.approach],
        )
        for one in ranked
    ]
    rows += [(name, "not rankable", UNKNOWN, UNKNOWN, "") for name in others]
    return Table("data-ranks", f"Data: {title}", columns, tuple(rows), folded=True)
