"""What the worker saw: the events of a run folder, sorted into the parts of a record, as they are read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from isorun.study.records import Note, Numbers, Predictions, Seeded, Series, number_from_json
from isorun.worker.runfolder import WRITERS, ReadFile, main_file, missing_files, read_files

__all__ = ["EventLog", "Points", "non_finite_notes", "read_run_folder"]

Event = Mapping[str, Any]

_GAPS: Final = {"torn-events", "events-lost"}
_MOST_FILES_TOLD: Final = 5
_REQUEST: Final = "request.json"


def read_run_folder(folder: Path) -> EventLog:
    """The events of the process that trained, filled up with those of the run's other processes.

    Whatever stands in the folder, only regular event files are read, and one that is damaged, or is no such file,
    ends in a note after which the run counts as failed.
    """
    logs: dict[str, EventLog] = {}
    files = read_files(folder, lambda name, events: logs.setdefault(name, EventLog()).take_all(events))
    main = main_file(files)
    log = logs.pop(main, None) or EventLog()
    for other in logs.values():
        log.fill_from(other)
    log.notes += _damages(folder, files)
    return log


def _damages(folder: Path, files: list[ReadFile]) -> list[Note]:
    if not folder.is_dir():
        return [Note("events-lost", "the run's folder was removed while it ran, and what it logged with it")]
    notes = [
        Note("torn-events", f"{file.name}: {_damage(file)}") for file in files if file.problem or file.unread_bytes
    ]
    if not files and not any((folder / name).exists() for name in (_REQUEST, WRITERS)):
        notes.append(Note("events-lost", "the run's folder was emptied while it ran, and what it logged is gone"))
    if missing := missing_files(folder):
        named = ", ".join(missing[:_MOST_FILES_TOLD])
        notes.append(Note("events-lost", f"removed or replaced while the run wrote to it: {named}"))
    return [*notes[:_MOST_FILES_TOLD], *notes[_MOST_FILES_TOLD:][-1:]]


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
        self._points: dict[str, Points] = {}
        self._takers: dict[str, Callable[[Event], None]] = {
            "start": self._take_start,
            "startup": self._take_startup,
            "row": self._take_row,
            "result": self._take_result,
            "predictions": self._take_predictions,
            "digest": self._take_digest,
            "seeded": self._take_seeded,
            "environment": self._take_environment,
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
        step = None if step is None else float(step)
        for metric, value in event["values"].items():
            self._add_point(metric, step, seconds, value)
        if "per_class" in event:
            for metric, classes in event["per_class"].items():
                for name, value in classes.items():
                    self._add_point(f"{metric}[{name}]", step, seconds, value)

    def _add_point(self, metric: str, step: float | None, seconds: float, value: float | str) -> None:
        number = value if type(value) is float else number_from_json(value)
        points = self._points.get(metric)
        if points is None:
            points = self._points[metric] = Points()
        points.add(step, seconds, number)

    def _take_result(self, event: Event) -> None:
        self.results.update({metric: number_from_json(value) for metric, value in event["values"].items()})
        for metric, classes in event.get("per_class", {}).items():
            numbers = {name: number_from_json(value) for name, value in classes.items()}
            self.per_class.setdefault(metric, {}).update(numbers)

    def _take_predictions(self, event: Event) -> None:
        self.predictions.append(
            Predictions(
                name=event["name"],
                step=event.get("step"),
                kind=event["pred_kind"],
                dtype=event["dtype"],
                shape=tuple(event["shape"]),
                data=event["data"],
            )
        )

    def _take_digest(self, event: Event) -> None:
        step = event.get("step")
        name = event["name"] if step is None else f"{event['name']}@{step:g}"
        self.digests[name] = event["value"]

    def _take_seeded(self, event: Event) -> None:
        self.seeded.append(_seeded(event))

    def _take_environment(self, event: Event) -> None:
        self.effective.update(event["effective"])

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
        self.predictions = self.predictions or other.predictions
        self.seeded += other.seeded
        self.notes += other.notes


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
