"""What logging costs the training process: isorun's recorder against MLflow's `log_metrics` on its SQLite store.

One run is 50 epochs x 8 metrics, logged once an epoch. Only the time that the calls take from the training is counted;
starting and ending a run is not, for either. MLflow runs in its own environment; its first run, which creates tables,
does not count.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from isorun.worker.recorder import Recorder
from peers import peer_environment

_EPOCHS: Final = 50
_METRICS: Final = 8
_RUNS: Final = 40
_PEER_RUNS: Final = 3
_TARGET_MILLISECONDS: Final = 1.0
_TARGET_RATIO: Final = 100.0
_PEER: Final = ("mlflow==3.17.2",)

_MLFLOW: Final = """
import json, sys, time
import mlflow
folder, epochs, metrics, runs = sys.argv[1], *map(int, sys.argv[2:])
mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
mlflow.create_experiment("bench", artifact_location=f"file://{folder}/artifacts")
mlflow.set_experiment("bench")
seconds = []
for _ in range(runs + 1):
    with mlflow.start_run():
        spent = 0.0
        for epoch in range(epochs):
            values = {f"metric_{number}": (epoch + 1) / (number + 3) for number in range(metrics)}
            began = time.perf_counter()
            mlflow.log_metrics(values, step=epoch)
            spent += time.perf_counter() - began
        seconds.append(spent)
print(json.dumps({"seconds": seconds[1:], "version": mlflow.__version__}))
"""


def measure() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        own = statistics.median(_one_run(folder / str(number)) for number in range(_RUNS)) * 1e3
        peer = _peer_run(folder)
    peer_milliseconds = statistics.median(peer["seconds"]) * 1e3
    ratio = peer_milliseconds / own
    what = f"{_EPOCHS} epochs x {_METRICS} metrics"
    return [
        {
            "name": f"logging {what} in the training process",
            "measured": own,
            "target": _TARGET_MILLISECONDS,
            "unit": "ms a run, at most",
            "ok": own <= _TARGET_MILLISECONDS,
            "detail": f"median of {_RUNS} runs, one log call an epoch",
        },
        {
            "name": f"logging {what}, against MLflow log_metrics per epoch on SQLite",
            "measured": ratio,
            "target": _TARGET_RATIO,
            "unit": "times less, at least",
            "ok": ratio >= _TARGET_RATIO,
            "detail": f"MLflow {peer['version']}: {peer_milliseconds:.0f} ms, isorun {own:.2f} ms (medians)",
        },
    ]


def _one_run(folder: Path) -> float:
    folder.mkdir()
    recorder = Recorder(folder)
    recorder.begin()
    spent = 0.0
    for epoch in range(_EPOCHS):
        values: dict[str, Any] = {f"metric_{number}": (epoch + 1) / (number + 3) for number in range(_METRICS)}
        began = time.perf_counter()
        recorder.log(epoch=epoch, **values)
        spent += time.perf_counter() - began
    return spent


def _peer_run(folder: Path) -> dict[str, Any]:
    python = peer_environment("mlflow", _PEER)
    command = [str(python), "-c", _MLFLOW, str(folder), str(_EPOCHS), str(_METRICS), str(_PEER_RUNS)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


if __name__ == "__main__":
    for row in measure():
        print(row)
