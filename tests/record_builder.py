"""Realistic records without training anything: a LeNet-like classifier whose runs vary as the level allows."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from isorun.study.cells import Cell, Level, cells_of
from isorun.study.design import Approach, Study
from isorun.study.records import Predictions, RunRecord, RunState, Series

CLASSES = 10
SPREAD = {Level.DEFAULT: 0.006, Level.FIXED_SEED: 0.002, Level.DETERMINISTIC: 0.0}
ENVIRONMENT = {"requested": {}, "effective": {"torch": {"threads": 2}, "cpu": {"affinity": 2, "model": "EPYC"}}}


def make_study(**changes: Any) -> Study:
    """A study of three levels with eight runs each, unless told otherwise."""
    given: dict[str, Any] = {
        "name": "digits",
        "approaches": {"LeNet": Approach("LeNet", ("python", "train.py"))},
        "levels": tuple(Level),
        "repeats": 8,
    }
    return Study(**(given | changes))


def make_cell(level: Level = Level.DEFAULT, repeat: int = 0, **changes: Any) -> Cell:
    given: dict[str, Any] = {
        "approach": "LeNet",
        "command": ("python", "train.py"),
        "config": "default",
        "config_values": {},
        "environment": "default",
        "environment_content": {},
        "level": level,
        "seed": 1 if level.fixes_seed else None,
        "repeat": repeat,
    }
    return Cell(**(given | changes))


def make_record(cell: Cell | None = None, **changes: Any) -> RunRecord:
    """A bare finished record."""
    given: dict[str, Any] = {
        "cell": cell or make_cell(),
        "attempt": 1,
        "state": RunState.FINISHED,
        "exit_code": 0,
        "signal": "",
        "reason": "",
        "launch": "warm",
        "seed_used": 1,
        "started_at": "2026-01-01T00:00:00Z",
        "wall_seconds": 10.0,
        "cpu_seconds": 18.0,
        "peak_memory_bytes": 400 * 2**20,
        "environment": ENVIRONMENT,
        "code": {"script": "5f3a"},
    }
    return RunRecord(**(given | changes))


def make_series(values: Sequence[float], seconds_per_step: float = 1.0) -> Series:
    steps = tuple(float(step) for step in range(1, len(values) + 1))
    return Series(steps, tuple(step * seconds_per_step for step in steps), tuple(values))


def with_results(values: Sequence[float], level: Level = Level.DEFAULT, metric: str = "test_acc") -> list[RunRecord]:
    """Records that logged nothing but one final value each."""
    return [make_record(make_cell(level, place), results={metric: value}) for place, value in enumerate(values)]


def trained_records(study: Study, *, epochs: int = 20, weak: int = 0) -> list[RunRecord]:
    """A finished record for every cell of the study; the first `weak` default runs never learn."""
    stuck = 0
    records = []
    for cell in cells_of(study):
        is_stuck = cell.level is Level.DEFAULT and stuck < weak
        stuck += is_stuck
        records.append(trained_record(cell, epochs=epochs, stuck=is_stuck))
    return records


def trained_record(cell: Cell, *, epochs: int = 20, stuck: bool = False) -> RunRecord:
    """One training whose curve rises to its own height and whose classes err each in their own way."""
    random = _generator(cell)
    height = 0.1 if stuck else 0.971 + SPREAD[cell.level] * random.standard_normal()
    epoch = np.arange(1, epochs + 1)
    wobble = 0.004 * random.standard_normal((3, epochs)) * (cell.level is not Level.DETERMINISTIC)
    wobble += 0.004 * np.random.default_rng(7).standard_normal((3, epochs))
    curve = height - (0 if stuck else 0.5) * np.exp(-epoch / 3.0)
    test, val = (np.clip(curve + wobble[row], 0, 1) for row in (0, 1))
    loss = 2.3 * np.exp(-epoch / 4.0) + 0.1 + 0.004 * np.maximum(epoch - 14, 0) + 2 * np.abs(wobble[2])
    seconds = 0.8 + 0.02 * random.random()
    series = {"val_loss": loss, "val_acc": val, "test_acc": test, **_class_series(test, random, cell.level)}
    return make_record(
        cell,
        series={name: make_series([float(value) for value in values], seconds) for name, values in series.items()},
        wall_seconds=epochs * seconds + 0.5,
        cpu_seconds=1.9 * epochs * seconds,
        peak_memory_bytes=int((410 + 8 * random.random()) * 2**20),
        digests=_digests(cell),
        origins=dict.fromkeys(("val_loss", "val_acc", "test_acc"), "log"),
    )


def packed(values: Sequence[int], name: str = "test", step: float | None = None) -> Predictions:
    """Predicted classes as a run leaves them."""
    data = base64.b64encode(zlib.compress(np.asarray(values, dtype="<u1").tobytes())).decode()
    return Predictions(name, step, "class", "uint8", (len(values),), data)


def _class_series(test: np.ndarray, random: np.random.Generator, level: Level) -> Mapping[str, np.ndarray]:
    noise = 4 * SPREAD[level] * random.standard_normal((CLASSES, test.size))
    shift = np.linspace(-0.02, 0.02, CLASSES)
    return {f"test_acc[{name}]": np.clip(test + shift[name] + noise[name], 0, 1) for name in range(CLASSES)}


def _digests(cell: Cell) -> dict[str, str]:
    initial = cell.id if cell.level is Level.DEFAULT else f"seed {cell.seed}"
    final = f"seed {cell.seed}" if cell.level is Level.DETERMINISTIC else cell.id
    return {"weights.initial": _hex(initial), "weights.final": _hex(final)}


def _hex(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _generator(cell: Cell) -> np.random.Generator:
    """The same numbers for identical deterministic runs, others for all other runs."""
    key = (0, 0) if cell.level is Level.DETERMINISTIC else (1 + len(str(cell.level)), cell.repeat)
    return np.random.default_rng([*key, cell.seed or 0])
