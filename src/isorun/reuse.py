"""What was kept serves again: a study by its name, finished runs by their content; and what to know before that."""

from __future__ import annotations

import shlex
import socket
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from isorun.analysis.evidence import Condition, first_of, some
from isorun.analysis.evidence.provenance import effective, files_of
from isorun.analysis.evidence.shared_files import is_isolated
from isorun.errors import IsorunError
from isorun.execution.inputs import (
    GIVEN_FILES,
    READ_FILES,
    VARIABLES_READ,
    digest_of_file,
    digest_of_variable,
    how_it_changed,
    words_for_files,
)
from isorun.execution.resources import read_another_input
from isorun.session import recalled
from isorun.store import STUDIES, AbstractStore
from isorun.study import is_withheld
from isorun.study.cells import Cell, cells_of, recorded_command
from isorun.study.design import Study, extends, with_key
from isorun.study.records import RunRecord, RunState
from isorun.worker.usercode import code_version

__all__ = ["changes_since", "code_of", "kept_before", "moved_from", "not_here", "reuse_conditions"]

_MOST_RECORDS: Final = 200
"""Enough to notice an edit; a study of ten thousand runs should not wait for all of them to be read."""
_MOST_STUDIES: Final = 50
_MOST_TOLD: Final = 4
_COMMIT: Final = ("commit", "diff_sha256")


def kept_before(study: Study, store: AbstractStore) -> Study | None:
    """What is kept under the study's name; None where that is nothing, or cannot be read."""
    if study.name not in store.documents(STUDIES).names():
        return None
    try:
        return recalled(study.name, store)
    except IsorunError:
        return None


def reuse_conditions(
    study: Study, store: AbstractStore, cells: Sequence[Cell], finished: Collection[str], *, by_name: bool
) -> tuple[Condition, ...]:
    """What to know before finished runs of these cells are used again. by_name: the study will be kept by its name."""
    renamed = tuple(_renamed(study, store)) if by_name else ()
    done = [cell.id for cell in cells if cell.id in finished]
    if not done:
        return renamed
    kept = store.records(done[:_MOST_RECORDS])
    made = [record for record in kept if record.state is RunState.FINISHED]
    left = len(cells) - len(done)
    found = [*renamed, *_edited(study, made, len(done), left), *_other_input(made), *_not_isolated(study, made)]
    found += [] if left else _not_logged(study, made)
    return (*found, *_of_others(study, store, set(done))) if by_name else tuple(found)


def _not_logged(study: Study, made: Sequence[RunRecord]) -> list[Condition]:
    """Metrics that no finished run has, where no other run will be made that might."""
    if {name for record in made for name in (*record.results, *record.series)}.issuperset(study.metrics):
        return []
    from isorun.analysis.studies.conditions import told_at_once  # noqa: PLC0415  only where a name is wrong

    return [condition for condition in told_at_once(study, made) if condition.code == "metric-not-logged"]


def _other_input(made: Sequence[RunRecord]) -> Iterator[Condition]:
    """Runs are known by their command; what they read from standard input is recorded, and compared here."""
    number = read_another_input(made)
    if number:
        message = f"{some(number, 'finished run')} read another standard input than the one given now"
        hint = "a new --store FOLDER makes all runs with this input; the finished ones stay where they are"
        yield Condition("input-changed", message, hint)


def _not_isolated(study: Study, made: Sequence[RunRecord]) -> Iterator[Condition]:
    """Where a run works is no part of what it is known by: finished runs serve whether they had a copy or not."""
    number = sum(not is_isolated(record) for record in made) if study.policy.isolate else 0
    if number:
        yield Condition(
            "runs-not-isolated",
            f"{some(number, 'finished run')} {'was' if number == 1 else 'were'} made without --isolate, and "
            f"{'serves' if number == 1 else 'serve'} again as made",
            "a new --store FOLDER makes all runs in copies of the folder; the finished ones stay where they are",
        )


def _renamed(study: Study, store: AbstractStore) -> Iterator[Condition]:
    """A name that another command had, or this one with other settings: its runs stay, but no longer under it."""
    before = kept_before(study, store)
    if before is None or extends(with_key(study, store.key), before):
        return
    kept = {approach.command for approach in before.approaches.values()}
    if kept.isdisjoint(recorded_command(study, item) for item in study.approaches.values()):
        was = f"of another command ({shlex.join(next(iter(kept)))})"
    else:
        was = "of this command with another environment, interpreter or secret, or with its own seeds"
    message = f"the name {study.name} was that {was}, whose runs stay in the store without it"
    yield Condition("name-taken", message, "another --name keeps both")


def _edited(study: Study, made: Sequence[RunRecord], finished: int, left: int) -> Iterator[Condition]:
    changed = changes_since(study, made)
    if not changed:
        return
    mixed = f"; the {some(left, 'run')} still to make would mix both versions" if left else ""
    told = first_of(changed, _MOST_TOLD, " and ")
    yield Condition(
        "code-changed",
        f"{told} changed since runs of this study were made ({finished} finished){mixed}",
        "a new --store FOLDER makes all runs with everything as it is now; the finished ones stay where they are",
    )


def changes_since(study: Study, made: Sequence[RunRecord]) -> list[str]:
    """What the runs were made of that is not as it was then, by name.

    Files that the training imported, was given or read by itself, and variables it asks for. The repository around them
    counts only for runs that told no files: what they did not use may change. Runs of a version that the study names
    are known by its commit, and do not change with the working copy.
    """
    folder = Path(study.folder)
    made = [record for record in made if not record.cell.environment_content.get("code")]
    files = {item for record in made for item in files_of(record)}
    now = {path: digest_of_file(folder / path) for path, _ in files}
    edited = [*sorted({path for path, digest in files if now[path] not in ("", digest)}), *_large_ones(folder, made)]
    silent = [record for record in made if record.code and not effective(record).get("sources")]
    around = [] if edited or not _has_moved(folder, silent) else ["the code around it"]
    return [*edited, *around, *(f"the variable {name}" for name in _changed_variables(made))]


def code_of(study: Study) -> dict[str, Any]:
    """Which code a study is kept with, before any run has told its files: the commit, and the files that commands name.

    Where environments name the version of their code, that is part of what their runs are known by.
    """
    if all(environment.code.get("ref", ".") != "." for environment in study.environments.values()):
        return {}
    folder = Path(study.folder)
    found = {name: value for name, value in code_version(folder).items() if name in _COMMIT}
    words = dict.fromkeys(word for item in study.approaches.values() for word in words_for_files(item.command))
    files = {word: digest for word in words if not is_withheld(word) and (digest := digest_of_file(folder / word))}
    return {**found, **({"files": files} if files else {})}


def moved_from(code: Mapping[str, Any], study: Study) -> list[str]:
    """What is not as the study was kept with it, by name: files that commands name, else the repository."""
    folder, files = Path(study.folder), code.get("files")
    named = files if isinstance(files, Mapping) else {}
    edited = sorted(word for word, digest in named.items() if digest_of_file(folder / str(word)) not in ("", digest))
    then = {name: code[name] for name in _COMMIT if code.get(name) is not None}
    if edited or not then:
        return edited
    now = code_version(folder)
    if not now:
        return []
    if now.get("commit") != then.get("commit"):
        return [f"the commit ({str(now.get('commit'))[:10]}, and not {str(then.get('commit'))[:10]})"]
    return [] if now.get("diff_sha256") == then.get("diff_sha256") else ["what is not committed"]


def not_here(study: Study, code: Mapping[str, Any], made: Sequence[RunRecord]) -> list[str]:
    """Files that the training needs and that are not on this machine: named by its command, or read by all its runs."""
    folder, files = Path(study.folder), code.get("files")
    named = {str(word) for word in files} if isinstance(files, Mapping) else set()
    read = [{path for path, _ in _data_of(record)} for record in made]
    everywhere = set.intersection(*read) if read else set()
    return sorted(path for path in named | everywhere if not _exists(folder / path))


def _data_of(record: RunRecord) -> Iterator[tuple[str, str]]:
    """Names of files that a run was given or read by itself, with how each is known."""
    requested = record.environment.get("requested", {})
    for item in (*requested.get(GIVEN_FILES, ()), *requested.get(READ_FILES, ())):  # kept by isorun itself
        yield str(item["path"]), str(item.get("sha256", item.get("size")))


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _large_ones(folder: Path, made: Sequence[RunRecord]) -> list[str]:
    """Data too large to be hashed that were written to since, perhaps with what they held before; on this machine."""
    here = [record for record in made if record.where.get("host") == socket.gethostname()]
    read = [record.environment.get("requested", {}).get(READ_FILES, ()) for record in here]  # kept by isorun itself
    then = {(item["path"], item["size"], item["mtime_ns"]) for items in read for item in items if "size" in item}
    changed = {(path, how_it_changed(folder / path, size, time)) for path, size, time in then}
    worst = {path: how for path, how in sorted(changed, reverse=True) if how}  # of content and time the first
    return [path if how == "content" else f"the time of {path}" for path, how in sorted(worst.items())]


def _has_moved(folder: Path, made: Sequence[RunRecord]) -> bool:
    then = {(name, record.code[name]) for record in made for name in _COMMIT if record.code.get(name) is not None}
    now = code_version(folder) if then else {}
    return bool(now) and any(now.get(name) != value for name, value in then)


def _changed_variables(made: Sequence[RunRecord]) -> list[str]:
    """Those of the caller's that the training asks for; runs of other machines had others anyway."""
    here = [record for record in made if record.where.get("host") == socket.gethostname()]
    read = (record.environment.get("requested", {}).get(VARIABLES_READ, {}) for record in here)
    then = {item for variables in read for item in variables.items()}  # kept by isorun itself, not by the training
    return sorted({name for name, digest in then if digest_of_variable(name) != digest})


def _of_others(study: Study, store: AbstractStore, finished: set[str]) -> Iterator[Condition]:
    """Cells are known by their content, so that another study's runs of the same content are this one's, too."""
    names = store.documents(STUDIES).names()
    if study.name in names:
        return
    sharing = [name for name in names[:_MOST_STUDIES] if finished & _cells(name, store)]
    # A record does not say for which study it was made, and one that only used runs again made none of them.
    several = f"one of the studies {first_of(sorted(sharing), _MOST_TOLD, ', ')}"
    whose = several if sharing[1:] else f"the study {sharing[0]}" if sharing else "another study"
    yield Condition(
        "runs-reused",
        f"{some(len(finished), 'finished run')} of the same content {'was' if len(finished) == 1 else 'were'} made "
        f"before by {whose}, and {'counts' if len(finished) == 1 else 'count'} for {study.name} too",
        f"a new --store FOLDER makes runs of its own: isorun run --store FOLDER --name {shlex.quote(study.name)} …",
    )


def _cells(name: str, store: AbstractStore) -> set[str]:
    try:
        return {cell.id for cell in cells_of(recalled(name, store), store.key)}
    except IsorunError:
        return set()
