"""What a container costs: looking at its image again, and a run in it over starting its interpreter in the same one.

The image is made here of this Python (`podman import`), with no network. Runs take turns with plain starts by the same
engine with the same options, each under a keeper, which counts the CPU time of all that an engine starts. It needs
podman and the right to use it, and so is run only where it is named.
"""

from __future__ import annotations

import os
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from environments import made_again, ready
from isorun.environments import AbstractEnvironment, Folders
from isorun.execution.local import LocalExecutor
from isorun.execution.process import Exit, Keepers, KeptProcess
from isorun.study import Environment
from isorun.study.records import RunState
from isorun.testing.environment_contract import root_of_python
from isorun.testing.executor_contract import execute, job_for
from isorun.worker.levels import site_folder

_PAIRS: Final = 15
_MOST_OVERHEAD_SECONDS: Final = 0.5
_SCRIPT: Final = "print('acc:', 0.5)\n"
_IMAGE: Final = f"localhost/isorun-benchmark-{os.getpid()}"


def measure() -> list[dict[str, Any]]:
    if not shutil.which("podman"):
        raise SystemExit("no podman: apt-get install podman runc")
    before = os.environ.get("ISORUN_CACHE")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["ISORUN_CACHE"] = str(folder / "cache")
        _import_image(folder / "root")
        try:
            measured = "making a container's environment for the second time"
            return [made_again(measured, _declared(), folder), _run_in_it(folder)]
        finally:
            subprocess.run(["podman", "rmi", "--force", _IMAGE], capture_output=True, check=False)
            os.environ.pop("ISORUN_CACHE") if before is None else os.environ.update(ISORUN_CACHE=before)


def _import_image(root: Path) -> None:
    root_of_python(sys.executable, root)
    packed = root.with_suffix(".tar")
    subprocess.run(["tar", "--directory", root, "--create", "--file", packed, "."], check=True)
    subprocess.run(["podman", "import", packed, _IMAGE], check=True, capture_output=True)
    packed.unlink()
    shutil.rmtree(root)


def _declared() -> Environment:
    return Environment("e", kind="container", settings={"image": _IMAGE})


def _run_in_it(folder: Path) -> dict[str, Any]:
    environment, _ = ready(_declared(), folder)
    executor, keepers = LocalExecutor(folder / "runs", launch="fresh"), Keepers()
    walls, cpus, plain = [], [], []
    for pair in range(_PAIRS + 1):
        job = job_for(_SCRIPT, folder, pair, environment=_declared())
        alone = _started_alone(environment, job.command, folder, keepers)
        before = time.perf_counter(), time.process_time()
        record = execute(executor, job)
        wall, cpu = time.perf_counter() - before[0], time.process_time() - before[1]
        if record.state is not RunState.FINISHED or alone.exit_code != 0:
            raise SystemExit(f"the training failed: {record.reason}")
        plain.append(alone.wall_seconds)
        walls.append(wall - alone.wall_seconds)
        cpus.append(cpu + record.cpu_seconds - alone.cpu_seconds)
    executor.close()
    keepers.close()
    wall, cpu, start = (statistics.median(times[1:]) for times in (walls, cpus, plain))
    engine = record.environment["made"]["engine"]
    return {
        "name": "a run in a container, over starting its interpreter in the same container",
        "measured": wall,
        "target": _MOST_OVERHEAD_SECONDS,
        "unit": "s, at most",
        "ok": wall <= _MOST_OVERHEAD_SECONDS,
        "detail": f"median of {_PAIRS} pairs that take turns, on the wall; {cpu:.3f} s of CPU time; a plain start "
        f"takes {start:.2f} s with {engine}; load of the machine {os.getloadavg()[0]:.1f}",
    }


def _started_alone(environment: AbstractEnvironment, command: Any, folder: Path, keepers: Keepers) -> Exit:
    """The script in the same container as any user would start it: no worker, and nothing that is recorded."""
    prepared = environment.prepare(command, folder)
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    (folder / "plain").mkdir(exist_ok=True)
    words = prepared.wrap(
        (prepared.program, *command[1:]), {}, Folders(folder, folder / "plain", site_folder().parent, cpus)
    )
    with closing(KeptProcess(keepers, words, env=dict(os.environ), working_folder=folder, cpus=cpus)) as process:
        while not (select.select([process.status_fd], [], [])[0] and (ended := process.exit())):
            continue
    return ended


if __name__ == "__main__":
    for row in measure():
        print(row)
