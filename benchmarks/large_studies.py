"""Large studies as users meet them: runs, reports, pages, JSON and dry runs, each by its command in its own process.

Made through the public path: 10,000 runs of 50 epochs and 4 metrics by `isorun.run` with an executor that trains
nothing; a run that logs 1,000,000 rows, and one that prints them, by `isorun run`, of which the time of the same
training without isorun is taken off. Times are CPU seconds (user and system) of the command,
imports included, so that other work on the machine does not count; memory is the peak of the process.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

import isorun
from benchmark_jobs import Used, spent
from isorun.execution import Job
from isorun.study.records import Series
from isorun.testing.instant_executor import Computed, InstantExecutor

_EPOCHS: Final = 50
_METRICS: Final = ("train_loss", "val_loss", "val_acc", "test_acc")
_ROWS: Final = 1_000_000
_MANY: Final = """\
name = "many"
levels = ["default", "fixed-seed"]
seeds = 100
repeats = 50
[approaches.lenet]
command = "python train.py"
[metrics.test_acc]
direction = "higher"
"""
_CELLS: Final = """\
levels = ["default", "fixed-seed"]
seeds = 1000
repeats = 50
[approaches.lenet]
command = "python train.py --lr {config.lr}"
[configs.sgd]
lr = 0.05
"""
_TRAIN: Final = f"""\
import math
import isorun
for step in range({_ROWS}):
    isorun.log(step=step, test_acc=0.9 - 0.5 * math.exp(-step / 1e5) + 0.01 * math.sin(step))
"""
_PRINT: Final = f"""\
import math
for step in range({_ROWS}):
    print(f"step {{step}}: loss {{0.5 + 0.01 * math.sin(step):.6f}}, acc {{0.9 - 0.5 * math.exp(-step / 1e5):.6f}}")
"""
_MEGABYTE: Final = 1e6


def measure() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _make_many(folder)
        runs = [*_run_rows(folder, "logged", _TRAIN), *_run_rows(folder, "printed", _PRINT)]
        (folder / "cells.toml").write_text(_CELLS)
        many, long, cells = "10,000 runs x 50 epochs x 4 metrics", "1,000,000 rows", "100,000 cells"
        return [
            *runs,
            *_rows(f"report of {many}", _used(folder, "report", "many.toml"), 3.0, 500),
            *_rows(f"HTML of {many}", _used(folder, "report", "many.toml", "--html", "many.html"), 5.0, 500),
            *_rows(f"JSON of {many}", _used(folder, "report", "many.toml", "--json"), 5.0, 500),
            *_rows(f"report of {long}", _used(folder, "report", "logged"), 5.0, 500),
            *_rows(f"HTML of {long}", _used(folder, "report", "logged", "--html", "long.html"), 5.0, 500),
            *_rows(f"dry run of {cells}", _used(folder, "run", "cells.toml", "--dry-run"), 5.0, 100),
            *_rows(f"dry run of {cells}, JSON", _used(folder, "run", "cells.toml", "--dry-run", "--json"), 5.0, 100),
        ]


def _make_many(folder: Path) -> None:
    (folder / "many.toml").write_text(_MANY)
    generator = np.random.default_rng(1)
    steps = tuple(float(step) for step in range(1, _EPOCHS + 1))
    curve = 0.95 * (1 - np.exp(-np.asarray(steps) / 10))

    def compute(_: Job) -> Computed:
        values = np.clip(curve + 0.01 * generator.standard_normal((len(_METRICS), _EPOCHS)), 0, 1)
        rows = {name: 1 - row if "loss" in name else row for name, row in zip(_METRICS, values, strict=True)}
        series = {name: Series(steps, steps, tuple(row.tolist())) for name, row in rows.items()}
        return Computed(series=series, wall_seconds=60.0)

    isorun.run(folder / "many.toml", executor=InstantExecutor(compute))


def _run_rows(folder: Path, how: str, training: str) -> list[dict[str, Any]]:
    """What `isorun run` takes for a training of so many rows, over the training itself."""
    script = f"{how}.py"
    (folder / script).write_text(training)
    alone = spent(folder, [sys.executable, script])
    used = _used(folder, "run", "--name", how, "--", sys.executable, script)
    over = replace(used, cpu_seconds=used.cpu_seconds - alone.cpu_seconds)
    told = f"{used.cpu_seconds:.1f} s in all, {alone.cpu_seconds:.1f} s the training alone"
    return [{**row, "detail": told} for row in _rows(f"run with {_ROWS:,} rows {how}", over, 5.0, 200)]


def _used(folder: Path, *words: str) -> Used:
    """What one command takes, with all that it starts."""
    return spent(folder, [sys.executable, "-m", "isorun", *words])


def _rows(name: str, used: Used, seconds: float, megabytes: float) -> list[dict[str, Any]]:
    """Two rows: CPU time and memory."""
    detail = f"prints {used.written_bytes / _MEGABYTE:.1f} MB"
    measured = ((used.cpu_seconds, seconds, "s of CPU"), (used.peak_bytes / _MEGABYTE, megabytes, "MB at most"))
    return [
        {
            "name": name,
            "measured": value,
            "target": target,
            "unit": unit,
            "ok": value <= target,
            "detail": detail,
        }
        for value, target, unit in measured
    ]


if __name__ == "__main__":
    for row in measure():
        print(row)
