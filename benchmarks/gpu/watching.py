"""What `isorun.watch` adds to trainings on a GPU, at its default budget.

    PYTHONPATH=src python benchmarks/gpu/watching.py [FILE]

Prints one JSON object, and writes it to the file; it takes about two minutes, and runs on a CPU as well, where it says
nothing of GPUs. Two trainings, one watched and one not, take turns block by block, and the wall times of the blocks,
each until the device is done, are compared in pairs: a small network, a large one, and the small one in several
processes that share the device. Beside the pairs stands the watcher's own account, the CPU time of its samples by the
wall time of its training. Last, every step of a short training is sampled while torch forbids to wait for the device.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import torch
from torch import nn

from isorun.worker import watching

_SECONDS: Final = 30.0
_BLOCK_SECONDS: Final = 0.15
_MOST_PERCENT: Final = 0.1
_SHARE: Final = watching.SHARE / 2
"""The watcher's clock sees both trainings, of which it may charge one."""
_DEVICE: Final = torch.device("cuda" if torch.cuda.is_available() else "cpu")
_SHARING: Final = 6 if _DEVICE.type == "cuda" else 2

Step = Callable[[], Any]


def main(arguments: list[str]) -> None:
    torch.set_num_threads(1)
    if arguments[:1] == ["--one-of-several"]:
        print(json.dumps(_paired(_small, _SECONDS)))
        return
    rows = [
        _row("small perceptron", [_paired(_small, _SECONDS)]),
        _row("convolutions of 11 million parameters", [_paired(_large, _SECONDS)]),
        _row(f"small perceptron, {_SHARING} processes share the device", _together()),
        _without_waiting(),
    ]
    found = {"date": dt.date.today().isoformat(), "machine": _machine(), "rows": rows}
    text = json.dumps(found, indent=1)
    print(text)
    if arguments:
        Path(arguments[0]).write_text(text + "\n", encoding="utf-8")


def _machine() -> str:
    device = torch.cuda.get_device_name() if _DEVICE.type == "cuda" else "no GPU: measured on a CPU"
    return f"{device}, torch {torch.__version__}, Python {platform.python_version()}"


def _small() -> tuple[nn.Module, Any, Any]:
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
    return model.to(_DEVICE), torch.randn(64, 64, device=_DEVICE), torch.randint(0, 10, (64,), device=_DEVICE)


def _large() -> tuple[nn.Module, Any, Any]:
    def block(inner: int, outer: int) -> list[nn.Module]:
        first = [nn.Conv2d(inner, outer, 3, padding=1, stride=2, bias=False), nn.BatchNorm2d(outer), nn.ReLU()]
        return [*first, nn.Conv2d(outer, outer, 3, padding=1, bias=False), nn.BatchNorm2d(outer), nn.ReLU()]

    layers = [*block(3, 64), *block(64, 128), *block(128, 256), *block(256, 512), *block(512, 512)]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))
    batch = 256 if _DEVICE.type == "cuda" else 2
    images = torch.randn(batch, 3, 64, 64, device=_DEVICE)
    return model.to(_DEVICE), images, torch.randint(0, 10, (batch,), device=_DEVICE)


def _training(build: Callable[[], Any], watched: bool, every: int | None = None) -> tuple[Step, Any]:
    """A step of a training that nothing makes wait, and its watcher."""
    model, x, y = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    watcher = watching.watch(model, every=every, share=_SHARE) if watched else None

    def step() -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, watcher


def _block(step: Step, count: int, watcher: Any) -> float:
    """Wall seconds of so many steps and the end of an epoch, which reads the loss and so waits for the device."""
    began = time.perf_counter()
    for _ in range(count):
        loss = step()
    value = loss.item()
    if watcher is not None:
        watcher.mark(None, loss=value)
    return time.perf_counter() - began


def _paired(build: Callable[[], Any], seconds: float) -> dict[str, Any]:
    (plain, _), (watched, watcher) = _training(build, False), _training(build, True)
    for step in (plain, watched):
        _block(step, 5, None)
    count = max(round(_BLOCK_SECONDS / (_block(plain, 5, None) / 5)), 1)
    alone: list[float] = []
    beside: list[float] = []
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends or len(alone) < 4:
        turns = [(alone, plain, None), (beside, watched, watcher)]
        for times, step, its in turns if len(alone) % 2 else reversed(turns):
            times.append(_block(step, count, its))
    watcher.stop()
    mean = statistics.fmean(alone)
    return {
        "percents": [100 * (with_it - without) / mean for with_it, without in zip(beside, alone, strict=True)],
        "account": 100 * watcher.spent / sum(beside),
        "spent_ms": 1000 * watcher.spent,
        "seconds": sum(beside),
        "step_ms": 1000 * mean / count,
        "samples": sum("layers" in row for row in watcher.rows),
        "problem": watcher.problem,
    }


def _together() -> list[dict[str, Any]]:
    """The small network in several processes at once."""
    command = [sys.executable, __file__, "--one-of-several"]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(_SHARING)]
    told = [process.communicate()[0] for process in running]
    return [json.loads(text.splitlines()[-1]) for text in told]


def _row(name: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
    percents = [percent for part in parts for percent in part["percents"]]
    mean, half = statistics.fmean(percents), 1.96 * statistics.stdev(percents) / math.sqrt(len(percents))
    account = statistics.fmean(part["account"] for part in parts)
    problems = sorted({part["problem"] for part in parts if part["problem"]})
    detail = f"{len(percents)} pairs of blocks that take turns: {mean:+.2f} %, 95 % interval {mean - half:+.2f} to "
    detail += f"{mean + half:+.2f}; {sum(part['seconds'] for part in parts):.0f} s of watched training in steps of "
    detail += f"{statistics.fmean(part['step_ms'] for part in parts):.2f} ms, {sum(part['samples'] for part in parts)} "
    detail += f"rows with a sample, {sum(part['spent_ms'] for part in parts):.1f} ms spent"
    return {
        "name": f"CPU time that watching takes, by its own account: {name}",
        "measured": account,
        "target": _MOST_PERCENT,
        "unit": "%",
        "ok": account <= _MOST_PERCENT and not problems,
        "detail": detail + "".join(f"; {problem}" for problem in problems),
    }


def _without_waiting() -> dict[str, Any]:
    """Sample every step while waiting for the device raises: a watcher that waits ends and says so."""
    step, watcher = _training(_small, True, every=1)
    step()
    if _DEVICE.type == "cuda":
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(20):
            step()
    finally:
        if _DEVICE.type == "cuda":
            torch.cuda.set_sync_debug_mode("default")
    watcher.stop()
    rows = sum("layers" in row for row in watcher.rows)
    return {
        "name": "samples of 20 steps that made the training wait for the device",
        "measured": int(bool(watcher.problem)),
        "target": 0,
        "unit": "",
        "ok": not watcher.problem and rows > 0,
        "detail": watcher.problem or f"none; {rows} rows with a sample",
    }


if __name__ == "__main__":
    main(sys.argv[1:])
