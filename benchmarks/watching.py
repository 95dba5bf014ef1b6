"""What `isorun.watch` adds to a training, at its default budget.

Trainings of some 12 s, watched and not, take turns in one process; their CPU times are compared in pairs. The machine's
noise is larger than the target, so the watcher's own account stands beside it: the CPU time of its samples, and what
the hook that stays takes in every step, by the time of the whole training.
"""

from __future__ import annotations

import math
import os
import statistics
import time
import timeit
from collections.abc import Callable
from typing import Any, Final

os.environ.setdefault("KERAS_BACKEND", "torch")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import torch
from torch import nn

import isorun

_SECONDS: Final = 12.0
_PAIRS: Final = 4
_T_95: Final = 3.182
"""The 97.5 % point of Student's t with one degree of freedom less than there are pairs."""
_MOST_PERCENT: Final = 0.1


def measure() -> list[dict[str, Any]]:
    torch.set_num_threads(1)
    return [
        _paired("torch, MLP of 17,000 parameters", *_torch(_mlp, (64,))),
        _paired("torch, CNN of 220,000 parameters", *_torch(_cnn, (1, 28, 28))),
        _paired("Keras, MLP of 17,000 parameters", *_keras()),
    ]


def _mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))


def _cnn() -> nn.Module:
    first = (nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
    second = (nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    return nn.Sequential(*first, *second, nn.Linear(64 * 49, 64), nn.ReLU(), nn.Linear(64, 10))


Run = Callable[[int, bool], tuple[float, float]]


def _torch(build: Callable[[], nn.Module], shape: tuple[int, ...]) -> tuple[Run, float]:
    """A run of so many steps gives its CPU time and what the watcher says it took; and the hook's seconds a step."""
    x, y = torch.randn(32, *shape), torch.randint(0, 10, (32,))

    def run(steps: int, watched: bool) -> tuple[float, float]:
        model = build()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        watcher = isorun.watch(model) if watched else None
        began = time.process_time()
        for step in range(steps):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            if watcher is not None and step % 100 == 99:
                watcher.mark(step // 100)
        seconds = time.process_time() - began
        if watcher is not None:
            watcher.stop()
        return seconds, watcher.spent if watcher is not None else 0.0

    return run, _hook_seconds()


def _hook_seconds() -> float:
    """What a step costs that is not sampled: 100 steps of an optimizer that has nothing to do, with and without."""
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    plain = min(timeit.repeat(optimizer.step, number=2000, repeat=15))
    with isorun.watch(model, every=10**9):
        watched = min(timeit.repeat(optimizer.step, number=2000, repeat=15))
    return max(watched - plain, 0.0) / 2000


def _keras() -> tuple[Run, float]:
    import keras

    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(3200, 64)).astype("float32"), generator.integers(0, 10, 3200)

    def run(steps: int, watched: bool) -> tuple[float, float]:
        widths = (keras.layers.Dense(128, "relu"), keras.layers.Dense(64, "relu"), keras.layers.Dense(10, "softmax"))
        model = keras.Sequential([keras.Input((64,)), *widths])
        model.compile("sgd", "sparse_categorical_crossentropy")
        watcher = isorun.watch(model) if watched else None
        began = time.process_time()
        model.fit(x, y, epochs=max(steps // 100, 1), batch_size=32, verbose=0)
        seconds = time.process_time() - began
        if watcher is not None:
            watcher.stop()
        return seconds, watcher.spent if watcher is not None else 0.0

    return run, 0.0


def _paired(name: str, run: Run, hook: float) -> dict[str, Any]:
    run(100, True)
    steps = max(int(100 * _SECONDS / run(100, False)[0]) // 100 * 100, 100)
    percents, shares, plain = [], [], []
    for pair in range(_PAIRS):
        first, second = run(steps, bool(pair % 2)), run(steps, not pair % 2)
        watched, alone = (first, second) if pair % 2 else (second, first)
        plain.append(alone[0])
        percents.append(100 * (watched[0] / alone[0] - 1))
        shares.append(100 * (watched[1] + hook * steps) / alone[0])
    mean, half = statistics.fmean(percents), _T_95 * statistics.stdev(percents) / math.sqrt(_PAIRS)
    account = statistics.fmean(shares)
    return {
        "name": f"CPU time that watching adds, by its own account: {name}",
        "measured": account,
        "target": _MOST_PERCENT,
        "unit": "%",
        "ok": account <= _MOST_PERCENT,
        "detail": f"pairs that take turns: {mean:+.2f} %, 95 % interval {mean - half:+.2f} to {mean + half:+.2f} of "
        f"{_PAIRS}; a plain training takes {statistics.fmean(plain):.1f} s, the hook {1e6 * hook:.2f} µs a step",
    }


if __name__ == "__main__":
    for row in measure():
        print(row)
