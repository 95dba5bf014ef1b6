"""Leaderboards of many approaches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from isorun.analysis.evidence import voided
from isorun.analysis.leaderboards.compare_many import PairOutcome
from isorun.analysis.leaderboards.leaderboard import Leaderboard, Standing
from isorun.report import UNKNOWN, Column, Table, View, count, fixed, p_value, percentage, significant, whole
from isorun.report.comparisons import ROWS_COUNT, draw_sentences

__all__ = ["leaderboard_view"]

_MANY = 15
_ALPHA = 0.05
_ASKED: Final = {
    "brunner-munzel": "whether a run of one beats a run of the other more often than not",
    "mann-whitney": "whether the runs of both are distributed alike",
    "dunn": "whether ranks among all runs differ on average",
    "nemenyi": "whether ranks within tasks or pairs differ on average",
    "conover": "whether ranks within tasks or pairs differ on average",
    "wilcoxon": "whether differences within tasks or pairs lie to both sides of zero alike",
}


def leaderboard_view(board: Leaderboard) -> View:
    """Who leads and whether that is sure, every approach, and every pair."""
    return View(tuple(_verdict(board)), (_standings(board), _pairs(board)), board.all_conditions)


def _verdict(board: Leaderboard) -> Iterator[str]:
    leading = [standing for standing in board.standings if standing.ranked.rank == 1]
    void = voided(board.conditions)
    if void is not None:
        yield f"Nobody is called the best: {void.message}; next: {void.next_step}."
        yield _evidence(board)
        return
    if not leading:
        yield "No approach can be ranked: each has a single run on some task."
    elif len(leading) > 1:
        yield _shared(leading, board)
    else:
        yield _first(leading[0], board)
    yield _test(board)
    if len(leading) == 1:
        yield from _two_questions(leading[0], board)
    yield _evidence(board)
    yield from draw_sentences(board.conditions)


def _evidence(board: Leaderboard) -> str:
    runs, units = (sum(getattr(one, name) for one in board.standings) for name in ("n", "units"))
    if board.unit == "row":
        return ROWS_COUNT
    counted = f" of {count(units, board.unit)} count as {units}" if units < runs else ""
    return f"Evidence: {count(runs, 'run')}{counted}."


def _first(standing: Standing, board: Leaderboard) -> str:
    """What the interval of the leader's rank supports, and no more."""
    others = sum(one.ranked.rank is not None for one in board.standings) - 1
    leads = f"{standing.approach} ranks first by {board.options.statistic}"
    if not others:
        return f"{leads}: no other approach can be ranked."
    _, high = standing.ranked.interval or (1, 1 + others)
    if high == 1:
        against = "the other one" if others == 1 else f"all {others} others"
        return f"{leads}, and its runs tell it apart from {against} (95 % interval of its rank: 1)."
    like = "the other one" if others == 1 else f"{high - 1} of {others} others"
    return f"{leads}, but its runs do not tell it apart from {like} (95 % interval of its rank: 1 to {high})."


def _shared(leading: Sequence[Standing], board: Leaderboard) -> str:
    """Who leads together, and from how many of the rest that is not told apart."""
    names = " and ".join(one.approach for one in leading)
    shared = f"{names} share the first rank by {board.options.statistic}"
    others = sum(one.ranked.rank is not None for one in board.standings) - len(leading)
    high = max((one.ranked.interval or (1, others + len(leading)))[1] for one in leading)
    like = high - len(leading)
    if like <= 0:
        return f"{shared}."
    them = "the other one" if others == 1 else f"{like} of {others} others"
    return f"{shared}, but their runs do not tell them apart from {them} (95 % intervals of their ranks: 1 to {high})."


def _test(board: Leaderboard) -> str:
    compared = board.compared
    over = f" over {count(len(board.tasks), 'task')}" if len(board.tasks) > 1 else ""
    if compared.outcome.p is None:
        return f"All runs are equal{over}: there is nothing to test."
    differ = sum(pair.p_adjusted < _ALPHA for pair in compared.pairs)
    test = {"kruskal-wallis": "Kruskal-Wallis", "friedman": "Friedman"}[compared.test]
    return (
        f"{test}{over}: chi-square {fixed(compared.outcome.statistic, 2)}, p {_p(compared.outcome.p)}; "
        f"{differ} of {count(len(compared.pairs), 'pair')} {'differs' if differ == 1 else 'differ'} at {_ALPHA:g} "
        f"({compared.post_hoc})."
    )


def _two_questions(leader: Standing, board: Leaderboard) -> Iterator[str]:
    """Why the rank of the first and the pairs that it is in may say opposite things: each is a test of its own."""
    own = [pair for pair in board.compared.pairs if leader.approach in (pair.a, pair.b)]
    tested = [pair.p_adjusted < _ALPHA for pair in own if not math.isnan(pair.p_adjusted)]
    if leader.ranked.interval is None or not tested:
        return
    apart = leader.ranked.interval[1] == 1
    if (apart and not all(tested)) or (not apart and all(tested)):
        how = "bootstrap" if board.options.interval == "percentile" else "Yuen's tests"
        asks = _ASKED.get(board.compared.post_hoc, "another question")
        yield (
            f"The two ask different things, and here they disagree: the interval of the rank asks whether the "
            f"{board.options.statistic} of {leader.approach} is better ({how}), the pairs ask {asks} "
            f"({board.compared.post_hoc}). Go by the one that was meant beforehand."
        )


def _p(p: float) -> str:
    return p_value(p) if p < 0.001 else f"= {p_value(p)}"


def _standings(board: Leaderboard) -> Table:
    best = f"expected best of {board.options.best_of}"
    statistic = board.options.statistic
    titles = ("rank", "95 % of rank", "runs", "units", "mean", statistic, "95 % interval", "mean rank", best)
    return Table(
        name="standings",
        title=f"{board.metric} ({board.direction} is better)",
        columns=(Column("approach", key=True), *(Column(title) for title in titles)),
        rows=tuple(_row(standing) for standing in board.standings),
        notes=(
            f"Tasks weigh the same. {_intervals(board)}",
            "Mean rank: as the test ranks, low is good. Expected best: of so many runs drawn from those made.",
        ),
    )


def _intervals(board: Leaderboard) -> str:
    if board.options.interval == "percentile":
        return f"Intervals of scores: {board.options.repetitions:,} bootstrap repetitions within tasks."
    return "Intervals of scores: Student's, for few runs; of ranks: by tests of all pairs (Holm)."


def _row(standing: Standing) -> tuple[str, ...]:
    place = standing.ranked
    ranks = UNKNOWN if place.interval is None else "–".join(str(end) for end in place.interval)
    return (
        standing.approach,
        UNKNOWN if place.rank is None else str(place.rank),
        ranks,
        whole(standing.n),
        whole(standing.units),
        significant(standing.mean, 4),
        significant(standing.score.estimate, 4),
        _interval(standing.score.ci95),
        fixed(standing.mean_rank, 2),
        significant(standing.expected_best, 4),
    )


def _interval(interval: tuple[float, float] | None) -> str:
    return UNKNOWN if interval is None else " to ".join(significant(end, 4) for end in interval)


def _pairs(board: Leaderboard) -> Table:
    titles = (Column("a - b"), Column("p"), Column("p adjusted"), Column("a beats b", "%"), Column("95 % interval"))
    compared = board.compared
    corrected = "which holds for all pairs" if compared.post_hoc == "nemenyi" else f"adjusted by {compared.correction}"
    return Table(
        name="pairs",
        title="every pair",
        columns=(Column("a", key=True), Column("b", key=True), *titles),
        rows=tuple((pair.a, pair.b, *_tested(pair), *_wins(board, pair)) for pair in compared.pairs),
        notes=(
            f"p: {compared.post_hoc} test, {corrected}.",
            "a beats b: the share of pairs of single runs; one that won them all may still lose with more runs.",
        ),
        folded=len(compared.pairs) > _MANY,
    )


def _tested(pair: PairOutcome) -> tuple[str, str, str]:
    p, adjusted = (None if math.isnan(value) else value for value in (pair.p, pair.p_adjusted))
    return significant(pair.difference), p_value(p), p_value(adjusted)


def _wins(board: Leaderboard, pair: PairOutcome) -> tuple[str, str]:
    found = board.improvements[pair.a, pair.b]
    ends = UNKNOWN if found.ci95 is None else "–".join(percentage(end) for end in found.ci95)
    return percentage(found.estimate), ends
