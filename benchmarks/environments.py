"""What an environment with packages of its own costs: making it again, and a run in it over starting its interpreter.

The package is a wheel that is made here, so that no network is in the figures. Runs take turns with plain starts of the
same interpreter, and pairs are compared: on the wall, and in CPU time, which other work on the machine hardly changes.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import tempfile
import time
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from isorun.environments import AbstractEnvironment
from isorun.execution.carrying import Workshop
from isorun.execution.local import LocalExecutor
from isorun.study import Environment
from isorun.study.records import RunState
from isorun.testing.executor_contract import execute, job_for

_PAIRS: Final = 15
_AGAIN: Final = 7
_MOST_AGAIN_SECONDS: Final = 1.0
_MOST_OVERHEAD_SECONDS: Final = 0.5
_SCRIPT: Final = "import tinylib\nprint('acc:', tinylib.value)\n"


def measure() -> list[dict[str, Any]]:
    before = dict(os.environ)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _make_wheel(folder)
        os.environ.update({f"{maker}_FIND_LINKS": name for maker in ("PIP", "UV")})
        os.environ.update({f"{maker}_NO_INDEX": "1" for maker in ("PIP", "UV")})
        os.environ.update({"PIP_CONFIG_FILE": os.devnull, "ISORUN_CACHE": str(folder / "cache")})
        try:
            measured = "making an environment with packages for the second time"
            return [made_again(measured, _declared(), folder), _run_in_it(folder)]
        finally:
            os.environ.clear()
            os.environ.update(before)


def _make_wheel(folder: Path) -> None:
    info = "tinylib-1.0.dist-info"
    parts = {
        "tinylib.py": "value = 0.5\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tinylib\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(folder / "tinylib-1.0-py3-none-any.whl", "w") as made:
        for name, text in parts.items():
            made.writestr(name, text)
        made.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in [*parts, f"{info}/RECORD"]))


def _declared() -> Environment:
    return Environment("e", kind="packages", settings={"requirements": ["tinylib==1.0"]})


def ready(declared: Environment, folder: Path) -> tuple[AbstractEnvironment, float]:
    """The environment as a new process gets it, and how long that took."""
    with closing(Workshop(launch="fresh")) as workshop:
        began = time.perf_counter()
        made = workshop.environment(job_for(_SCRIPT, folder, environment=declared), lambda _: None)
        seconds = time.perf_counter() - began
    if made is None:
        raise SystemExit("the environment was not made")
    return made, seconds


def made_again(name: str, declared: Environment, folder: Path) -> dict[str, Any]:
    """How long it takes to have the same environment once more, which was made before."""
    _, first = ready(declared, folder)
    again = [ready(declared, folder)[1] for _ in range(_AGAIN)]
    return {
        "name": name,
        "measured": max(again),
        "target": _MOST_AGAIN_SECONDS,
        "unit": "s, at most",
        "ok": max(again) <= _MOST_AGAIN_SECONDS,
        "detail": f"slowest of {_AGAIN}, median {statistics.median(again):.3f} s; the first time {first:.1f} s",
    }


def _run_in_it(folder: Path) -> dict[str, Any]:
    python = str(ready(_declared(), folder)[0].folder / "venv" / "bin" / "python")
    executor = LocalExecutor(folder / "runs", launch="fresh")
    walls, cpus = [], []
    for pair in range(_PAIRS + 1):
        job = job_for(_SCRIPT, folder, pair, environment=_declared())
        before = time.perf_counter(), _cpu_seconds()
        subprocess.run([python, *job.command[1:]], cwd=folder, check=True, capture_output=True)
        between = time.perf_counter(), _cpu_seconds()
        record = execute(executor, job)
        after = time.perf_counter(), _cpu_seconds()
        if record.state is not RunState.FINISHED:
            raise SystemExit(f"the training failed: {record.reason}")
        walls.append((after[0] - between[0]) - (between[0] - before[0]))
        cpus.append((after[1] - between[1]) - (between[1] - before[1]) + record.cpu_seconds)
    executor.close()
    wall, cpu = statistics.median(walls[1:]), statistics.median(cpus[1:])
    return {
        "name": "a run in an environment with packages, over starting its interpreter",
        "measured": wall,
        "target": _MOST_OVERHEAD_SECONDS,
        "unit": "s, at most",
        "ok": wall <= _MOST_OVERHEAD_SECONDS,
        "detail": f"median of {_PAIRS} pairs that take turns, on the wall; {cpu:.3f} s of CPU time; load of the "
        f"machine {os.getloadavg()[0]:.1f}",
    }


def _cpu_seconds() -> float:
    """Of this process and of what it has waited for; the run itself is its keeper's to wait for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


if __name__ == "__main__":
    for row in measure():
        print(row)
