"""How long it takes to start runs: warm, against a fresh process, and how many short ones fit into a second.

Short runs are counted as users start them, by `isorun run`. For a launch the fresh process is plain `python train.py`
without isorun, and the warm one goes through the whole executor; the time is read in the training itself, after its
first optimizer step.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
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
_SHORT_RUNS: Final = 5000
_LEAST_RATE: Final = 60.0


def measure() -> list[dict[str, Any]]:
    return [_warm_against_fresh(), _short_runs()]


def _short_runs() -> dict[str, Any]:
    """`isorun run -j 2 -n 5000 -- true`, whole: what it takes of the CPUs says how many a second two of them make."""
    command = [sys.executable, "-m", "isorun", "run", "-j", "2", "-n", str(_SHORT_RUNS), "--", "true"]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        subprocess.run(command, cwd=name, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    rate = _SHORT_RUNS / wall
    return {
        "name": f"{_SHORT_RUNS:,} runs of `true`, two at a time",
        "measured": rate,
        "target": _LEAST_RATE,
        "unit": "runs a second",
        "ok": rate >= _LEAST_RATE,
        "detail": f"{1000 * cpu / _SHORT_RUNS:.1f} ms of CPU time a run, so {2 * _SHORT_RUNS / cpu:.0f} a second if "
        f"two CPUs did nothing else; load of the machine {os.getloadavg()[1]:.1f}",
    }


def _warm_against_fresh() -> dict[str, Any]:
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
    return {
        "name": "warm launch to the first training step, against a fresh process importing torch",
        "measured": ratio,
        "target": _TARGET,
        "unit": "times faster",
        "ok": ratio >= _TARGET,
        "detail": f"medians: fresh {fresh_seconds:.3f} s of {_FRESH} runs, warm {warm_seconds:.4f} s of {_WARM}",
    }


def _to_first_step(folder: Path, number: int, run: Callable[[Any], Any]) -> float:
    job = make_job(folder, number, epochs=0)
    began = time.time()
    run(job)
    return float((folder / f"first-step-{number}").read_text()) - began


if __name__ == "__main__":
    for row in measure():
        print(row)
