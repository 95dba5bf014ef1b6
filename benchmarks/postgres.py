"""The store in PostgreSQL, on a server of this machine with its files on the disk: claims, records, and reports.

Eight processes claim 80,000 cells, and record 4,000 runs of 200 points, each claimed before and given back after it. A
report is made from the server and from a folder with the same 10,000 runs x 200 points, in turns. Seconds are those of
the clock for what many processes do together, since the server works for them; the machine has few CPUs for eight
processes and a server. Needs psycopg and the programs of a PostgreSQL server (`make` installs both).
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from benchmark_jobs import spent
from isorun.study.records import RunRecord
from store import declared, fill, made_record

_WORKERS: Final = 8
_CLAIMS_A_WORKER: Final = 10_000
_RECORDS_A_WORKER: Final = 500
_LEASE_SECONDS: Final = 3600.0
"""Nobody but who measures holds 10,000 claims at once, none of which is given back: renewing them is left out."""
_TESTS: Final = Path(__file__).parents[1] / "tests" / "store"


def measure() -> list[dict[str, Any]]:
    with _server() as server:
        return [*_claims(server), *_records(server), *_reports(server.url())]


@contextmanager
def _server() -> Iterator[Any]:
    sys.path.insert(0, str(_TESTS))
    servers = importlib.import_module("postgres_server")
    server = servers.Server(servers.programs()[0], in_memory=False, autovacuum="on")
    try:
        yield server
    finally:
        server.close()


def _claims(server: Any) -> list[dict[str, Any]]:
    seconds, taken, cost = _together("claim", server)
    counted = Counter(itertools.chain.from_iterable(taken))
    total = _WORKERS * _CLAIMS_A_WORKER
    wrong = sum(1 for number in range(total) if counted[_cell_id(number)] != 1) + len(set(counted)) - total
    what = f"{_WORKERS} workers x {_CLAIMS_A_WORKER:,} claims"
    shares = f"{min(map(len, taken)):,} to {max(map(len, taken)):,} a worker"
    return [
        _row(f"{what}: claimed twice or not at all", wrong, 0, "cells, at most", shares),
        _row(f"{what}: speed", total / seconds, 500, "claims a second, at least", cost),
    ]


def _records(server: Any) -> list[dict[str, Any]]:
    seconds, made, cost = _together("record", server)
    total = sum(map(len, made))
    what = f"{_WORKERS} workers claim, record and give back {total:,} runs x 200 points"
    from isorun.store.postgres import PostgresStore

    with PostgresStore(server.url()) as store:
        kept = len(store.finished())
    return [
        _row(f"{what}: kept", kept, total, "records, exactly", "", ok=kept == total),
        _row(f"{what}: speed", total / seconds, 500, "records a second, at least", cost),
    ]


def _reports(url: str) -> list[dict[str, Any]]:
    from isorun.store.folder import FolderStore

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fill(folder / ".isorun", declared(folder), 1, 200)
        with FolderStore(folder / ".isorun") as source:
            _fill_server(url, source.records())
        study = str(folder / "study.toml")
        words = [sys.executable, "-m", "isorun", "report", study, "--store"]
        found: dict[str, list[tuple[float, float]]] = {str(folder / ".isorun"): [], url: []}
        for _, place in itertools.product(range(3), found):
            began = time.perf_counter()
            used = spent(folder, [*words, place])
            found[place].append((time.perf_counter() - began, used.cpu_seconds))
    of_folder, of_server = found.values()
    what = "isorun report, 10,000 runs x 200 points, from the server over from the folder"
    return [
        _ratio(f"{what}: clock", [one[0] for one in of_server], [one[0] for one in of_folder], "s"),
        _ratio(f"{what}: CPU of the command", [one[1] for one in of_server], [one[1] for one in of_folder], "CPU s"),
    ]


def _fill_server(url: str, records: Sequence[RunRecord]) -> None:
    """Write records straight into the tables: what is measured is reading them."""
    import psycopg

    from isorun.store.postgres.records import COLUMNS, packed_row

    parts: dict[bytes, str] = {}
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cells = [(record.cell.id,) for record in records]
        cursor.executemany("INSERT INTO isorun.cells (cell, attempt, finished) VALUES (%s, 1, true)", cells)
        with cursor.copy(f"COPY isorun.runs ({COLUMNS}) FROM STDIN") as copying:
            for record in records:
                row, shared = packed_row(record)
                parts |= shared
                copying.write_row(row)
        cursor.executemany("INSERT INTO isorun.parts VALUES (%s, %s) ON CONFLICT DO NOTHING", [*parts.items()])


def _ratio(name: str, of_server: list[float], of_folder: list[float], unit: str) -> dict[str, Any]:
    slow, quick = min(of_server), min(of_folder)
    return _row(name, slow / quick, 3.0, "times, at most", f"{slow:.2f} {unit} and {quick:.2f} {unit}, least of 3")


def _together(task: str, server: Any) -> tuple[float, list[list[str]], str]:
    """The seconds from the first worker's start of work to the last one's end, the cells each had, and the CPU time."""
    command = [sys.executable, __file__, task, server.url()]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    workers = [subprocess.Popen([*command, str(number)], **pipes) for number in range(_WORKERS)]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    began, before = time.perf_counter(), server.cpu_seconds()
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    answers = []
    for worker in workers:
        assert worker.stdout is not None
        answers.append(json.loads(worker.stdout.readline()))
    seconds, of_server = time.perf_counter() - began, server.cpu_seconds() - before
    for worker in workers:
        worker.communicate()
        assert worker.returncode == 0
    taken = [answer[1] for answer in answers]
    each = 1000 / sum(map(len, taken))
    workers_ms, server_ms = sum(answer[0] for answer in answers) * each, of_server * each
    cpus = len(os.sched_getaffinity(0))
    alone = 1000 * cpus / (workers_ms + server_ms)
    cost = f"each on the disk; {workers_ms:.2f} CPU ms of the workers and {server_ms:.2f} of the server each"
    cost += f", so {alone:,.0f} a second if {cpus} CPUs did nothing else; load of the machine {os.getloadavg()[0]:.0f}"
    return seconds, taken, cost


def work(task: str, url: str, number: int) -> None:
    """One of the workers."""
    from isorun.store.postgres import PostgresStore

    with PostgresStore(url, lease_seconds=_LEASE_SECONDS) as store:
        records = _made_records(number) if task == "record" else []
        print("ready", flush=True)
        sys.stdin.readline()
        began = time.process_time()
        taken = _record_all(store, records) if task == "record" else _claim_all(store)
        print(json.dumps([time.process_time() - began, taken]), flush=True)


def _claim_all(store: Any) -> list[str]:
    """What a worker does that takes whatever is left: it goes on behind what it got."""
    cells = [_cell_id(number) for number in range(_WORKERS * _CLAIMS_A_WORKER)]
    places = {cell: place for place, cell in enumerate(cells)}
    taken, place = [], 0
    while claims := store.claim_any(cells[place : place + 256]) or store.claim_any(cells[place:]):
        taken.append(claims[0].cell_id)
        place = places[claims[0].cell_id] + 1
    return taken


def _record_all(store: Any, records: list[Any]) -> list[str]:
    for record in records:
        claim = store.claim(record.cell.id)
        store.finish(record)
        claim.release()
    return [record.cell.id for record in records]


def _made_records(worker: int) -> list[Any]:
    from isorun.testing.made_records import make_cell

    generator = random.Random(worker)
    seeds = range(worker * _RECORDS_A_WORKER, (worker + 1) * _RECORDS_A_WORKER)
    return [made_record(make_cell(seed), 1, 200, generator) for seed in seeds]


def _cell_id(number: int) -> str:
    return f"{number:016x}"


def _row(
    name: str, measured: float, target: float, unit: str, detail: str, *, ok: bool | None = None
) -> dict[str, Any]:
    met = (measured >= target if unit.endswith("at least") else measured <= target) if ok is None else ok
    return {"name": name, "measured": measured, "target": target, "unit": unit, "ok": met, "detail": detail}


if __name__ == "__main__":
    if sys.argv[1:]:
        work(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    else:
        for row in measure():
            print(row)
