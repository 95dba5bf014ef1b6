"""Experiment trackers: what every one promises, and what a run of one is.

A place is written `NAME:WHERE`: `mlflow:sqlite:///mlflow.db`, `wandb:./wandb`, `tensorboard:runs`. Reading needs no
tracker installed where its files can be read safely; nothing that a file holds is executed or unpickled.
"""

from __future__ import annotations

import abc
import hashlib
import importlib
import json
import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final

from isorun import plugins
from isorun.errors import InputError, PluginError, harmless, known_names, without_passwords
from isorun.study.records import Numbers, RunState

if TYPE_CHECKING:
    Times = array[int]
else:
    Times = array

__all__ = [
    "MICROSECONDS",
    "OWN",
    "AbstractTracker",
    "Chosen",
    "GrowingSeries",
    "TrackedRun",
    "TrackedSeries",
    "WrittenRuns",
    "left_out_times",
    "number_of",
    "opened_tracker",
    "plain_json",
    "shown_where",
    "unix_microseconds",
]

MICROSECONDS: Final = 1_000_000
OWN: Final = {
    "mlflow": ("mlflow", "Mlflow"),
    "wandb": ("wandb", "Wandb"),
    "wandb-offline": ("wandb", "Wandb"),
    "tensorboard": ("tensorboard", "TensorBoard"),
    "optuna": ("optuna", "Optuna"),
    "trackio": ("trackio", "Trackio"),
    "aim": ("aim", "Aim"),
    "csv": ("tables", "CsvTables"),
    "parquet": ("tables", "ParquetTables"),
}
"""By name, the file in this folder and the class in it; others come by the entry-point group `isorun.trackers`."""


@dataclass(frozen=True, slots=True)
class TrackedSeries:
    """One metric over a run, as it was logged: equally long steps, microseconds since 1970, and values.

    times: empty where the tracker does not tell them.
    """

    steps: Numbers
    times: Times
    values: Numbers


class GrowingSeries:
    """A series that is being read, a point at a time."""

    __slots__ = ("steps", "times", "values")

    def __init__(self) -> None:
        self.steps, self.values = Numbers(), Numbers()
        self.times: Times = array("q")

    def add(self, step: float, microseconds: int | None, value: float) -> None:
        """The next point."""
        self.steps.append(step)
        self.values.append(value)
        if microseconds is not None:
            self.times.append(microseconds)

    def series(self, *, timed: bool = True) -> TrackedSeries:
        """All points; times only where every point has one."""
        times: Times = self.times if timed and len(self.times) == len(self.steps) else array("q")
        return TrackedSeries(self.steps, times, self.values)


@dataclass(frozen=True, slots=True)
class TrackedRun:
    """One run as a tracker keeps it.

    key: what tells it from every other run of this tracker, wherever its files lie. experiment: what it was filed under
    (experiment, project, study). state: how it ended; None while it goes on, or nobody said that it ended. started,
    ended: microseconds since 1970; None where they are not known. params: as JSON. results: final values that the
    tracker was given as such, beside the last ones of the series. directions: which way metrics are better, where the
    tracker says so. commit: of the code, where it is known. left_out: what was logged and a record has no place for
    (images, artifacts), each named. artifacts_at: where the tracker keeps files of the run, without passwords; it is
    no part of its content.
    """

    key: tuple[str, ...]
    experiment: str
    name: str = ""
    state: RunState | None = RunState.FINISHED
    reason: str = ""
    started: int | None = None
    ended: int | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    series: Mapping[str, TrackedSeries] = field(default_factory=dict)
    results: Mapping[str, float] = field(default_factory=dict)
    directions: Mapping[str, str] = field(default_factory=dict)
    host: str = ""
    commit: str = ""
    left_out: tuple[str, ...] = ()
    artifacts_at: str = ""

    def content(self) -> str:
        """A digest of all of it: another one says that the run grew, or was changed, since it was read."""
        told = [self.experiment, self.name, str(self.state), self.reason, self.started, self.ended, self.host]
        told += [self.commit] if self.commit else []
        kept = [dict(self.params), dict(self.tags), {name: repr(value) for name, value in self.results.items()}]
        digest = hashlib.sha256(json.dumps([*told, *kept, self.left_out], sort_keys=True, default=repr).encode())
        for name in sorted(self.series):
            series = self.series[name]
            digest.update(name.encode("utf-8", "surrogatepass"))
            for column in (series.steps, series.times, series.values):
                digest.update(column.tobytes())
        return digest.hexdigest()[:16]

    @property
    def points(self) -> int:
        """How many values its series have."""
        return sum(len(series.values) for series in self.series.values())


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which runs are asked for.

    experiments: by name or number; all where none is named. python: the interpreter that has the tracker's own
    package, for those that can only be read or written by it; this one where none is named.
    metrics, params: of a table whose columns do not say what they are. deleted: those, too, that were deleted in the
    tracker and are still there.
    """

    experiments: tuple[str, ...] = ()
    python: str = ""
    metrics: tuple[str, ...] = ()
    params: tuple[str, ...] = ()
    deleted: bool = False

    def only(self, known: Mapping[str, str], what: str, place: str) -> set[str]:
        """The chosen among what is there, by number and name; InputError names what there is."""
        if not self.experiments:
            return set(known)
        chosen = set()
        for asked in self.experiments:
            found = [number for number, name in known.items() if asked in (number, name)]
            if not found:
                there = [name if name == number else f"{name} ({number})" for number, name in known.items()]
                raise InputError(f"there is no {what} {asked!r} in {place}", allowed=known_names(asked, there))
            chosen.update(found)
        return chosen


@dataclass(frozen=True, slots=True)
class WrittenRuns:
    """What an export left.

    runs, points: that were written. left_out: what the tracker has no place for, by what it is and in how many runs.
    there: runs that the tracker had already, which were not written again. beside: runs that were written though the
    tracker has one of the same key, since that one is half written or says something else.
    """

    place: str
    runs: int
    points: int
    left_out: Mapping[str, int] = field(default_factory=dict)
    next_step: str = ""
    there: int = 0
    beside: int = 0


class AbstractTracker(abc.ABC):
    """Reads the runs that one tracker kept, and, where `writes`, writes runs as that tracker does.

    An object is made with what stands behind its name in a place (`mlflow:WHERE`).

    Promises, which `isorun.testing.tracker_contract` checks:
    - Reading changes nothing, and executes and unpickles nothing, whatever a file holds. What is damaged is an
      IsorunError that names the file, or, where only the end of a run's file is torn, a run whose `left_out` says so.
    - Every value, parameter, tag and time is given as it was logged, times to the microsecond; NaN and infinities too.
      What has no place in a run is named in `left_out`, and what is given as no run is counted (`pass_over`).
    - A run has the same key wherever its files lie and whatever else is there; no two runs have the same one.
    - The same files give the same runs, in the same order; a place where there is nothing to read is an IsorunError
      that says what was looked for.
    - What `write` wrote, `read` gives back: values, parameters, tags, names, states and times; and nothing that is
      there already is overwritten. A run that is there already is not written a second time: it is counted (`there`),
      or an IsorunError says that the place is taken.
    """

    name: ClassVar[str]
    where_hint: ClassVar[str]
    """How a place of this tracker is written, for messages."""
    writes: ClassVar[bool] = False
    keeps_deleted: ClassVar[bool] = False
    """Whether runs that were deleted there can still be read, by who asks for them."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.notes: list[str] = []
        """What is to be told of the place as a whole, once it was read: what it does not tell of its runs, say."""
        self.not_taken: dict[str, int] = {}
        """What is there and was not given as a run, once it was read: by what it is, how many."""

    def pass_over(self, what: str, count: int, why: str = "left out") -> None:
        """Note that so many of something were not given as runs."""
        if count:
            self.not_taken[what] = self.not_taken.get(what, 0) + count
            self.notes.append(f"{what}: {count:,} {why}")

    @property
    def place(self) -> str:
        """Where it reads or writes, as it may be shown and kept: without passwords."""
        return f"{self.name}:{shown_where(self.where)}"

    @abc.abstractmethod
    def read(self, chosen: Chosen) -> Iterator[TrackedRun]:
        """The runs there, one after the other."""

    def write(self, runs: Iterable[TrackedRun], chosen: Chosen) -> WrittenRuns:  # noqa: ARG002 - of those that write
        """Write the runs where the tracker finds them."""
        raise InputError(
            f"isorun does not write what {self.name} keeps",
            allowed="mlflow, wandb-offline, parquet, csv",
            hint="isorun export mlflow NAME",
        )


def shown_where(where: str) -> str:
    """The place without passwords, on one line."""
    return harmless(without_passwords(where))


def opened_tracker(place: str) -> AbstractTracker:
    """The tracker that a place names; PluginError lists the known ones."""
    name, colon, where = place.partition(":")
    if not colon or not where:
        raise InputError(
            f"{shown_where(place)!r} names no tracker and place",
            allowed="mlflow:sqlite:///mlflow.db, wandb:./wandb, tensorboard:runs, optuna:sqlite:///s.db, "
            "trackio:PROJECT, aim:FOLDER, csv:FILE, parquet:FILE",
            hint=_likely(place) or "write the tracker's name, a colon, and where its files are",
        )
    return _class_of(name)(where)


def _class_of(name: str) -> type[AbstractTracker]:
    if name in OWN:
        module, kind = OWN[name]
        found: Any = getattr(importlib.import_module(f"isorun.share.trackers.{module}"), kind)
    else:
        found = plugins.load(plugins.TRACKERS, name, own=OWN)
    if not (isinstance(found, type) and issubclass(found, AbstractTracker)):
        raise PluginError(
            f"the tracker {name!r} cannot be used",
            found=f"{found!r}",
            allowed="a class derived from isorun.share.trackers.AbstractTracker",
        )
    return found


def _likely(place: str) -> str:
    """The command that was most likely meant."""
    known = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".wandb": "wandb", ".db": "mlflow"}
    end = next((end for end in known if place.endswith(end)), "")
    folder = place.rstrip("/").rpartition("/")[2]
    named = {"mlruns": "mlflow", "wandb": "wandb", "runs": "tensorboard", "lightning_logs": "tensorboard"}
    name = known.get(end) or named.get(folder, "")
    return f"isorun import {name}:{shown_where(place)}" if name else ""


def unix_microseconds(moment: datetime) -> int:
    """The moment as microseconds since 1970, exactly; one without a zone is in UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = aware - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * MICROSECONDS + since.microseconds


_WORDS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def number_of(value: Any) -> float | None:
    """A number of JSON, or the word for one that JSON has no sign for; None for all else, truth values included."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        try:
            return float(value)
        except OverflowError:
            return None
    return _WORDS.get(value) if isinstance(value, str) else None


def left_out_times(what: str, count: int) -> str:
    """What was left out of a run, and how often."""
    return what if count == 1 else f"{what} ({count:,} times)"


def plain_json(value: Any, deepest: int = 20) -> Any:
    """The value as JSON that every reader takes: numbers that JSON has no sign for become words."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if deepest and isinstance(value, Mapping):
        return {str(name): plain_json(item, deepest - 1) for name, item in value.items()}
    if deepest and isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [plain_json(item, deepest - 1) for item in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)
