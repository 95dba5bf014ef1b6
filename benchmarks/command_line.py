"""How long the command line takes to answer: start-up, and a comparison of 50,000 runs."""

from __future__ import annotations

import csv
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

_ROWS: Final = 50_000


def measure() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as name:
        table = _table(Path(name) / "runs.csv")
        help_seconds = _best(["--help"], 10)
        import_seconds = _best_import(5)
        compare = ["compare", str(table), "--value", "value", "--by", "setting", "--a", "base", "--b", "new"]
        compare_seconds = _best(compare, 3)
        small = _table(Path(name) / "small.csv", 20)
        small_seconds = _best(["compare", str(small), *compare[2:]], 5)
    work = compare_seconds - import_seconds
    return [
        _row("isorun --help", help_seconds, 0.15, "best of 10"),
        _row("isorun compare on a small table, in all", small_seconds, 0.6, "best of 5, 20 runs"),
        _row(
            "isorun compare on 50,000 runs, work after start",
            work,
            1.0,
            f"best of 3: {compare_seconds:.2f} s, of which {import_seconds:.2f} s are start and imports",
        ),
    ]


def _row(name: str, measured: float, target: float, detail: str) -> dict[str, Any]:
    return {
        "name": name,
        "measured": measured,
        "target": target,
        "unit": "s",
        "ok": measured <= target,
        "detail": detail,
    }


def _table(path: Path, rows: int = _ROWS) -> Path:
    generator = random.Random(1)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["setting", "seed", "value"])
        for row in range(rows):
            setting = "base" if row % 2 else "new"
            writer.writerow([setting, row // 2, generator.gauss(0.9, 0.01)])
    return path


def _best(words: list[str], times: int) -> float:
    return min(_timed([sys.executable, "-m", "isorun", *words]) for _ in range(times))


def _best_import(times: int) -> float:
    return min(_timed([sys.executable, "-c", "import isorun.questions, isorun.report.terminal"]) for _ in range(times))


def _timed(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - began


if __name__ == "__main__":
    for row in measure():
        print(row)
