"""Jobs and trainings that the benchmarks of launching and overhead share."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Final

from isorun.execution import Job, Resources
from isorun.study import Environment
from isorun.study.cells import Cell, Level

__all__ = ["ONE_THREAD", "TRAINING", "make_job", "run_plain"]

# Threads that wait for each other spin: on a machine with other work a training with several takes any time at all.
ONE_THREAD: Final = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

TRAINING: Final = """
import sys
import time
import torch

generator = torch.Generator().manual_seed(0)
inputs = torch.randn(512, 64, generator=generator)
labels = (inputs.sum(1) > 0).long()
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 2))
optimizer = torch.optim.Adam(model.parameters())


def step():
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


loss = step()
with open(sys.argv[1], "w") as file:
    file.write(repr(time.time()))
for epoch in range(int(sys.argv[2])):
    for _ in range(100):
        loss = step()
    print(f"epoch {epoch} loss: {loss:.6f}")
"""


def make_job(folder: Path, number: int, epochs: int, *, threads: int | None = None) -> Job:
    """The training for so many epochs, at a fixed seed and with one thread; it writes when its first step was done."""
    script = folder / "train.py"
    script.write_text(TRAINING, encoding="utf-8")
    command = ("python", "train.py", f"first-step-{number}", str(epochs))
    cell = Cell("training", command, "default", {}, "default", {}, Level.FIXED_SEED, seed=1, repeat=number)
    environment = Environment("default", python=sys.executable, env=ONE_THREAD, threads=threads)
    return Job(cell, 1, command, folder, seed=1, environment=environment, resources=Resources(cpus=threads))


def run_plain(job: Job) -> float:
    """The same training without isorun; the CPU time it took."""
    command = [sys.executable, *job.command[1:]]
    env = {**os.environ, **ONE_THREAD}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=job.working_folder, env=env, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
