"""Searches that take minutes, kept as they end: a JSON line each, in a file that a later call goes on with.

What is in the file is not searched again, so a control that depends on nothing that changed is searched once, and a
call may end at any moment. Of two lines about the same search the later one counts.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = [
    "Keeper",
    "Line",
    "OutOfTime",
    "about",
    "arguments",
    "interval",
    "lines_of",
    "row",
    "run_all",
    "wilson",
    "write_rows",
]

_ABOUT: Final = ("engine", "data", "fault", "seed", "arm")
"""What tells one search from another."""
Line = dict[str, Any]


class OutOfTime(Exception):
    """The time that was given is over; the search that is under way is given up."""


@dataclass(frozen=True)
class Keeper:
    """Where lines go, and until when (seconds since 1970) there is time for more."""

    path: Path
    until: float

    def check(self) -> None:
        """Give up where time is over."""
        if time.time() > self.until:
            raise OutOfTime

    def keep(self, line: Mapping[str, Any]) -> None:
        """One write at the end of the file: processes that keep lines at the same time do not mix them."""
        written = (json.dumps(line) + "\n").encode()
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(file, written)
        finally:
            os.close(file)


def lines_of(paths: Iterable[Path]) -> list[Line]:
    """The lines of all files, the last one of each search. Half a line is of a process that was killed: none."""
    found: dict[tuple[Any, ...], Line] = {}
    for path in paths:
        for text in path.read_text().splitlines() if path.exists() else ():
            try:
                line = json.loads(text)
            except json.JSONDecodeError:
                continue
            found[about(line)] = line
    return list(found.values())


def about(line: Mapping[str, Any]) -> tuple[Any, ...]:
    """Which search a line is about."""
    return tuple(line.get(name) for name in _ABOUT)


def run_all(work: Callable[[Any, Keeper], None], jobs: Sequence[Any], keeper: Keeper, processes: int) -> None:
    """Do every job in a pool, in their order. One that fails is told, and the others go on."""
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        doing = {pool.submit(_do, work, job, keeper): job for job in jobs}
        for place, done in enumerate(as_completed(doing), start=1):
            error = done.exception()
            told = f"{type(error).__name__}: {error}" if error else done.result()
            if told:
                print(f"{place} of {len(jobs)}: {doing[done]}: {told}", file=sys.stderr, flush=True)


def _do(work: Callable[[Any, Keeper], None], job: Any, keeper: Keeper) -> str:
    """How long it took; nothing where it was not even begun."""
    began = time.time()
    if began > keeper.until:
        return ""
    try:
        work(job, keeper)
    except OutOfTime:
        return "given up, time is over"
    return f"{time.time() - began:.0f} s"


def arguments(what: str, arms: Sequence[str], engines: Sequence[str], seeds: int) -> argparse.ArgumentParser:
    """`search --out FILE …` searches what is missing there; `rows FILE …` makes the table of what was found."""
    parser = argparse.ArgumentParser(description=what)
    commands = parser.add_subparsers(dest="command", required=True)
    search = commands.add_parser("search")
    search.add_argument("--out", type=Path, required=True, help="lines are kept here; those that it has are skipped")
    search.add_argument("--engine", choices=engines, nargs="+", default=list(engines))
    search.add_argument("--arms", choices=arms, nargs="+", default=list(arms))
    search.add_argument("--seeds", type=int, default=seeds, help="so many, from 0 on")
    search.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)), help="of one thread each")
    search.add_argument("--seconds", type=float, default=float("inf"), help="searches under way then are given up")
    rows = commands.add_parser("rows")
    rows.add_argument("files", type=Path, nargs="+")
    return parser


def write_rows(name: str, rows: Sequence[Line], lines: Sequence[Line]) -> None:
    """Into the results of all benchmarks, under the machines that the searches ran on."""
    import run

    machines = "; ".join(dict.fromkeys(str(line["machine"]) for line in lines))
    run.write({**run.kept(), name: run.result(list(rows), machines)})


def row(name: str, found: tuple[float, str], target: Any, detail: str, *, is_met: bool = True) -> Line:
    """A row of results. found: what was measured, and its unit."""
    measured, unit = found
    told = {"name": name, "measured": round(measured, 3), "unit": unit, "target": target}
    return {**told, "ok": is_met, "detail": detail}


def interval(differences: npt.NDArray[np.float64], seed: int = 0) -> tuple[float, float, float]:
    """The mean of paired differences with a 95 % interval by the bootstrap over pairs."""
    rng = np.random.default_rng(seed)
    drawn = differences[rng.integers(len(differences), size=(4000, len(differences)))].mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(differences.mean()), float(low), float(high)


def wilson(hits: int, tries: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    if not tries:
        return 0.0, 1.0
    z, share = 1.959964, hits / tries
    middle = (share + z * z / (2 * tries)) / (1 + z * z / tries)
    half = z * np.sqrt(share * (1 - share) / tries + z * z / (4 * tries * tries)) / (1 + z * z / tries)
    return max(float(middle - half), 0.0), min(float(middle + half), 1.0)
