"""TensorBoard: folders of event files, read without TensorBoard. tensorboard:runs, or the folder of one run.

A run is a folder with event files; event files in folders below it belong to it, as do `train` and `validation` side by
side, whose names come before those of their scalars. Hyper-parameters are those of the HParams plugin.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

from isorun.errors import InputError
from isorun.share.trackers import (
    MICROSECONDS,
    AbstractTracker,
    Chosen,
    GrowingSeries,
    TrackedRun,
    left_out_times,
    shown_where,
)
from isorun.share.trackers.foreign_files import plain_files, refuse_missing
from isorun.sources import tensorboard as event_files
from isorun.sources.tensorboard import MalformedMessage, Record, TornRecord, fields, scalars_in
from isorun.study.records import RunState

__all__ = ["TensorBoard"]

_EVENTS: Final = "tfevents"
_SPLITS: Final = frozenset(("train", "training", "val", "valid", "validation", "test", "eval", "evaluation"))
_WALL_TIME, _SUMMARY, _VALUE, _TAG, _METADATA = 1, 5, 1, 1, 9
_PARTS: Final = {
    4: "the graph of the model",
    6: "messages of a log",
    8: "what one step cost (run metadata)",
    9: "the graph of the model",
}
"""Parts of an event that have no place in a run, by number."""
_HPARAMS: Final = "hparams"
_SUCCESS, _FAILURE = 1, 2
_LATEST: Final = 1e12


class TensorBoard(AbstractTracker):
    """Runs of TensorBoard. An experiment is the folder that is named; a run is called by its folder below it."""

    name = "tensorboard"
    where_hint = "tensorboard:runs, the folder that tensorboard --logdir is given"

    def read(self, chosen: Chosen) -> Iterator[TrackedRun]:
        """Every run, by its folder."""
        top = Path(self.where)
        refuse_missing(top, "the folder of TensorBoard")
        files = [top] if top.is_file() else [path for path in plain_files(top) if _EVENTS in path.name]
        if not files:
            raise InputError(
                f"there is no event file in {shown_where(self.where)}",
                found=f"no file with {_EVENTS!r} in its name",
                allowed=self.where_hint,
            )
        if top.is_file() and _EVENTS not in top.name:
            _refuse_other_file(top)
        root = top.parent if top.is_file() else top
        folders = _by_run(files, root)
        names = {_shown(folder, root): _shown(folder, root) for folder in folders}
        wanted = chosen.only(names, "run", self.place)
        silent = 0
        for folder, paths in sorted(folders.items()):
            if _shown(folder, root) in wanted:
                reading = _Reading(folder, root)
                for path in paths:
                    reading.take(path)
                silent += reading.state is None
                yield reading.run()
        if silent:
            self.notes.append(f"TensorBoard does not tell how runs end: {silent} that may go on count as finished")


def _refuse_other_file(path: Path) -> None:
    """A file that is named may have any name; one without a single event would become a run that nobody made."""
    found = "no record in it"
    try:
        with path.open("rb") as file:
            if next(event_files.records(file), None) is not None:
                return
    except TornRecord as error:
        found = str(error)
    except OSError as error:
        found = error.strerror or str(error)
    raise InputError(f"{path} is no event file", found=found, allowed=TensorBoard.where_hint)


def _shown(folder: Path, root: Path) -> str:
    relative = folder.relative_to(root).as_posix()
    return root.resolve().name if relative == "." else relative


def _by_run(files: list[Path], root: Path) -> dict[Path, list[Path]]:
    """The files of each run, by its folder."""
    holding = {path.parent for path in files}
    runs: dict[Path, list[Path]] = {}
    for path in files:
        folder = path.parent
        above = [one for one in (folder, *folder.parents) if one in holding and one.is_relative_to(root)]
        run = above[-1]
        if run.name.lower() in _SPLITS and run != root:
            run = run.parent
        runs.setdefault(run, []).append(path)
    return runs


class _Reading:
    """One run, as its files are read in the order of their names."""

    def __init__(self, folder: Path, root: Path) -> None:
        self._folder = folder
        self._name, self._experiment = _shown(folder, root), root.resolve().name or "tensorboard"
        self._axes: dict[str, GrowingSeries] = {}
        self._params: dict[str, Any] = {}
        self._left_out: dict[str, int] = {}
        self._times: list[int] = []
        self._host = ""
        self.state: RunState | None = None

    def take(self, path: Path) -> None:
        """All events of a file, up to the first that cannot be trusted."""
        below = path.parent.relative_to(self._folder).as_posix()
        prefix = "" if below == "." else f"{below}/"
        parts = path.name.split(".")
        place = next((at for at, part in enumerate(parts) if _EVENTS in part), 0)
        self._host = self._host or ".".join(parts[place + 2 : -2])
        try:
            with path.open("rb") as file:
                for record in event_files.records(file):
                    self._take_event(record, prefix)
        except (TornRecord, MalformedMessage, struct.error) as error:
            self._leave_out(f"what follows a torn record of {path.name} ({error})")
        except OSError as error:
            self._leave_out(f"{path.name}, which cannot be read: {error.strerror or error}")

    def _take_event(self, record: Record, prefix: str) -> None:
        scalars = list(scalars_in(record.data))
        if scalars and not record.checks:
            raise TornRecord(f"byte {record.offset}: the checksum of a record is wrong")
        for scalar in scalars:
            time = round(scalar.wall_time * MICROSECONDS) if abs(scalar.wall_time) < _LATEST else 0
            self._axes.setdefault(prefix + scalar.tag, GrowingSeries()).add(scalar.step, time, scalar.value)
            self._times.append(time)
        self._take_other(record.data, {scalar.tag for scalar in scalars})

    def _take_other(self, event: bytes, taken: Collection[str]) -> None:
        """What an event holds beside scalars. taken: their tags."""
        for number, _, value in fields(event):
            if number == _WALL_TIME and isinstance(value, bytes) and len(value) == 8:
                seconds = struct.unpack("<d", value)[0]
                self._times += [round(seconds * MICROSECONDS)] if not taken and abs(seconds) < _LATEST else []
            elif number in _PARTS:
                self._leave_out(_PARTS[number])
            elif number == _SUMMARY and isinstance(value, bytes):
                for part, _, item in fields(value):
                    if part == _VALUE and isinstance(item, bytes):
                        self._take_value(item, taken)

    def _take_value(self, message: bytes, taken: Collection[str]) -> None:
        tag, plugin, content = "", "", b""
        for number, _, value in fields(message):
            if number == _TAG and isinstance(value, bytes):
                tag = value.decode("utf-8", "replace")
            elif number == _METADATA and isinstance(value, bytes):
                plugin, content = _plugin(value)
        if plugin == _HPARAMS:
            self._take_hparams(content)
        elif tag not in taken:
            what = f"{plugin or 'a value that is no scalar'} logged as {tag}"
            self._leave_out(what if tag else "a value without a tag")

    def _take_hparams(self, content: bytes) -> None:
        """What a session began with, and how it ended."""
        for number, _, value in fields(content):
            if number == 3 and isinstance(value, bytes):
                for part, _, entry in fields(value):
                    if part == 1 and isinstance(entry, bytes):
                        name, item = _entry(entry)
                        self._params[name] = item
            elif number == 4 and isinstance(value, bytes):
                status = next((word for part, _, word in fields(value) if part == 1), 0)
                self.state = {_SUCCESS: RunState.FINISHED, _FAILURE: RunState.FAILED}.get(int(status), self.state)

    def _leave_out(self, what: str) -> None:
        self._left_out[what] = self._left_out.get(what, 0) + 1

    def run(self) -> TrackedRun:
        """The run; who began when is what tells it from others of the same name."""
        times = [time for time in self._times if time > 0]
        started = min(times, default=None)
        state = self.state or RunState.FINISHED
        return TrackedRun(
            key=(Path(self._name).name, str(started or 0)),
            experiment=self._experiment,
            name=self._name,
            state=state,
            reason="the HParams plugin says that it failed" if state is RunState.FAILED else "",
            started=started,
            ended=max(times, default=None),
            params=self._params,
            series={name: axis.series() for name, axis in sorted(self._axes.items())},
            host=self._host,
            left_out=tuple(left_out_times(what, count) for what, count in self._left_out.items()),
        )


def _plugin(metadata: bytes) -> tuple[str, bytes]:
    """The name of the plugin that a value is for, and what it is told."""
    for number, _, value in fields(metadata):
        if number == 1 and isinstance(value, bytes):
            parts = {part: item for part, _, item in fields(value) if isinstance(item, bytes)}
            return parts.get(1, b"").decode("utf-8", "replace"), parts.get(2, b"")
    return "", b""


def _entry(message: bytes) -> tuple[str, Any]:
    """A name and a google.protobuf.Value."""
    name, value = "", None
    for number, _, content in fields(message):
        if number == 1 and isinstance(content, bytes):
            name = content.decode("utf-8", "replace")
        elif number == 2 and isinstance(content, bytes):
            for kind, _, item in fields(content):
                if kind == 2 and isinstance(item, bytes) and len(item) == 8:
                    value = struct.unpack("<d", item)[0]
                elif kind == 3 and isinstance(item, bytes):
                    value = item.decode("utf-8", "replace")
                elif kind == 4:
                    value = bool(item)
    return name, value
