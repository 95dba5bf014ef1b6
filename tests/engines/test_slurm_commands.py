"""`isorun run --executor slurm`, `isorun status` and `isorun stop` as they are typed, on a real cluster."""

import json
import subprocess
import sys
import time

import pytest

import isorun
from isorun.study.records import RunState

pytestmark = pytest.mark.engines

TRAINING = """
import os, time
import isorun
with open("began.txt", "a") as file:
    file.write("x\\n")
isorun.log(epoch=1, acc=0.25)
while not os.path.exists("go"):
    time.sleep(0.1)
isorun.result(test_acc=0.5)
"""
STUDY = """
name = "away"
seeds = [1, 2, 3]
levels = ["fixed-seed"]
[approaches.a]
command = "python train.py"
[metrics.test_acc]
direction = "higher"
"""
RUN = ("run", "study.toml", "--executor", "slurm", "--partition", "one", "--time", "10m")


@pytest.fixture
def shell(slurm, tmp_path):
    """A function that types a command in the folder of the study."""
    (tmp_path / "train.py").write_text(TRAINING)
    (tmp_path / "study.toml").write_text(STUDY)

    def type_(*words, code=0):
        command = [sys.executable, "-m", "isorun", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return type_


def begun(tmp_path, times):
    until = time.monotonic() + 60
    path = tmp_path / "began.txt"
    while not path.exists() or len(path.read_text().split()) < times:
        assert time.monotonic() < until, "they did not begin"
        time.sleep(0.1)


def test_submit_leave_look_and_come_back(slurm, shell, tmp_path):
    before = set(slurm.jobs())
    left = shell(*RUN, "--detach").stdout
    assert "away: 0 finished; stopped: left, and 3 runs go on without isorun" in left
    assert "isorun stop study.toml ends them" in left
    begun(tmp_path, 3)
    jobs = set(slurm.jobs()) - before
    told = shell("status", "study.toml").stdout
    assert told.startswith("away: 0 of 3 finished, 3 running\n")
    assert "running in SLURM as" in told
    assert "at 1: acc 0.25" in told
    found = json.loads(shell("status", "study.toml", "--json").stdout)
    assert (found["finished"], found["missing"], len(found["running"]), found["queued"]) == (0, 0, 3, [])
    assert {run["job"] for run in found["running"]} == jobs
    (tmp_path / "go").touch()
    slurm.wait_until(lambda: {slurm.jobs()[number] for number in jobs} == {"COMPLETED"}, "they do not end")
    assert "3 ended in SLURM" in shell("status", "study.toml").stdout
    assert "away: 3 finished\n" in shell(*RUN).stdout
    assert set(slurm.jobs()) - before == jobs, "something was queued twice"
    assert (tmp_path / "began.txt").read_text() == "x\n" * 3
    assert shell("status", "study.toml").stdout == "away: 3 of 3 finished, 0 running\n"


def test_ctrl_c_leaves_and_stop_ends_what_is_queued_and_running(slurm, shell, tmp_path):
    (tmp_path / "study.toml").write_text(STUDY.replace("[1, 2, 3]", "[1, 2, 3, 4, 5, 6]"))
    command = [sys.executable, "-m", "isorun", *RUN]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    begun(tmp_path, 4)
    process.terminate()
    assert "left, and 6 runs go on without isorun" in process.communicate(timeout=60)[0]
    assert process.returncode == 130
    assert {"RUNNING", "PENDING"} <= set(slurm.jobs().values())
    told = shell("status", "study.toml").stdout
    assert "4 running, 2 queued" in told
    assert "(Resources)" in told
    warned = shell("run", "study.toml", "--dry-run").stdout
    assert "6 of 6 runs are missing" in warned
    assert shell("stop", "study.toml").stdout == "away: 6 ended and recorded\n"
    assert not {"RUNNING", "PENDING"} & set(slurm.jobs().values())
    records = isorun.records(str(tmp_path / "study.toml"))
    assert [(record.state, record.reason) for record in records] == [(RunState.INTERRUPTED, "stopped on request")] * 6
    assert shell("stop", "study.toml").stdout == "away: no run is in a cluster's queue\n"


def test_runs_that_were_left_are_made_by_nobody_else(slurm, shell, tmp_path):
    shell(*RUN, "--detach")
    begun(tmp_path, 3)
    here = " ".join(shell("run", "study.toml", code=1).stdout.split())  # lines end where the terminal does
    assert "3 runs of away are in a cluster's queue or run there, and were left to it" in here
    assert "are left to it" in " ".join(shell("worker", ".isorun").stderr.split())
    (tmp_path / "go").touch()
    assert "away: 3 finished\n" in shell(*RUN).stdout
    assert (tmp_path / "began.txt").read_text() == "x\n" * 3


def test_who_waits_for_runs_that_somebody_stops_records_them_and_ends(slurm, shell, tmp_path):
    (tmp_path / "study.toml").write_text(STUDY.replace("[1, 2, 3]", "[1, 2, 3, 4, 5, 6]"))
    command = [sys.executable, "-m", "isorun", "run", "study.toml", "--executor", "slurm://one?at-once=2"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    begun(tmp_path, 2)
    told = shell("stop", "study.toml").stdout
    assert told == "away: 0 ended and recorded, 2 asked to end, recorded by the isorun that waits for them\n"
    assert "stopped: isorun stop" in process.communicate(timeout=60)[0]
    assert process.returncode == 1
    records = isorun.records(str(tmp_path / "study.toml"))
    assert [(record.state, record.reason) for record in records] == [(RunState.INTERRUPTED, "stopped on request")] * 2
    assert (tmp_path / "began.txt").read_text() == "x\n" * 2
    (tmp_path / "go").touch()
    assert "away: 6 finished\n" in shell(*RUN).stdout, "what was stopped once stops nothing later"


def test_runs_that_slurm_has_are_told_where_isorun_was_killed_and_they_are_made_here_too(shell, tmp_path):
    process = subprocess.Popen([sys.executable, "-m", "isorun", *RUN], cwd=tmp_path)
    begun(tmp_path, 3)
    process.kill()
    process.wait()
    done = subprocess.Popen(
        [sys.executable, "-m", "isorun", "run", "study.toml"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    told = done.stderr.readline()
    (tmp_path / "go").touch()
    done.communicate(timeout=60)
    assert "3 runs of this study are in SLURM's queue or run there" in told
    assert isorun.status(str(tmp_path / "study.toml")).finished == 3
    assert {record.where.get("executor", "local") for record in isorun.records(str(tmp_path / "study.toml"))} == {
        "local"
    }


def test_detach_is_for_runs_that_stay(shell):
    assert "--detach: these runs would end with isorun" in shell("run", "study.toml", "--detach", code=2).stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--partition", "gpu"), "SLURM has no partition 'gpu'"),
        (("--time", "2h"), "no run may take so long in SLURM's partition"),
        (("--gpus-per-run", "9"), "has 9 GPUs for a run"),
    ],
)
def test_what_the_cluster_does_not_have_is_one_message(shell, slurm, words, said):
    before = slurm.jobs()
    done = shell("run", "study.toml", "--executor", "slurm", *words, code=1)
    assert said in done.stderr
    assert "allowed:" in done.stderr
    assert slurm.jobs() == before
