"""A search as data: its space, its trials, and what they showed. Read from an engine by its adapter, and frozen.

All that judges a search or proposes its next trial knows these alone, and so works, and is tested, without an engine.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Literal

from isorun.diagnose import Symptoms
from isorun.study.searches import KEEP, OFFERED, Parameter, Value

__all__ = [
    "KEEP",
    "OFFERED",
    "SYMPTOMS",
    "UNKNOWN_SYMPTOMS",
    "Configuration",
    "Direction",
    "Parameter",
    "Search",
    "State",
    "Trial",
    "Value",
    "configuration_of",
    "is_offered",
    "known_noise",
    "not_offered",
    "own_names",
    "pooled_spread",
    "repeated_noise",
    "with_kept",
    "with_noise",
]

Configuration = tuple[tuple[str, str], ...]
Direction = Literal["higher", "lower"]
State = Literal["finished", "pruned", "failed", "running", "waiting"]
SYMPTOMS: Final = Symptoms._fields
"""What a trial shows, in the order in which conditions are written: A, C, G, W."""
UNKNOWN_SYMPTOMS: Final = Symptoms()
_FROM_PRIOR: Final = "the prior"
_DUST: Final = 1e-9
"""Relative spread of scores that are the same but for how they were computed."""
_RECENT: Final = 400
"""Of so many trials it is asked which parameters decide on others."""
_SHOWS_THAT_NOTHING_VARIES: Final = 2
"""So many repeats that agree exactly with an earlier training: three of one configuration, for instance."""


def configuration_of(parameters: Mapping[str, Value]) -> Configuration:
    """The parameters in a form that can be looked up and compared."""
    return tuple(sorted((name, repr(value)) for name, value in parameters.items()))


@dataclass(frozen=True)
class Trial:
    """One configuration that was tried.

    score: as the engine holds it; none for a trial that has not finished. symptoms: A, C, G, W. origin: the trial that
    it changes, where isorun proposed it; chance: the probability to improve that was foretold then. process: the id of
    the one that runs it, where isorun goes on with the search. as_built: by offered parameter, the choice that is what
    the user built, and so no other than "keep".
    """

    number: int
    state: State
    score: float | None
    parameters: Mapping[str, Value]
    seconds: float | None = None
    started: float | None = None
    symptoms: Symptoms = UNKNOWN_SYMPTOMS
    why_failed: str = ""
    proposed_by: str = ""
    origin: int | None = None
    chance: float | None = None
    process: int | None = None
    as_built: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def configuration(self) -> Configuration:
        """What two equal trials share."""
        return configuration_of(self.parameters)

    @property
    def has_score(self) -> bool:
        """Whether it finished with a number."""
        return self.state == "finished" and self.score is not None and math.isfinite(self.score)

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to come of it."""
        return self.state in ("finished", "pruned", "failed")

    @property
    def got_nowhere(self) -> bool:
        """Whether it is known to have learned nothing: it did not move, or went to pieces before that could be told."""
        _, convergence, _, weight = self.symptoms
        return convergence == "slow" or (convergence == "unknown" and weight == "exploding")


@dataclass(frozen=True)
class Search:
    """A search as it stands. direction: which scores are better. noise: sd of a score between seeds.

    noise_from: where it is known from; a noise of 0 that comes from nowhere is not known.
    bests: the trials that were the best, one after another, where repeats say so: a single good score may be luck.
    left_out: what isorun would offer and cannot, with the reason. is_grid: its engine goes through a list, to its end.
    """

    engine: str
    name: str
    direction: Direction
    space: tuple[Parameter, ...]
    trials: tuple[Trial, ...]
    noise: float = 0.0
    noise_from: str = field(default="", compare=False)
    bests: tuple[int, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    is_grid: bool = False

    def __post_init__(self) -> None:
        """The noise of a prior is that of accuracies as shares of one: of a loss or a percentage it says nothing."""
        shares = self.direction == "higher" and all(0 <= trial.score <= 1 for trial in self.scored if trial.score)
        if self.noise_from == _FROM_PRIOR and not shares:
            object.__setattr__(self, "noise", 0.0)
            object.__setattr__(self, "noise_from", "")

    def gain(self, trial: Trial) -> float:
        """The score, so that more is better."""
        assert trial.score is not None
        return trial.score if self.direction == "higher" else -trial.score

    def is_better(self, trial: Trial, than: Trial) -> bool:
        """By more than noise. Of two trainings that got nowhere neither is better: where they began is luck."""
        if not trial.has_score or (trial.got_nowhere and than.got_nowhere):
            return False
        return self.gain(trial) > self.gain(than) + self.margin

    def short_of(self, target: float) -> float:
        """By how much the best score misses a target; 0 or less where it is reached."""
        wanted = target if self.direction == "higher" else -target
        return math.inf if self.best is None else wanted - self.gain(self.best)

    @cached_property
    def scored(self) -> tuple[Trial, ...]:
        """The trials that finished with a number, in order."""
        return tuple(trial for trial in self.trials if trial.has_score)

    @cached_property
    def best(self) -> Trial | None:
        """The trial that repeats say is the best; without repeats the first of those with the best score."""
        raced = [trial for trial in self.scored if trial.number in self.bests[-1:]]
        return raced[0] if raced else max(self.scored, key=self.gain, default=None)

    @cached_property
    def improvements(self) -> tuple[Trial, ...]:
        """The trials that were better than all before them, by more than its own noise."""
        found: list[Trial] = []
        for trial in self.scored:
            if not found or self.gain(trial) > self.gain(found[-1]) + self.own_margin:
                found.append(trial)
        return tuple(found)

    @cached_property
    def nothing_trains(self) -> bool:
        """Whether most are known to have got nowhere, and none of the others stands out from those.

        A training that guesses may look as if it converged: its score says that it did not get further than the rest.
        """
        dead = [self.gain(trial) for trial in self.scored if trial.got_nowhere]
        if self.best is None or 2 * len(dead) <= len(self.scored):
            return False
        beyond = max(self.own_margin, max(dead) - statistics.median(dead))
        return self.gain(self.best) <= max(dead) + beyond

    @cached_property
    def has_branches(self) -> bool:
        """Whether what parameters a trial has depends on the values of others."""
        return len({own_names(trial.parameters) for trial in self.trials if trial.state == "finished"}) > 1

    @cached_property
    def deciders(self) -> Mapping[str, Mapping[str, int]]:
        """By parameter that some trials lack: those whose value tells which ones do, and how often that came true.

        So often a value that was there before told it again; a number that never comes twice tells nothing.
        """
        finished = [trial.parameters for trial in self.trials if trial.state == "finished"][-_RECENT:]
        names = dict.fromkeys(name for parameters in finished for name in parameters)
        values = {name: [repr(one[name]) if name in one else "" for one in finished] for name in names}
        found: dict[str, dict[str, int]] = {}
        for name in names:
            has = [name in parameters for parameters in finished]
            found[name] = {
                other: len(finished) - len(told)
                for other, of_other in values.items()
                if other != name
                and not all(has)
                and len(set(zip(of_other, has, strict=True))) == len(told := set(of_other))
            }
        return found

    @property
    def margin(self) -> float:
        """By how much a score must be better to count: the noise of a difference of two single trainings."""
        return self.noise * math.sqrt(2)

    @property
    def is_noise_borrowed(self) -> bool:
        """Whether the noise is that of other trainings: good for choosing what to try, not for saying what is wrong."""
        return self.noise_from == _FROM_PRIOR

    @property
    def own_margin(self) -> float:
        """The same, by what is known of this search alone: 0 where its own noise is not known."""
        return 0.0 if self.is_noise_borrowed else self.margin

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        """The space by name."""
        return {parameter.name: parameter for parameter in self.space}


def is_offered(name: str) -> bool:
    """Whether a parameter is one that isorun offers, and no part of the user's own space."""
    return name.startswith(OFFERED)


def own_names(parameters: Iterable[str]) -> frozenset[str]:
    """The parameters of the user's own space."""
    return frozenset(name for name in parameters if not is_offered(name))


def with_kept(trials: Iterable[Trial], space: Iterable[Parameter]) -> tuple[Trial, ...]:
    """The trials, where one from before isorun came to the search has all that is offered as it was: kept.

    So it can be changed there, too. A trial that was offered something lacks the rest because it does not apply to it.
    """
    kept = {one.name: KEEP for one in space if is_offered(one.name) and one.holds(KEEP)}
    return tuple(replace(trial, parameters=_completed(trial.parameters, kept)) if kept else trial for trial in trials)


def _completed(parameters: Mapping[str, Value], kept: Mapping[str, Value]) -> dict[str, Value]:
    """What is offered comes first, so that trials from before and after it was have one order."""
    from_before = parameters and not any(map(is_offered, parameters))
    return {**{name: KEEP for name in kept if from_before or name in parameters}, **parameters}


def not_offered(told: Iterable[object], space: Iterable[Parameter]) -> tuple[tuple[str, str], ...]:
    """What could not be offered in any trial, and why. told: what each trial kept of it, the latest last."""
    found = {str(name): str(why) for one in told if isinstance(one, Mapping) for name, why in one.items()}
    names = {parameter.name for parameter in space}
    return tuple((name, why) for name, why in found.items() if name not in names)


def known_noise(repeats: float | None, prior: float) -> tuple[float, str]:
    """The noise of a search and where it is known from: its own repeats come before what a prior says."""
    if repeats is None:
        return prior, _FROM_PRIOR if prior else ""
    return repeats, "trials that were repeated" + ("" if repeats else " and agreed exactly")


def with_noise(search: Search, prior: float = 0.0) -> Search:
    """The search with the noise of its repeats, else a prior's. One that has a noise already keeps it."""
    if search.noise_from:
        return search
    if search.noise:
        return replace(search, noise_from="its engine")
    noise, noise_from = known_noise(repeated_noise(search.trials), prior)
    return replace(search, noise=noise, noise_from=noise_from)


def repeated_noise(trials: Sequence[Trial]) -> float | None:
    """The pooled standard deviation of trials that were made more than once; None where it is not known."""
    groups: dict[Configuration, list[float]] = {}
    for trial in trials:
        if trial.has_score and trial.score is not None:
            groups.setdefault(trial.configuration, []).append(trial.score)
    return pooled_spread(groups.values())


def pooled_spread(groups: Iterable[Collection[float]]) -> float | None:
    """The standard deviation within groups of scores, whatever order they come in; None where it is not known.

    Scores that agree to the last digits do so because nothing is drawn, if two repeats do; one may agree by chance.
    """
    squares, freedom, largest = [], 0, 0.0
    for scores in groups:
        if len(scores) > 1:
            mean = math.fsum(scores) / len(scores)
            squares += [(score - mean) ** 2 for score in scores]
            freedom += len(scores) - 1
            largest = max(largest, *map(abs, scores))
    spread = math.sqrt(math.fsum(squares) / freedom) if freedom else 0.0
    if spread > _DUST * largest:
        return spread
    return 0.0 if freedom >= _SHOWS_THAT_NOTHING_VARIES else None
