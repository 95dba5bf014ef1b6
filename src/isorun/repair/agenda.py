"""Searches through the one loop: an agenda that proposes trials, each an ordinary cell, and hears what came of them.

A proposal is made and written down (`kept_searches.py`) while the claim of the search is held, and nobody else's trial
is proposed again. Several searches go side by side: the one that has the fewest trials under way, and then the fewest
at all, is next.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from isorun.errors import StoreBusy
from isorun.repair.actions import single_edits
from isorun.repair.engines import strategy_of
from isorun.repair.kept_searches import KeptSearch, KnownSearch, limits_of, prior_for
from isorun.repair.policy import RepairPolicy, values_for
from isorun.repair.searches import Configuration, Parameter, Search, Value, configuration_of, is_offered
from isorun.scheduling import AbstractAgenda
from isorun.session import blaming
from isorun.store import AbstractStore
from isorun.study.design import with_key
from isorun.study.records import RunRecord, RunState
from isorun.study.searches import Proposed, SearchDesign

if TYPE_CHECKING:
    from isorun.study.cells import Cell, ConfigValue
    from isorun.study.design import Study

__all__ = ["Foreseen", "SearchAgenda", "foreseen", "refuse_unready"]

_LONGEST_CHOICE: Final = 60.0
_DRAWS: Final = 100
"""How often a draw is made anew that was tried before."""


class SearchAgenda(AbstractAgenda):
    """All searches of a study. What the store knows of them is read at the first question."""

    def __init__(self, study: Study, store: AbstractStore) -> None:
        with blaming("store", store):
            study = with_key(study, store.key)
        self._store = store
        self._searches = [_Proposing(study, design, store) for design in study.searches.values()]
        self._is_read = False
        self._again: list[Cell] = []
        self._busy: list[_Proposing] = []

    def propose(self, room: Callable[[], int]) -> Sequence[Cell]:
        """What was proposed and has not ended, also by others; then as many new trainings as there is room for."""
        cells, self._again = self._again + ([] if self._is_read else self._read()), []
        self._busy = []
        if not any(one.wants_more for one in self._searches):
            return cells
        with blaming("store", self._store):
            held = {holder.cell_id for holder in self._store.holders()}
        free = room() - sum(cell.id not in held for cell in cells)
        while free > 0 and (one := self._next()) is not None:
            found = one.propose()
            if found is None:
                self._busy.append(one)
                continue
            others, own = found
            cells += [*others, *own]
            free -= len(own)
        return cells

    def is_waiting(self) -> bool:
        """Whether another isorun was choosing a trial of one of the searches."""
        return bool(self._busy)

    def _read(self) -> list[Cell]:
        self._is_read = True
        return [cell for one in self._searches for cell in one.read()]

    def _next(self) -> _Proposing | None:
        """The search whose turn it is."""
        wanting = [one for one in self._searches if one not in self._busy and one.wants_more and one.has_room]
        return min(wanting, key=lambda one: (one.known.under_way, len(one.known.proposed)), default=None)

    def hear(self, record: RunRecord, *, final: bool) -> None:
        """What became of a trial, whoever made it. A failure that is tried again is none yet.

        What was interrupted alone (all that stops the work is not asked any more) is proposed once more.
        """
        for one in self._searches:
            if final and one.known.knows(record.cell.id):
                one.known.hear(record)
                self._again += [record.cell] * one.known.tries_again(record)

    def to_come(self) -> int:
        """How many trials are left to propose."""
        return sum(one.known.to_come for one in self._searches)


class _Choosing:
    """Which training of one search is next, by what is known of it. Nothing is kept or claimed here."""

    def __init__(self, study: Study, design: SearchDesign) -> None:
        prior = prior_for(study, design)
        self._strategy = strategy_of(design.engine) if ":" in design.engine else None
        begin = 0 if design.engine == "isorun" and design.begin == "bug" else design.begin
        self._policy = (
            None
            if begin == "never"
            else RepairPolicy(
                begin,
                limits_of(design),
                prior,
                design.guard,
                seed=design.seed % 2**32,
                hands_over=self._strategy is not None and not self._strategy.is_chance,
            )
        )
        self.known = KnownSearch(study, design, prior)
        self._design = design
        self._declared = (design.trials, design.repeats) if design.repeats > 1 else None

    @property
    def wants_more(self) -> bool:
        """Whether there is a trial, or a repeat of one, to propose."""
        return self.known.to_come > 0 or bool(self._repeats())

    @property
    def has_room(self) -> bool:
        """Whether one more of its trainings may be under way."""
        return not self._design.at_once or self.known.under_way < self._design.at_once

    def next(self) -> Proposed:
        """A repeat where a race needs one, else the next trial."""
        return replace(self._repeat() or self._trial(len(self.known.trials)), declared=self._declared)

    def _repeats(self) -> tuple[tuple[int, int], ...]:
        """Repeats that a race needs, by trial and number, and that nobody has proposed."""
        if self._design.repeats < 2:
            return ()
        return tuple(wanted for wanted in self.known.standing().wanted if not self.known.has(*wanted))

    def _repeat(self) -> Proposed | None:
        for number, repeat in self._repeats()[:1]:
            return Proposed(self._design.name, number, self.known.trials[number].parameters, repeat, by="race")
        return None

    def _trial(self, number: int) -> Proposed:
        """The next trial: isorun's where it is its turn, else the engine's own."""
        if number == 0 and self._design.start is not None:
            return Proposed(self._design.name, number, self._design.start, by="start")
        search = self.known.search()
        plan = self._policy.plan(search, number) if self._policy is not None else None
        if plan is None:
            return Proposed(self._design.name, number, self._of_engine(search, number), by=self._design.engine)
        values = {one.name: values_for(plan, one)[0] for one in self._design.space}
        made = cast("Mapping[str, ConfigValue]", values)
        chance = None if plan.chance is None else round(plan.chance, 4)
        return Proposed(self._design.name, number, made, 0, "isorun", plan.origin, chance)

    def _of_engine(self, search: Search, number: int) -> Mapping[str, ConfigValue]:
        """What the engine proposes in its own space; what isorun offers beside it stays as the user has it."""
        own = [one for one in self._design.space if not is_offered(one.name)]
        kept = {one.name: values_for(None, one)[0] for one in self._design.space if is_offered(one.name)}
        seed = _seed(self._design.seed, number)
        if self._strategy is not None:
            drawn = dict(self._strategy.propose(search, own, seed))
        elif self._design.engine == "edits":
            drawn = _edited(search, own, self.known.tried, seed) or _drawn(self.known.tried, own, kept, seed)
        else:
            drawn = _drawn(self.known.tried, own, kept, seed)
        return cast("Mapping[str, ConfigValue]", {**drawn, **kept})


class _Proposing(_Choosing):
    """One search of the agenda: what is chosen is kept before anybody hears of it."""

    def __init__(self, study: Study, design: SearchDesign, store: AbstractStore) -> None:
        super().__init__(study, design)
        self._store = store
        self._kept = KeptSearch(study, design, store)
        self._busy_since: float | None = None

    def read(self) -> list[Cell]:
        """What the store knows; the cells that have not ended."""
        return self._absorb(self._kept.news(), again=True)

    def _absorb(self, proposed: Sequence[Proposed], *, again: bool = False) -> list[Cell]:
        """Take in what is new, and return the cells of those that have not ended.

        again: where no trial has ever finished, failed ones are tried again: most often it is the program's fault.
        """
        cells = self.known.add(proposed)
        if not cells:
            return []
        with blaming("store", self._store):
            records = self._store.records([cell.id for cell in cells])
        latest = {record.cell.id: record for record in sorted(records, key=lambda one: one.attempt)}
        if again and not any(record.state is RunState.FINISHED for record in latest.values()):
            latest = {}
        for record in latest.values():
            self.known.hear(record)
        ended = {cell_id for cell_id, record in latest.items() if record.state is not RunState.INTERRUPTED}
        return [cell for cell in cells if cell.id not in ended]

    def propose(self) -> tuple[list[Cell], list[Cell]] | None:
        """What others proposed meanwhile, and a training of our own where one is still wanted.

        None while another isorun is choosing.
        """
        with self._kept.alone() as is_ours:
            if not is_ours:
                self._wait()
                return None
            self._busy_since = None
            others = self._absorb(self._kept.news())
            if not self.wants_more or not self.has_room:
                return others, []
            own = self.next()
            self._kept.keep(own)
        return others, self.known.add([own])

    def _wait(self) -> None:
        since, self._busy_since = self._busy_since, self._busy_since or time.monotonic()
        if since is not None and time.monotonic() - since > _LONGEST_CHOICE:
            raise StoreBusy(f"another isorun has been choosing a trial of this search for {_LONGEST_CHOICE:.0f} s")


def refuse_unready(study: Study) -> None:
    """Say what a search lacks to be run, before anything is made for it: an engine, a prior's file."""
    for design in study.searches.values():
        _Choosing(study, design)


@dataclass(frozen=True, slots=True)
class Foreseen:
    """How far a search is, and what it would propose next; None where nothing is left, or what runs has to end first.

    made: trials that were proposed. ended: of those. to_come: trials that were not. open: ids of the trainings that
    were proposed and have not ended: a failed one is not tried again.
    """

    design: SearchDesign
    made: int
    ended: int
    to_come: int
    open: frozenset[str]
    next: Proposed | None


def foreseen(study: Study, store: AbstractStore | None) -> tuple[Foreseen, ...]:
    """What the searches of a study would do next. Nothing is kept; store: None where it is not made yet."""
    if store is not None:
        with blaming("store", store):
            study = with_key(study, store.key)
    found = []
    for design in study.searches.values():
        one = _Choosing(study, design) if store is None else _Proposing(study, design, store)
        cells = one.read() if isinstance(one, _Proposing) else []
        known = one.known
        proposed = one.next() if one.wants_more and one.has_room else None
        ended = sum(trial.is_over for trial in known.search().trials)
        left = frozenset(cell.id for cell in cells)
        found.append(Foreseen(design, len(known.trials), ended, known.to_come, left, proposed))
    return tuple(found)


def _seed(seed: int, number: int) -> int:
    """The seed of one trial's proposal: the same search goes on in the same way, whoever goes on with it."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{number}".encode()).digest()[:4], "big")


def _drawn(
    tried: Set[Configuration], space: Sequence[Parameter], kept: Mapping[str, Value], seed: int
) -> dict[str, Value]:
    """One configuration at random that was not tried yet, where one is found."""
    rng = np.random.default_rng(seed)
    for _ in range(_DRAWS):
        drawn = {parameter.name: _value(parameter, rng) for parameter in space}
        if configuration_of({**drawn, **kept}) not in tried:
            break
    return drawn


def _edited(search: Search, space: Sequence[Parameter], tried: set[Configuration], seed: int) -> dict[str, Value]:
    """The best trial with one value changed, each change as likely as the others; empty where there is none to make."""
    rng = np.random.default_rng(seed)
    best = search.best
    actions = [] if best is None else single_edits(replace(search, space=tuple(space)), best, tried, rng)
    return dict(actions[int(rng.integers(len(actions)))].parameters) if actions else {}


def _value(parameter: Parameter, rng: np.random.Generator) -> Value:
    if parameter.kind == "category":
        return parameter.choices[int(rng.integers(len(parameter.choices)))]
    low, high = parameter.low, parameter.high
    if parameter.log:
        return parameter.valid(math.exp(rng.uniform(math.log(low), math.log(high))))
    return parameter.valid(rng.uniform(low - 0.5, high + 0.5) if parameter.kind == "int" else rng.uniform(low, high))
