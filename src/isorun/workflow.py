"""The pipeline: declare, run, record, analyse. The only module that knows all stages.

study = load("study.toml")          declare
outcome = run(study)                run and record what is missing
result = analyse(study)             from records to a result object, which report/ renders
"""

from __future__ import annotations

import json
import os
import secrets
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from isorun.errors import NothingRecorded, StoreError, StudyError, known_names
from isorun.execution.base import AbstractExecutor, Job
from isorun.execution.scheduler import Observer, Outcome, Scheduler, Ticket
from isorun.store.base import AbstractStore, Claim
from isorun.study import placeholders
from isorun.study.cells import Cell
from isorun.study.design import Study
from isorun.study.document import without_secrets
from isorun.study.plan import cells_of
from isorun.study.records import RunRecord, RunState
from isorun.study.toml import load_study, study_from_document
from isorun.worker.redaction import REDACTED

if TYPE_CHECKING:
    from isorun.analysis.study_result import StudyResult

__all__ = [
    "Desk",
    "analyse",
    "load",
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
_STUDIES: Final = "studies"


def load(source: str | Path | Study, *, store: str | Path | None = None) -> Study:
    """A study: as it is, from a file, or an earlier ad hoc one by its name."""
    if isinstance(source, Study):
        return source
    path = Path(source)
    if path.suffix == ".toml" or path.exists():
        return load_study(path)
    return _recall(str(source), store)


def plan(study: Study) -> tuple[Cell, ...]:
    """All cells of the study."""
    return cells_of(study)


def missing(study: Study, store: AbstractStore) -> tuple[Cell, ...]:
    """The cells that have no finished record yet."""
    finished = store.finished_cells()
    return tuple(cell for cell in cells_of(study) if cell.id not in finished)


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
    with open_store(study, store) as opened, _executor(executor, jobs, launch) as carrier:
        cells = [cell for cell in missing(study, opened) if only is None or only(cell)]
        scheduler = Scheduler(carrier, Desk(study, opened), study.policy, observer or Observer())
        try:
            return scheduler.carry_out(cells)
        finally:
            opened.pack()


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
        return opened.records(cell.id for cell in cells_of(study))


def analyse(study: Study | str | Path, *, store: str | Path | None = None) -> StudyResult:
    """Everything a report needs to know of the study's runs."""
    from isorun.analysis.study_result import analyse_study  # noqa: PLC0415 - numpy and scipy load when needed

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
    from isorun.store.local import open_store as open_folder  # noqa: PLC0415 - sqlite loads when needed

    with open_folder(store_folder(study, store)) as opened:
        yield opened


def remember(study: Study, store: str | Path | None) -> None:
    """Keep the declaration of an ad hoc study in its store, so that it can be reported on by name."""
    folder = store_folder(study, store) / _STUDIES
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".tmp", delete=False, encoding="utf-8") as file:
            json.dump({"folder": str(Path(study.folder).resolve()), **without_secrets(study)}, file, indent=1)
        Path(file.name).replace(folder / f"{study.name}.json")
    except OSError as error:
        raise StoreError(f"the study cannot be kept in {folder}: {error}") from None


def recent(store: str | Path | None = None) -> tuple[str, ...]:
    """The names of the ad hoc studies kept in the store of this folder, the latest first."""
    folder = _studies_folder(store)
    paths = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    return tuple(path.stem for path in paths)


def _studies_folder(store: str | Path | None) -> Path:
    return Path(store or os.environ.get("ISORUN_STORE") or STORE_NAME) / _STUDIES


def _recall(name: str, store: str | Path | None) -> Study:
    known = recent(store)
    if name not in known:
        what = f"there is neither a study file nor an earlier ad hoc study {name!r}"
        raise StudyError(what, allowed=known_names(name, known), hint="isorun run study.toml, or isorun run -- COMMAND")
    document = json.loads((_studies_folder(store) / f"{name}.json").read_text(encoding="utf-8"))
    return study_from_document(document, Path(document.pop("folder")), name)


@contextmanager
def _executor(given: AbstractExecutor | None, jobs: int, launch: str) -> Iterator[AbstractExecutor]:
    if given is not None:
        yield given
        return
    from isorun.execution.local import LocalExecutor  # noqa: PLC0415 - loads when something is run

    executor = LocalExecutor(jobs=jobs, launch=launch)
    try:
        yield executor
    finally:
        executor.close()


class Desk:
    """Between scheduler and store: rights, jobs with their placeholders filled, and a place for records."""

    def __init__(self, study: Study, store: AbstractStore, draw_seed: Callable[[], int] | None = None) -> None:
        self._study = study
        self._store = store
        self._draw_seed = draw_seed or (lambda: secrets.randbelow(2**31))
        self._own: set[str] = set()
        self._tried_before = {record.run_id for record in store.records() if record.state is not RunState.FINISHED}

    def claim(self, cell: Cell) -> Claim | None:
        """The right to carry out the cell; None when it is done, or somebody else has the right now."""
        claim = self._store.claim(cell.id)
        if claim is not None and self._tried_elsewhere(cell):
            claim.release()
            return None
        return claim

    def is_done(self, cell: Cell) -> bool:
        """Whether the cell is finished, or another scheduler tried it since this one began."""
        return cell.id in self._store.finished_cells() or self._tried_elsewhere(cell)

    def job(self, cell: Cell, ticket: Ticket) -> Job:
        """What to carry out for the cell."""
        assert isinstance(ticket, Claim)
        folder = self._store.run_folder(ticket)
        environment = self._study.environments[cell.environment]
        approach = self._study.approaches[cell.approach]
        seed = self._draw_seed() if cell.seed is None else cell.seed
        where = f"approaches.{cell.approach}"
        _refuse_redacted(approach.command, environment.env.values(), where)
        fixed = {"seed": str(seed), "repeat": str(cell.repeat), "level": str(cell.level), "run_dir": str(folder)}
        return Job(
            cell=cell,
            attempt=ticket.attempt,
            folder=folder,
            command=placeholders.fill(approach.command, fixed, cell.config_values, where),
            working_folder=Path(self._study.folder).resolve(),
            seed=seed,
            python=environment.python,
            env=environment.env,
            threads=environment.threads,
            preload=environment.preload,
            time_limit_seconds=self._study.policy.time_limit_seconds,
            sources=replace(
                approach.sources,
                files=placeholders.fill(approach.sources.files, fixed, cell.config_values, f"{where}.sources"),
                tensorboard=placeholders.fill(
                    approach.sources.tensorboard, fixed, cell.config_values, f"{where}.sources"
                ),
            ),
        )

    def keep(self, record: RunRecord) -> None:
        """Make the record durable."""
        self._own.add(record.run_id)
        self._store.finish(record)

    def _tried_elsewhere(self, cell: Cell) -> bool:
        known = self._own | self._tried_before
        return any(record.run_id not in known for record in self._store.records([cell.id]))


def _refuse_redacted(command: Iterable[str], variables: Iterable[str], where: str) -> None:
    if any(REDACTED in text for text in (*command, *variables)):
        raise StudyError(
            f"{where}: a secret in it was not kept, so it cannot be run by its name",
            hint="type the command again; finished runs are kept",
        )
