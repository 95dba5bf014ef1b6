"""What the worker saw: the events of a run folder, sorted into the parts of a record."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from isorun.study.records import Note, Predictions, Seeded, Series, number_from_json

__all__ = ["EventLog", "Points"]

Event = Mapping[str, Any]

_GAPS: Final = {"torn-events", "events-lost"}


@dataclass
class Points:
    """A series while it grows. A point without a step gets its running number."""

    steps: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def add(self, step: float | None, seconds: float, value: float) -> None:
        """Take the next point."""
        self.steps.append(float(len(self.steps)) if step is None else float(step))
        self.seconds.append(seconds)
        self.values.append(value)

    def series(self) -> Series:
        """The finished series."""
        return Series(tuple(self.steps), tuple(self.seconds), tuple(self.values))


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
        self.notes: list[Note] = []
        self._points: dict[str, Points] = {}
        self._takers: dict[str, Callable[[Event], None]] = {
            "start": self._take_start,
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
        for event in events:
            log.take(event)
        return log

    def take(self, event: Event) -> None:
        """Take the next event."""
        taker = self._takers.get(str(event.get("kind")), self._take_unknown)
        try:
            taker(event)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            self._leave_out(event, f"{type(error).__name__}: {error}")

    @property
    def series(self) -> dict[str, Series]:
        """The series by metric, in the order in which the metrics first came."""
        return {name: points.series() for name, points in self._points.items()}

    @property
    def has_gaps(self) -> bool:
        """Whether something that the training logged is missing: the disk failed, or the folder was removed."""
        return any(note.code in _GAPS for note in self.notes)

    def _take_unknown(self, event: Event) -> None:
        self._leave_out(event, "this kind is not known")

    def _leave_out(self, event: Event, why: str) -> None:
        note = Note("unknown-event", f"events of the kind {event.get('kind')!r} were left out ({why})")
        if note not in self.notes:
            self.notes.append(note)

    def _take_start(self, event: Event) -> None:
        self.start = self.start or event

    def _take_row(self, event: Event) -> None:
        step, seconds = event.get("step"), float(event["t"])
        for metric, value in event["values"].items():
            self._add_point(metric, step, seconds, value)
        for metric, classes in event.get("per_class", {}).items():
            for name, value in classes.items():
                self._add_point(f"{metric}[{name}]", step, seconds, value)

    def _add_point(self, metric: str, step: float | None, seconds: float, value: float | str) -> None:
        self._points.setdefault(metric, Points()).add(step, seconds, number_from_json(value))

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
        self.start = self.start or other.start
        self.predictions = self.predictions or other.predictions
        self.seeded += other.seeded
        self.notes += other.notes


def _seeded(event: Event) -> Seeded:
    call, value, where = str(event["call"]), str(event["value"]), str(event["where"])
    return Seeded(call, value, where, str(event.get("replaced", "")))


def non_finite_notes(results: Mapping[str, float], series: Mapping[str, Series]) -> list[Note]:
    """A note for each metric with values that are not finite: they are kept as they are."""
    values = {name: [value] for name, value in results.items()}
    for name, item in series.items():
        values.setdefault(name, []).extend(item.values)
    counts = {name: sum(not math.isfinite(value) for value in found) for name, found in values.items()}
    return [
        Note("non-finite", f"{name}: {count} of {len(values[name])} values are NaN or infinite")
        for name, count in counts.items()
        if count
    ]
