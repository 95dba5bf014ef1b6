"""The DREAM authors' own search logs: their log.pkl and search_log.pkl, as plain data and without unpickling."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from isorun.errors import DataError
from isorun.zoo.data.searches.literal_pickles import PlainValue, read_literals
from isorun.zoo.data.searches.search_logs import (
    CASES,
    TUNERS,
    Epoch,
    RunningBest,
    Search,
    SearchLogs,
    Trial,
    checked_search,
    load_tables,
)

__all__ = ["load_originals", "load_search_logs"]

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
    running = [best for file in sorted(folder.rglob("search_log.pkl")) for best in _running(file)]
    return SearchLogs(tuple(_search(file) for file in logs), tuple(running), f"the authors' files in {folder.name}")


def _search(file: Path) -> Search:
    log = _mapping(read_literals(file), file, "the log")
    entries = {key: entry for key, entry in log.items() if isinstance(entry, dict) and "score" in entry}
    trials = sorted((_trial(str(key), entry, file) for key, entry in entries.items()), key=lambda trial: trial.number)
    tuner = file.parent.name.removeprefix("c100_")
    data = log.get("data", "")
    search = Search(_case(file.parent.parent), TUNERS.get(tuner, tuner), str(data), tuple(trials))
    return checked_search(search, str(file))


def _trial(key: str, entry: Mapping[Any, PlainValue], file: Path) -> Trial:
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
    return Trial(int(number), key, time, score, epochs)


def _running(file: Path) -> Iterator[RunningBest]:
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
