r"""Framed lines: `<length> <crc32 hex> <json>\n`, append-only, readable up to the first line that does not check.

A torn tail (a crash or a full disk in the middle of a write) can so never be mistaken for data, nor poison what is
appended later: a writer cuts it off first and keeps the bytes beside the file.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import time
import zlib
from pathlib import Path
from typing import Any, NamedTuple

_encode_strict = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


class Frames(NamedTuple):
    """The events of one file, how many bytes they take, and how many bytes after them do not check."""

    events: list[dict[str, Any]]
    good_bytes: int
    torn_bytes: int


def encode(event: dict[str, Any]) -> bytes:
    """One framed line. Raises ValueError for a number that JSON cannot hold: say those with `spelled`."""
    body = _encode_strict(event).encode()
    return b"%d %08x %s\n" % (len(body), zlib.crc32(body), body)


def spelled(value: Any) -> Any:
    """The value with NaN and infinities, at any depth, as the words that `float` reads back."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, dict):
        return {key: spelled(item) for key, item in value.items()}
    return [spelled(item) for item in value] if isinstance(value, (list, tuple)) else value


def decode(data: bytes) -> Frames:
    """All whole events from the start of `data` up to the first line that does not check."""
    events: list[dict[str, Any]] = []
    position = 0
    while True:
        newline = data.find(b"\n", position)
        event = _decode_line(data[position:newline]) if newline >= 0 else None
        if event is None:
            return Frames(events, position, len(data) - position)
        events.append(event)
        position = newline + 1


def _decode_line(line: bytes) -> dict[str, Any] | None:
    length, _, rest = line.partition(b" ")
    crc, _, body = rest.partition(b" ")
    if length != b"%d" % len(body) or crc != b"%08x" % zlib.crc32(body):
        return None
    try:
        event = json.loads(body)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None


def read(path: str | os.PathLike[str]) -> Frames:
    """The events of a file; a file that is not there has none."""
    try:
        return decode(Path(path).read_bytes())
    except FileNotFoundError:
        return Frames([], 0, 0)


def repair_tail(path: str | os.PathLike[str]) -> int:
    """Cut off a bad tail, under the file's lock, and keep its bytes in `<name>.torn-<time>`; how many were cut."""
    file = Path(path)
    if not file.exists():
        return 0
    with file.open("r+b") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        data = handle.read()
        frames = decode(data)
        if frames.torn_bytes:
            _keep_torn(file, data[frames.good_bytes :])
            handle.truncate(frames.good_bytes)
    return frames.torn_bytes


def _keep_torn(file: Path, torn: bytes) -> None:
    with file.with_name(f"{file.name}.torn-{time.time_ns()}").open("xb") as kept:
        kept.write(torn)
        kept.flush()
        os.fsync(kept.fileno())
