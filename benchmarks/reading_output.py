"""What reading metrics from a training's output costs: processor time a line, and memory, for a million lines."""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from isorun.execution.output import BoundedLog, LineSplitter, Output, Secrets
from isorun.sources.lines import LineMetrics
from isorun.study import Sources

LINES: Final = 1_000_000
KINDS: Final[dict[str, Callable[[int], str]]] = {
    "step 12: loss 0.5, acc 0.25": lambda n: f"step {n}: loss {1 / (n + 1):.6f}, acc {n % 100 / 100:.4f}\n",
    "epoch=3 loss=0.5 acc=0.25": lambda n: f"epoch={n} loss={1 / (n + 1):.6f} acc={n % 100 / 100:.4f}\n",
    "a JSON line": lambda n: f'{{"step": {n}, "loss": {1 / (n + 1):.6f}, "acc": {n % 100 / 100:.4f}}}\n',
    "a printed dictionary": lambda n: (
        f"{{'loss': {1 / (n + 1):.6f}, 'learning_rate': 1e-05, 'epoch': {n / 100:.2f}}}\n"
    ),
    "a line without metrics": lambda n: f"reading shard {n} of the corpus from the disk\n",
}


def seconds_for(make: Callable[[int], str], lines: int = LINES) -> float:
    """Processor seconds for so many lines of a kind, in pieces as a pipe gives them."""
    text = "".join(map(make, range(lines))).encode()
    pieces = [text[start : start + 65_536] for start in range(0, len(text), 65_536)]
    with TemporaryDirectory() as folder:
        metrics = LineMetrics(Sources())
        log = BoundedLog(Path(folder) / "output.log", secrets=Secrets(["s3cr3t-value"]))
        output = Output(log, LineSplitter(metrics.feed))
        began = time.process_time()
        for number, piece in enumerate(pieces):
            output.write(piece, float(number))
        output.close(1.0)
        log.close()
        metrics.finish()
        return time.process_time() - began


def peak_megabytes(make: Callable[[int], str], lines: int = LINES) -> float:
    """The most memory that reading so many lines takes at a time, the result left aside."""
    metrics = LineMetrics(Sources())
    splitter = LineSplitter(metrics.feed)
    tracemalloc.start()
    for first in range(0, lines, 1_000):
        splitter.write("".join(map(make, range(first, first + 1_000))).encode(), 0.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def measure() -> list[dict[str, Any]]:
    """The rows of the page of results."""
    rows = [
        _row(f"reading {LINES:,} lines: {kind}", seconds_for(make), 5.0, "s of processor time, at most")
        for kind, make in KINDS.items()
    ]
    first = next(iter(KINDS.values()))
    return [*rows, _row("memory while reading 100,000 lines", peak_megabytes(first, 100_000), 20.0, "MB, at most")]


def _row(name: str, measured: float, target: float, unit: str) -> dict[str, Any]:
    detail = f"{measured / LINES * 1e6:.2f} µs a line, output log and masking included" if "processor" in unit else ""
    return {
        "name": name,
        "measured": measured,
        "target": target,
        "unit": unit,
        "ok": measured <= target,
        "detail": detail,
    }


if __name__ == "__main__":
    lines = int(sys.argv[1]) if len(sys.argv) > 1 else LINES
    for kind, make in KINDS.items():
        print(f"{seconds_for(make, lines) / lines * 1e6:8.2f} µs a line  {kind}")
