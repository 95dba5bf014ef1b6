"""Whose turn a trial is, and what isorun proposes in it. Engines' adapters only translate to and from this.

The engine's own strategy proposes until a bug is found, or as long as was asked for, and again when the target is
reached; where changing the best trial no longer helps, it has every other trial, and where a prior does not fit those
for which it is let go. The same
search, number and seed give the same proposal, so a search that was killed goes on from its trials alone.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from isorun.errors import InputError
from isorun.repair.bugs import Limits, find_bugs, is_silent, patience_of
from isorun.repair.priorities import Prior, Proposal, propose
from isorun.repair.searches import (
    KEEP,
    Configuration,
    Parameter,
    Search,
    Trial,
    Value,
    is_offered,
    with_noise,
)

__all__ = ["RepairPolicy", "values_for"]

_HANDS_BACK: Final = frozenset({"exhausted-space", "stalled-trial"})
"""Bugs that another choice of the next trial does not repair."""
_MOST_ALONE: Final = 25
"""So many trials that do not help are isorun's alone where a number was given; after a bug at most so many."""


@dataclass(frozen=True, slots=True)
class RepairPolicy:
    """When and how a search is repaired.

    begin: "bug", or the number of the trial from which on isorun proposes. prior: counts from other searches. guard:
    whether a prior that does not fit is let go. seed: of the draws; one of its own where none is given. hands_over:
    whether the engine has the trials in which the prior is let go, and those in which repairing no longer helps though
    begin is a number; not where its strategy is but chance.
    """

    begin: str | int = "bug"
    limits: Limits = Limits()  # noqa: RUF009 - frozen
    prior: Prior | None = None
    guard: bool = True
    seed: int = field(default_factory=lambda: secrets.randbits(63))
    hands_over: bool = True

    def __post_init__(self) -> None:
        begin, seed = self.begin, self.seed
        if begin != "bug" and not _is_count(begin):
            raise InputError("begin is not understood", found=repr(begin), allowed='"bug", or the number of a trial')
        if not _is_count(seed):
            raise InputError("seed is not understood", found=repr(seed), allowed="a whole number from 0 on")
        if not isinstance(self.guard, bool):
            raise InputError("guard is not understood", found=repr(self.guard), allowed="True or False")

    @property
    def noise(self) -> float:
        """The spread of a score between seeds, where the search itself does not tell it; 0 where it is not known."""
        return self.prior.noise if self.prior is not None else 0.0

    def plan(self, search: Search, number: int, taken: Iterable[Configuration] = ()) -> Proposal | None:
        """What isorun proposes for the trial of this number; None where it is the engine's own strategy's turn.

        taken: configurations besides those of the search's trials that somebody else is about to try. Noise that the
        search does not tell itself is the prior's: engines read trials, and know none.
        """
        search = with_noise(search, self.noise)
        if not self._is_in_charge(search, number):
            return None
        return self.propose(search, tuple(taken), np.random.default_rng([self.seed, number]))

    def propose(self, search: Search, taken: Sequence[Configuration], rng: np.random.Generator) -> Proposal | None:
        """One proposal. Controls of a comparison propose otherwise, and all else is the same.

        Without a prior that fits, an engine's strategy is better than changes of the best trial, unless nothing trains.
        """
        found = propose(search, self.prior, rng, guard=self.guard, taken=taken)
        let_go = found is not None and self.prior is not None and not found.with_prior
        return None if self.hands_over and let_go and not search.nothing_trains else found

    def _is_in_charge(self, search: Search, number: int) -> bool:
        own = [trial for trial in search.trials if trial.proposed_by == "isorun"]
        if isinstance(self.begin, int):
            if number < self.begin or not self.hands_over:
                return number >= self.begin
        elif not (own or is_silent(search, self.limits) or self._has_bug(search)):
            return False
        return not self._is_reached(search) and self._is_its_turn(search, number, own)

    def _has_bug(self, search: Search) -> bool:
        return any(bug.kind not in _HANDS_BACK for bug in find_bugs(search, self.limits))

    def _is_reached(self, search: Search) -> bool:
        return self.limits.target is not None and search.short_of(self.limits.target) <= 0

    def _is_its_turn(self, search: Search, number: int, own: Sequence[Trial]) -> bool:
        """Whether changing the best trial still helps; where it does not, the engine has every other trial."""
        last = search.improvements[-1].number if search.improvements else -1
        since = sum(trial.number > last for trial in own if trial.is_over)
        return since < self._patience(search) or number % 2 == 0

    def _patience(self, search: Search) -> int:
        """After how many of its own trials without improvement isorun shares them, however slowly the search grew."""
        if self.limits.patience is not None:
            return self.limits.patience
        return _MOST_ALONE if isinstance(self.begin, int) else min(patience_of(search), _MOST_ALONE)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def values_for(plan: Proposal | None, parameter: Parameter) -> tuple[Value, ...]:
    """What a parameter is in a trial; empty where the engine is to say.

    In a plan: what it says, which has all of a branch that it opens as far as trials tell (`actions.led_to`). What
    isorun offers is kept as the user built it where no plan says otherwise.
    """
    planned = {} if plan is None else plan.action.parameters
    found = [planned[parameter.name]] if parameter.name in planned else []
    if is_offered(parameter.name):
        found += [KEEP, *parameter.choices[:1]]
    return tuple(value for value in found if parameter.holds(value))[:1]
