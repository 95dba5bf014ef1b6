"""Reproduce a paper: declare its studies, run what is missing, and show its tables with our numbers beside theirs."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final

from isorun import showing, workflow
from isorun.analysis import Told
from isorun.analysis.evidence import Condition, some
from isorun.analysis.studies.selection import last_words
from isorun.errors import InputError, NothingRecorded, UsageError
from isorun.report import UNKNOWN, Column, Listing, Table, View
from isorun.report.figures.description import Figure
from isorun.report.kept_views import view_from_json, view_to_json
from isorun.scheduling import Observer
from isorun.session import Session
from isorun.study.design import Study
from isorun.study.records import RunRecord, RunState
from isorun.zoo.machines import gpu_is_visible, machines
from isorun.zoo.paper import AbstractPaper, Presentation, Request, Undrawn, drawn
from isorun.zoo.papers import check_request, paper, presentation_view

__all__ = ["KeptReproduction", "Reproduction", "kept_reproduction", "reproduce", "runs_to_do", "studies_of"]

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

    @property
    def heading(self) -> tuple[str, str]:
        """The title of its pages, and what stands above it."""
        return _heading(self.paper.name, self.paper.title, self.request.scale)

    def view(self, *, figures: bool = False) -> View:
        """For people, as the command shows it; by default without its figures, which terminals and notebooks leave."""
        shown = self.presentation if figures else replace(self.presentation, figures=())
        return presentation_view(shown, self.paper.not_attempted)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON: the tables as they are shown, `numbers` for machines, and `page`, which makes its pages again."""
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
            "page": view_to_json(self.view(figures=True)),
        }


def _heading(name: str, title: str, scale: str) -> tuple[str, str]:
    return f"{title} (scale {scale})", f"isorun reproduce {name}"


@dataclass(frozen=True, slots=True)
class KeptReproduction:
    """A reproduction from the JSON that it left: all its pages, without its runs, its data or its paper's code."""

    paper: str
    heading: tuple[str, str]
    told: Mapping[str, Any]
    shown: View

    def view(self, *, figures: bool = False) -> View:
        """As that of the reproduction itself."""
        return self.shown if figures else replace(self.shown, figures=())

    def to_json(self) -> dict[str, Any]:
        """What was read."""
        return dict(self.told)


def kept_reproduction(path: str | Path) -> KeptReproduction:
    """What `isorun reproduce … --json` printed, from a file.

    Of files that were written before pages were kept the figures are drawn anew from the numbers; those for which they
    do not suffice are listed.
    """
    told = _read_json(Path(path))
    name, title, scale = (told[key] for key in ("paper", "title", "scale"))
    try:
        shown = view_from_json(told["page"]) if "page" in told else _view_without_page(told)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise InputError(f"{path} is not the JSON of a reproduction", found=str(error), hint=_WRITES_JSON) from None
    return KeptReproduction(name, _heading(name, title, scale), told, shown)


_WRITES_JSON = "isorun reproduce PAPER --json > FILE writes one"


def _read_json(path: Path) -> Mapping[str, Any]:
    try:
        told = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read", found=error.strerror or str(error)) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON", found=str(error)[:120], hint=_WRITES_JSON) from None
    needed = ("paper", "title", "scale")
    if not isinstance(told, dict) or not all(isinstance(told.get(key), str) for key in needed):
        found = "other JSON" if isinstance(told, dict) else f"JSON of a {type(told).__name__}"
        raise InputError(f"{path} is not the JSON of a reproduction", found=found, hint=_WRITES_JSON)
    return told


def _view_without_page(told: Mapping[str, Any]) -> View:
    """The view of a file that has no page: columns by their headings alone; the oldest omit omissions."""
    figures, undrawn = _figures_without_page(told)
    listings = (
        Listing("Figures that cannot be drawn from this file", undrawn),
        Listing("Scaled down", tuple(map(str, told["scaled_down"]))),
        Listing("Not to be had here", tuple(map(str, told["not_had"]))),
        Listing("Not attempted", tuple(map(str, told.get("not_attempted", ())))),
    )
    warnings = tuple(
        Condition(str(one["code"]), str(one["message"]), str(one["next"]), tuple(map(str, one.get("groups", ()))))
        for one in told["warnings"]
    )
    tables = tuple(_table_without_page(one) for one in told["tables"])
    warnings = (*warnings, Condition("older-file", _OLDER, f"{_command(told)} --recorded, where the records are"))
    return View(tuple(map(str, told["verdict"])), tables, warnings, figures, listings)


_OLDER: Final = (
    "an isorun of before pages were kept wrote this file: sentences and tables are as it told them, and today's may "
    "judge the same runs by other rules; figures are drawn anew"
)


def _figures_without_page(told: Mapping[str, Any]) -> tuple[tuple[Figure, ...], tuple[str, ...]]:
    """What the paper draws from the numbers, and a sentence on every figure that it cannot."""
    try:
        found = tuple(paper(told["paper"]).figures(told["numbers"]))
        lacks = {item.name: f"the file lacks {item.lacks}" for item in found if isinstance(item, Undrawn)}
        otherwise = "its paper draws it from the runs' records alone"
    except InputError as error:  # a paper that another distribution brings, and that is not installed here
        found, lacks, otherwise = (), {}, error.what
    figures = drawn(found)
    there = {figure.name for figure in figures}
    undrawn = tuple(
        f"{named['name']}: {lacks.get(named['name'], otherwise)} ({_command(told)} draws it). {named['sentence']}"
        for named in told["figures"]
        if named["name"] not in there
    )
    return figures, undrawn


def _command(told: Mapping[str, Any]) -> str:
    only = "".join(f" --only {part}" for part in told.get("only", ()))
    return f"isorun reproduce {told['paper']} --scale {told['scale']}{only}"


def _table_without_page(told: Mapping[str, Any]) -> Table:
    rows = tuple(tuple(map(str, row)) for row in told["rows"])
    texts = [any(cell and not _reads_as_number(cell) for cell in column) for column in zip(*rows, strict=True)]
    columns = zip(told["columns"], texts or [True] * len(told["columns"]), strict=True)
    headed = tuple(_column(str(heading), is_text) for heading, is_text in columns)
    return Table(str(told["name"]), str(told["title"]), headed, rows, tuple(map(str, told["notes"])))


def _column(heading: str, is_text: bool) -> Column:
    """The column of which `Table.to_json` made this heading: "group: title (unit)"."""
    group, _, own = heading.rpartition(": ")
    title, _, unit = own.removesuffix(")").rpartition(" (")
    return Column(title, unit, group, is_text) if title and own.endswith(")") else Column(own, "", group, is_text)


def _reads_as_number(cell: str) -> bool:
    """Whether a cell stands in a column of numbers: it begins with one, or says that there is none."""
    return cell == UNKNOWN or cell.lstrip("+-−<>± (")[:1].isdigit()


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
