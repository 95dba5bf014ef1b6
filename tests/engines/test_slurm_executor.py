"""What every executor promises, and what SLURM's promises beyond that, on a real cluster."""

import json
import os
import queue
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from isorun.errors import ExecutionError
from isorun.execution import ExecutorFailed, Preparing, Resources, RunEnded
from isorun.execution.slurm import SlurmExecutor, ledger
from isorun.study import Environment
from isorun.study.records import RunState
from isorun.testing.executor_contract import LOGS, ExecutorContract, execute, job_for

pytestmark = pytest.mark.engines

WAITS = "import sys, time, pathlib\nwhile not pathlib.Path('go').exists(): time.sleep(0.1)\n"
STOPS = """
import os, time
with open("begun", "a") as file:
    file.write(f"{os.getpid()}\\n")
while not os.path.exists("go"):
    time.sleep(0.1)
"""


@pytest.mark.usefixtures("slurm")
class TestTheSlurmExecutor(ExecutorContract):
    def make_executor(self, runs):
        return SlurmExecutor(runs, {"at-once": "3"})


@pytest.fixture
def slurm_executor(slurm, tmp_path):
    """A function that makes executors of one folder of runs; they are closed when the test is over."""
    made = []

    def make(**settings):
        made.append(SlurmExecutor(tmp_path / "runs", {name.replace("_", "-"): text for name, text in settings.items()}))
        return made[-1]

    yield make
    for executor in made:
        executor.close()


def until(found, what, seconds=60.0):
    end = time.monotonic() + seconds
    while not (answer := found()):
        assert time.monotonic() < end, what
        time.sleep(0.1)
    return answer


def ended(told, seconds=90.0):
    """The end of the only run that is told of."""
    end = time.monotonic() + seconds
    while True:
        event = told.get(timeout=max(end - time.monotonic(), 0.01))
        if isinstance(event, ExecutorFailed):
            raise event.error
        if isinstance(event, RunEnded):
            return event


def begun(tmp_path, times=1):
    """The processes of the training that have begun, when there are so many."""
    path = tmp_path / "begun"
    until(lambda: path.exists() and len(path.read_text().split()) >= times, "it did not begin", 90)
    return path.read_text().split()


def the_job(slurm):
    (number,) = [number for number, state in slurm.jobs().items() if state in {"RUNNING", "PENDING"}]
    return number


def test_a_run_that_was_left_is_waited_for_by_who_comes_back(slurm, slurm_executor, tmp_path):
    first, second, told = slurm_executor(), slurm_executor(), queue.Queue()
    job = job_for(WAITS + LOGS, tmp_path)
    assert second.in_flight(job.cell.id) is None
    first.submit(job, told.put)
    assert first.leave() == (job.run_id,)
    first.close()
    assert all(isinstance(event, Preparing) for event in list(told.queue))
    number = the_job(slurm)
    found = second.in_flight(job.cell.id)
    assert (found.run_id, found.seed, found.command) == (job.run_id, job.seed, job.command)
    second.submit(found, told.put)
    (tmp_path / "go").touch()
    end = ended(told)
    assert (end.record.state, end.record.results, end.lost) == (RunState.FINISHED, {"test_acc": 0.5}, False)
    assert end.record.where["executor"] == "slurm"
    assert end.record.where["job"] == number
    before = set(slurm.jobs())
    third = slurm_executor()  # whose end was told, and maybe not recorded: it is told once more, and not made again
    third.submit(job, told.put)
    assert ended(told).record == end.record
    assert set(slurm.jobs()) == before


def test_a_later_attempt_ends_the_earlier_one(slurm, slurm_executor, tmp_path):
    from dataclasses import replace

    first, second, told = slurm_executor(), slurm_executor(), queue.Queue()
    job = job_for(STOPS, tmp_path)
    first.submit(job, told.put)
    (pid,) = begun(tmp_path)
    first.leave()
    (tmp_path / "begun").unlink()
    second.submit(replace(job, attempt=2), told.put)
    begun(tmp_path)
    until(lambda: not Path(f"/proc/{pid}").exists(), "the earlier attempt goes on")
    (tmp_path / "go").touch()
    assert ended(told).record.attempt == 2


def test_a_run_that_slurm_begins_again_is_one_run_of_the_same_attempt(slurm, slurm_executor, tmp_path):
    told = queue.Queue()
    slurm_executor().submit(job := job_for(STOPS + LOGS, tmp_path), told.put)
    (pid,) = begun(tmp_path)
    slurm.run("scontrol", "requeue", the_job(slurm))
    until(lambda: not Path(f"/proc/{pid}").exists(), "the first begin goes on")
    begun(tmp_path, 2)
    (tmp_path / "go").touch()
    end = ended(told)
    assert (end.record.state, end.record.attempt, end.lost) == (RunState.FINISHED, 1, False)
    assert list(end.record.series["acc"].values) == [0.25, 0.5]
    assert len(list((tmp_path / "runs").glob(f"{job.run_id}.before-*"))) == 1


@pytest.mark.slow
def test_a_job_that_makes_room_for_another_is_asked_to_stop_and_begins_again(slurm, slurm_executor, tmp_path):
    asked = "import signal\nsignal.signal(signal.SIGTERM, lambda *_: open('asked', 'w').close())\n"
    told = queue.Queue()
    slurm_executor(partition="low").submit(job_for(asked + STOPS, tmp_path), told.put)
    begun(tmp_path)
    slurm.run("sbatch", "--partition=high", "--exclusive", "-N2", "--time=1", "--output=/dev/null", "--wrap=sleep 1")
    begun(tmp_path, 2)
    (tmp_path / "go").touch()
    assert ended(told).record.state is RunState.FINISHED
    assert (tmp_path / "asked").exists()


def test_what_is_cancelled_outside_isorun_is_interrupted_with_slurms_word(slurm, slurm_executor, tmp_path):
    told = queue.Queue()
    slurm_executor().submit(job_for(f"{LOGS}\n{STOPS}", tmp_path), told.put)
    begun(tmp_path)
    slurm.run("scancel", the_job(slurm))
    end = ended(told)
    assert end.record.state is RunState.INTERRUPTED
    assert not end.lost
    assert end.record.reason.startswith("SLURM: CANCELLED")
    assert list(end.record.series["acc"].values) == [0.25, 0.5], "what it left until then is kept"


def test_a_training_that_fails_because_slurm_ends_it_has_not_failed(slurm, slurm_executor, tmp_path):
    told = queue.Queue()
    fails = "import os, signal\nsignal.signal(signal.SIGTERM, lambda *_: os._exit(3))\n"
    slurm_executor().submit(job_for(fails + STOPS, tmp_path), told.put)
    begun(tmp_path)
    slurm.run("scontrol", "requeue", the_job(slurm))
    begun(tmp_path, 2)
    (tmp_path / "go").touch()
    end = ended(told)
    assert (end.record.state, end.record.attempt) == (RunState.FINISHED, 1)


def test_a_run_near_slurms_time_limit_is_asked_to_stop_and_timed_out(slurm, slurm_executor, tmp_path):
    told = queue.Queue()
    slurm_executor(time="1m").submit(job_for(STOPS, tmp_path), told.put)
    begun(tmp_path)
    slurm.run("scontrol", "update", f"jobid={the_job(slurm)}", "endtime=now+8")
    end = ended(told)
    assert (end.record.state, end.lost) == (RunState.TIMED_OUT, False)
    assert "SLURM's time limit" in end.record.reason


@pytest.mark.slow
def test_the_end_of_a_run_that_was_killed_at_the_limit_is_slurms_word(slurm, slurm_executor, tmp_path):
    told = queue.Queue()
    slurm_executor().submit(job_for(STOPS, tmp_path), told.put)  # without --time nothing is said before the limit
    begun(tmp_path)
    slurm.run("scontrol", "update", f"jobid={the_job(slurm)}", "endtime=now+3")
    end = ended(told)
    assert end.record.state is RunState.TIMED_OUT
    assert end.record.reason.startswith("SLURM: TIMEOUT")


def test_secrets_go_neither_to_slurm_nor_stay_on_the_disk(slurm, slurm_executor, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_API_KEY", "abc123shellsecret")
    told = queue.Queue()
    both = "os.environ['MY_TOKEN'] + os.environ['WANDB_API_KEY']"
    reads = f"import os\nassert {both} == 'xyz987secretabc123shellsecret'\n"
    environment = Environment("default", env={"MY_TOKEN": "xyz987secret"})
    slurm_executor().submit(job_for(STOPS + reads + LOGS, tmp_path, environment=environment), told.put)
    begun(tmp_path)
    secrets = (b"xyz987secret", b"abc123shellsecret")
    assert _files_with(slurm.folder, secrets) == []
    held = _files_with(tmp_path / "runs" / "slurm", secrets)
    assert {path.name for path in held} == {"job.json", "environment.json"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in held} == {0o600}
    assert {stat.S_IMODE(path.parent.stat().st_mode) for path in held} == {0o700}
    (tmp_path / "go").touch()
    assert ended(told).record.state is RunState.FINISHED
    assert _files_with(tmp_path / "runs", secrets) == []


def _files_with(folder, texts):
    return [path for path in folder.rglob("*") if path.is_file() and any(text in path.read_bytes() for text in texts)]


def test_a_prelude_is_read_before_the_training_and_is_a_file(slurm_executor, tmp_path):
    with pytest.raises(ExecutionError, match="the prelude is no file"):
        slurm_executor(prelude=str(tmp_path / "none; touch x"))
    (tmp_path / "it's $me.sh").write_text("export FROM_MODULE=cuda-12\n")
    executor = slurm_executor(prelude=str(tmp_path / "it's $me.sh"))
    job = job_for("import os\nassert os.environ['FROM_MODULE'] == 'cuda-12'\n", tmp_path)
    assert execute(executor, job).reason == ""
    (tmp_path / "it's $me.sh").write_text("false\n")
    with pytest.raises(ExecutionError, match="the prelude of SLURM's runs failed"):
        execute(slurm_executor(prelude=str(tmp_path / "it's $me.sh")), job_for(LOGS, tmp_path, 2))


def test_an_interpreter_that_is_not_there_is_said_once(slurm_executor, tmp_path):
    with pytest.raises(ExecutionError, match="the interpreter that carries out runs is not on SLURM's nodes") as raised:
        execute(slurm_executor(python="/nowhere/python"), job_for(LOGS, tmp_path))
    assert "/nowhere/python" in raised.value.found
    assert "python=" in raised.value.allowed


def test_an_interpreter_without_isorun_is_said_once(slurm_executor, tmp_path):
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    with pytest.raises(ExecutionError, match="no run can begin on SLURM's nodes") as raised:
        execute(slurm_executor(python=str(bare / "bin" / "python")), job_for(LOGS, tmp_path))
    assert "No module named 'isorun'" in raised.value.found


def test_another_isorun_on_the_nodes_is_said_once(slurm_executor, tmp_path, monkeypatch):
    monkeypatch.setattr(ledger, "__version__", "99.0")
    with pytest.raises(ExecutionError, match="another isorun") as raised:
        execute(slurm_executor(), job_for(LOGS, tmp_path))
    assert "submitted by isorun 99.0" in raised.value.found


def test_what_a_node_does_not_have_for_any_run_is_said_once(slurm_executor, tmp_path):
    job = job_for(LOGS, tmp_path, resources=Resources(cpus=4))  # as many as SLURM was told that a node has
    if len(os.sched_getaffinity(0)) >= 4:
        pytest.skip("this machine has what the nodes say that they have")
    with pytest.raises(ExecutionError, match="no run is possible on SLURM's nodes"):
        execute(slurm_executor(), job)


def _in_front_of_sbatch(tmp_path, monkeypatch, text):
    """A program that is found before SLURM's own; `$REAL` is that one."""
    folder = tmp_path / "front"
    folder.mkdir()
    real = shutil.which("sbatch")
    (folder / "sbatch").write_text(f"#!/bin/sh\nREAL={real}\nCOUNT={tmp_path}/called\necho x >> $COUNT\n{text}\n")
    (folder / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_an_answer_that_was_lost_is_found_by_the_token(slurm, slurm_executor, tmp_path, monkeypatch):
    said = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"
    _in_front_of_sbatch(tmp_path, monkeypatch, f'$REAL "$@" > /dev/null\necho "{said}" >&2\nexit 1')
    assert execute(slurm_executor(), job_for(LOGS, tmp_path)).state is RunState.FINISHED
    assert (tmp_path / "called").read_text() == "x\n"


def test_a_question_that_was_lost_is_asked_again(slurm, slurm_executor, tmp_path, monkeypatch):
    said = "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)"
    first = f'if [ "$(wc -l < $COUNT)" = 1 ]; then echo "{said}" >&2; exit 1; fi'
    _in_front_of_sbatch(tmp_path, monkeypatch, f'{first}\nexec $REAL "$@"')
    record = execute(slurm_executor(), job_for(LOGS, tmp_path))
    assert (record.state, record.attempt) == (RunState.FINISHED, 1)
    assert (tmp_path / "called").read_text() == "x\nx\n"


def test_arrays_become_smaller_where_fewer_jobs_may_be_queued(slurm, slurm_executor, tmp_path, monkeypatch):
    said = "sbatch: error: QOSMaxSubmitJobPerUserLimit"
    refused = f'case "$*" in *--array=0-[2-9]*) echo "{said}" >&2; exit 1;; esac'
    _in_front_of_sbatch(tmp_path, monkeypatch, f'{refused}\nexec $REAL "$@"')
    told, executor = queue.Queue(), slurm_executor()
    jobs = [job_for("pass", tmp_path, number) for number in range(4)]
    for job in jobs:
        executor.submit(job, told.put)
    assert {ended(told).run_id for _ in jobs} == {job.run_id for job in jobs}
    assert len({number.partition("_")[0] for number in _arrays(tmp_path)}) == 2


def _arrays(tmp_path):
    return [json.loads(path.read_text())["job"] for path in (tmp_path / "runs" / "slurm").glob("*/queued.json")]


def test_what_slurm_refuses_is_told_in_its_own_words(slurm_executor, tmp_path):
    with pytest.raises(ExecutionError, match="SLURM refuses the runs") as raised:
        execute(slurm_executor(reservation="none-such"), job_for(LOGS, tmp_path))
    assert "reservation" in raised.value.found.lower()
    assert list((tmp_path / "runs" / "slurm").iterdir()) == []


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"partition": "hihg"}, "SLURM has no partition 'hihg'"),
        ({"time": "61m"}, "no run may take so long in SLURM's partition 'low'"),
        ({"gpus_per_run": "3"}, "no node of SLURM's partition 'low' has 3 GPUs"),
        ({"cpus_per_run": "5"}, "no node of SLURM's partition 'low' has 5 CPUs"),
        ({"memory_per_run": "5G"}, "no node of SLURM's partition 'low' has 5,368,709,120 bytes"),
    ],
)
def test_what_the_cluster_does_not_have_is_refused_before_anything_is_submitted(slurm_executor, settings, said):
    with pytest.raises(ExecutionError, match=said):
        slurm_executor(**settings)


def test_a_run_gets_the_gpus_that_slurm_gives_it_and_else_none(slurm_executor, tmp_path):
    # Files that are no devices of NVIDIA: SLURM lends them, and sets no CUDA_VISIBLE_DEVICES.
    given = "import os\nassert os.environ['SLURM_GPUS_ON_NODE'] == '2'\nassert 'CUDA_VISIBLE_DEVICES' not in os.environ"
    assert execute(slurm_executor(gpus_per_run="2"), job_for(given, tmp_path)).reason == ""
    none = "import os\nassert os.environ['CUDA_VISIBLE_DEVICES'] == '-1'"
    assert execute(slurm_executor(), job_for(none, tmp_path, 2)).reason == ""


def test_a_folder_that_the_nodes_do_not_see_is_said_once(slurm, slurm_executor, tmp_path):
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs a mount namespace, which this user may not make")
    hidden = tmp_path / "runs"
    hidden.mkdir()
    slurm.stop("n1")
    slurm.start("n1", without=hidden)
    with pytest.raises(ExecutionError, match="SLURM's nodes do not see the folder of runs on n1") as raised:
        execute(slurm_executor(partition="one"), job_for(LOGS, tmp_path))
    slurm.stop("n1")
    assert "srun -w n1 ls" in raised.value.hint
