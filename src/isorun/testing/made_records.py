"""Records to keep in a store under test, with something in every field, and what makes them comparable."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from isorun.study.cells import Cell, Level
from isorun.study.records import Note, Predictions, RunRecord, RunState, Seeded, Series, canonical_json

ENVIRONMENT: Mapping[str, Any] = {
    "requested": {"threads": 1, "env": {}},
    "effective": {"threads": 1, "packages": {f"package-{number}": f"{number}.0" for number in range(40)}},
}


def make_cell(
    seed: int | None = 1, *, approach: str = "lenet", level: Level = Level.FIXED_SEED, repeat: int = 0
) -> Cell:
    return Cell(
        approach=approach,
        command=("python", "train.py", "--seed", "{seed}"),
        config="default",
        config_values={"lr": 0.1},
        environment="default",
        environment_content={"python": "", "env": {}, "threads": None},
        level=level,
        seed=seed,
        repeat=repeat,
    )


def make_series(points: int, seed: int = 0) -> Series:
    generator = random.Random(seed)
    seconds, now = [], 0.0
    for _ in range(points):
        now += generator.uniform(0.9, 1.1)
        seconds.append(now)
    return Series(tuple(map(float, range(points))), tuple(seconds), tuple(generator.random() for _ in range(points)))


def make_record(
    cell: Cell | None = None,
    *,
    attempt: int = 1,
    state: RunState = RunState.FINISHED,
    accuracy: float = 0.9,
    points: int = 5,
    **changes: Any,
) -> RunRecord:
    """A record with something in every field."""
    cell = cell or make_cell()
    fields: dict[str, Any] = {
        "exit_code": 0 if state is RunState.FINISHED else 1,
        "signal": "",
        "reason": "" if state is RunState.FINISHED else "exit code 1",
        "launch": "warm",
        "seed_used": cell.seed,
        "started_at": "2026-03-01T12:00:00+00:00",
        "wall_seconds": 3.25,
        "cpu_seconds": 3.0,
        "peak_memory_bytes": 123_456_789,
        "results": {"accuracy": accuracy},
        "per_class": {"recall": {"0": 0.5, "1": float("nan")}},
        "series": {"loss": make_series(points, 1), "accuracy": make_series(points, 1), "recall[0]": make_series(3, 2)},
        "predictions": (Predictions("test", None, "class", "int8", (4,), "eJxjZGJmAQAADgAH"),),
        "digests": {"weights.initial": "00ff" * 16, "weights.final": "ab" * 32, "mine": "not hexadecimal"},
        "environment": ENVIRONMENT,
        "code": {"commit": "0" * 40},
        "origins": {"loss": "log"},
        "seeded": (Seeded("torch.manual_seed", "0", "train.py:3"),),
        "notes": (Note("code", "A sentence."),),
        "log_tail": "epoch 1\nepoch 2\n",
    }
    return RunRecord(cell=cell, attempt=attempt, state=state, **{**fields, **changes})


def content(record: RunRecord) -> str:
    """All of a record as text, so that NaN equals NaN."""
    return canonical_json(record.to_json())
