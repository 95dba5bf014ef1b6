"""Progress on stderr: how much is done, how long it will take, and what there is so far."""

from __future__ import annotations

import math
import shutil
import statistics
import sys
import threading
import time
from collections import defaultdict
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TextIO

from isorun.cli import duration
from isorun.environments.interpreter import interpreters_of
from isorun.errors import harmless
from isorun.scheduling import Observer, row_text
from isorun.study.records import RunRecord, RunState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from isorun.analysis.evidence import Condition
    from isorun.store import Holder
    from isorun.study.cells import Cell
    from isorun.study.design import Study

__all__ = ["Progress"]

_REASON_SHOWN: Final = 120


def _spread(values: list[float]) -> str:
    """Mean and sd so far; a diverged run is counted, not averaged."""
    finite = [value for value in values if math.isfinite(value)]
    diverged = f", {len(values) - len(finite)} not finite" if len(finite) < len(values) else ""
    if not finite:
        return f"n = 0{diverged}"
    sd = f" ± {statistics.stdev(finite):.2g} sd" if len(finite) > 1 else ""
    return f"mean {statistics.fmean(finite):.4g}{sd}, n = {len(finite)}{diverged}"


class Progress(Observer):
    """One line, rewritten, on a terminal; a line a run elsewhere."""

    def __init__(self, study: Study, stream: TextIO) -> None:
        self._study = study
        self._stream = stream
        self._live = stream.isatty()
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._total = 0
        self._unsaid = ""  # a plan: a command that cannot be started at all is told without it
        self._running = 0
        self._records: list[RunRecord] = []
        self._values: defaultdict[tuple[str, ...], list[float]] = defaultdict(list)
        self._metric = ""
        self._origins: dict[str, str] = {}
        self._waited_for: set[str] = set()
        self._warned: set[Condition] = set()
        self._reasons: set[tuple[str, str]] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live and self._total:
            self._write("\r\x1b[K")

    def warned(self, condition: Condition) -> None:
        """At once, since whoever reads it may want to stop before hours of runs."""
        self._warned.add(condition)
        self._say(f"isorun: warning: {condition.message}")
        self._say(f"  next:    {condition.next_step}")

    def is_read(self, condition: Condition) -> bool:
        """Whether who reads the answer has read this already: both are on one terminal."""
        return condition in self._warned and self._live and sys.stdout.isatty()

    def work_planned(self, runs: int) -> None:
        """How many more runs are to come; a decision plans more of them after each look, a search says all at once."""
        if len(self._records) + runs <= self._total:
            return
        is_said = bool(self._total and self._study.searches)  # repeats that a race needs are in the counts
        self._total = len(self._records) + runs
        if is_said:
            return
        self._unsaid = f"{self._study.name}: {runs} run{'s' if runs != 1 else ''} to do{self._interpreters(runs)}"

    def _interpreters(self, runs: int) -> str:
        """Which Python the runs will have, at the start and where it is not the one isorun runs in."""
        others = interpreters_of(self._study) if runs and not self._records else ()
        return f", with {', '.join(others)}" if others else ""

    def run_started(self, cell: Cell) -> None:
        """A run begins."""
        self._say_plan()
        with self._lock:
            self._running += 1
            if self._live:
                self._rewrite(f"{self._counts()}  {cell.label} …")

    def environment_told(self, cell: Cell, message: str) -> None:
        """How far the making of an environment is."""
        self._say(f"{cell.environment}: {message}")

    def rows_logged(self, cell: Cell, rows: Sequence[Mapping[str, Any]]) -> None:
        """What a running training logged last; only on a terminal, where it takes no line of its own."""
        if self._live and rows:
            with self._lock:
                self._rewrite(f"{self._counts()}  {cell.label}: {row_text(rows[-1])} …")

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
        with self._lock:
            self._running -= 1
            self._records.append(record)
            self._announce_origins(record)
            line = f"{self._counts()}  {record.cell.label}: {self._told(record)}{self._time_left()}"
            if self._live and record.state is RunState.FINISHED:
                self._rewrite(line)
            else:
                self._say(line)

    def _counts(self) -> str:
        return f"[{len(self._records)}/{max(self._total, len(self._records))}]"

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
        values = self._values[(*record.cell.group,)]
        values.append(value)
        return f"{self._metric} {value:.4g} ({_spread(values)})"

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

    def _time_left(self) -> str:
        left = self._total - len(self._records)
        if left <= 0:
            return ""
        elapsed = time.monotonic() - self._started
        return f"; about {duration(elapsed / len(self._records) * left)} left"

    def _announce_origins(self, record: RunRecord) -> None:
        """Show which metrics were found in the output before anybody relies on them."""
        found = {} if "log" in record.origins.values() else dict(record.origins)
        new = {name: origin for name, origin in found.items() if name not in self._origins}
        if new and record.state is RunState.FINISHED:
            self._origins.update(new)
            shown = ", ".join(f"{name} ({origin})" for name, origin in list(new.items())[:8])
            self._say(f"metrics found without isorun.log: {shown}")

    def metrics_found(self) -> list[str]:
        """One line on where the metrics came from, for the end of the run."""
        if not self._origins:
            return []
        names = ", ".join(sorted(self._origins)[:12])
        return [
            f"  metrics read from output or files: {harmless(names)}; isorun report says how those judged were read"
        ]

    def _rewrite(self, line: str) -> None:
        columns = shutil.get_terminal_size((80, 24)).columns
        self._write(f"\r\x1b[K{harmless(line)[: columns - 1]}")

    def _say_plan(self) -> None:
        line, self._unsaid = self._unsaid, ""
        if line:
            self._say(line)

    def _say(self, line: str) -> None:
        self._say_plan()
        shown = harmless(line)
        self._write(f"\r\x1b[K{shown}\n" if self._live else f"{shown}\n")

    def _write(self, text: str) -> None:
        """Progress that cannot be shown (a log on a full disk, a reader that has gone) must not end the study."""
        with suppress(OSError):
            self._stream.write(text)
            self._stream.flush()
