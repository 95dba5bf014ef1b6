"""What every environment promises, checked for isorun's own and for one that passes on only what it is told."""

import fcntl
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

import isorun
from isorun import plugins
from isorun.environments import Environments
from isorun.environments.interpreter import InterpreterEnvironment
from isorun.errors import ExecutionError, PluginError, StudyError
from isorun.execution import Job
from isorun.execution.local import LocalExecutor
from isorun.scheduling import Observer
from isorun.study import Environment
from isorun.study.cells import cells_of
from isorun.study.design import Study, changed, document_of, study_from_document
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
    monkeypatch.setenv("ISORUN_CACHE", str(folder / "cache"))
    plugins.brought.cache_clear()
    yield
    plugins.brought.cache_clear()


def untold(_message):
    """Nobody listens."""


class TestTheInterpreter(EnvironmentContract):
    def open_environment(self, declared):
        return InterpreterEnvironment(declared)


class TestABox(EnvironmentContract):
    def open_environment(self, declared):
        return Environments().ready(replace(declared, kind="box"), untold)


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
    declared = Environment("e", env={"A": "1"}, kind="box")
    assert known.ready(declared, untold) is known.ready(replace(declared), untold)
    assert known.ready(declared, untold) is not known.ready(replace(declared, env={"A": "2"}), untold)
    assert isinstance(known.ready(Environment("e"), untold), InterpreterEnvironment)


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("bax", r"no environment 'bax'[\s\S]*interpreter, bad, box, odd \(did you mean 'box'"),
        ("bad", r"'bad' cannot be opened[\s\S]*TypeError"),
        ("odd", r"'odd' cannot be used[\s\S]*found: +str"),
    ],
)
def test_a_kind_that_is_not_there_or_is_none_is_named_before_anything_is_made(kind, why, tmp_path):
    study = Study("s", approaches={"a": "python t.py"}, environments={"e": {"kind": kind}}, folder=tmp_path)
    with pytest.raises(PluginError, match=why):
        isorun.run(study)
    assert not list(tmp_path.iterdir())


def test_the_kind_checks_its_settings_before_anything_is_made(tmp_path):
    environments = {"e": {"kind": "box", "settings": {"color": "red"}}}
    study = Study("s", approaches={"a": "python t.py"}, environments=environments, folder=tmp_path)
    with pytest.raises(StudyError, match=r"environments.e.settings: a box has no setting 'color'"):
        isorun.run(study)
    assert not list(tmp_path.iterdir())


BOXED = """
[approaches.a]
command = "python t.py"
[environments.plain]
[environments.boxed]
kind = "box"
settings.colour = "red"
"""


class Heard(Observer):
    def __init__(self):
        self.messages = []

    def environment_told(self, cell, message):
        self.messages.append((cell.environment, message))


def test_a_study_file_selects_the_kind_and_what_takes_long_is_made_once(tmp_path):
    (tmp_path / "t.py").write_text("import os; print('boxed:', int('BOX' in os.environ), 'acc:', 0.5)")
    (tmp_path / "study.toml").write_text(BOXED + "\n")
    heard = Heard()
    outcome = isorun.run(tmp_path / "study.toml", observer=heard, jobs=2)
    assert outcome.count(RunState.FINISHED) == 2, outcome.records
    by_name = {record.cell.environment: record for record in outcome.records}
    assert by_name["boxed"].environment["requested"]["coats"] == ["red"]
    assert "coats" not in by_name["plain"].environment["requested"]
    assert heard.messages == [("boxed", "painting the box red")]
    again = Heard()
    isorun.run(changed(isorun.Study.load(tmp_path / "study.toml"), repeats=2), observer=again)
    assert again.messages == []


def test_what_cannot_be_made_ends_the_work_before_any_run_and_is_tried_again(tmp_path):
    declared = Environment("e", kind="box", settings={"colour": "invisible"})
    for _ in range(2):
        with pytest.raises(ExecutionError, match="cannot be painted"):
            Environments().ready(declared, untold)
    study = Study("s", approaches={"a": "python t.py"}, environments={"e": declared}, folder=tmp_path)
    with pytest.raises(ExecutionError, match="cannot be painted"):
        isorun.run(study)


def test_two_processes_make_it_once(tmp_path):
    code = (
        "import sys; from isorun.environments import Environments; from isorun.study import Environment\n"
        "box = Environments().ready(Environment('e', kind='box', settings={'colour': 'blue'}), lambda text: None)\n"
        "print((box.folder / 'coats').read_text().split())"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    both = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=env) for _ in "12"]
    assert [process.communicate(timeout=60)[0] for process in both] == ["['blue']\n"] * 2


def test_who_waits_for_another_process_is_told(tmp_path):
    declared = Environment("e", kind="box", settings={"colour": "blue"})
    box, told = Environments().ready(declared, untold), []
    with box.folder.with_name(f"{box.folder.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waits = threading.Thread(target=Environments().ready, args=(declared, told.append))
        waits.start()
        while not told:
            time.sleep(0.01)
    waits.join(timeout=30)
    assert not waits.is_alive()
    assert told == ["waiting for another isorun, which makes the environment e"]


def test_a_kind_that_is_not_set_is_in_no_identity():
    plain = Environment("default")
    assert plain.content() == {"python": "", "env": {}, "threads": None}
    boxed = Study(
        "s", approaches={"a": "true"}, environments={"default": {"kind": "box", "settings": {"colour": "red"}}}
    )
    assert cells_of(boxed)[0].environment_content["kind"] == "box"
    named = Study("s", approaches={"a": "true"}, environments={"default": {"kind": "interpreter"}})
    unset = Study("s", approaches={"a": "true"})
    assert cells_of(named)[0].id == cells_of(unset)[0].id != cells_of(boxed)[0].id
    assert study_from_document(document_of(boxed), Path(), "s") == boxed


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"kind": 3}, "kind: it must be a text"),
        ({"settings": {"colour": "red"}}, "an interpreter has no settings"),
        ({"kind": "interpreter", "settings": {"colour": "red"}}, "an interpreter has no settings"),
        ({"kind": "box", "settings": ["red"]}, "settings: it must be a table"),
        ({"kind": "box", "settings": {"a": {"b": [object()]}}}, "settings.a.b: a value is a text, a number"),
        ({"kind": "box", "settings": {"password": "hunter2"}}, "looks like a secret"),
    ],
)
def test_settings_are_plain_and_recorded(settings, why):
    with pytest.raises(StudyError, match=why):
        Study("s", approaches={"a": "true"}, environments={"e": settings})


def test_the_kind_travels_in_the_job_and_a_command_is_looked_for_inside(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "only-in-the-box").symlink_to(sys.executable)
    declared = Environment("default", env={"PATH": f"{tmp_path / 'bin'}:{os.defpath}"}, kind="box")
    plain = job_for(LOGS, tmp_path, environment=declared)
    job = replace(plain, command=("only-in-the-box", plain.command[1]))
    job = Job.from_json(json.loads(json.dumps(job.to_json())))
    executor = LocalExecutor(tmp_path / "runs")
    record = execute(executor, job)
    executor.close()
    assert (record.state, record.reason) == (RunState.FINISHED, "")
    assert record.environment["requested"]["box"] == "1"
