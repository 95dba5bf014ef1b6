"""What a run said: the events of its worker, and its output.

The events of the run folder are sorted into the parts of a record, as they are read.

The output is kept in a bounded log without secrets, and passed on line by line, in bounded memory. A training may print
hundreds of megabytes, bytes that are no text, or one line that never ends. What is kept is the start and the end; lines
are cut at a length no metric needs. Metrics are read from the lines as they were printed, and secrets are masked only
in what is kept: a word that is also a password must not take a metric away.
"""

from __future__ import annotations

import base64
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from isorun.sources import several_trainings
from isorun.study.records import Note, Numbers, Predictions, Seeded, Series, number_from_json
from isorun.worker.redaction import (
    REDACTED,
    is_ordinary,
    secret_values,
    withheld_values,
    without_colours,
    without_secrets,
)
from isorun.worker.runfolder import (
    LOSS,
    WRITERS,
    WRITERS_BYTES,
    ReadFile,
    RowTail,
    entered_files,
    main_file,
    missing_files,
    open_own,
    read_files,
    spelled,
    write_own,
)

__all__ = [
    "BoundedLog",
    "EventLog",
    "HeldFolder",
    "LineSplitter",
    "LiveRows",
    "Output",
    "Points",
    "Secrets",
    "last_row",
    "non_finite_notes",
    "read_run_folder",
    "readable_tail",
]

Event = Mapping[str, Any]

_GAPS: Final = {"torn-events", "events-lost"}
_MOST_FILES_TOLD: Final = 5
_LONGEST_REASON: Final = 80
_OF_A_RANK: Final = ("rank", "local_rank", "world_size", "backend", "host")
_MOST_RANKS: Final = 1024
LAST_PRINTED: Final = "printed.json"
MOST_WATCHED_ROWS: Final = 200
_MOST_LOOKS_APART: Final = 5


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
        name, value = event["name"], event["value"]
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError("a digest is text under a name")
        self.digests[name if step is None else f"{name}@{step:g}"] = value

    def _take_seeded(self, event: Event) -> None:
        self.seeded.append(_seeded(event))

    def _take_environment(self, event: Event) -> None:
        self.effective.update(event["effective"])

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
        self.predictions = self.predictions or other.predictions
        self._watched = self._watched or other._watched
        self.seeded += [seeded for seeded in other.seeded if seeded not in self.seeded]
        told = "weights.final" in self.digests  # a launcher has none, and says so of itself
        self.notes += [note for note in other.notes if not (told and note.code == "no-digest")]
        self.jobs |= other.jobs
        self.stands_for |= other.stands_for


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


HEAD_BYTES: Final = 1_000_000
TAIL_BYTES: Final = 4_000_000
LOG_TAIL_BYTES: Final = 8_192
LINE_BYTES: Final = 16_384

_LINE_ENDS: Final = re.compile(rb"[\r\n]+")
_DIGIT: Final = re.compile(rb"\d")
# A shorter value is as likely a word that the training prints for other reasons.
_SHORTEST_SECRET: Final = 6
# What may hold a secret is looked at whole: a line, or a block of a private key, up to this length.
_LONGEST_PIECE: Final = 65_536
_HELD_BACK: Final = 4_096
_MOST_WAITING_BYTES: Final = 65_536

LineConsumer = Callable[[str, float], None]


class Secrets:
    """What may not be kept of a run: given values wherever they stand, and all that has the shape of a secret."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        lines = {line for value in values for line in (value, *value.splitlines())}
        known = {value for value in lines if len(value) >= _SHORTEST_SECRET and not is_ordinary(value)}
        known |= {form for value in known for form in _escaped_forms(value)}
        # The longest first: one secret may be the start of another.
        ordered = sorted(known, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, ordered))) if ordered else None
        self._known_bytes = (
            re.compile(b"|".join(re.escape(os.fsencode(value)) for value in ordered)) if ordered else None
        )

    @classmethod
    def of(cls, command: Sequence[str], environ: Mapping[str, str]) -> Secrets:
        """Those that a command was given as arguments or variables."""
        return cls(secret_values(environ) | withheld_values(command, environ))

    def before_known(self, data: bytes, place: int) -> int:
        """The place, or the start of a given value that stands across it: half of one would not be masked."""
        found = self._known_bytes.finditer(data) if self._known_bytes else ()
        return next((match.start() for match in found if match.start() < place < match.end()), place)

    def masked(self, text: str) -> str:
        """The text without them."""
        if self._known is not None:
            if "\x1b[" in text and self._known.search(plain := without_colours(text)):
                text = plain
            text = self._known.sub(REDACTED, text)
        return without_secrets(text)

    def masked_bytes(self, data: bytes) -> bytes:
        """The same for bytes, which need not be text."""
        text = data.decode("utf-8", "surrogateescape")
        masked = self.masked(text)
        return data if masked == text else masked.encode("utf-8", "surrogateescape")


def _escaped_forms(value: str) -> tuple[str, ...]:
    """How programs print a value: in an address, as JSON, in base64 by itself."""
    as_json = (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])
    # The last characters depend on what follows, where something does.
    in_base64 = base64.b64encode(os.fsencode(value)).decode().rstrip("=")
    return (quote(value, safe=""), quote(value), *as_json, in_base64)


class BoundedLog:
    """A log file with the first megabyte and the last four; a line in it says where and how much was cut.

    The start is written as it comes, line by line; the end is held in memory and written by `close`. With `secrets`
    these are masked in both, and a line that was cut in two is left out: half a secret has no shape.
    """

    def __init__(
        self,
        path: Path,
        head_bytes: int = HEAD_BYTES,
        tail_bytes: int = TAIL_BYTES,
        *,
        secrets: Secrets | None = None,
    ) -> None:
        self._file = os.fdopen(open_own(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb", buffering=0)
        self._secrets = secrets
        self._head_room = head_bytes
        self._open_line = b""
        self._end_of_head = b""
        self._tail = bytearray()
        self._tail_bytes = tail_bytes
        self.cut_bytes = 0
        self.failure = ""

    def write(self, data: bytes) -> None:
        """Take the next bytes."""
        head, rest = data[: self._head_room], data[self._head_room :]
        if head:
            self._head_room -= len(head)
            self._open_line = self._write_whole_lines(self._open_line + head)
        self._tail += rest
        if len(self._tail) > 2 * self._tail_bytes:
            self._cut_tail()

    def _write_whole_lines(self, data: bytes) -> bytes:
        """Write what can be judged now; what is left is the start of something whose end must be known."""
        end = len(data) if self._secrets is None else _end_of_whole_lines(data, self._secrets)
        if end:
            self._keep(data[:end])
        return data[end:]

    def _keep(self, data: bytes) -> None:
        masked = self._masked(data)
        self._end_of_head = (self._end_of_head + masked)[-LOG_TAIL_BYTES:]
        self._to_file(masked)

    def _masked(self, data: bytes) -> bytes:
        return data if self._secrets is None else self._secrets.masked_bytes(data)

    def _cut_tail(self) -> None:
        surplus = max(len(self._tail) - self._tail_bytes, 0)
        del self._tail[:surplus]
        self.cut_bytes += surplus

    def _to_file(self, data: bytes) -> None:
        """A log that cannot be written (disk full) must not end the run it describes: the failure is kept instead."""
        try:
            self._file.write(data)
        except OSError as error:
            self.failure = self.failure or str(error)

    def end(self) -> bytes:
        """The last bytes, enough for a log tail."""
        if self._file.closed:
            return self._end_of_head
        if self.cut_bytes or len(self._tail) > 2 * LOG_TAIL_BYTES:
            start = self._tail[-2 * LOG_TAIL_BYTES :]
            return self._masked(bytes(start if self._secrets is None else _from_a_line_on(start)))[-LOG_TAIL_BYTES:]
        return (self._end_of_head + self._masked(self._open_line + self._tail))[-LOG_TAIL_BYTES:]

    def close(self) -> None:
        """Write the end, and close the file."""
        self._cut_tail()
        if self.cut_bytes and self._secrets is not None:
            whole = _from_a_line_on(self._tail)
            self.cut_bytes += len(self._open_line) + len(self._tail) - len(whole)
            self._open_line, self._tail = b"", bytearray(whole)
        if self.cut_bytes:
            self._to_file(f"\n[isorun: {self.cut_bytes} bytes were cut here]\n".encode())
            self._end_of_head = b""
        self._keep(self._open_line + self._tail)
        self._open_line, self._tail = b"", bytearray()
        self._file.close()


def _end_of_whole_lines(data: bytes, secrets: Secrets) -> int:
    """Up to where the bytes can be judged: their last line end, or the start of a private key that has no end yet.

    Of a line that is too long all is judged but its end, which waits for what may be the rest of a secret.
    """
    end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
    if len(data) > _LONGEST_PIECE:
        spaced = max(end, data.rfind(b" ", 0, len(data) - _HELD_BACK) + 1)
        return secrets.before_known(data, spaced or len(data) - _HELD_BACK)
    begin = data.rfind(b"-----BEGIN", 0, end)
    is_open = begin >= 0 and b"PRIVATE KEY" in data[begin : begin + 80] and data.find(b"-----END", begin, end) < 0
    return begin if is_open else end


def _from_a_line_on(data: bytearray) -> bytes:
    """The bytes from the first line that is whole; of one endless line, without what may be half a secret."""
    end = _LINE_ENDS.search(data, 0, _LONGEST_PIECE)
    return bytes(data[end.end() if end else min(_HELD_BACK, len(data) // 2) :])


class LineSplitter:
    """Passes on each line, ended by a newline or a carriage return, with the time it was read.

    A line longer than `line_bytes` is passed on cut, once; `cut_lines` counts them. torn_line: what a run that did
    not end well left in the middle of a line, which is not passed on; empty where it has no number.
    """

    def __init__(self, consume: LineConsumer, line_bytes: int = LINE_BYTES) -> None:
        self._consume = consume
        self._line_bytes = line_bytes
        self._pending = b""
        self.cut_lines = 0
        self.torn_line = ""

    def write(self, data: bytes, seconds: float) -> None:
        """Take the next bytes, read `seconds` after the run's start."""
        lines = _LINE_ENDS.split(data) if b"\r" in data else data.split(b"\n")
        self._extend(lines[0])
        if len(lines) == 1:
            return
        self._pass_on(self._pending, seconds)
        consume, most = self._consume, self._line_bytes
        for line in lines[1:-1]:
            if 0 < len(line) <= most:
                consume(line.decode("utf-8", "replace"), seconds)
            else:
                self._pass_on(line, seconds)
        self._pending = b""
        self._extend(lines[-1])

    def _extend(self, piece: bytes) -> None:
        """Keep one byte more than a line may have, as the sign that it was longer."""
        self._pending += piece[: self._line_bytes + 1 - len(self._pending)]

    def _pass_on(self, line: bytes, seconds: float) -> None:
        if not line:
            return
        if len(line) > self._line_bytes:
            self.cut_lines += 1
            line = line[: self._line_bytes]
        self._consume(line.decode("utf-8", "replace"), seconds)

    def close(self, seconds: float, *, whole: bool = True) -> None:
        """Pass on a last line that had no end, unless it may be half of one: the run did not end well by itself."""
        if whole:
            self._pass_on(self._pending, seconds)
        elif _DIGIT.search(self._pending):
            self.torn_line = self._pending.decode("utf-8", "replace")
        self._pending = b""


class Output:
    """Takes what a run prints: into the log, and line by line as it was printed.

    What was read waits until it is much, or `take_in` is called, about once a second: to begin with a line takes
    several times as long as to go on with the next, since the training has had the processor's caches meanwhile.
    """

    def __init__(self, log: BoundedLog, lines: LineSplitter) -> None:
        self._log = log
        self._lines = lines
        self._waiting: list[tuple[bytes, float]] = []
        self._waiting_bytes = 0

    def write(self, data: bytes, seconds: float) -> None:
        """Take the next bytes, read `seconds` after the run's start."""
        self._waiting.append((data, seconds))
        self._waiting_bytes += len(data)
        if self._waiting_bytes >= _MOST_WAITING_BYTES:
            self.take_in()

    def take_in(self) -> None:
        """Pass on all that waits; each line has the time at which it was read."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if waiting:
            self._log.write(b"".join(data for data, _ in waiting))
        for data, seconds in waiting:
            self._lines.write(data, seconds)

    def close(self, seconds: float, *, whole: bool = True) -> None:
        """Pass on what waits, and a last line that has no end, if the run is whole. The log stays open."""
        self.take_in()
        self._lines.close(seconds, whole=whole)


class LiveRows:
    """What a run that is going on has logged or, where it logs nothing, printed.

    What it printed last is also left in its folder, from the second look on: whoever asks how far the run is has no
    other way to see it, and a run that ends before is not worth a file. The longer it goes on, the more looks pass
    until it is left anew, up to five.
    """

    def __init__(self, folder: Path, printed: Callable[[], Mapping[str, Any]], secrets: Secrets) -> None:
        self._folder = folder
        self._tail = RowTail(folder)
        self._printed = printed
        self._secrets = secrets
        self._logs = False
        self._looks = 0
        self._leave_at_look = 2
        self._to_leave: Event = {}

    def rows(self) -> tuple[Event, ...]:
        """What came since the last call, oldest first."""
        rows: tuple[Event, ...] = tuple(self._tail.rows())
        self._looks += 1
        self._logs = self._logs or bool(rows)
        if self._logs:
            return rows
        if row := self._printed():
            named = {self._secrets.masked(name): spelled(value) for name, value in row["values"].items()}
            self._to_leave = {"kind": "row", **row, "values": named}
            rows = (self._to_leave,)
        if self._to_leave and self._looks >= self._leave_at_look:
            self._leave()
        return rows

    def _leave(self) -> None:
        """Whole or not at all; a disk that is full takes nothing away but this."""
        row, self._to_leave = self._to_leave, {}
        self._leave_at_look = self._looks + min(max(self._looks // 4, 1), _MOST_LOOKS_APART)
        path = self._folder / LAST_PRINTED
        with suppress(OSError):
            # A link or a pipe that the training put there is neither followed nor waited for.
            write_own(path.with_suffix(".new"), json.dumps(row) + "\n", os.O_NOFOLLOW | os.O_NONBLOCK)
            path.with_suffix(".new").replace(path)

    def close(self) -> None:
        """Let go of the files."""
        self._tail.close()


def last_row(folder: Path) -> Mapping[str, Any]:
    """What the run of this folder logged or, where it logs nothing, printed last; empty where nothing can be read."""
    tail = RowTail(folder)
    rows = tail.rows()
    tail.close()
    if rows:
        return rows[-1]
    try:
        row = json.loads((folder / LAST_PRINTED).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return row if isinstance(row, dict) and isinstance(row.get("values"), dict) else {}


def readable_tail(data: bytes) -> str:
    """The end of an output as a terminal would show it: of a line rewritten by carriage returns, the last version."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\0", "\ufffd")
    return "\n".join(_last_version(line) for line in text.split("\n")).strip("\n")


def _last_version(line: str) -> str:
    return next((part for part in reversed(line.split("\r")) if part), "")
