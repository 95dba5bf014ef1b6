import os
import sys

import pytest

from isorun.errors import ExecutionError
from isorun.execution.interpreter import Interpreters, find_program

ENV = {"PATH": os.environ["PATH"]}


def executable(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_no_name_means_the_interpreter_isorun_runs_in(tmp_path):
    assert Interpreters().find("", ENV, tmp_path) == sys.executable


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
        ("#!/bin/sh\necho isorun-probe 3 7\n", "Python 3.7"),
        ("#!/bin/sh\necho isorun-probe 2 7\n", "Python 2.7"),
        ("no program at all", "Exec format error"),
    ],
)
def test_what_is_no_usable_python_is_refused_with_what_it_said(tmp_path, text, found):
    program = executable(tmp_path / "python", text)
    with pytest.raises(ExecutionError) as caught:
        Interpreters().find(str(program), ENV, tmp_path)
    assert found in caught.value.found
    assert caught.value.allowed == "Python 3.8 or newer"


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
