"""Runs that were made before and serve again: by which study, and from which version of the code."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from isorun import workflow
from isorun.analysis.evidence.condition import Condition, some
from isorun.errors import IsorunError
from isorun.study.design import Study
from isorun.study.records import RunRecord, RunState
from isorun.worker.redaction import redacted_argv
from isorun.worker.usercode import code_version, hash_of_file

__all__ = ["reuse_conditions"]

_MOST_RECORDS: Final = 200
"""Enough to notice an edit; a study of ten thousand runs should not wait for all of them to be read."""
_MOST_STUDIES: Final = 50


def reuse_conditions(study: Study, store: str | Path | None, *, adhoc: bool) -> tuple[Condition, ...]:
    """What to know before finished runs are used again. adhoc: a command typed now, which has no file of its own."""
    if not workflow.store_folder(study, store).is_dir():
        return ()
    renamed = tuple(_renamed(study, store)) if adhoc else ()
    left = {cell.id for cell in workflow.missing_in(study, store)}
    finished = [cell.id for cell in workflow.plan(study) if cell.id not in left]
    if not finished:
        return renamed
    with workflow.open_store(study, store) as opened:
        kept = opened.records(finished[:_MOST_RECORDS])
    records = [record for record in kept if record.state is RunState.FINISHED]
    again = len(finished), len(left)
    found = [*renamed, *_edited(study, records, again)]
    return (*found, *_of_others(study, store, set(finished))) if adhoc else tuple(found)


def _renamed(study: Study, store: str | Path | None) -> Iterator[Condition]:
    """A name that another command had: its runs stay in the store, but no longer under it."""
    if study.name not in workflow.recent(store):
        return
    try:
        kept = {approach.command for approach in workflow.load(study.name, store=store).approaches.values()}
    except IsorunError:
        return
    if kept.isdisjoint(tuple(redacted_argv(item.command, {})) for item in study.approaches.values()):
        was = shlex.join(next(iter(kept)))
        message = f"the name {study.name} was that of another command ({was}), whose runs stay in the store without it"
        yield Condition("name-taken", message, "another --name keeps both")


def _edited(study: Study, records: Sequence[RunRecord], again: tuple[int, int]) -> Iterator[Condition]:
    finished, left = again
    made_with = {json.dumps(dict(record.code), sort_keys=True, default=str): record for record in records}
    changed = _changes(study, list(made_with.values()))
    if not changed:
        return
    mixed = f"; the {some(left, 'run')} still to make would mix both versions" if left else ""
    yield Condition(
        "code-changed",
        f"{' and '.join(changed)} changed since runs of this study were made ({finished} finished){mixed}",
        "a new --store FOLDER makes all runs with the code as it is now; the finished ones stay where they are",
    )


def _changes(study: Study, records: Sequence[RunRecord]) -> list[str]:
    """What of the code that made these runs is not as it was then: scripts, else the repository around them."""
    folder = Path(study.folder)
    scripts = {script for record in records if (script := _edited_script(folder, record))}
    if scripts:
        return sorted(scripts)
    now = code_version(folder)
    then = [{name: record.code.get(name) for name in ("commit", "diff_sha256")} for record in records if record.code]
    moved = any(now.get(name) != value for version in then for name, value in version.items() if value is not None)
    return ["the code around it"] if moved and now else []


def _edited_script(folder: Path, record: RunRecord) -> str:
    """The run's script, where its file is not what was run."""
    script = next((word for word in record.cell.command if word.endswith(".py")), "")
    path = folder / script
    recorded = record.code.get("script_sha256")
    return script if script and recorded and path.is_file() and hash_of_file(path) != recorded else ""


def _of_others(study: Study, store: str | Path | None, finished: set[str]) -> Iterator[Condition]:
    """Cells are known by their content, so that another study's runs of the same content are this one's, too."""
    names = workflow.recent(store)
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


def _cells(name: str, store: str | Path | None) -> set[str]:
    try:
        return {cell.id for cell in workflow.plan(workflow.load(name, store=store))}
    except IsorunError:
        return set()
