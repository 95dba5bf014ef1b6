"""Bisecting: which commit of a range changed the result, with enough runs of each to decide.

bisect("v1.0..main", ["python", "train.py"])

The commits of a range are a row of versions, which `analysis.sequential.change_search` searches by halves. A merge that
is found is gone into: what it brought in is a row again. What the searches came to is told by
`analysis.studies.bisection`. Runs are ordinary ones, of cells that are known by the commit,
so that a search that was ended goes on with what was made. Commits that hold the very same files share their runs; no
others do.
"""

from __future__ import annotations

import hashlib
import json
import math
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from isorun import workflow
from isorun.analysis.evidence import Condition, first_of
from isorun.analysis.evidence.run_units import BY_DIGESTS, BY_NUMBERS, BY_WEIGHTS, Bits, bits_of, run_units
from isorun.analysis.sequential.change_search import AbstractChangeSearch, BitSearch, Wanted
from isorun.analysis.studies.bisection import BITS, DRY_RUN, SCORE, Bisection, BisectionQuestion, Stretch, bisection_of
from isorun.analysis.studies.study_result import StudyResult, not_logged, run_table
from isorun.errors import InputError, IsorunError, NothingRecorded, StudyError, known_names
from isorun.execution import AbstractExecutor
from isorun.questions import study_results
from isorun.scheduling import AbstractAgenda, Observer
from isorun.store import PLANS, AbstractStore
from isorun.study.cells import Cell, Level, cells_of
from isorun.study.design import Study, adhoc_study, changed, extended, with_key
from isorun.study.history import Commit, CommitRange
from isorun.study.records import RunRecord, RunState

__all__ = ["bisect"]

_DEFAULT_MAX_RUNS: Final = 30
_NAMES: Final = frozenset({"approach", "config", "environment"})
_MOST_READ: Final = 20_000
"""Runs of a store that are looked through for those of other studies; of more, that takes longer than it saves."""
_LEFT_NOTHING: Final = "left neither digests nor numbers to compare"
_OF_REPORTS: Final = frozenset({"runs-missing", "few-runs", "no-identical-runs"})
"""Conditions of a report's tables, which say nothing about where a result changed."""


def bisect(
    commits: str,
    command: Sequence[str] | str | Study,
    *,
    what: str = SCORE,
    metric: str | None = None,
    level: str | None = None,
    alpha: float = 0.05,
    margin: float | None = None,
    max_runs: int = _DEFAULT_MAX_RUNS,
    pair: bool = False,
    first_parent: bool = False,
    paths: Sequence[str] = (),
    links: Sequence[str] = (),
    selection: str | None = None,
    folder: str | Path = ".",
    store: workflow.Store = None,
    executor: str | AbstractExecutor = "local",
    jobs: int | None = None,
    launch: str = "auto",
    devices: str = "auto",
    observer: Observer | None = None,
    dry_run: bool = False,
) -> Bisection:
    """Which commit of GOOD..BAD changed the result of a training?

    command: what trains, in words, or a study with one approach, config and environment. what: "score" (a metric, by as
    many runs as it takes) or "bits" (whether the same seed still gives the very same weights). alpha: the error rate
    over all comparisons together. margin: ends that differ by less do not differ. max_runs: of one commit. pair: give
    all commits the same seeds, and judge the differences. first_parent: do not go into merges. paths: only commits that
    change these files may be meant. links: data that are not in the repository. dry_run: say what would be done.
    """
    study = _declared(command, what, metric, level, folder, pair=pair)
    row = CommitRange.of(commits, Path(study.folder), first_parent=first_parent, paths=paths)
    question = BisectionQuestion(what, metric, selection, alpha, margin, max_runs, pair, max(jobs or 1, 1))
    versions = _versions(study, row, links)
    search = question.search(row.row, len(row.everything))
    if dry_run or row.good.tree == row.bad.tree:
        return bisection_of(row, question, [Stretch(row.row, search)], stopped=DRY_RUN if dry_run else "")
    everywhere = _together(versions.values())
    options = workflow.session_of(everywhere, store=store, executor=executor, jobs=jobs, launch=launch, devices=devices)
    with options as session:
        keyed = {tree: with_key(version, session.store.key) for tree, version in versions.items()}
        agenda = _Halving(keyed, row, question, search, session.store)
        _keep_plan(session.store, agenda, row, question)
        outcome = workflow.carry_out_agenda(agenda, session, everywhere, observer)
        agenda.end()
    known = {condition.code for condition in agenda.conditions} | _OF_REPORTS
    of_the_runs = tuple(condition for condition in outcome.conditions if condition.code not in known)
    return bisection_of(
        row,
        question,
        agenda.stretches,
        runs=agenda.runs,
        made=sum(record.state is RunState.FINISHED for record in outcome.records),
        stopped=outcome.stopped,
        metric=agenda.metric,
        reasons=agenda.reasons,
        run_ids=agenda.run_ids,
        store=workflow.store_words(store),
        judged_by=agenda.judged_by,
        conditions=(*agenda.conditions, *agenda.about_bits(), *of_the_runs),
    )


def _declared(
    command: Sequence[str] | str | Study,
    what: str,
    metric: str | None,
    level: str | None,
    folder: str | Path,
    *,
    pair: bool,
) -> Study:
    """The study of the command: one group of runs, at the level that the question needs."""
    if what not in {SCORE, BITS}:
        raise InputError(f"{what!r} cannot be bisected", allowed=known_names(what, (SCORE, BITS)))
    default = {SCORE: Level.FIXED_SEED if pair else Level.DEFAULT, BITS: Level.DETERMINISTIC}[what]
    if not isinstance(command, Study):
        words = shlex.split(command) if isinstance(command, str) else list(command)
        metrics: Mapping[str, Any] = {metric: {}} if metric else {}
        study = adhoc_study([words], levels=[level or default], metrics=metrics, folder=Path(folder))
    else:
        study = command if level is None else changed(command, levels=[level])
    several = (study.approaches, study.configs, study.environments, study.levels)
    if study.searches or any(len(part) > 1 for part in several) or any(c.draws > 1 for c in study.configs.values()):
        raise StudyError("one training is bisected: one approach, config, environment and level", found=study.name)
    if (pair or what == BITS) and not study.levels[0].fixes_seed:
        hint = "level fixed-seed or deterministic (--level)"
        raise InputError("at level default every run draws its own seed, so that no two runs share one", hint=hint)
    if what == BITS:
        return changed(study, seeds=list(study.seeds[:1]), repeats=1)
    return changed(study, repeats=1) if study.levels[0].fixes_seed else study


def _versions(study: Study, row: CommitRange, links: Sequence[str]) -> dict[str, Study]:
    """By tree, the study in a checkout of a commit with these files: the first one that has them."""
    for name in links:
        if not (Path(study.folder) / name).exists():
            raise StudyError(f"there is nothing to link: {name}", found=f"looked in {Path(study.folder).resolve()}")
    (environment,) = study.environments.values()
    linked = {"links": list(links)} if links else {}
    found: dict[str, Study] = {}
    for commit in row.known.values():
        if commit.tree not in found:
            code = {"ref": commit.short, "commit": commit.id, **linked}
            found[commit.tree] = changed(study, environments={commit.short: {**environment.to_json(), "code": code}})
    return found


def _together(versions: Iterable[Study]) -> Study:
    """One study of all versions."""
    first, *others = versions
    environments = {name: item.to_json() for one in (first, *others) for name, item in one.environments.items()}
    return changed(first, environments=environments)


def _keep_plan(store: AbstractStore, agenda: _Halving, row: CommitRange, question: BisectionQuestion) -> None:
    """Keep what is declared before the first look; refuse another plan later, which would not hold its error rate."""
    ends = [agenda.cells(commit, 1)[0].id for commit in (row.good, row.bad)]
    name = f"bisect-{hashlib.sha256(json.dumps(ends).encode()).hexdigest()[:16]}"
    kept, asked = store.documents(PLANS), question.to_json()
    try:
        before = (kept.read(name) or {}).get("bisect")
    except IsorunError as error:
        raise InputError(
            f"the plan kept in {kept.place(name)} cannot be read: {error}", hint="use a new --store"
        ) from None
    differing = [key for key, value in asked.items() if isinstance(before, dict) and before.get(key) != value]
    if differing and question.what == SCORE and isinstance(before, dict) and before.get("what") == SCORE:
        raise InputError(
            "the plan was declared before the first look, and one that changes with the results does not hold its "
            "error rate",
            found=", ".join(f"{key} {asked[key]!r}, declared {before.get(key)!r}" for key in differing),
            hint="go on with the declared plan, or begin anew with runs of your own (--store)",
        )
    if question.what == SCORE:
        kept.write(name, {"cells": ends, "bisect": asked})


class _Halving(AbstractAgenda):
    """The agenda of a bisection: it proposes what the search wants, and goes on when all of that has ended."""

    def __init__(
        self,
        versions: Mapping[str, Study],
        row: CommitRange,
        question: BisectionQuestion,
        search: AbstractChangeSearch,
        store: AbstractStore,
    ) -> None:
        self.stretches = [Stretch(row.row, search)]
        self.reasons: dict[str, str] = {}
        self.conditions: tuple[Condition, ...] = ()
        self.metric = ""
        self._versions = versions
        self._range = row
        self._question = question
        self._store = store
        self._requests = search.requests()
        self._wanted: Wanted | None = next(self._requests)
        self._branches: list[tuple[Commit, ...]] | None = None
        self._open: set[str] = set()
        self._ended: set[str] = set()
        self._read: set[str] = set()
        self._records: dict[str, RunRecord] = {}
        self._of_others: dict[str, RunRecord] | None = None
        self._kept_as: dict[str, str] = {}
        self._compared: dict[str, tuple[str, ...]] = {}

    @property
    def runs(self) -> int:
        """How many finished runs of the range's commits were looked at."""
        return sum(record.state is RunState.FINISHED for record in self._records.values())

    def propose(self, room: Callable[[], int]) -> Sequence[Cell]:  # noqa: ARG002 - a look waits for all its runs
        """What is missing of what is wanted; nothing where that has not ended, or the search is over."""
        while not self._open and self._wanted is not None:
            row = self.stretches[-1].row
            asked = {cell.id: cell for at, draws in self._wanted.items() for cell in self.cells(row[at], draws)}
            self._read_records(asked)
            missing = [cell for key, cell in asked.items() if key not in self._ended]
            if missing:
                self._open = {cell.id for cell in missing}
                return sorted(missing, key=lambda cell: (cell.repeat, cell.seed or 0))
            self._go_on()
        return ()

    def hear(self, record: RunRecord, *, final: bool) -> None:
        """A run more, or one that failed."""
        self._records[record.cell.id] = record
        if final:
            self._open.discard(record.cell.id)
            self._ended.add(record.cell.id)

    def run_ids(self, commit: Commit) -> tuple[str, ...]:
        """All finished runs of a commit, or of one with the same files, as the store knows them."""
        places = self._versions[commit.tree].environments
        records = [record for record in self._records.values() if record.cell.environment in places]
        finished = [record for record in records if record.state is RunState.FINISHED]
        in_order = sorted(finished, key=lambda record: (record.cell.seed or 0, record.cell.repeat))
        return tuple(self._kept_as.get(record.cell.id, record.run_id) for record in in_order)

    def end(self) -> None:
        """Nothing more is made."""
        self._requests.close()

    def cells(self, commit: Commit, draws: int) -> tuple[Cell, ...]:
        """The first so many draws of a commit, in the order in which they are looked at."""
        study = self._versions[commit.tree]
        found = cells_of(extended(study, study.levels[0], draws, of_one_seed=self._question.what == BITS))
        return tuple(sorted(found, key=lambda cell: (cell.seed or 0, cell.repeat))[:draws])

    def _read_records(self, asked: Mapping[str, Cell]) -> None:
        """What the store has of them; a failed run may have failed for a reason that is gone, and is tried again."""
        new = set(asked) - self._read
        if not new:
            return
        self._read |= new
        found = {record.cell.id: record for record in self._store.records(new) if record.state is RunState.FINISHED}
        for key in new - set(found):
            if (same := self._made_by_others().get(_content(asked[key]))) is not None:
                found[key] = replace(same, cell=asked[key])
                self._kept_as[key] = same.run_id
        self._records |= found
        self._ended |= set(found)

    def _made_by_others(self) -> dict[str, RunRecord]:
        """Finished runs of other studies with these commits, by what they are but for the names that they go by."""
        if self._of_others is None:
            commits = {commit.id for commit in self._range.known.values()}
            found = self._store.records() if len(self._store.run_ids()) <= _MOST_READ else ()
            self._of_others = {
                _content(record.cell): record
                for record in found
                if record.state is RunState.FINISHED
                and record.cell.environment_content.get("code", {}).get("commit") in commits
            }
        return self._of_others

    def _go_on(self) -> None:
        """Tell the search what its runs gave, and hear what it wants next."""
        assert self._wanted is not None
        row = self.stretches[-1].row
        values = self._values({row[position]: draws for position, draws in self._wanted.items()})
        try:
            self._wanted = self._requests.send({position: values[row[position].id] for position in self._wanted})
        except StopIteration:
            self._refuse_broken(self.stretches[-1])
            self._go_into_merge()

    def _values(self, wanted: Mapping[Commit, int]) -> dict[str, list[Any]]:
        cells = {commit.id: self.cells(commit, draws) for commit, draws in wanted.items()}
        self._note_failures(wanted, cells)
        if self._question.what == BITS:
            return {name: [self._bits(name, cell) for cell in draws] for name, draws in cells.items()}
        known = self._scores(cells)
        return {name: [known.get(cell.id, math.nan) for cell in draws] for name, draws in cells.items()}

    def _finished(self, cell: Cell) -> RunRecord | None:
        record = self._records.get(cell.id)
        return record if record is not None and record.state is RunState.FINISHED else None

    def _bits(self, commit: str, cell: Cell) -> Bits | None:
        record = self._finished(cell)
        found = None if record is None else bits_of(record)
        if found is not None:
            self._compared.setdefault(found.judged_by, found.names)
        elif record is not None:
            self.reasons.setdefault(commit, f"its runs {_LEFT_NOTHING}")
        return found

    @property
    def judged_by(self) -> str:
        """What bits were told by: numbers where a run left nothing else."""
        return next((kind for kind in (BY_NUMBERS, BY_DIGESTS, BY_WEIGHTS) if kind in self._compared), "")

    def about_bits(self) -> Iterator[Condition]:
        """What equal bits are not, where no digest was compared."""
        if self.judged_by == BY_NUMBERS:
            names = first_of(self._compared[BY_NUMBERS], 5, ", ")
            yield Condition(
                "judged-by-numbers",
                f"the runs left no digest of their weights: the same bits means the same numbers ({names}), as far as "
                "they were printed or logged",
                "add isorun.result(weights=model) at the end of the training: its bits are then compared",
            )

    def _note_failures(self, wanted: Mapping[Commit, int], cells: Mapping[str, Sequence[Cell]]) -> None:
        for commit in wanted:
            records = [self._records[cell.id] for cell in cells[commit.id] if cell.id in self._records]
            failed = next((record for record in records if record.state is not RunState.FINISHED), None)
            finished = [record for record in records if record.state is RunState.FINISHED]
            if failed is not None:
                self.reasons[commit.id] = failed.reason or str(failed.state)
            elif len(finished) > 1 and self._question.what == SCORE:
                merged = run_units(finished)
                if merged.count == 1:
                    self.reasons[commit.id] = f"its runs are one draw: they {merged.merges[0]}"

    def _scores(self, cells: Mapping[str, Sequence[Cell]]) -> dict[str, float]:
        """By cell, the metric of a run that is a unit of its own; copies of others count for nothing."""
        asked = {cell.id for draws in cells.values() for cell in draws}
        records = [record for key, record in self._records.items() if key in asked]
        if not any(record.state is RunState.FINISHED for record in records):
            return {}
        names = {cell.environment for draws in cells.values() for cell in draws}
        versions = (study for study in self._versions.values() if names & set(study.environments))
        analysed = workflow.analyse_records(_together(versions), records)
        if not self.metric:  # that of the ends is what all are judged by
            self.metric = self._metric_of(analysed)
        found = study_results(analysed, self._question.selection)
        known = found.conditions(None, found.sides("environment", [], None))
        self.conditions = tuple(condition for condition in known if condition.code not in _OF_REPORTS)
        values = _unit_values(run_table(analysed, self._question.selection), self.metric)
        for name, draws in cells.items():
            if not any(math.isfinite(values.get(cell.id, math.nan)) for cell in draws):
                self.reasons.setdefault(name, f"its runs left no finite {self.metric}")
        return values

    def _metric_of(self, analysed: StudyResult) -> str:
        """What runs are judged by: as asked, else what the study would choose; InputError where no run has it."""
        chosen = self._question.metric or (analysed.primary.name if analysed.primary else "")
        if chosen and chosen in analysed.logged:
            return chosen
        raise not_logged(chosen, analysed.logged)

    def _refuse_broken(self, stretch: Stretch) -> None:
        """An end that does not run, or that gives other bits each time, leaves nothing to hold others against."""
        search = stretch.search
        if len(self.stretches) == 1 and search.broken is not None:
            commit = stretch.row[search.broken]
            end = "good" if search.broken == 0 else "bad"
            raise _broken_end(commit, end, self.reasons.get(commit.id, ""))
        if isinstance(search, BitSearch) and search.unsteady is not None:
            commit = stretch.row[search.unsteady]
            one, other, *_ = (bits for bits in dict.fromkeys(search.drawn[search.unsteady]) if bits is not None)
            raise InputError(
                f"two runs of {commit.ref or commit.short} with the same seed do not end with the same bits",
                found=f"level {next(iter(self._versions.values())).levels[0]}, other {one.judged_by}: "
                f"{first_of(one.differing(other), 3, ', ')}",
                hint="isorun audit says what is left open; --what score needs no equal bits",
            )

    def _go_into_merge(self) -> None:
        """Search what the merge that was found brought in, a branch after the other; else it is over."""
        self._wanted = None
        stretch = self.stretches[-1]
        search = stretch.search
        if (
            search.differs
            and search.high - search.low == 1
            and self._range.into_merges
            and self._range.changing is None
        ):
            self._branches = list(self._range.brought_in(stretch.row[search.high]))
        elif search.differs or self._branches is None:
            return
        while self._branches:
            branch = self._branches.pop(0)
            if branch[0].tree == branch[-1].tree:
                continue
            shares = getattr(search, "shares", None)
            inner = self._question.search(branch, len(branch), shares)
            self.stretches.append(Stretch(branch, inner))
            self._requests = inner.requests()
            self._wanted = next(self._requests)
            return


def _unit_values(table: Mapping[str, Sequence[Any]], metric: str) -> dict[str, float]:
    """By cell, the value of the first run of each unit."""
    firsts: dict[tuple[str, str], str] = {}
    for run, environment, unit in zip(table["run"], table["environment"], table["unit"], strict=True):
        firsts.setdefault((environment, unit), run)
    kept = set(firsts.values())
    rows = zip(table["run"], table.get(metric, [math.nan] * len(table["run"])), strict=True)
    return {run.rpartition("-")[0]: float(value) for run, value in rows if run in kept}


def _content(cell: Cell) -> str:
    """What a cell is, but for the names that its study gave approach, config and environment."""
    content = json.loads(cell.canonical())
    return json.dumps({name: value for name, value in content.items() if name not in _NAMES}, sort_keys=True)


def _broken_end(commit: Commit, end: str, reason: str) -> NothingRecorded:
    judges = any(words in reason for words in ("one draw", "left no", _LEFT_NOTHING))
    what = f"the {end} end {commit.ref or commit.short} {'cannot be judged' if judges else 'does not run'}"
    if "one draw" in reason:
        hint = "--take-seeds lets constants follow the run's seed; --what bits asks for equal bits"
    elif judges:
        hint = "isorun.log(loss=…) or isorun.result(weights=model) in the training; isorun scan shows what is read"
    elif "can't open file" in reason:
        hint = "a script that a commit lacks is named by its absolute path, outside of the repository"
    else:
        hint = "name another end, or see that it runs: --link for data that are not in the repository"
    return NothingRecorded(what, found=reason, hint=hint)
