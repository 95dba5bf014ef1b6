"""The overview, its speed, and what all commands share."""

import subprocess
import sys
import time

import pytest

from isorun.cli.main import COMMANDS


def test_help_names_every_command(shell):
    text = shell("--help").stdout
    assert [name for name in COMMANDS if f"\n    {name}" not in text] == []
    assert shell().stdout == text


def test_help_is_fast_because_heavy_parts_load_when_used():
    times = []
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "isorun", "--help"], check=True, capture_output=True)
        times.append(time.perf_counter() - began)
    assert min(times) < 0.15 * 2  # twice the promise, for a busy machine; the benchmark holds the promise itself


def test_importing_isorun_loads_neither_numpy_nor_a_framework():
    code = (
        "import sys, isorun, isorun.cli.main; print(sorted({'numpy', 'scipy', 'torch', 'sqlite3'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name, shell):
    done = shell(name, "--help")
    assert done.returncode == 0
    assert "--json" in done.stdout
    assert all(len(line) <= 120 for line in done.stdout.splitlines())


def test_an_unknown_command_lists_the_known_ones(shell):
    done = shell("rnu")
    assert done.returncode == 2
    assert "'run'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away_is_no_error(toy):
    command = f"{sys.executable} -m isorun run study.toml --dry-run | head -1"
    done = subprocess.run(["bash", "-c", command], cwd=toy.folder, capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_version(shell):
    assert shell("--version").stdout.startswith("isorun 0.")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_standard_files_that_are_closed_stop_no_command(toy, closed):
    for command in ("run -- python train.py", "report", "--help"):
        line = f'"{sys.executable}" -m isorun {command} {closed}'
        done = subprocess.run(["sh", "-c", line], cwd=toy.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
    assert "1 finished" in toy("run", "--seed", "2", "--level", "fixed-seed", "--", "python", "train.py").stdout


def test_what_an_encoding_lacks_is_printed_as_a_question_mark(toy):
    toy("run", "-n", "2", "--", "python", "train.py")
    done = toy("report", env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert " ? " in done.stdout
