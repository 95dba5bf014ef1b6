"""The pipeline: declare, run, record, analyse. The only module that knows all stages.

study = load("study.toml")          declare
outcome = run(study)                run and record what is missing
result = analyse(study)             from records to a result object, which report/ renders
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final

from isorun.desk import Desk
from isorun.errors import NothingRecorded, StoreError, StudyError, known_names
from isorun.execution.base import AbstractExecutor
from isorun.execution.scheduler import Observer, Outcome, Scheduler
from isorun.store.base import STUDIES, AbstractDocuments, AbstractStore
from isorun.store.documents import FolderDocuments
from isorun.study.cells import Cell, cells_of, withheld_hashes
from isorun.study.design import Study
from isorun.study.document import kept_study, with_key, without_secrets
from isorun.study.records import RunRecord
from isorun.study.toml import load_study

if TYPE_CHECKING:
    from isorun.analysis.studies.study_result import StudyResult

__all__ = [
    "Desk",
    "analyse",
    "documents",
    "keyed",
    "load",
    "local_executor",
    "missing",
    "missing_in",
    "plan",
    "recent",
    "records",
    "remember",
    "run",
    "store_folder",
]

STORE_NAME: Final = ".isorun"


def load(source: str | Path | Study, *, store: str | Path | None = None) -> Study:
    """A study: as it is, from a file, or an earlier ad hoc one by its name."""
    if isinstance(source, Study):
        return source
    path = Path(source)
    if path.suffix == ".toml" or path.exists():
        return load_study(path)
    return _recall(str(source), store)


def plan(study: Study, store: str | Path | None = None) -> tuple[Cell, ...]:
    """All cells of the study, with the ids that its store knows if it has one already."""
    return cells_of(keyed(study, store) if store_folder(study, store).is_dir() else study)


def missing(study: Study, store: AbstractStore) -> tuple[Cell, ...]:
    """The cells that have no finished record yet."""
    finished = store.finished()
    return tuple(cell for cell in cells_of(study, store.key) if cell.id not in finished)


def missing_in(study: Study, store: str | Path | None) -> tuple[Cell, ...]:
    """The cells that have no finished record yet, without making a store where there is none."""
    if not store_folder(study, store).is_dir():
        return cells_of(study)
    with open_store(study, store) as opened:
        return missing(study, opened)


def run(
    study: Study | str | Path,
    *,
    store: str | Path | None = None,
    jobs: int = 1,
    launch: str = "auto",
    executor: AbstractExecutor | None = None,
    observer: Observer | None = None,
    only: Callable[[Cell], bool] | None = None,
) -> Outcome:
    """Carry out what is missing of the study and keep its records.

    only: which cells; all when not given.
    store: the folder records are kept in; `.isorun` beside the study when not given.
    launch: "auto", "warm" (forked from a server that imported the frameworks) or "fresh" (the reference).
    """
    study = load(study, store=store)
    carrying = nullcontext(executor) if executor is not None else local_executor(jobs, launch)
    with open_store(study, store) as opened, carrying as carrier:
        cells = [cell for cell in missing(study, opened) if only is None or only(cell)]
        desk = Desk(study, opened, store_folder(study, store) / "runs")
        return Scheduler(carrier, desk, study.policy, observer or Observer()).carry_out(cells)


def records(study: Study | str | Path, *, store: str | Path | None = None) -> Sequence[RunRecord]:
    """The records of the study's cells, failed attempts included."""
    study = load(study, store=store)
    folder = store_folder(study, store)
    if not folder.is_dir():
        raise NothingRecorded(
            f"nothing has been recorded for the study {study.name!r}",
            found=f"there is no store {folder}",
            hint="isorun run makes the runs; --store names a store that lies elsewhere",
        )
    with open_store(study, store) as opened:
        return opened.records(cell.id for cell in cells_of(study, opened.key))


def analyse(study: Study | str | Path, *, store: str | Path | None = None) -> StudyResult:
    """Everything a report needs to know of the study's runs."""
    from isorun.analysis.studies.study_result import analyse_study  # noqa: PLC0415 - numpy and scipy load when needed

    study = load(study, store=store)
    found = records(study, store=store)
    if not found:
        raise NothingRecorded(f"no run of the study {study.name!r} has ended yet", hint="isorun run makes the runs")
    return analyse_study(study, found)


def store_folder(study: Study, store: str | Path | None) -> Path:
    """The folder the study's records are kept in."""
    chosen = store or os.environ.get("ISORUN_STORE")
    return Path(chosen) if chosen else Path(study.folder) / STORE_NAME


@contextmanager
def open_store(study: Study, store: str | Path | None) -> Iterator[AbstractStore]:
    """The study's store, packed and closed afterwards."""
    from isorun.store.folder import open_store as open_folder  # noqa: PLC0415 - sqlite loads when needed

    with open_folder(store_folder(study, store)) as opened:
        yield opened


def keyed(study: Study, store: str | Path | None) -> Study:
    """The study with the key of its store, where it has secrets: its cells have the ids that the store knows."""
    if not any(withheld_hashes(study, None).values()):
        return study
    with open_store(study, store) as opened:
        return with_key(study, opened.key)


def documents(study: Study, store: str | Path | None, kind: str) -> AbstractDocuments:
    """The documents of one kind that the study's store keeps beside its records."""
    return FolderDocuments(store_folder(study, store), kind)


def remember(study: Study, store: str | Path | None) -> None:
    """Keep the declaration of an ad hoc study in its store, so that it can be reported on by name."""
    document = {"folder": str(Path(study.folder).resolve()), **without_secrets(keyed(study, store))}
    documents(study, store, STUDIES).write(study.name, document)


def recent(store: str | Path | None = None) -> tuple[str, ...]:
    """The names of the ad hoc studies kept in the store of this folder, the latest first."""
    return _kept_studies(store).names()


def _kept_studies(store: str | Path | None) -> AbstractDocuments:
    return FolderDocuments(Path(store or os.environ.get("ISORUN_STORE") or STORE_NAME), STUDIES)


def _recall(name: str, store: str | Path | None) -> Study:
    kept = _kept_studies(store)
    known = kept.names()
    if name not in known:
        what = f"there is neither a study file nor an earlier ad hoc study {name!r}"
        raise StudyError(what, allowed=known_names(name, known), hint="isorun run study.toml, or isorun run -- COMMAND")
    try:
        document = kept.read(name) or {}
        folder = Path(document.pop("folder"))
    except (StoreError, ValueError, KeyError, TypeError) as error:
        what = f"the kept study {kept.place(name)} cannot be read: {error}"
        raise StudyError(what, hint="type the command again: its finished runs are kept") from None
    return kept_study(document, folder, name)


@contextmanager
def local_executor(jobs: int = 1, launch: str = "auto") -> Iterator[AbstractExecutor]:
    """Runs on this machine. One executor may serve many studies: a warm start then imports the frameworks once."""
    from isorun.execution.local import LocalExecutor  # noqa: PLC0415 - loads when something is run

    executor = LocalExecutor(jobs=jobs, launch=launch)
    try:
        yield executor
    finally:
        executor.close()
