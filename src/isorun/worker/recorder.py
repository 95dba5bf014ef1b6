"""Recording from inside the training process: `log`, `result`, `digest`, and what the worker itself notices.

Nothing here raises into the training: a value that cannot be recorded becomes a note, and the training goes on.
"""

from __future__ import annotations

import json
import math
import numbers
import os
import sys
import threading
import time
from json.encoder import encode_basestring_ascii
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping

from . import runfolder
from .redaction import redacted_argv

ERROR_FILE = "worker-error.txt"
INITIAL_WEIGHTS = "weights.initial"
FINAL_WEIGHTS = "weights.final"
DEFAULT_PER_CLASS_METRIC = "accuracy"
MAX_HELD_EVENTS = 100_000
MAX_DIGEST_BYTES = 2 * 2**30
MAX_PREDICTION_BYTES = runfolder.MAX_LINE_BYTES - 2**16
# A generator that is seeded for each example must not fill the record.
MAX_SEEDS_A_PLACE = 8
MAX_SEED_PLACES = 200
# Processes of pools that tell what their generators were given; those of the others are given such, too.
MAX_TELLING_PROCESSES = 8
_LARGEST = sys.float_info.max
_WHOLE = 2**53
_WORDS = {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}

_active: Recorder | None = None


def active() -> Recorder | None:
    """The recorder of this process; None outside isorun."""
    return _active


def activate(recorder: Recorder) -> None:
    """Make `recorder` the one that `isorun.log` reaches, also in forked children."""
    global _active  # noqa: PLW0603  one recorder a process is the point
    _active = recorder
    os.register_at_fork(after_in_parent=recorder.count_fork, after_in_child=recorder.become_forked_child)


def of_this_thread(owned: list[tuple[threading.Thread, Any]]) -> list[Any]:
    """What this thread owns. A thread that owns nothing speaks for the one that does; of several it means none."""
    here = threading.current_thread()
    owners = {owner for owner, _ in owned}
    return [thing for owner, thing in owned if owner is here or (here not in owners and len(owners) == 1)]


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
        self.is_main_process = False
        # Nothing is known of this process but that it is a later rank.
        self.only_joined = False
        self.forks = 0
        self.open_ends: list[str] = []
        self.digest_names: set[str] = set()
        self._stood_for: set[str] = set()
        self._trained: dict[str, str] = {}
        self.job = ""
        self._job_member = ""
        self._lock = threading.RLock()
        self._booted = _seconds_since_process_began()
        self._started = time.monotonic()
        self._computed = time.process_time()
        self._imports = 0.0
        self._file: runfolder.EventFile | None = None
        self._aside: runfolder.EventFile | None = None
        self._held: list[dict[str, Any]] = [self._start_event()]
        self._complained: set[tuple[str, str]] = set()
        self._places: set[tuple[str, str]] = set()
        self._seeds: dict[tuple[str, str], set[str]] = {}

    def enter_job(self, name: str) -> None:
        """What is logged from now on belongs to this training of several in one run; empty where it is the only one."""
        self.job = name
        self._job_member = f',"job":{encode_basestring_ascii(name)}' if name else ""

    @property
    def is_writing(self) -> bool:
        """Whether this process has a file: it is the main one, or it has recorded something."""
        return self._file is not None

    @property
    def seconds(self) -> float:
        """Seconds of this process's own work since its start event: the clock stands while a framework is imported."""
        return round(time.monotonic() - self._started - self._imports, 6)

    @property
    def cpu_seconds(self) -> float:
        """The same by the processor: those of all threads of this process."""
        return round(time.process_time() - self._computed, 6)

    def imported(self, seconds: float, computed: float = 0.0) -> None:
        """A framework was imported, in so many seconds: they belong to the start-up of the process."""
        self._imports += seconds
        self._computed += computed
        startup = {"process": round(self._booted, 6), "imports": round(self._imports, 6)}
        self.remark({"kind": "startup", "t": self.seconds, **startup}, ("startup", str(self._imports)))

    def begin(self) -> None:
        """Become the run's main process if that place is free."""
        if self.rank == 0:
            self._file = runfolder.claim_main(self.folder)
            self.is_main_process = self._file is not None
            self._release_held()

    def join_ranks(self, rank: int, told: Mapping[str, Any]) -> None:
        """Know that this process trains together with others, as this rank of theirs; it has a file from now on."""
        with self._lock:
            self.rank = rank
            if self._file is None:
                self.only_joined = bool(rank)
                for event in self._held:
                    event.update({"rank": rank} if event["kind"] == "start" else {})
        event = {"kind": "rank", "t": self.seconds, "rank": rank, **told}
        self._write_anyhow(event)

    def tell_printed(self, lines: Mapping[str, int], *, is_cut: bool) -> None:
        """Tell which lines this later rank printed, and how often; that alone makes it no more than a later rank."""
        with self._lock:
            self.only_joined = self.only_joined or self._file is None
        self._write_anyhow({"kind": "printed", "t": self.seconds, "lines": lines, "cut": is_cut})

    def come_forward(self) -> None:
        """Have a file from now on, whatever there is to say: other processes of the run see who is at work."""
        with self._lock:
            if self._file is None:
                self._open_own_file()

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
        if per_class is not None or predictions is not None or (epoch is not None and step is not None):
            self._log_more(step, epoch, per_class, predictions, metrics)
        elif metrics:
            self._log_row("step" if epoch is None else "epoch", step if epoch is None else epoch, metrics)

    def _log_row(self, name: str, position: Any, metrics: Mapping[str, Any]) -> None:
        """Write the usual row: the same line as for any event, made in half the time, for there may be millions."""
        words = []
        for metric, value in metrics.items():
            if type(value) is float:
                text = repr(value)
                words.append(f"{encode_basestring_ascii(metric)}:{_WORDS.get(text, text)}")
            else:
                words += [f"{encode_basestring_ascii(metric)}:{_text(one)}" for one in self._number(metric, value)]
        if type(position) is not int or not -_WHOLE < position < _WHOLE:
            position = self._position(name, position)
        step = "null" if position is None else _text(position)
        seconds = time.monotonic() - self._started - self._imports
        text = f'{{"kind":"row","t":{seconds:.6f},"step":{step},"values":{{{",".join(words)}}}{self._job_member}}}'
        self.only_joined = False
        with self._lock:
            if self._file is not None or self._open_own_file():
                self._file.append_text(text)  # type: ignore[union-attr]
            else:
                self._hold(json.loads(text))

    def _log_more(self, step: Any, epoch: Any, per_class: Any, predictions: Any, metrics: Mapping[str, Any]) -> None:
        inner = None if epoch is None or step is None else self._position("step", step)
        position = self._position("epoch", epoch) if epoch is not None else self._position("step", step)
        classes = self._per_class(per_class)
        if metrics or classes:
            event = {"kind": "row", "t": self.seconds, "step": position, "values": self._numbers("", metrics)}
            event.update(self._of_job)
            if inner is not None:
                event["substep"] = inner
            if classes:
                event["per_class"] = classes
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
        classes = self._per_class(per_class)
        if values or classes:
            event = {"kind": "result", "t": self.seconds, "values": self._numbers("", values), "per_class": classes}
            self.write({**event, **self._of_job})
        if predictions is not None:
            self._write_predictions(predictions, None)
        if labels is not None:
            self._write_predictions(labels, None, suffix="labels")
        if weights is not None:
            self.digest(FINAL_WEIGHTS, weights)

    @property
    def _of_job(self) -> dict[str, str]:
        return {"job": self.job} if self.job else {}

    def digest(self, name: str, obj: Any, step: Any = None) -> str | None:
        """Record the digest of weights or other arrays; the digest, or None (and a note) when it has none."""
        from . import arrays  # loaded when needed: every child Python starts a recorder

        try:
            value = arrays.digest(obj)
        except Exception as error:  # any framework may raise anything here
            self.note("bad-digest", f"digest {name!r}: {error}")
            return None
        self._tell_digest(str(name), value, self._position("step", step))
        return value

    def started(self, things: Any) -> None:
        """What is about to be trained, as it is before the first step; of several frameworks that of the first."""
        if INITIAL_WEIGHTS not in self.digest_names:
            self._digest_seen(INITIAL_WEIGHTS, "", things)

    def trained(self, framework: str, things: Any) -> None:
        """What a framework has trained. Together with what others have it is one digest, told anew with each.

        A digest that the training told by itself is left as it is.
        """
        if FINAL_WEIGHTS not in self.digest_names or self._trained:
            self._digest_seen(FINAL_WEIGHTS, framework, things)

    def _digest_seen(self, name: str, framework: str, things: Any) -> None:
        from . import arrays

        try:
            value = arrays.digest(things, MAX_DIGEST_BYTES)
            if framework:
                self._trained[framework] = value
                value = value if len(self._trained) == 1 else arrays.digest(dict(sorted(self._trained.items())))
        except Exception as error:  # any framework may raise anything here
            self.note("no-digest", f"{name}: {error}")
        else:
            self._tell_digest(name, value, None)

    def _tell_digest(self, name: str, value: str, position: int | float | None) -> None:
        self.digest_names.add(name)
        self.write({"kind": "digest", "t": self.seconds, "name": name, "value": value, "step": position})

    def stand_for(self, names: Iterable[str]) -> None:
        """What is logged stands for these metrics, too: where they are printed they are not read a second time."""
        told = sorted(set(map(str, names)) - self._stood_for)
        if told:
            self._stood_for.update(told)
            self.write({"kind": "stands-for", "t": self.seconds, "names": told})

    def note(self, code: str, message: str) -> None:
        """Tell the reader of the record something, once."""
        self.remark({"kind": "note", "t": self.seconds, "code": code, "message": message}, (code, message))

    def has_noted(self, code: str) -> bool:
        """Whether there is a note of this kind."""
        return any(noted == code for noted, _ in self._complained)

    def note_at(self, code: str, place: tuple[str, str], message: str) -> None:
        """The same, once for each call and place, and for so many of them."""
        once = (code, " ".join(place))
        if once not in self._places and len(self._places) < MAX_SEED_PLACES:
            self._places.add(once)
            self.note(code, message)

    def note_aside(self, code: str, place: tuple[str, str], message: str) -> None:
        """The same in a process of a pool; where it logs nothing, the first few of a run have a file for this alone."""
        once = (code, " ".join(place))
        if once in self._places or len(self._places) >= MAX_SEED_PLACES:
            return
        self._places.add(once)
        with self._lock:
            file = self._file or self._aside
            if file is None and runfolder.number_of_files(self.folder) <= MAX_TELLING_PROCESSES:
                file = self._aside = runfolder.open_other(self.folder, os.getpid())
                file.append(self._start_event())
            if file is not None:
                file.append({"kind": "note", "t": self.seconds, "code": code, "message": message})

    def left_open(self, what: str) -> None:
        """Remember something that the level could not hold; it is told with the environment."""
        if what not in self.open_ends and len(self.open_ends) < MAX_SEED_PLACES:
            self.open_ends.append(what)

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
        self.only_joined = False
        self._write_anyhow(event)

    def _write_anyhow(self, event: dict[str, Any]) -> None:
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
                lost = f"the disk was full, or too much was logged; {self._file.lost} events were given up"
                self.note("events-lost", lost)
            self._file.append(event)

    def count_fork(self) -> None:
        """After a fork, in the parent."""
        self.forks += 1

    def become_forked_child(self) -> None:
        """After a fork: this process is another one, and must not write into its parent's file."""
        self.is_forked_child = True
        self._lock = threading.RLock()
        self._complained, self._places = set(), set()
        for file in (self._file, self._aside):
            if file is not None:
                file.close()
        self._file = self._aside = None
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
            "isorun": runfolder.PROTOCOL,
            "process": round(self._booted, 6),
        }

    def _open_own_file(self) -> bool:
        try:
            self._file = runfolder.open_other(self.folder, os.getpid())
        except OSError as error:  # the disk is full or the folder is gone: what is held may find a place later
            runfolder.tell_loss(self.folder, error.strerror or "no file can be made")
            return False
        runfolder.untell_loss(self.folder)
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
            found = number(value)
        except Exception as error:  # a lazy array may raise anything when it is asked for its value
            self.note("bad-step", f"{name}: {error}")
            return None
        if math.isfinite(found):
            return found
        self.note("bad-step", f"{name}: found {found}; a finite number is allowed, so these values have no {name}")
        return None

    def _numbers(self, owner: str, given: Mapping[Any, Any]) -> dict[str, int | float]:
        return {str(name): one for name, value in given.items() for one in self._number(f"{owner}{name!s}", value)}

    def _number(self, name: str, value: Any) -> list[int | float]:
        """The number in a list of its own; none, and a note, where there is none."""
        try:
            return [number(value)]
        except Exception as error:  # a lazy array may raise anything when it is asked for its value
            self.note("bad-metric", f"metric {name}: {error}; the value was not recorded")
            return []

    def _per_class(self, per_class: Any) -> dict[str, dict[str, int | float]]:
        if per_class is None:
            return {}
        if not isinstance(per_class, Mapping):  # an array, say: to ask whether it is empty would raise
            found = type(per_class).__name__
            self.note("bad-metric", f"per_class: found {found}; a mapping of classes to numbers is allowed")
            return {}
        nested = nested_per_class(per_class)
        return {metric: self._numbers(f"{metric} of class ", classes) for metric, classes in nested.items()}

    def _write_predictions(self, given: Any, position: int | float | None, suffix: str = "") -> None:
        from . import arrays

        for name, array in arrays.by_name(given).items():
            full_name = f"{name}.{suffix}" if suffix else name
            try:
                packed = arrays.pack(array)
            except Exception as error:  # any framework may raise anything here
                self.note("bad-predictions", f"{full_name}: {error}; they were not recorded")
                continue
            if len(packed.data) > MAX_PREDICTION_BYTES:
                told = f"{full_name}: {len(packed.data)} bytes are more than {MAX_PREDICTION_BYTES}"
                self.note("bad-predictions", f"{told}; they were not recorded")
                continue
            event = {"kind": "predictions", "t": self.seconds, "name": full_name, "step": position}
            event.update(packed._asdict())
            self.write({**event, **self._of_job})


def _command_line() -> list[str]:
    """The whole command where Python tells it; code given by `-c` is left out."""
    argv: list[str] = getattr(sys, "argv", [])
    whole: list[str] = getattr(sys, "orig_argv", argv)
    return argv if argv[:1] == ["-c"] else whole


def _seconds_since_process_began() -> float:
    """How long this process has been there already, to a hundredth of a second; 0 where the system does not say."""
    try:
        fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
        began = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        return max(time.clock_gettime(time.CLOCK_BOOTTIME) - began, 0.0)
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0


def _text(value: int | float) -> str:
    """A number as JSON has it; NaN and infinities as words."""
    text = repr(value)
    return _WORDS.get(text, text)


def number(value: Any) -> int | float:
    """A plain number from a scalar of Python or any framework. Raises TypeError for anything else."""
    if type(value) is float:
        return value
    if isinstance(value, numbers.Integral):
        return _bounded(int(value))
    return float(value) if isinstance(value, numbers.Real) else _scalar_of_array(value)


def _bounded(value: int) -> int:
    """A whole number that a float can hold: records keep floats."""
    if -_LARGEST <= value <= _LARGEST:
        return value
    digits = int(value.bit_length() * 0.30103) + 1
    raise TypeError(f"found a whole number of about {digits} digits; numbers up to {_LARGEST:.2g} are allowed")


def _scalar_of_array(value: Any) -> int | float:
    if not hasattr(value, "item"):
        from . import frameworks  # rarely needed: most scalars have it

        value = frameworks.as_array(value)
    if not callable(getattr(value, "item", None)):
        # Not the value: whatever was passed by mistake, it may be a secret.
        size = f" of {len(value)} characters" if isinstance(value, str) else ""
        raise TypeError(f"found {type(value).__name__}{size}; a number is allowed")
    try:
        plain = value.item()
    except (ValueError, RuntimeError):
        plain = None
    if not isinstance(plain, (int, float)):
        shape = tuple(getattr(value, "shape", ()))
        raise TypeError(f"found {type(value).__name__} of shape {shape}; one number is allowed")
    return _bounded(int(plain)) if isinstance(plain, int) else plain


def shortened(value: Any) -> str:
    """How a value looks, in at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def nested_per_class(per_class: Mapping[Any, Any]) -> dict[str, Mapping[Any, Any]]:
    """Per-class values by metric: a flat mapping of classes is about the accuracy."""
    flat = {name: value for name, value in per_class.items() if not isinstance(value, Mapping)}
    nested = {str(name): value for name, value in per_class.items() if isinstance(value, Mapping)}
    if flat:
        nested[DEFAULT_PER_CLASS_METRIC] = {**flat, **nested.get(DEFAULT_PER_CLASS_METRIC, {})}
    return nested


def report(folder: Path, doing: str, error: BaseException) -> None:
    """Leave a note in the events and the whole traceback in the run's folder."""
    import traceback

    try:
        opened = runfolder.open_own(folder / ERROR_FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW)
        with os.fdopen(opened, "w", encoding="utf-8") as file:
            file.write(f"{doing}\n{''.join(traceback.format_exception(type(error), error, error.__traceback__))}\n")
    except OSError:
        pass  # the disk is full or the folder is gone: the note below may still be written
    current = active()
    if current is not None:
        current.note("worker-error", f"{doing}: {type(error).__name__}: {error}")


def guarded(folder: Path, doing: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with its errors reported instead of raised.

    It goes by a name of its own, which nobody reads: to copy one takes some microseconds, dozens of times a start.
    """

    def safe(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:  # this is the border between the worker and the training
            return report(folder, doing, error)

    return safe
