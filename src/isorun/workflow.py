"""The pipeline: declare, run, record, analyse. The only module that knows all stages.

study = load("study.toml")          declare
outcome = run(study)                run and record what is missing
result = analyse(study)             from records to a result object, which report/ renders

Wherever a store is asked for, it may be a folder, a URL, or a store that is open already.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from isorun.errors import IsorunError, NothingRecorded, StoreMissing, StudyError, known_names
from isorun.scheduling import CellList, Observer, Outcome, carry_out
from isorun.session import (
    ExecutorOptions,
    Session,
    blaming,
    open_existing_store,
    open_session,
    open_store,
    runs_folder,
    store_place,
)
from isorun.store import PLANS, STUDIES, AbstractStore, Holder
from isorun.study.cells import Cell, cells_of, withheld_hashes
from isorun.study.design import (
    Study,
    document_without_secrets,
    extends,
    kept_study,
    load_study,
    together,
    with_key,
)
from isorun.study.records import RunRecord, RunState

if TYPE_CHECKING:
    from isorun.analysis.evidence import Condition
    from isorun.analysis.studies.record_table import Records
    from isorun.analysis.studies.study_result import StudyResult
    from isorun.diagnose import Diagnosis
    from isorun.execution import AbstractExecutor

__all__ = [
    "Status",
    "analyse",
    "analyse_records",
    "cells",
    "doctor",
    "load",
    "missing",
    "more_than",
    "outcome_conditions",
    "recent",
    "records",
    "remember",
    "reuse_conditions",
    "run",
    "run_missing",
    "runs_of",
    "session_of",
    "status",
    "store_conditions",
]

Store = str | Path | AbstractStore | None

_MOST_RECORDS: Final = 200
"""Enough to notice an edit; a study of ten thousand runs should not wait for all of them to be read."""
_MOST_STUDIES: Final = 50
_CELL_ID: Final = re.compile("[0-9a-f]{16}")


class Watches(Protocol):
    """What `isorun.watch` gives: rows of a training."""

    rows: Sequence[Mapping[str, Any]]


def load(source: str | Path | Study, *, store: Store = None) -> Study:
    """A study: as it is, from a file, or an earlier ad hoc one by its name, which wins over a folder called like it."""
    with opened(source, store) as (study, _):
        return study


@contextmanager
def opened(source: str | Path | Study | None, store: Store = None) -> Iterator[tuple[Study, Store]]:
    """The study, and the store of its records: an ad hoc study's is the one that keeps it, which is open already.

    source: None for the latest ad hoc study. So whoever asks for a study by its name opens one store, once.
    """
    if isinstance(source, Study):
        yield source, store
        return
    if source is not None and not isinstance(source, (str, Path)):
        raise StudyError(
            "that is no study",
            found=f"{source!r:.60}",
            allowed="a study file, the name of an earlier ad hoc study, or an isorun.Study",
        )
    path = Path(source or "")
    if path.suffix == ".toml" and path.is_file():
        yield load_study(path), store
        return
    with _found(_place(None, store)) as kept:
        names = () if kept is None else kept.documents(STUDIES).names()
        if kept is not None and (str(source) in names or (source is None and names)):
            yield _recalled(names[0] if source is None else str(source), kept), kept
            return
    yield _not_kept(source, path, names), store


def _not_kept(source: str | Path | None, path: Path, names: Sequence[str]) -> Study:
    """The study of a file after all; an error where there is none."""
    if source is None:
        raise NothingRecorded(
            "no study is named, and no ad hoc study was run in this folder",
            hint="isorun report study.toml, or isorun run -n 16 -- python train.py first",
        )
    if path.suffix == ".toml" or (path.exists() and str(source)):
        return load_study(path)
    what = f"there is neither a study file nor an earlier ad hoc study {str(source)!r}"
    hint = "isorun run study.toml, or isorun run -- COMMAND"
    raise StudyError(what, allowed=known_names(str(source), names), hint=hint)


def cells(study: Study | str | Path, *, store: Store = None) -> tuple[Cell, ...]:
    """All cells of the study, with the ids that its store knows if it has one already.

    Where values are withheld from records, a cell's id is made with the store's key; without a store it is provisional.
    """
    with opened(study, store) as (declared, place):
        if not any(withheld_hashes(declared, None).values()):
            return cells_of(declared)
        with _found(_place(declared, place)) as found:
            return cells_of(declared, found.key if found else None)


def missing(study: Study, *, store: Store = None) -> tuple[Cell, ...]:
    """The cells that have no finished record yet; no store is made where there is none."""
    with _found(_place(study, store)) as found:
        if found is None:
            return cells_of(study)
        declared = cells_of(study, found.key)
        finished = found.finished(cell.id for cell in declared)
        return tuple(cell for cell in declared if cell.id not in finished)


def run(
    study: Study | str | Path,
    *,
    store: Store = None,
    jobs: int = 1,
    launch: str = "auto",
    devices: str = "auto",
    executor: str | AbstractExecutor = "local",
    observer: Observer | None = None,
    only: Callable[[Cell], bool] | None = None,
) -> Outcome:
    """Carry out what is missing of the study and keep its records.

    store: where records are kept, a folder or a URL; `.isorun` beside the study when not given. executor: what carries
    out the runs, `local` or a name that an installed distribution brings. jobs: runs at a time. launch: "auto", "warm"
    (forked from a server that imported the frameworks) or "fresh" (the reference). devices: "auto", "none" or those
    that may be used ("0,1"). only: which cells; all when not given.
    """
    with opened(study, store) as (declared, place):
        options = session_of(declared, store=place, executor=executor, jobs=jobs, launch=launch, devices=devices)
        with options as session:
            return run_missing(declared, session, observer, only)


def run_missing(
    study: Study, session: Session, observer: Observer | None = None, only: Callable[[Cell], bool] | None = None
) -> Outcome:
    """Carry out what is missing of the study in an open session."""
    cells = [cell for cell in missing(study, store=session.store) if only is None or only(cell)]
    return carry_out(CellList(cells), session, study, observer)


def session_of(
    study: Study,
    *,
    store: Store = None,
    executor: str | AbstractExecutor = "local",
    jobs: int = 1,
    launch: str = "auto",
    devices: str = "auto",
    python: str = "",
) -> AbstractContextManager[Session]:
    """The store and the executor of a study, each opened once.

    Environments of other kinds than the interpreter are looked at before: what one of them refuses leaves nothing.
    """
    for environment in study.environments.values():
        if environment.kind:
            from isorun.environments import opened_environment

            opened_environment(environment)
    where = _place(study, store)
    return open_session(
        where, executor, ExecutorOptions(runs_folder(where, study.folder), jobs, launch, devices, python)
    )


def records(study: Study | str | Path, *, store: Store = None, beyond: Iterable[Cell] = ()) -> Records:
    """The records of the study's cells, failed attempts included; `.to_pandas()` gives a row a run.

    beyond: more cells, which the study does not declare: an agenda may have proposed them.
    """
    from isorun.analysis.studies.record_table import Records

    with opened(study, store) as (declared, place), _recorded(place, declared) as records_kept:
        return Records(records_kept.records(_ids(cells_of(declared, records_kept.key), beyond)))


def analyse(
    study: Study | str | Path | None = None, *, store: Store = None, beyond: Iterable[Cell] = ()
) -> StudyResult:
    """Everything a report needs to know of the study's runs, and of those of the cells beyond it.

    study: the latest ad hoc study of this folder when not given.
    """
    with opened(study, store) as (declared, place), _recorded(place, declared) as records_kept:
        keyed = with_key(declared, records_kept.key)
        found = records_kept.records(_ids(cells_of(keyed), beyond))
        told = (*_runs_beyond(keyed, records_kept), *store_conditions(records_kept))
    return analyse_records(keyed, found, told)


def analyse_kept(name: str, *, store: Store = None) -> StudyResult | None:
    """What the runs of an ad hoc study say; None where no study of this name is kept."""
    with _found(_place(None, store)) as kept:
        known = kept is not None and name in kept.documents(STUDIES).names()
        return analyse(name, store=kept) if known else None


def doctor(what: Study | str | Path | Watches | RunRecord, *, store: Store = None) -> Diagnosis:
    """What is wrong inside the trainings of a study, in one run by its id, in a record, or in what a watcher saw."""
    from isorun.diagnose import Diagnosis, Trace, examine

    if isinstance(what, RunRecord):
        traces, subject = [Trace.of_record(what)], what.run_id
    elif isinstance(what, (Study, str, Path)):
        found = _run_of(what, store) or _latest_attempts(records(what, store=store))
        traces, subject = (
            [Trace.of_record(record) for record in found],
            what.name if isinstance(what, Study) else str(what),
        )
    else:
        traces, subject = [Trace.of_rows(what.rows)], "this training"
    return Diagnosis(subject, tuple(map(examine, traces)))


def _run_of(what: Study | str | Path, store: Store) -> list[RunRecord]:
    """The run of this id, or the newest of this cell; empty for what is no such id."""
    cell, _, attempt = str(what).partition("-")
    if isinstance(what, Study) or not _CELL_ID.fullmatch(cell) or not (attempt.isdigit() or not attempt):
        return []
    with _recorded(_place(None, store), None) as kept:
        found = _latest_attempts(record for record in kept.records([cell]) if attempt in {"", str(record.attempt)})
        if not found:
            known = known_names(str(what), kept.run_ids())
            raise NothingRecorded(
                f"there is no run {what}", allowed=known, hint="isorun run --json lists the runs of a study"
            )
    return found


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
            f"no run of the study {study.name!r} has ended yet",
            found="; ".join(condition.message for condition in told),
            hint="isorun run makes the runs",
        )
    result = analyse_study(study, found)
    return replace(result, conditions=(*result.conditions, *told)) if told else result


def remember(study: Study, *, store: Store = None) -> None:
    """Keep the declaration of an ad hoc study in its store, so that it can be reported on by name.

    Levels, seeds and repeats of the same command that are kept under the name already stay beside its own.
    """
    place = _place(study, store)
    with (
        nullcontext(place) if isinstance(place, AbstractStore) else open_store(place) as opened,
        blaming("store", opened),
    ):
        study = with_key(study, opened.key)
        before = _kept_before(study, opened)
        if before is not None and extends(study, before):
            study = together(study, before)
        document = {"folder": str(Path(study.folder).resolve()), **document_without_secrets(study)}
        opened.documents(STUDIES).write(study.name, document)


def _kept_before(study: Study, store: AbstractStore) -> Study | None:
    """What is kept under the study's name; None where that is nothing, or cannot be read."""
    if study.name not in recent(store):
        return None
    try:
        return _recalled(study.name, store)
    except IsorunError:
        return None


def recent(store: Store = None) -> tuple[str, ...]:
    """The names of the ad hoc studies kept in the store of this folder, the latest first."""
    with _found(_place(None, store)) as kept:
        return () if kept is None else kept.documents(STUDIES).names()


def _recalled(name: str, store: AbstractStore) -> Study:
    kept = store.documents(STUDIES)
    try:
        document = kept.read(name) or {}
        folder = Path(document.pop("folder"))
    except (IsorunError, KeyError, TypeError) as error:
        what = f"the kept study {kept.place(name)} cannot be read: {error}"
        raise StudyError(what, hint="type the command again: its finished runs are kept") from None
    return kept_study(document, folder, name)


def _place(study: Study | None, store: Store) -> str | AbstractStore:
    """Where records are kept: as said, else beside the study, else in this folder."""
    return store if isinstance(store, AbstractStore) else store_place(store, study.folder if study else ".")


@contextmanager
def _existing(place: str | AbstractStore) -> Iterator[AbstractStore]:
    """The store there, for reading: none is made. Whatever a store of others raises names it."""
    opening = nullcontext(place) if isinstance(place, AbstractStore) else open_existing_store(place)
    with opening as opened, blaming("store", opened):
        yield opened


@contextmanager
def _found(place: str | AbstractStore) -> Iterator[AbstractStore | None]:
    """The store there; None where there is none."""
    with ExitStack() as stack:
        try:
            found = stack.enter_context(_existing(place))
        except StoreMissing:
            found = None
        yield found


@contextmanager
def _recorded(store: Store, study: Study | None) -> Iterator[AbstractStore]:
    """The store to read runs from."""
    place = _place(study, store)
    with _found(place) as found:
        if found is None:
            raise NothingRecorded(
                f"nothing has been recorded for {f'the study {study.name!r}' if study else 'any study'}",
                found=f"there is no store {place}",
                hint="isorun run makes the runs; --store names a store that lies elsewhere",
            )
        yield found


def store_conditions(store: AbstractStore) -> tuple[Condition, ...]:
    """What the store itself has to say, as a reader of a report should know it."""
    notes = store.notes()
    if not notes:
        return ()
    from isorun.analysis.evidence import Condition

    look = f"{store.looked_over_by} looks at everything; " if store.looked_over_by else ""
    next_step = f"{look}what was set aside is kept"
    return tuple(Condition(note.code, note.message, next_step) for note in notes)


def outcome_conditions(outcome: Outcome) -> tuple[Condition, ...]:
    """What became of runs whose record the store did not take."""
    if not outcome.notes:
        return ()
    from isorun.analysis.evidence import Condition

    next_step = "isorun report shows the record that counts"
    return tuple(Condition(note.code, note.message, next_step) for note in outcome.notes)


def _runs_beyond(study: Study, store: AbstractStore) -> Iterator[Condition]:
    """Runs that a decision made and the study does not declare: its report and its comparisons do not show them.

    They are not taken in silently: how many there are depended on their results, and only `isorun decide` holds its
    error rate then.
    """
    from isorun.analysis.evidence import Condition

    kept = store.documents(PLANS)
    names = kept.names()
    own = {cell.id for cell in cells_of(study, store.key)} if names else set()
    for name in names:
        try:
            document = kept.read(name) or {}
        except IsorunError:
            continue  # whoever goes on with that decision is told
        more = more_than(study, document.get("made"))
        if more and own.issuperset(document.get("cells", ())):
            message = f"isorun decide made runs beyond those the study declares, which are not shown here ({more})"
            yield Condition(
                "beyond-the-study", message, f"write {more} into the study to see them; isorun decide judges them"
            )


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


@dataclass(frozen=True, slots=True)
class RunInProgress:
    """A run that somebody carries out now. row: what it logged last, if that can be read from here."""

    holder: Holder
    label: str
    row: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        holder = self.holder
        return {
            "run": f"{holder.cell_id}-{holder.attempt}",
            "label": self.label,
            "since": holder.since,
            "host": holder.host,
            "pid": holder.pid,
            "row": dict(self.row),
        }


@dataclass(frozen=True, slots=True)
class Status:
    """How far a study is, or with no study a whole store. missing: cells that are neither finished nor running.

    failed: of the missing ones, those that were tried. total and missing are None for a whole store.
    """

    study: str
    total: int | None
    finished: int
    failed: int
    missing: int | None
    running: tuple[RunInProgress, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "study": self.study or None,
            "runs": self.total,
            "finished": self.finished,
            "failed": self.failed,
            "missing": self.missing,
            "running": [run.to_json() for run in self.running],
        }


def status(study: Study | str | Path | None = None, *, store: Store = None) -> Status:
    """What is finished, what runs now and who runs it; from any process, while others are at work."""
    with ExitStack() as stack:
        declared, place = (None, store) if study is None else stack.enter_context(opened(study, store))
        found = stack.enter_context(_recorded(place, declared))
        holders = found.holders()
        cells = {} if declared is None else {cell.id: cell for cell in cells_of(declared, found.key)}
        asked = None if declared is None else tuple(cells)
        finished, tried = found.finished(asked), {run_id.rpartition("-")[0] for run_id in found.run_ids(asked)}
        runs = runs_folder(found, declared.folder if declared else ".")
    if declared is None:
        running = tuple(_in_progress(holder, runs) for holder in holders)
        held = {holder.cell_id for holder in holders}
        return Status("", None, len(finished), len(tried - finished - held), None, running)
    known = {**_beyond(holders, runs, cells.values()), **cells}
    running = tuple(_in_progress(holder, runs, known[holder.cell_id]) for holder in holders if holder.cell_id in known)
    held = {run.holder.cell_id for run in running}
    left = cells.keys() - finished - held
    return Status(declared.name, len(cells), len(cells.keys() & finished), len(left & tried), len(left), running)


def _in_progress(holder: Holder, runs: Path, cell: Cell | None = None) -> RunInProgress:
    from isorun.execution.output import last_row

    folder = runs / f"{holder.cell_id}-{holder.attempt}"
    label = cell.label if cell else _label_in(folder) or holder.cell_id
    return RunInProgress(holder, label, last_row(folder))


def _beyond(holders: Iterable[Holder], runs: Path, declared: Iterable[Cell]) -> dict[str, Cell]:
    """Cells in progress that differ from declared ones in seed and repeat alone: a decision makes more than those."""
    alike = {_without_seed(cell) for cell in declared}
    found = ((holder.cell_id, _cell_in(runs / f"{holder.cell_id}-{holder.attempt}")) for holder in holders)
    return {cell_id: cell for cell_id, cell in found if cell is not None and _without_seed(cell) in alike}


def _without_seed(cell: Cell) -> str:
    return replace(cell, seed=None, repeat=0).id


def _label_in(folder: Path) -> str:
    cell = _cell_in(folder)
    return cell.label if cell else ""


def _cell_in(folder: Path) -> Cell | None:
    """The cell of a run, from the job that was kept in its folder; None where that cannot be read from here."""
    try:
        return Cell.from_json(json.loads((folder / "job.json").read_text(encoding="utf-8"))["cell"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def reuse_conditions(study: Study, store: AbstractStore, *, adhoc: bool) -> tuple[Condition, ...]:
    """What to know before finished runs are used again. adhoc: a command typed now, which has no file of its own."""
    renamed = tuple(_renamed(study, store)) if adhoc else ()
    left = {cell.id for cell in missing(study, store=store)}
    finished = [cell.id for cell in cells_of(study, store.key) if cell.id not in left]
    if not finished:
        return renamed
    kept = store.records(finished[:_MOST_RECORDS])
    made = [record for record in kept if record.state is RunState.FINISHED]
    found = [*renamed, *_edited(study, made, len(finished), len(left)), *_other_input(made)]
    return (*found, *_of_others(study, store, set(finished))) if adhoc else tuple(found)


def _other_input(made: Sequence[RunRecord]) -> Iterator[Condition]:
    """Runs are known by their command; what they read from standard input is recorded, and compared here."""
    from isorun.analysis.evidence import Condition, some
    from isorun.execution.resources import read_another_input

    number = read_another_input(made)
    if number:
        message = f"{some(number, 'finished run')} read another standard input than the one given now"
        hint = "a new --store FOLDER makes all runs with this input; the finished ones stay where they are"
        yield Condition("input-changed", message, hint)


def _renamed(study: Study, store: AbstractStore) -> Iterator[Condition]:
    """A name that another command had, or this one with other settings: its runs stay, but no longer under it."""
    before = _kept_before(study, store)
    if before is None or extends(with_key(study, store.key), before):
        return
    from isorun.analysis.evidence import Condition
    from isorun.worker.redaction import redacted_argv

    kept = {approach.command for approach in before.approaches.values()}
    if kept.isdisjoint(tuple(redacted_argv(item.command, {})) for item in study.approaches.values()):
        was = f"of another command ({shlex.join(next(iter(kept)))})"
    else:
        was = "of this command with another environment, interpreter or secret, or with its own seeds"
    message = f"the name {study.name} was that {was}, whose runs stay in the store without it"
    yield Condition("name-taken", message, "another --name keeps both")


def _edited(study: Study, made: Sequence[RunRecord], finished: int, left: int) -> Iterator[Condition]:
    versions = {json.dumps(dict(record.code), sort_keys=True, default=str): record for record in made}
    changed = _changes(study, list(versions.values()))
    if not changed:
        return
    from isorun.analysis.evidence import Condition, some

    mixed = f"; the {some(left, 'run')} still to make would mix both versions" if left else ""
    yield Condition(
        "code-changed",
        f"{' and '.join(changed)} changed since runs of this study were made ({finished} finished){mixed}",
        "a new --store FOLDER makes all runs with the code as it is now; the finished ones stay where they are",
    )


def _changes(study: Study, made: Sequence[RunRecord]) -> list[str]:
    """What of the code that made these runs is not as it was then: scripts, else the repository around them."""
    from isorun.worker.usercode import code_version

    folder = Path(study.folder)
    scripts = {script for record in made if (script := _edited_script(folder, record))}
    if scripts:
        return sorted(scripts)
    now = code_version(folder)
    then = [{name: record.code.get(name) for name in ("commit", "diff_sha256")} for record in made if record.code]
    moved = any(now.get(name) != value for version in then for name, value in version.items() if value is not None)
    return ["the code around it"] if moved and now else []


def _edited_script(folder: Path, record: RunRecord) -> str:
    """The run's script, where its file is not what was run."""
    from isorun.worker.usercode import hash_of_file

    script = next((word for word in record.cell.command if word.endswith(".py")), "")
    path = folder / script
    recorded = record.code.get("script_sha256")
    return script if script and recorded and path.is_file() and hash_of_file(path) != recorded else ""


def _of_others(study: Study, store: AbstractStore, finished: set[str]) -> Iterator[Condition]:
    """Cells are known by their content, so that another study's runs of the same content are this one's, too."""
    names = recent(store)
    if study.name in names:
        return
    from isorun.analysis.evidence import Condition, some

    sharing = [name for name in names[:_MOST_STUDIES] if finished & _cells(name, store)]
    whose = f"the study {sharing[0]}" if sharing else "another study"
    yield Condition(
        "runs-reused",
        f"{some(len(finished), 'finished run')} of the same content {'was' if len(finished) == 1 else 'were'} made "
        f"before by {whose}, and {'counts' if len(finished) == 1 else 'count'} for {study.name} too",
        f"a new --store FOLDER makes runs of its own: isorun run --store FOLDER --name {shlex.quote(study.name)} …",
    )


def _cells(name: str, store: AbstractStore) -> set[str]:
    try:
        return {cell.id for cell in cells_of(_recalled(name, store), store.key)}
    except IsorunError:
        return set()
