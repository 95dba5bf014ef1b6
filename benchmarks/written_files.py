"""What looking at a run's files costs when it has ended: processor time, with 300 files in its folder and 100,000."""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from isorun.sources import Found, files_written
from isorun.sources.written import Looked, found_among

SINCE: Final = time.time() - 3600
FEW, MANY = 300, 100_000
METRICS: Final = "epoch,step,train_loss,val_acc\n" + "".join(
    f"{n},{n * 10},{1 / (n + 1)},{n / 200}\n" for n in range(100)
)
OLD: Final = SINCE - 3600


def project(folder: Path, files: int) -> None:
    """Sources, data and checkpoints as old as they are, and what a training with a logger writes."""
    kinds = (".py", ".png", ".json", ".csv", ".txt", ".pt")
    for number in range(files - 5):
        place = folder / f"part{number // 1000}" if files > FEW else folder / f"part{number // 30}"
        place.mkdir(exist_ok=True)
        path = place / f"{number}{kinds[number % len(kinds)]}"
        path.touch()
        os.utime(path, (OLD, OLD))
    for place in folder.iterdir():
        os.utime(place, (OLD, OLD))
    logs = folder / "lightning_logs" / "version_3"
    logs.mkdir(parents=True)
    (logs / "metrics.csv").write_text(METRICS)
    (folder / "results.json").write_text('{"test_acc": 0.5, "model": "lenet"}')
    (folder / "predictions.csv").write_text("id,score\n" + "".join(f"{n},0.5\n" for n in range(1000)))
    (folder / "config.json").write_text('{"lr": 0.1}')
    (folder / "train.log").write_text("started\n" + "epoch 1: val_acc 0.5\n" * 50)


def milliseconds(folder: Path, *, has_metrics: bool, again: int = 15) -> tuple[float, int]:
    """Processor time of looking, the median of several, and how many metrics, or files with some, were found."""
    run = Looked(folder, folder / "run", SINCE, whole=True, has_metrics=has_metrics)
    times, found = [], Found()
    for _ in range(again):
        began = time.process_time()
        found = found_among(files_written(folder, SINCE), run, Found())
        times.append(time.process_time() - began)
    return statistics.median(times) * 1e3, len(found.series) or len(found.notes)


def measure() -> list[dict[str, Any]]:
    """The rows of the page of results."""
    rows = []
    for files, target in ((FEW, 20.0), (MANY, 100.0)):
        with TemporaryDirectory() as place:
            project(Path(place), files)
            for has_metrics in (True, False):
                measured, found = milliseconds(Path(place), has_metrics=has_metrics)
                kind = "with metrics of its own" if has_metrics else "without any metric"
                rows.append(_row(f"looking at {files:,} files of a run {kind}", measured, target, found))
    return rows


def _row(name: str, measured: float, target: float, found: int) -> dict[str, Any]:
    detail = f"{found} found; the median of 15 looks, in a process that has read such files before"
    unit = "ms of processor time, at most"
    return {
        "name": name,
        "measured": measured,
        "target": target,
        "unit": unit,
        "ok": measured <= target,
        "detail": detail,
    }


if __name__ == "__main__":
    for row in measure():
        sys.stdout.write(f"{row['name']}: {row['measured']:.2f} {row['unit']} {row['target']} ({row['detail']})\n")
