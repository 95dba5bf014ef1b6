"""Ray as people type it, on a real cluster, and the mistakes they make."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from isorun.errors import ExecutionError
from isorun.execution.keeper import descendants, processes
from isorun.session import open_store
from isorun.study import Environment
from isorun.study.records import RunState
from isorun.testing.executor_contract import LOGS, execute, job_for

pytestmark = pytest.mark.engines

TRAIN = """
import os, sys, time
open("begun.txt", "a").write(f"{os.getpid()}\\n")
open(os.environ["ISORUN_RUN_DIR"] + "/notes.txt", "w").write("kept")
time.sleep(float(sys.argv[1]))
print("test_acc: 0.5")
"""
STUDY = """
name = "typed"
levels = ["fixed-seed"]
seeds = {seeds}
[approaches.a]
command = "python train.py {seconds}"
[environments.here]
{environment}
[metrics.test_acc]
direction = "higher"
"""


@pytest.fixture
def study(tmp_path, no_token):
    """A function that types a command in a folder with a study."""
    (tmp_path / "train.py").write_text(TRAIN)

    def write(seeds=2, seconds=0, environment=""):
        (tmp_path / "study.toml").write_text(STUDY.format(seeds=seeds, seconds=seconds, environment=environment))

    def typed(*words, wait=True, **variables):
        process = subprocess.Popen(
            [sys.executable, "-m", "isorun", *words],
            cwd=tmp_path,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **variables},
        )
        return (process, *process.communicate(timeout=240)) if wait else process

    write()
    typed.write = write
    return typed


def records(folder):
    with open_store(str(folder / ".isorun"), create=False) as store:
        return list(store.records())


def until(found, what, seconds=90):
    end = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def test_a_study_begun_here_goes_on_with_ray_and_every_cell_is_made_once(study, tmp_path, ray_cluster):
    process, _, said = study("run", "study.toml")
    assert process.returncode == 0, said
    study.write(seeds=4)
    process, out, said = study("run", "study.toml", "--executor", "ray", RAY_ADDRESS=ray_cluster.address)
    assert process.returncode == 0, said
    assert "2 finished" in out
    assert f"on the cluster at {ray_cluster.address}, Ray " in said
    made = records(tmp_path)
    assert [record.state for record in made] == [RunState.FINISHED] * 4
    assert len({record.cell.id for record in made}) == 4
    assert sorted(record.where.get("executor", "local") for record in made) == ["local", "local", "ray", "ray"]
    process, out, _ = study("run", "study.toml", "--executor", "ray:127.0.0.1:1")
    assert "nothing was missing" in out, "a cluster was asked for where nothing is left to run"


def test_where_no_cluster_answers_one_message_says_what_to_do(study, tmp_path):
    process, _, said = study("run", "study.toml", "--executor", "ray:127.0.0.1:1")
    assert process.returncode == 1
    assert "no Ray cluster answers at 127.0.0.1:1" in said
    assert "ray start --head" in said
    assert "Traceback" not in said
    assert records(tmp_path) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--executor", "ray:head"], "does not name a Ray cluster"),
        (["--executor", "ray", "--partition", "gpu"], "Ray has no setting 'partition'"),
        (["--executor", "ray", "--devices", "0,1"], "Ray divides those of its nodes"),
        (["--executor", "ray", "--gpus-per-run", "one"], "--gpus-per-run is not a number"),
    ],
)
def test_words_that_mean_nothing_to_ray_are_refused(study, words, message):
    process, _, said = study("run", "study.toml", *words)
    assert process.returncode == 1
    assert message in said


def test_what_no_node_has_is_refused_before_the_first_run(ray_executor):
    executor = ray_executor()
    with pytest.raises(ExecutionError, match="64 CPUs a run, which no node of the Ray cluster has") as raised:
        executor.check(Environment("wide", threads=64))
    assert "4 CPUs" in raised.value.found
    with pytest.raises(ExecutionError, match="1 CPU and 2 GPUs a run"):
        executor.check(Environment("gpus", devices_per_run=2))
    executor.check(Environment("fits", threads=2))
    assert executor.capacity == 4, "two that run and two that wait"


def test_a_program_that_no_node_has_is_refused_before_the_first_run(ray_executor, tmp_path):
    with pytest.raises(ExecutionError, match=r"on the node .* of the Ray cluster: .*'nothing.py' does not exist"):
        ray_executor().check_command(("python", "nothing.py"), Environment("default"), tmp_path)


def test_a_node_that_does_not_see_the_working_folder_says_so(ray_executor, tmp_path):
    away = tmp_path / "away"
    with pytest.raises(ExecutionError, match="is not there") as raised:
        ray_executor().check_command(("python", "train.py"), Environment("default"), away)
    assert "rsync -a" in raised.value.hint
    away.mkdir()
    job = job_for(LOGS, away)
    executor = ray_executor()
    (away / "train0.py").unlink()
    away.rmdir()
    with pytest.raises(ExecutionError, match="is not there"):
        execute(executor, job)


def test_what_a_node_without_the_shared_folder_wrote_is_brought_back(ray_executor, tmp_path):
    executor = ray_executor()
    next((tmp_path / "runs").glob(".shared-*")).unlink()  # so that nodes take the folder for one that is not shared
    script = f"import os\nopen(os.environ['ISORUN_RUN_DIR'] + '/large', 'wb').write(bytes(9 << 20))\n{LOGS}"
    record = execute(executor, job_for(script, tmp_path))
    assert record.state is RunState.FINISHED
    folder = tmp_path / "runs" / record.run_id
    assert record.where["folder"] == str(folder)
    assert {"job.json", "events.jsonl", "output.log", "record.json.gz"} <= {path.name for path in folder.iterdir()}
    (note,) = [note for note in record.notes if note.code == "files-on-node"]
    assert "too large to bring back: large; in " in note.message
    left = Path(note.message.rpartition(":")[2])
    assert [path.name for path in left.iterdir() if path.name == "large"] == ["large"]
    (left / "large").unlink()


def test_ctrl_c_records_what_ran_and_leaves_no_process(study, tmp_path, ray_cluster):
    study.write(seeds=2, seconds=60)
    process = study("run", "study.toml", "--executor", "ray", wait=False, RAY_ADDRESS=ray_cluster.address)
    until((tmp_path / "begun.txt").is_file, "no training began")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode != 0, said
    states = [record.state for record in records(tmp_path)]
    assert states == [RunState.INTERRUPTED] * len(states)
    assert states
    trainings = [int(pid) for pid in (tmp_path / "begun.txt").read_text().split()]
    assert [pid for pid in trainings if pid in processes()] == []


def test_a_local_cluster_ends_with_isorun_even_when_that_is_killed(study, tmp_path):
    study.write(seeds=1, seconds=60)
    process = study("run", "study.toml", "--executor", "ray", wait=False, RAY_ADDRESS="local")
    until((tmp_path / "begun.txt").is_file, "no training began", 150)
    started = {item.pid for item in descendants(process.pid)}
    names = {processes()[pid].name for pid in started if pid in processes()}
    assert {"raylet", "gcs_server"} <= names
    process.kill()
    process.communicate()
    trainings = {int(pid) for pid in (tmp_path / "begun.txt").read_text().split()}
    until(lambda: not (started | trainings) & processes().keys(), "something was left", 30)


def test_a_cluster_that_is_started_here_lets_nobody_in_without_its_token(tmp_path, monkeypatch):
    ray = pytest.importorskip("ray", reason="Ray is not installed: make test-engines installs it")
    if tuple(map(int, ray.__version__.split(".")[:2])) < (2, 52):
        pytest.skip("this Ray knows no tokens")
    from isorun.execution.ray import RayExecutor

    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    executor = RayExecutor(tmp_path / "runs", 1, url="ray:local")
    try:
        assert execute(executor, job_for(LOGS, tmp_path)).state is RunState.FINISHED
        assert executor._temporary.stat().st_mode & 0o077 == 0, "others can reach its sockets"
        raylets = [item.pid for item in descendants(os.getpid()) if item.name == "raylet"]
        started = [Path(f"/proc/{pid}/cmdline").read_text() for pid in raylets]
        (words,) = (text.split("\0") for text in started if str(executor._temporary) in text)
        (address,) = (word.partition("=")[2] for word in words if word.startswith("--gcs-address="))
        script = "import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False); print('let in')"
        tried = subprocess.run(
            [sys.executable, "-c", script, address],
            env={**os.environ, "RAY_AUTH_MODE": "disabled"},
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert "let in" not in tried.stdout
        assert "uthenticat" in tried.stderr
        assert not (tmp_path / ".ray").exists()
    finally:
        executor.close()


def test_a_secret_of_a_job_is_in_nothing_that_ray_writes(ray_executor, ray_cluster, tmp_path):
    executor = ray_executor()
    secret = "hunter2-hunter2-hunter2"
    environment = Environment("default", env={"API_TOKEN": secret})
    record = execute(executor, job_for(LOGS, tmp_path, environment=environment))
    assert record.state is RunState.FINISHED
    found = [
        path
        for path in ray_cluster.folder.rglob("*")
        if path.is_file() and not path.is_symlink() and secret.encode() in path.read_bytes()
    ]
    assert found == []


@pytest.mark.parametrize(("there", "found"), [("0.0.1", "isorun 0.0.1"), ("", "ImportError: not here")])
def test_a_node_with_another_isorun_or_none_says_so(tmp_path, no_token, there, found, monkeypatch):
    pytest.importorskip("ray", reason="Ray is not installed: make test-engines installs it")
    from ray_clusters import Clusters

    from isorun.execution.ray import RayExecutor

    package = tmp_path / "path" / "isorun"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"__version__ = {there!r}\n" if there else "raise ImportError('not here')\n")
    with monkeypatch.context() as patched:
        patched.setenv("PYTHONPATH", str(tmp_path / "path"))
        cluster = Clusters(cpus=1)
    executor = RayExecutor(tmp_path / "runs", url=f"ray:{cluster.address}")
    try:
        with pytest.raises(ExecutionError, match="of the Ray cluster has no isorun") as raised:
            executor.check_command(("true",), Environment("default"), tmp_path)
        assert found in raised.value.found
        assert "-m pip install isorun==" in raised.value.hint
        with pytest.raises(ExecutionError, match="of the Ray cluster has no isorun"):
            execute(executor, job_for(LOGS, tmp_path))
    finally:
        executor.close()
        cluster.close()
