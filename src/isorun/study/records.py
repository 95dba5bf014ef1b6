"""Records: everything one run left behind, as frozen values that travel as JSON.

A failed run is a record too. Numbers that JSON cannot hold (NaN, infinities) travel as the strings that `float`
reads back, so that a diverged training is recorded as what it was.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from isorun.study.cells import Cell

__all__ = [
    "GLOBAL_SEED_CALLS",
    "Note",
    "Predictions",
    "RunRecord",
    "RunState",
    "Seeded",
    "Series",
    "number_from_json",
    "number_to_json",
]

# Calls that seed a generator of the whole process. Functions of Keras, Lightning and Hugging Face that do so make these
# calls, and are told as them.
GLOBAL_SEED_CALLS: Final = frozenset(
    {
        "random.seed",
        "numpy.random.seed",
        "torch.manual_seed",
        "torch.cuda.manual_seed",
        "torch.cuda.manual_seed_all",
        "tensorflow.random.set_seed",
    }
)


class RunState(enum.StrEnum):
    """How a run ended."""

    FINISHED = "finished"
    FAILED = "failed"
    TIMED_OUT = "timed-out"
    INTERRUPTED = "interrupted"


def number_to_json(value: float) -> float | str:
    """A number, or the word for one that JSON has no sign for."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def number_from_json(value: float | str) -> float:
    """The number that `number_to_json` wrote."""
    return float(value)


@dataclass(frozen=True, slots=True)
class Series:
    """One metric over a run: equally long steps, seconds since the run's start, and values.

    steps are epochs where the training logged epochs, else the steps it logged, else 0, 1, 2, …
    """

    steps: tuple[float, ...]
    seconds: tuple[float, ...]
    values: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "steps": list(self.steps),
            "seconds": list(self.seconds),
            "values": [number_to_json(value) for value in self.values],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Series:
        """The series that `to_json` wrote."""
        return cls(
            steps=tuple(data["steps"]),
            seconds=tuple(data["seconds"]),
            values=tuple(number_from_json(value) for value in data["values"]),
        )


@dataclass(frozen=True, slots=True)
class Predictions:
    """Per-example predictions, packed: little-endian numbers of `dtype`, zlib-compressed, base64 in JSON.

    name: which split or head ("test"); step: the epoch they belong to, None for the end of the run.
    kind: "class" (one integer an example) or "score" (one number an example or class).
    """

    name: str
    step: float | None
    kind: str
    dtype: str
    shape: tuple[int, ...]
    data: str

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "name": self.name,
            "step": self.step,
            "kind": self.kind,
            "dtype": self.dtype,
            "shape": list(self.shape),
            "data": self.data,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Predictions:
        """The predictions that `to_json` wrote."""
        return cls(data["name"], data["step"], data["kind"], data["dtype"], tuple(data["shape"]), data["data"])


@dataclass(frozen=True, slots=True)
class Seeded:
    """A seed that the training fixed by itself: which call, which value, where in the code.

    call: a call that was seen ("torch.manual_seed"), or with " (in source)" behind it one that was only read in the
    training's source and may never have been made. replaced: what the generator was given instead, where the seed was
    taken over; empty where the training's own value took effect.
    """

    call: str
    value: str
    where: str
    replaced: str = ""

    @property
    def in_source(self) -> bool:
        """Whether the call was only read in the source; nothing says that it was made."""
        return self.call.endswith(" (in source)")

    @property
    def sets_global(self) -> bool:
        """Whether a generator that the whole process shares was seen to be seeded, by this call or by what made it."""
        return self.call in GLOBAL_SEED_CALLS

    def to_json(self) -> list[str]:
        """Plain JSON."""
        given = [self.call, self.value, self.where]
        return [*given, self.replaced] if self.replaced else given


@dataclass(frozen=True, slots=True)
class Note:
    """Something a reader of the record should know: a stable code and one sentence."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Everything one run left.

    results: final values by metric. per_class: final values by metric, then class; per-class values that were logged
    at every epoch are series named "metric[class]". digests: name ("weights.initial", "weights.final", …) to hex.
    environment: {"requested": …, "effective": …}. code: git commit, dirty-diff hash, hash of the script.
    sources: where each metric came from ("log", "stdout: <pattern>", "file: …", "tensorboard: …").
    """

    cell: Cell
    attempt: int
    state: RunState
    exit_code: int | None
    signal: str
    reason: str
    launch: str
    seed_used: int | None
    started_at: str
    wall_seconds: float
    cpu_seconds: float
    peak_memory_bytes: int
    results: Mapping[str, float] = field(default_factory=dict)
    per_class: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    series: Mapping[str, Series] = field(default_factory=dict)
    predictions: tuple[Predictions, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    code: Mapping[str, Any] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    seeded: tuple[Seeded, ...] = ()
    notes: tuple[Note, ...] = ()
    log_tail: str = ""
    startup_seconds: float | None = None
    devices: tuple[str, ...] = ()
    where: Mapping[str, str] = field(default_factory=dict)

    @property
    def run_id(self) -> str:
        """The id of this execution: the cell's id and the attempt."""
        return f"{self.cell.id}-{self.attempt}"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, the same for the same record."""
        return {
            "record": 1,
            "cell": self.cell.to_json(),
            "attempt": self.attempt,
            "state": str(self.state),
            "exit_code": self.exit_code,
            "signal": self.signal,
            "reason": self.reason,
            "launch": self.launch,
            "seed_used": self.seed_used,
            "started_at": self.started_at,
            "wall_seconds": self.wall_seconds,
            "cpu_seconds": self.cpu_seconds,
            "peak_memory_bytes": self.peak_memory_bytes,
            "results": _numbers_to_json(self.results),
            "per_class": {metric: _numbers_to_json(values) for metric, values in self.per_class.items()},
            "series": {metric: series.to_json() for metric, series in self.series.items()},
            "predictions": [item.to_json() for item in self.predictions],
            "digests": dict(self.digests),
            "environment": dict(self.environment),
            "code": dict(self.code),
            "sources": dict(self.sources),
            "seeded": [item.to_json() for item in self.seeded],
            "notes": [[note.code, note.message] for note in self.notes],
            "log_tail": self.log_tail,
            **({} if self.startup_seconds is None else {"startup_seconds": self.startup_seconds}),
            **({"devices": list(self.devices)} if self.devices else {}),
            **({"where": dict(self.where)} if self.where else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunRecord:
        """The record that `to_json` wrote."""
        return cls(
            cell=Cell.from_json(data["cell"]),
            attempt=data["attempt"],
            state=RunState(data["state"]),
            exit_code=data["exit_code"],
            signal=data["signal"],
            reason=data["reason"],
            launch=data["launch"],
            seed_used=data["seed_used"],
            started_at=data["started_at"],
            wall_seconds=data["wall_seconds"],
            cpu_seconds=data["cpu_seconds"],
            peak_memory_bytes=data["peak_memory_bytes"],
            results=_numbers_from_json(data["results"]),
            per_class={metric: _numbers_from_json(values) for metric, values in data["per_class"].items()},
            series={metric: Series.from_json(series) for metric, series in data["series"].items()},
            predictions=tuple(Predictions.from_json(item) for item in data["predictions"]),
            digests=dict(data["digests"]),
            environment=dict(data["environment"]),
            code=dict(data["code"]),
            sources=dict(data["sources"]),
            seeded=tuple(Seeded(*item) for item in data["seeded"]),
            notes=tuple(Note(*item) for item in data["notes"]),
            log_tail=data["log_tail"],
            startup_seconds=data.get("startup_seconds"),
            devices=tuple(data.get("devices", ())),
            where=dict(data.get("where", {})),
        )


def _numbers_to_json(values: Mapping[str, float]) -> dict[str, float | str]:
    return {name: number_to_json(value) for name, value in values.items()}


def _numbers_from_json(values: Mapping[str, float | str]) -> dict[str, float]:
    return {name: number_from_json(value) for name, value in values.items()}


def states(records: Sequence[RunRecord]) -> dict[RunState, int]:
    """How many runs ended in each state."""
    counts = dict.fromkeys(RunState, 0)
    for record in records:
        counts[record.state] += 1
    return counts
