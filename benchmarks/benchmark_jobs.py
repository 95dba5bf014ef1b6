"""Jobs, trainings and measures that benchmarks share."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from isorun.execution import Job, Resources
from isorun.study import Environment
from isorun.study.cells import Cell, Level

__all__ = ["ONE_THREAD", "TRAINING", "Used", "make_job", "run_plain", "spent"]

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


@dataclass(frozen=True, slots=True)
class Used:
    """What a command took: CPU time with all that it started, time, the peak of its memory; and how much it printed."""

    cpu_seconds: float
    seconds: float
    peak_bytes: float
    written_bytes: int


_LEAN: Final = """
import json, os, sys, time
path, *command = sys.argv[1:]
output = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
told = [(os.POSIX_SPAWN_DUP2, output, 1), (os.POSIX_SPAWN_DUP2, output, 2)]
began = time.monotonic()
_, status, used = os.wait4(os.posix_spawn(command[0], command, os.environ, file_actions=told), 0)
cpu, took = used.ru_utime + used.ru_stime, time.monotonic() - began
print(json.dumps([os.waitstatus_to_exitcode(status), cpu, took, used.ru_maxrss * 1024.0]))
"""
"""A process that is next to nothing: the peak that Linux tells of a process begins with that of who started it."""


def spent(folder: Path, command: list[str]) -> Used:
    """What a process and its children take. Its output goes to a file, as it would to a pipe."""
    output = folder / "output.txt"
    lean = [sys.executable, "-S", "-c", _LEAN, str(output), *command]
    done = subprocess.run(lean, cwd=folder, capture_output=True, text=True, check=True)
    code, cpu, took, peak = json.loads(done.stdout)
    if code:
        raise RuntimeError(f"{command}: {output.read_text()[-2000:]}")
    return Used(cpu, took, peak, output.stat().st_size)
