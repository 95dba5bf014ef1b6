"""A bisection: what is asked of a range of commits, and from the searches in it to which one changed the result."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from isorun.analysis import Told
from isorun.analysis.evidence import Condition, voided
from isorun.analysis.samples import Interval
from isorun.analysis.sequential.change_search import AbstractChangeSearch, BitSearch, ErrorShares, ScoreSearch
from isorun.study.history import Commit, CommitRange

__all__ = [
    "BEGUN",
    "BITS",
    "DRY_RUN",
    "EQUIVALENT",
    "FOUND",
    "NO_DIFFERENCE",
    "PLANNED",
    "RANGE",
    "SCORE",
    "STOPPED",
    "Bisection",
    "BisectionQuestion",
    "Probed",
    "Stretch",
    "bisection_of",
]

BITS: Final = "bits"
SCORE: Final = "score"
DRY_RUN: Final = "dry run"
FOUND: Final = "found"
RANGE: Final = "range"
NO_DIFFERENCE: Final = "no difference"
EQUIVALENT: Final = "equivalent"
STOPPED: Final = "stopped"
PLANNED: Final = "planned"
BEGUN: Final = "begun"
"""Of a commit whose runs were ended before anything could be said of it."""


@dataclass(frozen=True, slots=True)
class Probed:
    """A commit that was looked at, the ends first. difference: from the good end, in units of the metric.

    run_ids: those of its runs that finished. same_as: a commit before it that holds the same files, so that the runs
    are its runs.
    """

    commit: Commit
    verdict: str
    difference: float | None = None
    interval95: Interval | None = None
    reason: str = ""
    run_ids: tuple[str, ...] = ()
    same_as: Commit | None = None

    @property
    def runs(self) -> int:
        """How many finished."""
        return len(self.run_ids)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            **self.commit.to_json(),
            "verdict": self.verdict,
            "runs": self.runs,
            "run_ids": list(self.run_ids),
            "same_runs_as": None if self.same_as is None else self.same_as.id,
            "difference": self.difference,
            "interval95": None if self.interval95 is None else list(self.interval95),
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Bisection(Told):
    """Which commit changed the result.

    verdict: "found", "range" (one of the candidates), "no difference", "equivalent", "stopped" or "planned". first_bad:
    the commit that was found. judged_by: what bits were told by ("weights", "digests", "numbers"). candidates: the
    commits that may be meant. difference, interval95: what the step from the last good commit to the first bad one
    brought; total, total_interval95: the same of the ends. before, after: what the rest of the range brought on either
    side of it, with intervals. others: further stretches in which something changed. runs: how many were looked at;
    made: those of them that were made now. planned: how many probes halving takes. fewest, most: how many runs that can
    come to. next_steps: commands that go on from here.
    """

    told_as: ClassVar[str] = "bisection"

    good: Commit
    bad: Commit
    what: str
    verdict: str
    first_bad: Commit | None = None
    candidates: tuple[Commit, ...] = ()
    error_rate: float = 0.0
    probes: tuple[Probed, ...] = ()
    runs: int = 0
    made: int = 0
    metric: str = ""
    judged_by: str = ""
    difference: float | None = None
    interval95: Interval | None = None
    total: float | None = None
    total_interval95: Interval | None = None
    before: tuple[float, Interval | None] | None = None
    after: tuple[float, Interval | None] | None = None
    others: tuple[tuple[Commit, Commit], ...] = ()
    ended: str = ""
    stopped: str = ""
    commits: int = 0
    alike: int = 0
    planned: int = 0
    fewest: int = 0
    most: int = 0
    margin: float | None = None
    max_runs: int = 0
    conditions: tuple[Condition, ...] = ()
    next_steps: tuple[str, ...] = ()

    @property
    def found(self) -> bool:
        """Whether the result changed, and where was narrowed down."""
        return self.verdict in {FOUND, RANGE}

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        others = [{"after": after.to_json(), "until": until.to_json()} for after, until in self.others]
        return {
            "good": self.good.to_json(),
            "bad": self.bad.to_json(),
            "what": self.what,
            "metric": self.metric,
            "judged_by": self.judged_by or None,
            "verdict": self.verdict,
            "first_bad": None if self.first_bad is None else self.first_bad.to_json(),
            "candidates": [commit.to_json() for commit in self.candidates],
            "difference": self.difference,
            "interval95": None if self.interval95 is None else list(self.interval95),
            "total_difference": self.total,
            "total_interval95": None if self.total_interval95 is None else list(self.total_interval95),
            "error_rate": self.error_rate,
            "probes": [probe.to_json() for probe in self.probes],
            "runs": self.runs,
            "runs_made": self.made,
            "rest": {"before": _told(self.before), "after": _told(self.after)},
            "other_changes": others,
            "ended": self.ended,
            "stopped": self.stopped,
            "commits": self.commits,
            "planned": {"probes": self.planned, "fewest_runs": self.fewest, "most_runs": self.most},
            "next": list(self.next_steps),
            "warnings": [condition.to_json() for condition in self.conditions],
        }


def _told(found: tuple[float, Interval | None] | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {"difference": found[0], "interval95": None if found[1] is None else list(found[1])}


@dataclass(frozen=True, slots=True)
class BisectionQuestion:
    """What is asked of the runs."""

    what: str
    metric: str | None
    selection: str | None
    alpha: float
    margin: float | None
    max_runs: int
    pair: bool
    at_once: int

    def search(self, row: Sequence[Commit], versions: int, shares: ErrorShares | None = None) -> AbstractChangeSearch:
        """A search in a row of commits. shares: the error rate, where an earlier search has used some of it."""
        if self.what == BITS:
            return BitSearch(count=len(row) - 1)
        search = ScoreSearch(
            count=len(row) - 1,
            shares=shares or ErrorShares(self.alpha, versions),
            max_runs=self.max_runs,
            paired=self.pair,
            margin=self.margin,
            at_once=self.at_once,
            inner=shares is not None,
        )
        search.check()
        return search

    def to_json(self) -> dict[str, Any]:
        """What must not change once runs were looked at."""
        names = ("what", "metric", "selection", "alpha", "margin", "max_runs", "pair")
        return {name: getattr(self, name) for name in names}


@dataclass(slots=True)
class Stretch:
    """A row of commits, and the search in it."""

    row: Sequence[Commit]
    search: AbstractChangeSearch


def bisection_of(
    row: CommitRange,
    question: BisectionQuestion,
    stretches: Sequence[Stretch],
    *,
    runs: int = 0,
    made: int = 0,
    stopped: str = "",
    metric: str = "",
    judged_by: str = "",
    reasons: Mapping[str, str] | None = None,
    run_ids: Callable[[Commit], tuple[str, ...]] = lambda _: (),
    store: str = "",
    conditions: tuple[Condition, ...] = (),
) -> Bisection:
    """What the searches came to, the one of a merge after that of the row it lies in."""
    outer = stretches[0]
    last = next((one for one in reversed(stretches) if one.search.differs), outer)
    verdict, ended = _verdict(row, outer, stopped)
    void = voided(conditions) if question.what == SCORE else None
    if void is not None and verdict == FOUND:
        verdict, ended = STOPPED, f"{void.message}; next: {void.next_step}"
    candidates = row.meant(last.row, last.search.low, last.search.high) if verdict == FOUND else ()
    first_bad = candidates[0] if len(candidates) == 1 else None
    probes = tuple(_probed(stretches, reasons or {}, run_ids))
    ends = (last.row[last.search.low], last.row[last.search.high]) if verdict == FOUND else ()
    others = [(one.row[first], one.row[second]) for one in stretches for first, second in one.search.others]
    return Bisection(
        good=row.good,
        bad=row.bad,
        what=question.what,
        verdict=RANGE if verdict == FOUND and first_bad is None else verdict,
        first_bad=first_bad,
        candidates=candidates,
        error_rate=question.alpha if question.what == SCORE else BitSearch.chance,
        probes=probes,
        runs=runs,
        made=made,
        metric=metric,
        judged_by=judged_by,
        **_differences(outer, last),
        others=tuple(others),
        ended=ended,
        stopped=stopped,
        commits=len(row.everything),
        alike=row.alike,
        **_expected(row, question),
        margin=question.margin,
        max_runs=question.max_runs,
        conditions=conditions,
        next_steps=tuple(_after(first_bad, ends, probes, store)),
    )


def _after(first_bad: Commit | None, ends: Sequence[Commit], probes: Sequence[Probed], store: str) -> Iterator[str]:
    """What the commit did, and what differs between a run before it and one after it."""
    if first_bad is not None:
        yield f"git show {first_bad.short}"
    made = {probe.commit.tree: probe.run_ids[0] for probe in probes if probe.run_ids}
    found = [made[commit.tree] for commit in ends if commit.tree in made]
    if len(found) > 1:
        yield f"isorun env diff {' '.join(found)}{store}"


def _verdict(row: CommitRange, outer: Stretch, stopped: str) -> tuple[str, str]:
    if row.good.tree == row.bad.tree:
        return NO_DIFFERENCE, "same files"
    search = outer.search
    ended = search.ended if isinstance(search, ScoreSearch) else ""
    if search.differs is None:
        return (PLANNED, "") if stopped == DRY_RUN else (STOPPED, stopped)
    if not search.differs:
        return (EQUIVALENT if ended == EQUIVALENT else NO_DIFFERENCE), ended
    return FOUND, ended


def _probed(
    stretches: Sequence[Stretch], reasons: Mapping[str, str], run_ids: Callable[[Commit], tuple[str, ...]]
) -> Iterator[Probed]:
    """The commits that were looked at, once each: the ends of a row, its probes in their order, and what was begun."""
    known: dict[str, Commit] = {}  # by tree: commits with the same files have the same runs
    shown: set[str] = set()
    for stretch in stretches:
        search = stretch.search
        for position, verdict in _looked_at(stretch, is_first=stretch is stretches[0]).items():
            commit, drawn = stretch.row[position], search.drawn.get(position, ())
            ids = run_ids(commit)
            if commit.id in shown or not (ids or len(drawn)) or (verdict == BEGUN and commit.tree in known):
                continue
            shown.add(commit.id)
            found = search.difference(0, position) if isinstance(search, ScoreSearch) and position else None
            difference, interval = found or (None, None)
            same_as = known.get(commit.tree)
            known.setdefault(commit.tree, commit)
            yield Probed(commit, verdict, difference, interval, reasons.get(commit.id, ""), ids, same_as)


def _looked_at(stretch: Stretch, *, is_first: bool) -> dict[int, str]:
    """Positions with what is said of them; of the others that a run may have been made."""
    search = stretch.search
    ends = ("good end", "bad end") if is_first else ("fork", "tip")
    probes = {probe.position: str(probe.likeness) for probe in search.probes}
    said = {0: ends[0], search.count: ends[1], **probes}
    return said | {position: BEGUN for position in range(search.count + 1) if position not in said}


def _differences(outer: Stretch, last: Stretch) -> dict[str, Any]:
    """What the ends differ by, and what the step that was found brought."""
    if not isinstance(outer.search, ScoreSearch) or not isinstance(last.search, ScoreSearch):
        return {}
    total = outer.search.difference(0, outer.search.count) or (None, None)
    step = last.search.difference(last.search.low, last.search.high) if last.search.differs else None
    names = ("total", "total_interval95", "difference", "interval95")
    found: dict[str, Any] = dict(zip(names, (*total, *(step or (None, None))), strict=True))
    search = outer.search
    if not search.differs:
        return found
    return {**found, "before": search.difference(0, search.low), "after": search.difference(search.high, search.count)}


def _expected(row: CommitRange, question: BisectionQuestion) -> dict[str, Any]:
    """How many probes and runs halving takes, at best and where every probe takes its whole budget."""
    probes = math.ceil(math.log2(max(len(row.row) - 1, 1)))
    if question.what == BITS:
        return {
            "planned": probes,
            "fewest": 4 + probes + BitSearch.drawn_again,
            "most": 4 + 2 * probes + BitSearch.drawn_again + 1,
        }
    search = question.search(row.row, len(row.everything))
    assert isinstance(search, ScoreSearch)
    rule = search.rule(search.shares.level(0))
    first = next(look.n_a for look, value in zip(rule.schedule, rule.critical, strict=True) if math.isfinite(value))
    return {"planned": probes, "fewest": first * (probes + 2), "most": question.max_runs * (probes + 2)}
