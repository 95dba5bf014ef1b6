"""Run all benchmarks, or those named, and write benchmarks/RESULTS.md: `python benchmarks/run.py [NAME …]`.

Peers are measured in the same run, in environments of their own; every figure is a ratio or a count where that is
possible, because times depend on the machine. Results of benchmarks that are not run again are kept.
"""

from __future__ import annotations

import datetime as dt
import importlib
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
NAMES: Final = (
    "launch",
    "overhead",
    "environments",
    "logging_cost",
    "reading_output",
    "written_files",
    "withheld_secrets",
    "store",
    "postgres",
    "packages",
    "pages",
    "trackers",
    "command_line",
    "large_studies",
    "mixed",
    "bootstrap",
    "sequential",
    "watching",
    "training_problems",
    "held_out_problems",
    "repair.nasbench201",
    "repair.hpobench",
    "repair.stuck_digits",
    "repair.calibration",
    "repair.bug_alarms",
    "repair.real_searches",
    "repair.search_cost",
    "zoo_training",
    "zoo_pairs_and_episodes",
)
ELSEWHERE: Final = ("around", "containers", "ray_runs", "repair.autokeras_searches")
"""Need an environment that the others cannot share, or an engine: run only where they are named."""


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in (*NAMES, *ELSEWHERE)]
    if unknown:
        print(f"no benchmark {unknown[0]!r}; there are: {', '.join((*NAMES, *ELSEWHERE))}", file=sys.stderr)
        return 2
    # An installed isorun has its bytecode from pip; a checkout keeps it only where this is not set.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    results = kept()
    for name in names or NAMES:
        print(f"{name} …", file=sys.stderr, flush=True)
        rows = importlib.import_module(name).measure()
        results[name] = result(rows, machine())
        for row in rows:
            print(_line(row), file=sys.stderr, flush=True)
    write(results)
    return 0 if all(row["ok"] for result in results.values() for row in result["rows"]) else 1


def result(rows: list[dict[str, Any]], machine: str) -> dict[str, Any]:
    """What is kept of a benchmark."""
    return {"date": dt.date.today().isoformat(), "machine": machine, "rows": rows}


def write(results: dict[str, Any]) -> None:
    """The results of all benchmarks, for machines and as a page."""
    (HERE / "results.json").write_text(json.dumps(results, indent=1, default=str) + "\n")
    (HERE / "RESULTS.md").write_text(_page({**results, **_measured_on_gpus()}))


def kept() -> dict[str, Any]:
    """What was measured before."""
    path = HERE / "results.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    return {name: found[name] for name in (*NAMES, *ELSEWHERE) if name in found}


def _measured_on_gpus() -> dict[str, Any]:
    """What was measured on a machine with a GPU and kept: `make bench` itself needs none."""
    return {
        f"{path.stem} on a machine with a GPU": json.loads(path.read_text())
        for path in sorted((HERE / "gpu").glob("*.json"))
    }


def machine() -> str:
    """The machine that measures."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown CPU")
    cpus = len(os.sched_getaffinity(0))
    return f"{model}, {cpus} CPUs, {platform.system()} {platform.release()}, Python {platform.python_version()}"


def _line(row: dict[str, Any]) -> str:
    return f"  {'ok  ' if row['ok'] else 'MISS'} {row['name']}: {_number(row['measured'])} {row['unit']}"


def _number(value: Any) -> str:
    return f"{value:,.4g}" if isinstance(value, (int, float)) else str(value)


def _page(results: dict[str, Any]) -> str:
    parts = [
        "# Benchmark results",
        "",
        "Written by `make bench`; see the modules here for what is measured and how.",
        "",
    ]
    for name, result in results.items():
        parts += [f"## {name}", "", f"{result['date']}, {result['machine']}", ""]
        parts += ["| what | measured | target | | detail |", "|---|---|---|---|---|"]
        parts += [_table_row(row) for row in result["rows"]]
        parts.append("")
    return "\n".join(parts)


def _table_row(row: dict[str, Any]) -> str:
    cells = (
        row["name"],
        f"{_number(row['measured'])} {row['unit']}",
        _number(row["target"]),
        "**missed**" if not row["ok"] else "met" if row["target"] != "" else "",  # without a target nothing is met
        row["detail"],
    )
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
