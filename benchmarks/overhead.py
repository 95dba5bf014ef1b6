"""What isorun adds to a training's time, and what a second job on a second core brings.

Plain and controlled runs alternate, and the best of each is compared, because other work on the machine only ever
makes a run longer.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from benchmark_jobs import make_job, run_plain
from isorun.execution.local import LocalExecutor
from isorun.testing.executor_contract import carried_out, execute

_SECONDS: Final = 10.0
_PAIRS: Final = 3
_RUNS: Final = 4
_MOST_OVERHEAD: Final = 1.0
_LEAST_SPEEDUP: Final = 1.8


def measure() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        epochs = _epochs_for(folder, _SECONDS)
        return [_overhead(folder, epochs), _throughput(folder, epochs // 3)]


def _epochs_for(folder: Path, seconds: float) -> int:
    job = make_job(folder, 0, epochs=30)
    whole = _timed(lambda: run_plain(job))
    start = _timed(lambda: run_plain(make_job(folder, 1, epochs=0)))
    return max(int(30 * (seconds + 1) / (whole - start)), 30)


def _overhead(folder: Path, epochs: int) -> dict[str, Any]:
    executor = LocalExecutor(folder / "runs", launch="fresh")
    plain, controlled = [], []
    for pair in range(_PAIRS):
        plain.append(_timed(lambda n=pair: run_plain(make_job(folder, 10 + n, epochs))))  # type: ignore[misc]
        controlled.append(_timed(lambda n=pair: execute(executor, make_job(folder, 20 + n, epochs))))  # type: ignore[misc]
    executor.close()
    percent = 100 * (min(controlled) / min(plain) - 1)
    return {
        "name": "time that isorun adds to a training of 10 s or more",
        "measured": percent,
        "target": _MOST_OVERHEAD,
        "unit": "%",
        "ok": percent <= _MOST_OVERHEAD,
        "detail": f"best of {_PAIRS}, alternating: plain {min(plain):.2f} s, under isorun {min(controlled):.2f} s",
    }


def _throughput(folder: Path, epochs: int) -> dict[str, Any]:
    if len(os.sched_getaffinity(0)) < 2:
        raise SystemExit("this benchmark needs two CPUs")
    one = _timed(lambda: _run_all(folder, jobs=1, first=100, epochs=epochs))
    two = _timed(lambda: _run_all(folder, jobs=2, first=200, epochs=epochs))
    ratio = one / two
    return {
        "name": "throughput of two jobs on two cores, against one job",
        "measured": ratio,
        "target": _LEAST_SPEEDUP,
        "unit": "times",
        "ok": ratio >= _LEAST_SPEEDUP,
        "detail": f"{_RUNS} runs with one thread each: {one:.1f} s one after the other, {two:.1f} s in pairs",
    }


def _run_all(folder: Path, jobs: int, first: int, epochs: int) -> None:
    waiting = [make_job(folder, first + number, epochs, threads=1) for number in range(_RUNS)]
    executor = LocalExecutor(folder / "runs", jobs, launch="fresh")
    carried_out(executor, waiting)
    executor.close()


def _timed(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    for row in measure():
        print(row)
