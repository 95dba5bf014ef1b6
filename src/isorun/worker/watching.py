"""Watching a training from inside: `isorun.watch(model)` looks at sampled steps and keeps a row an epoch.

What is looked at is said by the files in `frameworks/` that know a kind of model. This file says when: the watcher
measures what its samples and the training's steps take, and takes the next sample when it has been paid for (0.1 % of
the time, and a few milliseconds that a short training has in any case). Between samples one small hook remains.

Nothing here raises into the training: where watching fails it ends, and says so.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import math
import threading
import time
from typing import Any, Callable, Mapping

from . import frameworks, recorder
from .runfolder import spelled

SHARE = 0.001
ALLOWANCE_SECONDS = 0.005
# A first sample may take that share of what was trained until then.
FIRST_SHARE = 0.02
SHORT_STEPS = 64
MAX_LAYERS = 64
MAX_ROWS = 200

TOLD = {
    "loss": ("loss", "train_loss", "training_loss", "train/loss", "loss/train", "train-loss"),
    "accuracy": (
        *("accuracy", "acc", "train_accuracy", "train_acc", "train/accuracy", "train/acc", "accuracy/train"),
        *("top1", "acc1", "train_top1", "train_acc1", "train/top1", "train/acc1"),
    ),
    "val_loss": ("val_loss", "valid_loss", "validation_loss", "val/loss", "loss/val", "eval_loss", "test_loss"),
    "val_accuracy": (
        *("val_accuracy", "val_acc", "valid_accuracy", "valid_acc", "validation_accuracy", "val/accuracy", "val/acc"),
        *("accuracy/val", "eval_accuracy", "test_accuracy", "test_acc"),
        *("val_top1", "val_acc1", "val/top1", "val/acc1", "test_top1", "test_acc1"),
    ),
}
"""What trainings call the metrics that a row tells, the usual name first."""

_watchers: list[Watcher] = []
_calls = itertools.count(1)


class Watcher:
    """Watches one model until it is stopped or the model is gone.

    rows: what was seen, as in the table of docs/design/repair.md; at most MAX_ROWS, thinned evenly. spent: the seconds
    that watching took. problem: why it ended before the training did, empty while all is well. every: sample each
    so-many-th step, whatever it takes; None for as many as the share pays for. is_told_epochs: marks are sure to come.
    thread: the one that trains the model, as far as was seen. heard: which call of `log` it was marked by last.
    """

    def __init__(self, every: int | None = None, share: float = SHARE) -> None:
        self._rows: list[dict[str, Any]] = []
        self.spent = 0.0
        self.problem = ""
        self.step = 0
        self.due = 1
        self.is_told_epochs = False
        self._every = every
        self._share = share
        self._began = time.perf_counter()
        self._began_computing = time.process_time()
        self._cost = 0.0
        self._sample: dict[str, Any] = {}
        self._open: dict[str, Any] | None = None
        self._marks = 0
        self._last_mark = 0
        self._written = 0
        self._unmarked = 1
        self._keep_every = 1
        self._probe: Any = None
        self._recorder = recorder.active()
        self.thread: threading.Thread | None = threading.current_thread()
        self.heard = 0

    @property
    def rows(self) -> list[dict[str, Any]]:
        """What was seen until now; the last row may still grow, when more is told of its epoch."""
        grows = self._open
        return [*self._rows, dict(grows)] if grows is not None else list(self._rows)

    def mark(self, epoch: Any = None, **metrics: Any) -> None:
        """An epoch has ended: a row with the latest sample and these metrics. More for the same epoch joins the row."""
        self._read()
        self.guarded("marking an epoch", self._mark, epoch, metrics)

    def end_epoch(self, epoch: Any, metrics: Mapping[str, Any]) -> None:
        """The same for a framework that tells everything about an epoch at once: the row is written now."""
        self._read()
        self.guarded("marking an epoch", self._mark, epoch, metrics)
        self.guarded("writing a row", self._close_row)

    def stop(self) -> None:
        """Take the hooks down and write what is still open."""
        probe, self._probe = self._probe, None
        if probe is not None:
            probe.stop()
        self._end()

    def leave(self) -> None:
        """The model is gone, at whatever moment: write what is still open."""
        probe, self._probe = self._probe, None
        if probe is not None:
            probe.halt()
        self._end()

    def _end(self) -> None:
        if self in _watchers:
            _watchers.remove(self)
        self.guarded("writing the last row", self._finish)

    def __getstate__(self) -> dict[str, Any]:
        """Who keeps a watcher with a model or a trainer copies and saves it with that: what it saw, and no more."""
        return {**self.__dict__, "_probe": None, "_recorder": None, "thread": None}

    def __enter__(self) -> Watcher:
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def begin(self, probe: Any) -> None:
        """Watch by this probe.

        It has a `stop()`, a `halt()` that can be called at any moment, and a `read()` that takes what has arrived of
        samples on their way.
        """
        self._probe = probe
        _watchers.append(self)

    def sampled(self, sample: dict[str, Any], seconds: float) -> None:
        """Take a sample of this step, which took so many seconds, and say when the next one is due."""
        self.spend(seconds, anew=True)
        self.take(sample, self.step)
        self.plan()

    def spend(self, seconds: float, anew: bool = False) -> None:
        """Count what watching took. anew: with it a sample begins; else it is one more part of the latest."""
        self.spent += seconds
        self._cost = seconds if anew else self._cost + seconds
        if anew:
            self.thread = threading.current_thread()

    def take(self, sample: dict[str, Any], step: int) -> None:
        """Take the sample of a step for the next row."""
        now = time.perf_counter()
        self._sample = {**self._sample, **sample, "step": step, "seconds": round(now - self._began, 3)}
        if sample.get("finite") is False and self._open is None:
            self._open_row(None)
        elif not self._marks and not self.is_told_epochs and step >= self._unmarked:
            self._unmarked = step + max(1, step // 4)
            self._open_row(None)

    def updated(self, update: list[float], finite: bool) -> None:
        """Take what the last sampled step changed, for the row that the sample is in."""
        row = self._sample or self._open
        if row is not None:
            row.update({"update": update, "finite": row.get("finite", True) and finite})

    @property
    def has_stepped(self) -> bool:
        """Whether the model was trained since the last mark."""
        return self.step > self._last_mark

    def plan(self) -> None:
        """Find the step at which the next sample is due."""
        self.due = self.step + (self._every or 1 + int(self._steps_to_wait()))

    def pays(self, cost: float) -> bool:
        """Whether another sample of this cost is within the share, or within what any training may spend."""
        return self._every is not None or self.spent + cost <= max(ALLOWANCE_SECONDS, self._share * self._trained())

    def pays_once(self, cost: float) -> bool:
        """Whether a first sample may cost so much: short trainings, too, are to be seen inside once."""
        return cost <= FIRST_SHARE * self._trained()

    def _steps_to_wait(self) -> float:
        """Until the next sample is paid for; before, what a short training may spend is spread over its steps.

        Two samples between marks are enough, however many are paid for.
        """
        elapsed = self._trained()
        missing = (self.spent + self._cost) / self._share - elapsed
        left = int((ALLOWANCE_SECONDS - self.spent) / self._cost) if self._cost else 0
        if missing > 0 and left > 0:
            return self.step * max(1.0, (SHORT_STEPS / self.step) ** (1 / left) - 1) if self.step else 0.0
        enough = self._last_mark / self._marks / 2 if self._marks else self.step / 4
        return max(enough, missing * self.step / elapsed if elapsed > 0 else 0.0)

    def _trained(self) -> float:
        """Seconds that pay for samples: where others use the machine too, those in which this process computed."""
        return min(time.perf_counter() - self._began, time.process_time() - self._began_computing)

    def guarded(self, doing: str, function: Callable[..., Any], *args: Any) -> Any:
        """The function's answer; where it raises, watching ends and the training goes on."""
        try:
            return function(*args)
        except Exception as error:  # this is the border between the watcher and the training
            self.problem = "%s: %s: %s" % (doing, type(error).__name__, error)
            if self._recorder is not None:
                self._recorder.note("watch-ended", self.problem)
            probe, self._probe = self._probe, None
            if probe is not None:
                self.guarded(doing, probe.halt)
            return None

    def _read(self) -> None:
        """Samples that have arrived belong to the row that is marked now."""
        probe = self._probe
        if probe is not None:
            self.guarded("reading a sample", probe.read)

    def _mark(self, epoch: Any, metrics: Mapping[str, Any]) -> None:
        place = None if epoch is None else recorder.number(epoch)
        told = _told(metrics)
        if self._open is None or place is None or self._open.get("epoch") != place:
            self._open_row(place)
            self._marks += 1
            self._last_mark = self.step
        assert self._open is not None
        self._open.update(told)

    def _open_row(self, epoch: Any) -> None:
        self._close_row()
        now = round(time.perf_counter() - self._began, 3)
        self._open = {"step": self.step, "epoch": epoch, "seconds": now, **self._sample}
        self._open["epoch"] = epoch
        self._sample = {}

    def _close_row(self) -> None:
        """Write the open row, unless so many are written that only some are kept."""
        row, self._open = self._open, None
        if row is None:
            return
        place, self._written = self._written, self._written + 1
        wrong = row.get("finite") is False
        if place % self._keep_every and not wrong:
            return
        self._rows.append(row)
        if self._recorder is not None and not self._recorder.rank:
            self._recorder.write({"kind": "watched", "t": self._recorder.seconds, **spelled(row)})
        if len(self._rows) > MAX_ROWS:
            self._rows = self._rows[::2]
            self._keep_every *= 2

    def _finish(self) -> None:
        if self._sample and self._open is None:
            self._open_row(None)
        self._close_row()


def _told(metrics: Mapping[str, Any]) -> dict[str, float]:
    """The metrics a row tells, by their usual names; what is no number is left out."""
    told = {}
    for name, names in TOLD.items():
        value = next((metrics[other] for other in names if metrics.get(other) is not None), None)
        if value is not None:
            try:
                told[name] = float(recorder.number(value))
            except Exception:  # noqa: S112  a lazy array may raise anything; `log` tells
                continue
    return told


def watch(model: Any, *, every: int | None = None, share: float = SHARE) -> Watcher:
    """Watch a model from now on: `isorun.watch(model)` before the training begins, and nothing else."""
    watcher = Watcher(every, share)
    watcher.guarded("beginning to watch", _begin, model, watcher)
    return watcher


def _begin(model: Any, watcher: Watcher) -> None:
    for framework, module in reversed(tuple(frameworks.imported())):
        probe = framework.probe(module, model, watcher)
        if probe is not None:
            _register_finish()
            watcher.begin(probe)
            return
    raise TypeError(
        "found %s; a model of a framework that isorun can look into is allowed" % recorder.shortened(type(model))
    )


@functools.lru_cache(maxsize=None)
def _register_finish() -> None:
    """At the end of the process, before the worker's own end, write what is open."""
    atexit.register(_finish_all)


def _finish_all() -> None:
    for watcher in tuple(_watchers):
        watcher.stop()


def marked(epoch: Any, metrics: Mapping[str, Any]) -> None:
    """`isorun.log` was told an epoch, which is one of the models that are trained where it was called."""
    number = next(_calls)
    for watcher in _meant():
        watcher.heard = number
        watcher.mark(epoch, **metrics)


def _meant() -> list[Watcher]:
    """The watchers that an epoch is told of: those of this thread whose models were trained since they were marked.

    Others train trials of their own, or are done and only kept. Where none was, more is told of the epoch before.
    """
    own = recorder.of_this_thread([(one.thread, one) for one in tuple(_watchers) if one.thread is not None])
    latest = max((one.heard for one in own), default=0)
    return [one for one in own if one.has_stepped] or [one for one in own if one.heard == latest or not one.step]


def grouped(names: list[str], columns: Mapping[str, list[float]], sizes: list[int]) -> dict[str, Any]:
    """The columns of a sample with at most MAX_LAYERS entries: neighbours are joined, and their name says so.

    Norms join as norms do; `zero` by the number of entries.
    """
    if len(names) <= MAX_LAYERS:
        return {"layers": names, **columns}
    width = math.ceil(len(names) / MAX_LAYERS)
    parts = [range(start, min(start + width, len(names))) for start in range(0, len(names), width)]
    joined: dict[str, Any] = {"layers": ["%s .. %s" % (names[part[0]], names[part[-1]]) for part in parts]}
    for column, values in columns.items():
        if column == "zero":
            joined[column] = [_mean([values[i] for i in part], [sizes[i] for i in part]) for part in parts]
        elif column == "update":
            joined[column] = [max(values[i] for i in part) for part in parts]
        else:
            joined[column] = [math.sqrt(sum(values[i] ** 2 for i in part)) for part in parts]
    return joined


def _mean(values: list[float], weights: list[int]) -> float:
    known = [(value, weight) for value, weight in zip(values, weights) if not math.isnan(value)]
    total = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / total if total else math.nan


def rounded(values: list[float]) -> list[float]:
    """Four digits, which is what anybody reads, so that rows stay small."""
    return [float("%.4g" % value) for value in values]
