"""Progress on stderr: how much is done, how long it will take, and what there is so far."""

from __future__ import annotations

import bisect
import itertools
import math
import re
import sys
import time
from collections import defaultdict
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TextIO

from isorun.cli import ProgressLines, duration
from isorun.environments.interpreter import interpreters_of
from isorun.errors import harmless
from isorun.scheduling import Observer, row_text
from isorun.study.records import RunRecord, RunState, step_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from isorun.analysis.evidence import Condition
    from isorun.store import Holder
    from isorun.study.cells import Cell
    from isorun.study.design import Study

__all__ = ["Progress"]

_REASON_SHOWN: Final = 120
_FIRST_LINE_SECONDS: Final = 30.0
_LONGEST_PAUSE: Final = 600.0
"""Where nobody looks at a terminal the pause between lines doubles up to this: a log of days stays short."""
_EPOCHS: Final = re.compile(r"-{0,2}(?:[\w.-]*[._-])?(?:num|max|n|total|train)?[_-]?epochs?(?:=(.+))?", re.IGNORECASE)
_CONFIG: Final = re.compile(r"\{config\.([\w.-]+)\}")


class _Spread:
    """Mean and sd so far, by Welford's recurrence: the ten-thousandth run is told in no more time than the second.

    A diverged run is counted, not averaged.
    """

    def __init__(self) -> None:
        self._count = self._diverged = 0
        self._mean = self._squares = 0.0

    def add(self, value: float) -> None:
        """The next run."""
        if not math.isfinite(value):
            self._diverged += 1
            return
        self._count += 1
        off = value - self._mean
        self._mean += off / self._count
        self._squares += off * (value - self._mean)

    def __str__(self) -> str:
        diverged = f", {self._diverged} not finite" if self._diverged else ""
        if not self._count:
            return f"n = 0{diverged}"
        sd = f" ± {math.sqrt(self._squares / (self._count - 1)):.2g} sd" if self._count > 1 else ""
        return f"mean {self._mean:.4g}{sd}, n = {self._count}{diverged}"


class _Running:
    """A run that is going on: since when, and the first and the last step that it told, each with its time."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.first: tuple[float, float] | None = None
        self.last: tuple[float, float] | None = None

    def told(self, step: float) -> None:
        self.last = (step, time.monotonic())
        self.first = self.first or self.last

    def seconds_left(self, steps: float | None, others: Sequence[float]) -> float | None:
        """By its steps where it is known how many are left, else by the runs that took longer than it has so far.

        others: how long runs took, in order. None for one that told its last step or took longer than all of them: it
        goes on, and nobody knows for how long.
        """
        elapsed = time.monotonic() - self.began
        if steps and self.first and self.last and self.first[0] < self.last[0] < steps:
            each = (self.last[1] - self.first[1]) / (self.last[0] - self.first[0])
            return (steps - self.last[0]) * each
        longer = others[bisect.bisect_right(others, elapsed) :]
        return _middle(longer) - elapsed if longer else None

    def seconds(self, steps: float | None) -> float | None:
        """How long it will have taken, by its steps alone."""
        left = self.seconds_left(steps, ())
        return None if left is None else time.monotonic() - self.began + left


class _Pace:
    """How long all runs that are left may take: from runs that ended, and from the steps of those that run."""

    def __init__(self) -> None:
        self.epochs: float | None = None
        self.from_zero = False  # whether the first of n epochs is called 0, and the last n - 1
        self._steps: float | None = None
        self._seconds: list[float] = []  # in order, the middle one being asked for after each run
        self._running: dict[str, _Running] = {}
        self._side_by_side = 1

    @property
    def steps(self) -> float | None:
        """How many steps a whole run has: those of one that ended, else what the command asks for."""
        return self._steps or self.epochs

    @property
    def _last_step(self) -> float | None:
        return self.steps - 1 if self.steps and self.from_zero else self.steps

    def begin(self, cell: Cell) -> None:
        self._running[cell.id] = _Running()
        self._side_by_side = max(self._side_by_side, len(self._running))

    def told(self, cell: Cell, rows: Sequence[Mapping[str, Any]]) -> None:
        steps = [row["step"] for row in rows if isinstance(row.get("step"), float | int)]
        if self._steps is None and 0 in steps and self.epochs:
            self.from_zero = True
        if cell.id in self._running and steps:
            self._running[cell.id].told(float(steps[-1]))

    def ended(self, record: RunRecord) -> None:
        self._running.pop(record.cell.id, None)
        self.know([record])

    def know(self, records: Iterable[RunRecord]) -> None:
        """Whole runs, of now or earlier."""
        for record in records:
            if record.state is RunState.FINISHED:
                bisect.insort(self._seconds, record.wall_seconds)
                for series in record.series.values():
                    self._know_steps(series.steps)

    def _know_steps(self, steps: Sequence[float]) -> None:
        """The steps of a whole run: 0, 1, 2 are counted from 0, and 0, 250, 500 are places.

        0 to as many as were asked for begins with a look at the model before it is trained.
        """
        if steps and steps[-1] > (self._steps or 0.0):
            self.from_zero = len(steps) > 1 and (steps[0], steps[1]) == (0, 1) and steps[-1] != self.epochs
            self._steps = steps[-1] + self.from_zero

    def seconds_left(self, waiting: int) -> float | None:
        """None where nothing is known, as of runs that take longer than all others. waiting: runs that are to begin."""
        foreseen = (run.seconds(self._last_step) for run in self._running.values())
        longest = [max(known)] if not self._seconds and (known := [one for one in foreseen if one is not None]) else []
        others = self._seconds or longest
        left = [run.seconds_left(self._last_step, others) for run in self._running.values()]
        if not others or (None in left and not waiting):
            return None
        known = [one for one in left if one is not None]
        return max(max(known, default=0.0), (sum(known) + waiting * _middle(others)) / self._side_by_side)


def _middle(ordered: Sequence[float]) -> float:
    """The median of values that are in order."""
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _epochs_asked_for(cell: Cell) -> float | None:
    """What follows `--epochs`, `--max_epochs=`, `trainer.max_epochs=` in the command; None where nothing does."""
    words = [*cell.command, ""]
    for word, following in itertools.pairwise(words):
        found = _EPOCHS.fullmatch(word)
        if found:
            value = found[1] or following
            asked = _CONFIG.fullmatch(value)
            given = cell.config_values.get(asked[1]) if asked else value
            return float(str(given)) if str(given).isdecimal() else None
    return None


class Progress(Observer):
    """One line, rewritten, on a terminal; elsewhere a line a run, and a few while one takes long."""

    def __init__(self, study: Study, stream: TextIO) -> None:
        self._study = study
        self._lines = ProgressLines(stream)
        self._pause = _FIRST_LINE_SECONDS
        self._next_line = time.monotonic() + self._pause
        self._pace = _Pace()
        self._made_before = 0
        self._knows_earlier = True  # of a resumed study with many runs, only some of them are read
        self._pythons: set[str] = set()
        self._total = 0
        self._unsaid = ""  # a plan: a command that cannot be started at all is told without it
        self._running = 0
        self._records: list[RunRecord] = []
        self._values: defaultdict[tuple[str, ...], _Spread] = defaultdict(_Spread)
        self._metric = ""
        self._at_the_end = False
        self._origins: dict[str, str] = {}
        self._waited_for: set[str] = set()
        self._warned: set[Condition] = set()
        self._reasons: set[tuple[str, str]] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._total:
            self._lines.clear()

    def warned(self, condition: Condition) -> None:
        """At once, since whoever reads it may want to stop before hours of runs."""
        self._warned.add(condition)
        self._say(f"isorun: warning: {condition.message}")
        self._say(f"  next:    {condition.next_step}")

    def is_read(self, condition: Condition) -> bool:
        """Whether who reads the answer has read this already: both are on one terminal."""
        return condition in self._warned and self._lines.live and sys.stdout.isatty()

    def work_planned(self, runs: int) -> None:
        """How many more runs are to come; a decision plans more of them after each look, a search says all at once."""
        if len(self._records) + runs <= self._total:
            return
        is_said = bool(self._total and self._study.searches)  # repeats that a race needs are in the counts
        self._total = len(self._records) + runs
        if is_said:
            return
        before = f", {self._made_before} made before" if self._made_before else ""
        planned = f"{runs} run{'s' if runs != 1 else ''} to do{before}{self._interpreters(runs)}"
        self._unsaid = f"{self._study.name}: {planned}"

    def made_before(self, runs: int, some: Sequence[RunRecord]) -> None:
        """Runs that a resumed study has already: they count, and say how long one takes."""
        self._made_before = runs
        self._pace.know(some)
        finished = [record for record in some if record.state is RunState.FINISHED]
        self._knows_earlier = len(finished) == runs
        for record in finished if self._knows_earlier else ():
            if (value := self._value(record)) is not None:
                self._values[(*record.cell.group, self._metric)].add(value)

    def _interpreters(self, runs: int) -> str:
        """Which Python the runs will have, at the start and where it is not the one isorun runs in."""
        others = interpreters_of(self._study) if runs and not self._records else ()
        self._pythons.update(others)
        return f", with {', '.join(others)}" if others else ""

    def run_started(self, cell: Cell) -> None:
        """A run begins."""
        self._say_plan()
        self._running += 1
        self._pace.epochs = self._pace.epochs or _epochs_asked_for(cell)
        self._pace.begin(cell)
        if self._lines.live:
            self._lines.rewrite(f"{self._counts()}  {cell.label} …{self._time_left()}")

    def environment_told(self, cell: Cell, message: str) -> None:
        """How far the making of an environment is."""
        self._say(f"{cell.environment}: {message}")

    def rows_logged(self, cell: Cell, rows: Sequence[Mapping[str, Any]]) -> None:
        """What a running training logged last: on a terminal each time, elsewhere after ever longer times."""
        if not rows:
            return
        self._pace.told(cell, rows)
        now = time.monotonic()
        if not self._lines.live and now < self._next_line:
            return
        line = f"{self._counts()}  {cell.label}: {self._row(rows[-1])} …{self._time_left()}"
        if self._lines.live:
            self._lines.rewrite(line)
        else:
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
            self._next_line = now + self._pause
            self._say(line)

    def _row(self, row: Mapping[str, Any]) -> str:
        """The row in a few words; with how many steps there will be, where that is known."""
        step, steps = row.get("step"), self._pace.steps
        if not isinstance(step, float | int) or not steps or step + self._pace.from_zero > steps:
            return row_text(row)
        word = "epoch" if steps == self._pace.epochs else "at"
        at = f"{word} {step_text(step + self._pace.from_zero)} of {step_text(steps)}"
        return f"{at}: {row_text({'values': row.get('values', {})})}"

    def waiting_for(self, cell: Cell, holder: Holder | None) -> None:
        """All that is left is carried out by others: who they are, once each."""
        who = f"process {holder.pid} on {holder.host}" if holder else "another isorun"
        since = f" since {holder.since[:19].replace('T', ' ')} UTC" if holder else ""
        if who not in self._waited_for:
            self._waited_for.add(who)
            self._say(f"waiting for {cell.label}: {who} has been running it{since}; isorun status shows what it does")

    def waiting_for_room(self) -> None:
        """Nothing can start now: said, since nothing else would be for as long as it lasts."""
        self._say("waiting: the executor has no room for a run")

    def run_ended(self, record: RunRecord) -> None:
        """A run ended: show it, the time left and the running mean ± sd of its group."""
        self._running -= 1
        self._records.append(record)
        self._pace.ended(record)
        self._announce_interpreter(record)
        self._announce_origins(record)
        line = f"{self._counts()}  {record.cell.label}: {self._told(record)}{self._time_left()}"
        if self._lines.live and record.state is RunState.FINISHED:
            self._lines.rewrite(line)
        else:
            self._say(line)

    def done_and_total(self) -> tuple[int, int]:
        """How many runs have ended, and how many there will be."""
        done = self._made_before + len(self._records)
        return done, max(self._made_before + self._total, done)

    def _counts(self) -> str:
        done, total = self.done_and_total()
        return f"[{done}/{total}]"

    def _told(self, record: RunRecord) -> str:
        if record.state is not RunState.FINISHED:
            reason = record.reason  # whole where the runs are summed up
            if (record.cell.environment, reason) in self._reasons:
                return f"{record.state} (as before)"
            self._reasons.add((record.cell.environment, reason))
            return f"{record.state} ({reason if len(reason) <= _REASON_SHOWN else f'{reason[:_REASON_SHOWN]}…'})"
        value = self._value(record)
        if value is None:
            return f"{duration(record.wall_seconds)}, no {next(iter(self._study.metrics), 'metric')} found"
        spread = self._values[(*record.cell.group, self._metric)]
        spread.add(value)
        self._at_the_end |= self._has_best_epoch(record)
        last = "last " if self._at_the_end else ""
        of_now = "" if self._knows_earlier else " of this call"
        return f"{last}{self._metric} {value:.4g} ({spread}{of_now})"

    def _value(self, record: RunRecord) -> float | None:
        if not record.results and not record.series:
            return None
        from isorun.analysis.evidence.judged import first_choice

        declared = next(iter(self._study.metrics), None)
        self._metric = declared or first_choice({*record.results, *record.series}) or ""
        if self._metric in record.results:
            return record.results[self._metric]
        series = record.series.get(self._metric)
        return series.values[-1] if series and series.values else None

    def _has_best_epoch(self, record: RunRecord) -> bool:
        """Whether the report judges the run at an epoch of its own, and not by what is shown here."""
        from isorun.analysis.evidence.judged import MetricKind, Split, kind_of, split_of

        picks, splits = (MetricKind.LOSS, MetricKind.ACCURACY), (Split.VALIDATION, Split.EVALUATION)
        shown = record.series.get(self._metric)
        if shown is None or len(shown.values) < 2:
            return False  # its only value is what it is judged by
        return bool(self._study.selections) or any(
            len(series.values) > 1 and kind_of(name) in picks and split_of(name) in splits
            for name, series in record.series.items()
        )

    def _time_left(self) -> str:
        left = self._total - len(self._records)
        seconds = self._pace.seconds_left(max(left - self._running, 0)) if left > 0 else None
        if seconds is None:
            return ""
        return f"; about {duration(seconds)} left" if seconds >= 1 else "; less than a second left"

    def _announce_interpreter(self, record: RunRecord) -> None:
        """Which Python trained, where that could not be said before: a wrapper chose it, or a shim stood for it."""
        effective = record.environment.get("effective")
        told = effective.get("python") if isinstance(effective, dict) else None
        python = told if isinstance(told, dict) else {}
        path = str(python.get("executable", ""))
        if path and path not in self._pythons and path != sys.executable:
            self._pythons.add(path)
            self._say(f"{record.cell.label} trained with {path} (Python {python.get('version', '?')})")

    def _announce_origins(self, record: RunRecord) -> None:
        """Show which metrics were found in the output before anybody relies on them."""
        found = {} if "log" in record.origins.values() else dict(record.origins)
        new = {name: origin for name, origin in found.items() if name not in self._origins}
        if new and record.state is RunState.FINISHED:
            self._origins.update(new)
            shown = ", ".join(f"{name} {_last(record, name)}({origin})" for name, origin in list(new.items())[:8])
            self._say(f"metrics found without isorun.log: {shown}")

    def metrics_found(self) -> list[str]:
        """For the end of the run: where the metrics came from, and what was shown of them on the way."""
        told = []
        if self._origins:
            names = harmless(", ".join(sorted(self._origins)[:12]))
            told.append(f"  metrics read from output or files: {names}; isorun report says how those judged were read")
        if self._at_the_end:
            shown = f"  {harmless(self._metric)} was shown as runs ended, its last value"
            told.append(f"{shown}; isorun report judges each run at its best epoch")
        return told

    def _say_plan(self) -> None:
        line, self._unsaid = self._unsaid, ""
        if line:
            self._say(line)

    def _say(self, line: str) -> None:
        self._say_plan()
        self._lines.say(line)


def _last(record: RunRecord, name: str) -> str:
    """The value that a metric ended with, before anybody relies on it."""
    values = record.series[name].values if name in record.series else ()
    value = record.results.get(name, values[-1] if values else None)
    return "" if value is None else f"{value:.6g} "
