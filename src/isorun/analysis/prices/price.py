"""What each step towards determinism costs in time and buys in variance, from runs that took turns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np
from scipy import special

from isorun.analysis import Told
from isorun.analysis.evidence import Condition
from isorun.analysis.evidence.run_units import BY_WEIGHTS
from isorun.analysis.prices import AS_IT_IS, LADDER, Names, NotApplicable, rungs
from isorun.analysis.prices.choice import Need, Undecided
from isorun.analysis.prices.priced_runs import FEWEST_RUNS, MadeRun, PricedRuns, mean_ratio, ratio_interval

__all__ = [
    "OUT_OF_TIME",
    "Price",
    "PricedSet",
    "PricedStep",
    "judged",
]

OUT_OF_TIME: Final = "its --seconds are spent"


@dataclass(frozen=True, slots=True)
class PricedSet:
    """A set of steps, measured. time_ratio: how many times as long as the training as it is, over `units` pairs.

    step_ratio: the same behind the first optimizer step, without what prepares a training: of a longer one, so to say.
    sd: what is left of the metric's spread between runs that should be the same, pooled over seeds. distinct: different
    ends among those of one seed. pairs: independent pairs of such runs; differing_at_most: the largest share of pairs
    that could differ without any having been seen to (95 %), None where some did or nothing is known. seeds: how many
    were fixed, 0 where none was. unlike: two runs that should be the same and are not, none where there are no such.
    """

    names: Names
    runs: int
    units: int
    seconds: float | None
    time_ratio: float | None
    interval95: tuple[float, float] | None
    cpu_ratio: float | None
    cpu_interval95: tuple[float, float] | None
    step_ratio: float | None
    step_interval95: tuple[float, float] | None
    sd: float | None
    sd_interval95: tuple[float, float] | None
    variance_removed: float | None
    variance_removed_interval95: tuple[float, float] | None
    distinct: int | None
    pairs: float
    identical: bool | None
    seeds: int = 0
    run_ids: tuple[str, ...] = ()
    unlike: tuple[str, ...] = ()

    @property
    def differing_at_most(self) -> float | None:
        """Of this set, had no other been looked at."""
        return self.differing_among(1)

    def differing_among(self, sets: int) -> float | None:
        """The largest share of pairs that could differ (95 %), the set being chosen among so many.

        Of r runs with one end, (1 - d)^(r/2) is the largest chance that pairs differ with chance d: see the page.
        """
        return 1 - (0.05 / sets) ** (1 / self.pairs) if self.identical and self.pairs else None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "steps": list(self.names),
            "time_ratio": self.time_ratio,
            "interval95": _listed(self.interval95),
            "cpu_ratio": self.cpu_ratio,
            "cpu_interval95": _listed(self.cpu_interval95),
            "step_ratio": self.step_ratio,
            "step_interval95": _listed(self.step_interval95),
            "seconds": self.seconds,
            "sd": self.sd,
            "sd_interval95": _listed(self.sd_interval95),
            "variance_removed": self.variance_removed,
            "variance_removed_interval95": _listed(self.variance_removed_interval95),
            "distinct": self.distinct,
            "identical": self.identical,
            "runs": self.runs,
            "run_ids": list(self.run_ids),
            "units": self.units,
            "seeds": self.seeds,
            "pairs": self.pairs,
            "differing_at_most95": self.differing_at_most,
        }


@dataclass(frozen=True, slots=True)
class PricedStep:
    """A step of the ladder: the set of it and all before it, and how many times the time it takes by itself."""

    name: str
    set: PricedSet
    added_ratio: float | None
    added_interval95: tuple[float, float] | None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        added = {"added_ratio": self.added_ratio, "added_interval95": _listed(self.added_interval95)}
        return {"name": self.name, **self.set.to_json(), **added}


@dataclass(frozen=True, slots=True)
class Price(Told):
    """What each step costs and buys, and the cheapest set that gives bit-identical runs; None where none does.

    judged_by: what runs were told apart by ("weights", "digests", "numbers"; "" where there was nothing); compared: the
    names of those digests or numbers.
    cut_after: optimizer steps after which runs were ended, 0 for whole trainings. study_lines: what a study file says
    for the recommended set. variables: those that ask for it outside of isorun. stopped: why it ended early, which
    may be that its seconds were spent (OUT_OF_TIME).
    undecided: a set with identical runs that may owe them to chance. needs: why each step is in the set.
    next_steps: commands that go on from here.
    """

    told_as: ClassVar[str] = "price"

    command: tuple[str, ...]
    metric: str
    judged_by: str
    compared: tuple[str, ...]
    as_it_is: PricedSet
    steps: tuple[PricedStep, ...]
    tried: tuple[PricedSet, ...]
    not_applicable: tuple[NotApplicable, ...]
    recommended: Names | None
    cut_after: int = 0
    study_lines: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    stopped: str = ""
    next_steps: tuple[str, ...] = ()
    undecided: Undecided | None = None
    needs: tuple[Need, ...] = ()

    @property
    def sets(self) -> tuple[PricedSet, ...]:
        """All that were measured: the training as it is, the ladder, what was tried besides."""
        return (self.as_it_is, *(step.set for step in self.steps), *self.tried)

    @property
    def highest(self) -> PricedSet:
        """The highest rung of the ladder that was measured."""
        return self.steps[-1].set if self.steps else self.as_it_is

    @property
    def out_of_time(self) -> bool:
        """Whether it ended because its seconds were spent, before all runs of the ladder were made."""
        return self.stopped == OUT_OF_TIME

    @property
    def fewest_runs(self) -> int:
        """So many runs every set of the ladder has."""
        return min((item.runs for item in (self.as_it_is, *(step.set for step in self.steps))), default=0)

    @property
    def chosen_among(self) -> int:
        """So many sets were looked at, of which one is recommended."""
        return sum(1 for item in self.sets if item.distinct is not None)

    @property
    def differing_at_most(self) -> float | None:
        """The largest share of pairs of the recommended set that could differ (95 %), its choice counted."""
        chosen = self.recommended_set
        return None if chosen is None else chosen.differing_among(self.chosen_among)

    @property
    def by_weights(self) -> bool:
        """Whether identical runs ended with the same weights: no smaller difference is left."""
        return self.judged_by == BY_WEIGHTS

    @property
    def recommended_set(self) -> PricedSet | None:
        """What was measured of the recommended set."""
        return next((item for item in self.sets if item.names == self.recommended), None)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        chosen = self.recommended_set
        return {
            "command": list(self.command),
            "metric": self.metric,
            "judged_by": self.judged_by or None,
            "compared": list(self.compared),
            "cut_after_steps": self.cut_after or None,
            "as_it_is": self.as_it_is.to_json(),
            "steps": [step.to_json() for step in self.steps],
            "tried": [item.to_json() for item in self.tried],
            "not_applicable": [item.to_json() for item in self.not_applicable],
            "recommended": None if self.recommended is None else list(self.recommended),
            "recommendation": None
            if chosen is None
            else {
                **chosen.to_json(),
                "differing_at_most95": self.differing_at_most,
                "chosen_among": self.chosen_among,
                "needs": [need.to_json() for need in self.needs],
                "study_lines": list(self.study_lines),
                "variables": dict(self.variables),
            },
            "undecided": None if self.undecided is None else self.undecided.to_json(),
            "stopped": self.stopped,
            "next": list(self.next_steps),
            "warnings": [condition.to_json() for condition in self.conditions],
        }


def _listed(interval: tuple[float, float] | None) -> list[float] | None:
    return None if interval is None else list(interval)


def judged(runs: PricedRuns, taken: Names) -> tuple[PricedSet, tuple[PricedStep, ...], tuple[PricedSet, ...]]:
    """The training as it is, the steps of the ladder, and the sets that were tried besides."""
    base = _priced(runs, AS_IT_IS)
    steps = []
    for names in rungs(taken)[1:]:
        if runs.of(names):
            added = runs.log_ratios(names, names[:-1], lambda made: made.seconds)
            own = _priced(runs, names)
            steps.append(PricedStep(names[-1], own, mean_ratio(added), ratio_interval(added)))
    ladder = {AS_IT_IS, *rungs(taken)}
    others = dict.fromkeys(run.names for run in runs.made if run.names not in ladder)
    return base, tuple(steps), tuple(_priced(runs, names) for names in sorted(others, key=_order))


def _order(names: Names) -> tuple[int, list[int]]:
    order = [step.name for step in LADDER]
    return -len(names), [order.index(name) for name in names]


def _priced(runs: PricedRuns, names: Names) -> PricedSet:
    own = list(runs.of(names).values())
    logs = runs.log_ratios(names, AS_IT_IS, lambda made: made.seconds)
    computed = runs.log_ratios(names, AS_IT_IS, lambda made: made.cpu_seconds)
    stepped = runs.log_ratios(names, AS_IT_IS, lambda made: made.step_seconds)
    sd, interval = _spread(runs.by_seed(names))
    removed, around = _removed(runs, names)
    is_base = names == AS_IT_IS
    return PricedSet(
        names=names,
        runs=len(own),
        units=int(logs.size),
        seconds=float(np.median([made.seconds for made in own])) if own else None,
        time_ratio=mean_ratio(logs),
        interval95=None if is_base else ratio_interval(logs),
        cpu_ratio=mean_ratio(computed),
        cpu_interval95=None if is_base else ratio_interval(computed),
        step_ratio=mean_ratio(stepped),
        step_interval95=None if is_base else ratio_interval(stepped),
        sd=sd,
        sd_interval95=interval,
        variance_removed=removed,
        variance_removed_interval95=around,
        distinct=runs.distinct(names),
        pairs=runs.pairs(names),
        identical=runs.identical(names),
        seeds=len({made.seed for made in own} - {None}),
        run_ids=tuple(made.run_id for made in own),
        unlike=runs.unlike(names),
    )


def _removed(runs: PricedRuns, names: Names) -> tuple[float | None, tuple[float, float] | None]:
    """The share of the variance as it is that is gone, and its 95 % interval: that of a ratio of normal variances.

    Where none is left in sight, as many pairs as could differ unseen might be as far apart as pairs as it is.
    """
    groups, others = runs.by_seed(names), runs.by_seed(AS_IT_IS)
    left, before = _spread(groups)[0], _spread(others)[0]
    if (
        names == AS_IT_IS
        or left is None
        or not before
        or min(len(runs.of(names)), len(runs.of(AS_IT_IS))) < FEWEST_RUNS
    ):
        return None, None
    if not left:
        return 1.0, (0.05 ** (1 / runs.pairs(names)), 1.0)
    ratio = (left / before) ** 2
    freedom, other = _freedom(groups), _freedom(others)
    most, least = (ratio * float(special.fdtri(other, freedom, at)) for at in (0.975, 0.025))
    return 1 - ratio, (1 - most, 1 - least)


def _freedom(groups: Sequence[Sequence[MadeRun]]) -> int:
    return sum(max(sum(made.value is not None for made in group) - 1, 0) for group in groups)


def _spread(groups: Sequence[Sequence[MadeRun]]) -> tuple[float | None, tuple[float, float] | None]:
    """The sd within groups of runs that should be the same, and its 95 % interval for normal values."""
    values = [np.array([made.value for made in group if made.value is not None]) for group in groups]
    freedom = _freedom(groups)
    if not freedom or not all(np.isfinite(one).all() for one in values):
        return None, None
    squares = sum(float(((one - one.mean()) ** 2).sum()) for one in values if one.size > 1)
    if all(one.size < 2 or (one == one[0]).all() for one in values):
        return 0.0, None
    low, high = (math.sqrt(squares / float(special.chdtri(freedom, above))) for above in (0.025, 0.975))
    return math.sqrt(squares / freedom), (low, high)
