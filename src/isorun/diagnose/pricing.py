"""What each step towards determinism costs in time and buys in variance, from runs that took turns.

A set of steps is priced as a whole: the same training with these steps taken, beside the training as it is, in pairs
that ran shortly after one another. `wanted_runs` says which runs are next, and `judged` what they tell; both are
functions of the runs made so far, so that work that was interrupted goes on from there.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from scipy import special

from isorun.analysis import Told
from isorun.analysis.evidence import Condition
from isorun.analysis.evidence.judged import first_choice
from isorun.analysis.evidence.provenance import effective
from isorun.analysis.evidence.run_units import BY_WEIGHTS, bits_of
from isorun.study.records import RunRecord
from isorun.worker import frameworks
from isorun.worker.frameworks.switches import AUTOTUNE
from isorun.worker.levels import THREAD_COUNTS

__all__ = [
    "AS_IT_IS",
    "FEWEST_RUNS",
    "LADDER",
    "MOST_RUNS",
    "SEED",
    "LadderStep",
    "MadeRun",
    "Need",
    "NotApplicable",
    "PlannedRun",
    "Price",
    "PricedRuns",
    "PricedSet",
    "PricedStep",
    "Recommended",
    "Undecided",
    "applicable",
    "judged",
    "least_seconds",
    "made_run",
    "metric_of",
    "recommended",
    "rungs",
    "wanted_runs",
]

SEED: Final = "seed"
FEWEST_RUNS: Final = 4
"""Two pairs of equal seeds: with fewer nothing is said about a set."""
MOST_RUNS: Final = 99
_SELDOM: Final = 0.05
_ROUND: Final = 100
"""Blocks of the ladder begin at 1, those of the k-th round of sets without one step at k times this."""

Names = tuple[str, ...]
AS_IT_IS: Final[Names] = ()


class LadderStep(NamedTuple):
    """One step. switch: whose answer says whether it can be taken here; held: the answers that have taken it already.

    switches, variables: what asks for it.
    """

    name: str
    switch: str = ""
    held: tuple[str, ...] = ()
    switches: Mapping[str, str] = {}
    variables: Mapping[str, str] = {}
    nobody: str = ""


_THREADS: Final = (*THREAD_COUNTS, *(name for one in frameworks.every() for name in one.thread_variables))
_NO_DEVICE: Final = "no library of it has started a GPU"
# The order is that in which they are taken: what costs least, as a rule, first.
LADDER: Final = (
    LadderStep(SEED),
    LadderStep(
        "deterministic kernels",
        "kernels",
        ("deterministic",),
        {"kernels": "deterministic"},
        nobody="no library of it has kernels to choose from here",
    ),
    LadderStep("no autotune", AUTOTUNE, ("on", "off"), {AUTOTUNE: "on"}, nobody=_NO_DEVICE),
    LadderStep("no TF32", "tf32", ("off",), {"tf32": "off"}, nobody=_NO_DEVICE),
    LadderStep(
        "one thread",
        "threads",
        ("1",),
        variables=dict.fromkeys(_THREADS, "1"),
        nobody="no library of it says how many threads it has",
    ),
    LadderStep("one CPU path", "cpu", (), nobody="no library of it says which instructions it uses"),
)


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """A step that is not measured, and why."""

    name: str
    why: str

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"name": self.name, "why": self.why}


def applicable(first: RunRecord, path: Mapping[str, str]) -> tuple[Names, tuple[NotApplicable, ...]]:
    """The steps that can be taken, as the libraries of a run of the training as it is answer; and the others.

    path: the switches that ask for one CPU path on this machine.
    """
    answers = effective(first).get("switches") or {}
    taken, left = [], []
    for step in LADDER:
        heard = {who: str(items[step.switch]) for who, items in answers.items() if step.switch in items}
        held = (path.get("cpu", ""),) if step.switch == "cpu" and "mkl" not in path else step.held
        if not step.switch or any(value not in held for value in heard.values()):
            taken.append(step.name)
        elif heard:
            has = ", ".join(f"{who} has {step.switch} = {value}" for who, value in heard.items())
            left.append(NotApplicable(step.name, f"it is so already: {has}"))
        else:
            left.append(NotApplicable(step.name, step.nobody))
    return tuple(taken), tuple(left)


def rungs(taken: Names) -> tuple[Names, ...]:
    """The ladder: nothing, the first step, the first two, …"""
    return tuple(taken[:length] for length in range(len(taken) + 1))


class Need(NamedTuple):
    """Why a step is in a set: of `runs_without` it `odd` ended unlike the others of their seed, of `runs_with` it none.

    p: the largest chance of that if the step did nothing. faster: it takes clearly less time with it.
    """

    name: str
    odd: int
    runs_without: int
    runs_with: int
    p: float
    faster: bool = False

    @property
    def shown(self) -> bool:
        """Whether chance would seldom do that."""
        return self.p <= _SELDOM

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        told = {"odd": self.odd, "runs_without": self.runs_without, "runs_with": self.runs_with}
        return {"name": self.name, **told, "p": self.p, "faster": self.faster}


class Undecided(NamedTuple):
    """A set whose runs are the same, but that is not told apart from `alike`, which leaves steps out: so few differ."""

    names: Names
    alike: Names
    pairs: float

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"steps": list(self.names), "not_told_apart_from": list(self.alike), "pairs": self.pairs}


class Recommended(NamedTuple):
    """The set, None where none is; whether all that might be cheaper were looked at; why each step is in it."""

    names: Names | None
    whole: bool
    undecided: Undecided | None = None
    needs: tuple[Need, ...] = ()


class PlannedRun(NamedTuple):
    """The run of a set in a block: the runs of a block are made one after the other, in random order."""

    names: Names
    block: int


@dataclass(frozen=True, slots=True)
class MadeRun:
    """What is known of one run. seconds, cpu_seconds: of the training's own work; wall_seconds: of all of it.

    step_seconds: of the work behind its first optimizer step, None where no step was seen. seed: None where none was
    fixed. bits: what it ended with, None where that is not known. value: of the metric, None where there is none.
    """

    seconds: float
    cpu_seconds: float | None = None
    wall_seconds: float = 0.0
    seed: int | None = None
    bits: Hashable | None = None
    value: float | None = None
    step_seconds: float | None = None
    run_id: str = ""


def made_run(record: RunRecord, metric: str) -> MadeRun:
    """What a record says. A training that was cut is timed from the end of its first step on."""
    work = effective(record).get("work") or {}
    seconds, cpu = _worked(work)
    if seconds is None:
        seconds = max(record.wall_seconds - (record.startup_seconds or 0.0), 1e-6)
    seed = record.cell.seed if record.cell.level.fixes_seed else None
    value, first = _value(record, metric), work.get("first_step")
    steps = max(float(work["seconds"]) - float(first["seconds"]), 1e-6) if first else None
    return MadeRun(seconds, cpu, record.wall_seconds, seed, bits_of(record), value, steps, record.run_id)


def _worked(work: Mapping[str, Any]) -> tuple[float | None, float | None]:
    if "seconds" not in work:
        return None, None
    first = work.get("first_step") if work.get("cut") and work.get("steps", 0) > 1 else None
    before = first or {"seconds": 0.0, "cpu_seconds": 0.0}
    seconds = float(work["seconds"]) - float(before["seconds"])
    cpu = float(work["cpu_seconds"]) - float(before["cpu_seconds"])
    return max(seconds, 1e-6), cpu if cpu > 0 else None


def _value(record: RunRecord, metric: str) -> float | None:
    if metric in record.results:
        return record.results[metric]
    series = record.series.get(metric)
    return float(series.values[-1]) if series is not None and len(series.values) else None


def metric_of(records: Iterable[RunRecord], asked: str = "") -> str:
    """The metric whose spread is told: as asked, else the first choice among what the runs have."""
    return asked or first_choice({name for record in records for name in (*record.results, *record.series)}) or ""


@dataclass(slots=True)
class PricedRuns:
    """The runs made so far, by set and block. failed: why a set could not be run.

    needed: steps that no set with identical runs can do without, so that none is tried without them.
    """

    made: dict[PlannedRun, MadeRun] = field(default_factory=dict)
    failed: dict[Names, str] = field(default_factory=dict)
    needed: Names = ()

    def of(self, names: Names) -> dict[int, MadeRun]:
        """The measured runs of a set by block; block 0 is the first of all, which is not measured."""
        return {run.block: made for run, made in self.made.items() if run.names == names and run.block}

    @property
    def spent(self) -> float:
        """Seconds that all runs took."""
        return sum(made.wall_seconds for made in self.made.values())

    def wall(self, names: Names) -> float:
        """How long a run of the set takes, start and end included; as one of the training as it is where none is.

        The very first run reads all files for the first time, and counts only where there is no other.
        """
        own = [made.wall_seconds for run, made in self.made.items() if run.names == names and run.block]
        own = own or [made.wall_seconds for run, made in self.made.items() if run.names == AS_IT_IS]
        return sum(own) / len(own) if own else 0.0

    def by_seed(self, names: Names) -> list[list[MadeRun]]:
        """The runs of a set that should be the same: those of one seed, or all where no seed was fixed."""
        found: dict[int | None, list[MadeRun]] = {}
        for made in self.of(names).values():
            found.setdefault(made.seed, []).append(made)
        return list(found.values())

    def distinct(self, names: Names) -> int | None:
        """How many different ends the runs of one seed came to, at most; None where some end is not known."""
        groups = self.by_seed(names)
        if not groups or any(made.bits is None for group in groups for made in group):
            return None
        return max(len({made.bits for made in group}) for group in groups)

    def unlike(self, names: Names) -> tuple[str, ...]:
        """The ids of two runs that should be the same and are not; none where there are no such."""
        for group in self.by_seed(names):
            other = next((made for made in group if made.bits != group[0].bits), None)
            if other is not None:
                return group[0].run_id, other.run_id
        return ()

    def pairs(self, names: Names) -> float:
        """So many independent pairs of runs that should be the same: half of the runs that are not alone."""
        return sum(len(group) for group in self.by_seed(names) if len(group) > 1) / 2

    def identical(self, names: Names) -> bool | None:
        """Whether all runs that should be the same were; None where that is not known."""
        distinct = self.distinct(names)
        if distinct is None or (distinct == 1 and self.pairs(names) < FEWEST_RUNS / 2):
            return None
        return distinct == 1

    @property
    def sets(self) -> tuple[Names, ...]:
        """All sets that were measured."""
        return tuple(dict.fromkeys(run.names for run in self.made if run.block))

    def stands(self, names: Names) -> bool | None:
        """Whether its runs are the same, as are those of all sets with more steps: what differs there differs here.

        A step takes a cause away and adds none, so that a set with more steps whose runs differ speaks against it.
        """
        above = (item for item in self.sets if set(names) < set(item))
        return False if any(self.identical(item) is False for item in above) else self.identical(names)

    def odd(self, names: Names) -> int:
        """So many runs did not end as most of those did that should be the same."""
        groups = [Counter(made.bits for made in group) for group in self.by_seed(names)]
        return sum(ends.total() - max(ends.values()) for ends in groups)

    def log_ratios(self, names: Names, other: Names, what: Callable[[MadeRun], float | None]) -> np.ndarray[Any, Any]:
        """Logarithms of the ratio of times, one for each block that has a run of both."""
        ours, theirs = self.of(names), self.of(other)
        pairs = [(what(ours[block]), what(theirs[block])) for block in sorted(ours.keys() & theirs.keys())]
        return np.array([math.log(a / b) for a, b in pairs if a and b])


def wanted_runs(runs: PricedRuns, taken: Names, most: int, seconds: float) -> tuple[PlannedRun, ...]:
    """Which runs are next, in the order they are to be made; none when all is known, or the seconds are spent.

    The ladder first, block by block. Then, in rounds, the sets beside the cheapest known one with identical runs
    (`_search`), each as long as its own runs are the same, or too few to say that the step it leaves out is needed.
    """
    if PlannedRun(AS_IT_IS, 0) not in runs.made:
        return (PlannedRun(AS_IT_IS, 0),)
    ladder = [names for names in rungs(taken) if names not in runs.failed]
    if missing := _missing(runs, ladder, 0, most, seconds):
        return missing
    for number, one in enumerate(_search(runs, taken), start=1):
        fresh = [names for names in one.others if names not in ladder and names not in runs.failed]
        open_ones = [names for names in fresh if _is_open(runs, one, names)]
        if open_ones and (missing := _missing(runs, [AS_IT_IS, *open_ones], number * _ROUND, most, seconds)):
            return missing
    return ()


def _is_open(runs: PricedRuns, one: _Round, names: Names) -> bool:
    if runs.stands(names) is not False:
        return True
    # Two different ends say that the set will not do. That the step left out is what it lacks takes a few more.
    return names in one.fewer and any(
        not _need(runs, one.current, name).shown for name in one.current if name not in names
    )


def least_seconds(runs: PricedRuns, taken: Names) -> float:
    """Seconds that the least measurement of the ladder takes, by what is known.

    The first run reads all files for the first time, so of it only the training's own work counts; once every set has
    run, what starting and ending takes counts too.
    """
    ladder = [names for names in rungs(taken) if names not in runs.failed]
    if any(PlannedRun(names, 1) not in runs.made for names in ladder):
        return FEWEST_RUNS * len(ladder) * runs.made[PlannedRun(AS_IT_IS, 0)].seconds
    return FEWEST_RUNS * sum(runs.wall(names) for names in ladder)


def _missing(runs: PricedRuns, sets: Sequence[Names], begins: int, most: int, seconds: float) -> tuple[PlannedRun, ...]:
    """What the first block that is not whole lacks. A block is begun only where there is time for it."""
    cost = sum(runs.wall(names) for names in sets)
    for number in range(1, most + 1):
        block = begins + number
        lacking = [PlannedRun(names, block) for names in sets if PlannedRun(names, block) not in runs.made]
        if not lacking:
            continue
        promised = not begins and number <= FEWEST_RUNS  # that there is time for these was seen before
        needed = cost * max(FEWEST_RUNS - number + 1, 1)
        if not promised and len(lacking) == len(sets) and runs.spent + needed > seconds:
            return ()
        random.Random(f"isorun price {block}").shuffle(lacking)
        return tuple(lacking)
    return ()


class _Round(NamedTuple):
    """A set with identical runs, and those that may do as well: without one step, or with another for the last one."""

    current: Names
    fewer: tuple[Names, ...]
    instead: tuple[Names, ...] = ()

    @property
    def others(self) -> tuple[Names, ...]:
        return (*self.fewer, *self.instead)


def _search(runs: PricedRuns, taken: Names) -> Iterator[_Round]:
    """From the ladder's best set to ever cheaper ones, as far as runs are known.

    A step that clearly costs time may have been taken before one that would have done alone, so each later step is
    tried in its place.
    """
    current = _first_set(runs, taken)
    instead: tuple[Names, ...] = ()
    if current and current in rungs(taken) and _clearly_faster(runs, current[:-1], current):
        instead = tuple((*current[:-1], later) for later in taken[len(current) :])
    while current:
        without = [out for out in current if out not in runs.needed]
        one = _Round(current, tuple(tuple(name for name in current if name != out) for out in without), instead)
        yield one
        instead = ()
        current = _cheaper(runs, one)


def _first_set(runs: PricedRuns, taken: Names) -> Names | None:
    """The rung to begin with: the lowest one with identical runs, or one above it that is clearly faster."""
    same = [names for names in rungs(taken) if runs.stands(names)]
    if not same or same[0] == AS_IT_IS:
        return same[0] if same else None
    faster = [names for names in same[1:] if _clearly_faster(runs, names, same[0])]
    return min(faster, key=lambda names: _ratio(runs, names)) if faster else same[0]


def _cheaper(runs: PricedRuns, one: _Round) -> Names | None:
    """The fastest of the others with identical runs: one with fewer steps unless it costs more, one that is cheaper."""
    fewer = [names for names in one.fewer if names and runs.stands(names)]
    fitting = [names for names in fewer if not _clearly_faster(runs, one.current, names)]
    same = [names for names in one.instead if runs.stands(names)]
    fitting += [names for names in same if _clearly_faster(runs, names, one.current)]
    return min(fitting, key=lambda names: _ratio(runs, names)) if fitting else None


def recommended(runs: PricedRuns, taken: Names) -> Recommended:
    """The cheapest set with identical runs, if every step of it is there for a reason that was seen."""
    current, whole = _first_set(runs, taken), True
    for one in _search(runs, taken):
        current = one.current
        whole = whole and all(names in runs.failed or runs.stands(names) is not None for names in one.others)
    if current is None:
        return Recommended(None, whole)
    needs = tuple(_need(runs, current, name) for name in current if name not in runs.needed)
    idle = {need.name for need in needs if need.runs_without and not need.shown and not need.faster}
    if idle:
        alike = tuple(name for name in current if name not in idle)
        return Recommended(None, whole, Undecided(current, alike, runs.pairs(current)), needs)
    return Recommended(current, whole, None, needs)


def _need(runs: PricedRuns, chosen: Names, name: str) -> Need:
    """The runs of the set and of those above it, beside the same sets without the step, where these were run, too."""
    above = [names for names in runs.sets if set(chosen) <= set(names)]
    found = [(names, tuple(item for item in names if item != name)) for names in above]
    both = [(names, less) for names, less in found if less in runs.sets and runs.distinct(less) is not None]
    odd, without = (sum(count(less) for _, less in both) for count in (runs.odd, lambda less: len(runs.of(less))))
    with_it = sum(len(runs.of(names)) for names, _ in both)
    less = tuple(item for item in chosen if item != name)
    faster = less in runs.sets and _clearly_faster(runs, chosen, less)
    return Need(name, odd, without, with_it, _chance(odd, without, with_it), faster)


def _chance(odd: int, without: int, with_it: int) -> float:
    """Of so many odd runs or more without a step and none with it, if the step does nothing: the largest there is."""
    shares = np.linspace(0.0, 1.0, 501)[1:-1]
    if not odd:
        return 1.0
    return float(((1 - shares) ** with_it * special.bdtrc(odd - 1, without, shares)).max())


def _ratio(runs: PricedRuns, names: Names) -> float:
    logs = runs.log_ratios(names, AS_IT_IS, lambda made: made.seconds)
    return float(np.exp(logs.mean())) if logs.size else math.inf


def _clearly_faster(runs: PricedRuns, names: Names, other: Names) -> bool:
    """Whether the interval of the ratio lies below 1: in pairs where both ran in the same blocks."""
    logs = runs.log_ratios(names, other, lambda made: made.seconds)
    if logs.size >= FEWEST_RUNS:
        interval = _interval(logs)
        return interval is not None and interval[1] < 1
    a, b = (runs.log_ratios(item, AS_IT_IS, lambda made: made.seconds) for item in (names, other))
    if min(a.size, b.size) < FEWEST_RUNS:
        return False
    spread = math.sqrt(a.var(ddof=1) / a.size + b.var(ddof=1) / b.size)
    return bool(a.mean() - b.mean() + _t(min(a.size, b.size) - 1) * spread < 0)


def _t(freedom: int) -> float:
    return float(special.stdtrit(freedom, 0.975))


def _interval(logs: np.ndarray[Any, Any]) -> tuple[float, float] | None:
    """95 % interval of the geometric mean of ratios: Student's, of their logarithms."""
    if logs.size < 2:
        return None
    half = _t(logs.size - 1) * float(logs.std(ddof=1)) / math.sqrt(logs.size)
    return math.exp(logs.mean() - half), math.exp(logs.mean() + half)


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
    steps_cut: optimizer steps after which runs were ended, 0 for whole trainings. study_lines: what a study file says
    for the recommended set. variables: those that ask for it outside of isorun. stopped: why it ended early.
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
    steps_cut: int = 0
    study_lines: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    stopped: str = ""
    next_steps: tuple[str, ...] = ()
    undecided: Undecided | None = None
    needs: tuple[Need, ...] = ()

    @property
    def chosen_among(self) -> int:
        """So many sets were looked at, of which one is recommended."""
        sets = (self.as_it_is, *(step.set for step in self.steps), *self.tried)
        return sum(1 for item in sets if item.distinct is not None)

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
        known = (self.as_it_is, *(step.set for step in self.steps), *self.tried)
        return next((item for item in known if item.names == self.recommended), None)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        chosen = self.recommended_set
        return {
            "command": list(self.command),
            "metric": self.metric,
            "judged_by": self.judged_by or None,
            "compared": list(self.compared),
            "cut_after_steps": self.steps_cut or None,
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
            steps.append(PricedStep(names[-1], own, _mean(added), _interval(added)))
    ladder = {AS_IT_IS, *rungs(taken)}
    others = dict.fromkeys(run.names for run in runs.made if run.names not in ladder)
    return base, tuple(steps), tuple(_priced(runs, names) for names in sorted(others, key=_place))


def _place(names: Names) -> tuple[int, list[int]]:
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
        time_ratio=_mean(logs),
        interval95=None if is_base else _interval(logs),
        cpu_ratio=_mean(computed),
        cpu_interval95=None if is_base else _interval(computed),
        step_ratio=_mean(stepped),
        step_interval95=None if is_base else _interval(stepped),
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


def _mean(logs: np.ndarray[Any, Any]) -> float | None:
    return float(np.exp(logs.mean())) if logs.size else None


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
