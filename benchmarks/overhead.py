"""What isorun adds to a training, and what a second job on a second core brings.

Time is CPU time, of the training and of everything around it: other work on the machine hardly changes it, while the
clock on the wall differs by tens of percent. Plain and controlled runs take turns, and their pairs are compared.
"""

from __future__ import annotations

import math
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from benchmark_jobs import make_job, run_plain
from isorun.execution.local import LocalExecutor
from isorun.execution.process import Keepers, KeptProcess
from isorun.study.records import RunState
from isorun.testing.executor_contract import carried_out, execute

_SECONDS: Final = 10.0
_PAIRS: Final = 8
_T_95: Final = 2.365
"""The 97.5 % point of Student's t with one degree of freedom less than there are pairs."""
_RUNS: Final = 4
_SHORT: Final = 200
_MOST_OVERHEAD: Final = 0.5
_LEAST_SPEEDUP: Final = 1.8


def measure() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        epochs = _epochs_for(folder, _SECONDS)
        return [_overhead(folder, epochs), _throughput(folder, epochs // 3)]


def _epochs_for(folder: Path, seconds: float) -> int:
    start = run_plain(make_job(folder, 0, epochs=0))
    whole = run_plain(make_job(folder, 1, epochs=30))
    return max(int(30 * (seconds - start) / (whole - start)), 30)


def _overhead(folder: Path, epochs: int) -> dict[str, Any]:
    executor = LocalExecutor(folder / "runs", launch="fresh")
    execute(executor, make_job(folder, 2, epochs=0))  # hashes of libraries are kept from here on
    keeper = _keeper_seconds()
    plain, percents = [], []
    for pair in range(_PAIRS):
        job = make_job(folder, 10 + pair, epochs)
        if pair % 2:
            alone, controlled = run_plain(job), _controlled(executor, job)
        else:
            controlled, alone = _controlled(executor, job), run_plain(job)
        plain.append(alone)
        percents.append(100 * ((controlled + keeper) / alone - 1))
    executor.close()
    percent = statistics.fmean(percents)
    half = _T_95 * statistics.stdev(percents) / math.sqrt(_PAIRS)
    return {
        "name": "CPU time that isorun adds to a training of 10 s",
        "measured": percent,
        "target": _MOST_OVERHEAD,
        "unit": "%",
        "ok": percent <= _MOST_OVERHEAD,
        "detail": f"95 % interval {percent - half:.2f} to {percent + half:.2f} of {_PAIRS} pairs that take turns; "
        f"a plain run takes {statistics.fmean(plain):.2f} s, a keeper {1000 * keeper:.1f} ms",
    }


def _controlled(executor: LocalExecutor, job: Any) -> float:
    """The CPU time of the training with the worker inside, and of the executor meanwhile."""
    before = time.process_time()
    record = execute(executor, job)
    if record.state is not RunState.FINISHED:
        raise SystemExit(f"the training failed: {record.reason}")
    return record.cpu_seconds + time.process_time() - before


def _keeper_seconds() -> float:
    """The CPU time of one keeper, which nobody sees while it runs: that of many, without what their programs took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    keepers, programs = Keepers(), 0.0
    for _ in range(_SHORT):
        process = KeptProcess(keepers, ["/bin/true"], env={}, working_folder=Path("/"), cpus=[0])
        while (ended := process.exit()) is None:
            continue
        programs += ended.cpu_seconds
        process.close()
    keepers.close()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (spent - programs) / _SHORT


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
