"""What is kept of the searches of a study: every training that was proposed, and with the records what became of it.

A training is kept by the store before it starts, in its documents: the trial's number and parameters, who proposed it,
and which trial it changes. That and the records are all that a search is made of, so that a killed one
goes on where it was, and several isoruns can work on one.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from isorun.analysis.evidence.run_units import RunUnits, run_units
from isorun.analysis.studies.selection import FINAL, last_words, select
from isorun.diagnose import Symptoms, Trace, symptoms_of
from isorun.errors import NothingRecorded, StoreError, StudyError
from isorun.repair.bugs import Limits
from isorun.repair.priorities import Prior
from isorun.repair.priors import USUAL, prior_of
from isorun.repair.racing import RaceRule, RaceStanding, Runs, rule_of, standing_of
from isorun.repair.searches import (
    UNKNOWN_SYMPTOMS,
    Configuration,
    Search,
    State,
    Trial,
    configuration_of,
    known_noise,
    pooled_spread,
)
from isorun.session import alone, blaming
from isorun.store import SEARCH_CLAIM, SEARCHES, AbstractStore
from isorun.study.cells import cells_of
from isorun.study.design import with_key, with_proposed
from isorun.study.records import RunRecord, RunState
from isorun.study.searches import Proposed, SearchDesign, search_id, trial_cell

if TYPE_CHECKING:
    from isorun.study.cells import Cell
    from isorun.study.design import Study

__all__ = ["KeptSearch", "KnownSearch", "known_searches", "limits_of", "prior_for", "read_searches", "with_trials"]

_PATIENCE: Final = 0.1
"""How long another isorun that chooses a trial is waited for while nothing else is done; then it is asked later."""
_BLOCK: Final = 100
"""How many trainings are kept in a document."""
_MOST_TRIES: Final = 3
"""How often a training is begun by one isorun that others keep interrupting, such as the queue of a cluster."""


def with_trials(study: Study, store: AbstractStore) -> Study:
    """The study with the ids that the store knows, and with all that its searches proposed so far."""
    with blaming("store", store):
        study = with_key(study, store.key)
    kept = [KeptSearch(study, design, store) for design in study.searches.values()]
    return with_proposed(study, [one for search in kept for one in search.news()])


class KeptSearch:
    """What a store keeps of a search: every training that was proposed, in order. Nothing is ever taken out of it.

    A document holds so many of them, and the next ones are in the next: one more costs the same, however many there
    are. What was read once is not read again.
    """

    def __init__(self, study: Study, design: SearchDesign, store: AbstractStore) -> None:
        self._design = design
        self._store = store
        with blaming("store", store):
            self._documents = store.documents(SEARCHES)
        self._id = search_id(study, design)
        self._study = study.name
        self._block = 0
        self._in_block: list[Mapping[str, Any]] = []
        self._trials = 0

    @property
    def _name(self) -> str:
        return f"{self._id}-{self._block}" if self._block else self._id

    def news(self) -> list[Proposed]:
        """What was proposed since this was asked last, by whomever but us; at first, all of it."""
        try:
            return [self._checked(Proposed.from_json(self._design.name, one)) for one in self._unread()]
        except (LookupError, TypeError, ValueError, AttributeError, StudyError) as error:
            what = f"the search kept in {self._documents.place(self._name)} cannot be read"
            hint = "move the file away to begin the search anew; its finished runs are kept"
            raise StoreError(what, found=f"{type(error).__name__}: {error}", hint=hint) from None

    def _checked(self, one: Proposed) -> Proposed:
        """What an isorun may have proposed: the next trial, or a repeat of one, in the space."""
        if one.number != self._trials if one.repeat == 0 else one.number >= self._trials:
            raise ValueError(f"trial {one.number} follows on {self._trials} trials")
        if one.parameters.keys() != {parameter.name for parameter in self._design.space}:
            raise ValueError(f"trial {one.number} has other parameters than the space")
        for parameter in self._design.space:
            if parameter.kind != "category" and not isinstance(one.parameters[parameter.name], int | float):
                raise ValueError(f"trial {one.number}: {parameter.name} is no number")
        self._trials += one.repeat == 0
        return one

    def _unread(self) -> Iterator[Mapping[str, Any]]:
        while True:
            with blaming("store", self._store):
                document = self._documents.read(self._name)
            kept = list((document or {}).get("proposed", []))
            yield from kept[len(self._in_block) :]
            self._in_block = kept
            if len(kept) < _BLOCK:
                return
            self._block, self._in_block = self._block + 1, []

    def keep(self, one: Proposed) -> None:
        """Keep it after all that is known: it has reached the disk when this returns."""
        block = [*self._in_block, one.to_json()]
        about = {"study": self._study, "search": self._design.name, "engine": self._design.engine}
        with blaming("store", self._store):
            self._documents.write(self._name, {**about, "proposed": block})
        self._in_block = block
        self._trials += one.repeat == 0

    def alone(self) -> AbstractContextManager[bool]:
        """Whether nobody else proposes for this search, which then stays so."""
        return alone(self._store, f"{SEARCH_CLAIM}{self._id}", _PATIENCE)


@dataclass(frozen=True, slots=True)
class _Told:
    """What is known of one training: the record in the words of a search."""

    state: State
    score: float | None
    seconds: float
    started: float | None
    symptoms: Symptoms
    why_failed: str


_OPEN: Final = _Told("running", None, 0.0, None, UNKNOWN_SYMPTOMS, "")


def _told_by(record: RunRecord, study: Study, design: SearchDesign) -> _Told:
    finished = record.state is RunState.FINISHED
    selection = next(iter(study.selections.values()), FINAL)
    score = select(record, selection, [design.metric]).values.get(design.metric) if finished else None
    why = "" if finished else (last_words(record.log_tail) or record.reason)
    if finished and score is None:
        why = f"it left no {design.metric}"
    if score is not None and not math.isfinite(score):
        why = f"{design.metric} is {score}"
    return _Told(
        state="failed" if why else "finished",
        score=None if why else score,
        seconds=record.wall_seconds,
        started=_timestamp(record.started_at),
        symptoms=symptoms_of(Trace.of_record(record)),
        why_failed=why,
    )


def _timestamp(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


class KnownSearch:
    """One search as far as it is known: what was proposed, and what became of it."""

    def __init__(self, study: Study, design: SearchDesign, prior: Prior | None) -> None:
        self.study = study
        self.design = design
        self.prior = prior
        self.proposed: list[Proposed] = []
        self.trials: dict[int, Proposed] = {}  # by number, without their repeats
        self.tried: set[Configuration] = set()
        self._by_cell: dict[str, Proposed] = {}
        self._told: dict[tuple[int, int], _Told] = {}
        self._made: set[tuple[int, int]] = set()
        self._awaited: set[tuple[int, int]] = set()
        self._interruptions: Counter[tuple[int, int]] = Counter()
        # What is said of the search, kept as it grows: a search of many trials is not told anew for each of them.
        self._shown: dict[int, Trial] = {}
        self._scores: dict[int, dict[int, float]] = {}
        self._alike: dict[Configuration, dict[tuple[int, int], float]] = {}
        self._standing: RaceStanding | None = None
        self._records: dict[int, dict[int, RunRecord]] = {}  # with scores, by trial and repeat, where they are raced
        self._drawn: dict[tuple[int, int], RunUnits] = {}

    def add(self, proposed: Iterable[Proposed]) -> list[Cell]:
        """Proposals that were not known; the cells of all of them."""
        cells = []
        for one in proposed:
            cell = trial_cell(self.study, self.design, one)
            self.proposed.append(one)
            self._by_cell[cell.id] = one
            self.tried.add(configuration_of(one.parameters))
            self._made.add((one.number, one.repeat))
            self._awaited.add((one.number, one.repeat))
            if one.repeat == 0:
                self.trials[one.number] = one
                self._shown[one.number] = self._trial(one.number)
            cells.append(cell)
        self._standing = None
        return cells

    def knows(self, cell_id: str) -> bool:
        """Whether the cell is one of this search's."""
        return cell_id in self._by_cell

    def hear(self, record: RunRecord) -> None:
        """What became of a training; of one that was interrupted nothing is known."""
        one = self._by_cell[record.cell.id]
        if record.state is RunState.INTERRUPTED:
            return
        key, told = (one.number, one.repeat), _told_by(record, self.study, self.design)
        self._told[key] = told
        self._awaited.discard(key)
        scores = self._scores.setdefault(one.number, {})
        alike = self._alike.setdefault(configuration_of(one.parameters), {})
        scores.pop(one.repeat, None)
        drawn = (-1, one.repeat) if record.cell.level.fixes_seed else key  # equal trials of one seed are one draw
        alike.pop(drawn, None)
        self._hold(one, record if told.score is not None else None)
        if told.score is not None:
            scores[one.repeat] = alike[drawn] = told.score
        if one.number in self._shown:
            self._shown[one.number] = self._trial(one.number)
        self._standing = None

    def _hold(self, one: Proposed, record: RunRecord | None) -> None:
        """Keep the record as long as a race may ask which of them are copies."""
        if not self.is_raced:
            return
        held = self._records.setdefault(one.number, {})
        held.pop(one.repeat, None)
        if record is not None:
            held[one.repeat] = record
        self._drawn = {key: units for key, units in self._drawn.items() if key[0] != one.number}

    def held(self, number: int) -> list[RunRecord]:
        """The records of a trial that have a score, in the order of repeats."""
        return [record for _, record in sorted(self._records.get(number, {}).items())]

    def drawn(self, number: int, size: int) -> RunUnits:
        """Which of the first trainings of a trial were drawn independently, by all that their records tell."""
        if (number, size) not in self._drawn:
            self._drawn[number, size] = run_units(self.held(number)[:size])
        return self._drawn[number, size]

    def _places(self, number: int, size: int) -> list[int]:
        """Of so many trainings, the first of each draw."""
        unit, seen = self.drawn(number, size).unit, dict[str, int]()
        for place, record in enumerate(self.held(number)[:size]):
            seen.setdefault(unit[record.run_id], place)
        return list(seen.values())

    def tries_again(self, record: RunRecord) -> bool:
        """Whether a training ended as interrupted and is to be begun anew here.

        What is interrupted again and again is left to whoever goes on with the search, and no longer waited for.
        """
        if record.state is not RunState.INTERRUPTED:
            return False
        one = self._by_cell[record.cell.id]
        key = one.number, one.repeat
        self._interruptions[key] += 1
        if self._interruptions[key] >= _MOST_TRIES:
            self._awaited.discard(key)
        return key in self._awaited

    @property
    def under_way(self) -> int:
        """How many trainings have not ended."""
        return len(self._awaited)

    @property
    def to_come(self) -> int:
        """How many trials are left to propose."""
        return self.design.to_come(len(self.trials), len(self.tried))

    def has(self, number: int, repeat: int) -> bool:
        """Whether the training was proposed."""
        return (number, repeat) in self._made

    def search(self) -> Search:
        """The search as it stands. A trial that was repeated has the mean of its scores, and the best won its races."""
        repeats = pooled_spread(group.values() for group in self._alike.values())
        noise, noise_from = known_noise(repeats, self.prior.noise if self.prior is not None else 0.0)
        return Search(
            engine=self.design.engine,
            name=self.title,
            direction=self.design.direction,
            space=self.design.space,
            trials=tuple(self._shown.values()),
            noise=noise,
            noise_from=noise_from,
            bests=self.standing().bests if self.is_raced else (),
        )

    @property
    def title(self) -> str:
        """What it is called among the searches of all studies."""
        return " ".join(filter(None, (self.study.name, self.design.name)))

    @property
    def is_raced(self) -> bool:
        """Whether what looks better is repeated."""
        return self.design.repeats > 1

    @property
    def extra(self) -> int:
        """How many trainings were proposed beyond the trials."""
        return len(self.proposed) - len(self.trials)

    def _trial(self, number: int) -> Trial:
        one, told = self.trials[number], self._told.get((number, 0), _OPEN)
        scores = self._scores.get(number, {}).values()
        return Trial(
            number=number,
            state=told.state,
            score=None if told.score is None else math.fsum(scores) / len(scores),
            parameters=dict(one.parameters),
            seconds=told.seconds if told is not _OPEN else None,
            started=told.started,
            symptoms=told.symptoms,
            why_failed=told.why_failed,
            proposed_by="isorun" if one.by == "isorun" else "",
            origin=one.origin,
            chance=one.chance,
        )

    def standing(self) -> RaceStanding:
        """Which trial is the best by what was repeated, and which repeats a race needs."""
        if self._standing is None:
            self._standing = self._raced()
        return self._standing

    def _raced(self) -> RaceStanding:
        sign = 1.0 if self.design.direction == "higher" else -1.0
        begun = {one.number: one.declared[1] for one in reversed(self.proposed) if one.repeat and one.declared}
        declared, runs = self.declared_trials, dict[int, Runs]()
        for one in self.proposed:
            told = self._told.get((one.number, one.repeat))
            if one.repeat == 0 and told is not None:
                rule = rule_of(one.number, declared, begun.get(one.number, self.design.repeats))
                drawn = functools.partial(self._places, one.number)
                runs[one.number] = Runs(one.number, (told.started or 0.0) + told.seconds, rule=rule, drawn=drawn)
            if one.number in runs:
                score = told.score if told is not None else None
                runs[one.number].scores[one.repeat] = None if score is None else sign * score
                runs[one.number].ended[one.repeat] = told is not None
        return standing_of(list(runs.values()), RaceRule(self.design.repeats))

    @property
    def declared_trials(self) -> list[int]:
        """How many trials the search was to have, as it was declared while it was raced: one larger after another."""
        found: list[int] = []
        for trials in (*(one.declared[0] for one in self.proposed if one.declared), self.design.trials):
            if not found or trials > found[-1]:
                found.append(trials)
        return found


def limits_of(design: SearchDesign) -> Limits:
    """What is asked of the search."""
    return Limits(design.target, design.time_limit, design.patience)


def prior_for(study: Study, design: SearchDesign, given: Prior | str | Path | None = USUAL) -> Prior | None:
    """The prior by which a search of a study is judged: what is given, else what the study says."""
    if given != USUAL:
        return prior_of(given)
    if design.prior in {"none", ""}:
        return None
    is_shipped = design.prior.partition(",")[0] == "shipped"
    return prior_of(design.prior if is_shipped else Path(study.folder) / design.prior)


def known_searches(
    study: Study, store: AbstractStore, prior: Prior | str | Path | None = USUAL
) -> tuple[KnownSearch, ...]:
    """The searches of a study as they stand in a store. prior: what counts for more than what the study says."""
    if not study.searches:
        what = f"the study {study.name!r} has no search"
        raise NothingRecorded(what, hint="isorun doctor looks at its trainings, isorun report at its results")
    study = with_trials(study, store)
    records = store.records([cell.id for cell in cells_of(study)])
    told = sorted(records, key=lambda record: record.attempt)
    found = []
    for design in study.searches.values():
        one = KnownSearch(study, design, prior_for(study, design, prior))
        one.add(item for item in study.proposed if item.search == design.name)
        for record in told:
            if one.knows(record.cell.id):
                one.hear(record)
        found.append(one)
    return tuple(found)


def read_searches(study: Study, store: AbstractStore) -> tuple[Search, ...]:
    """The searches of a study as data."""
    return tuple(one.search() for one in known_searches(study, store))
