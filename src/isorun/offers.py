"""What a store offers to this machine: the kept studies whose cells can be carried out here, and why others cannot.

A study is kept with the folder that it lies in; here that folder may lie elsewhere. The training's code has to be the
same: it is held against what finished runs say they were made of, or, before the first of them, against the commit and
the files that the study was kept with. What is missing is told, and those cells are left to others.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from isorun.analysis.evidence import Condition, first_of
from isorun.environments import opened_environment
from isorun.errors import IsorunError, StudyError
from isorun.execution import AbstractExecutor
from isorun.reuse import changes_since, moved_from, not_here
from isorun.session import blaming
from isorun.store import PLANS, STUDIES, STUDY_PLACE, AbstractStore
from isorun.study import Approach, Environment, is_withheld
from isorun.study.cells import Cell, cells_of
from isorun.study.design import Study, changed, document_of, document_without_secrets, kept_study, load_study
from isorun.study.records import RunRecord, RunState
from isorun.worker.usercode import code_version
from isorun.workflow import known_to

__all__ = ["Offer", "Offers", "StudyFolders", "offer_of"]

_LOOKED_AT: Final = 50
"""Finished runs whose files are held against those here: enough to notice an edit."""
_TOLD: Final = 4
_BISECTION: Final = "bisect-"


@dataclass(frozen=True, slots=True)
class StudyFolders:
    """Where folders of studies lie here: for all, by the study's name, or by the beginning of their path there."""

    every: str = ""
    named: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, words: Sequence[str]) -> StudyFolders:
        """PATH, NAME=PATH or /there=PATH, as they are typed."""
        pairs = [word.partition("=") for word in words]
        every = [word for word, (_, sign, _) in zip(words, pairs, strict=True) if not sign]
        named = {name.rstrip("/"): path for name, sign, path in pairs if sign}
        if len(every) > 1:
            raise StudyError(
                "several folders are named for all studies",
                found=", ".join(every),
                allowed="one PATH, or NAME=PATH for each study",
            )
        return cls(every[0] if every else "", named)

    def here(self, name: str, folder: Path) -> Path:
        """Where the folder of the study lies on this machine."""
        if name in self.named:
            return Path(self.named[name])
        for above in (folder, *folder.parents):
            if str(above) in self.named:
                return Path(self.named[str(above)]) / folder.relative_to(above)
        return Path(self.every) if self.every else folder


@dataclass(frozen=True, slots=True)
class Offer:
    """A kept study here. cells: those that can be carried out; conditions: what there is to know, and what is left.

    study: None where what is kept cannot be read. retries, fails_fast: of its policy, which counts for all who take
    its cells together. unproven: no run had finished that says what code and data the others are made of.
    """

    study: Study | None
    cells: tuple[Cell, ...]
    conditions: tuple[Condition, ...] = ()
    retries: int = 0
    fails_fast: bool = False
    unproven: bool = False


@dataclass(slots=True)
class Offers:
    """What the store offers, looked at again and again: a study is read anew where its document has changed.

    And once more when the first of its runs has finished, here or elsewhere: it may have read other data than lie here.

    asked: the names that were asked for; all where none was. anyway: whether cells are taken although code or data
    differ here. executor: what says whether runs can begin.
    """

    store: AbstractStore
    executor: AbstractExecutor
    asked: Sequence[str] = ()
    folders: StudyFolders = field(default_factory=StudyFolders)
    anyway: bool = False
    _read: dict[str, tuple[dict[str, Any] | None, Offer]] = field(default_factory=dict)

    def look(self) -> dict[str, Offer]:
        """The studies by name, the one that was kept first first."""
        with blaming("store", self.store):
            kept = self.store.documents(STUDIES)
            names = [name for name in reversed(kept.names()) if not self.asked or name in self.asked]
            for name in names:
                try:
                    document = kept.read(name)
                except IsorunError as error:
                    self._read[name] = (None, _refused(name, error))
                    continue
                if name not in self._read or self._read[name][0] != document or self._is_proven(self._read[name][1]):
                    self._read[name] = (document, self._offer(name, document or {}))
            return {name: self._read[name][1] for name in names}

    def _is_proven(self, offer: Offer) -> bool:
        """Whether runs say by now what those of an offer are made of."""
        return offer.unproven and bool(self.store.finished(cell.id for cell in offer.cells))

    def _offer(self, name: str, document: Mapping[str, Any]) -> Offer:
        try:
            return offer_of(
                name, document, self.store, self.executor, self.folders, named=name in self.asked, anyway=self.anyway
            )
        except (IsorunError, KeyError, TypeError, ValueError, AttributeError) as error:
            return _refused(name, error)


def offer_of(
    name: str,
    document: Mapping[str, Any],
    store: AbstractStore,
    executor: AbstractExecutor,
    folders: StudyFolders,
    *,
    named: bool,
    anyway: bool,
) -> Offer:
    """What of the kept study can be carried out here. named: it was asked for by its name."""
    folder = folders.here(name, Path(str(document["folder"])))
    study, told = _declared(name, document, folder, store)
    if study.imported:
        return Offer(study, (), _not_to_be_made(study) if named else ())
    cells = cells_of(known_to(study, store)) if not study.searches else ()
    left = _not_for_workers(study, store, cells, named=named)
    if left is not None:
        return Offer(study, (), (left,))
    finished = store.finished(cell.id for cell in cells)
    if len(finished) == len({cell.id for cell in cells}):
        return Offer(study, (), tuple(told))  # whether its code is here matters to nobody
    missing = _no_folder(name, folder)
    if missing is not None:
        return Offer(study, (), (missing,))
    code = document.get("code")
    differing = _differing(study, code if isinstance(code, Mapping) else {}, _some_records(store, cells, finished))
    if differing is not None and not anyway:
        return Offer(study, (), (differing,))
    told += [] if differing is None else [replace(differing, next_step="nothing, where that is meant (--anyway)")]
    to_make = {(cell.approach, cell.environment) for cell in cells if cell.id not in finished}
    wrong = {of: why for of, why in _cannot_begin(study, executor) if of in to_make}
    here = tuple(cell for cell in cells if (cell.approach, cell.environment) not in wrong)
    told += list(dict.fromkeys(wrong.values()))
    policy = {**document_of(study)["policy"], "retries": 0, "on_failure": "continue"}
    own = changed(study, policy=policy)
    fails_fast = study.policy.on_failure == "fail-fast"
    return Offer(own, here, tuple(told), study.policy.retries, fails_fast, unproven=not finished)


def _declared(
    name: str, document: Mapping[str, Any], folder: Path, store: AbstractStore
) -> tuple[Study, list[Condition]]:
    """The study as it was kept; by its file where that says the same, because a file has what was withheld."""
    rest = {key: value for key, value in document.items() if key not in STUDY_PLACE}
    there = Path(str(document["folder"]))
    kept = known_to(kept_study(dict(rest), folder, name), store)
    file = Path(str(document.get("file", "")))
    if not file.name:
        return kept, []
    here = folder / (file.relative_to(there) if file.is_relative_to(there) else file.name)
    if not here.is_file():
        return kept, []
    try:
        declared = known_to(load_study(here), store)
        if document_without_secrets(declared) == rest:
            return declared, []
    except IsorunError as error:
        why = error.what
    else:
        why = "it declares something else now"
    message = f"{name}: {here} is not as it was kept ({why}): what was kept is carried out"
    return kept, [Condition("study-edited", message, f"isorun run {shlex.quote(str(here))} --queue keeps it as it is")]


def _not_for_workers(study: Study, store: AbstractStore, cells: Sequence[Cell], *, named: bool) -> Condition | None:
    """Searches and decisions look at results before they propose runs, and that is for the command that does it."""
    if study.searches:
        message = f"{study.name} is a search, which proposes its trials as results come in: it stays with its command"
        return Condition(
            "left-to-search", message, f"isorun run {shlex.quote(study.file or study.name)}; several share its trials"
        )
    own = {cell.id for cell in cells}
    plans = store.documents(PLANS)
    for plan in () if named else plans.names():
        try:
            document = plans.read(plan) or {}
        except IsorunError:
            continue  # whoever goes on with that decision is told
        if not plan.startswith(_BISECTION) and document.get("cells") and own.issuperset(document["cells"]):
            message = f"{study.name} is being decided on, and how many runs that takes is for isorun decide to say"
            return Condition("left-to-decision", message, f"--study {shlex.quote(study.name)} takes all its cells")
    return None


def _not_to_be_made(study: Study) -> tuple[Condition, ...]:
    """Runs of a tracker were made by whoever used it, also those that failed: none of them is left to anybody."""
    tracker = study.imported.tracker if study.imported else ""
    message = f"{study.name}: its runs were imported from {tracker}, and isorun cannot make more of them"
    return (Condition("left-to-tracker", message, "make more with the tracker, then isorun import again"),)


def _no_folder(name: str, folder: Path) -> Condition | None:
    if folder.is_dir():
        return None
    message = f"{name}: its folder {folder} is not on this machine"
    return Condition("folder-missing", message, f"--folder {shlex.quote(name)}=PATH says where it lies here")


def _some_records(store: AbstractStore, cells: Sequence[Cell], finished: Collection[str]) -> list[RunRecord]:
    some = [cell.id for cell in cells if cell.id in finished][-_LOOKED_AT:]
    return [record for record in store.records(some) if record.state is RunState.FINISHED] if some else []


def _differing(study: Study, code: Mapping[str, Any], made: Sequence[RunRecord]) -> Condition | None:
    """What of the code or the data is not here, or is another. Runs that were made know it better than the commit."""
    own = [record for record in made if not record.cell.environment_content.get("code")]
    absent = not_here(study, code, own)
    folder = Path(study.folder)
    if absent:
        message = f"{study.name}: {first_of(absent, _TOLD, ', ')} is not on this machine (looked for in {folder})"
        return Condition("data-missing", message, "bring it there; --anyway tries all the same")
    other = changes_since(study, own) if own else moved_from(code, study)
    if not other:
        return None
    message = f"{study.name}: {first_of(other, _TOLD, ', ')} in {folder} differs from what the study's runs are made of"
    commit = str(code.get("commit", ""))
    fetch = "bring the same code there"
    if commit and code_version(folder).get("commit") != commit:  # else a checkout brings nothing
        fetch = f"git -C {shlex.quote(str(folder))} checkout {commit[:10]}"
    return Condition("code-differs-here", message, f"{fetch}; --anyway mixes both, which every report then says")


def _cannot_begin(study: Study, executor: AbstractExecutor) -> Iterator[tuple[tuple[str, str], Condition]]:
    for approach in study.approaches.values():
        for environment in study.environments.values():
            where = f"{study.name}: {approach.name} in the environment {environment.name}"
            if any(map(is_withheld, (*approach.command, *environment.env.values()))):
                message = f"{where}: a variable or secret of it was not kept, so that it cannot be run here"
                hint = "isorun run with its study file, or its command, where the secret is known"
                yield (approach.name, environment.name), Condition("secret-not-kept", message, hint)
                continue
            try:
                _try_to_begin(approach, environment, Path(study.folder), executor)
            except IsorunError as error:
                message = f"{where} cannot begin on this machine: {error.what}"
                message += f" ({error.found})" if error.found else ""
                hint = error.hint or "its cells are left to others"
                yield (approach.name, environment.name), Condition("cannot-begin-here", message, hint)


def _try_to_begin(approach: Approach, environment: Environment, folder: Path, executor: AbstractExecutor) -> None:
    own = opened_environment(environment)
    with blaming("executor", executor):
        executor.check(environment)
        executor.check_command(approach.command, environment, folder.resolve())
    if not environment.kind and environment.code.get("ref", ".") == "." and "{" not in approach.command[0]:
        own.prepare(approach.command, folder.resolve())


def _refused(name: str, error: Exception) -> Offer:
    what = error.what if isinstance(error, IsorunError) else f"{type(error).__name__}: {error}"
    hint = (error.hint if isinstance(error, IsorunError) else "") or "keep it again: isorun run … --queue"
    return Offer(None, (), (Condition("study-not-read", f"{name} cannot be read: {what}", hint),))
