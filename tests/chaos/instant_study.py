"""A study of three runs that take no time, carried out by the real workflow with replaceable file operations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from isorun import workflow
from isorun.errors import IsorunError
from isorun.execution import Job
from isorun.scheduling import Observer
from isorun.store.files import Files
from isorun.store.folder import FolderStore
from isorun.study.design import Study, study_from_document
from isorun.study.records import RunRecord, RunState, Series
from isorun.testing.instant_executor import Computed, InstantExecutor

Say = Callable[[str], object]


def three_runs(folder: Path) -> Study:
    document = {"repeats": 3, "levels": ["fixed-seed"], "approaches": {"toy": {"command": "python train.py"}}}
    return study_from_document(document, folder, "three")


def token(run_id: str) -> float:
    """What the run must record: another value for every attempt."""
    return float(int(run_id.replace("-", ""), 16) % 1_000_003)


def carry_out(folder: Path, files: Files, say: Say) -> str:
    """Run what is missing; tells `say` "began ID" and "acknowledged ID"; the message of the error that ended it."""

    def compute(job: Job) -> Computed:
        run_id = job.run_id
        say(f"began {run_id}")
        return Computed({"token": token(run_id)}, series={"acc": Series((1.0, 2.0), (0.1, 0.2), (0.25, 0.5))})

    executor = InstantExecutor(compute)
    try:
        with FolderStore(folder / ".isorun", files=files) as store:
            workflow.run(three_runs(folder), store=store, executor=executor, observer=_Teller(say))
    except IsorunError as error:
        return error.message()
    finally:
        executor.close()
    return ""


class _Teller(Observer):
    """Passes on which runs are acknowledged as finished."""

    def __init__(self, say: Say) -> None:
        self._say = say

    def run_ended(self, record: RunRecord) -> None:
        if record.state is RunState.FINISHED:
            self._say(f"acknowledged {record.run_id}")
