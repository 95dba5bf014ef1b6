"""Pages: 50 users at once on a study of 1,000 runs, how soon the first page comes, and how large pages are.

Each user reads on: the study, its runs, one of them, a comparison, the leaderboard, the environments, the JSON; about a
second passes between two pages. Server and users share two cores. The first look at a study, which is analysed then, is
measured apart. Beside times stands CPU time, to which other work on the machine adds less, and how much there was.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import urlopen

from isorun.store import STUDIES
from isorun.store.folder import FolderStore
from isorun.study.cells import Cell, cells_of
from isorun.study.design import document_without_secrets, study_from_document
from store import fill

_USERS: Final = 50
_ROUNDS: Final = 8
_THINKING: Final = 1.0
_PAGES: Final = ("study", "runs", "compare", "leaderboard", "environments", "study.json", "study?level=default")
_STUDY: Final = "/shelves/lab/large"


def measure() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "lab"
        folder.mkdir()
        cells = _large(folder)
        rows = _starts(folder)
        with _served(folder) as (address, process):
            rows += _first_looks(address, process)
            rows += _users(address, process, cells)
        return rows


def _large(folder: Path) -> list[Cell]:
    """A study of 1,000 runs, each with three metrics at 40 epochs, kept by its name."""
    approaches = {name: {"command": f"python train.py {name}"} for name in ("base", "new")}
    levels = ["default", "fixed-seed"]
    design = {"approaches": approaches, "levels": levels, "seeds": [1, 2, 3, 4, 5], "repeats": 50}
    return _kept(folder, {"name": "large", **design})


def _kept(folder: Path, document: dict[str, Any]) -> list[Cell]:
    study = study_from_document(document, folder, "study")
    cells = list(cells_of(study))
    fill(folder / ".isorun", cells, metrics=3, points=40)
    with FolderStore(folder / ".isorun") as store:
        store.documents(STUDIES).write(study.name, {"folder": str(folder), **document_without_secrets(study)})
    return cells


@contextmanager
def _served(folder: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    words = [sys.executable, "-m", "isorun", "serve", str(folder / ".isorun"), "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[0].rstrip(":"), process
        process.terminate()


def _cpu(process: subprocess.Popen[str]) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _starts(folder: Path) -> list[dict[str, Any]]:
    """From the command to the first page, the least of five."""
    walls, spent = [], []
    small = folder.parent / "small"
    small.mkdir()
    _kept(small, {"name": "small", "approaches": {"base": {"command": "python train.py"}}, "repeats": 24})
    for _ in range(5):
        began = time.monotonic()
        with _served(small) as (address, process):
            urlopen(f"{address}/").read()
            walls.append(time.monotonic() - began)
            spent.append(_cpu(process))
    detail = f"a store of 24 runs; {min(walls):.2f} s of time where the load was {os.getloadavg()[0]:.0f}"
    return [_row("from isorun serve to the first page, least of 5", min(spent), 1.0, "CPU s, at most", detail)]


def _first_looks(address: str, process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    """The first look at each page; its size."""
    rows, largest = [], 0
    for page in ("study", "runs", "compare", "leaderboard", "environments"):
        before, began = _cpu(process), time.monotonic()
        largest = max(largest, len(urlopen(f"{address}{_STUDY}/{page}").read()))
        if page == "study":
            detail = f"{time.monotonic() - began:.1f} s of time where the load was {os.getloadavg()[0]:.0f}"
            rows.append(_row("the first look at a study of 1,000 runs", _cpu(process) - before, "", "CPU s", detail))
    return [*rows, _row("the largest page of a study of 1,000 runs", largest / 1000, 300.0, "kB, at most")]


def _users(address: str, process: subprocess.Popen[str], cells: Sequence[Cell]) -> list[dict[str, Any]]:
    before, began = _cpu(process), time.monotonic()
    took = asyncio.run(_all_users(address, cells))
    spent, wall = _cpu(process) - before, time.monotonic() - began
    took.sort()
    at = {share: took[min(int(share * len(took)), len(took) - 1)] for share in (0.5, 0.95, 0.99)}
    detail = (
        f"{len(took)} pages in {wall:.0f} s; median {1000 * at[0.5]:.0f} ms, 99 % {1000 * at[0.99]:.0f} ms; server CPU "
        f"{1000 * spent / len(took):.1f} ms a page; the load was {os.getloadavg()[0]:.0f}"
    )
    name = f"{_USERS} users on a study of 1,000 runs: 95 of 100 pages within"
    return [_row(name, 1000 * at[0.95], 200.0, "ms, at most", detail)]


async def _all_users(address: str, cells: Sequence[Cell]) -> list[float]:
    found = await asyncio.gather(*(_user(address, cells, random.Random(number)) for number in range(_USERS)))
    return [seconds for user in found for seconds in user]


async def _user(address: str, cells: Sequence[Cell], drawn: random.Random) -> list[float]:
    """One reader, with a connection of his own."""
    place = urlsplit(address)
    await asyncio.sleep(drawn.random() * _THINKING)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    took = []
    for _ in range(_ROUNDS):
        run = f"runs/{drawn.choice(cells).id}-1"
        for page in (
            "study",
            "runs",
            run,
            "compare",
            "leaderboard",
            "environments",
            "study.json",
            "study?level=default",
        ):
            began = time.monotonic()
            request = f"GET {_STUDY}/{page} HTTP/1.1\r\nHost: {place.netloc}\r\nAccept: text/html\r\n\r\n"
            writer.write(request.encode())
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            if not head.startswith("http/1.1 200"):
                raise RuntimeError(f"{page}: {head.splitlines()[0]}")
            length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
            await reader.readexactly(length)
            took.append(time.monotonic() - began)
            await asyncio.sleep(drawn.uniform(0.5, 1.5) * _THINKING)
    writer.close()
    return took


def _row(name: str, measured: float, target: float | str, unit: str, detail: str = "") -> dict[str, Any]:
    ok = target == "" or measured <= float(target)
    return {"name": name, "measured": measured, "target": target, "unit": unit, "ok": ok, "detail": detail}


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
