"""Replaying: the same run again, from its record alone: identical to the last bit, or the first thing that differs.

What the run was made of is looked at first: files by their digests, packages by their versions, devices, CPUs. What
cannot be had as it was is refused, or with `anyway` replaced and told. The new run is kept in the store beside the old
one, under an id of its own that no study declares: it is a unit of none. REPLAYS says which run it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from isorun import workflow
from isorun.analysis.evidence.provenance import files_of
from isorun.analysis.evidence.shared_files import is_isolated
from isorun.analysis.replications.replays import Replay, held_against
from isorun.environments.interpreter import REPLACED
from isorun.errors import ExecutionError, InputError, NothingRecorded
from isorun.execution import Job, Tell
from isorun.execution.local import LocalExecutor
from isorun.packages.opened import PackageStore
from isorun.scheduling import INTERRUPTED, CellList, Observer, carry_out
from isorun.session import Store, is_registered, open_store, place_of, recorded, run_named, runs_folder, store_place
from isorun.share.at_hand import (
    Lack,
    as_many_cpus,
    bring_data,
    checked_files,
    chosen_interpreter,
    cpus_of,
    lacking_code,
    lacking_machine,
    package_at,
    refuse_lacks,
    with_python_here,
)
from isorun.share.declared_again import study_of_cells
from isorun.share.looking import signer_to_run
from isorun.share.rebuilding import KeptCode, code_in, put_code
from isorun.share.seen_first import seen_of
from isorun.share.surroundings import data_of
from isorun.store import REPLAYS, STUDIES, AbstractStore, shown_place
from isorun.study import FUNCTION
from isorun.study.cells import Cell, cells_of
from isorun.study.design import Study
from isorun.study.records import RunRecord, RunState

__all__ = ["Confirm", "Watcher", "replay"]

Watcher = Callable[[Study], AbstractContextManager[Observer]]
"""Makes who is told how the runs of a study go on."""
Confirm = Callable[[Sequence[tuple[str, str]]], None]
"""Is told what of a package would be run, a name and a text each; raises where it is not to be."""
_LAUNCHES: Final = frozenset(("warm", "fresh"))


def replay(
    run: str,
    *,
    store: Store = None,
    code: str | Path | None = None,
    folder: str | Path | None = None,
    data: Sequence[str | Path] = (),
    python: str | None = None,
    anyway: bool = False,
    keep: str | Path | None = None,
    confirm: Confirm | None = None,
    watch: Watcher | None = None,
) -> Replay:
    """Make a run again, and say whether it is identical or what differs first.

    run: its id or the start of it. store: where it is kept, which may be a package. code: where the code lies, or a
    repository that has it; by default the study's folder. folder: a new one that the recorded commit is put into. data:
    folders with data. python: the interpreter. anyway: run with what is here, and say what was replaced. keep: the
    store for the new run; by default that of the old one, and of a package `.isorun` here. confirm: who is told what of
    a package would be run, before it is. watch: who is told how it goes on.
    """
    if isinstance(store, str) and is_registered(store):
        store = str(package_at(store))
    with recorded(place_of(None, store), None) as kept:
        record = _replayable(run, kept)
        packed = isinstance(kept, PackageStore)
        if isinstance(kept, PackageStore):
            _show_first(kept, record, python, confirm)
        known = _Known.of(record, kept, Path(code) if code else None, python)
        working, lacks = known.put(Path(folder) if folder else None, [Path(place) for place in data])
        program, lacking = _interpreter(record, known.cell(working), python, own=not packed)
        lacks += [*lacking, *lacking_machine(record)]
        if not anyway:
            refuse_lacks(lacks, f"the run {record.run_id}")
        place = str(keep) if keep else store_place(None) if packed else ""
        if not place:
            return _made_again(record, known, kept, working, python=program, lacks=lacks, watch=watch)
        with open_store(place) as target:
            return _made_again(record, known, target, working, python=program, lacks=lacks, watch=watch)


def _show_first(kept: PackageStore, record: RunRecord, python: str | None, confirm: Confirm | None) -> None:
    """What somebody else packed is run by nobody who has not seen it, and not at all where its signature is forged."""
    signed = signer_to_run(kept.package)
    if confirm is not None:
        seen = seen_of([with_python_here(record.cell, python)], _declared(record.cell, kept))
        about = f"{kept.package.path} ({kept.package.address[:19]}…, signature: {signed}), run {record.run_id}"
        confirm([("package", about), *seen.lines()])


def _replayable(run: str, kept: AbstractStore) -> RunRecord:
    record = run_named(run, kept)
    if record.state is not RunState.FINISHED:
        raise InputError(
            f"the run {record.run_id} did not finish: there is nothing to hold a replay against",
            found=f"{record.state}: {record.reason}" if record.reason else str(record.state),
            hint="isorun run makes it again",
        )
    if record.cell.command[0] == "imported":
        raise InputError(
            f"the run {record.run_id} was imported: isorun did not make it, and cannot make it again",
            hint="isorun run -- COMMAND makes runs under control",
        )
    return record


@dataclass(frozen=True, slots=True)
class _Known:
    """A run and what is known of it. declared: what its store keeps of the study that it belongs to.

    python: the interpreter that was asked for.
    """

    record: RunRecord
    declared: Mapping[str, Any]
    code: Path | None
    package: PackageStore | None
    python: str | None

    @classmethod
    def of(cls, record: RunRecord, kept: AbstractStore, code: Path | None, python: str | None) -> _Known:
        package = kept if isinstance(kept, PackageStore) else None
        return cls(record, _declared(record.cell, kept), code, package, python)

    def cell(self, working: Path) -> Cell:
        """What is run, in this folder; a program that came with a package is none that was shown before it ran."""
        folder = working if self.package is None else None
        return with_python_here(replace(self.record.cell, known_as=""), self.python, folder)

    def put(self, folder: Path | None, places: Sequence[Path]) -> tuple[Path, list[Lack]]:
        """The folder to run in, with the code and the data of the run, and what of them is not as it was."""
        data = checked_files(data_of([self.record])["files"])
        files = {path: digest for path, digest in files_of(self.record) if path not in data}
        versioned = self.record.cell.environment_content.get("code")
        is_ours = self.package is not None or folder is not None
        if is_ours:
            target = folder or Path(f"replay-{self.record.run_id}")
            _refuse_used(target)
            put = put_code(self._kept(), target, self.code or self._own_folder(), files)
            working = put.working
            places = [*places, *([self.code] if self.code else [self._own_folder() or Path.cwd()])]
        else:
            working = self.code or self._own_folder() or Path.cwd()
            if not working.is_dir():
                raise InputError(
                    f"the folder of the study is not there: {working}", hint="--code PATH says where it is"
                )
        lacks = [] if versioned else list(self._other_code(working, files))
        return working, [*lacks, *bring_data(data, working, places, is_ours=is_ours)]

    def _kept(self) -> KeptCode:
        if self.package is not None:
            return code_in(self.package.package)
        return KeptCode({"versions": [{**self.record.code, "runs": 1}]}, lambda _: b"")

    def _own_folder(self) -> Path | None:
        """Where the study lay when it was run; a package is no place of code."""
        return Path(self.declared["folder"]) if "folder" in self.declared and self.package is None else None

    def _other_code(self, working: Path, files: Mapping[str, str]) -> Iterator[Lack]:
        commit = str(self.record.code.get("commit") or "")
        if self.record.code.get("dirty"):
            hint = f"the run was made with changes to {commit[:12]} that were not committed: put them back"
        elif commit:
            hint = f"isorun replay {self.record.run_id} --folder NEW puts the commit {commit[:12]} there and runs it"
        else:
            hint = "--code PATH names a folder that has the code as it was"
        return lacking_code(working, files, hint)

    def study(self, folder: Path, known_as: str) -> Study:
        """A study of this one cell, made from its record, which its store knows by an id of its own."""
        content = self.cell(folder)
        study = study_of_cells(
            f"replay-{content.id}",
            [content],
            self.declared,
            folder,
            seeds=[1 if content.seed is None else content.seed],
            repeats=content.repeat + 1,
            known_as={content.id: known_as},
            isolate=is_isolated(self.record),
        )
        if known_as not in {one.id for one in cells_of(study)}:
            raise ExecutionError(
                f"the run {self.record.run_id} cannot be declared again from its record",
                found=f"another cell than {content.label}",
                hint="tell those who make isorun; isorun run STUDY makes the study's runs",
            )
        return study


def _declared(cell: Cell, kept: AbstractStore) -> Mapping[str, Any]:
    """The kept study that a cell belongs to: it says how metrics are read, and where the study lies."""
    documents = kept.documents(STUDIES)
    for name in documents.names():
        document = documents.read(name) or {}
        approach = document.get("approaches", {}).get(cell.approach)
        command = list(cell.command[1:]) if cell.command[0] == FUNCTION else list(cell.command)
        said = approach.get("command", [approach.get("function")]) if isinstance(approach, Mapping) else None
        if said == command:
            return document
    return {}


def _refuse_used(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is not empty", hint="--folder NEW names one that the code can be put into")


def _interpreter(record: RunRecord, cell: Cell, python: str | None, *, own: bool) -> tuple[str, list[Lack]]:
    """The interpreter for the run, where its environment does not make one, and what it lacks."""
    content, command = cell.environment_content, cell.command
    if content.get("kind") or command[0] not in (*REPLACED, FUNCTION):
        return "", []
    return chosen_interpreter(record, python or str(content.get("python") or "") or None, own=own)


class _SameSeed(LocalExecutor):
    """Gives a run the seed that it had: at level default it is drawn for each run anew."""

    def __init__(self, runs: Path, launch: str, seed: int | None) -> None:
        super().__init__(runs, launch=launch)
        self._seed = seed

    def submit(self, job: Job, tell: Tell) -> None:
        """Run the job with the recorded seed."""
        super().submit(job if self._seed is None else replace(job, seed=self._seed), tell)


def _made_again(
    record: RunRecord,
    known: _Known,
    target: AbstractStore,
    working: Path,
    *,
    python: str,
    lacks: Sequence[Lack],
    watch: Watcher | None,
) -> Replay:
    known_as = _free_id(record, target)
    study = known.study(working, known_as)
    launch = record.launch if record.launch in _LAUNCHES else "auto"
    with as_many_cpus(cpus_of([record])), closing(_SameSeed(runs_folder(target), launch, record.seed_used)) as executor:
        session = workflow.session_of(study, store=target, executor=executor, python=python)
        with session as opened, watch(study) if watch else nullcontext() as observer:
            cell = next(one for one in cells_of(study) if one.id == known_as)
            outcome = carry_out(CellList([cell]), opened, study, observer)  # nothing of it is asked of the study's runs
    if outcome.stopped == INTERRUPTED:
        raise KeyboardInterrupt
    if not outcome.records:
        raise NothingRecorded(f"the run {record.run_id} was not made again", found=outcome.stopped)
    new = outcome.records[-1]
    target.documents(REPLAYS).write(new.run_id, {"run": record.run_id, "replay": new.run_id})
    _refuse_unstarted(new)
    told = held_against(record, new)
    kept = shown_place(str(getattr(target, "folder", "") or getattr(target, "place", "") or "the store"))
    return replace(told, replaced=tuple(lack.words for lack in lacks), kept=kept)


def _refuse_unstarted(new: RunRecord) -> None:
    """A run that never began says nothing: what it needs cannot be had."""
    if new.launch == "none":
        raise ExecutionError(
            "the run could not be started again", found=new.reason, hint="see to that, then replay again"
        )


def _free_id(record: RunRecord, target: AbstractStore) -> str:
    """An id that no run of the store has: of this run the next replay."""
    used = {name.partition("-")[0] for name in target.run_ids()}
    number = 1
    while (made := hashlib.sha256(f"replay {record.run_id} {number}".encode()).hexdigest()[:16]) in used:
        number += 1
    return made
