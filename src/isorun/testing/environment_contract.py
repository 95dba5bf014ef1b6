"""What every environment promises, as tests: subclass `EnvironmentContract` and say what yours is called.

class TestImage(EnvironmentContract):
    kind = "image"
    entry_point = "our_package.environment:Image"
    settings = {"name": "our-image:2"}
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from isorun import plugins
from isorun.environments import AbstractEnvironment
from isorun.errors import ExecutionError
from isorun.execution import Event, Job
from isorun.execution.carrying import Workbench, Workshop, carry_out
from isorun.execution.keeper import descendants
from isorun.study import Environment
from isorun.study.records import RunRecord, RunState
from isorun.testing.executor_contract import FAILS, HANGS, LOGS, job_for

__all__ = ["EnvironmentContract", "root_of_python"]

_PARTS_OF_PYTHON: Final = (
    "import json, os, sys, sysconfig\n"
    "print(json.dumps([os.path.realpath(sys.executable), sysconfig.get_path('stdlib')]))"
)
_NOT_NEEDED: Final = (
    "site-packages",
    "dist-packages",
    "test",
    "tests",
    "idlelib",
    "ensurepip",
    "tkinter",
)


def root_of_python(python: str, folder: Path, programs: Sequence[str] = ("/bin/sh", "/bin/sleep")) -> None:
    """Leave in the folder a root file system with a Python of this machine, called `python` there, and some programs.

    An image is made of it with no network: `tar --directory FOLDER --create . | podman import - NAME`.
    """
    found = subprocess.run([python, "-c", _PARTS_OF_PYTHON], capture_output=True, text=True, check=True).stdout
    interpreter, library = json.loads(found)
    shutil.copytree(library, folder / library[1:], ignore=shutil.ignore_patterns(*_NOT_NEEDED, "config-*", "*.a"))
    files = [interpreter, *programs, *map(str, Path(library).glob("lib-dynload/*.so"))]
    listed = subprocess.run(["ldd", *files], capture_output=True, text=True, check=False).stdout  # noqa: S607
    needed = {interpreter, *programs, *(word for word in listed.split() if word.startswith("/") and word[-1] != ":")}
    for name in needed:
        place = folder / name[1:]
        if not place.exists() and Path(name).is_file():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(name, place)
    for name in ("tmp", "proc", "sys", "dev", "etc", "usr/bin"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "usr/bin/python").unlink(missing_ok=True)
    (folder / "usr/bin/python").symlink_to(interpreter)


_LOOKS: Final = """
import os, isorun
seen = [os.environ.get(name) for name in ("MINE", "ISORUN_SEED", "PYTHONHASHSEED")]
isorun.result(all_there=float(seen == ["one two", "5", "0"]))
"""


_WRITES: Final = """
import os, pathlib, sys, isorun
pathlib.Path("left-here").write_text(os.environ["ISORUN_RUN_DIR"])
isorun.result(same_name=float(os.getcwd() == sys.argv[1]))
"""


class EnvironmentContract:
    """The promises of `AbstractEnvironment`: `python SCRIPT` can be run in it, and isorun's worker with it.

    It is found, opened and made as in a study, in a cache of its own. entry_point: what the entry point of the
    distribution names, so that it need not be installed yet; empty where it is. settings: what a study would tell it.
    """

    kind = ""
    entry_point = ""
    settings: Mapping[str, Any] = {}
    launch = "fresh"

    @pytest.fixture(autouse=True)
    def _found_and_made_anew(
        self, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[None]:
        place = tmp_path_factory.mktemp("environment")
        monkeypatch.setenv("ISORUN_CACHE", str(place / "cache"))
        if self.entry_point:
            info = place / "tried-1.dist-info"
            info.mkdir()
            (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tried\nVersion: 1\n", encoding="utf-8")
            points = f"[{plugins.ENVIRONMENTS}]\n{self.kind} = {self.entry_point}\n"
            (info / "entry_points.txt").write_text(points, encoding="utf-8")
            monkeypatch.syspath_prepend(place)
        plugins.brought.cache_clear()
        yield
        plugins.brought.cache_clear()

    def declared(self, env: Mapping[str, str] | None = None) -> Environment:
        """The environment as a study declares it."""
        return Environment("default", env=env or {}, kind=self.kind, settings=self.settings)

    def job(self, folder: Path, script: str, env: Mapping[str, str] | None = None, **fields: Any) -> Job:
        """A job that runs the script in the environment."""
        return job_for(script, folder, environment=self.declared(env), **fields)

    def workshop(self) -> Workshop:
        """What jobs are carried out in, as those of another process are: nothing is opened yet."""
        return Workshop(launch=self.launch, grace_seconds=1.0)

    def carry_out(self, job: Job, folder: Path, workshop: Workshop) -> RunRecord:
        """The record of the job."""
        (folder / "run").mkdir()
        bench = Workbench(workshop, tuple(sorted(os.sched_getaffinity(0))))
        return carry_out(job, folder / "run", bench, lambda _event: None)

    def run(self, folder: Path, script: str, env: Mapping[str, str] | None = None, **fields: Any) -> RunRecord:
        """The record of the script, run in the environment."""
        with closing(self.workshop()) as workshop:
            return self.carry_out(self.job(folder, script, env, **fields), folder, workshop)

    def ready(self, folder: Path, told: list[Event] | None = None) -> AbstractEnvironment:
        """The environment, made; the test is skipped where nothing is."""
        with closing(self.workshop()) as workshop:
            made = workshop.environment(
                self.job(folder, LOGS), lambda event: None if told is None else told.append(event)
            )
        assert made is not None
        if type(made).make is AbstractEnvironment.make:
            pytest.skip("nothing is made for such an environment")
        return made

    def test_a_training_runs_inside_and_the_worker_with_it(self, tmp_path: Path) -> None:
        record = self.run(tmp_path, LOGS, level="fixed-seed", seed=5)
        assert (record.state, record.reason) == (RunState.FINISHED, "")
        assert record.results == {"test_acc": 0.5}
        assert record.origins == {"acc": "log", "test_acc": "log"}
        assert "no-worker" not in {note.code for note in record.notes}

    def test_what_the_study_and_the_level_set_reaches_the_training(self, tmp_path: Path) -> None:
        record = self.run(tmp_path, _LOOKS, {"MINE": "one two"}, level="fixed-seed", seed=5)
        assert record.results == {"all_there": 1.0}, record.log_tail

    def test_the_folders_of_a_run_are_there_under_the_same_names(self, tmp_path: Path) -> None:
        """The working folder and the run's own are written to; the worker is found, or there was no result."""
        job = self.job(tmp_path, _WRITES)
        with closing(self.workshop()) as workshop:
            record = self.carry_out(replace(job, command=(*job.command, str(tmp_path))), tmp_path, workshop)
        assert record.results == {"same_name": 1.0}, record.log_tail
        assert (tmp_path / "left-here").read_text(encoding="utf-8") == str(tmp_path / "run")

    def test_the_exit_code_and_the_output_come_out(self, tmp_path: Path) -> None:
        record = self.run(tmp_path, FAILS)
        assert (record.state, record.exit_code) == (RunState.FAILED, 1)
        assert record.reason == "exit code 1: ValueError: no data"

    def test_what_it_is_is_recorded_as_plain_json(self, tmp_path: Path) -> None:
        with closing(self.workshop()) as workshop:
            environment = workshop.environment(job := self.job(tmp_path, LOGS), lambda _event: None)
            assert environment is not None
            prepared = environment.prepare(["python", "train.py"], tmp_path)
            assert json.loads(json.dumps(prepared.made)) == prepared.made
            made = self.carry_out(job, tmp_path, workshop).environment["made"]
        assert {name: made.get(name) for name in prepared.made} == prepared.made

    def test_preparing_again_gives_the_same(self, tmp_path: Path) -> None:
        with closing(self.workshop()) as workshop:
            environment = workshop.environment(self.job(tmp_path, LOGS, {"MINE": "1"}), lambda _event: None)
        assert environment is not None
        first, second = (environment.prepare(["python", "train.py"], tmp_path) for _ in range(2))
        assert first == second

    def test_a_command_that_is_nowhere_is_refused_or_fails(self, tmp_path: Path) -> None:
        job = replace(self.job(tmp_path, LOGS), command=("no-such-program-anywhere",))
        with closing(self.workshop()) as workshop:
            try:
                said = str(self.carry_out(job, tmp_path, workshop).state)
            except ExecutionError as error:
                said = error.message()
        assert said == str(RunState.FAILED) or "no-such-program-anywhere" in said

    def test_what_takes_long_is_made_once_and_found_by_the_next_process(self, tmp_path: Path) -> None:
        first = self.ready(tmp_path)
        left = {path: path.lstat().st_mtime_ns for path in first.folder.rglob("*")}
        told: list[Event] = []
        second = self.ready(tmp_path, told)
        assert (second.folder, told) == (first.folder, [])
        assert {path: path.lstat().st_mtime_ns for path in second.folder.rglob("*")} == left
        command = ["python", "train.py"]
        assert first.prepare(command, tmp_path) == second.prepare(command, tmp_path), "all of it is in the folder"

    def test_what_was_half_made_is_made_again_from_an_empty_folder(self, tmp_path: Path) -> None:
        folder = self.ready(tmp_path).folder
        names = {path.name for path in folder.iterdir()}
        folder.with_name(f"{folder.name}.made").unlink()  # as when its process was killed in the middle
        (folder / "half-made").touch()
        assert self.ready(tmp_path).folder == folder
        assert {path.name for path in folder.iterdir()} == names

    def test_a_run_that_is_stopped_while_its_environment_is_made_ends_and_leaves_no_process(
        self, tmp_path: Path
    ) -> None:
        before = {process.pid for process in descendants(os.getpid())}
        records: list[RunRecord] = []
        with closing(self.workshop()) as workshop:
            job = self.job(tmp_path, HANGS)
            run = threading.Thread(target=lambda: records.append(self.carry_out(job, tmp_path, workshop)))
            run.start()
            time.sleep(0.2)
            began = time.monotonic()
            workshop.stop(job.run_id)
            run.join(timeout=30)
            assert not run.is_alive(), "making goes on after it was stopped"
            assert time.monotonic() - began < 10
        assert [record.state for record in records] == [RunState.INTERRUPTED]
        assert [process.name for process in descendants(os.getpid()) if process.pid not in before] == []
