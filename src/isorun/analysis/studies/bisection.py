"""A bisection: which commit of a range changed the result, as it is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from isorun.analysis import Told
from isorun.analysis.evidence import Condition
from isorun.analysis.samples import Interval
from isorun.study.code import Commit

__all__ = ["EQUIVALENT", "FOUND", "NO_DIFFERENCE", "PLANNED", "RANGE", "STOPPED", "Bisection", "Probed"]

FOUND: Final = "found"
RANGE: Final = "range"
NO_DIFFERENCE: Final = "no difference"
EQUIVALENT: Final = "equivalent"
STOPPED: Final = "stopped"
PLANNED: Final = "planned"


@dataclass(frozen=True, slots=True)
class Probed:
    """A commit that was looked at, the ends first. difference: from the good end, in units of the metric.

    run_ids: those of its runs that finished.
    """

    commit: Commit
    verdict: str
    runs: int
    difference: float | None = None
    interval95: Interval | None = None
    reason: str = ""
    run_ids: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            **self.commit.to_json(),
            "verdict": self.verdict,
            "runs": self.runs,
            "run_ids": list(self.run_ids),
            "difference": self.difference,
            "interval95": None if self.interval95 is None else list(self.interval95),
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Bisection(Told):
    """Which commit changed the result.

    verdict: "found", "range" (one of the candidates), "no difference", "equivalent", "stopped" or "planned". first_bad:
    the commit that was found. candidates: the commits that may be meant. difference, interval95: what the step from
    the last good commit to the first bad one brought; total, total_interval95: the same of the ends. before, after:
    what the rest of the range brought on either side of it, with intervals. others: further stretches in which
    something changed. runs: how many were looked at; made: those of them that were made now.
    planned: how many probes halving takes. fewest, most: how many runs that can come to. next_steps: commands that go
    on from here.
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
