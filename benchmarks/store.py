"""What users do with a store of 10,000 runs: resume the study, read the records, report; and a run of a million rows.

Each record is a whole one: environment of about 10 kB, two digests of the weights, final value, code reference. Output
tails are empty, since their size is the training's choice. Times are CPU seconds of the whole process where a command
is run, else of the calls, the least of three: other work on the machine only ever adds.
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import isorun
from benchmark_jobs import spent
from isorun.store.content import stored_form
from isorun.store.database import connect, writing
from isorun.store.folder import FolderStore
from isorun.store.rows import RecordWriter
from isorun.study.cells import Cell, cells_of
from isorun.study.design import load_study
from isorun.study.records import Numbers, RunRecord, RunState, Series, record_digest

_RUNS: Final = 10_000
_ROWS: Final = 1_000_000
_STUDY: Final = """
name = "many"
levels = ["fixed-seed", "deterministic"]
seeds = SEEDS
repeats = 25
[approaches]
""" + "\n".join(f'a{number} = "python train.py --width {number}"' for number in range(4))
_ENVIRONMENT: Final = {
    "requested": {"threads": 1},
    "effective": {"threads": 1, "packages": {f"package-{number}": f"{number}.2.3" for number in range(400)}},
}


def measure() -> list[dict[str, Any]]:
    return [*_ten_thousand_runs(), *_sizes(), *_a_million_rows()]


def _ten_thousand_runs() -> list[dict[str, Any]]:
    shape = f"{_RUNS:,} runs x 50 epochs x 4 metrics"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cells = declared(folder)
        fill(folder / ".isorun", cells, metrics=4, points=50)
        study = str(folder / "study.toml")
        report, report_memory = _command(["report", study])
        return [
            _row(f"isorun report, {shape}", report, 3.0, "CPU s, at most"),
            _row(f"isorun report, {shape}: memory", report_memory, 500.0, "MB, at most"),
            _row(f"isorun.records, {shape}", _seconds(lambda: isorun.records(study)), 1.5, "CPU s, at most"),
            _row(
                f"finding what is missing on resume, {shape}", _seconds(lambda: _resume(folder)), 2.0, "CPU s, at most"
            ),
        ]


def _sizes() -> Iterator[dict[str, Any]]:
    for metrics, points in ((1, 200), (8, 25)):
        with tempfile.TemporaryDirectory() as name:
            fill(Path(name) / ".isorun", declared(Path(name)), metrics, points)
            size = (Path(name) / ".isorun" / "store.sqlite").stat().st_size / (_RUNS * metrics * points)
        yield _row(f"size on disk, {_RUNS:,} runs x {metrics} x {points} points", size, 12.0, "bytes a point, at most")


def _a_million_rows() -> list[dict[str, Any]]:
    """In a process of its own: what counts is the most memory it ever had."""
    with tempfile.TemporaryDirectory() as name:
        done = subprocess.run(
            [sys.executable, __file__, "million", name],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parent,
        )
    seconds, memory = map(float, done.stdout.split())
    what = "a record of a million rows: keep, pack and read it"
    return [_row(what, seconds, 2.0, "CPU s, at most"), _row(f"{what}: memory", memory, 200.0, "MB, at most")]


def keep_a_million_rows(folder: Path) -> None:
    """CPU seconds and megabytes of keeping, packing and reading one record of a million rows."""
    cell = declared(folder)[0]
    record = made_record(cell, 1, _ROWS, random.Random(1))
    began = time.process_time()
    with FolderStore(folder / ".isorun") as store:
        store.finish(record)
        store.pack()
        assert len(store.records()[0].series["metric_0"].values) == _ROWS
    print(time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def declared(folder: Path) -> Sequence[Cell]:
    (folder / "study.toml").write_text(_STUDY.replace("SEEDS", str(list(range(1, 51)))))
    cells = cells_of(load_study(folder / "study.toml"))
    assert len(cells) == _RUNS
    return cells


def fill(folder: Path, cells: Sequence[Cell], metrics: int, points: int) -> None:
    """Write records straight into the database: what is measured is the packed store, not ten thousand fsyncs."""
    FolderStore(folder).close()
    generator = random.Random(1)
    connection = connect(folder / "store.sqlite")
    with writing(connection, folder / "store.sqlite"):
        writer = RecordWriter(connection)
        for cell in cells:
            kept = stored_form(made_record(cell, metrics, points, generator))
            writer.write(kept, record_digest(kept))
    connection.close()


def made_record(cell: Cell, metrics: int, points: int, generator: random.Random) -> RunRecord:
    steps = Numbers(range(1, points + 1))
    seconds = Numbers(step + generator.uniform(0.1, 0.9) for step in range(points))
    series = {
        f"metric_{number}": Series(steps, seconds, Numbers(generator.random() for _ in range(points)))
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
        origins=dict.fromkeys(series, "log"),
    )


def _resume(folder: Path) -> None:
    with FolderStore(folder / ".isorun") as store:
        finished = store.finished()
        assert all(cell.id in finished for cell in cells_of(load_study(folder / "study.toml"), store.key))


def _command(words: Sequence[str]) -> tuple[float, float]:
    """CPU seconds and megabytes of an isorun command, the least of three."""
    with tempfile.TemporaryDirectory() as folder:
        found = [spent(Path(folder), [sys.executable, "-m", "isorun", *words]) for _ in range(3)]
    return min(used.cpu_seconds for used in found), min(used.peak_bytes for used in found) / 2**20


def _seconds(call: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
    return min(times)


def _row(name: str, measured: float, target: float, unit: str) -> dict[str, Any]:
    detail = "store.sqlite as packed" if unit.startswith("bytes") else "least of 3"
    return {
        "name": name,
        "measured": measured,
        "target": target,
        "unit": unit,
        "ok": measured <= target,
        "detail": detail,
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["million"]:
        keep_a_million_rows(Path(sys.argv[2]))
    else:
        for row in measure():
            print(row)
