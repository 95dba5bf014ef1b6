"""Workers as people start them, for tests that kill them: a store, a study of many short trainings, and an oracle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from typed_commands import typed

LEASE = "1"
STUDY = """
name = "many"
repeats = {repeats}
[approaches.a]
command = "sh train.sh {{seed}} {{repeat}}"
[metrics.accuracy]
direction = "higher"
"""
# It says when it begins and when it ends, so that what was begun twice and what ran beside another is seen.
TRAIN = """
echo "begin $2 $$" >> trainings
sleep {seconds}
echo "end $2 $$" >> trainings
echo "accuracy: 0.$2"
"""


class Workers:
    """Processes of `isorun worker` on one store and one folder."""

    def __init__(self, folder: Path, url: str, *, repeats: int, seconds: float = 0.05) -> None:
        self.folder, self.url, self.repeats = folder, url, repeats
        self.started: list[subprocess.Popen[str]] = []
        (folder / "train.sh").write_text(TRAIN.format(seconds=seconds))
        self.queue(repeats)

    def queue(self, repeats: int) -> None:
        """Keep the study with so many cells in all, those that are finished included."""
        self.repeats = repeats
        (self.folder / "study.toml").write_text(STUDY.format(repeats=repeats))
        done = typed("run", "study.toml", "--store", self.url, "--queue", cwd=self.folder)
        assert done.returncode == 0, done.stderr

    def start(self, *words: str, url: str = "") -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "isorun", "worker", url or self.url, "--json", *words]
        errors = (self.folder / f"worker-{len(self.started)}.log").open("w")
        variables = {**os.environ, "ISORUN_LEASE": LEASE}
        worker = subprocess.Popen(
            command, cwd=self.folder, env=variables, stdout=subprocess.PIPE, stderr=errors, text=True
        )
        errors.close()
        self.started.append(worker)
        return worker

    def finished(self) -> int:
        """How many cells are finished, by the store."""
        from isorun.store.postgres import PostgresStore

        with PostgresStore(self.url) as store:
            return len(store.finished())

    def wait_for_more(self, than: int, seconds: float = 90.0) -> int:
        """The number of finished cells, as soon as there are more than that."""
        deadline = time.monotonic() + seconds
        while (found := self.finished()) <= than:
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.05)
        return found

    def said(self) -> str:
        """What workers wrote to stderr."""
        return "\n".join(path.read_text()[-2000:] for path in sorted(self.folder.glob("worker-*.log")))

    def check(self, *, killed: int) -> None:
        """A last worker makes what is left; then every cell is finished once, and nothing was begun without need."""
        from isorun.store.postgres import PostgresStore

        last = self.start()
        out, _ = last.communicate(timeout=180)
        assert last.returncode == 0, f"{out}\n{self.said()}"
        with PostgresStore(self.url) as store:
            records = store.records()
            finished = [record for record in records if record.state == "finished"]
            assert len(finished) == len({record.cell.id for record in finished}) == self.repeats
            assert {record.where["executor"] for record in finished} == {"worker"}
            for record in finished:
                assert record.results["accuracy"] == float(f"0.{record.cell.repeat}")
            assert store.verify().damage == ()
            assert [holder for holder in store.holders() if not holder.cell_id.startswith("worker-")] == []
        begun = [line.split()[1] for line in (self.folder / "trainings").read_text().splitlines() if "begin" in line]
        assert set(begun) == {str(number) for number in range(self.repeats)}
        assert len(begun) - self.repeats <= killed, "more trainings were begun than were lost"
        for worker in self.started:
            out = "" if worker.stdout is None or worker.stdout.closed else worker.stdout.read()
            assert "Traceback" not in out
        assert "Traceback" not in self.said(), self.said()

    def end(self) -> None:
        """End what a failing test left."""
        for worker in self.started:
            if worker.poll() is None:
                worker.send_signal(signal.SIGCONT)
                worker.kill()
                worker.wait()
            if worker.stdout is not None:
                worker.stdout.close()


def told(worker: subprocess.Popen[str], seconds: float = 60.0) -> dict:
    """What a worker that has come to its end printed."""
    out, _ = worker.communicate(timeout=seconds)
    return json.loads(out)
