"""The pipeline: declare, run, record, analyse. Here the stages meet; what is asked of their results lies above.

study = load("study.toml")          declare
outcome = run(study)                run and record what is missing, with what there is to know about it
result = analyse(study)             from records to a result object, which report/ renders

Wherever a store is asked for, it may be a folder, a URL, or a store that is open already.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from isorun.errors import IsorunError, NothingRecorded, StoreBusy, StoreError, StudyError, UsageError, needs_linux
from isorun.scheduling import AbstractAgenda, CellList, Observer, Outcome, carry_out, observer_of
from isorun.session import (
    ExecutorOptions,
    Session,
    Store,
    alone,
    blaming,
    is_there,
    open_session,
    open_store,
    opened,
    place_of,
    recorded,
    run_named,
    runs_folder,
    store_if_there,
)
from isorun.store import PLANS, SEARCHES, STUDIES, STUDY_CLAIM, STUDY_PLACE, AbstractStore, shown_place
from isorun.study.cells import Cell, cells_of, withheld_hashes
from isorun.study.design import (
    KEPT_NAMES,
    Study,
    can_be_kept,
    changed,
    document_of,
    document_without_secrets,
    extends,
    together,
    with_key,
)
from isorun.study.records import RunRecord, RunState

if TYPE_CHECKING:
    from isorun.analysis.evidence import Condition
    from isorun.analysis.studies.record_table import Records
    from isorun.analysis.studies.study_result import StudyResult
    from isorun.diagnose import Diagnosis
    from isorun.diagnose.audit import Audit
    from isorun.execution import AbstractExecutor

__all__ = [
    "AnalysedRuns",
    "Store",
    "analyse",
    "analyse_records",
    "analyse_runs",
    "audit",
    "beyond_the_study",
    "carry_out_agenda",
    "cells",
    "doctor",
    "has_store",
    "kept_analysed",
    "kept_by_nobody_else",
    "known_to",
    "load",
    "missing",
    "more_than",
    "opened",
    "queue",
    "recent",
    "recorded",
    "records",
    "refuse_imported",
    "remember",
    "reuse_conditions",
    "run",
    "run_missing",
    "runs_analysed",
    "runs_of",
    "session_of",
    "store_conditions",
    "told_beside",
    "trials_to_come",
]

_GRACE: Final = 120.0
_KEEPING_SECONDS: Final = 90.0
"""How long who keeps the same study is waited for: milliseconds, an import, or the lease of one that died at it."""
_LOOKED_AT: Final = 20
_CELL_ID: Final = re.compile("[0-9a-f]{16}")
_TOLD_AT_ONCE: Final = frozenset(
    [
        *("shared-device", "bad-return", "several-trainings", "several-processes"),
        *("lock-of-the-study", "checkout-changed", "checkout-written", "edited-while-running", "isolation-left"),
        *("training-outlived", "python-unreached"),
    ]
)


class Watches(Protocol):
    """What `isorun.watch` gives: rows of a training, and why it ended before that did."""

    problem: str

    @property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """What was seen, an epoch a row."""


def load(source: str | Path | Study, *, store: Store = None) -> Study:
    """A study: as it is, from a file, or an earlier one by its name, which wins over a folder called like it."""
    with opened(source, store) as (study, _):
        return study


def cells(study: Study | str | Path, *, store: Store = None) -> tuple[Cell, ...]:
    """All cells of the study, with the ids that its store knows if it has one already.

    Where values are withheld from records, a cell's id is made with the store's key; without a store it is provisional.
    """
    with opened(study, store) as (declared, place):
        if not declared.searches and not any(withheld_hashes(declared, None).values()):
            return cells_of(declared)
        with store_if_there(place_of(declared, place)) as found:
            return cells_of(declared if found is None else known_to(declared, found))


def as_its_store_names_it(study: Study, store: Store) -> tuple[Study, bool]:
    """The study under the name that its store gives it, and whether that name and the ids of its cells are final.

    They are not where values are withheld from records and the store, whose key has a part in them, is not made yet.
    """
    if not any(withheld_hashes(study, None).values()):
        return study, True
    with store_if_there(place_of(study, store)) as found:
        return (study, False) if found is None else (with_key(study, found.key), True)


def known_to(study: Study, store: AbstractStore) -> Study:
    """The study with the cells that the store knows: those of its key, and those that its searches proposed so far."""
    if not study.searches:
        return with_key(study, store.key)
    from isorun.repair.kept_searches import with_trials

    return with_trials(study, store)


def trials_to_come(study: Study, *, store: Store = None) -> int:
    """How many trials the searches of the study are still to propose."""
    from isorun.study.searches import trials_to_come as left_of

    with store_if_there(place_of(study, store)) as found:
        return left_of(study if found is None else known_to(study, found))


def missing(study: Study, *, store: Store = None) -> tuple[Cell, ...]:
    """The cells that have no finished record yet; no store is made where there is none."""
    with store_if_there(place_of(study, store)) as found:
        if found is None:
            return cells_of(study)
        declared = cells_of(known_to(study, found))
        finished = found.finished(cell.id for cell in declared)
        return tuple(cell for cell in declared if cell.id not in finished)


def run(
    study: Study | str | Path,
    *,
    store: Store = None,
    jobs: int | None = None,
    launch: str = "auto",
    devices: str = "auto",
    executor: str | AbstractExecutor = "local",
    observer: Observer | None = None,
    only: Callable[[Cell], bool] | None = None,
    keep_study: bool = False,
    detach: bool = False,
) -> Outcome:
    """Carry out what is missing of the study and keep its records; what there is to know is in its `conditions`.

    store: where records are kept, a folder or a URL; `.isorun` beside the study when not given. executor: what carries
    out the runs, `local`, `ray`, `slurm`, or a name that an installed distribution brings. jobs: runs at a time; one
    here and as many as fit on a cluster when not given. launch: "auto", "warm" (forked from a server that imported the
    frameworks) or "fresh" (the reference). devices: "auto", "none" or those that may be used ("0,1"). only: which
    cells; all when not given. keep_study: keep the study in its store, so that it can be reported on by its name.
    detach: on a cluster, return as soon as the runs are queued; the same call comes back to them.
    """
    with opened(study, store) as (declared, place):
        options = session_of(declared, store=place, executor=executor, jobs=jobs, launch=launch, devices=devices)
        with options as session:
            return run_missing(declared, session, observer, only, keep_study=keep_study, detach=detach)


def run_missing(
    study: Study,
    session: Session,
    observer: Observer | None = None,
    only: Callable[[Cell], bool] | None = None,
    *,
    keep_study: bool = False,
    detach: bool = False,
) -> Outcome:
    """Carry out what is missing of the study in an open session; a search goes on to the end of its trials."""
    if detach and not session.executor.stays:
        raise UsageError(
            "--detach: these runs would end with isorun",
            allowed="executors whose runs stay, such as --executor slurm",
            hint="nohup isorun run … & leaves the terminal",
        )
    observer = observer_of(study, observer)
    if study.searches:
        from isorun.repair.agenda import SearchAgenda

        agenda = SearchAgenda(study, session.store)
        return carry_out_agenda(agenda, session, study, observer, keep_study=keep_study, detach=detach)
    with blaming("store", session.store):
        declared = cells_of(known_to(study, session.store))
        finished = session.store.finished(cell.id for cell in declared)
        cells = [cell for cell in declared if cell.id not in finished and (only is None or only(cell))]
        if cells and finished and type(observer) is not Observer:  # who is not there is told nothing
            observer.made_before(len(finished), session.store.records(sorted(finished)[:_LOOKED_AT]))
    _check_environments(study, session, cells)
    return carry_out_agenda(CellList(cells), session, study, observer, keep_study=keep_study, detach=detach)


def _check_environments(study: Study, session: Session, cells: Sequence[Cell]) -> None:
    """What can never run is refused before the first run."""
    if not cells:
        return
    executor = session.executor
    with blaming("executor", executor):
        for name in dict.fromkeys(cell.environment for cell in cells):
            executor.check(study.environments[name])


def carry_out_agenda(
    agenda: AbstractAgenda,
    session: Session,
    study: Study,
    observer: Observer | None = None,
    *,
    keep_study: bool = False,
    detach: bool = False,
) -> Outcome:
    """Carry out an agenda on a study, with everything there is to know about its runs in the outcome.

    What is known before the first run is told the observer at once: who hears it may want to stop before hours of runs.
    """
    store, observer = session.store, observer_of(study, observer)
    with blaming("store", store):
        study = known_to(study, store)
        before = (
            *_named_by_file_alone(study),
            *reuse_conditions(study, store, by_name=keep_study),
            *_left_in_slurm(study, session),
        )
    for condition in before:
        observer.warned(condition)
    judged_before: dict[str, Any] = {}

    def keep() -> None:
        if keep_study:
            judged_before.update(remember(study, store=store))
        elif study.file:
            _remember_file(study, store)

    # Of what is refused before a run starts (devices that are not there, say), no name is kept.
    outcome = carry_out(agenda, session, study, observer, before_first=keep, detach=detach)
    with blaming("store", store):
        after = (*outcome.conditions, *_seen_in_runs(study, outcome), *store_conditions(store))
        misnamed = any(condition.code == "metric-not-logged" for condition in (*before, *after))
        if keep_study and misnamed and not study.searches:
            remember(study, store=store, metrics=_logged_metrics(study, store) or judged_before)
    return replace(outcome, conditions=(*before, *after))


def _named_by_file_alone(study: Study) -> tuple[Condition, ...]:
    """Told before hours of runs, which pages would not show."""
    if not study.file or can_be_kept(study.name):
        return ()
    from isorun.analysis.evidence import Condition

    message = f"a store cannot keep the name {study.name!r}: its file alone names the study, and no page shows it"
    next_step = f"write a name of {KEPT_NAMES} into {study.file}: its runs stay what they are"
    return (Condition("name-not-kept", message, next_step),)


def _left_in_slurm(study: Study, session: Session) -> tuple[Condition, ...]:
    """Runs of the study that SLURM still has, where another executor is about to make them, too."""
    if session.executor_name in ("", "slurm") or not (session.run_folders / "slurm").is_dir():
        return ()
    from isorun.analysis.evidence import Condition, some
    from isorun.execution.slurm.standing import QUEUED, RUNNING, standing

    # What was left to the queue stays there; of what isorun was killed over, nobody else knows that it is there.
    safe = {holder.cell_id for holder in session.store.holders() if holder.left}
    cells = {cell.id for cell in cells_of(study, session.store.key)} - safe
    left = standing(session.run_folders, session.store.run_ids())
    there = [one for one in left if one.state in (QUEUED, RUNNING) and one.job.cell.id in cells]
    if not there:
        return ()
    message = f"{some(len(there), 'run')} of this study are in SLURM's queue or run there, and are made here as well"
    ends = f"isorun stop {shlex.quote(study.file or study.name)}, with the same --store where one was given, ends them"
    next_step = f"--executor slurm comes back to them; {ends}"
    return (Condition("in-slurm", message, next_step),)


def _logged_metrics(study: Study, store: AbstractStore) -> dict[str, Any]:
    """The metrics of the study that a run of it has: by a misspelt one nothing can be judged, now or later."""
    found = store.records(cell.id for cell in cells_of(study, store.key))
    logged = {name for record in found for name in (*record.results, *record.series)}
    return {name: item for name, item in document_of(study)["metrics"].items() if name in logged}


def reuse_conditions(study: Study, store: AbstractStore, *, by_name: bool = False) -> tuple[Condition, ...]:
    """What to know before finished runs of the study are used again. by_name: the study will be kept by its name."""
    declared = cells_of(study, store.key)
    finished = store.finished(cell.id for cell in declared)
    if not finished and not (by_name and recent(store)):
        return ()
    from isorun.reuse import reuse_conditions as conditions_of

    return conditions_of(study, store, declared, finished, by_name=by_name)


def _seen_in_runs(study: Study, outcome: Outcome) -> tuple[Condition, ...]:
    """What the runs say of themselves, told at once: whoever started them can still change it.

    Most say nothing, and then nothing is loaded.
    """
    noted = (
        note.code in _TOLD_AT_ONCE or (note.code == "no-worker" and record.cell.level.fixes_seed)
        for record in outcome.records
        for note in record.notes
    )
    restarts = (series.begins_again for record in outcome.records for series in record.series.values())
    logged = {name for record in outcome.records for name in (*record.results, *record.series)}
    as_declared = not outcome.records or logged.issuperset(study.metrics)
    asked = any(environment.switches for environment in study.environments.values())
    finished = [record for record in outcome.records if record.state is RunState.FINISHED]
    if as_declared and not asked and not any(noted) and not any(restarts):
        return _met_in_files(finished)
    from isorun.analysis.studies.conditions import told_at_once

    return told_at_once(study, finished)


def _met_in_files(records: Sequence[RunRecord]) -> tuple[Condition, ...]:
    """Runs that met in a file; it takes no statistics to see that, and most trainings write some file."""
    if not any("files" in record.environment for record in records):
        return ()
    from isorun.analysis.evidence.shared_files import shared_file_conditions

    return tuple(shared_file_conditions(records))


def session_of(
    study: Study,
    *,
    store: Store = None,
    executor: str | AbstractExecutor = "local",
    jobs: int | None = None,
    launch: str = "auto",
    devices: str = "auto",
    python: str = "",
) -> AbstractContextManager[Session]:
    """The store and the executor of a study, each opened once.

    Searches, environments of other kinds than the interpreter, and commands are looked at before: what is refused then
    leaves nothing.
    """
    refuse_imported(study)
    if executor == "local":
        needs_linux("carrying out runs")
    if study.searches:
        from isorun.repair.agenda import refuse_unready

        refuse_unready(study)
    for environment in study.environments.values():
        if environment.kind:
            from isorun.environments import opened_environment

            opened_environment(environment)
    if executor == "local" and not has_store(study, store):  # nothing is made for what cannot begin
        from isorun.environments.interpreter import check_command

        for approach in study.approaches.values():
            for environment in study.environments.values():
                own = environment if environment.python else replace(environment, python=python)
                check_command(approach.command, own, Path(study.folder).resolve())
    where = place_of(study, store)
    return open_session(
        where, executor, ExecutorOptions(runs_folder(where, study.folder), jobs, launch, devices, python)
    )


def records(study: Study | str | Path, *, store: Store = None, beyond: Iterable[Cell] = ()) -> Records:
    """The records of the study's cells, failed attempts included; `.to_pandas()` gives a row a run.

    beyond: more cells, which the study does not declare: an agenda may have proposed them.
    """
    from isorun.analysis.studies.record_table import Records

    with opened(study, store) as (declared, place), recorded(place, declared) as records_kept:
        return Records(records_kept.records(_ids(cells_of(known_to(declared, records_kept)), beyond)))


def analyse(
    study: Study | str | Path | None = None, *, store: Store = None, beyond: Iterable[Cell] = ()
) -> StudyResult:
    """Everything a report needs to know of the study's runs, and of those of the cells beyond it.

    study: the latest study of this folder when not given. Of one with searches also what is said of them.
    """
    with opened(study, store) as (declared, place), recorded(place, declared) as records_kept:
        result = _analysed(declared, records_kept, beyond)
        if not declared.searches:
            return result
        from isorun.repair.told_searches import told_of

        where = str(study) if isinstance(study, str | Path) else declared.name
        told = told_of(declared, records_kept, where=where, kept_in=str(store) if isinstance(store, str | Path) else "")
        return replace(result, searches=dict(zip(declared.searches, told, strict=True)))


def analyse_runs(study: Study | str | Path, *, store: Store = None) -> StudyResult:
    """The same without a word on its searches, which takes longer: for who asks about runs."""
    return runs_analysed(study, store=store).result


@dataclass(frozen=True, slots=True)
class AnalysedRuns:
    """What the runs of a study say, and the runs themselves."""

    result: StudyResult
    records: Sequence[RunRecord]


def runs_analysed(study: Study | str | Path, *, store: Store = None) -> AnalysedRuns:
    """The same with its runs, for who asks what lies behind the numbers, too."""
    with opened(study, store) as (declared, place), recorded(place, declared) as records_kept:
        return _runs_analysed(declared, records_kept)


def _analysed(study: Study, store: AbstractStore, beyond: Iterable[Cell] = ()) -> StudyResult:
    return _runs_analysed(study, store, beyond).result


def _runs_analysed(study: Study, store: AbstractStore, beyond: Iterable[Cell] = ()) -> AnalysedRuns:
    keyed = known_to(study, store)
    found = tuple(store.records(_ids(cells_of(keyed), beyond)))
    return AnalysedRuns(analyse_records(keyed, found, told_beside(keyed, store)), found)


def kept_analysed(name: str, *, store: Store = None) -> AnalysedRuns | None:
    """What the runs of an ad hoc study say, with them; None where no study of this name is kept."""
    with store_if_there(place_of(None, store)) as kept:
        known = kept is not None and name in kept.documents(STUDIES).names()
        return runs_analysed(name, store=kept) if known else None


def doctor(what: Study | str | Path | Watches | RunRecord, *, store: Store = None) -> Diagnosis:
    """What is wrong inside the trainings of a study, in one run by its id, in a record, or in what a watcher saw."""
    from isorun.diagnose import Diagnosis, Trace, examine

    if isinstance(what, RunRecord):
        traces, subject = [Trace.of_record(what)], what.run_id
    elif isinstance(what, (Study, str, Path)):
        if not isinstance(what, Study):
            from isorun.repair import refuse_search

            refuse_search(what)
        found = _run_of(what, store) or _latest_attempts(records(what, store=store))
        subject = what.name if isinstance(what, Study) else str(what)
        if not found:
            raise NothingRecorded(
                f"no run of {subject} is recorded yet",
                hint="isorun run makes the runs, and isorun status says which go on",
            )
        traces = [Trace.of_record(record) for record in found]
    else:
        traces, subject = [Trace.of_rows(what.rows, watch_ended=what.problem)], "this training"
    return Diagnosis(subject, tuple(map(examine, traces)))


def audit(
    command: Sequence[str],
    *,
    static: bool = False,
    seconds: float = 20.0,
    steps: int = 20,
    folder: str | Path | None = None,
) -> Audit:
    """Which sources of nondeterminism a training leaves open: from its source, and from a few real steps of it.

    static: run nothing. seconds, steps: the run is stopped after so long, or after so many steps of an optimizer.
    """
    if not static:
        needs_linux("a run that is looked at (isorun audit without --static)")
    from isorun.diagnose.audit import Audit, examine_source, read_program, without_collection
    from isorun.diagnose.audit.patching import patch_for

    where = Path.cwd() if folder is None else Path(folder)
    with without_collection():
        program = read_program(command, where, os.environ)
        found = Audit(tuple(command), program.script.shown, len(program.sources), examine_source(program))
    if not static:
        from isorun.diagnose.audit.seen import Seen, hold_all, those_that_trained

        began, script = time.time(), program.script.path.resolve()
        record, processes = _looked_at(command, where, f"{seconds:g} {steps} {script}", seconds + _GRACE)
        ranks = those_that_trained(processes, program) or [dict(record.environment.get("effective") or {})]
        ended = record.state is RunState.FINISHED or any(
            each["audit"].get("stopped") for each in ranks if "audit" in each
        )
        found = replace(found, ran=_how_it_went(record, ranks, ended=ended), failed=not ended)
        if ranks[0].get("audit") and ended:  # how far another came is not known
            kept, withdrawn = hold_all(found.findings, [Seen.of(program, each, began) for each in ranks])
            look = {
                name: value for name, value in ranks[0]["audit"].items() if name != "reached"
            }  # long, and of no use
            found = replace(found, findings=kept, withdrawn=withdrawn, effective={**ranks[0], "audit": look})
    pins = (found.effective.get("packages") or {}).items()
    return replace(found, patch=patch_for(program, found.findings, pins), unread=program.unread)


def _looked_at(
    command: Sequence[str], folder: Path, asked: str, limit: float
) -> tuple[RunRecord, list[Mapping[str, Any]]]:
    """A run that the worker ends after a few steps, and what each of its processes told; it is kept nowhere."""
    import tempfile

    from isorun.execution.worker_events import told_environments
    from isorun.study.design import adhoc_study, only_looked_at

    study = adhoc_study([list(command)], name="audit", policy={"time_limit": limit}, folder=folder)
    with tempfile.TemporaryDirectory(prefix="isorun-audit-") as kept:
        record = run(only_looked_at(study, asked), store=str(Path(kept) / "store"), launch="fresh").records[0]
        return record, told_environments(Path(kept) / "store" / "runs" / record.run_id)


def _how_it_went(record: RunRecord, ranks: Sequence[Mapping[str, Any]], *, ended: bool) -> str:
    if not ended:
        return f"a run of it, which {record.state} and so tells nothing: {record.reason}"
    looks = [each["audit"] for each in ranks if each.get("audit")]
    if not looks:
        return "a run of it, which could not be looked into: it is no Python, or a Python without isorun's hook"
    many = f"{len(looks)} ranks, " if len(looks) > 1 else ""
    steps = f"{looks[0]['steps']} steps, " if looks[0].get("steps") else ""
    stopped = f"stopped {looks[0]['stopped']}" if looks[0].get("stopped") else "to its end"
    return f"a run of it ({many}{steps}{looks[0]['seconds']:.1f} s, {stopped})"


def _run_of(what: Study | str | Path, store: Store) -> list[RunRecord]:
    """The run of this id, or the newest of this cell; empty for what is no such id."""
    cell, _, attempt = str(what).partition("-")
    if isinstance(what, Study) or not _CELL_ID.fullmatch(cell) or not (attempt.isdigit() or not attempt):
        return []
    return [run_named(str(what), store)]


def _latest_attempts(found: Iterable[RunRecord]) -> list[RunRecord]:
    latest: dict[str, RunRecord] = {}
    for record in found:
        if record.cell.id not in latest or latest[record.cell.id].attempt < record.attempt:
            latest[record.cell.id] = record
    return list(latest.values())


def _ids(declared: Iterable[Cell], beyond: Iterable[Cell]) -> Iterable[str]:
    """The ids of both, each once."""
    return dict.fromkeys(cell.id for cell in (*declared, *beyond))


def analyse_records(study: Study, found: Sequence[RunRecord], told: Sequence[Condition] = ()) -> StudyResult:
    """What these records say of the study. told: what is to be known besides."""
    from isorun.analysis.studies.study_result import analyse_study

    if not found:
        raise NothingRecorded(
            f"no run of the study {study.name!r} is recorded yet",
            found="; ".join(condition.message for condition in told),
            hint="isorun run makes the runs, and records those that ended in a cluster's queue meanwhile",
        )
    result = analyse_study(study, found)
    return replace(result, conditions=(*result.conditions, *told)) if told else result


def remember(
    study: Study, *, store: Store = None, metrics: Mapping[str, Any] | None = None, queued: bool = False
) -> dict[str, Any]:
    """Keep the declaration of an ad hoc study in its store, so that it can be reported on by name.

    Levels, seeds and repeats of the same command that are kept under the name already stay beside its own. metrics:
    those to keep in place of its own. queued: for workers. The metrics that were kept before are returned.
    """
    judged_before: dict[str, Any] = {}
    where, is_same = place_of(study, store), False
    with (
        nullcontext(where) if isinstance(where, AbstractStore) else open_store(where) as opened,
        blaming("store", opened),
        kept_by_nobody_else(study.name, opened),
    ):
        study = with_key(study, opened.key)
        if study.name in recent(opened) and not study.searches:
            from isorun.reuse import kept_before

            before = kept_before(study, opened)
            is_same = before is not None and extends(study, before)
            if before is not None and is_same:
                judged_before = document_of(before)["metrics"]
                study = together(study, before)
        study = study if metrics is None else changed(study, metrics=dict(metrics))
        place = _place_of(study, opened)
        if is_same and not queued:
            place = _place_before(study.name, place, opened)
        opened.documents(STUDIES).write(study.name, {**place, **document_without_secrets(study)})
    return judged_before


@contextmanager
def kept_by_nobody_else(name: str, store: AbstractStore) -> Iterator[None]:
    """For who replaces the declaration of a study by one made from it: of two at once, one would lose the other's."""
    claim = f"{STUDY_CLAIM}{hashlib.sha256(name.encode()).hexdigest()[:16]}"  # a name need not be fit for one
    with alone(store, claim, _KEEPING_SECONDS) as is_alone:
        if not is_alone:
            raise StoreBusy(
                f"somebody else has been keeping the study {name} for {_KEEPING_SECONDS:g} s",
                hint="the same command again; nothing that was kept before is lost",
            )
        yield


def _place_before(name: str, place: dict[str, Any], store: AbstractStore) -> dict[str, Any]:
    """Where a study lies that is kept already: in a store that machines share, where it was said to be at first.

    Workers look for that folder: whoever makes runs of the same study in another one does not move it from under them.
    """
    from isorun.store.folder import FolderStore

    if isinstance(store, FolderStore):
        return place
    before = store.documents(STUDIES).read(name) or place
    is_elsewhere = before.get("folder") != place["folder"]
    return {key: value for key, value in before.items() if key in STUDY_PLACE} if is_elsewhere else place


def refuse_imported(study: Study) -> None:
    """Nobody can make more runs of a tracker with isorun, here or elsewhere."""
    if study.imported:
        raise StudyError(
            f"the runs of the study {study.name} were imported from {study.imported.tracker}: isorun cannot make more",
            hint="make more with the tracker, then isorun import again; isorun run -- COMMAND makes runs under control",
        )


def queue(study: Study, *, store: Store = None) -> tuple[Study, tuple[Cell, ...], tuple[Condition, ...]]:
    """Keep a study for `isorun worker` and run nothing: the study as kept, its cells that are missing, what to know."""
    if study.searches:
        raise StudyError(
            "a search proposes its trials as results come in, and cannot be left to workers",
            hint=f"isorun run {shlex.quote(study.file or study.name)} goes on with it; several share its trials",
        )
    refuse_imported(study)
    place = place_of(study, store)
    with (
        nullcontext(place) if isinstance(place, AbstractStore) else open_store(place) as found,
        blaming("store", found),
    ):
        study = known_to(study, found)
        conditions = reuse_conditions(study, found, by_name=not study.file)
        if not study.file:
            remember(study, store=found, queued=True)
        elif not can_be_kept(study.name):
            raise StudyError(
                "a study that workers take is known by its name, and this one cannot be kept",
                found=repr(study.name),
                allowed=KEPT_NAMES,
                hint=f"write another name into {study.file}",
            )
        elif not _remember_file(study, found, queued=True):
            raise StudyError(
                f"a study of the name {study.name!r} is kept already, and is that of a command",
                hint=f"write another name into {study.file}",
            )
        return study, missing(study, store=found), conditions


def _place_of(study: Study, store: AbstractStore, *, queued: bool = False) -> dict[str, Any]:
    """Where a kept study lies; where others may carry it out, also which code that was, so that theirs is the same."""
    place: dict[str, Any] = {"folder": str(Path(study.folder).resolve())}
    from isorun.store.folder import FolderStore

    if not queued and isinstance(store, FolderStore):  # one machine's, as a rule: it need not wait for git
        return place
    from isorun.reuse import code_of

    code = code_of(study)
    return {**place, "code": code} if code else place


def _remember_file(study: Study, store: AbstractStore, *, queued: bool = False) -> bool:
    """Keep where the study of a file is declared, and how, so that its name says it, too; whether it is kept now.

    What a command was called stays what it is: the file can be named as well.
    """
    if not can_be_kept(study.name):
        return False
    with blaming("store", store):
        kept = store.documents(STUDIES)
        try:
            before = kept.read(study.name) if study.name in kept.names() else None
        except IsorunError:  # what cannot be read is told by whoever asks for it
            return False
        if before is not None and "file" not in before:
            return False
        place = {**_place_of(study, store, queued=queued), "file": study.file}
        declared = document_without_secrets(study)
        is_same = before is not None and declared == {k: v for k, v in before.items() if k not in STUDY_PLACE}
        if is_same and not queued:
            place = _place_before(study.name, place, store)
        if before != {**place, **declared}:
            kept.write(study.name, {**place, **declared})
    return True


def recent(store: Store = None) -> tuple[str, ...]:
    """The names of the studies kept in the store of this folder, the latest first."""
    with store_if_there(place_of(None, store)) as kept:
        return () if kept is None else kept.documents(STUDIES).names()


def store_words(store: Store) -> str:
    """What names the store in a command that is to be typed next; empty for that of the folder."""
    return f" --store {shlex.quote(shown_place(str(store)))}" if isinstance(store, (str, Path)) else ""


def has_store(study: Study, store: Store = None) -> bool:
    """Whether there is a store of the study's records already, so that opening it makes none."""
    place = place_of(study, store)
    return not isinstance(place, str) or is_there(place)


def store_conditions(store: AbstractStore) -> tuple[Condition, ...]:
    """What the store itself has to say, as a reader of a report should know it."""
    notes = store.notes()
    if not notes:
        return ()
    from isorun.analysis.evidence import Condition

    look = [f"{store.looked_over_by} looks at everything"] if store.looked_over_by else []
    aside = [*look, "what was set aside is kept"]
    return tuple(
        Condition(note.code, note.message, "; ".join(aside if note.code.startswith("store-") else look))
        for note in notes
    )


def told_beside(study: Study, store: AbstractStore) -> tuple[Condition, ...]:
    """What is to be known beside the runs that a store keeps of a study, wherever they are judged."""
    return (*_runs_beyond(study, store), *store_conditions(store))


def beyond_the_study(more: str) -> tuple[Condition, ...]:
    """Runs that a decision made and the study does not declare: its report and its comparisons do not show them.

    They are not taken in silently: how many there are depended on their results, and only `isorun decide` holds its
    error rate then. more: what to write into the study for them, see `more_than`; empty where there are none.
    """
    if not more:
        return ()
    from isorun.analysis.evidence import Condition

    message = f"isorun decide made runs beyond those the study declares ({more}); reports leave them out until it does"
    next_step = f"write {more} into the study to see them; isorun decide judges them"
    return (Condition("beyond-the-study", message, next_step),)


def _runs_beyond(study: Study, store: AbstractStore) -> Iterator[Condition]:
    """What decisions on this study made beyond it, as far as their kept plans say."""
    kept = store.documents(PLANS)
    names = kept.names()
    own = {cell.id for cell in cells_of(study, store.key)} if names else set()
    for name in names:
        try:
            document = kept.read(name) or {}
        except IsorunError:
            continue  # whoever goes on with that decision is told
        if own.issuperset(document.get("cells", ())):
            yield from beyond_the_study(more_than(study, document.get("made")))


def kept_of(name: str | Study, store: AbstractStore) -> tuple[set[str], set[tuple[str, str]]]:
    """What a store keeps of a study: its cells, also those that decisions added, and documents by kind and name."""
    with opened(name, store) as (declared, _):
        study = known_to(declared, store)
    cells = {cell.id for cell in cells_of(study, store.key)}
    documents = {(STUDIES, study.name)}
    for plan in store.documents(PLANS).names():
        try:
            document = store.documents(PLANS).read(plan) or {}
        except StoreError:  # of whichever study: who reads it next is told what is wrong with it
            documents.add((PLANS, plan))
            continue
        if cells.issuperset(document.get("cells", ())):
            documents.add((PLANS, plan))
            made = document.get("made")
            further = changed(study, **made) if made and more_than(study, made) else study
            cells |= {cell.id for cell in cells_of(further, store.key)}
    for design in study.searches.values():
        from isorun.study.searches import search_id

        begins = search_id(study, design)
        names = store.documents(SEARCHES).names()
        documents |= {(SEARCHES, one) for one in names if one == begins or one.startswith(f"{begins}-")}
    return cells, documents


def runs_of(study: Study) -> dict[str, Any]:
    """Which runs a study declares, as far as a decision changes it; plain JSON, kept with its plan."""
    return {"repeats": study.repeats, "seeds": list(study.seeds)}


def more_than(study: Study, made: Any) -> str:
    """What to write into the study for these runs; empty where it declares them, or nothing is known of them."""
    match made:
        case {"repeats": int(repeats)} if repeats > study.repeats:
            return f"repeats = {repeats}"
        case {"seeds": [*seeds]} if not set(map(str, seeds)) <= set(map(str, study.seeds)):
            return f"seeds = {seeds}"
    return ""
