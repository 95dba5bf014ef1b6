"""What was kept serves again: a study by its name, finished runs by their content; and what to know before that."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

from isorun.analysis.evidence import Condition, some
from isorun.errors import IsorunError, StudyError
from isorun.execution.resources import read_another_input
from isorun.store import STUDIES, AbstractStore
from isorun.study.cells import Cell, cells_of, recorded_command
from isorun.study.design import Study, extends, kept_study, with_key
from isorun.study.records import RunRecord, RunState
from isorun.worker.usercode import code_version, hash_of_file

__all__ = ["kept_before", "recalled", "reuse_conditions"]

_MOST_RECORDS: Final = 200
"""Enough to notice an edit; a study of ten thousand runs should not wait for all of them to be read."""
_MOST_STUDIES: Final = 50


def recalled(name: str, store: AbstractStore) -> Study:
    """The study that is kept under this name."""
    kept = store.documents(STUDIES)
    try:
        document = kept.read(name) or {}
        folder = Path(document.pop("folder"))
    except (IsorunError, KeyError, TypeError) as error:
        what = f"the kept study {kept.place(name)} cannot be read: {error}"
        raise StudyError(what, hint="type the command again: its finished runs are kept") from None
    return kept_study(document, folder, name)


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
    found = [*renamed, *_edited(study, made, len(done), len(cells) - len(done)), *_other_input(made)]
    return (*found, *_of_others(study, store, set(done))) if by_name else tuple(found)


def _other_input(made: Sequence[RunRecord]) -> Iterator[Condition]:
    """Runs are known by their command; what they read from standard input is recorded, and compared here."""
    number = read_another_input(made)
    if number:
        message = f"{some(number, 'finished run')} read another standard input than the one given now"
        hint = "a new --store FOLDER makes all runs with this input; the finished ones stay where they are"
        yield Condition("input-changed", message, hint)


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
    versions = {json.dumps(dict(record.code), sort_keys=True, default=str): record for record in made}
    changed = _changes(study, list(versions.values()))
    if not changed:
        return
    mixed = f"; the {some(left, 'run')} still to make would mix both versions" if left else ""
    yield Condition(
        "code-changed",
        f"{' and '.join(changed)} changed since runs of this study were made ({finished} finished){mixed}",
        "a new --store FOLDER makes all runs with the code as it is now; the finished ones stay where they are",
    )


def _changes(study: Study, made: Sequence[RunRecord]) -> list[str]:
    """What of the code that made these runs is not as it was then: scripts, else the repository around them."""
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
    script = next((word for word in record.cell.command if word.endswith(".py")), "")
    path = folder / script
    recorded = record.code.get("script_sha256")
    return script if script and recorded and path.is_file() and hash_of_file(path) != recorded else ""


def _of_others(study: Study, store: AbstractStore, finished: set[str]) -> Iterator[Condition]:
    """Cells are known by their content, so that another study's runs of the same content are this one's, too."""
    names = store.documents(STUDIES).names()
    if study.name in names:
        return
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
        return {cell.id for cell in cells_of(recalled(name, store), store.key)}
    except IsorunError:
        return set()
