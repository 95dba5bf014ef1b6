"""Files that a run wrote and nobody named: what they hold, which of it may be relied on, and which option reads it.

A file is looked at by its form, never run. It is relied on only where the run printed and logged no metric, and only
for what is surely a metric: by its name, with an epoch or a step for each of several values, and in one file, or in
files that agree. All else is offered: with the option that reads it, its values, and why it was not taken.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from isorun.errors import said_by
from isorun.sources import EVENTS, LOG, MLFLOW, OBJECTS, SQLITE, TABLE, TEXT, WANDB, Found, is_plain_file, merged
from isorun.sources.files import FileRead, begins_again, counts, file_form, read_data_text, reader_of
from isorun.sources.rows import is_metric, is_never
from isorun.sources.settings import is_an_aim
from isorun.study.records import Note, Series

__all__ = ["Looked", "WrittenFile", "found_among", "look", "relied_on", "values_shown"]

_SMALL: Final = 256 * 1024
_LARGE: Final = 64 * 1024 * 1024
_MOST_UNITS: Final = {False: 12, True: 100}
"""How many are read: where the run has metrics already, and where it has none."""
_MOST_BYTES: Final = {False: _SMALL, True: 4 * _LARGE}
_MOST_NAMES: Final = 2_000
_LONGEST_NAME: Final = 200
_VALUES_SHOWN, _VALUES_OFFERED = 4, 30
_SETTINGS: Final = re.compile(
    r"(?:.*[_-])?(?:config|configs|args|arguments|settings|params|parameters|hparams|options|overrides|metadata|index)"
    r"|tokenizer.*|vocab|package(?:-lock)?|special_tokens_map|wandb-.*|debug.*|requirements.*",
    re.IGNORECASE,
)
_KNOWN: Final = re.compile(
    r"(?:.*[_-])?(?:metrics?|results?|summary|history|progress|scores?|log|logs|evaluations?)|trainer_state",
    re.IGNORECASE,
)
_NO_METRIC: Final = re.compile(
    r"^system/|(?:^|[/_-])(?:lr|learning_rate|clip_range|momentum)(?:$|[/_-])", re.IGNORECASE
)
"""What trainings log of their settings and of the machine."""
_MLFLOW_RUN: Final = re.compile(r"^(?P<run>.*/[0-9a-f]{32}/metrics)/")
_ISORUNS_OWN: Final = re.compile(r"^\S[^\n]*: [\d,]+ runs? to do", re.MULTILINE)
"""What isorun itself told of the study, kept by `tee` in the folder that the runs work in."""
_NUMBERED: Final = re.compile(r"\d+")
_LONG_NUMBER: Final = re.compile(r"\d{6,}")
_ROUNDING: Final = 1e-5
_LINES_OF_ONE_ROW: Final = 2


_TRACKERS: Final = frozenset([EVENTS, MLFLOW, WANDB, SQLITE])
"""Whoever writes these calls the values metrics himself; of a notebook they are found as in a training's output."""


@dataclass(frozen=True, slots=True)
class Looked:
    """Where a run worked and how it ended, for who looks at its files.

    is_alone: no other run worked in the folder meanwhile. has_metrics: it printed or logged some, so that files are
    read only as far as that is cheap.
    """

    folder: Path
    run_folder: Path
    since: float
    whole: bool = False
    is_alone: bool = True
    has_metrics: bool = False


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """One file, or the files of one writer in one folder. found: what would be read from it.

    form: what it was read as. option: what reads it when it is asked for. why_not: why it is not relied on, empty where
    it may be.
    """

    shown: str
    form: str
    option: str
    found: Found
    why_not: str = ""


def found_among(paths: Iterable[Path], run: Looked, own: Found) -> Found:
    """What is relied on of a run's files, and notes on the rest. own: what the run printed and logged."""
    files = look(paths, run)
    if run.has_metrics:
        return Found(notes=(*_offers(files), *_differences(own, files)))
    relied = relied_on(files)
    taken = set(relied.origins.values())
    used = [file for file in files if not file.why_not and not taken.isdisjoint(file.found.origins.values())]
    notes = [Note("files.relied", f"{file.option} reads {values_shown(file.found)}") for file in used]
    return replace(relied, notes=(*relied.notes, *notes, *_offers(file for file in files if file not in used)))


def look(paths: Iterable[Path], run: Looked) -> list[WrittenFile]:
    """What files of a run hold; those without anything that may be a metric are left out."""
    units = sorted(_units(paths).items(), key=lambda item: (_rank(*item), item[0]))
    left = _MOST_BYTES[not run.has_metrics]
    written = []
    for name, files in units[: _MOST_UNITS[not run.has_metrics]]:
        sizes, form = [_size(path) for path in files], file_form(files[0])
        if sum(sizes) > left or max(sizes) > _LARGE:
            if _KNOWN.fullmatch(Path(name).stem) or form == WANDB:
                written.append(_unopened(name, files, run, sum(sizes)))
            continue
        left -= 0 if form == SQLITE else sum(sizes)
        read = _guarded(files, form, run)
        found = _named_well(read, sure=form in _TRACKERS)
        if found.series or any(note.code == "files.left-out" for note in found.notes):
            why_not = _why_not(found, files, run)
            written.append(WrittenFile(_shown(Path(name), run), form, _option(files, run), found, why_not))
    asked = Counter(file.option for file in written)
    return [file if asked[file.option] == 1 else replace(file, option=_option_of(file.shown)) for file in written]


def _guarded(files: list[Path], form: str, run: Looked) -> Found:
    """What is in them. Nobody asked for these files: whatever goes wrong with one, no run fails of it."""
    try:
        return _read_events(files, run) if form == EVENTS else merged(*(_read(path, run) for path in files))
    except Exception as error:
        return Found(notes=(Note("files.left-out", f"left out: {_shown(files[0], run)}: {said_by(error)}"),))


def _units(paths: Iterable[Path]) -> dict[str, list[Path]]:
    """The files by writer: all metrics of a run of MLflow are one, as are all event files of a folder."""
    units: dict[str, list[Path]] = {}
    for path in dict.fromkeys(_database_of(path) for path in paths):
        if _SETTINGS.fullmatch(path.stem) or not is_plain_file(path):
            continue
        of_mlflow = _MLFLOW_RUN.match(path.as_posix())
        name = of_mlflow["run"] if of_mlflow else str(path.parent) if file_form(path) == EVENTS else str(path)
        units.setdefault(name, []).append(path)
    return units


def _database_of(path: Path) -> Path:
    return path.with_name(path.name.removesuffix("-wal"))


def _rank(name: str, files: Sequence[Path]) -> int:
    """What surely holds metrics comes first, and texts that may say anything last."""
    form = file_form(files[0])
    if form in (LOG, TEXT):
        return 2
    return 0 if form in (EVENTS, MLFLOW, WANDB) or _KNOWN.fullmatch(Path(name).stem) else 1


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _unopened(name: str, files: list[Path], run: Looked, size: int) -> WrittenFile:
    why = f"it has {size / 2**20:,.0f} MiB and was not opened"
    return WrittenFile(_shown(Path(name), run), file_form(files[0]), _option(files, run), Found(), why)


def _read_events(paths: list[Path], run: Looked) -> Found:
    from isorun.sources.tensorboard import read_event_folder  # noqa: PLC0415  only where there are such files

    return read_event_folder(paths, run.since, lambda path: _shown(path, run))


def _read(path: Path, run: Looked) -> Found:
    try:
        modified = path.lstat().st_mtime
        file = FileRead(_shown(path, run), run.since, modified, run.whole, unasked=True)
        if reader := reader_of(path):
            return reader(path, file)
        return _read_text(path.read_text(encoding="utf-8-sig", errors="replace"), file_form(path), file)
    except OSError:
        return Found()


def _read_text(text: str, form: str, file: FileRead) -> Found:
    """Rows or a table; what a program wrote into a log is read like its output."""
    first = text.lstrip().partition("\n")[0]
    names = [word.strip(' \t"') for word in re.split("[,;\t]", first)]
    if form == TABLE:
        return _read_table(text, names, file)
    if form not in (LOG, TEXT) or first[:1] == "{":
        return read_data_text(text, OBJECTS if form in (LOG, TEXT) else form, file)
    if len(names) > 1 and any(map(counts, names)):  # Keras' CSVLogger is often given a .log
        return read_data_text(text, TABLE, file)
    if form == TEXT or _ISORUNS_OWN.search(text):
        return Found()
    from isorun.sources.lines import scan_text  # noqa: PLC0415  few runs leave a log

    found = scan_text(text)
    return replace(found, origins=dict.fromkeys(found.origins, f"file: {file.shown}"), notes=())


def _read_table(text: str, names: list[str], file: FileRead) -> Found:
    """What its header rules out is not parsed: tables of data and predictions are large."""
    metrics = [name for name in names if is_metric(name)]
    if not metrics:
        return Found()
    if not any(map(counts, names)) and text.count("\n") > _LINES_OF_ONE_ROW:
        why = f"left out: {metrics[0]}: several values without an epoch or a step ({file.shown})"
        return Found(notes=(Note("files.left-out", why),))
    return read_data_text(text, TABLE, file)


def _named_well(found: Found, *, sure: bool) -> Found:
    """Metrics alone, with names that can be printed. sure: who wrote them called them metrics."""

    def is_kept(name: str, series: Series) -> bool:
        if is_an_aim(name):
            return False
        is_named = is_metric(name) or (sure and not is_never(name) and not _NO_METRIC.search(name))
        return is_named and name.isprintable() and len(name) <= _LONGEST_NAME and not begins_again(series.steps)

    kept = {name: one for name, one in itertools.islice(found.series.items(), _MOST_NAMES) if is_kept(name, one)}
    again = [name for name, one in found.series.items() if begins_again(one.steps) and is_metric(name)]
    notes = [
        Note("files.left-out", f"left out: {name}: its steps begin again ({found.origins[name]})") for name in again[:3]
    ]
    if len(found.series) > _MOST_NAMES:
        message = f"left out: all but the first {_MOST_NAMES:,} of {len(found.series):,} names"
        notes.append(Note("files.left-out", f"{message} ({next(iter(found.origins.values()), '')})"))
    return replace(found.only(kept), notes=(*found.notes, *notes))


def _why_not(found: Found, files: list[Path], run: Looked) -> str:
    if not found.series:
        return next(note.message for note in found.notes if note.code == "files.left-out")
    if bad := next((note.message for note in found.notes if note.code == "files.bad-line"), ""):
        # Of output between rows nothing is lost; of a table with other numbers of cells the last row may be.
        return bad if file_form(files[0]) == TABLE else ""
    if limit := next((note.message for note in found.notes if note.code == "files.limit"), ""):
        return limit  # its last value is none of those that were read
    if not run.is_alone and not files[0].is_relative_to(run.run_folder):
        return "other runs worked in this folder at the same time: --isolate gives each its own"
    return ""


def _shown(path: Path, run: Looked) -> str:
    """The path as the user knows it; what cannot be printed is shown as ?, which as a pattern matches it, too."""
    places = ((run.folder, ""), (run.run_folder, "{run_dir}/"))
    for folder, start in places if run.folder.is_relative_to(run.run_folder) else reversed(places):
        if path.is_relative_to(folder):
            return _printable(start + path.relative_to(folder).as_posix())
    return _printable(str(path))


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _option(files: list[Path], run: Looked) -> str:
    """The option that reads these files in every run: numbers of folders and in names of files differ between runs."""
    return _option_of(_pattern(files[0], run))


def _option_of(pattern: str) -> str:
    return f"--file {shlex.quote(pattern)}"


def _pattern(path: Path, run: Looked) -> str:
    shown = _shown(path, run)
    if of_mlflow := _MLFLOW_RUN.match(f"/{shown}"):
        return of_mlflow["run"][1:].rpartition("/")[0].rpartition("/")[0].rpartition("/")[0] + "/*/*/metrics/**/*"
    if file_form(path) == WANDB:
        return f"{Path(shown).parent.parent.as_posix()}/*/*.wandb".removeprefix("./")
    if path.is_absolute() and shown.startswith("/"):
        return shown
    folder, _, name = shown.rpartition("/")
    name = re.sub(r"tfevents.*", "tfevents*", name) if file_form(path) == EVENTS else _LONG_NUMBER.sub("*", name)
    start, folder = ("{run_dir}/", folder[9:].lstrip("/")) if folder.startswith("{run_dir}") else ("", folder)
    folder = _NUMBERED.sub("*", folder)
    return f"{start}{folder}/{name}" if folder else f"{start}{name}"


def relied_on(files: Sequence[WrittenFile]) -> Found:
    """What may be relied on of all files that have no reason against it."""
    parts = [replace(file, found=found) for file, found in _told_apart([one for one in files if not one.why_not])]
    holders: dict[str, list[WrittenFile]] = {}
    for part in parts:
        for name in part.found.series:
            holders.setdefault(name, []).append(part)
    taken: dict[str, WrittenFile] = {}
    notes: list[Note] = []
    for name, having in holders.items():
        longest = max(having, key=lambda part: (len(part.found.series[name].values), len(part.found.series)))
        other = next((one for one in having if not _agree(one.found.series[name], longest.found.series[name])), None)
        if other is None:
            taken[name] = longest
        else:
            notes.append(_disagreement(name, longest, other))
    kept = [part.found.only({name for name, holder in taken.items() if holder is part}) for part in parts]
    return replace(merged(*kept), notes=(*notes, *(note for part in kept for note in part.notes)))


def _disagreement(name: str, one: WrittenFile, other: WrittenFile) -> Note:
    values = (f"{part.found.series[name].values[-1]:.6g} in {part.shown}" for part in (one, other))
    return Note("files.left-out", f"left out: {name}: {' and '.join(values)}: nobody knows which is meant")


def _told_apart(files: list[WrittenFile]) -> list[tuple[WrittenFile, Found]]:
    """Files of one form in folders that differ (train/, validation/): names get the folder, unless that is numbered."""
    groups: dict[str, list[WrittenFile]] = {}
    for file in files:
        groups.setdefault(file.form if file.form in _TRACKERS else Path(file.shown).name, []).append(file)
    return [item for group in groups.values() for item in _prefixed(group)]


def _prefixed(group: list[WrittenFile]) -> list[tuple[WrittenFile, Found]]:
    names = [name for file in group for name in file.found.series]
    if len(set(names)) == len(names):
        return [(file, file.found) for file in group]
    folders = [_folder_of(file) for file in group]
    top = os.path.commonpath(folders) if len(folders) > 1 else ""
    prefixes = [os.path.relpath(folder, top or ".") for folder in folders]
    if any(prefix == "." or _NUMBERED.search(prefix) for prefix in prefixes):
        return [(file, file.found) for file in group]
    return [(file, file.found.renamed(f"{prefix}/".__add__)) for file, prefix in zip(group, prefixes, strict=True)]


def _folder_of(file: WrittenFile) -> str:
    is_folder = file.form in (EVENTS, MLFLOW)
    return file.shown if is_folder else Path(file.shown).parent.as_posix()


def _agree(one: Series, other: Series) -> bool:
    """Whether the shorter one is the beginning or the end of the other, but for single precision."""
    short, long = sorted((one.values, other.values), key=len)
    count = len(short)
    return any(all(map(_close, short, part)) for part in (long[:count], long[-count:]))


def _close(one: float, other: float) -> bool:
    both_nan = math.isnan(one) and math.isnan(other)
    return both_nan or math.isclose(one, other, rel_tol=_ROUNDING)


def _differences(printed: Found, files: Iterable[WrittenFile]) -> list[Note]:
    """Metrics that were printed or logged and whose last value no row of a file has, but for rounding."""
    notes = []
    for file in files:
        plain = {_plain(name): (name, series.values) for name, series in file.found.series.items()}
        for name, series in printed.series.items():
            shown = printed.results.get(name, series.values[-1])
            other, values = plain.get(_plain(name), ("", ()))
            if other and math.isfinite(shown) and not any(_is_rounded(value, shown) for value in values):
                last = f"{values[-1]:.6g}"
                message = f"{name} was {shown:.6g} at the end, and {file.shown} ends with {last}, in no row the same"
                notes.append(Note("files.differs", message))
    return notes


def _plain(name: str) -> str:
    return re.sub(r"\W+", "_", name.lower())


def _is_rounded(exact: float, shown: float) -> bool:
    decimals = len(repr(shown).partition("e")[0].partition(".")[2])
    return any(abs(exact * factor - shown) <= 1.001 * 10.0**-decimals for factor in (1, 100, 0.01)) or math.isclose(
        exact, shown, rel_tol=1e-4
    )


def _offers(files: Iterable[WrittenFile]) -> list[Note]:
    """For the record: how each file would be read, and what it holds or why it was not read."""
    return [
        Note("files.offered", f"{file.option} would read {values_shown(file.found, _VALUES_OFFERED)}{_because(file)}")
        if file.found.series
        else Note("files.unread", f"{file.option} was not read: {file.why_not}")
        for file in files
    ]


def _because(file: WrittenFile) -> str:
    return f" ({file.why_not})" if file.why_not else ""


def values_shown(found: Found, most: int = _VALUES_SHOWN) -> str:
    """The first metrics with their last values."""
    names = sorted(found.series, key=lambda name: (not is_metric(name), name))
    listed = [f"{name} {found.results.get(name, found.series[name].values[-1]):.6g}" for name in names[:most]]
    more = len(names) - len(listed)
    return ", ".join([*listed, *([f"{more} more"] if more else [])])
