"""Foreign runs as records, and records as runs of a tracker: what has a place goes there, and all else is named.

What a record has no field for (tags, parameters as they were typed, names, exact times) is kept in its environment
under `imported`, so that an export gives back what was imported.
"""

from __future__ import annotations

import base64
import binascii
import functools
import json
import zlib
from array import array
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from isorun.share.trackers import MICROSECONDS, Times, TrackedRun, TrackedSeries, plain_json, unix_microseconds
from isorun.store.content import pack_axis, unpack_axis
from isorun.study.cells import Cell
from isorun.study.imported import IMPORTED
from isorun.study.records import Note, Numbers, RunRecord, RunState, Series
from isorun.worker.redaction import REDACTED, redacted_argv

__all__ = ["LEFT_OUT", "record_of", "tracked_of", "without_secret_values"]

LEFT_OUT: Final = "imported.left-out"
STILL_RUNNING: Final = "it was still running, or nobody said that it ended, when it was imported"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_NOTES: Final = 50


def record_of(run: TrackedRun, cell: Cell, attempt: int, place: str) -> RunRecord:
    """The record of a foreign run.

    One that goes on is recorded as interrupted: when it has ended, it is another attempt at the same cell.
    """
    first = [series.times[0] for series in run.series.values() if series.times]
    last = [max(series.times) for series in run.series.values() if series.times]
    begin = run.started if run.started is not None else min(first, default=None)
    end = run.ended if run.ended is not None else max(last, default=begin)
    series, exact = _series(run, begin or 0)
    told: dict[str, Any] = {
        "tracker": cell.command[1],
        "place": place,
        "run": list(run.key),
        "experiment": run.experiment,
        "name": run.name,
        "state": "running" if run.state is None else str(run.state),
        "started": run.started,
        "ended": run.ended,
        "params": {name: plain_json(value) for name, value in run.params.items()},
        "tags": dict(run.tags),
        **({"artifacts_at": run.artifacts_at} if run.artifacts_at else {}),
    }
    return RunRecord(
        cell=cell,
        attempt=attempt,
        state=run.state or RunState.INTERRUPTED,
        exit_code=0 if run.state is RunState.FINISHED else None,
        signal="",
        reason=STILL_RUNNING if run.state is None else run.reason,
        launch=IMPORTED,
        seed_used=cell.seed,
        started_at=_iso(begin),
        wall_seconds=max((end or 0) - (begin or 0), 0) / MICROSECONDS,
        cpu_seconds=0.0,
        peak_memory_bytes=0,
        results={**_single_values(run), **run.results},
        series=series,
        environment={"requested": {}, "made": {}, "effective": {}, IMPORTED: {**told, **exact}},
        code={"commit": run.commit} if run.commit else {},
        origins=dict.fromkeys(sorted({*run.series, *run.results}), f"{cell.command[1]}: {place}"),
        notes=tuple(_notes(run)),
        where={"host": run.host} if run.host else {},
    )


def _single_values(run: TrackedRun) -> dict[str, float]:
    """A metric that was logged once is a result: it stands for the run, and not for one of its epochs."""
    return {name: series.values[0] for name, series in run.series.items() if len(series.values) == 1}


def _iso(microseconds: int | None) -> str:
    if microseconds is None:
        return ""
    return (_EPOCH + timedelta(microseconds=microseconds)).isoformat(timespec="microseconds")


def without_secret_values(run: TrackedRun) -> TrackedRun:
    """The run without values of parameters and tags that look secret: no record holds one. Their names are told."""
    params, hidden = {}, []
    for name, value in run.params.items():
        kept = plain_json(value)
        secret = _is_secret(name, kept if isinstance(kept, str) else json.dumps(kept))
        hidden += [name] if secret else []
        params[name] = REDACTED if secret else kept
    tags = {}
    for name, text in run.tags.items():
        secret = _is_secret(name, text)
        hidden += [name] if secret else []
        tags[name] = REDACTED if secret else text
    if not hidden:
        return run
    told = (f"the value of {name}, which looks like a secret" for name in hidden)
    return replace(run, params=params, tags=tags, left_out=(*run.left_out, *told))


@functools.lru_cache(maxsize=50_000)
def _is_secret(name: str, text: str) -> bool:
    word = f"--{name}={text}"
    return redacted_argv([word], {}) != [word]


def _notes(run: TrackedRun) -> Iterator[Note]:
    for what in run.left_out[:_MOST_NOTES]:
        yield Note(LEFT_OUT, what)
    if len(run.left_out) > _MOST_NOTES:
        yield Note(LEFT_OUT, f"{len(run.left_out) - _MOST_NOTES} more things")


def _series(run: TrackedRun, begin: int) -> tuple[dict[str, Series], dict[str, Any]]:
    """The series, and what says their exact times where the store would round them."""
    clock = min((_unit(item.times) for item in run.series.values()), default=1)
    kept: dict[bytes, tuple[Numbers, str]] = {}
    series: dict[str, Series] = {}
    exact: dict[str, str] = {}
    untimed = []
    for name, item in run.series.items():
        if not item.times:
            untimed.append(name)
            series[name] = Series(item.steps, Numbers([0.0] * len(item.steps)), item.values)
            continue
        key = item.times.tobytes() + item.steps.tobytes()
        if key not in kept:
            seconds = Numbers((time - begin) / MICROSECONDS for time in item.times)
            kept[key] = (seconds, "" if _is_kept(item, seconds, begin, clock) else _packed(item.times))
        seconds, packed = kept[key]
        series[name] = Series(item.steps, seconds, item.values)
        if packed:
            exact[name] = packed
    told: dict[str, Any] = {"clock": clock, **({"untimed": untimed} if untimed else {})}
    if exact:
        axes = list(dict.fromkeys(exact.values()))
        told["times"] = {"axes": axes, "metrics": {name: axes.index(packed) for name, packed in exact.items()}}
    return series, told


def _unit(times: Times) -> int:
    """How fine the tracker's clock is: MLflow knows milliseconds, others microseconds."""
    return 1 if any(time % 1_000 for time in times) else 1_000


def _is_kept(series: TrackedSeries, seconds: Numbers, begin: int, clock: int) -> bool:
    """Whether the store gives back these very times."""
    _, rounded = unpack_axis(pack_axis(series.steps, seconds))
    return _restored(rounded, begin, clock) == series.times


def _restored(seconds: Numbers, begin: int, unit: int) -> Times:
    return array("q", (round((begin + second * MICROSECONDS) / unit) * unit for second in seconds))


def _packed(times: Times) -> str:
    gaps = array("q", (time - before for before, time in zip((0, *times), times, strict=False)))
    return base64.b64encode(zlib.compress(gaps.tobytes())).decode("ascii")


def _unpacked(text: str) -> Times:
    gaps = array("q", zlib.decompress(base64.b64decode(text)))
    total, times = 0, array("q")
    for gap in gaps:
        total += gap
        times.append(total)
    return times


def tracked_of(record: RunRecord, study: str) -> TrackedRun:
    """The run that a tracker keeps of a record: as it was imported, or as isorun made it."""
    told = record.environment.get(IMPORTED)
    return _as_imported(record, told) if isinstance(told, Mapping) else _as_made(record, study)


def _as_imported(record: RunRecord, told: Mapping[str, Any]) -> TrackedRun:
    begin = _begin(record)
    untimed = set(told.get("untimed", ()))
    exact = told.get("times", {"axes": [], "metrics": {}})
    series = {}
    for name, item in record.series.items():
        if name in untimed:
            times: Times = array("q")
        elif name in exact["metrics"]:
            times = _times_kept(exact["axes"][exact["metrics"][name]])
        else:
            times = _restored(_numbers(item.seconds), begin, told.get("clock", 1))
        series[name] = TrackedSeries(_numbers(item.steps), times, _numbers(item.values))
    single = {name: one.values[0] for name, one in record.series.items() if len(one.values) == 1}
    results = {
        name: value for name, value in record.results.items() if name not in single or repr(single[name]) != repr(value)
    }
    return TrackedRun(
        key=tuple(told["run"]),
        experiment=str(told["experiment"]),
        name=str(told["name"]),
        state=None if told["state"] == "running" else RunState(told["state"]),
        reason="" if told["state"] == "running" else record.reason,
        started=told["started"],
        ended=told["ended"],
        params=dict(told["params"]),
        tags=dict(told["tags"]),
        series=series,
        results=results,
        host=record.where.get("host", ""),
        commit=str(record.code.get("commit", "")),
        left_out=tuple(note.message for note in record.notes if note.code == LEFT_OUT),
        artifacts_at=str(told.get("artifacts_at", "")),
    )


def _times_kept(text: str) -> Times:
    try:
        return _unpacked(text)
    except (ValueError, zlib.error, binascii.Error):
        return array("q")


def _numbers(values: Any) -> Numbers:
    return values if isinstance(values, Numbers) else Numbers(values)


def _begin(record: RunRecord) -> int:
    """When the run began; 0 where nobody knows. Tables and packages of others may say anything for it."""
    with suppress(ValueError, OverflowError):
        return unix_microseconds(datetime.fromisoformat(record.started_at))
    return 0


def _as_made(record: RunRecord, study: str) -> TrackedRun:
    """A run that isorun made: its factors are parameters, what it is and how it ended are tags."""
    cell, begin = record.cell, _begin(record)
    factors = {"approach": cell.approach, "config": cell.config, "environment": cell.environment}
    tags = {
        "isorun.study": study,
        "isorun.run": record.run_id,
        **{f"isorun.{name}": value for name, value in factors.items()},
        "isorun.level": str(cell.level),
        "isorun.repeat": str(cell.repeat),
        "isorun.state": str(record.state),
        "isorun.command": " ".join(cell.command),
        **{f"isorun.digest.{name}": value for name, value in record.digests.items()},
        **({"isorun.reason": record.reason} if record.reason else {}),
    }
    seed = {} if cell.seed is None else {"seed": cell.seed}
    left_out = [f"predictions ({item.name})" for item in record.predictions]
    left_out += ["what isorun.watch saw"] if record.watched else []
    left_out += ["the end of its output"] if record.log_tail else []
    classes = {
        f"{name}[{label}]": value for name, values in record.per_class.items() for label, value in values.items()
    }
    series = {
        name: TrackedSeries(_numbers(one.steps), _restored(_numbers(one.seconds), begin, 1), _numbers(one.values))
        for name, one in record.series.items()
    }
    single = {name: one.values[0] for name, one in record.series.items() if len(one.values) == 1}
    results = {**record.results, **classes}
    return TrackedRun(
        key=(record.run_id,),
        experiment=study,
        name=cell.label,
        state=record.state,
        reason=record.reason,
        started=begin,
        ended=begin + round(record.wall_seconds * MICROSECONDS),
        params={**cell.config_values, **seed},
        tags=tags,
        series=series,
        results={name: value for name, value in results.items() if repr(single.get(name)) != repr(value)},
        host=record.where.get("host", ""),
        commit=str(record.code.get("commit") or ""),
        left_out=tuple(left_out),
    )
