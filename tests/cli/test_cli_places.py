"""Where runs happen, as people type it: the interpreter, the devices, standard input."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import isorun


@pytest.fixture
def typed(tmp_path, monkeypatch):
    """A function that runs `isorun` in an empty folder as a process; stdout and stderr, and the exit code."""
    for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)

    def run(*words, **options):
        command = [sys.executable, "-m", "isorun", *words]
        options.setdefault("stdin", None if "input" in options else subprocess.DEVNULL)
        options = {key: value for key, value in options.items() if not (key == "stdin" and value is None)}
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120, **options
        )

    return run


def records(folder):
    return isorun.records("s", store=folder / ".isorun")


@pytest.fixture
def activated(tmp_path, monkeypatch):
    """A virtual environment that is activated and is not the one isorun runs in."""
    folder = tmp_path / "venv" / "bin"
    folder.mkdir(parents=True)
    for name in ("python", "python3"):
        (folder / name).symlink_to(sys.executable)
    (tmp_path / "venv" / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\n")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


@pytest.mark.parametrize("name", ["python", "python3"])
def test_in_an_activated_environment_python_is_the_one_of_that_environment(typed, activated, tmp_path, name):
    done = typed("run", "--name", "s", "--", name, "-c", "import sys; print('ok: 1'); print(sys.prefix)")
    assert done.returncode == 0
    assert done.stderr.splitlines()[0] == f"s: 1 run to do, with {activated / name}"
    (record,) = records(tmp_path)
    assert record.log_tail.splitlines()[-1] == str(tmp_path / "venv")
    assert record.environment["made"]["python"] == str(activated / name)


def test_the_interpreter_that_is_asked_for_wins(typed, activated, tmp_path):
    typed("run", "--name", "s", "--python", sys.executable, "--", "python", "-c", "import sys; print(sys.prefix)")
    (record,) = records(tmp_path)
    assert record.log_tail == sys.prefix
    assert record.environment["made"]["python"] == sys.executable


def test_a_path_without_python_is_an_error_with_the_next_step(typed, tmp_path):
    (tmp_path / "empty").mkdir()
    done = typed("run", "--", "python", "train.py", env={**os.environ, "PATH": str(tmp_path / "empty")})
    assert done.returncode == 1
    assert "the interpreter 'python' does not exist" in done.stderr
    assert "--python PATH" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_module_is_told_with_the_interpreter(typed, activated):
    done = typed("run", "--", "python", "-c", "import no_such_module_at_all")
    assert f"in {activated / 'python'}: install what is missing with" in done.stdout + done.stderr


def test_a_module_of_the_working_folder_is_not_to_be_installed(typed, tmp_path):
    for name, text in {"tools/train.py": "import parts.nets", "parts/nets.py": "print('acc: 0.5')"}.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    done = typed("run", "--name", "s", "--", "python", "tools/train.py")
    assert "parts lies in the working folder" in done.stdout + done.stderr
    assert "pip install" not in done.stdout + done.stderr
    done = typed("run", "--name", "t", "--env", "PYTHONPATH=.", "--", "python", "tools/train.py")
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_run_reads_the_whole_of_redirected_input(typed, tmp_path):
    script = "import sys; print('acc:', sum(map(float, sys.stdin)))"
    done = typed("run", "-n", "3", "--name", "s", "--", "python", "-c", script, input="0.25\n0.5\n")
    assert done.returncode == 0
    assert [list(record.series["acc"].values) for record in records(tmp_path)] == [[0.75]] * 3


def test_a_file_as_input_is_read_by_every_run(typed, tmp_path):
    (tmp_path / "numbers").write_text("0.5\n")
    with (tmp_path / "numbers").open() as file:
        typed("run", "-n", "2", "--name", "s", "--", "python", "-c", "print('acc:', input())", stdin=file)
    assert [list(record.series["acc"].values) for record in records(tmp_path)] == [[0.5]] * 2


SHOW = "import os; print('seen', os.environ.get('CUDA_VISIBLE_DEVICES'))"


def test_devices_may_be_hidden_chosen_and_divided(typed, tmp_path, monkeypatch):
    typed("run", "--name", "s", "--devices", "none", "--", "python", "-c", SHOW)
    assert [record.log_tail for record in records(tmp_path)] == ["seen -1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    typed("run", "--name", "s", "--devices", "3", "--devices-per-run", "1", "--", "python", "-c", SHOW)
    (record,) = records(tmp_path)
    assert (record.log_tail, record.environment["requested"]["devices"]) == ("seen 3", ["cuda:3"])
    assert record.cell.environment_content["devices_per_run"] == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--devices", "9"), "'9' does not name devices that are visible here"),
        (("--devices-per-run", "3"), "an environment asks for 3 devices a run"),
        (("--devices-per-run", "-1"), "devices_per_run"),
    ],
)
def test_devices_that_are_not_there_are_refused(typed, monkeypatch, words, message):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    done = typed("run", *words, "--", "true")
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", ["x,y", "0,1", "0,,1"])
@pytest.mark.parametrize("visible", ["", "-1"])
def test_devices_are_refused_where_none_is_visible(typed, tmp_path, monkeypatch, words, visible):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    done = typed("run", "--name", "s", "--devices", words, "--", "true")
    assert done.returncode == 1
    assert f"{words!r} does not name devices that are visible here" in done.stderr
    with pytest.raises(isorun.IsorunError, match="neither a study file nor an earlier study"):
        records(tmp_path)


def test_runs_that_share_a_device_are_a_warning_of_the_run_and_the_report(typed, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2")
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two CPUs")
    script = "import time; print('acc: 0.5'); time.sleep(0.5)"
    done = typed("run", "-n", "2", "-j", "2", "--name", "s", "--metric", "acc:higher", "--", "python", "-c", script)
    assert "2 of 2 runs shared a device (other runs used cuda:2 at the same time)" in " ".join(done.stdout.split())
    report = json.loads(typed("report", "s", "--json").stdout)
    assert "shared-device" in json.dumps(report)
