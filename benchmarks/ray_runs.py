"""What isorun costs on Ray: trivial runs over 8 CPUs of a cluster on this machine.

Against bare tasks of Ray that start the same process (`python train.py SEED`) by CPU time, and against Ray Tune's grid
over the same function by runs a second. CPU time is that of everything that is started: the cluster, its workers, the
trainings, the command. Each training adds a byte to a file, so that CPU time and clock are read while the work goes on,
once the first runs are made and before the last: what is paid once (a cluster, imports, fork servers) is not counted.
The kinds take turns, and of each the median of the rounds is told. RAY_RUNS says how many runs, where 10,000 take too
long, RAY_ROUNDS how many rounds, RAY_TUNED how many trials Ray Tune makes, each of which takes seconds. Needs Ray:
`pip install 'isorun[ray]'`; Ray Tune has an environment of its own.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from isorun.execution.keeper import descendants, send
from peers import peer_environment

_RUNS: Final = int(os.environ.get("RAY_RUNS", "10000"))
_ROUNDS: Final = int(os.environ.get("RAY_ROUNDS", "3"))
_CPUS: Final = 8
_TUNED: Final = int(os.environ.get("RAY_TUNED", "64"))
_TUNE: Final = ("ray[tune]==2.60.0",)
_SUBREAPER: Final = 36
_TIMES: Final = "times, at most"
_TRAIN: Final = """
import os


def train(seed=0):
    file = os.open("COUNT", os.O_WRONLY | os.O_APPEND)
    os.write(file, b"x")
    os.close(file)
    return {"test_acc": 0.5}


if __name__ == "__main__":
    print("test_acc:", train()["test_acc"])
"""
_BARE: Final = """
import os, subprocess, sys
import ray
ray.init(address=sys.argv[1], log_to_driver=False, configure_logging=False)
@ray.remote(max_retries=0)
def run(python, folder, seed):
    return subprocess.run([python, "train.py", str(seed)], cwd=folder, capture_output=True, check=True).stdout
waiting = [run.remote(sys.executable, os.getcwd(), seed) for seed in range(int(sys.argv[2]))]
assert all(b"0.5" in text for text in ray.get(waiting))
"""
_GRID: Final = """
import os, sys
import ray
from ray import tune
from train import train
ray.init(address=sys.argv[1], log_to_driver=False, configure_logging=False)
def trained(config):
    return train(config["seed"])
space = {"seed": tune.grid_search(list(range(int(sys.argv[2]))))}
told = tune.RunConfig(storage_path=os.path.dirname(os.getcwd()) + "/tune", verbose=0)
made = tune.Tuner(trained, param_space=space, run_config=told)
assert len([one for one in made.fit() if one.metrics["test_acc"] == 0.5]) == int(sys.argv[2])
"""
_STUDY: Final = """
name = "trivial"
levels = ["fixed-seed"]
seeds = {runs}
[approaches.a]
{what}
[metrics.test_acc]
direction = "higher"
"""
_COMMAND: Final = 'command = "python train.py {seed}"'
_FUNCTION: Final = 'function = "train.py:train"'


class _Cost(NamedTuple):
    """Of one run: milliseconds of CPU time, and seconds on the wall."""

    cpu_ms: float
    wall: float


def measure() -> list[dict[str, Any]]:
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)  # what outlives its parent is counted, too
    signal.signal(signal.SIGTERM, _stop)
    python = peer_environment("ray-tune", _TUNE)
    kinds: dict[str, tuple[str, Callable[[Path, str, int], None]]] = {
        "bare": (sys.executable, _bare),
        "isorun": (sys.executable, lambda *where: _isorun(*where, _COMMAND)),
        "fresh": (sys.executable, lambda *where: _isorun(*where, _COMMAND, "--launch", "fresh")),
        "function": (sys.executable, lambda *where: _isorun(*where, _FUNCTION)),
        "tune": (str(python), lambda *where: _tune(str(python), *where)),
    }
    found: dict[str, list[_Cost]] = {name: [] for name in kinds}
    for _ in range(_ROUNDS):
        for name, (interpreter, command) in kinds.items():
            found[name].append(_each(interpreter, command, _TUNED if name == "tune" else _RUNS))
            print(f"  {name}: {found[name][-1]}", file=sys.stderr, flush=True)
    return _rows({name: _median(costs) for name, costs in found.items()})


def _stop(*_: object) -> None:
    """A time limit leaves no cluster behind: unlike a signal that nobody takes, an exception passes what ends it."""
    sys.exit(128 + signal.SIGTERM)


def _rows(of: dict[str, _Cost]) -> list[dict[str, Any]]:
    bare, warm, fresh = (of[name].cpu_ms for name in ("bare", "isorun", "fresh"))
    rates = {name: 1 / cost.wall for name, cost in of.items()}
    first, last = _between(_RUNS)
    size = f"runs {first:,} to {last:,} of {_RUNS:,} over {_CPUS} CPUs of Ray, median of {_ROUNDS} rounds in turns"
    told = f"{size}; CPU time a run: bare tasks {bare:.1f} ms, isorun {warm:.1f} ms, with a fresh interpreter each "
    told += f"{fresh:.1f} ms; load of the machine {os.getloadavg()[0]:.1f}"
    walls = f"{rates['bare']:.1f} bare tasks a second, {rates['isorun']:.1f} runs of isorun, {rates['fresh']:.1f} fresh"
    against = f"{rates['function']:.1f} and {rates['tune']:.2f} runs a second; of Ray Tune {_TUNED} trials"
    quick = rates["function"] / rates["tune"]
    return [
        _row("isorun's own CPU time a run on Ray", warm - bare, "ms, at most", 5.0, told),
        _row("CPU time a run, against bare tasks of Ray that start the same process", warm / bare, _TIMES, 1.3, walls),
        _row("the same, with a fresh interpreter for each run", fresh / bare, _TIMES, 1.3, walls),
        _row("runs a second, against Ray Tune's grid over the same function", quick, "times, at least", 3.0, against),
    ]


def _row(name: str, measured: float, unit: str, target: float, detail: str) -> dict[str, Any]:
    ok = measured >= target if unit.endswith("at least") else measured <= target
    return {"name": name, "measured": measured, "unit": unit, "target": target, "ok": ok, "detail": detail}


def _median(costs: list[_Cost]) -> _Cost:
    return _Cost(*(statistics.median(column) for column in zip(*costs, strict=True)))


def _each(interpreter: str, command: Callable[[Path, str, int], None], runs: int) -> _Cost:
    """What each run takes between the first ones and the last, with a cluster of its own."""
    with tempfile.TemporaryDirectory(prefix="ir-", ignore_cleanup_errors=True) as name, ExitStack() as ending:
        folder, count = Path(name) / "study", Path(name) / "count"  # what Ray itself writes lies beside the study
        folder.mkdir()
        count.touch()
        (folder / "train.py").write_text(_TRAIN.replace("COUNT", str(count)))
        port = _free_port()
        ending.callback(_end_all)
        _start_head(interpreter, folder, port)
        seen: list[tuple[int, float, float]] = []
        watcher = threading.Thread(target=_watch, args=(count, seen, _between(runs)))
        watcher.start()
        try:
            command(folder, f"127.0.0.1:{port}", runs)
        finally:
            count.write_text("x" * runs)
            watcher.join()
    (first, cpu_before, began), (last, cpu_after, ended) = seen
    return _Cost((cpu_after - cpu_before) / (last - first) * 1000, (ended - began) / (last - first))


def _between(runs: int) -> tuple[int, int]:
    """After how many runs each worker has made some, and before how many the first has nothing left to do."""
    return max(min(runs // 4, 40 * _CPUS), 1), runs - min(2 * _CPUS, runs // 4)


def _watch(count: Path, seen: list[tuple[int, float, float]], when: tuple[int, int]) -> None:
    """How many runs were made, with the CPU time and the clock then: after the first of them, and before the last."""
    for wanted in when:
        while (made := count.stat().st_size) < wanted:
            time.sleep(0.05)
        seen.append((made, _spent(), time.monotonic()))


def _start_head(interpreter: str, folder: Path, port: int) -> None:
    words = ["--head", "--block", "--node-ip-address", "127.0.0.1", "--port", str(port), "--num-cpus", str(_CPUS)]
    more = ["--include-dashboard=false", "--object-store-memory", "83886080", "--temp-dir", str(folder.parent / "t")]
    start = [interpreter, "-m", "ray.scripts.scripts", "start", "--disable-usage-stats", *words, *more]
    log = folder.parent / "head.log"
    with log.open("wb") as output:
        head = subprocess.Popen(start, env=_environment(), stdout=output, stderr=output, start_new_session=True)
    until = time.monotonic() + 120
    while b"Ray runtime started" not in log.read_bytes():
        if head.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"Ray did not start: {log.read_text()[-2000:]}")
        time.sleep(0.1)


def _environment() -> dict[str, str]:
    """`python` is the interpreter that bare tasks start, and not what a version manager puts in its place."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, "PATH": path, "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}


def _bare(folder: Path, address: str, runs: int) -> None:
    _run([sys.executable, "-c", _BARE, address, str(runs)], folder)


def _tune(python: str, folder: Path, address: str, runs: int) -> None:
    _run([python, "-c", _GRID, address, str(runs)], folder)


def _isorun(folder: Path, address: str, runs: int, what: str, *words: str) -> None:
    (folder / "study.toml").write_text(_STUDY.format(runs=runs, what=what))
    _run([sys.executable, "-m", "isorun", "run", "study.toml", "--executor", f"ray:{address}", *words], folder)


def _run(command: list[str], folder: Path) -> None:
    log = folder.parent / "command.log"
    with log.open("wb") as output:
        done = subprocess.run(command, cwd=folder, env=_environment(), stdout=output, stderr=output, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[:4]}: {log.read_text()[-2000:]}")


def _end_all() -> None:
    """Kill all that was started, whatever session it is in: to end by itself takes Ray half a minute."""
    while True:
        send([process.pid for process in descendants(os.getpid())], signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return
        time.sleep(0.05)


def _spent() -> float:
    """CPU seconds of all that was started here, whether it has ended or not."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    ticks = 0
    for process in descendants(os.getpid()):
        with suppress(OSError):
            text = Path(f"/proc/{process.pid}/stat").read_text()
            ticks += sum(map(int, text[text.rindex(")") + 2 :].split()[11:15]))
    return used.ru_utime + used.ru_stime + ticks / os.sysconf("SC_CLK_TCK")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    for row in measure():
        print(row)
