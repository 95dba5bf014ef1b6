"""Import of what MLflow kept: 1,000 runs x 50 epochs x 8 metrics, in a database that MLflow itself made.

MLflow has an environment of its own; making its database takes a minute or two, and is not measured. Wall time is that
of the whole command, the least of three with a store of its own each; CPU time is its own and its children's.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from peers import peer_environment

_RUNS, _EPOCHS, _METRICS = 1_000, 50, 8
_MAKE: Final = f"""
import random, sys
from mlflow.entities import Metric, Param
from mlflow.tracking import MlflowClient
client = MlflowClient("sqlite:///" + sys.argv[1])
experiment = client.create_experiment("big")
for number in range({_RUNS}):
    begin = 1_700_000_000_000 + number * 100_000
    made = client.create_run(experiment, start_time=begin, run_name=f"run-{{number}}", tags={{"team": "vision"}})
    run = made.info.run_id
    given = {{"model": f"m{{number % 10}}", "seed": str(number // 10), "lr": "0.1"}}
    points = [
        Metric(f"metric_{{metric}}", random.random(), begin + 1_000 * epoch, epoch)
        for epoch in range({_EPOCHS})
        for metric in range({_METRICS})
    ]
    client.log_batch(run, metrics=points, params=[Param(*item) for item in given.items()])
    client.set_terminated(run, "FINISHED", begin + 60_000)
"""


def measure() -> list[dict[str, Any]]:
    shape = f"{_RUNS:,} runs x {_EPOCHS} epochs x {_METRICS} metrics"
    python = peer_environment("mlflow", ["mlflow"])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([str(python), "-c", _MAKE, str(folder / "mlflow.db")], check=True, capture_output=True)
        first = [_command(folder, f"store-{turn}") for turn in range(3)]
        again = _command(folder, "store-0")
        wall, cpu = (min(times) for times in zip(*first, strict=True))
        return [
            _row(f"isorun import mlflow, {shape}", wall, 30.0, "s, at most"),
            _row(f"isorun import mlflow, {shape}: CPU", cpu, 30.0, "CPU s, at most"),
            _row(f"the same again, all known: {shape}", again[0], 30.0, "s, at most"),
        ]


def _command(folder: Path, store: str) -> tuple[float, float]:
    """Seconds of the wall and of CPU."""
    words = ["import", "mlflow:sqlite:///mlflow.db", "--approach", "model", "--store", store]
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-m", "isorun", *words], cwd=folder, check=True, capture_output=True)
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _row(name: str, value: float, target: float, unit: str) -> dict[str, Any]:
    return {
        "name": name,
        "measured": round(value, 2),
        "target": target,
        "unit": unit,
        "ok": value <= target,
        "detail": f"least of 3; load of the machine {os.getloadavg()[0]:.0f}",
    }
