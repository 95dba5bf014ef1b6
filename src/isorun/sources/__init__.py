"""Metrics with no change to the training's code: from its output, from files it writes, from TensorBoard events.

A source reads metrics of one kind: what every source promises, what it gives, and how that is shown before anybody
relies on it. `Reading` is all sources of one run: it takes the output line by line while the run prints, and reads what
the run left when it has ended. What reads files loads only where a study names some, or a run wrote some
(`files_written`, `written`). The rules for free-form lines are in `freeform`.
"""

from __future__ import annotations

import abc
import functools
import inspect
import itertools
import math
import os
import re
import stat
from collections import deque
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from isorun.errors import PluginError, said_by
from isorun.study import Sources
from isorun.study.records import Note, Series
from isorun.worker.redaction import without_colours

if TYPE_CHECKING:
    from isorun.sources.lines import LineMetrics

__all__ = [
    "EVENTS",
    "FORMS",
    "LOG",
    "MLFLOW",
    "NOTEBOOK",
    "OBJECT",
    "OBJECTS",
    "SQLITE",
    "TABLE",
    "TEXT",
    "WANDB",
    "AbstractSource",
    "Found",
    "PrintedJobs",
    "Reading",
    "describe",
    "files_written",
    "finished",
    "installed_source",
    "is_fresh",
    "is_plain_file",
    "may_hold_metrics",
    "merged",
    "several_trainings",
]

EXAMPLE_LENGTH = 60
_NARROWEST: Final = 14
_Asked = ParamSpec("_Asked")
_Answer = TypeVar("_Answer")
_Kept = TypeVar("_Kept")


@dataclass(frozen=True, slots=True)
class Found:
    """Metrics read from one or more places.

    series: every metric that has values, also those with a single one. results: the metrics that a source gave as
    final values. origins: where each came from ("stdout: name: value", "file: metrics.csv"). examples: the first
    line each was seen in. notes: what was not taken, and why.
    """

    series: Mapping[str, Series] = field(default_factory=dict)
    results: Mapping[str, float] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    examples: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    def only(self, names: Container[str]) -> Found:
        """The metrics of these names alone."""
        return self.renamed(lambda name: name if name in names else None)

    def without(self, names: Container[str]) -> Found:
        """The metrics of all other names."""
        return self.renamed(lambda name: None if name in names else name)

    def renamed(self, named: Callable[[str], str | None]) -> Found:
        """The same under the names that are given for theirs; those for which there is None are left out."""

        def those(values: Mapping[str, _Kept]) -> dict[str, _Kept]:
            return {new: value for name, value in values.items() if (new := named(name)) is not None}

        return Found(those(self.series), those(self.results), those(self.origins), those(self.examples), self.notes)


class AbstractSource(abc.ABC):
    """Reads metrics of one kind from what one run prints or leaves: lines of output, files, event logs.

    An object serves one run. It is made with the study's `Sources` and the settings that the study gives it by its
    name (`sources.installed.NAME`; none for isorun's own). `feed` then gets every line of output in order, while the
    run prints; `finish` is called once, when the process has gone.

    Promises, which `isorun.testing.source_contract` checks:
    - Nothing that a training prints or writes makes `feed` or `finish` raise, and nothing of it is executed.
    - A value is right or not there. What is doubtful is left out, and a note says what and why.
    - Every metric has a series and an origin; `results` holds those that the source knows to be final.
    - Memory is bounded, however much the run prints; the same lines give the same metrics.
    - Files that the run did not write (last changed before `since_unix`) are not read.
    - Of a run that was killed, what it left in the middle of a line is not read: `12.` may be half of 12.5. Of one that
      ended well (`whole`) the last line counts, whether or not it has an end.
    """

    def __init__(self, sources: Sources, settings: tuple[str, ...] = ()) -> None:
        self.sources = sources
        self.settings = settings

    def feed(self, line: str, seconds: float) -> None:  # noqa: B027 - a source of files has nothing to do here
        """Take in one line of output, without its end. seconds: since the run began."""

    @abc.abstractmethod
    def finish(self, working_folder: Path, since_unix: float, *, whole: bool = False) -> Found:
        """All metrics of the run. since_unix: the wall clock at its start. whole: whether it ended well by itself.

        A source that has no use for `whole` may leave it out of its own `finish`, and is then not told.
        """


def finished(source: AbstractSource, working_folder: Path, since_unix: float, *, whole: bool) -> Found:
    """What the source found; whether the run is whole is told to those that take the word."""
    taken = inspect.signature(source.finish).parameters
    if "whole" in taken or any(one.kind is one.VAR_KEYWORD for one in taken.values()):
        return source.finish(working_folder, since_unix, whole=whole)
    return source.finish(working_folder, since_unix)


def installed_source(name: str) -> type[AbstractSource]:
    """The source of another distribution (entry-point group `isorun.sources`); PluginError names what is wrong."""
    from isorun import plugins  # noqa: PLC0415  most studies name none

    found = plugins.load(plugins.SOURCES, name)
    if not (isinstance(found, type) and issubclass(found, AbstractSource)):
        raise PluginError(
            f"the source {name!r} cannot be used",
            found=f"{found!r}",
            allowed="a class derived from isorun.sources.AbstractSource",
        )
    return found


def merged(*parts: Found) -> Found:
    """All parts as one; where two name the same metric, the earlier part wins and a note says so."""
    series: dict[str, Series] = {}
    results: dict[str, float] = {}
    origins: dict[str, str] = {}
    examples: dict[str, str] = {}
    notes: list[Note] = []
    for part in parts:
        doubled = set(part.origins) & set(origins)
        notes += part.notes
        notes += [_doubled_note(name, origins[name], part.origins[name]) for name in sorted(doubled)]
        new = part.without(doubled)
        series |= new.series
        results |= new.results
        examples |= new.examples
        origins |= new.origins
    return Found(series, results, origins, examples, tuple(notes))


def _doubled_note(name: str, kept: str, dropped: str) -> Note:
    return Note("sources.doubled", f"metric {name!r} was found twice; kept the one from {kept}, not from {dropped}")


def describe(found: Found, better: Mapping[str, str] | None = None, *, width: int = 0) -> list[str]:
    """The lines of a table: each metric, how many values, the first and last of them, and where they were read.

    better: for each metric which direction is better, for a column of its own. width: the last columns are shortened to
    fit it, or the last one is left out; 0 for any width. Empty when nothing was found.
    """
    if not found.series:
        return []
    rows: list[tuple[str, ...]] = [("metric", "values", "first .. last", "read from", "first seen in")]
    rows += [_row(found, name) for name in sorted(found.series)]
    if better is not None:
        column = ["better", *(better.get(name, "") for name in sorted(found.series))]
        rows = [(row[0], cell, *row[1:]) for row, cell in zip(rows, column, strict=True)]
    widths = _widths(rows, width)
    return ["  ".join(map(_fitted, row, widths)).rstrip() for row in rows]


def _widths(rows: list[tuple[str, ...]], width: int) -> list[int]:
    """How wide each column is; the last one goes where shortening the last two is not enough."""
    whole = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    widths = list(whole)
    for place in (len(whole) - 1, len(whole) - 2):
        too_wide = sum(widths) + 2 * (len(widths) - 1) - width
        if width and too_wide > 0:
            widths[place] -= max(min(too_wide, widths[place] - _NARROWEST), 0)
    fits = not width or sum(widths) + 2 * (len(widths) - 1) <= width
    if fits:
        return widths
    room = width - sum(whole[:-2]) - 2 * (len(whole) - 2)
    return [*whole[:-2], max(min(whole[-2], room), _NARROWEST)]


def _fitted(cell: str, width: int) -> str:
    return cell.ljust(width) if len(cell) <= width else f"{cell[: width - 1]}…"


def _row(found: Found, name: str) -> tuple[str, str, str, str, str]:
    values = found.series[name].values
    span = f"{values[0]:.6g}" if len(values) == 1 else f"{values[0]:.6g} .. {values[-1]:.6g}"
    final = _final_shown(found.results[name], values[-1]) if name in found.results else ""
    example = _shortened(" ".join(found.examples.get(name, "").split()))
    origin = found.origins.get(name, "")
    is_made = _is_made_up(name, found.examples.get(name, ""))
    return (name, str(len(values)), span + final, f"{origin}, isorun's name" if is_made else origin, example)


def _final_shown(final: float, last: float) -> str:
    """A value that came after the last epoch is none of the series."""
    return " (final)" if repr(final) == repr(last) else f" ({final:.6g} final)"


def _is_made_up(name: str, line: str) -> bool:
    """Whether the line has the last words of a name but not the name: isorun put it together (eval_acc)."""
    printed = re.sub(r"[\s_-]+", "_", line.lower())
    parts = name.lower().split("_")
    ends = ("_".join(parts[start:]) for start in range(1, len(parts)))
    return "_".join(parts) not in printed and any(end and end in printed for end in ends)


def _shortened(text: str) -> str:
    return text if len(text) <= EXAMPLE_LENGTH else text[: EXAMPLE_LENGTH - 1] + "…"


class Reading:
    """The sources that a study asks for, for one run. feed: takes one line of output and the seconds since it began.

    A source of another distribution may break its promises: it is then switched off, and a note of the run says so.
    PluginError when one that the study names is not there.
    """

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._lines: LineMetrics | None = None
        self._files = _file_sources(sources)
        self._installed = [_Guarded(name, sources, settings) for name, settings in sources.installed.items()]
        self.feed: Callable[[str, float], None] = self._feed_first
        if sources.patterns:  # they may be wrong, and are told when they match nothing, whether or not a line comes
            self._read_lines()

    def _read_lines(self) -> None:
        """Be ready for lines. `feed` is called for every one: where only one listens, it is called itself."""
        from isorun.sources.lines import LineMetrics  # noqa: PLC0415  a training that logs need not print

        self._lines = LineMetrics(self._sources)
        self.feed = functools.partial(self._feed_all, self._lines) if self._installed else self._lines.feed

    def _feed_first(self, line: str, seconds: float) -> None:
        self._read_lines()
        self.feed(line, seconds)

    def _feed_all(self, lines: LineMetrics, line: str, seconds: float) -> None:
        lines.feed(line, seconds)
        for source in self._installed:
            source.feed(line, seconds)

    def latest(self) -> Mapping[str, Any]:
        """What lines gave since the last call, as one row: `t`, `step` and `values`; empty where nothing came."""
        return self._lines.latest() if self._lines else {}

    def finish(self, working_folder: Path, since_unix: float, *, whole: bool = False) -> tuple[Found, Found]:
        """What was found in files and by other distributions' sources, which wins, and what in the lines of output.

        whole: the run ended well by itself, so that nothing it wrote is half of something.
        """
        written = [source.finish(working_folder, since_unix, whole=whole) for source in self._files]
        written += [source.finish(working_folder, since_unix, whole=whole) for source in self._installed]
        return merged(*written), self._lines.finish() if self._lines else Found()


def _file_sources(sources: Sources) -> list[AbstractSource]:
    if not (sources.files or sources.tensorboard):
        return []
    from isorun.sources.files import DataFiles, EventFiles  # noqa: PLC0415  only where a study names files

    return [DataFiles(sources), EventFiles(sources)]


def _read_by(source: AbstractSource, working_folder: Path, since_unix: float, *, whole: bool) -> Found | None:
    """What a source found, if it is what the promise says: else it would fail the run that it reads. None: nothing."""
    found: object = finished(source, working_folder, since_unix, whole=whole)
    if found is None:
        return None
    if not isinstance(found, Found):
        raise TypeError(f"it gave {type(found).__name__}, and a Found is allowed")
    given: Mapping[str, object] = found.series
    for name, series in given.items():
        if not isinstance(series, Series):
            raise TypeError(f"the metric {name!r} is {type(series).__name__}, and a Series is allowed")
    return found


class _Guarded:
    """A source that isorun did not write: no training and no study ends because of it."""

    def __init__(self, name: str, sources: Sources, settings: tuple[str, ...]) -> None:
        self._name = name
        self._failure = ""
        self._source: AbstractSource | None = self._asked(installed_source(name), sources, settings)

    def feed(self, line: str, seconds: float) -> None:
        if self._source is not None:
            self._asked(self._source.feed, line, seconds)

    def finish(self, working_folder: Path, since_unix: float, *, whole: bool) -> Found:
        source = self._source
        found = None if source is None else self._asked(_read_by, source, working_folder, since_unix, whole=whole)
        if found is not None:
            return found
        why = self._failure or "it gave nothing"
        return Found(notes=(Note("source-failed", f"the source {self._name!r} failed and was not used: {why}"),))

    def _asked(self, ask: Callable[_Asked, _Answer], *words: _Asked.args, **named: _Asked.kwargs) -> _Answer | None:
        """What it answers; whatever it raises is kept for a note, and ends its part."""
        try:
            return ask(*words, **named)
        except Exception as error:  # another distribution may raise anything
            self._failure = said_by(error)
            self._source = None
            return None


_MOST_JOBS_TOLD: Final = 5


def several_trainings(jobs: Iterable[str]) -> Note:
    """That one run was several trainings, each with what it is called by."""
    names = sorted(jobs)
    shown = ", ".join(names[:_MOST_JOBS_TOLD]) + (" …" if len(names) > _MOST_JOBS_TOLD else "")
    return Note("several-trainings", f"{len(names)} trainings ({shown}), each with metrics of its own")


class PrintedJobs:
    """The lines of a run, read for metrics; those of each job of a hydra sweep by themselves.

    hydra tells of each job before it begins. Where jobs run side by side nobody can say whose line is whose: then
    nothing is read, and a note says so. A line that cannot be read is kept as the reason why, and ends the reading.
    """

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._readings = [Reading(sources)]
        self._jobs: list[str] = []
        self._held: dict[str, int] = {}
        self._in_turn = False
        self.error: Exception | None = None

    def feed(self, line: str, seconds: float) -> None:
        """Take the next line."""
        if self.error is not None:
            return
        try:
            if "HYDRA" not in line or not self._is_of_hydra(without_colours(line)):
                self._readings[-1].feed(line, seconds)
        except Exception as error:
            self.error = error

    def _is_of_hydra(self, line: str) -> bool:
        """Whether the line tells of jobs, and not of metrics."""
        if _IN_TURN.search(line):
            self._in_turn = True
        elif found := _JOB.search(line):
            from isorun.worker.jobs import job_name  # noqa: PLC0415  few trainings are sweeps

            self._jobs.append(job_name(found[2].strip(), int(found[1]), self._held))
            if len(self._jobs) > 1:
                self._readings.append(Reading(replace(self._sources, files=(), tensorboard=(), installed={})))
        else:
            return False
        return True

    def latest(self) -> Mapping[str, Any]:
        """What lines gave since the last call, as one row."""
        return self._readings[-1].latest()

    def finish(self, working_folder: Path, since_unix: float, *, whole: bool) -> tuple[Found, Found]:
        """What was found in files and by other distributions' sources, which wins, and what in the lines of output."""
        found = [reading.finish(working_folder, since_unix, whole=whole) for reading in self._readings]
        written, printed = found[0]
        if len(self._jobs) < 2:
            return written, printed
        note = several_trainings(self._jobs)
        if not self._in_turn:
            why = "their lines cannot be told apart, and were not read for metrics"
            return written, Found(notes=(Note(note.code, f"{note.message}; as they run side by side, {why}"),))
        parts = [
            part.renamed(functools.partial(_of_job, job=job)) for (_, part), job in zip(found, self._jobs, strict=True)
        ]
        return written, replace(merged(*parts), notes=(note, *(one for part in parts for one in part.notes)))


_IN_TURN: Final = re.compile(r"\[HYDRA\]\s*Launching \d+ jobs locally")
_JOB: Final = re.compile(r"\[HYDRA\]\s*#(\d{1,9}) : (.*)")


def _of_job(name: str, job: str) -> str:
    return f"{name}@{job}"


_MOST_ENTRIES: Final = 20_000
_MOST_OF_A_FOLDER: Final = 4_000
_MOST_WRITTEN: Final = 300
_MOST_WRITTEN_OF_A_FOLDER: Final = 40
_DEEPEST: Final = 10
TABLE, OBJECT, OBJECTS, LOG, TEXT = "CSV", "JSON", "JSON lines", "log", "text"
EVENTS, MLFLOW, WANDB, SQLITE, NOTEBOOK = "TensorBoard", "MLflow", "W&B", "SQLite", "notebook"
FORMS: Final = {
    **dict.fromkeys((".csv", ".tsv"), TABLE),
    **dict.fromkeys((".jsonl", ".ndjson"), OBJECTS),
    **dict.fromkeys((".db", ".sqlite", ".sqlite3"), SQLITE),
    ".json": OBJECT,
    ".log": LOG,
    ".txt": TEXT,
    ".wandb": WANDB,
    ".ipynb": NOTEBOOK,
}
"""What files are read as, by the ends of their names."""
_MAY_HOLD_METRICS: Final = (*FORMS, "-wal")
_OF_MLFLOW: Final = re.compile(r"/[0-9a-f]{32}/metrics(?:/|$)")
_OTHERS_FOLDERS: Final = frozenset(["node_modules", "site-packages", "__pycache__"])
_OF_A_STORE: Final = "claims.lock"


def is_fresh(modified: float, since: float) -> bool:
    """Whether a file was changed since. Clocks of file systems are coarse: some give whole seconds, ours some ms."""
    return modified >= (math.floor(since) if modified.is_integer() else since - 0.02)


def may_hold_metrics(name: str) -> bool:
    """Whether a file may, by its name: what is none of these is not opened, model files above all."""
    return name.lower().endswith(_MAY_HOLD_METRICS) or "tfevents" in name


def files_written(folder: Path, since: float, leave_out: Path | None = None) -> list[Path]:
    """Files below a folder that may hold metrics by their names, and were changed since. Nothing is opened.

    Bounded: of a folder with very many files, and of a tree with very many folders, not all are seen; folders that
    changed come first. Links are not followed, and hidden folders and `leave_out` are not entered, nor is any store of
    isorun's: another isorun may work in this folder, and what its runs tell is not of this one.
    """
    found: list[str] = []
    waiting = deque([(str(folder), 0)])
    left, avoided = _MOST_ENTRIES, str(leave_out)
    while waiting and left > 0 and len(found) < _MOST_WRITTEN:
        place, depth = waiting.popleft()
        if depth and Path(place, _OF_A_STORE).exists():
            continue
        files, folders, seen = _written_in(place, since)
        left -= seen
        found += files
        for path, is_changed in folders if depth < _DEEPEST else ():
            if path != avoided:
                (waiting.appendleft if is_changed else waiting.append)((path, depth + 1))
    return [Path(name) for name in sorted(found[:_MOST_WRITTEN])]


def _written_in(place: str, since: float) -> tuple[list[str], list[tuple[str, bool]], int]:
    """The files in one folder, the folders in it with whether each changed, and how many entries were looked at."""
    files: list[str] = []
    folders: list[tuple[str, bool]] = []
    seen, of_mlflow = 0, _OF_MLFLOW.search(place) is not None
    try:
        with os.scandir(place) as entries:
            for seen, entry in enumerate(itertools.islice(entries, _MOST_OF_A_FOLDER), start=1):  # noqa: B007
                name = entry.name
                may_hold = of_mlflow or may_hold_metrics(name)
                if may_hold and entry.is_file(follow_symlinks=False):
                    if len(files) < _MOST_WRITTEN_OF_A_FOLDER and is_fresh(_modified(entry), since):
                        files.append(entry.path)
                elif entry.is_dir(follow_symlinks=False) and name[0] != "." and name not in _OTHERS_FOLDERS:
                    folders.append((entry.path, is_fresh(_modified(entry), since)))
    except OSError:
        pass  # gone meanwhile, or not ours to read
    return files, folders, seen


def _modified(entry: os.DirEntry[str]) -> float:
    """When it was changed; before all runs where it has gone meanwhile, which hides nothing that lies beside it."""
    try:
        return entry.stat(follow_symlinks=False).st_mtime
    except OSError:
        return -math.inf


def is_plain_file(path: Path) -> bool:
    """Whether it is a file: no link, no pipe, nothing that could block or lead elsewhere."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
