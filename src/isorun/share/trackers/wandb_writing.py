"""Folders of offline runs as the wandb package writes them: what it has been told is a log of records.

`wandb sync FOLDER` uploads them. Numbers of fields are those of wandb_internal.proto, which is public.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from isorun.errors import InputError
from isorun.share.trackers import MICROSECONDS, TrackedRun, WrittenRuns, shown_where
from isorun.share.trackers.wandb import KEPT, NAMED_FIELDS, STEP
from isorun.sources.trackers import WANDB_LOG
from isorun.study.records import RunState

if TYPE_CHECKING:
    from isorun.share.trackers.wandb import Wandb

__all__ = ["write_offline"]

_BLOCK: Final = 32_768
_HEADER: Final = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_VERSION: Final = WANDB_LOG + struct.pack("<HB", 0xBEE1, 0)
_PRODUCER: Final = "0.17.0"
_NO_PROJECT: Final = re.compile(r"[/\\#?%:]+")
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def write_offline(tracker: Wandb, runs: Iterable[TrackedRun]) -> WrittenRuns:
    """A folder for every run below the one that is named; what is there already is left alone."""
    top = Path(tracker.where)
    if top.exists() and not top.is_dir():
        raise InputError(f"{shown_where(str(top))} is no folder", hint="name another: --to FOLDER")
    count = points = there = 0
    for run in runs:
        run_id, stamp = _run_id(run), _EPOCH + timedelta(microseconds=run.started or 0)
        folder = top / f"offline-run-{stamp:%Y%m%d_%H%M%S}-{run_id}"
        log = _Log()
        for record in _records(run, run_id):
            log.add(record)
        path = folder / f"run-{run_id}.wandb"
        if folder.exists():
            if not path.is_file() or path.read_bytes() != log.data():
                raise InputError(
                    f"{shown_where(str(folder))} is there already, and is not this run as it is now",
                    hint="name another folder: --to FOLDER",
                )
            there += 1
            continue
        (folder / "files").mkdir(parents=True)
        path.write_bytes(log.data())
        count, points = count + 1, points + run.points
    place, shown = f"wandb-offline:{shown_where(str(top))}", f"wandb sync {top}/offline-run-* uploads them"
    return WrittenRuns(place, count, points, {}, shown, there)


def _run_id(run: TrackedRun) -> str:
    """The id that W&B knew the run by, or one made of what tells it from others."""
    last = run.key[-1]
    if len(run.key) == 2 and run.key[0] == run.experiment and _ID.fullmatch(last):
        return last
    return (
        last
        if len(run.key) == 1 and _ID.fullmatch(last)
        else hashlib.sha256(json.dumps(run.key).encode()).hexdigest()[:16]
    )


class _Log:
    """Records in the framing of LevelDB's log: blocks of 32 KiB, a record in as many pieces as it takes."""

    def __init__(self) -> None:
        self._data = bytearray(_VERSION)
        self._count = 0

    def add(self, content: bytes) -> None:
        """One record, with its number."""
        self._count += 1
        record = _number(1, self._count) + content
        begun = False
        while True:
            left = _BLOCK - len(self._data) % _BLOCK
            if left < _HEADER.size:
                self._data += bytes(left)
                continue
            piece, record = record[: left - _HEADER.size], record[left - _HEADER.size :]
            kind = (_MIDDLE if record else _LAST) if begun else (_FIRST if record else _FULL)
            self._data += _HEADER.pack(zlib.crc32(piece, zlib.crc32(bytes([kind]))), len(piece), kind) + piece
            begun = True
            if not record:
                return

    def data(self) -> bytes:
        """The whole file."""
        return bytes(self._data)


def _records(run: TrackedRun, run_id: str) -> Iterator[bytes]:
    yield _message(21, _message(1, _text(1, _PRODUCER) + _text(2, "0.1.0")))
    yield _message(17, _run_record(run, run_id))
    rows = list(_rows(run))
    steps = [row["_step"] for _, row in rows]
    whole = all(math.isfinite(step) and step >= 0 and step == int(step) for step in steps)
    fits = whole and all(before < after for before, after in itertools.pairwise(steps))
    if not fits:
        yield _message(12, _text(1, STEP))
        yield _message(12, _text(2, "*") + _text(4, STEP) + _message(6, _number(1, 1)))
    last = run.started or 0
    for number, (time, row) in enumerate(rows):
        last = max(last, time)
        own = {} if fits else {STEP: row["_step"], "_step": number}
        own |= {"_timestamp": time / MICROSECONDS, "_runtime": max(time - (run.started or time), 0) / MICROSECONDS}
        items = b"".join(_message(1, _item(name, value)) for name, value in {**row, **own}.items())
        yield _message(2, items + _message(2, _number(1, int(row["_step"]) if fits else number)))
    summary = {name: series.values[-1] for name, series in run.series.items()} | dict(run.results)
    ended = run.ended if run.ended is not None else last
    own = {"_timestamp": ended / MICROSECONDS, "_runtime": max(ended - (run.started or ended), 0) / MICROSECONDS}
    texts = {name.removeprefix("summary."): text for name, text in run.tags.items() if name.startswith("summary.")}
    told = {**summary, **texts, **own}
    yield _message(3, b"".join(_message(1, _item(name, value)) for name, value in told.items()))
    for name, better in run.directions.items():
        yield _message(12, _text(1, name) + _number(8, 1 if better == "lower" else 2))
    if run.state is not None:
        code = {RunState.FINISHED: 0, RunState.FAILED: 1}.get(run.state, 255)
        yield _message(18, _number(1, code) if code else b"")


def _rows(run: TrackedRun) -> Iterator[tuple[int, dict[str, float]]]:
    """The history: values of one step and time are one row; those that share neither stand alone, in their order."""
    rows: dict[tuple[int, float, int], dict[str, float]] = {}
    for name, series in run.series.items():
        seen: Counter[tuple[int, float]] = Counter()
        for place, value in enumerate(series.values):
            time = series.times[place] if series.times else run.started or 0
            key = (time, series.steps[place])
            rows.setdefault((*key, seen[key]), {"_step": series.steps[place]})[name] = value
            seen[key] += 1
    order = sorted(rows) if all(_ascends(series.times) for series in run.series.values()) else list(rows)
    yield from ((key[0], rows[key]) for key in order)


def _ascends(times: Any) -> bool:
    return all(before <= after for before, after in itertools.pairwise(times))


def _run_record(run: TrackedRun, run_id: str) -> bytes:
    numbers = {f"wandb.{name}": number for number, name in NAMED_FIELDS.items()}
    fields = _text(1, run_id) + _text(3, _NO_PROJECT.sub("-", run.experiment)[:128])
    beside = {
        name: text
        for name, text in run.tags.items()
        if text and name not in numbers and not name.startswith("summary.")
    }
    last = {name: repr(series.values[-1]) for name, series in run.series.items() if series.values}
    told = {
        "tags": beside,
        "untimed": [name for name, series in run.series.items() if not series.times],
        "results": [name for name, value in run.results.items() if last.get(name) == repr(value)],
    }
    kept: dict[str, Any] = {name: value for name, value in told.items() if value}
    latest = max((max(series.times) for series in run.series.values() if series.times), default=run.started or 0)
    if run.state is not None and (run.ended is None or run.ended < latest):
        kept["ended"] = run.ended
    if run.state not in (RunState.FINISHED, None):
        kept |= {"state": str(run.state), "reason": run.reason}
    config: dict[str, Any] = {**run.params, **({KEPT: kept} if kept else {})}
    fields += _message(4, b"".join(_message(1, _item(name, value)) for name, value in config.items()))
    for name, number in sorted(numbers.items(), key=lambda item: item[1]):
        fields += _text(number, run.tags[name]) if run.tags.get(name) else b""
    fields += _text(8, run.name) if run.name else b""
    fields += b"".join(_text(10, name) for name, text in run.tags.items() if not text)
    fields += _text(13, run.host) if run.host else b""
    if run.started is not None:
        seconds, rest = divmod(run.started, MICROSECONDS)
        fields += _message(17, _number(1, seconds) + (_number(2, rest * 1_000) if rest else b""))
    return fields + (_message(21, _text(2, run.commit)) if run.commit else b"")


def _item(name: str, value: Any) -> bytes:
    """A value under a name."""
    return _text(1, name) + _text(16, json.dumps(value))


def _varint(number: int) -> bytes:
    rest, data = number & 0xFFFF_FFFF_FFFF_FFFF, bytearray()
    while rest > 0x7F:
        data.append(rest & 0x7F | 0x80)
        rest >>= 7
    data.append(rest)
    return bytes(data)


def _number(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number)


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode("utf-8", "replace"))
