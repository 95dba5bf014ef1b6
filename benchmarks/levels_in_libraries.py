"""Do two runs of one seed print the same, library by library? Programs in which nothing is seeded, at the fixed levels.

python benchmarks/levels_in_libraries.py                      with this interpreter, what it has
python benchmarks/levels_in_libraries.py --python PATH NAME   with another one, the programs that are named

Each program is run twice at `fixed-seed` and at `deterministic`; all lines that begin with `value` are compared. A
library that the interpreter does not have is left out. Exits with 1 where something differs that is not known to.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).with_name("library_programs.toml")
LEVELS = ("fixed-seed", "deterministic")


def main() -> int:
    """Run what is asked for, print a row each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--python", default=sys.executable, metavar="PATH")
    options = parser.parse_args()
    programs: dict[str, Any] = tomllib.loads(PROGRAMS.read_text())["programs"]
    unexpected = False
    for name, program in programs.items():
        if options.names and name not in options.names:
            continue
        if not _has(options.python, program["needs"]):
            print(f"| {name} | not installed |", flush=True)
            continue
        cells = {level: _differing(options.python, program["source"], level) for level in LEVELS}
        print(f"| {name} |", *(f"{_told(cells[level])} |" for level in LEVELS), flush=True)
        for level, lines in cells.items():
            known = tuple(program.get("differs", {}).get(level, ()))
            unexpected = unexpected or lines is None or any(not line.startswith(known or ("\0",)) for line in lines)
    return int(unexpected)


def _has(python: str, modules: list[str]) -> bool:
    code = "import importlib.util, sys; sys.exit(any(importlib.util.find_spec(m) is None for m in sys.argv[1:]))"
    return subprocess.run([python, "-c", code, *modules], check=False).returncode == 0


def _differing(python: str, source: str, level: str) -> list[str] | None:
    """The lines of the first run that the second has not; None where a run printed none."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "program.py").write_text(source)
        words = ["run", "-n", "2", "--level", level, "--store", "store", "--", python, "program.py"]
        subprocess.run([sys.executable, "-m", "isorun", *words], cwd=folder, capture_output=True, check=False)
        printed = [_values(path) for path in sorted((folder / "store" / "runs").glob("*/output.log"))]
    if len(printed) != 2 or not printed[0] or len(printed[0]) != len(printed[1]):
        return None
    return [first for first, second in zip(*printed, strict=True) if first != second]


def _values(output: Path) -> list[str]:
    lines = output.read_text(errors="replace").splitlines()
    return [line for line in lines if line.startswith("value")]


def _told(lines: list[str] | None) -> str:
    if lines is None:
        return "failed"
    return "differs: " + "; ".join(line[:40] for line in lines) if lines else "same"


if __name__ == "__main__":
    sys.exit(main())
