"""Packages: packing and verifying 10,000 runs x 200 points as people type it, and how large points are.

The runs are those of the benchmark of stores: every value is a random float64, the worst there is. Beside them stand
series of real trainings: softmax regression on scikit-learn's digits in float32, 40 seeds x 200 epochs, four metrics.
Times are those of the whole command, the least of five: other work on the machine only ever adds.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmark_jobs import Used, spent
from isorun.packages.writing import PackageWriter
from isorun.store.content import stored_form
from isorun.study.records import RunRecord, Series
from store import declared, fill, made_record

_SHAPE: Final = "10,000 runs x 200 points"
_SEEDS: Final = 40
_EPOCHS: Final = 200


def measure() -> list[dict[str, Any]]:
    return [*_large(), *_real()]


def _large() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fill(folder / ".isorun", declared(folder), metrics=1, points=200)
        package = folder / "many.isorun"
        packing = _command(["pack", str(folder / "study.toml"), "-o", str(package), "--no-sign"])
        verifying = _command(["verify", str(package)])
        size = package.stat().st_size / 2_000_000
        return [
            _row(f"isorun pack, {_SHAPE}", packing.seconds, 3.0, "s, at most", _beside(packing)),
            _row(f"isorun verify, {_SHAPE}", verifying.seconds, 1.0, "s, at most", _beside(verifying)),
            _row(f"isorun pack, {_SHAPE}: memory", packing.peak_bytes / 2**20, 500.0, "MB, at most"),
            _row(f"isorun verify, {_SHAPE}: memory", verifying.peak_bytes / 2**20, 200.0, "MB, at most"),
            _row(f"a package of {_SHAPE}", size, 10.0, "bytes a point, at most", "random float64 values"),
        ]


def _real() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as name:
        cells = declared(Path(name))[:_SEEDS]
        records = [_trained(made_record(cell, 1, 1, _generator()), seed) for seed, cell in enumerate(cells)]
        path = Path(name) / "real.isorun"
        with path.open("wb") as file:
            writer = PackageWriter(file)
            writer.add_records(sorted(map(stored_form, records), key=lambda record: record.cell.id))
            manifest = writer.finish("real")
        numbers = sum(member.size for member in manifest.members if member.name.endswith(".numbers"))
        points = manifest.points
        detail = f"{points:,} points; steps, times and values take {numbers / points:.2f} of them"
        what = f"a package of {_SEEDS} real trainings x {_EPOCHS} epochs x 4 metrics"
        return [_row(what, path.stat().st_size / points, 10.0, "bytes a point, at most", detail)]


def _generator() -> Any:
    import random

    return random.Random(1)


def _trained(record: RunRecord, seed: int) -> RunRecord:
    """The record with the series of a real training, with its real times."""
    from dataclasses import replace

    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    scaled, generator = (images / 16).astype(np.float32), np.random.default_rng(seed)
    order = generator.permutation(len(labels))
    train, test = order[:1200], order[1200:]
    weights = generator.normal(0, 0.01, (64, 10)).astype(np.float32)
    rows, began = [], time.perf_counter()
    for _ in range(_EPOCHS):
        for batch in np.array_split(generator.permutation(train), 8):
            odds = _softmax(scaled[batch] @ weights)
            odds[np.arange(len(batch)), labels[batch]] -= 1
            weights -= np.float32(0.5 / len(batch)) * (scaled[batch].T @ odds)
        told = [*_scores(weights, scaled[train], labels[train]), *_scores(weights, scaled[test], labels[test])]
        rows.append((time.perf_counter() - began, told))
    seconds, steps = [row[0] for row in rows], range(1, _EPOCHS + 1)
    names = ("train_loss", "train_acc", "test_loss", "test_acc")
    series = {name: Series(steps, seconds, [row[1][place] for row in rows]) for place, name in enumerate(names)}
    return replace(record, series=series, origins=dict.fromkeys(series, "log"))


def _softmax(scores: Any) -> Any:
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def _scores(weights: Any, images: Any, labels: Any) -> tuple[float, float]:
    odds = _softmax(images @ weights)
    loss = -np.log(odds[np.arange(len(labels)), labels] + np.float32(1e-9)).mean()
    return float(loss), float((odds.argmax(axis=1) == labels).mean())


def _command(words: Sequence[str]) -> Used:
    """What an isorun command takes, the least of five."""
    with tempfile.TemporaryDirectory() as folder:
        found = [spent(Path(folder), [sys.executable, "-m", "isorun", *words]) for _ in range(5)]
    return min(found, key=lambda used: used.seconds)


def _beside(used: Used) -> str:
    return f"least of 5; {used.cpu_seconds:.2f} CPU s; load of the machine {os.getloadavg()[0]:.0f}"


def _row(name: str, measured: float, target: float, unit: str, detail: str = "least of 5") -> dict[str, Any]:
    return {
        "name": name,
        "measured": measured,
        "target": target,
        "unit": unit,
        "ok": measured <= target,
        "detail": detail,
    }
