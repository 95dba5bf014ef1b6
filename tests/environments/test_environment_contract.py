"""What every environment promises, checked for isorun's own and for one that passes on only what it is told."""

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import isorun
from isorun import plugins
from isorun.environments.interpreter import InterpreterEnvironment
from isorun.errors import ExecutionError, PluginError, StudyError
from isorun.execution import Job
from isorun.execution.carrying import Workshop
from isorun.execution.keeper import descendants, processes
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
    yield folder
    plugins.brought.cache_clear()


def untold(_message):
    """Nobody listens."""


@contextmanager
def needed(declared, folder):
    """The workshop and a job in which such an environment is needed."""
    with closing(Workshop(launch="fresh")) as workshop:
        yield workshop, job_for(LOGS, folder, environment=declared)


def ready(declared, folder, tell=untold):
    """The environment, with all made that takes long, as runs of one process get it."""
    with needed(declared, folder) as (workshop, job):
        return workshop.environment(job, tell)


class TestTheInterpreter(EnvironmentContract):
    kind = "interpreter"


class TestABox(EnvironmentContract):
    kind = "box"
    entry_point = "isorun_example.environment:Box"
    settings = {"colour": "green"}  # noqa: RUF012 - as a subclass of others writes it


class TestABoxAskedForWarmRuns(TestABox):
    launch = "warm"

    def test_no_run_of_it_is_forked_and_a_note_says_why(self, tmp_path):
        record = self.run(tmp_path, "import os; print('acc:', int('BOX' in os.environ and 'HOME' not in os.environ))")
        assert record.launch == "fresh"
        assert list(record.series["acc"].values) == [1.0]
        (note,) = [note for note in record.notes if note.code == "not-warm"]
        assert "around the command" in note.message


def test_an_environment_is_opened_once_for_all_its_runs(tmp_path):
    declared = Environment("e", env={"A": "1"}, kind="box")
    with needed(declared, tmp_path) as (workshop, job):

        def opened(environment):
            return workshop.environment(replace(job, environment=environment), untold)

        assert opened(declared) is opened(replace(declared))
        assert opened(declared) is not opened(replace(declared, env={"A": "2"}))
        assert isinstance(opened(Environment("e")), InterpreterEnvironment)


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("bax", r"no environment 'bax'[\s\S]*interpreter, packages, container, bad, box, odd \(did you mean 'box'"),
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
    assert by_name["boxed"].environment["made"]["coats"] == ["red"]
    assert "coats" not in by_name["plain"].environment["made"]
    assert heard.messages == [("boxed", "painting the box red")]
    again = Heard()
    isorun.run(changed(isorun.Study.load(tmp_path / "study.toml"), repeats=2), observer=again)
    assert again.messages == []


def test_what_cannot_be_made_is_a_failed_run_while_others_go_on_and_is_tried_again(tmp_path):
    declared = Environment("e", kind="box", settings={"colour": "invisible"})
    for _ in range(2):
        with pytest.raises(ExecutionError, match="cannot be painted"):
            ready(declared, tmp_path)
    (tmp_path / "t.py").write_text("print('acc:', 0.5)")
    places = {"e": declared, "plain": {}}
    study = Study("s", approaches={"a": "python t.py"}, environments=places, folder=tmp_path, repeats=2)
    for attempt in (1, 2):
        outcome = isorun.run(study)
        failed = [record for record in outcome.records if record.state is not RunState.FINISHED]
        assert [(one.state, one.cell.environment, one.attempt) for one in failed] == [
            (RunState.FAILED, "e", attempt)
        ] * 2
        assert all("cannot be painted" in record.reason for record in failed)
        assert outcome.count(RunState.FINISHED) == (2 if attempt == 1 else 0)


def test_two_processes_make_it_once(tmp_path):
    code = (
        "import sys, pathlib; from isorun.execution.carrying import Workshop; from isorun.study import Environment\n"
        "from isorun.testing.executor_contract import job_for\n"
        "declared = Environment('e', kind='box', settings={'colour': 'blue'})\n"
        f"job = job_for('', pathlib.Path({str(tmp_path)!r}), environment=declared)\n"
        "workshop = Workshop(launch='fresh')\n"
        "print((workshop.environment(job, lambda _: None).folder / 'coats').read_text().split())\n"
        "workshop.close()"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    both = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=env) for _ in "12"]
    assert [process.communicate(timeout=60)[0] for process in both] == ["['blue']\n"] * 2


def test_who_waits_for_another_process_is_told(tmp_path):
    declared = Environment("e", kind="box", settings={"colour": "blue"})
    box, told = ready(declared, tmp_path), []
    with box.folder.with_name(f"{box.folder.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waits = threading.Thread(target=ready, args=(declared, tmp_path, told.append))
        waits.start()
        while not told:
            time.sleep(0.01)
    waits.join(timeout=30)
    assert not waits.is_alive()
    assert [event.message for event in told] == ["waiting for another isorun, which makes the environment e"]


def test_who_waits_for_another_process_can_be_stopped(tmp_path):
    declared = Environment("e", kind="box", settings={"colour": "blue"})
    box = ready(declared, tmp_path)
    with (
        box.folder.with_name(f"{box.folder.name}.lock").open("a") as lock,
        needed(declared, tmp_path) as (workshop, job),
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert workshop.environment(job, lambda _: workshop.stop(job.run_id)) is None


def test_a_run_that_is_stopped_while_another_one_makes_does_not_wait(tmp_path):
    declared = Environment("e", kind="box", settings={"dries": 60})
    with needed(declared, tmp_path) as (workshop, job):
        other = replace(job, attempt=2)
        told, answers = threading.Event(), []
        makes = threading.Thread(target=lambda: answers.append(workshop.environment(job, lambda _: told.set())))
        waits = threading.Thread(target=lambda: answers.append(workshop.environment(other, untold)))
        makes.start()
        assert told.wait(30)
        waits.start()
        workshop.stop(other.run_id)
        waits.join(timeout=10)
        assert (answers, makes.is_alive()) == ([None], True)
        workshop.kill()
        makes.join(timeout=10)
        assert answers == [None, None]


BREAKS = {
    "raise ValueError('no such wheel')": r"cannot be made[\s\S]*exit code 1:[\s\S]*ValueError: no such wheel",
    "import os; print('one last word', flush=True); os.kill(os.getpid(), 9)": "SIGKILL: one last word",
    "import sys; sys.exit('nobody is home')": "exit code 1: nobody is home",
    "print('the token is', self.declared.env['API_TOKEN']); import os; os._exit(3)": r"exit code 3: the token is \W",
}


@pytest.mark.parametrize("code", BREAKS)
def test_whatever_ends_the_making_names_the_kind_and_what_it_printed(code, tmp_path, installed):
    lines = ["from isorun_example.environment import Box", "class Breaking(Box):", "    def make(self, folder, tell):"]
    (installed / "breaking.py").write_text("\n".join([*lines, f"        {code}"]))
    with (installed / "example-1.0.dist-info" / "entry_points.txt").open("a") as points:
        points.write("breaking = breaking:Breaking\n")
    declared = Environment("e", kind="breaking", env={"API_TOKEN": "hunter2-hunter2"})
    with pytest.raises(PluginError, match="the environment 'breaking' cannot be made") as caught:
        ready(declared, tmp_path)
    assert re.search(BREAKS[code], str(caught.value))
    assert "hunter2" not in str(caught.value)
    assert not list((installed / "cache" / "environments").glob("*.made"))


WRAPS = """
from isorun_example.environment import Box, Boxed

class InNothing(Boxed):
    def wrap(self, argv, variables, folders):
        return ("no-such-podman", *argv)

class Nothing(Box):
    def make(self, folder, tell):
        (folder / "coats").touch()

    def prepare(self, command, working_folder):
        found = super().prepare(command, working_folder)
        return InNothing(found.program, found.interpreter, found.variables, found.made)
"""


def test_what_is_put_around_a_command_and_is_not_there_is_named(tmp_path, installed):
    (installed / "nothing_around.py").write_text(WRAPS)
    with (installed / "example-1.0.dist-info" / "entry_points.txt").open("a") as points:
        points.write("nothing = nothing_around:Nothing\n")
    executor = LocalExecutor(tmp_path / "runs")
    with (
        closing(executor),
        pytest.raises(ExecutionError, match="what runs the command 'no-such-podman' does not exist"),
    ):
        execute(executor, job_for(LOGS, tmp_path, environment=Environment("e", kind="nothing")))


DRIES = """
repeats = 3
[approaches.a]
command = "python t.py"
[environments.slow]
kind = "box"
settings.dries = 7654
"""


def test_a_signal_ends_what_is_being_made_and_all_that_it_started(tmp_path, installed):
    (tmp_path / "t.py").write_text("print('acc:', 0.5)")
    (tmp_path / "study.toml").write_text(DRIES)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "isorun", "run", "study.toml"]
    run = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    until = time.monotonic() + 60
    while not (dries := [one for one in descendants(run.pid) if one.name == "sleep"]):
        assert time.monotonic() < until
        assert run.poll() is None, run.stdout.read()
        time.sleep(0.05)
    run.send_signal(signal.SIGTERM)
    said, _ = run.communicate(timeout=20)
    assert "1 did not finish; stopped: interrupted" in said
    assert not {one.pid for one in dries} & set(processes())


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
    assert record.environment["made"]["box"] == "1"
