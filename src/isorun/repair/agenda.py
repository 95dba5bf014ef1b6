"""Searches through the one loop: an agenda that proposes trials, each an ordinary cell, and hears what came of them.

What was proposed is kept by the store before it starts, in its documents: the trial's number and parameters, who
proposed it, and which trial it changes by which edits. That and the records are all that a search is made of, so that
a killed one goes on where it was, and several isoruns can work on one: a proposal is made and written down while the
claim of the search is held, and nobody else's trial is proposed again.

Several searches go side by side: the one that has the fewest trials under way, and then the fewest at all, is next.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from isorun.analysis.studies.selection import FINAL, last_words, select
from isorun.diagnose import Symptoms, Trace, symptoms_of
from isorun.errors import InputError, NothingRecorded, StoreBusy, StoreError, known_names
from isorun.repair.actions import single_edits, size_of
from isorun.repair.bugs import Limits
from isorun.repair.diagnosis import SearchDiagnosis, diagnose
from isorun.repair.engines import needing, steps_of_study
from isorun.repair.policy import RepairPolicy, values_for
from isorun.repair.priorities import Prior
from isorun.repair.priors import USUAL, prior_of
from isorun.repair.racing import ERROR_RATE, RaceRule, RaceStanding, Runs, standing_of
from isorun.repair.searches import (
    UNKNOWN_SYMPTOMS,
    Configuration,
    Parameter,
    Search,
    State,
    Trial,
    Value,
    configuration_of,
    is_offered,
    known_noise,
    pooled_spread,
)
from isorun.scheduling import AbstractAgenda
from isorun.session import blaming
from isorun.store import SEARCH_CLAIM, SEARCHES, AbstractStore, Claim
from isorun.study.cells import cells_of
from isorun.study.design import with_key, with_proposed
from isorun.study.records import RunRecord, RunState
from isorun.study.searches import Proposed, SearchDesign, search_id, trial_cell

if TYPE_CHECKING:
    from isorun.study.cells import Cell, ConfigValue
    from isorun.study.design import Study

__all__ = [
    "KeptSearch",
    "SearchAgenda",
    "extra_trainings",
    "limits_of",
    "read_searches",
    "searches_of",
    "standings_of",
    "told_of",
    "told_of_search",
    "with_trials",
]

_PATIENCE: Final = 0.1
"""How long another isorun that chooses a trial is waited for while nothing else is done; then it is asked later."""
_LOOK_AGAIN: Final = 0.01
_LONGEST_CHOICE: Final = 60.0
_BLOCK: Final = 100
"""How many trainings are kept in a document."""
_MOST_TRIES: Final = 3
"""How often a training is begun by one isorun that others keep interrupting, such as the queue of a cluster."""
_DRAWS: Final = 100
"""How often a draw is made anew that was tried before."""


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

    @property
    def _name(self) -> str:
        return f"{self._id}-{self._block}" if self._block else self._id

    def news(self) -> list[Proposed]:
        """What was proposed since this was asked last, by whomever but us; at first, all of it."""
        try:
            return [Proposed.from_json(self._design.name, one) for one in self._unread()]
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            what = f"the search kept in {self._documents.place(self._name)} cannot be read"
            hint = "move the file away to begin the search anew; its finished runs are kept"
            raise StoreError(what, found=f"{type(error).__name__}: {error}", hint=hint) from None

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
        self._in_block = [*self._in_block, one.to_json()]
        about = {"study": self._study, "search": self._design.name, "engine": self._design.engine}
        with blaming("store", self._store):
            self._documents.write(self._name, {**about, "proposed": self._in_block})

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Whether nobody else proposes for this search, which then stays so. A holder that dies lets go."""
        until = time.monotonic() + _PATIENCE
        while (claim := self._claim()) is None and time.monotonic() < until:
            time.sleep(_LOOK_AGAIN)
        try:
            yield claim is not None
        finally:
            with blaming("store", self._store):
                if claim is not None:
                    claim.release()

    def _claim(self) -> Claim | None:
        with blaming("store", self._store):
            return self._store.claim(f"{SEARCH_CLAIM}{self._id}")


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


def limits_of(design: SearchDesign) -> Limits:
    """What is asked of the search."""
    return Limits(design.target, design.time_limit, design.patience)


class _Known:
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
        alike.pop(key, None)
        if told.score is not None:
            scores[one.repeat] = alike[key] = told.score
        if one.number in self._shown:
            self._shown[one.number] = self._trial(one.number)
        self._standing = None

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

    def has(self, number: int, repeat: int) -> bool:
        """Whether the training was proposed."""
        return (number, repeat) in self._made

    def search(self) -> Search:
        """The search as it stands. A trial that was repeated has the mean of its scores."""
        repeats = pooled_spread(group.values() for group in self._alike.values())
        noise, noise_from = known_noise(repeats, self.prior.noise if self.prior is not None else 0.0)
        return Search(
            engine=self.design.engine,
            name=" ".join(filter(None, (self.study.name, self.design.name))),
            direction=self.design.direction,
            space=self.design.space,
            trials=tuple(self._shown.values()),
            noise=noise,
            noise_from=noise_from,
        )

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
        )

    def standing(self) -> RaceStanding:
        """Which trial leads by what was repeated, and which repeats the race needs."""
        if self._standing is None:
            self._standing = self._raced()
        return self._standing

    def _raced(self) -> RaceStanding:
        sign = 1.0 if self.design.direction == "higher" else -1.0
        runs: dict[int, Runs] = {}
        for one in self.proposed:
            told = self._told.get((one.number, one.repeat))
            if one.repeat == 0 and told is not None:
                runs[one.number] = Runs(one.number, (told.started or 0.0) + told.seconds)
            if one.number in runs:
                score = told.score if told is not None else None
                runs[one.number].scores[one.repeat] = None if score is None else sign * score
                runs[one.number].ended[one.repeat] = told is not None
        return standing_of(list(runs.values()), RaceRule(self.design.repeats, candidates=self.design.trials))


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
        return sum(one.left for one in self._searches)


class _Proposing:
    """One search of the agenda."""

    def __init__(self, study: Study, design: SearchDesign, store: AbstractStore) -> None:
        prior = prior_of(_prior_named(design.prior, study))
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
                hands_over=design.engine.startswith("optuna:tpe"),
            )
        )
        if design.engine.startswith("optuna:"):
            with needing("optuna", 'a search by Optuna (engine = "random" needs no extra)'):
                import optuna  # noqa: F401, PLC0415 - an extra
        self.known = _Known(study, design, prior)
        self._study = study
        self._design = design
        self._store = store
        self._kept = KeptSearch(study, design, store)
        self._busy_since: float | None = None

    @property
    def left(self) -> int:
        """How many trials are left to propose."""
        return 0 if self._is_exhausted() else max(self._design.trials - len(self.known.trials), 0)

    @property
    def wants_more(self) -> bool:
        """Whether there is a trial, or a repeat of one, to propose."""
        return self.left > 0 or bool(self._repeats())

    @property
    def has_room(self) -> bool:
        """Whether one more of its trainings may be under way."""
        return not self._design.at_once or self.known.under_way < self._design.at_once

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
            own = self._repeat() or self._trial(len(self.known.trials))
            self._kept.keep(own)
        return others, self.known.add([own])

    def _wait(self) -> None:
        since, self._busy_since = self._busy_since, self._busy_since or time.monotonic()
        if since is not None and time.monotonic() - since > _LONGEST_CHOICE:
            raise StoreBusy(f"another isorun has been choosing a trial of this search for {_LONGEST_CHOICE:.0f} s")

    def _is_exhausted(self) -> bool:
        """Whether every configuration that can be proposed was."""
        space = self._design.space if self._policy else [one for one in self._design.space if not is_offered(one.name)]
        size = size_of(space)
        return len(self.known.tried) >= size

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
        edits = tuple((one.parameter, one.before, one.after) for one in plan.action.edits)
        values = {one.name: values_for(search, plan, one)[0] for one in self._design.space}
        made = cast("Mapping[str, ConfigValue]", values)
        return Proposed(self._design.name, number, made, 0, "isorun", plan.origin, edits, round(plan.trust, 3))

    def _of_engine(self, search: Search, number: int) -> Mapping[str, ConfigValue]:
        """What the engine proposes in its own space; what isorun offers beside it stays as the user has it."""
        own = [one for one in self._design.space if not is_offered(one.name)]
        kept = {one.name: values_for(search, None, one)[0] for one in self._design.space if is_offered(one.name)}
        seed = _seed(self._design.seed, number)
        if self._design.engine.startswith("optuna:"):
            from isorun.repair.engines.optuna import ask  # noqa: PLC0415 - an extra

            drawn = ask(self._design.engine, search, own, seed)
        elif self._design.engine == "edits":
            drawn = _edited(search, own, self.known.tried, seed) or _drawn(self.known.tried, own, kept, seed)
        else:
            drawn = _drawn(self.known.tried, own, kept, seed)
        return cast("Mapping[str, ConfigValue]", {**drawn, **kept})


def _prior_named(name: str, study: Study) -> str | Path | None:
    if name in {"none", ""}:
        return None
    return name if name.partition(",")[0] == "shipped" else Path(study.folder) / name


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


def searches_of(study: Study, records: Iterable[RunRecord]) -> tuple[Search, ...]:
    """The searches of a study (`with_trials` a store) as these records tell them."""
    return tuple(one.search() for one in _known(study, records))


def standings_of(study: Study, records: Iterable[RunRecord]) -> tuple[RaceStanding, ...]:
    """Of each search, what its races say."""
    return tuple(one.standing() for one in _known(study, records))


def _known(study: Study, records: Iterable[RunRecord]) -> list[_Known]:
    found = []
    told = sorted(records, key=lambda record: record.attempt)
    for design in study.searches.values():
        one = _Known(study, design, prior_of(_prior_named(design.prior, study)))
        one.add(item for item in study.proposed if item.search == design.name)
        for record in told:
            if one.knows(record.cell.id):
                one.hear(record)
        found.append(one)
    return found


def read_searches(study: Study, store: AbstractStore) -> tuple[Search, ...]:
    """The searches of a study as they stand in a store."""
    if not study.searches:
        what = f"the study {study.name!r} has no search"
        raise NothingRecorded(what, hint="isorun doctor looks at its trainings, isorun report at its results")
    study = with_trials(study, store)
    return searches_of(study, store.records([cell.id for cell in cells_of(study)]))


def told_of(study: Study, store: AbstractStore, *, where: str = "", kept_in: str = "") -> tuple[SearchDiagnosis, ...]:
    """What is said of each search of a study. where, kept_in: the study and its store, as a user names them."""
    found = zip(study.searches.values(), read_searches(study, store), strict=True)
    return tuple(_told(study, design, search, where=where, kept_in=kept_in) for design, search in found)


def told_of_search(
    study: Study,
    store: AbstractStore,
    name: str | None = None,
    *,
    limits: Limits = Limits(),  # noqa: B008
    prior: Prior | str | Path | None = USUAL,
    where: str = "",
    kept_in: str = "",
) -> SearchDiagnosis:
    """What is said of one search of a study. name: which; the only one if not given. The others: as in `told_of`.

    limits, prior: what is asked here counts for more than what the study says.
    """
    found = dict(zip(study.searches, read_searches(study, store), strict=True))
    chosen = next(iter(found)) if name is None and len(found) == 1 else name or ""
    if chosen not in found:
        what = f"{study.name} has no search {name!r}" if name else f"{study.name} has {len(found)} searches: which one?"
        hint = f"isorun repair {where or study.name} --study {next(iter(found))!r}"
        raise InputError(what, allowed=known_names(chosen, found), hint=hint)
    if not found[chosen].trials:
        raise NothingRecorded(f"no trial of {found[chosen].name} was made yet", hint="isorun run makes them")
    return _told(study, study.searches[chosen], found[chosen], limits, prior, where=where, kept_in=kept_in)


def _told(
    study: Study,
    design: SearchDesign,
    search: Search,
    limits: Limits = Limits(),  # noqa: B008
    prior: Prior | str | Path | None = USUAL,
    *,
    where: str,
    kept_in: str,
) -> SearchDiagnosis:
    """The one place in which a search of a study is judged: by what the study asks, where nothing else is asked."""
    said = limits_of(design)
    asked = Limits(
        said.target if limits.target is None else limits.target,
        said.time_limit if limits.time_limit is None else limits.time_limit,
        said.patience if limits.patience is None else limits.patience,
    )
    known = prior_of(_prior_named(design.prior, study) if prior == USUAL else prior)
    steps = steps_of_study(where or study.name, kept_in, has_all=len(search.trials) >= design.trials)
    return diagnose(search, known, asked, steps=steps)


def extra_trainings(study: Study, store: AbstractStore) -> tuple[str, ...]:
    """Of each search that is raced: who leads, and how many trainings that took beyond the trials."""
    study = with_trials(study, store)
    known = _known(study, store.records([cell.id for cell in cells_of(study)]))
    told = []
    for one in known:
        if one.design.repeats > 1:
            standing, extra = one.standing(), len(one.proposed) - len(one.trials)
            won = sum(verdict == "better" for _, _, verdict in standing.races)
            told.append(
                f"racing: trial {standing.best} leads; {len(standing.races)} candidates looked better, "
                f"{won} are called better (an error of at most {100 * ERROR_RATE:g} % over all trials); "
                f"{extra} extra trainings"
            )
    return tuple(told)
