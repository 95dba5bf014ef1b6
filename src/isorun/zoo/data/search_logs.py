"""The histories of AutoML searches that a paper published, as searches, trials and epochs.

They come in two forms: prepared tables (trials.csv, epochs.csv.gz, best_so_far.csv), and the authors' own log.pkl and
search_log.pkl, read as plain data and without unpickling. Both give the same records.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from isorun.errors import DataError
from isorun.zoo.data.literal_pickles import PlainValue, read_literals

__all__ = [
    "CASES",
    "TUNERS",
    "Epoch",
    "LoggedSearch",
    "LoggedTrial",
    "RunningBest",
    "SearchLogs",
    "checked_search",
    "load_originals",
    "load_search_logs",
    "load_tables",
]

CASES: Final = {"Case1-poorperformance": "I", "Case2-ineffectiveSearch": "II"}
TUNERS: Final = {"bayes": "bayesian", "form": "dream", "TPE": "tpe", "Grid": "grid"}
"""One name for each case and tuner: the logs were written at different times, and call one tuner by two names."""

_MOST_BYTES: Final = 64 * 2**20
_TRIALS: Final = ("case", "dataset", "tuner", "trial", "key", "elapsed_s", "score", "epochs")
_EPOCHS: Final = ("case", "tuner", "trial", "epoch", "loss", "accuracy", "val_loss", "val_accuracy")
_BEST: Final = ("case", "tuner", "axis", "index", "best_score")


@dataclass(frozen=True, slots=True)
class Epoch:
    """What one epoch of a trial's training gave."""

    loss: float
    accuracy: float
    val_loss: float
    val_accuracy: float


@dataclass(frozen=True, slots=True)
class LoggedTrial:
    """One model that a search tried. elapsed_s: from the start of the search to the end of this trial."""

    number: int
    key: str
    elapsed_s: float
    score: float
    epochs: tuple[Epoch, ...] = ()


@dataclass(frozen=True, slots=True)
class LoggedSearch:
    """One search by one tuner, its trials in order. data: the data set, empty where the log does not name it."""

    case: str
    tuner: str
    data: str
    trials: tuple[LoggedTrial, ...]


@dataclass(frozen=True, slots=True)
class RunningBest:
    """A running best as the authors wrote it down: values[i] after trial i, or after hour i + 1 (axis "time")."""

    case: str
    tuner: str
    axis: str
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class SearchLogs:
    """All searches, the running bests the authors kept beside them, and where both come from."""

    searches: tuple[LoggedSearch, ...]
    running: tuple[RunningBest, ...]
    origin: str

    def of_case(self, case: str) -> Mapping[str, LoggedSearch]:
        """The searches of a case by tuner."""
        return {search.tuner: search for search in self.searches if search.case == case}


def checked_search(search: LoggedSearch, file: str) -> LoggedSearch:
    """The search, or an error when its trials are not 0, 1, 2, … in order of time with finite numbers."""
    where = f"{file}: the search by {search.tuner} of case {search.case}"
    numbers = [trial.number for trial in search.trials]
    if not numbers or numbers != list(range(len(numbers))):
        gap = next((at for at, number in enumerate(numbers) if at != number), len(numbers))
        raise _damaged(f"{where} has no trial {gap}", f"{len(numbers)} trials", "trials 0, 1, 2, … in order")
    for before, trial in zip((None, *search.trials), search.trials, strict=False):
        if not (math.isfinite(trial.score) and math.isfinite(trial.elapsed_s) and trial.elapsed_s >= 0):
            found = f"score {trial.score}, time {trial.elapsed_s}"
            raise _damaged(f"{where}, trial {trial.number}, has no usable score or time", found, "finite numbers")
        if before is not None and trial.elapsed_s < before.elapsed_s:
            found = f"{trial.elapsed_s:g} s after {before.elapsed_s:g} s"
            raise _damaged(f"{where}, trial {trial.number}, ended before the one before it", found, "times in order")
    return search


def load_tables(folder: Path) -> SearchLogs:
    """The prepared tables of a folder; an DataError says what is missing or does not fit together."""
    epochs = _epochs(folder / "epochs.csv.gz")
    trials: dict[tuple[str, str, str], list[LoggedTrial]] = defaultdict(list)
    file = folder / "trials.csv"
    for line in _lines(file, _TRIALS):
        number = line.whole("trial")
        key = (line.name("case", CASES), line.name("tuner", TUNERS))
        taken = epochs.pop((*key, number), ())
        if len(taken) != line.whole("epochs"):
            found = f"{len(taken)} in epochs.csv.gz"
            raise _damaged(f"{line.where}: the epochs of the trial are not all there", found, line.cell("epochs"))
        trial = LoggedTrial(number, line.cell("key"), line.number("elapsed_s"), line.number("score"), taken)
        trials[(*key, line.cell("dataset"))].append(trial)
    if epochs:
        case, tuner, number = next(iter(epochs))
        raise _damaged(f"{file} lacks trials that have epochs", f"{tuner}, case {case}, trial {number}", "all trials")
    searches = [LoggedSearch(case, tuner, data, tuple(rows)) for (case, tuner, data), rows in trials.items()]
    if not searches:
        raise _damaged(f"{file} is empty", "no trial", "at least one search")
    running = _running(folder / "best_so_far.csv")
    return SearchLogs(
        tuple(checked_search(search, str(file)) for search in searches), running, f"tables in {folder.name}"
    )


def _epochs(file: Path) -> dict[tuple[str, str, int], tuple[Epoch, ...]]:
    found: dict[tuple[str, str, int], list[Epoch]] = defaultdict(list)
    for line in _lines(file, _EPOCHS):
        epochs = found[line.name("case", CASES), line.name("tuner", TUNERS), line.whole("trial")]
        if line.whole("epoch") != len(epochs):
            raise _damaged(f"{line.where}: an epoch is missing", line.cell("epoch"), f"epoch {len(epochs)}")
        epochs.append(Epoch(*(line.number(column) for column in _EPOCHS[4:])))
    return {key: tuple(epochs) for key, epochs in found.items()}


def _running(file: Path) -> tuple[RunningBest, ...]:
    found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for line in _lines(file, _BEST):
        values = found[line.name("case", CASES), line.name("tuner", TUNERS), line.cell("axis")]
        if line.whole("index") != len(values):
            raise _damaged(f"{line.where}: a point is missing", line.cell("index"), f"index {len(values)}")
        values.append(line.number("best_score"))
    return tuple(RunningBest(*key, tuple(values)) for key, values in found.items())


@dataclass(frozen=True, slots=True)
class _Line:
    where: str
    cells: Mapping[str, str | None]

    def cell(self, column: str) -> str:
        text = self.cells[column]
        if text is None:
            raise _damaged(f"{self.where} is cut short", f"no {column}", "all columns")
        return text

    def name(self, column: str, names: Mapping[str, str]) -> str:
        text = self.cell(column)
        return names.get(text, text)

    def number(self, column: str) -> float:
        try:
            return float(self.cell(column))
        except ValueError as error:
            raise _damaged(f"{self.where}: {column} is no number", repr(self.cell(column)), "a number") from error

    def whole(self, column: str) -> int:
        if not self.cell(column).isdecimal():
            raise _damaged(f"{self.where}: {column} is no count", repr(self.cell(column)), "0, 1, 2, …")
        return int(self.cell(column))


def _lines(file: Path, columns: Sequence[str]) -> Iterator[_Line]:
    reader = csv.DictReader(io.StringIO(_text(file), newline=""))
    try:
        missing = [column for column in columns if column not in (reader.fieldnames or ())]
        if missing:
            raise _damaged(f"{file} lacks columns", f"no {', '.join(missing)}", ", ".join(columns))
        for row in reader:
            yield _Line(f"{file}, line {reader.line_num}", row)
    except csv.Error as error:
        raise _damaged(f"{file} is no table", str(error), "comma-separated values") from error


def _text(file: Path) -> str:
    """The text of a file, unpacked where its name ends in .gz, and never more than a log can be."""
    try:
        with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
        text = content.decode("utf-8")
    except FileNotFoundError as error:
        raise _damaged(f"{file} is missing", "no such file", "trials.csv, epochs.csv.gz, best_so_far.csv") from error
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise _damaged(f"cannot read {file}", str(error), "a whole file") from error
    if len(content) > _MOST_BYTES:
        raise _damaged(f"{file} is too large", "more bytes", f"{_MOST_BYTES:,} bytes")
    return text


def _damaged(what: str, found: str, allowed: str) -> DataError:
    return DataError(what, found=found, allowed=allowed, hint="isorun data get dream-search-logs")


_HISTORY: Final = ("loss", "accuracy", "val_loss", "val_accuracy")


def load_search_logs(folder: Path) -> SearchLogs:
    """The logs of a folder in whichever form they are there: prepared tables, or the authors' files."""
    return load_tables(folder) if (folder / "trials.csv").is_file() else load_originals(folder)


def load_originals(folder: Path) -> SearchLogs:
    """Searches from every <case>/<tuner>/log.pkl below a folder, running bests from every <case>/search_log.pkl."""
    logs = sorted(folder.rglob("log.pkl"))
    if not logs:
        raise DataError(
            f"{folder} holds no search log",
            found="neither trials.csv nor a log.pkl",
            allowed="one of the two forms",
            hint="isorun data get dream-search-logs",
        )
    running = [best for file in sorted(folder.rglob("search_log.pkl")) for best in _original_running(file)]
    return SearchLogs(tuple(_search(file) for file in logs), tuple(running), f"the authors' files in {folder.name}")


def _search(file: Path) -> LoggedSearch:
    log = _mapping(read_literals(file), file, "the log")
    entries = {key: entry for key, entry in log.items() if isinstance(entry, dict) and "score" in entry}
    trials = sorted((_trial(str(key), entry, file) for key, entry in entries.items()), key=lambda trial: trial.number)
    tuner = file.parent.name.removeprefix("c100_")
    data = log.get("data", "")
    search = LoggedSearch(_case(file.parent.parent), TUNERS.get(tuner, tuner), str(data), tuple(trials))
    return checked_search(search, str(file))


def _trial(key: str, entry: Mapping[Any, PlainValue], file: Path) -> LoggedTrial:
    """A trial; its key is its number, or starts with it ("4-0.8-18efd3064e7f": number, score, hash)."""
    number = key.split("-", 1)[0]
    if not number.isdecimal():
        raise _unexpected(file, f"the trial {key!r}", "a key that starts with the trial's number")
    where = f"trial {key}"
    history = _mapping(entry.get("history"), file, f"the history of {where}")
    columns = [_numbers(history.get(name), file, f"{name} of {where}") for name in _HISTORY]
    if len({len(column) for column in columns}) != 1:
        raise _unexpected(file, f"the history of {where} with {[len(c) for c in columns]} epochs", "equally many")
    time, score = (_numbers([entry.get(name)], file, f"{name} of {where}")[0] for name in ("time", "score"))
    epochs = tuple(Epoch(*values) for values in zip(*columns, strict=True))
    return LoggedTrial(int(number), key, time, score, epochs)


def _original_running(file: Path) -> Iterator[RunningBest]:
    log = _mapping(read_literals(file), file, "the log")
    for tuner, axes in ((name, entry) for name, entry in log.items() if isinstance(entry, dict)):
        for axis in ("trial", "time"):
            entry = _mapping(axes.get(axis), file, f"{tuner}, {axis}")
            values = _numbers(entry.get("history"), file, f"the history of {tuner} by {axis}")
            yield RunningBest(_case(file.parent), TUNERS.get(tuner, tuner), axis, values)


def _case(folder: Path) -> str:
    return CASES.get(folder.name, folder.name)


def _mapping(value: PlainValue, file: Path, what: str) -> Mapping[Any, PlainValue]:
    if not isinstance(value, dict):
        raise _unexpected(file, f"{what} as {type(value).__name__}", "a dict")
    return value


def _numbers(value: PlainValue, file: Path, what: str) -> tuple[float, ...]:
    if not isinstance(value, list) or any(type(item) not in (int, float) for item in value):
        raise _unexpected(file, f"{what} that is not there or no number", "numbers")
    return tuple(float(item) for item in value)


def _unexpected(file: Path, found: str, allowed: str) -> DataError:
    return DataError(f"{file} is not a search log as the authors wrote them", found=found, allowed=allowed)
