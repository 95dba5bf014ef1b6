import os
import subprocess
import sys
import time

import pytest

from isorun.environments import Folders, callers_variables, interpreter
from isorun.environments.interpreter import (
    ASK,
    FoundPython,
    InterpreterEnvironment,
    Interpreters,
    check_command,
    find_program,
)
from isorun.errors import ExecutionError
from isorun.execution.keeper import processes
from isorun.study import Environment

ENV = {"PATH": os.environ["PATH"]}


def executable(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return path


def prepared(command, tmp_path, monkeypatch, path, **chosen):
    monkeypatch.setenv("PATH", str(path))
    declared = Environment("e", python=chosen.get("python", ""))
    return InterpreterEnvironment(declared, Interpreters()).prepare(command, tmp_path)


@pytest.fixture
def activated(tmp_path):
    """A folder such as the bin of a virtual environment that is activated."""
    folder = tmp_path / "venv" / "bin"
    folder.mkdir(parents=True)
    for name in ("python", "python3"):
        (folder / name).symlink_to(sys.executable)
    return folder


@pytest.mark.parametrize("name", ["python", "python3"])
def test_a_leading_python_is_the_one_the_shell_would_have_run(tmp_path, monkeypatch, activated, name):
    found = prepared([name, "train.py"], tmp_path, monkeypatch, f"{activated}:/usr/bin:/bin")
    assert found.interpreter == str(activated / name)
    assert found.made == {"python": str(activated / name)}
    assert found.wrap(["python", "x"], {"A": "1"}, Folders(tmp_path, tmp_path, tmp_path)) == ("python", "x")


def test_an_interpreter_that_was_asked_for_wins_over_the_path(tmp_path, monkeypatch, activated):
    command = ["python", "train.py"]
    asked = prepared(command, tmp_path, monkeypatch, activated, python=sys.executable)
    assert asked.interpreter == asked.program == sys.executable


def test_a_function_belongs_to_the_interpreter_it_was_given_to(tmp_path, monkeypatch, activated):
    found = prepared(["function", "train.py:main"], tmp_path, monkeypatch, activated)
    assert found.interpreter == sys.executable


def test_where_there_is_no_python_the_error_names_the_other_one_or_the_option(tmp_path, monkeypatch, activated):
    (activated / "python").unlink()
    with pytest.raises(ExecutionError, match="'python' does not exist") as caught:
        prepared(["python", "train.py"], tmp_path, monkeypatch, activated)
    assert caught.value.hint.startswith("write python3 instead of python, or name an interpreter: --python PATH")
    with pytest.raises(ExecutionError, match="activate the environment"):
        prepared(["python", "train.py"], tmp_path, monkeypatch, tmp_path)


def test_another_program_has_no_interpreter(tmp_path, monkeypatch, activated):
    executable(tmp_path / "trainer", "#!/bin/sh\n")
    found = prepared(["./trainer", "train.sh"], tmp_path, monkeypatch, activated)
    assert (found.interpreter, found.program) == ("", str(tmp_path / "trainer"))


def test_the_variables_are_the_callers_and_the_studys_without_those_of_an_outer_isorun(tmp_path, monkeypatch):
    monkeypatch.setenv("ISORUN_SEED", "77")
    monkeypatch.setenv("MINE", "1")
    environment = InterpreterEnvironment(Environment("e", env={"MINE": "2", "NEW": "3"}), Interpreters())
    variables = environment.prepare(["true"], tmp_path).variables
    assert (variables["MINE"], variables["NEW"], "ISORUN_SEED" in variables) == ("2", "3", False)


def test_a_link_is_not_followed_because_virtual_environments_are_known_by_it(tmp_path):
    link = tmp_path / "python"
    link.symlink_to(sys.executable)
    assert Interpreters().find(str(link), ENV, tmp_path) == str(link)
    assert Interpreters().find("./python", ENV, tmp_path) == str(link)
    assert Interpreters().find("python", {"PATH": str(tmp_path)}, tmp_path) == str(link)


def test_an_interpreter_is_asked_once(tmp_path):
    asked = tmp_path / "asked"
    program = executable(tmp_path / "python", f'#!/bin/sh\necho x >> {asked}\nexec {sys.executable} "$@"\n')
    interpreters = Interpreters()
    for _ in range(3):
        interpreters.find(str(program), ENV, tmp_path)
    assert asked.read_text() == "x\n"


@pytest.mark.parametrize("name", ["no-such-python", "/no/such/python", "./no-such"])
def test_an_interpreter_that_does_not_exist_is_named(tmp_path, name):
    with pytest.raises(ExecutionError, match=f"interpreter '{name}' does not exist"):
        Interpreters().find(name, ENV, tmp_path)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("#!/bin/sh\nexit 3\n", "exit code 3"),
        ("#!/bin/sh\necho hello\n", "hello"),
        ("#!/bin/sh\necho isorun-python 3 7\n", "Python 3.7"),
        ("#!/bin/sh\necho isorun-python 2 7\n", "Python 2.7"),
        ("no program at all", "Exec format error"),
    ],
)
def test_what_is_no_usable_python_is_refused_with_what_it_said(tmp_path, text, found):
    program = executable(tmp_path / "python", text)
    with pytest.raises(ExecutionError) as caught:
        Interpreters().find(str(program), ENV, tmp_path)
    assert found in caught.value.found
    assert caught.value.allowed == "Python 3.8 or newer"


def test_an_interpreter_that_never_answers_is_named_while_one_waits_and_given_up(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(interpreter, "_SILENT_SECONDS", 0.1)
    monkeypatch.setattr(interpreter, "_PROBE_SECONDS", 0.5)
    program = executable(tmp_path / "python", f"#!/bin/sh\necho $$ > {tmp_path}/pid\nsleep 600\n")
    with pytest.raises(ExecutionError) as caught:
        Interpreters().find(str(program), ENV, tmp_path)
    assert caught.value.found == "no answer in 0.5 seconds"
    assert capsys.readouterr().err == f"isorun: waiting for {program} to say which Python it is\n"
    session, until = int((tmp_path / "pid").read_text()), time.monotonic() + 5
    while any(process.session == session for process in processes().values()):
        assert time.monotonic() < until, "what it started is still there"
        time.sleep(0.01)


def test_a_file_that_may_not_be_executed_and_a_folder_are_told_apart(tmp_path):
    (tmp_path / "plain").write_text("x")
    with pytest.raises(ExecutionError, match="not executable"):
        find_program("./plain", ENV, tmp_path)
    with pytest.raises(ExecutionError, match="is a folder"):
        find_program("./", ENV, tmp_path)


def test_programs_are_searched_in_the_path_of_the_study_not_of_the_caller(tmp_path):
    program = executable(tmp_path / "trainer", "#!/bin/sh\n")
    assert find_program("trainer", {"PATH": str(tmp_path)}, tmp_path) == str(program)
    with pytest.raises(ExecutionError, match="no program of that name in PATH"):
        find_program("trainer", ENV, tmp_path)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("isorun-python 3 11 /opt/my python/bin/python3\n", ((3, 11), "/opt/my python/bin/python3")),
        ("isorun-python 2 7 \n", ((2, 7), "")),
        ("Python 3.11", None),
        ("", None),
        ("isorun-python 3", None),
    ],
)
def test_what_a_python_says_of_itself_is_read_or_it_is_none(answer, told):
    assert FoundPython.of(answer) == told


def test_the_question_is_answered_by_this_python():
    done = subprocess.run([sys.executable, "-I", "-S", "-c", ASK], capture_output=True, text=True, check=True)
    assert FoundPython.of(done.stdout) == (sys.version_info[:2], sys.executable)


def test_variables_of_an_isorun_around_this_one_are_not_passed_on(monkeypatch):
    monkeypatch.setenv("ISORUN_SEED", "9")
    monkeypatch.setenv("MINE", "1")
    passed = callers_variables()
    assert "ISORUN_SEED" not in passed
    assert passed["MINE"] == "1"


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        (("FOO=1", "B=a b", "python", "t.py"), "isorun run --env FOO=1 --env 'B=a b' -- python t.py (or,"),
        (("FOO=a/b", "python", "t.py"), "isorun run --env FOO=a/b -- python t.py (or,"),
        (("-n", "2", "python", "t.py"), "options of isorun stand before the --"),
        (("python t.py --lr 1", "x"), "without quotes around the whole: python t.py --lr 1 x"),
        (("python ./t.py",), "without quotes around the whole: python ./t.py"),
        (("cd a && python t.py",), "sh -c 'cd a && python t.py'"),
        (("t.py", "--lr", "1"), "python t.py --lr 1"),
        (("run.sh", "1"), "./run.sh 1"),
        (("pyton", "t.py"), "python t.py"),
        (("./t.py",), "python ./t.py, or chmod +x"),
        (("python", "tt.py", "--lr", "1"), "python t.py --lr 1"),
        (("python", "far.py"), "name it as it is seen from"),
        (("python", "empty"), "python empty/train.py"),
    ],
)
def test_a_command_that_cannot_begin_is_refused_with_what_was_meant(tmp_path, command, hint):
    (tmp_path / "t.py").write_text("")
    (tmp_path / "run.sh").write_text("")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ExecutionError) as error:
        check_command(command, Environment("default", python=sys.executable), tmp_path)
    assert hint in error.value.hint


def test_a_program_with_a_blank_in_its_path_is_found_and_a_folder_may_be_a_program(tmp_path):
    executable(tmp_path / "my prog", "#!/bin/sh\n")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text("")
    for command in (("./my prog",), ("python", "package")):
        check_command(command, Environment("default", python=sys.executable), tmp_path)


def test_a_script_that_may_not_be_read_is_refused(tmp_path, monkeypatch):
    (tmp_path / "t.py").write_text("")
    monkeypatch.setattr(interpreter.os, "access", lambda _path, mode: mode != os.R_OK)
    with pytest.raises(ExecutionError, match="cannot be read") as error:
        check_command(("python", "t.py"), Environment("default", python=sys.executable), tmp_path)
    assert error.value.hint.startswith("chmod u+r")
