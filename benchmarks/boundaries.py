"""Simulates the boundaries of the default plan and writes them into the package: `python benchmarks/boundaries.py`.

Takes about a minute. The file says how many comparisons they rest on; a test simulates them anew with fewer.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from isorun.analysis.sequential import boundaries
from isorun.analysis.sequential.looks import every, fractions
from isorun.analysis.sequential.spending import DEFAULT_SPENDING, cumulative_error

COMPARISONS = 1_048_576
ALPHA = 0.05
SCHEDULE = every(1, min_runs=5, max_runs=30)


def default_plan() -> dict[str, Any]:
    cumulative = cumulative_error(DEFAULT_SPENDING, fractions(SCHEDULE), ALPHA)
    found = boundaries.simulated_superiority(SCHEDULE, cumulative, COMPARISONS)
    return {
        "plan": f"brunner-munzel, looks after every run from 5 to 30 a side, {DEFAULT_SPENDING}, alpha {ALPHA}",
        "comparisons": COMPARISONS,
        "looks": [list(look) for look in SCHEDULE],
        "cumulative": cumulative,
        "critical": [round(value, 6) if math.isfinite(value) else None for value in found.critical],
        "spent": [round(value, 6) for value in found.spent],
    }


def main() -> None:
    path = Path(boundaries.__file__).with_name("boundaries.json")
    path.write_text(json.dumps({"plans": [default_plan()]}, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {path.name}")


if __name__ == "__main__":
    main()
