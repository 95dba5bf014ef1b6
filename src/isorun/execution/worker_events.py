"""What the worker of a run told: its event files, sorted into the parts of a record as they are read."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from isorun.sources import several_trainings
from isorun.study.records import Note, Numbers, Predictions, Seeded, Series, number_from_json
from isorun.worker.runfolder import (
    LOSS,
    WRITERS,
    WRITERS_BYTES,
    ReadFile,
    entered_files,
    main_file,
    missing_files,
    open_own,
    read_files,
    spelled,
)

__all__ = ["EventLog", "HeldFolder", "Points", "non_finite_notes", "read_run_folder", "told_environments"]

Event = Mapping[str, Any]

_GAPS: Final = {"torn-events", "events-lost"}
_MOST_FILES_TOLD: Final = 5
_LONGEST_REASON: Final = 80
_OF_A_RANK: Final = ("rank", "local_rank", "world_size", "backend", "host")
_MOST_RANKS: Final = 1024
MOST_WATCHED_ROWS: Final = 200
_OF_LABELS: Final = ".labels"


class HeldFolder:
    """The folder of a run, held open from before it starts: the training may remove anything, also to make it anew.

    So is the list of event files, which is made here: what was entered is known also when the list is gone.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder
        self._folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._writers = open_own(folder / WRITERS, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK)
        except BaseException:
            os.close(self._folder)
            raise

    def loss(self) -> str:
        """What is not the one that was held any more, in words; empty where both are."""
        if not _is_still(self._path, self._folder):
            return "the run's folder was removed or replaced while it ran, and what it logged with it"
        if not _is_still(self._path / WRITERS, self._writers):
            return f"{WRITERS} was removed or replaced while the run went on, so that what it logged may be gone"
        return ""

    def entered(self) -> bytes:
        """The event files that were made in it, as far as they were entered here."""
        return os.pread(self._writers, WRITERS_BYTES, 0)

    def close(self) -> None:
        """Let go of both."""
        os.close(self._folder)
        os.close(self._writers)


def _is_still(path: Path, descriptor: int) -> bool:
    """Whether this is what lies there. No other can have its number: it is held open."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except OSError:
        return False


def read_run_folder(folder: Path, held: HeldFolder | None = None) -> EventLog:
    """The events of the process that trained, filled up with those of the run's other processes.

    Whatever stands in the folder, only regular event files are read, and one that is damaged, or is no such file,
    ends in a note after which the run counts as failed. held: since the run began, so that more is noticed.
    """
    logs: dict[str, EventLog] = {}
    files = read_files(folder, lambda name, events: logs.setdefault(name, EventLog()).take_all(events))
    main = main_file(files)
    log = logs.pop(main, None) or EventLog()
    ranks, notes = _ranks_of(log, [log, *logs.values()])
    notes += _logged_by_several(log, logs.values())
    for other in logs.values():
        log.fill_from(other)
    log.effective.update({"ranks": ranks} if ranks else {})
    log.notes += notes
    log.notes += _damages(folder, files, held)
    log.settle_jobs()
    return log


def _ranks_of(main: EventLog, logs: Sequence[EventLog]) -> tuple[dict[str, Any], list[Note]]:
    """The ranks of a run that is several processes, and what is not kept of them; nothing of any other run."""
    known = {log.rank["rank"]: log for log in logs if log.rank}
    if not known:
        return {}, []
    size = max(log.rank["world_size"] for log in known.values())
    ranks = [known[rank].rank for rank in sorted(known)]
    each = [{name: rank[name] for name in ("rank", "local_rank", "host") if name in rank} for rank in ranks]
    told = {"world_size": size, "backend": ranks[0].get("backend"), "each": each[:_MOST_RANKS]}
    notes = []
    if len(known) < size:
        missed = ", ".join(map(str, [rank for rank in range(size) if rank not in known][:_MOST_FILES_TOLD]))
        notes.append(Note("ranks-missing", f"{len(known)} of {size} ranks told of themselves; not those of {missed}"))
    others = [log for rank, log in sorted(known.items()) if log is not main]
    doubled = sorted({name for log in others for name in log.names & main.names})
    if doubled:
        of_all = ", ".join(doubled[:_MOST_FILES_TOLD]) + (", …" if len(doubled) > _MOST_FILES_TOLD else "")
        kept = main.rank.get("rank", 0)
        notes.append(Note("ranks-logged", f"several ranks logged {of_all}; kept are the values of rank {kept}"))
    return told, notes


def _logged_by_several(main: EventLog, others: Iterable[EventLog]) -> list[Note]:
    """That processes which are no ranks logged other values under one name: nothing says which of them is meant."""
    kept = {name: (main, values) for name, values in main.values.items()}
    doubled: dict[str, EventLog] = {}
    for log in others:
        for name, values in log.values.items():
            holder, known = kept.setdefault(name, (log, values))
            if not (holder.rank and log.rank) and known != values:
                doubled[name] = holder
    if not doubled:
        return []
    of_all = ", ".join(sorted(doubled)[:_MOST_FILES_TOLD]) + (", …" if len(doubled) > _MOST_FILES_TOLD else "")
    holders = sorted({str(holder.start.get("pid", "?")) for holder in doubled.values()})
    told = f"several processes logged {of_all}, each its own values; kept are those of process {', '.join(holders)}"
    return [Note("several-processes", told)]


def told_environments(folder: Path) -> list[Mapping[str, Any]]:
    """The effective environment that each process of a run told, in the order of their files."""
    logs: dict[str, EventLog] = {}
    read_files(folder, lambda name, events: logs.setdefault(name, EventLog()).take_all(events))
    return [log.effective for log in logs.values() if log.effective]


def _damages(folder: Path, files: list[ReadFile], held: HeldFolder | None) -> list[Note]:
    damaged = [file for file in files if file.problem or file.unread_bytes]
    losses = [file for file in damaged if file.name.startswith(LOSS)]
    notes = [Note("torn-events", f"{file.name}: {_damage(file)}") for file in damaged if file not in losses]
    if losses:
        why = ", ".join(sorted({_why_lost(folder / file.name) for file in losses}))
        notes.insert(0, Note("events-lost", f"a process could not write what it logged: {why}"))
    if loss := held.loss() if held else "":
        return [*notes[:_MOST_FILES_TOLD], Note("events-lost", loss)]
    if missing := missing_files(folder, held.entered() if held else entered_files(folder)):
        named = ", ".join(missing[:_MOST_FILES_TOLD])
        notes.append(Note("events-lost", f"removed or replaced while the run wrote to it: {named}"))
    return [*notes[:_MOST_FILES_TOLD], *notes[_MOST_FILES_TOLD:][-1:]]


def _why_lost(link: Path) -> str:
    try:
        return str(link.readlink())[:_LONGEST_REASON]
    except OSError:
        return "why is not known"


def _damage(file: ReadFile) -> str:
    problem = file.problem or "the end does not check"
    return f"{problem}; {file.unread_bytes} bytes were left out" if file.unread_bytes else f"{problem} and was left out"


@dataclass
class Points:
    """A series while it grows. A point without a step gets its running number."""

    steps: Numbers = field(default_factory=Numbers)
    seconds: Numbers = field(default_factory=Numbers)
    values: Numbers = field(default_factory=Numbers)

    def add(self, step: float | None, seconds: float, value: float) -> None:
        """Take the next point."""
        self.steps.append(len(self.steps) if step is None else step)
        self.seconds.append(seconds)
        self.values.append(value)

    def series(self) -> Series:
        """The finished series."""
        return Series(self.steps, self.seconds, self.values)


class WatchedRows:
    """The rows of a watcher, thinned: a bounded number however long the training was.

    Of many every second one is kept, then every fourth; always the first that was not finite, and the newest.
    """

    def __init__(self) -> None:
        self._rows: list[tuple[int, dict[str, Any]]] = []
        self._every = 1
        self._seen = 0
        self._went_wrong = -1

    def __bool__(self) -> bool:
        return bool(self._rows)

    @property
    def rows(self) -> tuple[dict[str, Any], ...]:
        """Those that are kept, as they came."""
        return tuple(row for _, row in self._rows)

    def take(self, event: Event) -> None:
        """Take the next row."""
        row = {name: spelled(value) for name, value in event.items() if name not in {"kind", "t"}}
        if self._went_wrong < 0 and row.get("finite") is False:
            self._went_wrong = self._seen
        if self._rows and not self._stays(self._rows[-1][0]):
            self._rows.pop()
        self._rows.append((self._seen, row))
        self._seen += 1
        if len(self._rows) > MOST_WATCHED_ROWS:
            self._every *= 2
            self._rows = [*filter(lambda kept: self._stays(kept[0]), self._rows[:-1]), self._rows[-1]]

    def _stays(self, place: int) -> bool:
        return place % self._every == 0 or place == self._went_wrong


class EventLog:
    """Collects events one by one. What it does not understand, as a newer worker may write it, is noted."""

    def __init__(self) -> None:
        self.results: dict[str, float] = {}
        self.per_class: dict[str, dict[str, float]] = {}
        self.predictions: list[Predictions] = []
        self.digests: dict[str, str] = {}
        self.effective: dict[str, Any] = {}
        self.seeded: list[Seeded] = []
        self.start: Event = {}
        self.ended = False
        self.startup_seconds: float | None = None
        self.notes: list[Note] = []
        self.jobs: dict[str, None] = {}
        self.stands_for: set[str] = set()
        self.rank: Event = {}
        self.printed_by_others: dict[str, int] = {}
        self.printed_more = False
        self._points: dict[str, Points] = {}
        self._watched = WatchedRows()
        self._takers: dict[str, Callable[[Event], None]] = {
            "start": self._take_start,
            "startup": self._take_startup,
            "row": self._take_row,
            "result": self._take_result,
            "predictions": self._take_predictions,
            "watched": self._watched.take,
            "digest": self._take_digest,
            "seeded": self._take_seeded,
            "environment": self._take_environment,
            "rank": self._take_rank,
            "printed": self._take_printed,
            "stands-for": self._take_stands_for,
            "note": self._take_note,
            "end": self._take_end,
        }

    @classmethod
    def of(cls, events: Iterable[Event]) -> EventLog:
        """The log of these events."""
        log = cls()
        log.take_all(events)
        return log

    def take_all(self, events: Iterable[Event]) -> None:
        """Take the next events. Rows come by the million, so the usual one is taken without a detour."""
        rows = self._take_row
        for event in events:
            if event.get("kind") == "row":
                try:
                    rows(event)
                    continue
                except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                    self._leave_out(event, f"{type(error).__name__}: {error}")
            else:
                self.take(event)

    def take(self, event: Event) -> None:
        """Take the next event."""
        taker = self._takers.get(str(event.get("kind")), self._take_unknown)
        try:
            taker(event)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            self._leave_out(event, f"{type(error).__name__}: {error}")

    @property
    def series(self) -> dict[str, Series]:
        """The series by metric, in the order in which the metrics first came."""
        return {name: points.series() for name, points in self._points.items()}

    @property
    def names(self) -> set[str]:
        """The metrics that were logged."""
        return {*self._points, *self.results}

    @property
    def values(self) -> dict[str, bytes]:
        """The bits of the values of each metric that was logged, its final one last: NaN is like NaN."""
        points = {name: item.values.tobytes() for name, item in self._points.items()}
        final = {name: Numbers([value]).tobytes() for name, value in self.results.items()}
        return {name: points.get(name, b"") + final.get(name, b"") for name in self.names}

    @property
    def watched(self) -> tuple[Mapping[str, Any], ...]:
        """What was watched inside the training."""
        return self._watched.rows

    @property
    def has_gaps(self) -> bool:
        """Whether something that the training logged is missing: the disk failed, or the folder was removed."""
        return bool(self.gap)

    @property
    def gap(self) -> str:
        """What is missing, in words; empty where nothing is."""
        return next((note.message for note in self.notes if note.code in _GAPS), "")

    def _take_unknown(self, event: Event) -> None:
        self._leave_out(event, "this kind is not known")

    def _leave_out(self, event: Event, why: str) -> None:
        note = Note("unknown-event", f"events of the kind {event.get('kind')!r} were left out ({why})")
        if note not in self.notes:
            self.notes.append(note)

    def _take_start(self, event: Event) -> None:
        self.start = self.start or event
        if "process" in event:
            self.startup_seconds = float(event["process"])

    def _take_startup(self, event: Event) -> None:
        self.startup_seconds = float(event["process"]) + float(event["imports"])

    def _take_row(self, event: Event) -> None:
        step, seconds = event.get("step"), float(event["t"])
        step = None if step is None else self._finite_step(float(step))
        of_job = self._of_job(event) if "job" in event else ""
        for metric, value in event["values"].items():
            self._add_point(f"{metric}{of_job}" if of_job else metric, step, seconds, value)
        if "per_class" in event:
            for metric, classes in event["per_class"].items():
                for name, value in classes.items():
                    self._add_point(f"{metric}{of_job}[{name}]", step, seconds, value)

    def _of_job(self, event: Event) -> str:
        """What follows the name of a metric that a job logged, as long as nobody knows whether it is the only one."""
        job = str(event.get("job", ""))
        if job:
            self.jobs[job] = None
        return f"@{job}" if job else ""

    def settle_jobs(self) -> None:
        """When all is read: the metrics of the only job have their own names, those of several are told apart."""
        if len(self.jobs) == 1:
            (job,) = self.jobs
            self._points = {name.replace(f"@{job}", "", 1): points for name, points in self._points.items()}
            self.results = {name.removesuffix(f"@{job}"): value for name, value in self.results.items()}
            self.per_class = {name.removesuffix(f"@{job}"): value for name, value in self.per_class.items()}
            self.predictions = [replace(one, name=one.name.replace(f"@{job}", "", 1)) for one in self.predictions]
        elif self.jobs:
            self.notes.append(several_trainings(self.jobs))

    def _finite_step(self, step: float) -> float | None:
        """The step; one that is not finite is none, as the worker says too."""
        if math.isfinite(step):
            return step
        note = Note("bad-step", f"found {step}; a finite number is allowed, so these values have no step")
        self.notes += [] if note in self.notes else [note]
        return None

    def _add_point(self, metric: str, step: float | None, seconds: float, value: float | str) -> None:
        number = value if type(value) is float else number_from_json(value)
        points = self._points.get(metric)
        if points is None:
            points = self._points[metric] = Points()
        points.add(step, seconds, number)

    def _take_result(self, event: Event) -> None:
        of_job = self._of_job(event)
        values = {f"{metric}{of_job}": number_from_json(value) for metric, value in event["values"].items()}
        self.results.update(values)
        for metric, classes in event.get("per_class", {}).items():
            numbers = {name: number_from_json(value) for name, value in classes.items()}
            self.per_class.setdefault(f"{metric}{of_job}", {}).update(numbers)

    def _take_predictions(self, event: Event) -> None:
        ending = _OF_LABELS if event["name"].endswith(_OF_LABELS) else ""
        self.predictions.append(
            Predictions(
                name=f"{event['name'].removesuffix(ending)}{self._of_job(event)}{ending}",
                step=event.get("step"),
                kind=event["pred_kind"],
                dtype=event["dtype"],
                shape=tuple(event["shape"]),
                data=event["data"],
            )
        )

    def _take_digest(self, event: Event) -> None:
        step = event.get("step")
        name, value = event["name"], event["value"]
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError("a digest is text under a name")
        # No step in a short form: 1,000,000 and 1,000,001 are two.
        self.digests[name if step is None else f"{name}@{int(step) if float(step).is_integer() else step}"] = value

    def _take_seeded(self, event: Event) -> None:
        self.seeded.append(_seeded(event))

    def _take_environment(self, event: Event) -> None:
        self.effective.update(event["effective"])

    def _take_printed(self, event: Event) -> None:
        self._add_printed({str(line): int(count) for line, count in event["lines"].items()})
        self.printed_more = self.printed_more or bool(event["cut"])

    def _add_printed(self, lines: Mapping[str, int]) -> None:
        for line, count in lines.items():
            self.printed_by_others[line] = self.printed_by_others.get(line, 0) + count

    def _take_rank(self, event: Event) -> None:
        self.rank = {name: event[name] for name in _OF_A_RANK if name in event}

    def _take_stands_for(self, event: Event) -> None:
        self.stands_for.update(map(str, event["names"]))

    def _take_note(self, event: Event) -> None:
        self.notes.append(Note(event["code"], event["message"]))

    def _take_end(self, _event: Event) -> None:
        self.ended = True

    def fill_from(self, other: EventLog) -> None:
        """Take from another process of the run what this one does not have."""
        self._points = {**other._points, **self._points}
        self.results = {**other.results, **self.results}
        self.per_class = {**other.per_class, **self.per_class}
        self.digests = {**other.digests, **self.digests}
        self.effective = self.effective or other.effective
        if not self.start:
            self.start, self.startup_seconds = other.start, other.startup_seconds
        of_jobs = bool(self.jobs or other.jobs)  # whose names tell them apart
        self.predictions = [*self.predictions, *other.predictions] if of_jobs else self.predictions or other.predictions
        self._watched = self._watched or other._watched
        self.seeded += [seeded for seeded in other.seeded if seeded not in self.seeded]
        told = "weights.final" in self.digests  # a launcher has none, and says so of itself
        self.notes += [note for note in other.notes if not (told and note.code == "no-digest")]
        self.jobs |= other.jobs
        self.stands_for |= other.stands_for
        self._add_printed(other.printed_by_others)
        self.printed_more = self.printed_more or other.printed_more


def _seeded(event: Event) -> Seeded:
    call, value, where = str(event["call"]), str(event["value"]), str(event["where"])
    return Seeded(call, value, where, str(event.get("replaced", "")))


def non_finite_notes(results: Mapping[str, float], series: Mapping[str, Series]) -> list[Note]:
    """A note for each metric with values that are not finite: they are kept as they are."""
    counts: dict[str, list[int]] = {}
    for name, numbers in (*((name, (value,)) for name, value in results.items()), *_values_of(series)):
        told = counts.setdefault(name, [0, 0])
        told[0] += len(numbers) - sum(map(math.isfinite, numbers))
        told[1] += len(numbers)
    return [
        Note("non-finite", f"{name}: {odd} of {count} values are NaN or infinite")
        for name, (odd, count) in counts.items()
        if odd
    ]


def _values_of(series: Mapping[str, Series]) -> Iterable[tuple[str, Sequence[float]]]:
    return ((name, item.values) for name, item in series.items())
