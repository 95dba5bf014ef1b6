import subprocess
import sys

import pytest

from isorun.execution.command import PythonTarget, is_python, parse_python


@pytest.mark.parametrize(
    ("command", "target"),
    [
        ("python train.py --lr 0.1", PythonTarget("script", "train.py", ("--lr", "0.1"))),
        ("python3.11 -u train.py", PythonTarget("script", "train.py", (), ("-u",))),
        ("/opt/env/bin/python -m pkg.train -m x", PythonTarget("module", "pkg.train", ("-m", "x"))),
        ("python -mpkg.train a", PythonTarget("module", "pkg.train", ("a",))),
        ("python -um pkg", PythonTarget("module", "pkg", (), ("-u",))),
        ("python -c print(1) a", PythonTarget("code", "print(1)", ("a",))),
        (
            "python -W error -X dev -O train.py",
            PythonTarget("script", "train.py", (), ("-W", "error", "-X", "dev", "-O")),
        ),
        ("python -Werror -OO train.py", PythonTarget("script", "train.py", (), ("-Werror", "-OO"))),
        ("function train.py:main", PythonTarget("function", "train.py:main")),
        ("python", None),
        ("python -", None),
        ("python -m", None),
        ("python --version", None),
        ("python -W", None),
        ("bash train.sh", None),
        ("pythonic train.py", None),
        ("torchrun train.py", None),
    ],
)
def test_a_command_line_is_read_as_python_reads_it(command, target):
    assert parse_python(command.split()) == target


@pytest.mark.parametrize("options", [["-u"], ["-uB"], ["-X", "utf8"], ["-Xutf8", "-W", "ignore"], ["-O", "-s"]])
@pytest.mark.parametrize("ending", [["-c", "import sys; print(sys.argv[1:])"], ["-cimport sys; print(sys.argv[1:])"]])
def test_python_itself_agrees_on_the_arguments(options, ending):
    command = [sys.executable, *options, *ending, "-m", "one", "-c"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert printed == str(list(parse_python(command).arguments))


@pytest.mark.parametrize(
    ("name", "expected"), [("python", True), ("./python3.12", True), ("pypy", False), ("python2", False)]
)
def test_interpreters_are_known_by_name(name, expected):
    assert is_python(name) is expected
