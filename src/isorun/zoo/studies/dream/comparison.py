"""What the searches say about the methods: differences between pairs of searches that start from the same model.

And what the paper does not tell: how much a second search differs from the first, with nothing changed but the seed.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from isorun.analysis.pairwise import paired_t
from isorun.analysis.samples import adjusted
from isorun.report import UNKNOWN, Column, Table, count, fixed, significant
from isorun.zoo.studies.dream.design import COMPARED, METHODS
from isorun.zoo.studies.dream.measured import MeasuredSearch
from isorun.zoo.studies.dream.published import STRATEGIES, TABLE_2, TABLE_4

__all__ = [
    "Contrast",
    "SecondSearches",
    "contrast_sentences",
    "contrasts",
    "contrasts_table",
    "second_searches",
    "seeds_sentence",
    "seeds_table",
]


def _published_gain(strategy: str) -> float:
    """Of the paper's own method over one of AutoKeras's, on the mean of its searches."""
    theirs, other = STRATEGIES.index("DREAM"), STRATEGIES.index(strategy)
    return statistics.fmean(row.best[theirs] - row.best[other] for row in TABLE_2)


def _published_expansion(strategy: str) -> float:
    return statistics.fmean(row.expanded - row.original for row in TABLE_4 if row.strategy == strategy)


_ERROR: Final = 0.05
_QUESTIONS: Final[tuple[tuple[str, str, str, Callable[[], float] | None], ...]] = (
    ("Table 2", "repair", "edits", lambda: _published_gain("AKG")),
    ("Table 2", "repair", "tpe", lambda: _published_gain("AKB")),
    ("Table 2", "repair", "random", lambda: _published_gain("AKH")),
    ("ours", "repair", "edits-expanded", None),
    ("ours", "repair", "tpe-expanded", None),
    ("ours", "repair", "random-expanded", None),
    ("Table 4", "edits-expanded", "edits", lambda: _published_expansion("AKG")),
    ("Table 4", "tpe-expanded", "tpe", lambda: _published_expansion("AKB")),
    ("Table 4", "random-expanded", "random", lambda: _published_expansion("AKH")),
    ("Figure 7", "edits-attached", "edits", None),
    ("Figure 7", "tpe-attached", "tpe", None),
    ("Figure 7", "random-attached", "random", None),
    ("Figure 9", "repair-original", "edits", None),
    ("Figure 9", "repair-original", "tpe", None),
    ("Figure 9", "repair-original", "random", None),
    ("Figure 10", "repair", "shuffled", None),
    ("ours", "repair", "no-prior", None),
)
"""Where the paper asks it, a method, another, and the published difference in points where there is one."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two methods over the searches that both made. difference, interval: of the best score, the first less the second.

    p: that pairs without a difference would differ as much, by Holm's correction for all questions that are asked.
    published: points, where the paper has the number.
    """

    asked_in: str
    first: str
    second: str
    differences: tuple[float, ...]
    interval: tuple[float, float] | None
    p: float | None
    published: float | None

    @property
    def difference(self) -> float:
        """The mean."""
        return statistics.fmean(self.differences)

    @property
    def won(self) -> int:
        """Pairs in which the first was better."""
        return sum(difference > 0 for difference in self.differences)

    @property
    def verdict(self) -> str:
        """Which one is better, where that can be told of all questions together with an error rate of 5 %."""
        if self.p is None:
            return "one pair" if len(self.differences) == 1 else "no spread"
        if self.p >= _ERROR:
            return "cannot be told"
        return "first better" if self.difference > 0 else "second better"

    def to_json(self) -> dict[str, Any]:
        """Scores as fractions; the published difference in points."""
        return {
            "asked_in": self.asked_in,
            "first": self.first,
            "second": self.second,
            "pairs": len(self.differences),
            "won": self.won,
            "differences": list(self.differences),
            "difference": self.difference,
            "ci95": None if self.interval is None else list(self.interval),
            "p_holm": self.p,
            "published_points": self.published,
            "verdict": self.verdict,
        }


def contrasts(searches: Iterable[MeasuredSearch]) -> tuple[Contrast, ...]:
    """Every question of which there is at least one pair of complete searches."""
    best = {(search.method.name, search.problem): search.progress.best for search in searches if search.is_complete}
    found = []
    for asked_in, first, second, published in _QUESTIONS:
        problems = [problem for name, problem in best if name == first and (second, problem) in best]
        differences = tuple(best[first, problem] - best[second, problem] for problem in problems)
        if differences:
            tested = paired_t(differences)
            stated = published() if published else None
            found.append(Contrast(asked_in, first, second, differences, tested.ci95, tested.p, stated))
    return _corrected(found)


def _corrected(found: Sequence[Contrast]) -> tuple[Contrast, ...]:
    """So many questions are asked of the same searches that some would be answered by chance alone."""
    tested = [one.p for one in found if one.p is not None]
    holm = iter(adjusted(tested).tolist() if tested else ())
    return tuple(one if one.p is None else replace(one, p=next(holm)) for one in found)


def contrasts_table(found: Sequence[Contrast]) -> Table:
    """All questions, with intervals over the pairs."""
    columns = (
        Column("asked in", key=True),
        Column("method", key=True),
        Column("against", key=True),
        Column("pairs"),
        Column("won"),
        Column("difference", "points"),
        Column("95 % interval", "points"),
        Column("p, by Holm"),
        Column("published", "points"),
        Column("verdict", key=True),
    )
    rows = tuple(
        (
            one.asked_in,
            METHODS[one.first].label,
            METHODS[one.second].label,
            str(len(one.differences)),
            str(one.won),
            _points(one.difference),
            _interval(one.interval),
            UNKNOWN if one.p is None else significant(one.p, 2),
            UNKNOWN if one.published is None else f"{one.published:+.2f}",
            one.verdict,
        )
        for one in found
    )
    notes = (
        "Both methods of a pair start from the same model, with the same seed; intervals by Student's test of pairs.",
        "An interval speaks of its own question; p and the verdict allow for all of them (at most 5 % err in any).",
        "Published differences are between single searches on other data with pretrained networks: kind, not size.",
        "Counts from the data set that is searched are left out of the prior.",
    )
    return Table("contrasts", "Methods compared by pairs of searches", columns, rows, notes)


def _points(share: float) -> str:
    return f"{100 * share:+.2f}"


def _interval(interval: tuple[float, float] | None) -> str:
    return UNKNOWN if interval is None else f"{_points(interval[0])} to {_points(interval[1])}"


def contrast_sentences(found: Sequence[Contrast]) -> tuple[str, ...]:
    """What the paper's questions come to: its own method against each, then the controls that it does not have."""
    groups = (
        ("Best of all trials, repair against the engines on their own space", ("Table 2",), "repair"),
        ("Against the same on the expanded space from the start (not in the paper)", ("ours",), "repair"),
        ("What the expanded space alone brings", ("Table 4",), ""),
        ("Repair from the given trial on, against the engine going on", ("Figure 7",), ""),
        ("Repair within the original space", ("Figure 9",), ""),
        ("The prior against a shuffled one", ("Figure 10",), ""),
    )
    told = []
    for title, asked, first in groups:
        chosen = [one for one in found if one.asked_in in asked and (not first or one.first == first)]
        if chosen:
            told.append(f"{title}: {'; '.join(map(_told, chosen))}.")
    return tuple(told)


def _told(one: Contrast) -> str:
    names = (
        METHODS[one.second].label
        if one.first == "repair"
        else f"{METHODS[one.first].label} - {METHODS[one.second].label}"
    )
    reach = f" ({_interval(one.interval)})" if one.interval else ""
    published = f", published {one.published:+.1f}" if one.published is not None else ""
    told = f", {one.verdict}" if one.verdict in ("first better", "second better") else ""
    return f"{names} {_points(one.difference)} points{reach} in {count(len(one.differences), 'pair')}{told}{published}"


@dataclass(frozen=True, slots=True)
class SecondSearches:
    """Searches by one method in one family, which differ by the seed alone: the initial model and all draws."""

    data: str
    family: str
    method: str
    best: tuple[float, ...]

    @property
    def reach(self) -> float:
        """From the worst to the best of them."""
        return max(self.best) - min(self.best)


def second_searches(searches: Iterable[MeasuredSearch]) -> tuple[SecondSearches, ...]:
    """Of the methods of Table 2, those with two complete searches or more."""
    compared = {method.name for method in COMPARED}
    found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for search in searches:
        if search.is_complete and search.method.name in compared:
            found[search.data, search.family, search.method.name].append(search.progress.best)
    return tuple(SecondSearches(*key, tuple(best)) for key, best in found.items() if len(best) > 1)


def seeds_table(found: Sequence[SecondSearches]) -> Table:
    """What each search with another seed found."""
    columns = (
        Column("data", key=True),
        Column("family", key=True),
        Column("method", key=True),
        Column("best of each seed", "%"),
        Column("worst to best", "points"),
    )
    rows = tuple(
        (
            one.data,
            one.family,
            METHODS[one.method].label,
            ", ".join(fixed(100 * best, 2) for best in one.best),
            fixed(100 * one.reach, 2),
        )
        for one in found
    )
    notes = ("Nothing differs but the seed, which draws the initial model, the engine's trials and the trainings.",)
    return Table("second-searches", "The same search with another seed (not in the paper)", columns, rows, notes)


def seeds_sentence(found: Sequence[SecondSearches]) -> str:
    """How much a second search differs, beside what the methods differ by; empty where there is no second one."""
    if not found:
        return ""
    reaches = [one.reach for one in found]
    orders = _orders(found)
    same = sum(len(set(order)) == 1 for order in orders.values())
    middle, most = (significant(100 * value) for value in (statistics.median(reaches), max(reaches)))
    return (
        f"A second search with another seed, which the paper does not have: its best differs by {middle} points in "
        f"the median of {len(found)} searches that were repeated, by {most} at most; the best method is the same for "
        f"all seeds in {same} of {count(len(orders), 'case')}."
    )


def _orders(found: Sequence[SecondSearches]) -> dict[tuple[str, str], list[str]]:
    """By data and family, the best method of each seed that all methods have."""
    by_case: dict[tuple[str, str], dict[str, tuple[float, ...]]] = defaultdict(dict)
    for one in found:
        by_case[one.data, one.family][one.method] = one.best
    orders = {}
    for case, methods in by_case.items():
        seeds = min(map(len, methods.values()))
        orders[case] = [max(methods, key=lambda name, at=seed: methods[name][at]) for seed in range(seeds)]  # type: ignore[misc]
    return orders
