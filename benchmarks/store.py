"""Reading and size of a store with 10,000 runs x 200 points.

Each record is a whole one: environment of about 10 kB, two digests of the weights, final value, code reference. Output
tails are empty, since their size is the training's choice. Measured once with one metric of 200 points, where every
point has an axis of its own, and once with 8 metrics of 25 points that share theirs.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from isorun.store.content import stored_form
from isorun.store.database import connect, writing
from isorun.store.folder import open_store
from isorun.store.rows import RecordWriter
from isorun.study.cells import Cell
from isorun.study.envelope import record_digest
from isorun.study.levels import Level
from isorun.study.records import RunRecord, RunState, Series

_RUNS: Final = 10_000
_POINTS: Final = 200
_TARGETS: Final = {
    "reading all records": (1.5, "s, at most"),
    "finding what is missing on resume": (2.0, "s, at most"),
    "size on disk": (12.0, "bytes a point, at most"),
}
_ENVIRONMENT: Final = {
    "requested": {"threads": 1},
    "effective": {"threads": 1, "packages": {f"package-{number}": f"{number}.2.3" for number in range(400)}},
}


def measure() -> list[dict[str, Any]]:
    return [row for metrics in (1, 8) for row in _measure_shape(metrics, _POINTS // metrics)]


def _measure_shape(metrics: int, points: int) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        open_store(folder).close()
        _fill(folder / "store.sqlite", metrics, points)
        with open_store(folder) as store:
            measured = {
                "reading all records": _seconds(store.records),
                "finding what is missing on resume": _resume_seconds(folder),
                "size on disk": (folder / "store.sqlite").stat().st_size / (_RUNS * metrics * points),
            }
    shape = f"{_RUNS:,} runs x {metrics} x {points} points"
    return [_row(f"{name}, {shape}", value, *_TARGETS[name]) for name, value in measured.items()]


def _fill(database: Path, metrics: int, points: int) -> None:
    """Write records straight into the database: what is measured is the packed store, not ten thousand fsyncs."""
    connection = connect(database)
    with writing(connection, database):
        writer = RecordWriter(connection)
        for record in _records(metrics, points):
            kept = stored_form(record)
            writer.write(kept, record_digest(kept))
    connection.close()


def _records(metrics: int, points: int) -> Iterator[RunRecord]:
    generator = random.Random(1)
    for number in range(_RUNS):
        level = (Level.FIXED_SEED, Level.DETERMINISTIC)[number % 2]
        command = ("python", "train.py", "--seed", "{seed}", "--lr", "{config.lr}")
        content: dict[str, Any] = {"python": "", "env": {}, "threads": None}
        approach = f"approach-{number % 4}"
        cell = Cell(
            approach, command, "default", {"lr": 0.1}, "default", content, level, seed=number // 8, repeat=number
        )
        yield _record(cell, metrics, points, generator)


def _record(cell: Cell, metrics: int, points: int, generator: random.Random) -> RunRecord:
    steps = tuple(float(step) for step in range(points))
    seconds = tuple(step + generator.uniform(0.1, 0.9) for step in steps)
    series = {
        f"metric_{number}": Series(steps, seconds, tuple(generator.random() for _ in steps))
        for number in range(metrics)
    }
    return RunRecord(
        cell=cell,
        attempt=1,
        state=RunState.FINISHED,
        exit_code=0,
        signal="",
        reason="",
        launch="warm",
        seed_used=cell.seed,
        started_at="2026-01-01T12:00:00.123456+00:00",
        wall_seconds=points + generator.random(),
        cpu_seconds=points - generator.random(),
        peak_memory_bytes=500_000_000 + generator.randrange(1_000_000),
        results={"accuracy": generator.random()},
        series=series,
        digests={name: generator.randbytes(32).hex() for name in ("weights.initial", "weights.final")},
        environment=_ENVIRONMENT,
        code={"commit": "0" * 40, "dirty": False},
        sources=dict.fromkeys(series, "log"),
    )


def _resume_seconds(folder: Path) -> float:
    def resume() -> None:
        with open_store(folder) as store:
            assert len(store.finished()) == _RUNS

    return _seconds(resume)


def _seconds(call: Callable[[], object]) -> float:
    """The least of seven calls: other work on the machine only ever adds."""
    times = []
    for _ in range(7):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


def _row(name: str, measured: float, target: float, unit: str) -> dict[str, Any]:
    detail = "least of 7" if unit.startswith("s") else "store.sqlite as packed"
    ok = measured <= target
    return {"name": name, "measured": measured, "target": target, "unit": unit, "ok": ok, "detail": detail}


if __name__ == "__main__":
    for row in measure():
        print(row)
