"""Weights & Biases: folders of runs that were logged offline (or online, which leave the same log), read and written.

wandb:./wandb, or one run's folder or log. The log (`run-ID.wandb`) is read without the wandb package: records of
protocol buffers in the framing of LevelDB's log; numbers of fields are those of wandb_internal.proto, which is public.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from isorun.errors import InputError
from isorun.share.trackers import (
    MICROSECONDS,
    AbstractTracker,
    Chosen,
    GrowingSeries,
    TrackedRun,
    WrittenRuns,
    left_out_times,
    number_of,
    shown_where,
)
from isorun.share.trackers.foreign_files import plain_files, refuse_missing
from isorun.sources.objects import flattened
from isorun.sources.tensorboard import MalformedMessage, TornRecord, fields, signed
from isorun.sources.trackers import WANDB_LOG, wandb_records
from isorun.study.records import RunState

__all__ = ["KEPT", "NAMED_FIELDS", "STEP", "Wandb"]

_UPDATE, _REMOVE = 1, 2
_KEY, _NESTED, _VALUE = 1, 2, 16
NAMED_FIELDS: Final = {2: "entity", 6: "group", 7: "job_type", 9: "notes", 12: "sweep"}
"""Fields of a run that become tags `wandb.group`, `wandb.notes` and so on."""
KEPT: Final = "isorun"
"""Where in a config an export keeps what W&B has no place for: tags that have a value, states and their reasons."""
STEP: Final = "isorun_step"
"""The step of a row, where it is none that W&B takes: its own have to be whole and to grow."""
_LONGEST_VALUE: Final = 1 << 20
_INTERNAL: Final = frozenset(("_step", "_runtime", "_timestamp", "_wandb"))
"""What W&B itself writes into history and summary, beside what is logged."""
_OTHERS: Final = {
    4: "lines of console output",
    7: "system metrics",
    9: "logs of TensorBoard that it followed",
    10: "alerts",
    13: "lines of console output",
    23: "that it was preempted",
    25: "which artifacts it used",
}
"""Records that have no place in a run, by number."""


class Wandb(AbstractTracker):
    """Runs of Weights & Biases. An experiment is a project."""

    name = "wandb"
    where_hint = "wandb:./wandb, or the folder or the .wandb file of one run"
    writes = True

    def read(self, chosen: Chosen) -> Iterator[TrackedRun]:
        """Every run, in the order in which they began; parts of one that was resumed are one."""
        path = Path(self.where)
        refuse_missing(path, "the folder of W&B", "wandb:./wandb, as WANDB_DIR or the working folder has it")
        logs = [path] if path.is_file() else [file for file in plain_files(path) if file.suffix == ".wandb"]
        if not logs:
            raise InputError(
                f"there is no run of W&B in {shown_where(self.where)}",
                found="no file that ends in .wandb",
                allowed=self.where_hint,
                hint="runs that were logged online alone are on its server: import what its API exports as csv:FILE",
            )
        parts: dict[tuple[str, str], _Log] = {}
        for file in logs:
            log = _Log(file)
            known = parts.get(log.key)
            if known is None:
                parts[log.key] = log
            else:
                known.goes_on_with(log)
        wanted = chosen.only({log.project: log.project for log in parts.values()}, "project", self.place)
        runs = [log.run() for log in parts.values() if log.project in wanted]
        yield from sorted(runs, key=lambda run: (run.started or 0, run.key))

    def write(self, runs: Iterable[TrackedRun], chosen: Chosen) -> WrittenRuns:  # noqa: ARG002 - it needs no package
        """Folders `offline-run-…` that `wandb sync` uploads."""
        from isorun.share.trackers.wandb_writing import write_offline  # noqa: PLC0415  only who exports

        return write_offline(self, runs)


class _Log:
    """One .wandb file as it is read, record by record."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.project, self.run_id = "", path.stem.removeprefix("run-")
        self.fields: dict[str, Any] = {"name": "", "host": "", "commit": ""}
        self.started: int | None = None
        self.exit: int | None = None
        self.config: dict[str, Any] = {}
        self.summary: dict[str, Any] = {}
        self.tags: dict[str, str] = {}
        self.axes: dict[str, GrowingSeries] = {}
        self.directions: dict[str, str] = {}
        self.left_out: dict[str, int] = {}
        self.last = 0
        self._read()

    @property
    def key(self) -> tuple[str, str]:
        return self.project, self.run_id

    def _read(self) -> None:
        shown = shown_where(str(self.path))
        try:
            with self.path.open("rb") as opened:
                if opened.read(7)[:4] != WANDB_LOG:
                    raise InputError(f"{shown} is no log of W&B", found="it does not begin as one does")
                for record in wandb_records(opened):
                    for number, _, content in fields(record):
                        if isinstance(content, bytes):
                            self._take(number, content)
        except (TornRecord, MalformedMessage, struct.error) as error:
            self._leave_out(f"what follows a torn record ({error})")
        except OSError as error:
            raise InputError(f"{shown} cannot be read", found=error.strerror or str(error)) from None

    def _take(self, number: int, content: bytes) -> None:
        match number:
            case 2:
                self._take_history(content)
            case 3:
                self._take_changes(content, self.summary)
            case 5:
                self._take_changes(content, self.config)
            case 17:
                self._take_run(content)
            case 18:
                codes = [value for part, _, value in fields(content) if part == 1]
                self.exit = signed(codes[0]) if codes and isinstance(codes[0], int) else 0
            case 12:
                self._take_metric(content)
            case _ if number in _OTHERS:
                self._leave_out(_OTHERS[number])
            case 8:
                name = next((_text(value) for part, _, value in fields(content) if part == 5), "")
                self._leave_out(f"the artifact {name}")
            case 6:
                for part, _, item in fields(content):
                    if part == 1 and isinstance(item, bytes):
                        names = [_text(value) for field, _, value in fields(item) if field == 1]
                        self._leave_out(f"the file {names[0] if names else ''}")

    def _leave_out(self, what: str) -> None:
        self.left_out[what] = self.left_out.get(what, 0) + 1

    def _take_run(self, content: bytes) -> None:
        for number, _, value in fields(content):
            if not isinstance(value, bytes):
                continue
            match number:
                case 1:
                    self.run_id = _text(value)
                case 3:
                    self.project = _text(value)
                case 4:
                    self._take_changes(value, self.config)
                case 5:
                    self._take_changes(value, self.summary)
                case 8:
                    self.fields["name"] = _text(value)
                case 10:
                    self.tags[_text(value)] = ""
                case 13:
                    self.fields["host"] = _text(value)
                case 17:
                    self.started = _timestamp(value)
                case 21:
                    commits = [_text(part) for field, _, part in fields(value) if field == 2]
                    self.fields["commit"] = commits[0] if commits else ""
                case _ if number in NAMED_FIELDS:
                    self.tags[f"wandb.{NAMED_FIELDS[number]}"] = _text(value)

    def _take_changes(self, content: bytes, kept: dict[str, Any]) -> None:
        """Config and summary: what is set and what is taken away, by a key or by nested ones."""
        for number, _, item in fields(content):
            if not isinstance(item, bytes) or number not in (_UPDATE, _REMOVE):
                continue
            names, value = _item(item)
            place = kept
            for name in names[:-1]:
                inner = place.get(name)
                place[name] = place = inner if isinstance(inner, dict) else {}
            if names and number == _REMOVE:
                place.pop(names[-1], None)
            elif names and isinstance(value, _Unread):
                self._leave_out(f"the value of {'/'.join(names)}, {value.why}")
            elif names:
                place[names[-1]] = value

    def _take_history(self, content: bytes) -> None:
        row: dict[str, Any] = {}
        step: float | None = None
        for number, _, item in fields(content):
            if not isinstance(item, bytes):
                continue
            if number == 2:
                counts = [value for part, _, value in fields(item) if part == 1]
                step = float(signed(counts[0])) if counts and isinstance(counts[0], int) else 0.0
            elif number == 1:
                names, value = _item(item)
                if isinstance(value, dict) and "_type" not in value:
                    row.update((f"{'/'.join(names)}/{name}", one) for name, one in flattened(value))
                else:
                    row["/".join(names)] = value
        self._take_row(row, step)

    def _take_row(self, row: dict[str, Any], step: float | None) -> None:
        told = number_of(row.pop(STEP, row.get("_step")))
        at = step if told is None else told
        moment = number_of(row.get("_timestamp"))
        time = round(moment * MICROSECONDS) if moment is not None and abs(moment) < 1e12 else None
        self.last = max(self.last, time or 0)
        typed = {name.removesuffix("/_type"): value for name, value in row.items() if name.endswith("/_type")}
        for name, value in row.items():
            number = number_of(value)
            kind = next((typed[start] for start in typed if name.startswith(f"{start}/")), None)
            if name.partition("/")[0] in _INTERNAL or (kind is not None and not name.endswith("/_type")):
                continue
            if kind is None and number is not None:
                self.axes.setdefault(name, GrowingSeries()).add(at or 0.0, time, number)
            else:
                self._leave_out(f"{_kind_of(kind or value)} logged as {name.removesuffix('/_type')}")

    def _take_metric(self, content: bytes) -> None:
        name, goal = "", 0
        for number, _, value in fields(content):
            if number == 1:
                name = _text(value)
            elif number == 8 and isinstance(value, int):
                goal = value
        if name and goal in (1, 2):
            self.directions[name] = "lower" if goal == 1 else "higher"

    def goes_on_with(self, later: _Log) -> None:
        """Take in what was logged after the run was resumed."""
        began_before = (self.started or 0) <= (later.started or 0)
        first, second = (self, later) if began_before else (later, self)
        for name, axis in second.axes.items():
            known = first.axes.setdefault(name, GrowingSeries())
            known.steps.extend(axis.steps)
            known.values.extend(axis.values)
            known.times.extend(axis.times)
        for what, count in second.left_out.items():
            first.left_out[what] = first.left_out.get(what, 0) + count
        self.fields = {name: value or first.fields[name] for name, value in second.fields.items()}
        self.config, self.summary = {**first.config, **second.config}, {**first.summary, **second.summary}
        self.tags, self.directions = {**first.tags, **second.tags}, {**first.directions, **second.directions}
        self.axes, self.left_out = first.axes, first.left_out
        self.exit, self.last, self.started = second.exit, max(first.last, second.last), first.started

    def run(self) -> TrackedRun:
        """The run that the log is of."""
        own = {name: value for name, value in self.config.items() if name != "_wandb"}
        kept = own.pop(KEPT, None)
        kept = kept if isinstance(kept, dict) else {}
        beside = kept.get("tags")
        tags = {**self.tags, **({str(k): str(v) for k, v in beside.items()} if isinstance(beside, dict) else {})}
        results, texts = self._results(kept.get("results") or ())
        untimed = kept.get("untimed") or ()
        state = None if self.exit is None else RunState.FINISHED if self.exit == 0 else RunState.FAILED
        if state is RunState.FAILED and kept.get("state") in list(RunState):
            state = RunState(str(kept["state"]))
        told = number_of(self.summary.get("_timestamp"))
        ended = max(self.last, round(told * MICROSECONDS) if told is not None and abs(told) < 1e12 else 0)
        return TrackedRun(
            key=(self.project, self.run_id),
            experiment=self.project or "uncategorized",
            name=str(self.fields["name"] or self.run_id),
            state=state,
            reason="" if not self.exit else str(kept.get("reason", f"W&B has the exit code {self.exit}")),
            started=self.started,
            ended=None if state is None else kept.get("ended", ended or None),
            params=own,
            tags={**tags, **texts},
            series={name: axis.series(timed=name not in untimed) for name, axis in self.axes.items()},
            results=results,
            directions=self.directions,
            host=str(self.fields["host"]),
            commit=str(self.fields["commit"]),
            left_out=tuple(left_out_times(what, count) for what, count in self.left_out.items()),
        )

    def _results(self, also: Collection[str]) -> tuple[dict[str, float], dict[str, str]]:
        """What the summary has beyond the last values of the history: numbers, and texts, which become tags.

        also: results that are the last values, and were results all the same.
        """
        results: dict[str, float] = {}
        texts: dict[str, str] = {}
        media = [name for name, value in self.summary.items() if isinstance(value, dict) and "_type" in value]
        for name, value in flattened({k: v for k, v in self.summary.items() if k not in media}):
            number, axis = number_of(value), self.axes.get(name)
            if name.partition("/")[0] in _INTERNAL or name == STEP:
                continue
            if number is not None and (axis is None or name in also or repr(axis.values[-1]) != repr(number)):
                results[name] = number
            elif isinstance(value, (str, bool)) and number is None and not self._was_logged(name):
                texts[f"summary.{name}"] = value if isinstance(value, str) else json.dumps(value)
            elif number is None and value is not None and not self._was_logged(name):
                self._leave_out(f"{_kind_of(value)} in the summary as {name}")
        for name in media:
            if not self._was_logged(name):
                self._leave_out(f"{_kind_of(self.summary[name]['_type'])} in the summary as {name}")
        return results, texts

    def _was_logged(self, name: str) -> bool:
        return any(what.endswith(f" logged as {name}") for what in self.left_out)


def _kind_of(value: Any) -> str:
    if isinstance(value, _Unread):
        return f"a value, {value.why},"
    if isinstance(value, str):
        return f"a {value}" if value in ("histogram", "table-file", "image-file", "audio-file") else "text"
    return {bool: "a truth value", list: "a list", dict: "an object"}.get(type(value), "a value that is no number")


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def _timestamp(message: bytes) -> int:
    parts = {number: signed(value) for number, _, value in fields(message) if isinstance(value, int)}
    return parts.get(1, 0) * MICROSECONDS + parts.get(2, 0) // 1_000


def _item(message: bytes) -> tuple[list[str], Any]:
    """The names and the value of an item."""
    names: list[str] = []
    value: Any = None
    for number, _, content in fields(message):
        if number in (_KEY, _NESTED) and isinstance(content, bytes) and content:
            names.append(_text(content))
        elif number == _VALUE and isinstance(content, bytes):
            value = _json(content)
    return names, value


@dataclass(frozen=True, slots=True)
class _Unread:
    """A value that is not read, and why."""

    why: str


def _json(content: bytes) -> Any:
    if len(content) > _LONGEST_VALUE:
        return _Unread(f"which has more than {_LONGEST_VALUE >> 20} MiB")
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return _Unread("which is no JSON")
