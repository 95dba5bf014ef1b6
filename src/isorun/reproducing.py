"""Reproduce a paper: declare its studies, run what is missing, and show its tables with our numbers beside theirs."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from isorun import showing, workflow
from isorun.analysis import Told
from isorun.analysis.evidence import Condition, some
from isorun.analysis.studies.selection import last_words
from isorun.errors import NothingRecorded, UsageError
from isorun.report import View
from isorun.scheduling import Observer
from isorun.session import Session
from isorun.study.design import Study
from isorun.study.records import RunRecord, RunState
from isorun.zoo.machines import gpu_is_visible, machines
from isorun.zoo.paper import AbstractPaper, Presentation, Request
from isorun.zoo.papers import check_request, paper, presentation_view

__all__ = ["Reproduction", "reproduce", "runs_to_do", "studies_of"]

DownloadWatcher = Callable[[Study], AbstractContextManager[Observer]]


@dataclass(frozen=True, slots=True)
class Reproduction(Told):
    """A paper with our numbers. finished and failed count the cells of its studies by how their last run ended.

    stopped: why not all was run, empty if it was.
    """

    told_as: ClassVar[str] = "reproduction"

    paper: AbstractPaper
    request: Request
    presentation: Presentation
    finished: int
    failed: int
    machines: tuple[Mapping[str, Any], ...] = ()
    stopped: str = ""

    def view(self, *, figures: bool = False) -> View:
        """For people, as the command shows it; by default without its figures, which terminals and notebooks leave."""
        shown = self.presentation if figures else replace(self.presentation, figures=())
        return presentation_view(shown, self.paper.not_attempted)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON: the tables as they are shown, and `numbers` for machines."""
        shown = self.presentation
        return {
            "paper": self.paper.name,
            "title": self.paper.title,
            "scale": self.request.scale,
            "only": list(self.request.only),
            "runs": {"finished": self.finished, "failed": self.failed, "stopped": self.stopped},
            "machines": [dict(machine) for machine in self.machines],
            "verdict": list(shown.verdict),
            "tables": [table.to_json() for table in shown.tables],
            "figures": [{"name": figure.name, "sentence": figure.sentence} for figure in shown.figures],
            "scaled_down": list(shown.scaled_down),
            "not_had": list(shown.not_had),
            "not_attempted": [item.sentence for item in self.paper.not_attempted],
            "warnings": [warning.to_json() for warning in shown.warnings],
            "numbers": dict(shown.numbers),
        }


showing.VIEWS[Reproduction.told_as] = Reproduction.view
showing.install()


def studies_of(name: str, request: Request) -> tuple[Study, ...]:
    """The studies that a reproduction consists of, checked but not run."""
    chosen = paper(name)
    check_request(chosen, request)
    return chosen.studies(request)


def runs_to_do(study: Study, store: workflow.Store = None) -> tuple[int, int]:
    """How many runs a study has, and how many are missing. Of a search, trials that nobody has proposed count too."""
    cells, missing = workflow.cells(study, store=store), workflow.missing(study, store=store)
    to_come = workflow.trials_to_come(study, store=store) if study.searches else 0
    return len(cells) + to_come, len(missing) + to_come


def reproduce(
    name: str,
    *,
    scale: str = "smoke",
    only: Sequence[str] = (),
    runs: int | None = None,
    device: str = "auto",
    folder: str | Path = ".",
    store: workflow.Store = None,
    executor: str = "local",
    jobs: int | None = None,
    launch: str = "auto",
    devices: str = "auto",
    watch: DownloadWatcher | None = None,
    run: bool = True,
) -> Reproduction:
    """Carry out what is missing of a paper's studies and present it.

    only: parts of the paper; runs: identical runs a group; run: False presents what is recorded and runs nothing.
    Records are kept as those of any study, so the same call again runs nothing twice.
    """
    request = Request(scale, Path(folder), tuple(only), runs, device, recorded=not run)
    studies = studies_of(name, request)
    if run and studies and device == "cuda" and executor == "local" and not gpu_is_visible():
        raise UsageError("--device cuda needs a GPU", found="the driver shows none", allowed="auto, cpu")
    with ExitStack() as stack:
        stopped, told = "", list[Condition]()
        if run and studies:
            paper(name).prepare(request)
            stopped, store = _carry_out(
                studies, store, watch, stack, told, executor=executor, jobs=jobs, launch=launch, devices=devices
            )
        found = {study.name: _records(study, store) for study in studies}
    if studies and not any(found.values()):
        raise NothingRecorded(f"nothing has been recorded of {name} at scale {scale}", hint=f"isorun reproduce {name}")
    chosen = paper(name)
    ended = _last_records(found)
    failed = [record for record in ended if record.state is not RunState.FINISHED]
    shown = _with_failures(chosen.present(request, found), failed, name)
    shown = replace(shown, warnings=(*shown.warnings, *dict.fromkeys(told)))
    made_on = tuple(machines(record for records in found.values() for record in records))
    return Reproduction(chosen, request, shown, len(ended) - len(failed), len(failed), made_on, stopped)


def _carry_out(
    studies: Sequence[Study],
    store: workflow.Store,
    watch: DownloadWatcher | None,
    stack: ExitStack,
    told: list[Condition],
    *,
    executor: str,
    jobs: int | None,
    launch: str,
    devices: str,
) -> tuple[str, workflow.Store]:
    """Why it ended before all was run, empty if it did not; and the store, which stays open as long as the stack.

    told: takes what there is to know about the runs.
    """
    sessions: dict[int | None, Session] = {}
    for study in studies:
        # Only this executor runs on this machine; others know their own.
        at_once = _fitting(jobs or 1, study) if executor == "local" else jobs
        if at_once not in sessions:
            # One store for all of them; another number of runs at a time takes other CPUs, and so another executor.
            session = workflow.session_of(
                study,
                store=store,
                executor=executor,
                jobs=at_once,
                launch=launch,
                devices=devices,
                python=sys.executable,  # the trainings of papers are isorun's own
            )
            sessions[at_once] = stack.enter_context(session)
            store = sessions[at_once].store
        workflow.remember(study, store=store)
        with watch(study) if watch else nullcontext() as observer:
            outcome = workflow.run_missing(study, sessions[at_once], observer)
        told += outcome.conditions
        if outcome.stopped:
            return outcome.stopped, store
        if outcome.records and not outcome.count(RunState.FINISHED):
            return f"every run of {study.name} failed", store
    return "", store


def _fitting(jobs: int, study: Study) -> int:
    """As many runs at a time as have the CPUs that the study's environments ask for."""
    threads = max((environment.threads or 1 for environment in study.environments.values()), default=1)
    return max(1, min(jobs, len(os.sched_getaffinity(0)) // threads))


def _records(study: Study, store: workflow.Store) -> Sequence[RunRecord]:
    try:
        return workflow.records(study, store=store)
    except NothingRecorded:
        return ()


def _last_records(found: Mapping[str, Sequence[RunRecord]]) -> list[RunRecord]:
    """The last attempt of each cell."""
    last: dict[str, RunRecord] = {}
    for record in (record for records in found.values() for record in records):
        if record.cell.id not in last or record.attempt > last[record.cell.id].attempt:
            last[record.cell.id] = record
    return list(last.values())


def _cause(record: RunRecord) -> str:
    """What a run said last; of one that was stopped, or never started, why: its last line says nothing about that."""
    if record.state is RunState.INTERRUPTED or _never_started(record):
        return record.reason
    return last_words(record.log_tail) or record.reason


def _never_started(record: RunRecord) -> bool:
    """Whether its environment could not be had, so that nothing was launched."""
    return record.launch == "none"


def _with_failures(shown: Presentation, failed: Sequence[RunRecord], name: str) -> Presentation:
    if not failed:
        return shown
    number = len(failed)
    said = Counter(_cause(record) for record in failed)
    cause, times = said.most_common(1)[0]
    said_by = "" if times == number else f" ({times} of them)"
    message = f"{some(number, 'run')} did not finish and {'is' if number == 1 else 'are'} in no table: {cause}{said_by}"
    next_step = f"mend it, then isorun reproduce {name} again; isorun report STUDY shows what failed runs said"
    if all(map(_never_started, failed)):
        next_step = f"see that pip or uv reaches a registry that has these packages, then isorun reproduce {name} again"
    return replace(shown, warnings=(*shown.warnings, Condition("failed-runs", message, next_step)))
