"""What `isorun.watch` adds to a training, at its default budget.

Two trainings, one watched and one not, take turns in one process block by block, so that whatever else the machine does
meets both; the CPU times of the blocks are compared in pairs. The noise of a shared machine is still larger than the
target, so the watcher's own account stands beside it: the CPU time of its samples by that of its training.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable
from typing import Any, Final

os.environ.setdefault("KERAS_BACKEND", "torch")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import torch
from torch import nn

from isorun.worker import watching

_PAIRS: Final = 150
_BLOCK_SECONDS: Final = 0.1
_MOST_PERCENT: Final = 0.1
_SHARE: Final = watching.SHARE / 2
"""The watcher's clock sees both trainings, of which it may charge one."""

Step = Callable[[], None]


def measure() -> list[dict[str, Any]]:
    torch.set_num_threads(1)
    return [
        _paired("torch, MLP of 17,000 parameters", lambda watched: _torch(_mlp(), (64,), watched)),
        _paired("torch, CNN of 220,000 parameters", lambda watched: _torch(_cnn(), (1, 28, 28), watched)),
        _paired("Keras, MLP of 17,000 parameters", _keras),
    ]


def _mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))


def _cnn() -> nn.Module:
    first = (nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
    second = (nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    return nn.Sequential(*first, *second, nn.Linear(64 * 49, 64), nn.ReLU(), nn.Linear(64, 10))


def _torch(model: nn.Module, shape: tuple[int, ...], watched: bool) -> tuple[Step, Any]:
    """A step of a training, and its watcher."""
    x, y = torch.randn(32, *shape), torch.randint(0, 10, (32,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    watcher = watching.watch(model, share=_SHARE) if watched else None

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step, watcher


def _keras(watched: bool) -> tuple[Step, Any]:
    """The same; a step is an epoch of ten batches, as `fit` has no smaller one."""
    import keras

    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(320, 64)).astype("float32"), generator.integers(0, 10, 320)
    widths = (keras.layers.Dense(128, "relu"), keras.layers.Dense(64, "relu"), keras.layers.Dense(10, "softmax"))
    model = keras.Sequential([keras.Input((64,)), *widths])
    model.compile("sgd", "sparse_categorical_crossentropy")
    watcher = watching.watch(model, share=_SHARE) if watched else None
    return lambda: model.fit(x, y, batch_size=32, verbose=0), watcher


def _seconds(step: Step, count: int) -> float:
    began = time.process_time()
    for _ in range(count):
        step()
    return time.process_time() - began


def _paired(name: str, arm: Callable[[bool], tuple[Step, Any]]) -> dict[str, Any]:
    (plain, _), (watched, watcher) = arm(False), arm(True)
    _seconds(plain, 5), _seconds(watched, 5)
    count = max(round(_BLOCK_SECONDS / (_seconds(plain, 5) / 5)), 1)
    alone, beside = [], []
    for pair in range(_PAIRS):
        if pair % 2:
            alone.append(_seconds(plain, count))
        beside.append(_seconds(watched, count))
        if not pair % 2:
            alone.append(_seconds(plain, count))
    watcher.stop()
    # Differences by one mean: a mean of ratios of noisy times would be too large.
    percents = [
        100 * (with_it - without) / statistics.fmean(alone) for with_it, without in zip(beside, alone, strict=True)
    ]
    mean, half = statistics.fmean(percents), 1.96 * statistics.stdev(percents) / math.sqrt(_PAIRS)
    account = 100 * watcher.spent / sum(beside)
    rows = sum("layers" in row for row in watcher.rows)
    return {
        "name": f"CPU time that watching takes, by its own account: {name}",
        "measured": account,
        "target": _MOST_PERCENT,
        "unit": "%",
        "ok": account <= _MOST_PERCENT,
        "detail": f"{_PAIRS} pairs of blocks that take turns: {mean:+.2f} %, 95 % interval {mean - half:+.2f} to "
        f"{mean + half:+.2f}; {sum(beside):.1f} s of training, {rows} rows with a sample",
    }


if __name__ == "__main__":
    for row in measure():
        print(row)
