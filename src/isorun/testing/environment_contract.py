"""What every environment promises, as tests: subclass `EnvironmentContract` and say how your environment is opened."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from isorun.environments import AbstractEnvironment, Environments
from isorun.errors import ExecutionError
from isorun.execution.carrying import Place, Workshop, carry_out
from isorun.study import Environment
from isorun.study.records import RunRecord, RunState
from isorun.testing.executor_contract import FAILS, LOGS, job_for

__all__ = ["EnvironmentContract"]

_LOOKS: Final = """
import os, isorun
seen = [os.environ.get(name) for name in ("MINE", "ISORUN_SEED", "PYTHONHASHSEED")]
isorun.result(all_there=float(seen == ["one two", "5", "0"]))
"""


class _Only(Environments):
    """One environment, whatever kind is asked for: a part is tried before it is installed."""

    def __init__(self, only: AbstractEnvironment) -> None:
        super().__init__()
        self._only = only

    def ready(self, declared: Environment, tell: Callable[[str], None]) -> AbstractEnvironment:
        """The one there is."""
        del declared, tell
        return self._only


class EnvironmentContract:
    """The promises of `AbstractEnvironment`: `python SCRIPT` can be run in it, and isorun's worker with it."""

    launch = "fresh"

    def open_environment(self, declared: Environment) -> AbstractEnvironment:
        """The environment that was declared; its `env` is the study's. Subclasses say how."""
        raise NotImplementedError

    def run(self, folder: Path, script: str, env: dict[str, str] | None = None, **fields: Any) -> RunRecord:
        """The record of the script, run in the environment."""
        declared = Environment("default", env=env or {})
        workshop = Workshop(launch=self.launch, environments=_Only(self.open_environment(declared)))
        job = job_for(script, folder, environment=declared, **fields)
        (folder / "run").mkdir()
        try:
            place = Place(workshop, tuple(sorted(os.sched_getaffinity(0))))
            return carry_out(job, folder / "run", place, lambda _event: None)
        finally:
            workshop.close()

    def test_a_training_runs_inside_and_the_worker_with_it(self, tmp_path: Path) -> None:
        record = self.run(tmp_path, LOGS, level="fixed-seed", seed=5)
        assert (record.state, record.reason) == (RunState.FINISHED, "")
        assert record.results == {"test_acc": 0.5}
        assert record.sources == {"acc": "log", "test_acc": "log"}
        assert "no-worker" not in {note.code for note in record.notes}

    def test_what_the_study_and_the_level_set_reaches_the_training(self, tmp_path: Path) -> None:
        record = self.run(tmp_path, _LOOKS, {"MINE": "one two"}, level="fixed-seed", seed=5)
        assert record.results == {"all_there": 1.0}, record.log_tail

    def test_the_exit_code_and_the_output_come_out(self, tmp_path: Path) -> None:
        record = self.run(tmp_path, FAILS)
        assert (record.state, record.exit_code) == (RunState.FAILED, 1)
        assert record.reason == "exit code 1: ValueError: no data"

    def test_what_it_is_is_recorded_as_plain_json(self, tmp_path: Path) -> None:
        prepared = self.open_environment(Environment("default")).prepare(["python", "train.py"], tmp_path)
        assert json.loads(json.dumps(prepared.identity)) == prepared.identity
        record = self.run(tmp_path, LOGS)
        requested = record.environment["requested"]
        assert {name: requested.get(name) for name in prepared.identity} == prepared.identity

    def test_preparing_again_gives_the_same(self, tmp_path: Path) -> None:
        environment = self.open_environment(Environment("default", env={"MINE": "1"}))
        first, second = (environment.prepare(["python", "train.py"], tmp_path) for _ in range(2))
        assert first == second

    def test_a_command_that_is_nowhere_is_refused_or_fails(self, tmp_path: Path) -> None:
        workshop = Workshop(launch="fresh", environments=_Only(self.open_environment(Environment("default"))))
        job = replace(job_for(LOGS, tmp_path), command=("no-such-program-anywhere",))
        (tmp_path / "run").mkdir()
        place = Place(workshop, tuple(sorted(os.sched_getaffinity(0))))
        try:
            said = str(carry_out(job, tmp_path / "run", place, lambda _event: None).state)
        except ExecutionError as error:
            said = error.message()
        finally:
            workshop.close()
        assert said == str(RunState.FAILED) or "no-such-program-anywhere" in said
