"""The oracle outside: real studies in real processes, kills, and what must hold whatever happened.

The training keeps a ledger of its own beside the store: a line when a run begins and one at its very end, with a
token that it also records as its result. So what isorun says can be compared with what took place.
"""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from isorun import workflow
from isorun.session import is_there
from isorun.study.records import RunRecord, RunState, canonical_json

EPOCHS: Final = 4
TRAIN: Final = f"""
import os, pathlib, random, sys, time
import isorun

def tell(word):
    ledger = os.open(os.environ["CHAOS_LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(ledger, f"{{word}} {{pathlib.Path(os.environ['ISORUN_RUN_DIR']).name}} {{token}}\\n".encode())
    os.close(ledger)

token = int.from_bytes(os.urandom(6), "big")
pause = 0.2 * int.from_bytes(os.urandom(1), "big") / 255 / {EPOCHS}
tell("began")
for epoch in range(1, {EPOCHS} + 1):
    time.sleep(pause)
    isorun.log(epoch=epoch, val_acc=epoch / 8)
    print("epoch", epoch, flush=True)
isorun.result(token=token)
tell("ended")
"""
STUDY: Final = """
levels = ["default", "fixed-seed"]
repeats = {repeats}
[approaches.plain]
command = "python train.py"
[approaches.wide]
command = "python train.py --width {{config.width}}"
[configs.w]
width = 8
[metrics.token]
direction = "higher"
"""
CELLS_A_REPEAT: Final = 4

KEEPER, SERVER, TRAINING, PARENT = "keeper", "fork server", "training", "parent"


@dataclass(frozen=True)
class Member:
    """A living process of an invocation, and what it is there for."""

    pid: int
    role: str


@dataclass
class Invocation:
    """One `isorun run` process, and what it has said so far."""

    process: subprocess.Popen[bytes]
    mark: str
    said: Path
    result: Path

    @property
    def stderr(self) -> str:
        return self.said.read_text()

    @property
    def stdout(self) -> str:
        return self.result.read_text()

    def acknowledged(self) -> set[str]:
        """The labels of the cells that a whole progress line says are finished."""
        lines = self.stderr.split("\n")[:-1]
        found = [re.match(r"\[\d+/\d+\]  (.+): (?:last )?token \d", line) for line in lines]
        return {match[1] for match in found if match}

    def family(self) -> list[Member]:
        """The keepers, fork servers and trainings that belong to it and are alive."""
        return [member for member in living(self.mark) if member.pid != self.process.pid]

    def wait(self, timeout: float = 60) -> int:
        return self.process.wait(timeout)


@dataclass
class Workplace:
    """A folder with a study and its training, in which isorun is called as people call it.

    All processes that come of it carry a mark in their variables, by which none of them can hide.
    """

    folder: Path
    repeats: int = 2
    store: Path | None = None
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    _calls: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "train.py").write_text(TRAIN)
        self.extend(0)

    @property
    def study(self) -> Path:
        return self.folder / "study.toml"

    @property
    def store_folder(self) -> Path:
        return self.store or self.folder / ".isorun"

    def extend(self, repeats: int) -> None:
        """Ask for more repeats; the runs that are there stay."""
        self.repeats += repeats
        self.study.write_text(STUDY.format(repeats=self.repeats))

    def start(self, *options: object, under: Sequence[object] = ()) -> Invocation:
        """Start `isorun run` on the study. under: the words of a program that is to start it."""
        self._calls += 1
        said, result = (self.folder / f"call-{self._calls}.{name}" for name in ("stderr", "stdout"))
        store = ["--store", str(self.store)] if self.store else []
        with said.open("wb") as stderr, result.open("wb") as stdout:
            process = subprocess.Popen(
                [*map(str, under), sys.executable, "-m", "isorun", "run", "study.toml", *store, *map(str, options)],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                env={**os.environ, "CHAOS_MARK": self.mark, "CHAOS_LEDGER": str(self.folder / "ledger")},
            )
        return Invocation(process, self.mark, said, result)

    def run(self, *options: object) -> Invocation:
        """`isorun run`, waited for."""
        invocation = self.start(*options)
        invocation.wait()
        return invocation

    def ledger(self, word: str) -> dict[str, int]:
        """The token of each run that said the word, "began" or "ended"."""
        path = self.folder / "ledger"
        lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        said = [(run_id, int(token)) for word_said, run_id, token in lines if word_said == word]
        assert len(dict(said)) == len(said), "one attempt was carried out twice"
        return dict(said)

    def records(self) -> Sequence[RunRecord]:
        return workflow.records(self.study, store=self.store) if is_there(str(self.store_folder)) else ()

    def cells_by_label(self) -> dict[str, str]:
        cells = workflow.cells(workflow.load(self.study))
        labels = {cell.label: cell.id for cell in cells}
        assert len(labels) == len(cells)
        return labels


class Oracle:
    """Remembers what was acknowledged and seen in one workplace, and checks that it stays true."""

    def __init__(self, workplace: Workplace) -> None:
        self.workplace = workplace
        self.acknowledged: set[str] = set()
        self._seen: dict[str, str] = {}

    def hear(self, invocation: Invocation) -> None:
        """Take the acknowledgements of an invocation, and see that it never fell over."""
        labels = self.workplace.cells_by_label()
        self.acknowledged |= {labels[label] for label in invocation.acknowledged()}
        assert "Traceback" not in invocation.stderr, invocation.stderr

    def check(self) -> list[RunRecord]:
        """The invariant: acknowledged exactly once, nothing twice, nothing that was not produced whole."""
        records = self.workplace.records()
        finished = [record for record in records if record.state is RunState.FINISHED]
        assert only_once(record.cell.id for record in finished)
        assert only_once(record.run_id for record in records)
        assert self.acknowledged <= {record.cell.id for record in finished}
        self._stays_as_seen(records)
        ended, began = self.workplace.ledger("ended"), self.workplace.ledger("began")
        for record in finished:
            assert record.results["token"] == ended[record.run_id]
            assert record.series["val_acc"].values == tuple(epoch / 8 for epoch in range(1, EPOCHS + 1))
            assert not later_attempts(record, began), "a finished cell was carried out again"
        return finished

    def check_completed(self, invocation: Invocation) -> None:
        """After a resume that nobody disturbed: one finished record for each cell, and a sound database."""
        assert invocation.process.returncode == 0, invocation.stderr + invocation.stdout
        self.hear(invocation)
        wanted = set(self.workplace.cells_by_label().values())
        assert {record.cell.id for record in self.check()} == wanted
        assert sorted(path.name for path in (self.workplace.store_folder / "inbox").iterdir()) == []
        assert finished_rows(self.workplace.store_folder / "store.sqlite") == dict.fromkeys(wanted, 1)
        assert seconds_until_gone(self.workplace.mark, patience=5.0) <= 5.0, "processes were left behind"

    def missing(self) -> int:
        return CELLS_A_REPEAT * self.workplace.repeats - len(self.check())

    def _stays_as_seen(self, records: Iterable[RunRecord]) -> None:
        """A record that was there once is there for good, bit for bit."""
        now = {record.run_id: canonical_json(record.to_json()) for record in records}
        assert {run_id: now.get(run_id) for run_id in self._seen} == self._seen
        self._seen = now


def later_attempts(record: RunRecord, began: Iterable[str]) -> list[str]:
    """The runs of the record's cell that began after it."""
    runs = [run_id.rpartition("-") for run_id in began]
    return [attempt for cell, _, attempt in runs if cell == record.cell.id and int(attempt) > record.attempt]


def only_once(items: Iterable[str]) -> bool:
    return all(count == 1 for count in Counter(items).values())


def finished_rows(database: Path) -> dict[str, int]:
    """How many finished rows each cell has, read without isorun; the file must be sound."""
    connection = sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return dict(connection.execute("SELECT cell, COUNT(*) FROM runs WHERE state = 'finished' GROUP BY cell"))
    finally:
        connection.close()


def living(mark: str) -> list[Member]:
    """All living processes that carry the mark; zombies are not alive."""
    parents = {pid: parent for pid in _pids() if _carries(pid, mark) and (parent := _parent(pid)) is not None}
    lines = {pid: _command_line(pid) for pid in parents}
    return [Member(pid, _role(pid, parents, lines)) for pid in parents]


def _role(pid: int, parents: dict[int, int], lines: dict[int, str]) -> str:
    """A keeper's child is a fork server or a training; a fork server's child, which looks the same, is a training.

    Keepers are forked by the first of them.
    """
    if parents.get(parents[pid]) is None:
        return PARENT
    above = _role(parents[pid], parents, lines)
    if above in (PARENT, KEEPER) and "keeper.py" in lines[pid]:
        return KEEPER
    if above == PARENT:
        return "helper"
    return SERVER if above == KEEPER and "enter.py serve" in lines[pid] else TRAINING


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _carries(pid: int, mark: str) -> bool:
    try:
        return f"CHAOS_MARK={mark}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _parent(pid: int) -> int | None:
    try:
        state, parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
    except OSError:
        return None
    return None if state in "ZX" else int(parent)


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def kill(pid: int, mark: str) -> bool:
    """End one process that carries the mark, at once; whether it was there. Its number cannot be somebody else's."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        if not _carries(pid, mark):
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)


def seconds_until_gone(mark: str, patience: float) -> float:
    """How long processes with the mark are still seen; more than `patience` when they stay."""
    began = time.monotonic()
    while living(mark) and time.monotonic() - began <= patience:
        time.sleep(0.01)
    return time.monotonic() - began
