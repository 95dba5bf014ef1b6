"""Many approaches: critical differences (Demšar 2006), probabilities of improvement, performance profiles."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final

from isorun.analysis.leaderboards.across_tasks import PerformanceProfile
from isorun.analysis.leaderboards.aggregate import Aggregate
from isorun.analysis.leaderboards.compare_many import ManyComparison
from isorun.analysis.pairwise.effects import Improvement
from isorun.errors import InputError
from isorun.report import UNKNOWN, Column, Table, count, fixed, p_value, percentage, significant
from isorun.report.figures.axes import row_axis, value_axis
from isorun.report.figures.description import Axis, Band, Dot, Figure, Legend, Line, Tick, Tile
from isorun.report.figures.distributions import SHARE_TICKS
from isorun.report.figures.groups import first_lines, left_out
from isorun.report.figures.marks import ESTIMATE, GREY

__all__ = ["critical_difference", "improvement_matrix", "maximal_cliques", "performance_profiles"]

_APPROACH, _CLIQUE = 0, 1
_BAR, _BAR_STRENGTH = 0.3, 0.35
_MOST_BARS: Final = 12
_CORRECTIONS: Final = {"holm": "Holm", "bh": "Benjamini and Hochberg"}
_UNIT_ALPHA: Final = 0.05
"""The level of the critical difference that a comparison carries."""
Clique = tuple[str, ...]
_BETTER, _WORSE = 0, 1
_MOST_WRITTEN: Final = 20
"""With more approaches the tiles are too narrow for a number."""
Pair = tuple[str, str]
_MOST_BANDS: Final = 4
"""More bands than these hide the lines; the table has the limits of all."""


def maximal_cliques(names: Sequence[str], alike: Collection[tuple[str, str]]) -> list[tuple[str, ...]]:
    """All sets of two or more names whose pairs are all alike and that no further name can join.

    Members and sets are in the order of `names`. The algorithm is that of Bron and Kerbosch (1973) with a pivot.
    """
    near: dict[str, set[str]] = {name: set() for name in names}
    for first, second in alike:
        near[first].add(second)
        near[second].add(first)
    place = {name: number for number, name in enumerate(names)}
    found = [sorted(place[name] for name in clique) for clique in _grown(frozenset(), set(names), set(), near)]
    return [tuple(names[number] for number in clique) for clique in sorted(found) if len(clique) > 1]


def _grown(
    clique: frozenset[str], candidates: set[str], finished: set[str], near: Mapping[str, Set[str]]
) -> Iterator[frozenset[str]]:
    """The maximal cliques that hold `clique`, some of the candidates, and none of the finished ones."""
    if not candidates and not finished:
        yield clique
        return
    pivot = max(candidates | finished, key=lambda name: len(near[name] & candidates))
    for name in candidates - near[pivot]:
        yield from _grown(clique | {name}, candidates & near[name], finished & near[name], near)
        candidates = candidates - {name}
        finished = finished | {name}


def critical_difference(
    compared: ManyComparison,
    *,
    alpha: float = 0.05,
    name: str = "critical-difference",
    title: str = "Mean ranks, and who cannot be told apart",
) -> Figure:
    """The approaches by mean rank, the best on top; below them a bar for each set without a significant difference.

    A square on a bar is a member. Where the test is Nemenyi's at 0.05, a line as long as the critical difference is
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
        sentence=_ranks_sentence(compared, ranks, cliques, alpha),
        x=_rank_axis(compared, unit),
        y=row_axis("", list(_row_names(ranks, len(shown), unit))),
        data=_ranks_data_table(name, title, compared),
        tiles=tuple(_bars(ranks, shown)),
        lines=(*_drops(ranks, shown), *_unit_line(unit, len(ranks) + len(shown))),
        dots=(*_rank_dots(ranks), *_members(ranks, shown)),
        legend=tuple(_legend(shown, unit)),
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
    """A dashed line from each approach down to the lowest bar it is a member of."""
    for row, (name, rank) in enumerate(ranks.items()):
        bars = [place for place, clique in enumerate(cliques) if name in clique]
        if bars:
            yield Line(((rank, float(row)), (rank, float(len(ranks) + bars[-1]))), GREY, dashed=True, faint=True)


def _bars(ranks: Mapping[str, float], cliques: Sequence[Clique]) -> Iterator[Tile]:
    for row, clique in enumerate(cliques, start=len(ranks)):
        ends = (min(ranks[name] for name in clique), max(ranks[name] for name in clique))
        yield Tile(ends, (row - _BAR, row + _BAR), _CLIQUE, _BAR_STRENGTH, f"not told apart: {', '.join(clique)}")


def _unit_line(unit: float | None, row: int) -> Iterator[Line]:
    if unit is not None:
        yield Line(((1.0, float(row)), (1.0 + unit, float(row))), GREY)


def _rank_dots(ranks: Mapping[str, float]) -> Iterator[Dot]:
    for row, (name, rank) in enumerate(ranks.items()):
        yield Dot(rank, float(row), ESTIMATE, _APPROACH, f"{name}: mean rank {fixed(rank, 2)}")


def _members(ranks: Mapping[str, float], cliques: Sequence[Clique]) -> Iterator[Dot]:
    for row, clique in enumerate(cliques, start=len(ranks)):
        words = f"not told apart: {', '.join(clique)}"
        for name in clique:
            yield Dot(ranks[name], float(row), ESTIMATE, _CLIQUE, words)


def _legend(cliques: Sequence[Clique], unit: float | None) -> Iterator[Legend]:
    yield Legend("mean rank", ESTIMATE, _APPROACH)
    if cliques:
        yield Legend("a set of approaches of which no two differ significantly", None, _CLIQUE, area=True)
        yield Legend("its members, below their mean ranks", None, GREY, dashed=True)
    if unit is not None:
        yield Legend("critical difference: an interval of ranks", None, GREY)


def _ranks_sentence(
    compared: ManyComparison, ranks: Mapping[str, float], cliques: Sequence[Clique], alpha: float
) -> str:
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


def _ranks_data_table(name: str, title: str, compared: ManyComparison) -> Table:
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
        sentence=_matrix_sentence(chances, names),
        x=Axis("the column's approach, by its number", -0.5, len(names) - 0.5, _column_ticks(names), rows=True),
        y=row_axis("", [f"{place}. {row}" for place, row in enumerate(names, start=1)]),
        data=_matrix_data_table(name, title, chances, names),
        tiles=tuple(_tiles(chances, names)),
        legend=(
            Legend("the row is better (% of pairs of runs)", None, _BETTER, area=True),
            Legend("the column is better", None, _WORSE, area=True),
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


def _tiles(chances: Mapping[Pair, _Chance], names: list[str]) -> Iterator[Tile]:
    for row, first in enumerate(names):
        for column, second in enumerate(names):
            chance = chances.get((first, second))
            x, y = (column - 0.5, column + 0.5), (row - 0.5, row + 0.5)
            if first == second:
                yield Tile(x, y, _BETTER, 0.0, f"{first} itself", "–")
            elif chance is not None:
                text = f"{100 * chance.estimate:.0f}" if len(names) <= _MOST_WRITTEN else ""
                series = _BETTER if chance.estimate >= 0.5 else _WORSE
                strength = abs(2.0 * chance.estimate - 1.0)
                yield Tile(x, y, series, strength, _words(first, second, chance), text, chance.clear)


def _words(first: str, second: str, chance: _Chance) -> str:
    words = f"{first} beats {second} in {percentage(chance.estimate)} % of pairs of runs"
    if chance.interval is None:
        return words
    return f"{words} ({percentage(chance.interval[0])} to {percentage(chance.interval[1])} %)"


def _matrix_sentence(chances: Mapping[Pair, _Chance], names: list[str]) -> str:
    (first, second), most = max(chances.items(), key=lambda item: item[1].estimate)
    sentence = f"{_words(first, second, most)}."
    if len(names) > 2:
        sentence = f"The clearest pair: {sentence}"
    clear = sum(chance.clear for chance in chances.values()) // 2
    return f"{sentence} Bold: the interval leaves 50 % out ({clear} of {len(chances) // 2} pairs)."


def _matrix_data_table(name: str, title: str, chances: Mapping[Pair, _Chance], names: list[str]) -> Table:
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


def performance_profiles(
    profiles: Mapping[str, PerformanceProfile],
    score: str = "score",
    *,
    name: str = "performance-profiles",
    title: str = "Share of runs above every score",
) -> Figure:
    """The profiles of named approaches, as `isorun.analysis.leaderboards.across_tasks` gives them."""
    if not any(profile.thresholds for profile in profiles.values()):
        raise InputError("there is nothing to draw", found="no profile", allowed="at least one approach")
    ordered = {approach: _in_order(profile) for approach, profile in profiles.items()}
    shown = first_lines(ordered)
    banded = shown if len(ordered) <= _MOST_BANDS else []
    bands = [band for _, profile, series, _ in banded for band in _bands(profile, series)]
    return Figure(
        name=name,
        title=title,
        sentence=_profile_sentence(bool(bands)) + left_out(len(profiles), "approach"),
        x=value_axis(score, [threshold for profile in profiles.values() for threshold in profile.thresholds]),
        y=Axis("share of runs above", -0.03, 1.03, SHARE_TICKS),
        data=_profile_data_table(name, title, ordered),
        lines=tuple(Line(_line(profile), series, dotted=dotted) for _, profile, series, dotted in shown),
        bands=tuple(bands),
        legend=tuple(Legend(approach, None, series, dotted=dotted) for approach, _, series, dotted in shown),
    )


def _in_order(profile: PerformanceProfile) -> PerformanceProfile:
    """The profile with its thresholds from low to high."""
    places = sorted(range(len(profile.thresholds)), key=lambda place: profile.thresholds[place])

    def taken(values: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(values[place] for place in places)

    return PerformanceProfile(
        taken(profile.thresholds),
        taken(profile.shares),
        None if profile.lower is None else taken(profile.lower),
        None if profile.upper is None else taken(profile.upper),
    )


def _line(profile: PerformanceProfile) -> tuple[tuple[float, float], ...]:
    """Steps: the share changes at a score, and nowhere between two."""
    return tuple((score, profile.shares[place]) for score, place in _stepped(profile.thresholds))


def _bands(profile: PerformanceProfile, series: int) -> Iterator[Band]:
    lower, upper = profile.lower, profile.upper
    if lower is not None and upper is not None:
        yield Band(tuple((score, lower[place], upper[place]) for score, place in _stepped(profile.thresholds)), series)


def _stepped(thresholds: Sequence[float]) -> Iterator[tuple[float, int]]:
    """Where a step line turns: each threshold with the place before it, then with its own."""
    for place, score in enumerate(thresholds):
        if place:
            yield score, place - 1
        yield score, place


def _profile_sentence(banded: bool) -> str:
    sentence = (
        "A line that is higher everywhere belongs to the better approach; lines that cross rank differently by score"
    )
    return f"{sentence}; bands hold 95 % at each score." if banded else f"{sentence}."


def _profile_data_table(name: str, title: str, profiles: Mapping[str, PerformanceProfile]) -> Table:
    columns = (
        Column("approach", key=True),
        Column("score"),
        Column("runs above", "%"),
        Column("lower", "%"),
        Column("upper", "%"),
    )
    rows = tuple(
        (approach, significant(threshold, 4), percentage(share), _limit(profile.lower, at), _limit(profile.upper, at))
        for approach, profile in profiles.items()
        for at, (threshold, share) in enumerate(zip(profile.thresholds, profile.shares, strict=True))
    )
    return Table(f"data-{name}", f"Data: {title}", columns, rows, folded=True)


def _limit(limits: tuple[float, ...] | None, at: int) -> str:
    return UNKNOWN if limits is None else percentage(limits[at])
