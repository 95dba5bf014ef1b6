"""What deterministic kernels cost LeNet5 on a GPU by how its steps are launched: each by itself, or as one CUDA graph.

    python benchmarks/gpu/price_loops.py [--pairs 12]

A step of LeNet5 is a few small kernels. Launched one by one from Python, the GPU waits for the launches, and slower
kernels hide in the wait; in a graph, as the zoo trains, nothing hides them. Times are of steps behind the first ones,
in pairs of blocks that take turns in one process; the ratio is the geometric mean, with Student's 95 % interval.
Prints a line of JSON for each loop.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import time
from collections.abc import Callable
from typing import Final

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # read once, before the first use of cuBLAS

import torch
from scipy import stats
from torch import Tensor, nn

_BATCH: Final = 128
_EAGER_STEPS: Final = 600
_GRAPH_STEPS: Final = 3000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=12)
    pairs: int = parser.parse_args().pairs
    torch.manual_seed(0)
    images, labels = torch.rand(_BATCH, 1, 28, 28, device="cuda"), torch.randint(0, 10, (_BATCH,), device="cuda")
    for name, loop in (("launched one by one", _one_by_one), ("one CUDA graph", _as_graph)):
        seconds: dict[bool, list[float]] = {True: [], False: []}
        for pair in range(pairs):
            for deterministic in (True, False) if pair % 2 else (False, True):
                torch.use_deterministic_algorithms(deterministic)
                torch.backends.cudnn.deterministic = deterministic
                seconds[deterministic].append(loop(_step_of(images, labels)))
        print(json.dumps({"loop": name, **_ratio(seconds)}), flush=True)


def _step_of(images: Tensor, labels: Tensor) -> Callable[[], None]:
    network = nn.Sequential(
        *(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)),
    ).cuda()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)

    def step() -> None:
        loss = nn.functional.cross_entropy(network(images), labels)
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()

    return step


def _one_by_one(step: Callable[[], None]) -> float:
    return _timed(step, _EAGER_STEPS)


def _as_graph(step: Callable[[], None]) -> float:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(5):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return _timed(graph.replay, _GRAPH_STEPS)


def _timed(step: Callable[[], None], steps: int) -> float:
    for _ in range(20):
        step()
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / steps


def _ratio(seconds: dict[bool, list[float]]) -> dict[str, object]:
    logs = [math.log(slow / fast) for slow, fast in zip(seconds[True], seconds[False], strict=True)]
    half = float(stats.t.ppf(0.975, len(logs) - 1)) * statistics.stdev(logs) / math.sqrt(len(logs))
    mean = statistics.mean(logs)
    return {
        "microseconds_a_step": round(statistics.median(seconds[False]) * 1e6, 1),
        "ratio": round(math.exp(mean), 3),
        "interval95": [round(math.exp(mean - half), 3), round(math.exp(mean + half), 3)],
        "pairs": len(logs),
    }


if __name__ == "__main__":
    main()
