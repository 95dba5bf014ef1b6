"""Simulates the boundaries of the default plans and writes them into the package: `python benchmarks/boundaries.py`.

Takes a few minutes. The file says how many comparisons they rest on; a test simulates some anew with fewer.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from isorun.analysis.sequential import DEFAULT_SPENDING, boundaries, cumulative_error, every, fractions

ALPHA = 0.05
STAGES = (30, 60, 120)
PLANS = (
    ("brunner-munzel", (30,), 1_048_576),
    ("brunner-munzel", STAGES, 196_608),
    ("signed-rank", (30,), 500_000),
)
"""The test, the maxima, and how many comparisons are simulated; looks after every run from 5 on."""


def plan(test: str, stages: tuple[int, ...], comparisons: int) -> dict[str, Any]:
    schedule = every(1, min_runs=5, max_runs=stages[-1])
    ends = tuple(stage / stages[-1] for stage in stages)
    cumulative = cumulative_error(DEFAULT_SPENDING, fractions(schedule), ALPHA, ends)
    found = boundaries.simulated(test, schedule, cumulative, comparisons, patient=True)
    return {
        "test": test,
        "spending": DEFAULT_SPENDING,
        "alpha": ALPHA,
        "comparisons": comparisons,
        "runs_a_side": [look.n_a for look in schedule],
        "cumulative": [float(f"{value:.12g}") for value in cumulative],
        "critical": [math.floor(1e6 * value) / 1e6 if math.isfinite(value) else None for value in found.critical],
        "spent": [round(value, 6) for value in found.spent],
    }


def main() -> None:
    path = Path(boundaries.__file__).with_name("boundaries.json")
    plans = [json.dumps(plan(*wanted), separators=(",", ":")) for wanted in PLANS]
    body = ",\n".join(plans)
    path.write_text(f'{{"plans": [\n{body}\n]}}\n', encoding="utf-8")
    print(f"wrote {path.name}")


if __name__ == "__main__":
    main()
