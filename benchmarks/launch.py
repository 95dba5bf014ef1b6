"""How long it takes from asking for a run to its first training step: warm, against a fresh process.

The fresh process is plain `python train.py` without isorun; the warm one goes through the whole executor. The time is
read in the training itself, after its first optimizer step.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from benchmark_jobs import make_job, run_plain
from isorun.execution.local import LocalExecutor
from isorun.testing.executor_contract import execute

_FRESH: Final = 5
_WARM: Final = 15
_TARGET: Final = 30.0


def measure() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fresh = [_to_first_step(folder, number, run_plain) for number in range(_FRESH + 1)][1:]
        executor = LocalExecutor(folder / "runs", launch="warm")
        try:
            warm = [_to_first_step(folder, 100 + n, lambda job: execute(executor, job)) for n in range(_WARM + 2)][2:]
        finally:
            executor.close()
    fresh_seconds, warm_seconds = statistics.median(fresh), statistics.median(warm)
    ratio = fresh_seconds / warm_seconds
    return [
        {
            "name": "warm launch to the first training step, against a fresh process importing torch",
            "measured": ratio,
            "target": _TARGET,
            "unit": "times faster",
            "ok": ratio >= _TARGET,
            "detail": f"medians: fresh {fresh_seconds:.3f} s of {_FRESH} runs, warm {warm_seconds:.4f} s of {_WARM}",
        }
    ]


def _to_first_step(folder: Path, number: int, run: Callable[[Any], Any]) -> float:
    job = make_job(folder, number, epochs=0)
    began = time.time()
    run(job)
    return float((folder / f"first-step-{number}").read_text()) - began


if __name__ == "__main__":
    for row in measure():
        print(row)
