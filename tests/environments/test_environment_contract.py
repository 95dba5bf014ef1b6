"""What every environment promises, checked for isorun's own and for one that passes on only what it is told."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from isorun import plugins
from isorun.environments import INTERPRETER, Environments
from isorun.environments.interpreter import InterpreterEnvironment
from isorun.errors import PluginError
from isorun.execution import Job
from isorun.execution.local import LocalExecutor
from isorun.study import Environment
from isorun.study.records import RunState
from isorun.testing.environment_contract import EnvironmentContract
from isorun.testing.executor_contract import LOGS, execute, job_for

DISTRIBUTION = Path(__file__).parent.parent / "plugin_distribution"
POINTS = """
[isorun.environments]
box = isorun_example.environment:Box
bad = os:getcwd
odd = builtins:str
"""


@pytest.fixture(autouse=True)
def installed(tmp_path_factory, monkeypatch):
    """The example distribution's environment, found as an installed one is."""
    folder = tmp_path_factory.mktemp("installed")
    info = folder / "example-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: example\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.syspath_prepend(DISTRIBUTION)
    plugins.brought.cache_clear()
    yield
    plugins.brought.cache_clear()


class TestTheInterpreter(EnvironmentContract):
    def open_environment(self, declared):
        return InterpreterEnvironment(declared)


class TestABox(EnvironmentContract):
    def open_environment(self, declared):
        return Environments().of("box", declared)


class TestABoxAskedForWarmRuns(TestABox):
    launch = "warm"

    def test_no_run_of_it_is_forked_and_a_note_says_why(self, tmp_path):
        record = self.run(tmp_path, "import os; print('acc:', int('BOX' in os.environ and 'HOME' not in os.environ))")
        assert record.launch == "fresh"
        assert list(record.series["acc"].values) == [1.0]
        (note,) = [note for note in record.notes if note.code == "not-warm"]
        assert "around the command" in note.message


def test_an_environment_is_opened_once_for_all_its_runs():
    known = Environments()
    declared = Environment("e", env={"A": "1"})
    assert known.of("box", declared) is known.of("box", replace(declared))
    assert known.of("box", declared) is not known.of("box", Environment("e", env={"A": "2"}))
    assert isinstance(known.of(INTERPRETER, declared), InterpreterEnvironment)


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("bax", r"no environment 'bax'[\s\S]*interpreter, bad, box, odd \(did you mean 'box'"),
        ("bad", r"'bad' cannot be opened[\s\S]*TypeError"),
        ("odd", r"'odd' cannot be used[\s\S]*found: +str"),
    ],
)
def test_a_kind_that_is_not_there_or_is_none_is_named(kind, why):
    with pytest.raises(PluginError, match=why):
        Environments().of(kind, Environment("e"))


def test_the_kind_travels_in_the_job_and_a_command_is_looked_for_inside(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "only-in-the-box").symlink_to(sys.executable)
    declared = Environment("default", env={"PATH": f"{tmp_path / 'bin'}:{os.defpath}"})
    plain = job_for(LOGS, tmp_path, environment=declared)
    job = replace(plain, command=("only-in-the-box", plain.command[1]), environment_kind="box")
    job = Job.from_json(json.loads(json.dumps(job.to_json())))
    executor = LocalExecutor(tmp_path / "runs")
    record = execute(executor, job)
    executor.close()
    assert (record.state, record.reason) == (RunState.FINISHED, "")
    assert record.environment["requested"]["box"] == "1"
