"""How long a training on a GPU takes from its launch to its first step: warm, fresh by isorun, and plain `python`.

    python benchmarks/gpu/first_step.py [--device cuda] [--runs 6]

A LeNet5 on made images, launched as users launch it, at levels `fixed-seed` and `deterministic`. The training itself
writes down when it begins, has imported torch, has a context on the device, and has done its first step. Prints a
line of JSON: medians of each phase in seconds since the launch, and whether warm and fresh runs end alike.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from isorun.execution import Job, Resources
from isorun.execution.local import LocalExecutor
from isorun.study import Environment
from isorun.study.cells import Cell, Level
from isorun.testing.executor_contract import execute

_TRAINING: Final = """
import sys, time, json
times = {"begun": time.time()}
import torch
from torch import nn
times["imported"] = time.time()
device = sys.argv[2]
torch.zeros(1, device=device)
times["device"] = time.time()
torch.manual_seed(0)
images, labels = torch.rand(128, 1, 28, 28, device=device), torch.arange(128, device=device) % 10
network = nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
                        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 10)).to(device)
optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
times["model"] = time.time()
for step in range(50):
    loss = nn.functional.cross_entropy(network(images), labels)
    if not step:
        loss.item()
        times["forward"] = time.time()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if not step:
        loss.item()
        times["first step"] = time.time()
print("loss:", loss.item())
times["ended"] = time.time()
with open(sys.argv[1], "w") as file:
    json.dump(times, file)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--runs", type=int, default=6)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "train.py").write_text(_TRAINING)
        found: dict[str, Any] = {"plain": _phases(folder, options, _plain, range(options.runs))[0]}
        for level in (Level.FIXED_SEED, Level.DETERMINISTIC):
            ends = {}
            for number, launch in enumerate(("fresh", "warm"), start=1):
                executor = LocalExecutor(folder / f"runs-{launch}-{level.value}", launch=launch)
                numbers = range(1000 * number, 1000 * number + options.runs)
                try:
                    phases, ends[launch] = _phases(folder, options, partial(execute, executor), numbers, level)
                finally:
                    executor.close()
                found[f"{launch}, {level.value}"] = phases
            found[f"ends, {level.value}"] = ends
    print(json.dumps(found))


def _phases(
    folder: Path,
    options: argparse.Namespace,
    run: Callable[[Job], Any],
    numbers: range,
    level: Level = Level.FIXED_SEED,
) -> tuple[dict[str, float], list[str]]:
    seen, ends = [], []
    for number in numbers:
        command = ("python", "train.py", f"times-{level.value}-{number}", options.device)
        cell = Cell("training", command, "default", {}, "default", {}, level, seed=1, repeat=number)
        environment = Environment("default", python=sys.executable)
        job = Job(cell, 1, command, folder, seed=1, environment=environment, resources=Resources())
        began = time.time()
        record = run(job)
        if record is not None:
            ends.append(f"{record.state.value}, weights {record.digests.get('weights.final', 'not seen')[:12]}")
        times = json.loads((folder / command[2]).read_text())
        seen.append({**{phase: at - began for phase, at in times.items()}, "record": time.time() - began})
    medians = {phase: round(statistics.median(one[phase] for one in seen[1:]), 3) for phase in seen[0]}
    return medians, sorted(set(ends))


def _plain(job: Job) -> None:
    subprocess.run([sys.executable, *job.command[1:]], cwd=job.working_folder, check=True, capture_output=True)


if __name__ == "__main__":
    main()
