"""Import: the runs of a tracker become a study of this store, about which every question can be asked.

A second import recognises what it knows: nothing is doubled, new runs are added, and of one that went on since it was
imported the whole is taken as another attempt, or, where it had finished, told. Records come first and the study's
document last: an import that was cut short goes on when it is asked for again.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from isorun import showing
from isorun.analysis import Told
from isorun.analysis.evidence import Condition, first_of, some
from isorun.errors import InputError, StoreConflict, known_names
from isorun.report import Column, Table, View
from isorun.session import Store, open_store, place_of, study_as_kept
from isorun.share.foreign_records import LEFT_OUT, record_of, without_secret_values
from isorun.share.telling_apart import BY_EXPERIMENT, NO_SEED, ToldApart, seed_parameter
from isorun.share.trackers import AbstractTracker, Chosen, TrackedRun, opened_tracker
from isorun.store import STUDIES, AbstractStore
from isorun.store.folder import FolderStore
from isorun.study.design import Study, document_of, document_without_secrets, imported_study
from isorun.study.imported import ImportedRun, ImportedRuns, imported_cell_id
from isorun.study.records import RunRecord, RunState
from isorun.workflow import kept_by_nobody_else, store_words

__all__ = ["Imported", "import_runs"]

_NAMED: Final = 3
_LEFT_OUT_TOLD: Final = 6
_GROUPS_SHOWN: Final = 12
_AT_ONCE: Final = 8
"""Records that are on their way to the disk of a folder at a time: each waits for it, and they wait together."""


@dataclass(slots=True)
class Imported(Told):
    """What came of an import.

    known: runs that were there already. grown: those that went on after they had been imported as finished, and stay as
    they are. updated: those of which the whole was taken now. gone: those that the tracker has no longer. not_taken:
    what is in the tracker and became no run (deleted runs, trials that wait), by what it is. left_out: what records
    have no place for, by what it is and in how many runs. without_values: runs that have no metric at all.
    """

    told_as: ClassVar[str] = "imported"

    study: str
    place: str
    store: str = ""
    new: int = 0
    known: int = 0
    updated: int = 0
    grown: list[str] = field(default_factory=list)
    gone: int = 0
    values: int = 0
    groups: dict[tuple[str, str, str], int] = field(default_factory=dict)
    states: dict[str, int] = field(default_factory=dict)
    conditions: list[Condition] = field(default_factory=list)
    not_taken: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    without_values: int = 0

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "study": self.study,
            "from": self.place,
            "runs": {"new": self.new, "known": self.known, "updated": self.updated, "grown": self.grown},
            "no_longer_there": self.gone,
            "not_taken": self.not_taken,
            "left_out": self.left_out,
            "without_values": self.without_values,
            "values": self.values,
            "states": self.states,
            "groups": [
                {"approach": approach, "config": config, "level": level, "runs": runs}
                for (approach, config, level), runs in self.groups.items()
            ],
            "conditions": [condition.to_json() for condition in self.conditions],
        }

    def view(self) -> View:
        """For people."""
        counted = [f"{some(self.new, 'new run')} with {self.values:,} values" if self.new else "no new run"]
        counted += [f"{self.updated} taken again as they are now"] if self.updated else []
        counted += [f"{self.known} known already"] if self.known else []
        counted += [f"{len(self.grown)} that grew since and were left as they are"] if self.grown else []
        ended = ", ".join(f"{count} {state}" for state, count in self.states.items())
        gone = "no longer in the tracker"
        unfinished = sum(count for state, count in self.states.items() if state not in (str(RunState.FINISHED), gone))
        others = f"; {some(unfinished, 'run')} that did not finish {'is' if unfinished == 1 else 'are'} in no figure"
        runs = f"{some(sum(self.states.values()), 'run')} ({ended}){others if unfinished else ''}"
        verdict = (
            f"{self.place}: {', '.join(counted)}.",
            f"The study {self.study} has {runs}.",
            f"next: isorun report {shlex.quote(self.study)}{self.store}",
        )
        rows = tuple((*group, str(count)) for group, count in list(self.groups.items())[:_GROUPS_SHOWN])
        more = len(self.groups) - len(rows)
        table = Table(
            "groups",
            "what the runs were taken for",
            (*(Column(title, key=True) for title in ("approach", "config", "level")), Column("runs")),
            rows,
            (f"{more:,} more groups; --json has all.",) if more else (),
        )
        return View(verdict, (table,), tuple(self.conditions))


showing.VIEWS[Imported.told_as] = Imported.view


def import_runs(
    place: str,
    *,
    name: str | None = None,
    store: Store = None,
    experiments: Sequence[str] = (),
    approach: str | None = None,
    seed: str | None = None,
    ignore: Sequence[str] = (),
    metrics: Mapping[str, str] | None = None,
    update: bool = False,
    python: str = "",
    progress: Callable[[float, float], None] | None = None,
    deleted: bool = False,
) -> Imported:
    """Take the runs of a tracker into the store as a study.

    place: `mlflow:sqlite:///mlflow.db`, `wandb:./wandb` and so on. name: that of the study; the experiment's when not
    given. experiments: which, by name or number; all when not given. approach: what tells approaches apart:
    "experiment", "name", or a parameter or a tag. seed: the parameter with the seed; "none" for none; one that is
    called so when not given. ignore: parameters that tell no configs apart. metrics: what runs are judged by, with
    directions. update: take runs that grew since they were imported. python: an interpreter that has Aim, for Aim.
    deleted: take runs, too, that were deleted in the tracker and are still there (MLflow).
    """
    tracker = opened_tracker(place)
    if deleted and not tracker.keeps_deleted:
        raise InputError(
            f"--deleted: {tracker.name} has no deleted runs that could be read",
            allowed="of mlflow:…",
            hint="the same command without it",
        )
    chosen = Chosen(tuple(experiments), python, tuple(metrics or ()), deleted=deleted)
    runs = [without_secret_values(run) for run in tracker.read(chosen)]
    if not runs:
        raise InputError(f"there is no run in {tracker.place}", found="; ".join(tracker.notes) or "nothing")
    _refuse_unknown(metrics or {}, runs, tracker.place)
    study_name = _name_for(runs, tracker) if name is None else name
    with ExitStack() as stack:
        where = place_of(None, store)
        opened = stack.enter_context(open_store(where)) if isinstance(where, str) else where
        # Names of configs and numbers of repeats go into the records, and come from what is kept when they are made.
        stack.enter_context(kept_by_nobody_else(study_name, opened))
        work = _Import(tracker, runs, study_name, opened, progress or (lambda _done, _total: None))
        asked = _command(tracker, experiments, approach, ignore, deleted=deleted)
        work.is_asked_as(asked, store_words(store), is_named=bool(name))
        work.settle(approach, seed, tuple(ignore))
        return work.carry_out(metrics or {}, update=update)


def _refuse_unknown(metrics: Mapping[str, str], runs: Sequence[TrackedRun], place: str) -> None:
    """A metric that no run has would leave nothing to judge by, in every answer about the study."""
    known = dict.fromkeys(name for run in runs for name in (*run.results, *run.series))
    for name in metrics:
        if name not in known:
            raise InputError(f"no run in {place} has the metric {name!r}", allowed=known_names(name, known))


def _command(
    tracker: AbstractTracker,
    experiments: Sequence[str],
    approach: str | None,
    ignore: Sequence[str],
    *,
    deleted: bool,
) -> str:
    """The import as it is typed again, but for its seed, its name and its store."""
    chosen = [word for one in experiments for word in ("--experiment", one)]
    chosen += [] if approach is None else ["--approach", approach]
    chosen += ["--deleted"] if deleted else []
    return shlex.join(["isorun", "import", tracker.place, *chosen]) + _ignoring(ignore)


def _ignoring(parameters: Sequence[str]) -> str:
    return "".join(f" --ignore {shlex.quote(name)}" for name in parameters)


def _name_for(runs: Sequence[TrackedRun], tracker: AbstractTracker) -> str:
    """What the runs were filed under; where that is several things, the place."""
    names = {run.experiment for run in runs}
    told = names.pop() if len(names) == 1 else Path(tracker.where.rstrip("/")).stem
    safe = re.sub(r"[^\w.-]+", "-", told, flags=re.ASCII).strip("-._")[:80]
    return safe or tracker.name


class _Import:
    """One import, from runs to records and a kept study."""

    def __init__(
        self,
        tracker: AbstractTracker,
        runs: Sequence[TrackedRun],
        name: str,
        store: AbstractStore,
        progress: Callable[[float, float], None],
    ) -> None:
        self._tracker, self._runs, self._name, self._store = tracker, runs, name, store
        self._progress = progress
        self._command, self._named = "isorun import …", ""
        self._before = self._kept()
        self._apart = ToldApart()
        self._found_seed = False
        self._done = Imported(name, tracker.place)
        self._written: list[Future[None]] = []

    def is_asked_as(self, command: str, store: str, *, is_named: bool) -> None:
        """How it is typed, for the next commands. store: the words that name the store."""
        self._command, self._named = f"{command}{store}", f" --name {shlex.quote(self._name)}" if is_named else ""
        self._done.store = store

    def _kept(self) -> Study | None:
        """The study of this name, as far as earlier imports made it."""
        if self._name not in self._store.documents(STUDIES).names():
            return None
        known = study_as_kept(self._name, self._store)
        if known.imported is None or known.imported.tracker != self._tracker.name:
            of = "runs that isorun made" if known.imported is None else f"runs of {known.imported.tracker}"
            raise InputError(
                f"there is a study {self._name!r} already", found=f"it holds {of}", hint="--name NAME: another name"
            )
        return known

    def settle(self, approach: str | None, seed: str | None, ignore: tuple[str, ...]) -> None:
        """How runs are told apart: as asked, as before, or as parameters are called."""
        before = self._before.imported.settings if self._before and self._before.imported else {}
        asked = {"approach": approach, "seed": seed, "ignore": list(ignore) or None}
        for option, value in asked.items():
            if value is not None and before and before.get(option) not in (None, value):
                words = _ignoring(ignore) if option == "ignore" else f" --{option} {shlex.quote(str(value))}"
                raise InputError(
                    f"the study {self._name!r} was imported with another --{option}",
                    found=f"{value}; before: {before[option] or 'none'}",
                    hint=f"isorun import …{words} --name ANOTHER makes another study of the same runs",
                )
        known = self._before.imported.configs if self._before and self._before.imported else {}
        chosen_seed = str(before.get("seed", "")) if seed is None and before else seed
        self._found_seed = bool(before.get("found_seed")) if before else chosen_seed is None
        found = seed_parameter(self._runs) if chosen_seed is None else "" if chosen_seed == NO_SEED else chosen_seed
        self._apart = ToldApart(
            approach or str(before.get("approach", BY_EXPERIMENT)),
            found,
            ignore or tuple(before.get("ignore", ())),
            {name: dict(values) for name, values in known.items()},
        )
        self._apart.check(self._runs)
        self._apart.learn(self._runs)

    def carry_out(self, metrics: Mapping[str, str], *, update: bool) -> Imported:
        """Records first, then the study's document."""
        imported = self._before.imported if self._before else None
        known = {run.run: run for run in imported.runs} if imported else {}
        kept: dict[tuple[str, ...], ImportedRun] = dict(known)
        attempts = self._attempts(known)
        counts = Counter((run.approach, run.config, run.seed) for run in known.values())
        with ThreadPoolExecutor(_AT_ONCE if isinstance(self._store, FolderStore) else 1) as self._writers:
            for run in self._runs:
                entry = known.get(run.key) or self._entry(run, counts)
                kept[run.key] = self._take(run, entry, attempts, is_new=run.key not in known, update=update)
            for number, written in enumerate(self._written):
                written.result()
                self._progress(number + 1, len(self._written))
        self._done.gone = len(set(known) - {run.key for run in self._runs})
        settings = {
            "approach": self._apart.by,
            "seed": self._apart.seed or NO_SEED,
            "ignore": list(self._apart.ignored),
            "found_seed": self._found_seed,
        }
        runs = ImportedRuns(self._tracker.name, tuple(kept.values()), self._apart.configs, settings)
        self._keep(runs, metrics)
        self._tell(runs)
        return self._done

    def _attempts(self, known: Mapping[tuple[str, ...], ImportedRun]) -> dict[str, int]:
        """By cell, the latest attempt that has a record; of cells that are finished, a negative one."""
        cells = [run.cell for run in known.values()]
        latest: dict[str, int] = {}
        for run_id in self._store.run_ids(cells) if cells else ():
            cell, _, attempt = run_id.rpartition("-")
            latest[cell] = max(latest.get(cell, 0), int(attempt))
        finished = self._store.finished(cells) if cells else set()
        return {cell: -attempt if cell in finished else attempt for cell, attempt in latest.items()}

    def _entry(self, run: TrackedRun, counts: Counter[Any]) -> ImportedRun:
        approach, config, seed = self._apart.approach_of(run), self._apart.config_name(run), self._apart.seed_of(run)
        repeat = counts[approach, config, seed]
        counts[approach, config, seed] += 1
        cell = imported_cell_id(self._tracker.name, (self._name, *run.key))
        return ImportedRun(run.key, cell, "", approach, config, seed, repeat)

    def _take(
        self, run: TrackedRun, entry: ImportedRun, attempts: Mapping[str, int], *, is_new: bool, update: bool
    ) -> ImportedRun:
        """Record the run, unless what is kept of it is the same."""
        content, attempt = run.content(), attempts.get(entry.cell, 0)
        if entry.content == content and attempt:
            self._done.known += 1
            return entry
        cell_id = entry.cell
        if attempt < 0:
            if not update:
                self._done.grown.append(run.name or " ".join(run.key))
                return entry
            cell_id, attempt = imported_cell_id(self._tracker.name, (self._name, *run.key), content), 0
        taken = ImportedRun(run.key, cell_id, content, entry.approach, entry.config, entry.seed, entry.repeat)
        runs = ImportedRuns(self._tracker.name, (taken,), self._apart.configs)
        record = record_of(run, runs.cell_of(taken), attempt + 1, self._tracker.place)
        self._written.append(self._writers.submit(self._finish, record, run))
        if is_new:
            self._done.new += 1
            self._done.values += run.points + len(run.results)
        else:
            self._done.updated += 1
        return taken

    def _finish(self, record: RunRecord, run: TrackedRun) -> None:
        try:
            self._store.finish(record)
        except StoreConflict as error:
            raise InputError(
                f"the run {run.name or ' '.join(run.key)} contradicts what this store has of it",
                found=error.found,
                hint="--name NAME imports the runs as another study; nothing that is recorded is lost",
            ) from None

    def _keep(self, runs: ImportedRuns, metrics: Mapping[str, str]) -> None:
        judged: dict[str, Any] = document_of(self._before)["metrics"] if self._before else {}
        told = {name: better for run in self._runs for name, better in run.directions.items() if better}
        judged = judged or {name: {"direction": better} for name, better in told.items()}
        if metrics:
            judged = {
                name: {"direction": better or told.get(name, "")} if better or told.get(name) else {}
                for name, better in metrics.items()
            }
        study = imported_study(self._name, runs, judged, Path.cwd())
        document = {"folder": str(Path.cwd()), **document_without_secrets(study)}
        self._store.documents(STUDIES).write(study.name, document)

    def _tell(self, runs: ImportedRuns) -> None:
        self._done.groups = dict(Counter((run.approach, run.config, str(run.level)) for run in runs.runs))
        found = [str(run.state) if run.state else "still running" for run in self._runs]
        self._done.states = dict(Counter(found))
        if self._done.gone:
            self._done.states["no longer in the tracker"] = self._done.gone
        what = Counter(re.sub(r" \([\d,]+ times\)$", "", item) for run in self._runs for item in run.left_out)
        self._done.left_out = dict(what.most_common())
        self._done.not_taken = dict(self._tracker.not_taken)
        self._done.without_values = sum(not run.points and not run.results for run in self._runs)
        self._done.conditions = [*self._conditions(runs)]

    def _conditions(self, runs: ImportedRuns) -> list[Condition]:
        """What to know of these runs before anything is concluded from them."""
        return [
            *self._seeds(runs),
            *self._configs(),
            *self._ended(),
            *self._empty(),
            *self._not_kept(),
            *self._grown(),
            *(Condition("tracker-note", note, "nothing, where that is meant") for note in self._tracker.notes),
        ]

    def _seeds(self, runs: ImportedRuns) -> list[Condition]:
        seeded = sum(run.seed is not None for run in runs.runs)
        found = []
        if self._apart.seed and seeded:
            how = "is called so" if self._found_seed else "was named"
            message = (
                f"the parameter {self._apart.seed!r} {how} and is taken for the seed of {some(seeded, 'run')}: runs "
                f"with the same one count as one unit; whether the training used it is not known"
            )
            next_step = f"{self._command} --seed none --name NAME, where it is something else"
            found.append(Condition("seed-from-parameter", message, next_step))
        if seeded < len(runs.runs):
            unfit = self._apart.unfit_seeds(self._runs)
            why = (
                f" ({self._apart.seed} is no whole number from 0 on: {first_of(unfit, _NAMED, ', ')})" if unfit else ""
            )
            message = (
                f"of {some(len(runs.runs) - seeded, 'run')} no seed is known{why}: what was drawn independently is not "
                f"known, each counts as one unit, and every verdict says so"
            )
            next_step = f"{self._command} --seed PARAMETER --name NAME, where one has the seed"
            if unfit:
                next_step = f"{self._command} --seed ANOTHER --name NAME, where another parameter has the seed"
            found.append(Condition("units-unknown", message, next_step))
        return found

    def _configs(self) -> list[Condition]:
        alone = self._apart.alone(self._runs)
        if not alone:
            return []
        message = (
            f"every run has a config of its own, because {first_of(alone, _NAMED, ', ')} differs in each: no two runs "
            f"can be counted together"
        )
        next_step = f"{self._command}{_ignoring(alone[:_NAMED])} --name NAME"
        return [Condition("configs-of-one-run", message, f"where that says nothing about the training: {next_step}")]

    def _ended(self) -> list[Condition]:
        going = sum(run.state is None for run in self._runs)
        if not going:
            return []
        message = f"{some(going, 'run')} had not ended by the tracker's word: recorded as interrupted, in no figure"
        return [Condition("still-running", message, "import again when they have ended: the whole is taken then")]

    def _empty(self) -> list[Condition]:
        if not self._done.without_values:
            return []
        message = f"{some(self._done.without_values, 'run')} without any metric: recorded, in no figure"
        return [Condition("runs-without-values", message, "nothing, where that is meant")]

    def _not_kept(self) -> list[Condition]:
        """What was left out, by what it is: of a thousand runs each may have the same artifact."""
        what = self._done.left_out
        if not what:
            return []
        told = first_of((f"{item} ({some(count, 'run')})" for item, count in what.items()), _LEFT_OUT_TOLD)
        message = f"a record has no place for: {told}"
        return [Condition(LEFT_OUT, message, "they stay in the tracker; every record names its own")]

    def _grown(self) -> list[Condition]:
        grown = self._done.grown
        if not grown:
            return []
        message = (
            f"{some(len(grown), 'run')} changed in the tracker after they had been imported as finished "
            f"({first_of(grown, _NAMED, ', ')}); what was recorded stays"
        )
        next_step = f"{self._command}{self._named} --update counts them as they are now; the old records stay"
        return [Condition("runs-grew", message, next_step)]
