"""Recording from inside the training process: `log`, `result`, `digest`, and what the worker itself notices.

Nothing here raises into the training: a value that cannot be recorded becomes a note, and the training goes on.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, Mapping

from . import runfolder, values
from .eventfile import EventFile
from .redaction import redacted_argv

PROTOCOL = 1
FINAL_WEIGHTS = "weights.final"
MAX_HELD_EVENTS = 100_000
# A generator that is seeded for each example must not fill the record.
MAX_SEEDS_A_PLACE = 8
MAX_SEED_PLACES = 200

_active: Recorder | None = None


def active() -> Recorder | None:
    """The recorder of this process; None outside isorun."""
    return _active


def activate(recorder: Recorder) -> None:
    """Make `recorder` the one that `isorun.log` reaches, also in forked children."""
    global _active  # noqa: PLW0603  one recorder a process is the point
    _active = recorder
    os.register_at_fork(after_in_child=recorder.become_forked_child)


class Recorder:
    """Writes the events of one process, in order, whatever thread they come from.

    The main process writes from the start. Any other holds its start and remarks back until it records something
    substantial, so that helpers and data-loading workers leave no file.
    """

    def __init__(self, folder: Path, drawn_seed: int | None = None) -> None:
        self.folder = folder
        self._drawn_seed = drawn_seed
        self.rank = runfolder.rank_of(os.environ)
        self.is_forked_child = False
        self.digest_names: set[str] = set()
        self._lock = threading.RLock()
        self._started = time.monotonic()
        self._file: EventFile | None = None
        self._held: list[dict[str, Any]] = [self._start_event()]
        self._complained: set[tuple[str, str]] = set()
        self._seeds: dict[tuple[str, str], set[str]] = {}

    @property
    def is_writing(self) -> bool:
        """Whether this process has a file: it is the main one, or it has recorded something."""
        return self._file is not None

    @property
    def seconds(self) -> float:
        """Seconds since this process's start event."""
        return round(time.monotonic() - self._started, 6)

    def begin(self) -> None:
        """Become the run's main process if that place is free."""
        if self.rank == 0:
            self._file = runfolder.claim_main(self.folder)
            self._release_held()

    def log(
        self,
        step: Any = None,
        *,
        epoch: Any = None,
        per_class: Mapping[Any, Any] | None = None,
        predictions: Any = None,
        **metrics: Any,
    ) -> None:
        """Record metrics at a step or an epoch; the epoch counts when both are given, and the step is kept too."""
        inner = None if epoch is None else self._position("step", step)
        position = self._position("epoch", epoch) if epoch is not None else self._position("step", step)
        if metrics or per_class:
            event = {"kind": "row", "t": self.seconds, "step": position, "values": self._numbers("", metrics)}
            if inner is not None:
                event["substep"] = inner
            if per_class:
                event["per_class"] = self._per_class(per_class)
            self.write(event)
        if predictions is not None:
            self._write_predictions(predictions, position)

    def result(
        self,
        *,
        per_class: Mapping[Any, Any] | None = None,
        predictions: Any = None,
        labels: Any = None,
        weights: Any = None,
        **values: Any,
    ) -> None:
        """Record final values, final per-class values, predictions with their labels, and a digest of the weights."""
        if values or per_class:
            classes = self._per_class(per_class or {})
            self.write({"kind": "result", "t": self.seconds, "values": self._numbers("", values), "per_class": classes})
        if predictions is not None:
            self._write_predictions(predictions, None)
        if labels is not None:
            self._write_predictions(labels, None, suffix="labels")
        if weights is not None:
            self.digest(FINAL_WEIGHTS, weights)

    def digest(self, name: str, obj: Any, step: Any = None) -> str | None:
        """Record the digest of weights or other arrays; the digest, or None (and a note) when it has none."""
        from . import digests  # loaded when needed: every child Python starts a recorder

        try:
            value = digests.digest(obj)
        except Exception as error:  # any framework may raise anything here
            self.note("bad-digest", f"digest {name!r}: {error}")
            return None
        self.digest_names.add(str(name))
        position = self._position("step", step)
        self.write({"kind": "digest", "t": self.seconds, "name": str(name), "value": value, "step": position})
        return value

    def note(self, code: str, message: str) -> None:
        """Tell the reader of the record something, once."""
        self.remark({"kind": "note", "t": self.seconds, "code": code, "message": message}, (code, message))

    def seeded(self, call: str, value: str, where: str, replaced: str = "") -> None:
        """Say that the training fixed a seed by itself, once for each value and place, and a few values a place.

        replaced: what the generator was given instead; empty where it was given the value. A seed that was drawn for
        this run and handed to the training is not the training's own.
        """
        if not replaced and value == str(self._drawn_seed):
            return
        once = (call, f"{value} {where}")
        values = self._seeds.setdefault((call, where), set())
        if len(self._seeds) > MAX_SEED_PLACES or (value not in values and len(values) >= MAX_SEEDS_A_PLACE):
            return
        values.add(value)
        event = {"kind": "seeded", "t": self.seconds, "call": call, "value": value, "where": where}
        self.remark({**event, "replaced": replaced} if replaced else event, once)

    def remark(self, event: dict[str, Any], once: tuple[str, str]) -> None:
        """Write an event that alone is no reason for a process other than the main one to have a file."""
        with self._lock:
            if once in self._complained or self.is_forked_child:
                return
            self._complained.add(once)
            if self._file is None:
                self._hold(event)
            else:
                self._file.append(event)

    def write(self, event: dict[str, Any]) -> None:
        """Write a substantial event."""
        with self._lock:
            if self._file is None and not self._open_own_file():
                self._hold(event)
            elif self._file is not None:
                self._file.append(event)

    def finish(self, event: dict[str, Any]) -> None:
        """Write the last event, and whatever waited for a disk that was full."""
        with self._lock:
            if self._file is None:
                return
            if self._file.lost:
                self.note("events-lost", f"the disk was full; {self._file.lost} events were given up")
            self._file.append(event)

    def become_forked_child(self) -> None:
        """After a fork: this process is another one, and must not write into its parent's file."""
        self.is_forked_child = True
        self._lock = threading.RLock()
        self._complained = set()
        if self._file is not None:
            self._file.close()
            self._file = None
        self._held = [self._start_event()]

    def _start_event(self) -> dict[str, Any]:
        return {
            "kind": "start",
            "t": 0,
            "pid": os.getpid(),
            "rank": self.rank,
            "python": ".".join(map(str, sys.version_info[:3])),
            "executable": sys.executable,
            "argv": redacted_argv(_command_line(), os.environ),
            "unix": time.time(),
            "isorun": PROTOCOL,
        }

    def _open_own_file(self) -> bool:
        try:
            self._file = runfolder.open_other(self.folder, os.getpid())
        except OSError:  # the disk is full or the folder is gone: what is held may find a place later
            return False
        self._release_held()
        return True

    def _hold(self, event: dict[str, Any]) -> None:
        if len(self._held) < MAX_HELD_EVENTS:
            self._held.append(event)

    def _release_held(self) -> None:
        if self._file is None:
            return
        for event in self._held:
            self._file.append(event)
        self._held = []

    def _position(self, name: str, value: Any) -> int | float | None:
        if value is None:
            return None
        try:
            return values.number(value)
        except TypeError as error:
            self.note("bad-step", f"{name}: {error}")
            return None

    def _numbers(self, owner: str, given: Mapping[Any, Any]) -> dict[str, int | float]:
        numbers: dict[str, int | float] = {}
        for name, value in given.items():
            try:
                numbers[str(name)] = values.number(value)
            except Exception as error:  # a lazy array may raise anything when it is asked for its value
                self.note("bad-metric", f"metric {owner}{name!s}: {error}; the value was not recorded")
        return numbers

    def _per_class(self, per_class: Any) -> dict[str, dict[str, int | float]]:
        if not isinstance(per_class, Mapping):
            found = type(per_class).__name__
            self.note("bad-metric", f"per_class: found {found}; a mapping of classes to numbers is allowed")
            return {}
        nested = values.nested_per_class(per_class)
        return {metric: self._numbers(f"{metric} of class ", classes) for metric, classes in nested.items()}

    def _write_predictions(self, given: Any, position: int | float | None, suffix: str = "") -> None:
        from . import predictions

        for name, array in predictions.by_name(given).items():
            full_name = f"{name}.{suffix}" if suffix else name
            try:
                packed = predictions.pack(array)
            except Exception as error:  # any framework may raise anything here
                self.note("bad-predictions", f"{full_name}: {error}; they were not recorded")
                continue
            event = {"kind": "predictions", "t": self.seconds, "name": full_name, "step": position}
            event.update(packed._asdict())
            self.write(event)


def _command_line() -> list[str]:
    """The whole command where Python tells it; code given by `-c` is left out."""
    argv: list[str] = getattr(sys, "argv", [])
    whole: list[str] = getattr(sys, "orig_argv", argv)
    return argv if argv[:1] == ["-c"] else whole
