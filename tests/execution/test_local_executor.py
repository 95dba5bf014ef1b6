"""The local executor with real processes, started fresh."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import closing
from dataclasses import replace

import pytest

from isorun.errors import ExecutionError
from isorun.execution.assemble import lost_record, read_record
from isorun.execution.carrying import Workbench, Workshop, carry_out
from isorun.execution.keeper import processes
from isorun.execution.local import LocalExecutor
from isorun.execution.process import Marks, find_strays
from isorun.study import Sources
from isorun.study.records import RunState
from isorun.testing.executor_contract import execute

CPUS = len(os.sched_getaffinity(0))


@pytest.fixture
def executor(local):
    return local(launch="fresh", grace_seconds=0.5)


def codes(record):
    return {note.code for note in record.notes}


def bash(script):
    return ("bash", "-c", script)


def test_a_run_records_time_memory_environment_and_code(executor, make_job):
    script = (
        "import time; x = bytearray(50_000_000); t = time.process_time()\nwhile time.process_time() - t < 0.2: pass"
    )
    record = execute(executor, make_job(script=script))
    assert record.state is RunState.FINISHED
    assert 0.2 <= record.cpu_seconds < 5
    assert record.wall_seconds >= 0.2
    assert record.peak_memory_bytes > 50_000_000
    assert record.launch == "fresh"
    assert record.started_at.endswith("+00:00")
    assert record.environment["requested"]["cpus"] == CPUS
    assert record.environment["effective"]
    assert isinstance(record.code, dict)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (bash("exit 3"), (3, "", "exit code 3")),
        (bash("kill -SEGV $$"), (None, "SIGSEGV", "killed by SIGSEGV")),
        (bash("kill -KILL $$"), (None, "SIGKILL", "killed by SIGKILL (out of memory?)")),
        (bash("echo 'some words'; exit 9"), (9, "", "exit code 9")),
    ],
)
def test_a_failed_run_says_how_it_failed(executor, make_job, command, expected):
    record = execute(executor, make_job(command))
    assert record.state is RunState.FAILED
    assert (record.exit_code, record.signal, record.reason) == expected


def test_a_missing_script_is_a_failed_run_that_says_so(executor, make_job):
    record = execute(executor, make_job(("python", "no-such-script.py")))
    assert record.exit_code == 2
    assert "can't open file" in record.reason
    assert "no-such-script.py" in record.reason


def test_a_hang_is_ended_at_the_limit_with_all_children_and_keeps_what_was_logged(executor, make_job, run_folder):
    script = """
        import isorun, os, subprocess, time
        isorun.log(epoch=1, acc=0.5)
        subprocess.Popen(["sleep", "300"])
        subprocess.Popen(["sleep", "300"], start_new_session=True)
        if os.fork() == 0:
            os.setsid()
        time.sleep(300)
    """
    job = make_job(script=textwrap.dedent(script), time_limit_seconds=1.5)
    record = execute(executor, job)
    assert record.state is RunState.TIMED_OUT
    assert record.series["acc"].values == (0.5,)
    assert find_strays(Marks(run_folder(job))) == []


def test_children_that_outlive_the_training_are_ended_and_noted(executor, make_job, run_folder):
    job = make_job(bash("sleep 300 & setsid sleep 300 & exit 0"))
    record = execute(executor, job)
    assert record.state is RunState.FINISHED
    assert "processes that outlived the training were ended: sleep, sleep" in [note.message for note in record.notes]
    assert find_strays(Marks(run_folder(job))) == []


def test_fifty_megabytes_of_output_are_read_for_metrics_and_kept_in_part(executor, make_job, run_folder):
    script = (
        "import sys\n"
        "print('val_acc: 0.25')\n"
        "for i in range(50):\n"
        "    sys.stdout.write('word ' * 200_000 + '\\n')\n"
        "print('val_acc: 0.75')\n"
    )
    job = make_job(script=script)
    record = execute(executor, job)
    assert record.state is RunState.FINISHED
    assert record.series["val_acc"].values == (0.25, 0.75)
    assert 4_900_000 < (run_folder(job) / "output.log").stat().st_size < 5_100_000
    assert {"output-cut", "line-cut"} <= codes(record)
    assert len(record.log_tail) <= 8192
    assert record.log_tail.endswith("val_acc: 0.75")


def test_output_that_is_no_text_harms_nothing(executor, make_job):
    script = "import os\nfor _ in range(20): os.write(1, os.urandom(100_000))\nos.write(1, b'\\nacc: 0.5')"
    record = execute(executor, make_job(script=script))
    assert record.state is RunState.FINISHED
    assert record.series["acc"].values == (0.5,)
    json.dumps(record.to_json(), allow_nan=False)


def test_what_was_logged_wins_over_files_and_files_over_output(executor, make_job):
    script = """
        import isorun
        print("acc: 0.1"); print("loss: 0.1"); print("f1: 0.1")
        open("m.json", "w").write('{"acc": 0.2, "loss": 0.2}')
        isorun.result(acc=0.3)
    """
    record = execute(executor, make_job(script=textwrap.dedent(script), sources=Sources(files=("m.json",))))
    assert record.results["acc"] == 0.3
    assert record.results["loss"] == 0.2
    assert record.series["f1"].values == (0.1,)
    assert record.origins["acc"] == "log"
    assert record.origins["loss"].startswith("file")
    assert record.origins["f1"].startswith("stdout")


def test_values_that_are_not_finite_are_kept_and_noted(executor, make_job):
    script = "import isorun\nisorun.log(epoch=1, loss=float('nan')); isorun.log(epoch=2, loss=1.0)"
    record = execute(executor, make_job(script=script))
    assert list(map(str, record.series["loss"].values)) == ["nan", "1.0"]
    assert "loss: 1 of 2 values are NaN or infinite" in [note.message for note in record.notes]


def test_per_class_values_become_series_and_final_values(executor, make_job):
    script = (
        "import isorun\nisorun.log(epoch=1, acc=0.5, per_class={'acc': {'cat': 0.25}})\n"
        "isorun.result(per_class={'acc': {'cat': 0.75}})"
    )
    record = execute(executor, make_job(script=script))
    assert record.series["acc[cat]"].values == (0.25,)
    assert record.per_class == {"acc": {"cat": 0.75}}


def test_a_shell_script_that_starts_python_is_reached_by_the_worker(executor, make_job):
    script = (
        f"{sys.executable} -c 'print(1)'; {sys.executable} -c 'import isorun, random; isorun.result(x=random.random())'"
    )
    first, second = (execute(executor, make_job(bash(script), level="fixed-seed", seed=3)) for _ in range(2))
    assert first.results == second.results != {}
    assert "no-worker" not in codes(first)


def test_a_program_without_python_is_noted_because_no_level_reaches_it(executor, make_job):
    record = execute(executor, make_job(bash("echo acc: 0.5"), level="fixed-seed"))
    assert record.series["acc"].values == (0.5,)
    note = next(note for note in record.notes if note.code == "no-worker")
    assert "the level fixed-seed was not applied" in note.message


def test_variables_of_the_study_reach_the_run_and_their_values_are_not_recorded(executor, make_job):
    job = make_job(script="import os; print(len(os.environ['MY_TOKEN']))", env={"MY_TOKEN": "s3cr3t-value"})
    record = execute(executor, job)
    assert record.log_tail == "12"
    assert record.environment["requested"]["study_variables"] == ["MY_TOKEN"]
    assert "s3cr3t-value" not in json.dumps(record.to_json())


def test_variables_of_an_outer_isorun_are_not_passed_on(executor, make_job, monkeypatch):
    monkeypatch.setenv("ISORUN_SEED", "77")
    record = execute(executor, make_job(script="import os; print(os.environ.get('ISORUN_SEED'))"))
    assert record.log_tail == "None"


def test_the_interpreter_of_the_environment_replaces_a_leading_python(executor, make_job, tmp_path):
    link = tmp_path / "my-python"
    link.symlink_to(sys.executable)
    record = execute(executor, make_job(script="import sys; print(sys.executable)", python=str(link)))
    assert record.log_tail == str(link)


@pytest.mark.parametrize(
    ("command", "python"), [(("python", "x.py"), "/no/such/python"), (("no-such-command",), ""), (("./train",), "")]
)
def test_what_does_not_exist_is_an_error_that_names_it(executor, make_job, command, python):
    with pytest.raises(ExecutionError, match="does not exist") as caught:
        execute(executor, make_job(command, python=python))
    assert (python or command[0]) in caught.value.what


def test_an_interpreter_that_one_environment_lacks_fails_its_runs_alone(executor, make_job):
    job = make_job(("python", "x.py"), python="/no/such/python")
    record = execute(executor, replace(job, environment=replace(job.environment, name="python=other")))
    assert record.state is RunState.FAILED
    assert "the interpreter '/no/such/python' does not exist" in record.reason
    assert "next:    name one that is there" in record.log_tail


def test_an_unknown_launch_mode_lists_the_known_ones(local):
    with pytest.raises(ExecutionError, match="auto, warm, fresh"):
        local(launch="wram")


def test_stopping_ends_runs_in_progress_as_interrupted(make_job, local, run_folder):
    executor = local(launch="fresh", grace_seconds=0.5)
    script = (
        "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(0)); print('up', flush=True); time.sleep(300)"
    )
    job = make_job(script=script)
    records = []
    thread = threading.Thread(target=lambda: records.append(execute(executor, job)))
    thread.start()
    while not (run_folder(job) / "output.log").exists() or b"up" not in (run_folder(job) / "output.log").read_bytes():
        time.sleep(0.01)
    executor.stop()
    thread.join(timeout=5)
    assert not thread.is_alive()
    assert (records[0].state, records[0].reason) == (RunState.INTERRUPTED, "stopped on request")
    executor.close()
    assert find_strays(Marks(run_folder(job))) == []


def test_closing_kills_runs_in_progress(make_job, local, run_folder):
    executor = local(launch="fresh", grace_seconds=60)
    job = make_job(
        script="import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(300)"
    )
    records = []
    thread = threading.Thread(target=lambda: records.append(execute(executor, job)))
    thread.start()
    while not (run_folder(job) / "output.log").exists() or b"up" not in (run_folder(job) / "output.log").read_bytes():
        time.sleep(0.01)
    executor.close()
    thread.join(timeout=5)
    assert records[0].state is RunState.INTERRUPTED
    assert find_strays(Marks(run_folder(job))) == []


def test_when_the_keeper_of_a_run_is_killed_the_whole_run_is_ended(executor, make_job, run_folder):
    job = make_job(bash("setsid sleep 300 & echo up; kill -KILL $PPID; sleep 300"))
    record = execute(executor, job)
    assert record.state is RunState.FAILED
    assert record.reason.startswith("the process that kept the run was killed")
    assert find_strays(Marks(run_folder(job))) == []


@pytest.mark.skipif(CPUS < 2, reason="needs two CPUs")
def test_parallel_runs_are_pinned_to_different_cpus_and_each_sees_the_same_number(make_job, local):
    executor = local(2, launch="fresh")
    script = "import os, time; print(sorted(os.sched_getaffinity(0)), flush=True); time.sleep(0.5)"
    jobs = [make_job(script=script) for _ in range(2)]
    records = []
    threads = [threading.Thread(target=lambda job=job: records.append(execute(executor, job))) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    executor.close()
    seen = [json.loads(record.log_tail) for record in records]
    assert not set(seen[0]) & set(seen[1])
    assert len(seen[0]) == len(seen[1]) == CPUS // 2


def test_declared_threads_are_the_cpus_a_run_sees(executor, make_job):
    record = execute(executor, make_job(script="import os; print(len(os.sched_getaffinity(0)))", threads=1))
    assert record.log_tail == "1"
    assert record.environment["requested"]["threads"] == 1


def test_more_threads_than_cpus_are_refused(executor, make_job):
    with pytest.raises(ExecutionError, match=f"asks for {CPUS + 1} threads"):
        execute(executor, make_job(script="", threads=CPUS + 1))


def test_a_full_disk_in_the_run_folder_leaves_a_record_with_notes(make_job, run_folder):
    job = make_job(script="print('acc: 0.5')")
    run_folder(job).mkdir(parents=True)
    (run_folder(job) / "output.log").symlink_to("/dev/full")
    workshop = Workshop(launch="fresh")
    record = carry_out(job, run_folder(job), Workbench(workshop, tuple(os.sched_getaffinity(0))), lambda _event: None)
    workshop.close()
    assert record.state is RunState.FINISHED
    assert "output-lost" in codes(record)
    assert record.log_tail == "acc: 0.5"


def test_a_folder_of_an_earlier_time_is_set_aside_and_not_read(make_job, executor, run_folder):
    job = make_job(script="import isorun; isorun.log(epoch=1, acc=0.5)")
    execute(executor, job)
    again = execute(executor, job)
    assert list(again.series["acc"].values) == [0.5]
    assert len(list(run_folder(job).parent.glob(f"{job.run_id}.before-*/events.jsonl"))) == 1


def test_a_run_whose_folder_was_removed_has_failed_whatever_its_exit_code(make_job, executor):
    script = "import isorun, os, shutil; isorun.log(acc=0.5); shutil.rmtree(os.environ['ISORUN_RUN_DIR'])"
    record = execute(executor, make_job(script=script))
    assert record.state is RunState.FAILED
    assert "folder was removed" in record.reason


def test_a_run_whose_events_are_torn_has_failed_whatever_its_exit_code(make_job, executor):
    script = """
        import isorun, os, pathlib
        isorun.log(epoch=1, acc=0.5)
        isorun.result(test_acc=0.75)
        events = pathlib.Path(os.environ["ISORUN_RUN_DIR"], "events.jsonl")
        os.truncate(events, events.stat().st_size - 3)
        os._exit(0)
    """
    record = execute(executor, make_job(script=textwrap.dedent(script)))
    assert (record.state, record.exit_code) == (RunState.FAILED, 0)
    assert "some of what the run logged is missing" in record.reason
    assert "torn-events" in codes(record)
    assert record.series["acc"].values == (0.5,)


@pytest.mark.chaos
@pytest.mark.parametrize("launch", ["fresh", "warm"])
def test_killing_the_executor_leaves_no_process_behind(launch, tmp_path):
    (tmp_path / "train.py").write_text(
        "import os, subprocess, time\n"
        "subprocess.Popen(['sleep', '300'], start_new_session=True)\n"
        "if os.fork() == 0: os.setsid()\n"
        "open(f'pid-{os.getpid()}', 'w').close()\n"
        "time.sleep(300)\n"
    )
    code = f"""
        from pathlib import Path
        from isorun.execution import Job
        from isorun.execution.local import LocalExecutor
        from isorun.testing.executor_contract import execute
        from isorun.study.cells import Cell
        from isorun.study.cells import Level
        cell = Cell("a", ("python", "train.py"), "default", {{}}, "default", {{}}, Level.FIXED_SEED, 1, 0)
        here = Path({str(tmp_path)!r})
        execute(LocalExecutor(here / "runs", launch={launch!r}), Job(cell, 1, cell.command, here, 1))
    """
    before = set(processes())
    executor = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)])
    until = time.monotonic() + 30
    while len(list(tmp_path.glob("pid-*"))) < 2:
        assert time.monotonic() < until
        time.sleep(0.02)
    mine = {int(path.name[4:]) for path in tmp_path.glob("pid-*")} | {
        item.pid for item in find_strays(Marks(next((tmp_path / "runs").iterdir()))) if item.pid not in before
    }
    executor.send_signal(signal.SIGKILL)
    executor.wait()
    until = time.monotonic() + 1.0
    while mine & set(processes()) and time.monotonic() < until:
        time.sleep(0.01)
    assert not mine & set(processes())


@pytest.mark.parametrize("umask", [0, 0o022])
def test_only_the_owner_may_read_what_a_run_leaves_whatever_the_umask(make_job, tmp_path, umask):
    before = os.umask(umask)
    try:
        executor = LocalExecutor(tmp_path / "here" / ".isorun" / "runs", launch="fresh")
        record = execute(executor, make_job(script="import isorun; isorun.log(loss=1.0); print('acc: 0.5')"))
        executor.close()
    finally:
        os.umask(before)
    assert record.state is RunState.FINISHED
    store = tmp_path / "here" / ".isorun"
    paths = {path.name: path for path in (store, *store.rglob("*"))}
    assert paths.keys() >= {"output.log", "request.json", "job.json", "events.jsonl"}
    assert {name: oct(path.stat().st_mode & 0o077) for name, path in paths.items()} == dict.fromkeys(paths, "0o0")


@pytest.mark.parametrize("umask", [0, 0o077])
def test_what_a_run_leaves_in_a_shared_store_is_for_the_group_too(make_job, tmp_path, umask):
    store = tmp_path / "store"
    store.mkdir()
    store.chmod(0o2770)
    script = "import isorun, time\nfor n in range(3): print('loss:', n, flush=True); time.sleep(1)"
    before = os.umask(umask)
    try:
        with closing(LocalExecutor(store / "runs", 1)) as executor:
            record = execute(executor, make_job(script=script))
    finally:
        os.umask(before)
    assert record.state is RunState.FINISHED
    made = {path: path.stat().st_mode & 0o7777 for path in store.rglob("*")}
    assert {"events.jsonl", "output.log", "request.json", "record.json.gz", "writers.txt", "printed.json"} <= {
        path.name for path in made
    }
    for path, mode in made.items():
        assert mode == (0o2770 if path.is_dir() else 0o660), path


def test_a_run_says_who_carried_it_out_and_lies_where_that_one_says(make_job, tmp_path):
    def runs(job):
        return tmp_path / "of" / job.cell.approach

    for called, expected in (("worker", "worker"), ("", None)):
        with closing(LocalExecutor(runs, called=called)) as executor:
            record = execute(executor, make_job(script="print('acc: 0.5')"))
        assert record.where.get("executor") == expected
        folder = tmp_path / "of" / "a" / record.run_id
        assert record.where["folder"] == str(folder)
        assert read_record(folder).where == record.where
    assert lost_record(make_job(executor="ray"), "gone").where == {"executor": "ray"}
