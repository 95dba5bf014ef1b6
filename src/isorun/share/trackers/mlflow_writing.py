"""Runs written by MLflow's own client, in a process of its own: what it makes, every MLflow opens.

MLflow's parameters are texts, its times milliseconds, its steps whole numbers, and it has no final value beside a
series. What of a run does not fit is kept in a tag (`isorun.kept`), which an import reads, or named.
"""

from __future__ import annotations

import base64
import json
import math
import re
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from isorun.share.trackers import Chosen, Times, TrackedRun, WrittenRuns, plain_json
from isorun.share.trackers.own_packages import asked_of_package
from isorun.study.records import RunState

if TYPE_CHECKING:
    from isorun.share.trackers.mlflow import Mlflow

__all__ = ["ADDED_TAGS", "KEPT_TAG", "fine_again", "restored", "write_by_client"]

KEPT_TAG: Final = "isorun.kept"
ADDED_TAGS: Final = ("mlflow.runName", "mlflow.user")
"""Tags that MLflow sets on every run by itself."""
_MOST_FINE: Final = 40_000
_PIECE: Final = 4_000
_NO_NAME: Final = re.compile(r"[^\w.\-/: ]")
_STATUS: Final = {RunState.FINISHED: "FINISHED", RunState.FAILED: "FAILED", None: "RUNNING"}


def write_by_client(tracker: Mlflow, runs: Iterable[TrackedRun], chosen: Chosen) -> WrittenRuns:
    """New runs, each with a new id of MLflow's; those that an export wrote there before are left as they are."""
    told: list[tuple[int, tuple[str, ...]]] = []
    rows = _rows(runs, tracker.where, told)
    asked = asked_of_package("mlflow", "mlflow_writing.py", arguments=[], rows=rows, python=chosen.python)
    left_out: Counter[str] = Counter()
    states: Counter[str] = Counter()
    points = 0
    for place, answer in enumerate(asked):  # an answer for each run, in their order
        states[answer["as"]] += 1
        if answer["as"] != "there":
            points += told[place][0]
            left_out.update(told[place][1])
    written = states.total() - states["there"]
    shown = f"mlflow ui --backend-store-uri {tracker.place[7:]}"
    return WrittenRuns(tracker.place, written, points, left_out, shown, states["there"], states["beside"])


def _rows(
    runs: Iterable[TrackedRun], where: str, told: list[tuple[int, tuple[str, ...]]]
) -> Iterator[Mapping[str, Any]]:
    yield {"place": where if "://" in where or where.startswith("file:") or "." not in where else f"sqlite:///{where}"}
    for run in runs:
        told.append((run.points, tuple(_lost(run))))
        yield _row(run)


def _lost(run: TrackedRun) -> Iterator[str]:
    """What MLflow cannot hold, whatever is done."""
    series = run.series.values()
    if _fine_times(run) is None:
        yield "parts of milliseconds in times"
    if any(not float(step).is_integer() for one in series for step in one.steps):
        yield "parts of steps that are no whole numbers"
    if any(len(set(zip(one.steps, one.times, one.values, strict=False))) < len(one.times) for one in series):
        yield "values that were logged twice with the same step and time"


def _row(run: TrackedRun) -> dict[str, Any]:
    """A run for the client, and in a tag what only isorun reads."""
    names: dict[str, str] = {}
    metrics, untimed = [], []
    for name, series in run.series.items():
        key = _key(name, names)
        untimed += [] if series.times else [name]
        for place, value in enumerate(series.values):
            time = series.times[place] if series.times else run.started or 0
            step = series.steps[place]
            metrics.append([key, plain_json(value), time // 1_000, int(step) if math.isfinite(step) else 0])
    end = (run.ended if run.ended is not None else run.started) or 0
    for name, value in run.results.items():
        if name not in run.series:
            metrics.append([_key(name, names), plain_json(value), end // 1_000, 0])
    typed = {name: plain_json(value) for name, value in run.params.items() if not isinstance(value, str)}
    kept = {
        "key": list(run.key),
        "content": run.content(),
        "state": "running" if run.state is None else str(run.state),
        "reason": run.reason,
        "host": run.host,
        "params": typed,
        "results": {name: plain_json(value) for name, value in run.results.items()},
        "names": {key: name for name, key in names.items() if key != name},
        "untimed": untimed,
        "commit": run.commit if run.commit != run.tags.get("mlflow.source.git.commit", "") else "",
        "ended": run.ended is None,
        "fine": _fine_times(run),
        "has": [name for name in ADDED_TAGS if name in run.tags],
    }
    text = json.dumps({name: value for name, value in kept.items() if value})
    pieces = {f"{KEPT_TAG}.{place // _PIECE}": text[place : place + _PIECE] for place in range(0, len(text), _PIECE)}
    return {
        "key": kept["key"],
        "content": kept["content"],
        "experiment": run.experiment,
        "name": run.name,
        "start": None if run.started is None else run.started // 1_000,
        "end": end // 1_000,
        "status": _STATUS.get(run.state, "KILLED"),
        "params": {
            name: value if isinstance(value, str) else json.dumps(plain_json(value))
            for name, value in run.params.items()
        },
        "tags": {**run.tags, **pieces},
        "metrics": metrics,
    }


def _fine_times(run: TrackedRun) -> dict[str, Any] | None:
    """What MLflow's milliseconds leave of each time, packed; None where it is too much for tags."""
    axes: dict[str, int] = {}
    metrics = {}
    for name, series in run.series.items():
        rest = array("H", (time % 1_000 for time in series.times))
        if any(rest):
            packed = base64.b64encode(zlib.compress(rest.tobytes())).decode("ascii")
            metrics[name] = axes.setdefault(packed, len(axes))
    ends = [(time or 0) % 1_000 for time in (run.started, run.ended)]
    if sum(map(len, axes)) > _MOST_FINE:
        return None
    return {"axes": list(axes), "metrics": metrics, "ends": ends} if metrics or any(ends) else {}


def fine_again(times: Times, packed: str) -> Times:
    """Times with what MLflow left of them put back."""
    rest = array("H", zlib.decompress(base64.b64decode(packed)))
    return array("q", (time + part for time, part in zip(times, rest, strict=True)))


def _key(name: str, names: dict[str, str]) -> str:
    """The name as MLflow takes it; two that would be the same are numbered."""
    key, number = _NO_NAME.sub("_", name)[:240], 2
    taken = {value for known, value in names.items() if known != name}
    free = key
    while free in taken:
        free, number = f"{key}_{number}", number + 1
    names[name] = free
    return free


def restored(tags: Mapping[str, str]) -> tuple[dict[str, str], dict[str, Any]]:
    """The tags without what an export kept in them, and that."""
    pieces = sorted((name for name in tags if re.fullmatch(rf"{re.escape(KEPT_TAG)}\.\d{{1,4}}", name)), key=_place)
    own = {name: text for name, text in tags.items() if name not in pieces}
    try:
        found = json.loads("".join(tags[name] for name in pieces)) if pieces else {}
    except (ValueError, RecursionError):
        return dict(tags), {}
    return (own, found) if isinstance(found, dict) else (dict(tags), {})


def _place(name: str) -> int:
    return int(name.rpartition(".")[2])
