"""A study on a SLURM cluster while its daemons are killed: what each training did, and what the store has of it."""

from __future__ import annotations

import collections
import contextlib
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import isorun
from isorun.study.records import RunState

TRAINING = """
import os, sys, time
import isorun
with open("began.txt", "a") as file:
    file.write(sys.argv[1] + "\\n")
for epoch in range(4):
    isorun.log(epoch=epoch, acc=epoch / 4)
    time.sleep(float(sys.argv[2]) / 4)
with open("done.txt", "a") as file:
    file.write(sys.argv[1] + "\\n")
isorun.result(test_acc=0.5 + int(sys.argv[1]) / 1e6)
"""
STUDY = """
name = "chaos"
seeds = {seeds}
levels = ["fixed-seed"]
[approaches.a]
command = "python train.py {{seed}} {seconds}"
[metrics.test_acc]
direction = "higher"
"""


class StudyUnderFire:
    """A study in a folder, and the isorun that carries it out."""

    def __init__(self, folder: Path, runs: int, seconds: float) -> None:
        self.folder = folder
        self.seeds = list(range(1, runs + 1))
        (folder / "train.py").write_text(TRAINING)
        (folder / "study.toml").write_text(STUDY.format(seeds=self.seeds, seconds=seconds))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *words: str) -> None:
        """`isorun run study.toml --executor slurm`, as a process of its own."""
        with (self.folder / "output.txt").open("ab") as output:
            command = [sys.executable, "-m", "isorun", "run", "study.toml", "--executor", "slurm", *words]
            self._process = subprocess.Popen(command, cwd=self.folder, stdout=output, stderr=output)

    @property
    def is_over(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    def kill(self) -> None:
        """SIGKILL to isorun."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def wait_a_little(self) -> None:
        """For two seconds, or until it is over."""
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(2.0)

    def wait(self, seconds: float) -> int:
        assert self._process is not None
        return self._process.wait(seconds)

    def check(self) -> dict[str, int]:
        """Every cell has one finished record with its own value; how often what happened."""
        records = isorun.records(str(self.folder / "study.toml"))
        finished = [record for record in records if record.state is RunState.FINISHED]
        found = collections.Counter(record.cell.seed for record in finished)
        assert found == collections.Counter(self.seeds), self.output()
        for record in finished:
            assert record.results == {"test_acc": 0.5 + record.cell.seed / 1e6}
            assert list(record.series["acc"].values) == [0.0, 0.25, 0.5, 0.75]
        status = isorun.status(str(self.folder / "study.toml"))
        assert (status.finished, status.missing, status.running, status.in_slurm) == (len(self.seeds), 0, (), ())
        return {
            "records": len(records),
            "lost": len(records) - len(finished),
            "begun": len((self.folder / "began.txt").read_text().split()),
            "trained": len((self.folder / "done.txt").read_text().split()),
        }

    def output(self) -> str:
        return (self.folder / "output.txt").read_text()

    def under_fire(self, kills: int, strike: Callable[[], None], *, after_the_first: bool = True) -> int:
        """Strike up to so many times while runs are left; how often that was. after_the_first: once a run has begun."""
        until, struck = time.monotonic() + 600, 0
        while after_the_first and not (self.folder / "began.txt").exists():
            assert time.monotonic() < until, self.output()
            time.sleep(0.1)
        while struck < kills and not self.is_over and time.monotonic() < until:
            strike()
            struck += 1
            time.sleep(1.0)
        return struck
