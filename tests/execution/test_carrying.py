"""Carrying out one job here, as other executors do on other machines."""

import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.errors import ExecutionError
from isorun.execution import (
    ExecutorFailed,
    Job,
    Resources,
    RowsLogged,
    RunEnded,
    RunStarted,
    assemble,
    carrying,
    event_from_json,
    event_to_json,
    inputs,
)
from isorun.execution.assemble import FILES, OUTLIVED, lost_record, read_record, written_paths
from isorun.execution.carrying import Workbench, Workshop, carry_out, new_folder, watch
from isorun.execution.inputs import ChangedFiles, CodeVersions
from isorun.study import Environment, Sources
from isorun.study.cells import Cell, Level
from isorun.study.records import RunState
from isorun.testing.executor_contract import carried_out, execute

CPUS = tuple(sorted(os.sched_getaffinity(0)))
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)


@pytest.fixture
def workshop():
    made = Workshop(launch="fresh", grace_seconds=0.5)
    yield made
    made.close()


@given(
    command=st.lists(NAMES, min_size=1, max_size=5),
    env=st.dictionaries(NAMES, NAMES, max_size=3),
    numbers=st.tuples(*[st.none() | st.integers(0, 2**40)] * 3),
    limit=st.none() | st.floats(0.1, 1e6),
)
def test_a_job_travels_as_json(command, env, numbers, limit):
    cell = Cell("a", tuple(command), "default", {"lr": 0.1}, "e", {}, Level.FIXED_SEED, 1, 0)
    environment = Environment("e", env=env, threads=numbers[0], devices_per_run=numbers[1], memory_bytes=numbers[2])
    sources = Sources(files=("{run_dir}/m.json",), patterns=("x",))
    job = Job(cell, 3, tuple(command), carrying.Path("/w"), 1, environment, Resources(*numbers), limit, sources)
    assert "executor" not in job.to_json()
    assert Job.from_json(replace(job, executor="ray").to_json()).executor == "ray"
    assert Job.from_json(json.loads(json.dumps(job.to_json()))) == job


def test_what_is_kept_of_a_job_has_no_secrets(make_job, run_folder, local):
    plain = make_job(("true", "--password", "<redacted>"), env={"MY_TOKEN": "s3cr3t-value"})
    job = replace(plain, command=("true", "--password", "hunter2-hunter2"))
    execute(local(), job)
    kept = (run_folder(job) / "job.json").read_text()
    assert json.loads(kept)["cell"]["id"] == job.cell.id
    assert "hunter2" not in kept
    assert "s3cr3t" not in kept
    assert "hunter2" in json.dumps(job.to_json())


def test_placeholders_are_filled_where_the_run_is(make_job, run_folder, local):
    script = "import sys; print(*sys.argv[1:])"
    job = make_job(script=script, level="fixed-seed", seed=7, config={"lr": 0.5})
    words = ("{seed}", "{level}", "{run_dir}/x", "{config.lr}", "{{seed}}")
    job = Job(job.cell, 1, (*job.command, *words), job.working_folder, 7)
    record = execute(local(), job)
    assert record.log_tail == f"7 fixed-seed {run_folder(job)}/x 0.5 {{seed}}"


def test_the_folder_of_a_run_keeps_its_record_and_only_the_user_can_read_it(make_job, run_folder, local):
    job = make_job(script="import isorun; isorun.log(epoch=1, acc=0.5)")
    record = execute(local(), job)
    assert read_record(run_folder(job)) == record
    assert stat.S_IMODE(run_folder(job).stat().st_mode) == 0o700
    for name in ("job.json", "record.json.gz"):
        assert stat.S_IMODE((run_folder(job) / name).stat().st_mode) == 0o600
    assert record.where == {
        "host": os.uname().nodename,
        "folder": str(run_folder(job)),
        "python": record.environment["made"]["python"],
    }


def test_half_a_line_of_a_process_that_was_left_behind_is_not_read(make_job, local):
    """It was ended by force: nobody knows whether more digits were to come."""
    script = "import subprocess, sys, time; print('val_loss: 0.5', flush=True); "
    script += "subprocess.Popen(['sh', '-c', 'printf \"val_acc: 0.9\"; sleep 60']); time.sleep(0.5)"
    record = execute(local(), make_job(script=script))
    assert record.state == RunState.FINISHED
    assert set(record.series) == {"val_loss"}
    assert "line-torn" in {note.code for note in record.notes}


def test_folders_that_are_made_for_a_run_are_its_users_alone(tmp_path):
    new_folder(tmp_path / "store" / "runs" / "a-1")
    made = [tmp_path / "store", tmp_path / "store" / "runs", tmp_path / "store" / "runs" / "a-1"]
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in made] == [0o700] * 3


def test_a_record_that_was_altered_in_its_folder_is_refused(make_job, run_folder, local):
    job = make_job(("true",))
    execute(local(), job)
    path = run_folder(job) / "record.json.gz"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(ExecutionError, match="cannot be read"):
        read_record(run_folder(job))


def test_rows_are_told_while_the_training_runs(make_job, local):
    script = "import isorun, time\nfor e in (1, 2, 3):\n    isorun.log(epoch=e, acc=e / 4)\n    time.sleep(1.1)\n"
    events = carried_out(local(launch="fresh"), [make_job(script=script)])
    assert isinstance(events[0], RunStarted)
    assert events[0].where["folder"].endswith(events[0].run_id)
    rows = [event.rows for event in events if isinstance(event, RowsLogged)]
    assert len(rows) >= 2
    assert [(row["step"], row["values"]) for some in rows for row in some] == [
        (1, {"acc": 0.25}),
        (2, {"acc": 0.5}),
        (3, {"acc": 0.75}),
    ]
    assert isinstance(events[-1], RunEnded)


def test_what_nobody_can_read_is_a_failed_run_that_says_so(make_job, tmp_path, workshop, monkeypatch):
    def broken(_folder, _held):
        raise OverflowError("int too large to convert to float")

    monkeypatch.setattr(carrying, "read_run_folder", broken)
    (tmp_path / "run").mkdir()
    record = carry_out(make_job(("echo", "words")), tmp_path / "run", Workbench(workshop, CPUS), lambda _event: None)
    assert record.state is RunState.FAILED
    assert record.reason == "what the run left cannot be read (OverflowError: int too large to convert to float)"
    assert record.log_tail == "words"
    assert read_record(tmp_path / "run") == record


def test_a_record_that_cannot_be_written_as_json_is_a_failed_run(make_job, tmp_path, workshop, monkeypatch):
    def odd(_folder, _held):
        log = carrying.EventLog()
        log.effective = {"odd": {1, 2}}
        return log

    monkeypatch.setattr(carrying, "read_run_folder", odd)
    (tmp_path / "run").mkdir()
    record = carry_out(make_job(("true",)), tmp_path / "run", Workbench(workshop, CPUS), lambda _event: None)
    assert record.state is RunState.FAILED
    assert "cannot be read (TypeError" in record.reason


def test_a_module_that_is_missing_names_the_interpreter_and_the_remedy(make_job, local):
    record = execute(local(), make_job(script="import no_such_module_at_all"))
    python = record.environment["made"]["python"]
    assert record.reason.startswith("exit code 1: ModuleNotFoundError: No module named 'no_such_module_at_all' in ")
    assert f"`{python} -m pip install no_such_module_at_all`" in record.reason
    assert "--python" in record.reason


@pytest.mark.parametrize(
    ("kind", "settings", "remedy"),
    [
        ("packages", {"requirements": ["six"]}, "add what brings absent to six in the study: isorun installs it for"),
        ("packages", {"requirements": [], "lock": "a.lock"}, "add what brings absent to a.lock in the study"),
        ("container", {"image": "i"}, "choose an image that has absent"),
    ],
)
def test_a_module_that_is_missing_in_what_isorun_made_is_asked_for_in_the_study(kind, settings, remedy):
    environment = Environment("baseline", kind=kind, settings=settings)
    log = SimpleNamespace(start={"executable": "/cache/venv/bin/python"})
    ended = SimpleNamespace(
        log_tail="ModuleNotFoundError: No module named 'absent'",
        events=log,
        made={},
        job=SimpleNamespace(environment=environment, working_folder=Path("nowhere")),
    )
    found = assemble._remedy(ended)
    assert remedy in found
    assert "pip" not in found


LAST_LINE = """
import os, pathlib, signal, sys
pathlib.Path("r.csv").write_text("epoch,acc\\n1,0.5\\n2,0.25")
print("epoch 1 loss: 0.75")
print("epoch 2 loss: 0.125", end="", flush=True)
"""


@pytest.mark.parametrize(
    ("ending", "values", "torn"),
    [
        ("", [(0.5, 0.25), (0.75, 0.125)], []),
        ("sys.exit(3)", [(0.5,), (0.75,)], ["line-torn", "files.torn"]),
        ("os.kill(os.getpid(), signal.SIGKILL)", [(0.5,), (0.75,)], ["line-torn", "files.torn"]),
        ("os.kill(os.getpid(), signal.SIGTERM)", [(0.5,), (0.75,)], ["line-torn", "files.torn"]),
    ],
)
def test_a_last_line_without_an_end_counts_only_where_the_run_ended_well(make_job, local, ending, values, torn):
    record = execute(local(), make_job(script=LAST_LINE + ending, sources=Sources(files=("r.csv",))))
    assert [record.series[name].values for name in ("acc", "loss")] == values
    assert [note.code for note in record.notes if note.code.endswith("torn")] == torn


def test_a_last_line_of_a_run_that_timed_out_may_be_half_of_one(make_job, local):
    patient = "signal.signal(signal.SIGTERM, lambda *_: os._exit(0))\nimport time; time.sleep(60)"
    job = make_job(script=LAST_LINE + patient, sources=Sources(files=("r.csv",)), time_limit_seconds=1.0)
    record = execute(local(), job)
    assert (record.state, record.series["acc"].values) == (RunState.TIMED_OUT, (0.5,))
    assert record.series["loss"].values == (0.75,)


def test_a_signal_that_comes_while_runs_are_registered_is_heard():
    """Its handler runs in the thread that holds the lock just then."""
    workshop = Workshop(launch="fresh")  # not closed where it waits for itself: the test would wait, too
    asked = []

    class Running:
        def ask_to_stop(self):
            asked.append("stop")

        kill = close = ask_to_stop

    heard = threading.Event()

    def stop_within():
        with workshop._lock, workshop.registered("a-1", Running()):
            workshop.stop()
        heard.set()

    threading.Thread(target=stop_within, daemon=True).start()
    assert heard.wait(5), "the handler waits for what it has interrupted"
    assert asked
    workshop.close()


@pytest.mark.parametrize("script", ["os.get_terminal_size()", "subprocess.run(['stty', 'size'], check=True)"])
def test_a_training_that_wants_a_terminal_is_told_that_there_is_none(make_job, local, script):
    record = execute(local(), make_job(script=f"import os, subprocess\n{script}\n"))
    assert "(it asked for a terminal, and isorun has none to give: look for its option" in record.reason
    assert record.reason.endswith("isorun run … -- script -qec 'COMMAND' /dev/null)")


@pytest.mark.parametrize(("so_far", "seconds"), [(0.0, 0.1), (10.0, 0.1), (30.0, 0.3), (50.0, 0.5), (86400.0, 0.5)])
def test_output_gathers_longer_the_longer_a_run_takes_so_that_times_of_lines_are_known_to_a_hundredth(so_far, seconds):
    assert carrying._gathering_seconds(so_far) == pytest.approx(seconds)


def test_a_module_that_another_python_lacks_is_not_to_be_installed_in_that_of_its_launcher(make_job, local, tmp_path):
    (tmp_path / "train.py").write_text("import no_such_module")
    script = "import subprocess, sys; sys.exit(subprocess.run([sys.executable, 'train.py']).returncode)"
    record = execute(local(), make_job(script=script))
    assert record.reason.endswith(
        "No module named 'no_such_module' in the Python that train1.py chose: install what is missing there, or the "
        "package that brings it"
    )
    alone = execute(local(), make_job(("python", "train.py")))
    assert "install what is missing with `" in alone.reason


def test_another_error_has_no_remedy(make_job, local):
    record = execute(local(), make_job(script="raise ValueError('No module named x')"))
    assert record.reason == "exit code 1: ValueError: No module named x"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("raise RuntimeError('CUDA error: busy\\nCompile with X')", "RuntimeError: CUDA error: busy … Compile with X"),
        (
            "class Full(Exception): pass\nraise Full('of 2:\\n  size mismatch')",
            "Full: of 2: … size mismatch",
        ),
        (
            "import traceback\ntry: 1 / 0\nexcept ArithmeticError: traceback.print_exc()\nraise SystemExit('no data')",
            "ZeroDivisionError: division by zero … no data",
        ),
        ("raise ValueError('x' * 300)", f"ValueError: {'x' * 187}…"),
        (
            (
                "raised = 'Traceback (most recent call last):\\n  File x\\n'\n"
                "print('[rank0]: ' + raised.replace('  ', '[rank0]:   ') + '[rank0]: KeyError: 7')\n"
                "print(raised + 'torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \\n=====')\n"
                "raise SystemExit(1)"
            ),
            "KeyError: 7",
        ),
        (
            (
                "import subprocess, sys\n"
                "subprocess.run([sys.executable, '-c', 'raise KeyError(7)'], stderr=sys.stdout, check=True)"
            ),
            (
                f"KeyError: 7 … subprocess.CalledProcessError: Command '['{sys.executable}', '-c', "
                "'raise KeyError(7)']' returned non-zero exit status 1."
            ),
        ),
        (
            "import subprocess\nsubprocess.run(['false'], check=True)",
            "subprocess.CalledProcessError: Command '['false']' returned non-zero exit status 1.",
        ),
        ("print('Traceback of it all')\nraise SystemExit('no data')", ""),
        ("print('\\x1b[0;31mNameError\\x1b[0m: x is not defined')\nraise SystemExit(1)", "NameError: x is not defined"),
    ],
)
def test_the_reason_names_the_error_whatever_its_message_is_like(make_job, local, script, why):
    record = execute(local(), make_job(script=script))
    assert record.reason == f"exit code 1{': ' if why else ''}{why}"
    assert "\x1b" not in record.log_tail


@pytest.mark.parametrize(
    ("logs", "ending"),
    [
        ("import isorun; isorun.log(epoch=0, acc=0.5)", (RunState.FAILED, OUTLIVED)),
        ("", (RunState.FINISHED, "")),
    ],
)
def test_a_training_that_outlives_its_command_is_told_and_has_failed_where_it_had_begun(
    make_job, local, tmp_path, logs, ending
):
    (tmp_path / "train.py").write_text(f"{logs}\nopen('begun', 'x')\nimport time; time.sleep(60)\n")
    waiting = f"{sys.executable} train.py & while [ ! -e begun ]; do sleep 0.05; done"
    record = execute(local(), make_job(("sh", "-c", waiting), level="fixed-seed", seed=1))
    assert (record.state, record.reason) == ending
    assert "training-outlived" in {note.code for note in record.notes}


def test_a_helper_that_outlives_its_training_is_no_training(make_job, local, tmp_path):
    script = "import isorun, subprocess; isorun.log(epoch=0, acc=0.5); subprocess.Popen(['sleep', '60'])"
    record = execute(local(), make_job(script=script))
    assert (record.state, {note.code for note in record.notes}) == (RunState.FINISHED, {"left-behind"})


@pytest.mark.parametrize(("imports", "frameworks"), [("import numpy", {"numpy"}), ("import random", set())])
def test_a_script_that_logs_nothing_stands_for_itself_and_not_its_launcher(
    make_job, local, tmp_path, imports, frameworks
):
    (tmp_path / "train.py").write_text(f"{imports}\nprint('Epoch 1 - val_acc: 0.5')")
    (tmp_path / "launch.py").write_text("import subprocess, sys; subprocess.run([sys.executable, 'train.py'])")
    record = execute(local(), make_job(("python", "launch.py"), level="fixed-seed"))
    assert set(record.environment["effective"]["frameworks"]) == frameworks
    assert len(list(Path(record.where["folder"]).glob("events*.jsonl"))) == 1 + bool(frameworks)


def test_a_launcher_that_hands_no_variables_on_is_told(make_job, local, tmp_path):
    (tmp_path / "train.py").write_text("print('Epoch 1 - val_acc: 0.5')")
    script = "import subprocess, sys; subprocess.run([sys.executable, 'train.py'], env={})"
    record = execute(local(), make_job(script=script, level="fixed-seed"))
    assert [note.message for note in record.notes if note.code == "python-unreached"] == [
        "Python was started (train.py) without isorun's variables"
    ]


def carry_by_command(job, folder, *words, **options):
    text = json.dumps(job.to_json())
    command = [sys.executable, "-m", "isorun.execution.carrying", "-", str(folder), *words]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=60, **options)


def test_a_job_is_carried_out_by_a_command_that_prints_its_events(make_job, tmp_path):
    job = make_job(script="import isorun; isorun.log(epoch=1, acc=0.5)", level="fixed-seed", seed=5)
    done = carry_by_command(job, tmp_path / "there")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr) == (0, "")
    assert [event["event"] for event in events] == ["started", "rows", "ended"]
    assert events[-1] == {"event": "ended", "run_id": job.run_id, "state": "finished"}
    record = read_record(tmp_path / "there")
    assert (record.cell, record.seed_used, list(record.series["acc"].values)) == (job.cell, 5, [0.5])


def test_a_job_that_cannot_be_run_there_says_why(make_job, tmp_path):
    done = carry_by_command(make_job(("no-such-program",)), tmp_path / "there")
    assert done.returncode == 1
    assert "no-such-program" in json.loads(done.stdout.splitlines()[-1])["error"]
    assert "Traceback" not in done.stderr


def test_a_job_that_is_told_to_stop_there_leaves_a_record(make_job, tmp_path):
    job = make_job(("sleep", "60"))
    (tmp_path / "job.json").write_text(json.dumps(job.to_json()))
    command = [sys.executable, "-m", "isorun.execution.carrying", str(tmp_path / "job.json"), str(tmp_path / "there")]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert json.loads(running.stdout.readline())["event"] == "started"
    began = time.monotonic()
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=20)
    assert time.monotonic() - began < 10
    assert read_record(tmp_path / "there").state is RunState.INTERRUPTED


def test_a_signal_that_comes_before_the_job_leaves_a_record_too(make_job, tmp_path):
    job = make_job(("sleep", "60"))
    command = [sys.executable, "-m", "isorun.execution.carrying", "-", str(tmp_path / "there")]
    running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    until = time.monotonic() + 20
    while not _holds_back(running.pid, signal.SIGTERM):
        assert time.monotonic() < until, "the signal would end the process without a record"
        time.sleep(0.01)
    running.send_signal(signal.SIGTERM)
    told, _ = running.communicate(json.dumps(job.to_json()), timeout=30)
    assert running.returncode == 0
    assert json.loads(told.splitlines()[-1])["state"] == "interrupted"
    assert read_record(tmp_path / "there").state is RunState.INTERRUPTED


def test_whoever_starts_it_with_the_signal_blocked_gets_a_record_however_early_it_comes(make_job, tmp_path):
    (tmp_path / "job.json").write_text(json.dumps(make_job(("sleep", "60")).to_json()))
    command = [sys.executable, "-m", "isorun.execution.carrying", str(tmp_path / "job.json"), str(tmp_path / "there")]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=30)
    assert running.returncode == 0
    assert read_record(tmp_path / "there").state is RunState.INTERRUPTED


def _holds_back(pid, number):
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return bool(int(status["SigBlk"], 16) >> (number - 1) & 1)


def test_devices_are_lent_recorded_and_shared_with_a_note(make_job, tmp_path, local, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    if len(CPUS) < 2:
        pytest.skip("needs two CPUs")
    script = "import os, time; print(os.environ['CUDA_VISIBLE_DEVICES'], flush=True); time.sleep(0.7)"
    alone = carried_out(local(2, launch="fresh"), [make_job(script=script) for _ in range(2)])
    records = [event.record for event in alone if isinstance(event, RunEnded)]
    assert {(record.log_tail, record.devices) for record in records} == {("5", ("cuda:5",)), ("7", ("cuda:7",))}
    assert not any(note.code == "shared-device" for record in records for note in record.notes)
    shared = carried_out(local(2, launch="fresh", devices="7"), [make_job(script=script) for _ in range(2)])
    records = [event.record for event in shared if isinstance(event, RunEnded)]
    assert [record.log_tail for record in records] == ["7", "7"]
    assert all("shared-device" in {note.code for note in record.notes} for record in records)


@pytest.mark.parametrize("launch", ["fresh", "warm"])
def test_every_run_gets_a_copy_of_standard_input(make_job, local, tmp_path, launch):
    from isorun.execution.resources import StandardInput

    (tmp_path / "in").write_text("0.25\n")
    fd = os.open(tmp_path / "in", os.O_RDONLY)
    given = StandardInput(fd)
    executor = local(launch=launch, standard_input=given)
    jobs = [make_job(script="print('acc:', input())", level="fixed-seed") for _ in range(3)]
    ended = [event.record for event in carried_out(executor, jobs) if isinstance(event, RunEnded)]
    assert [list(record.series["acc"].values) for record in ended] == [[0.25]] * 3
    assert {record.launch for record in ended} == {launch}
    read = {"sha256": hashlib.sha256(b"0.25\n").hexdigest(), "bytes": 5}
    assert [record.environment["requested"]["stdin"] for record in ended] == [read] * 3
    unread = execute(executor, make_job(script="print('acc: 1')", level="fixed-seed"))
    assert "stdin" not in unread.environment["requested"]
    given.close()
    os.close(fd)


def test_a_program_may_come_by_standard_input(make_job, local):
    from isorun.execution.resources import StandardInput

    reading, writing = os.pipe()
    os.write(writing, b"import isorun; isorun.result(acc=0.25)")
    os.close(writing)
    given = StandardInput(reading)
    executor = local(standard_input=given)
    for _ in range(2):
        record = execute(executor, make_job(("python", "-"), level="fixed-seed"))
        assert (record.state, record.results) == (RunState.FINISHED, {"acc": 0.25})
        assert record.environment["requested"]["stdin"]["bytes"] == 38
    given.close()
    os.close(reading)


CARRYING = [sys.executable, "-m", "isorun.execution.carrying"]


def typed(*words, text="", **options):
    return subprocess.run(
        [*CARRYING, *words], input=text, capture_output=True, text=True, check=False, timeout=60, **options
    )


@pytest.mark.parametrize("version", [99, None, "1"])
def test_a_job_of_another_version_is_refused(make_job, version):
    data = {**make_job().to_json(), "job": version}
    with pytest.raises(ExecutionError) as caught:
        Job.from_json(data)
    expected = ("written by a newer isorun", "version 99") if version == 99 else ("not a job", "version")
    assert all(words in caught.value.message() for words in expected)


@pytest.mark.parametrize("missing", ["cell", "command", "environment", "sources"])
def test_what_lacks_a_part_of_a_job_is_none(make_job, missing):
    data = {name: value for name, value in make_job().to_json().items() if name != missing}
    with pytest.raises(ExecutionError, match=rf"not a job[\s\S]*{missing}"):
        Job.from_json(data)


@pytest.mark.parametrize("words", [[], ["-"], ["-", "there", "none", "0", "more"], ["--help"]])
def test_words_that_do_not_fit_give_the_usage_and_no_traceback(tmp_path, words):
    done = typed(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: python -m isorun.execution.carrying JOB FOLDER [DEVICES [CPUS]]")


@pytest.mark.parametrize(
    ("text", "why"), [("", "cannot be read"), ('{"job": 99}', "newer isorun"), ("[1]", "not a job"), ("{", "JSON")]
)
def test_what_is_no_job_is_an_event_that_says_so(tmp_path, text, why):
    done = typed("-", "there", cwd=tmp_path, text=text)
    (event,) = map(json.loads, done.stdout.splitlines())
    assert (done.returncode, done.stderr) == (1, "")
    assert (event["event"], event["run_id"]) == ("failed", "")
    assert why in event["error"]


@pytest.mark.parametrize(
    "words", [["no-such-file.json", "there"], ["-", "there", "auto", "0,77777"], ["-", "there", "x,y,x"]]
)
def test_files_and_resources_that_are_not_there_are_events_too(make_job, tmp_path, words):
    done = typed(*words, cwd=tmp_path, text=json.dumps(make_job().to_json()))
    assert (done.returncode, done.stderr) == (1, "")
    assert json.loads(done.stdout.splitlines()[-1])["event"] == "failed"


@pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs")
def test_a_run_is_pinned_to_the_cpus_that_were_named_and_else_to_none(make_job, tmp_path):
    script = "import os; print(sorted(os.sched_getaffinity(0)), os.environ['OMP_NUM_THREADS'])"
    job = make_job(script=script, level="deterministic", threads=1)
    for number, (words, seen) in enumerate({(): list(CPUS), ("none", str(CPUS[1])): [CPUS[1]]}.items()):
        done = carry_by_command(job, tmp_path / f"there{number}", *words)
        assert done.returncode == 0, done.stdout
        assert read_record(tmp_path / f"there{number}").log_tail == f"{seen} 1"


def test_an_event_comes_back_from_its_line(make_job):
    job = make_job()
    record = lost_record(job, "gone")
    failed = ExecutorFailed(ExecutionError("no room", hint="make some"), job.run_id)
    events = [
        RunStarted(job.run_id, {"host": "h", "folder": "/f"}),
        RowsLogged(job.run_id, ({"kind": "row", "step": 1, "values": {"acc": 0.5}},)),
        RunEnded(job.run_id, record),
    ]
    assert [event_from_json(json.loads(json.dumps(event_to_json(event))), lambda: record) for event in events] == events
    back = event_from_json(json.loads(json.dumps(event_to_json(failed))), lambda: record)
    assert (back.run_id, back.error.message()) == (job.run_id, failed.error.message())


@pytest.mark.parametrize("data", [{}, [], {"event": "sung", "run_id": "x"}, {"event": "rows", "run_id": "x"}])
def test_a_line_that_is_no_event_is_refused(data):
    with pytest.raises(ExecutionError, match="not an event of a run"):
        event_from_json(data, lambda: None)


def test_a_run_whose_machine_was_lost_has_a_record_that_says_so(make_job):
    job = make_job(("true", "--password", "hunter2-hunter2"), level="fixed-seed", seed=4)
    record = lost_record(job, "the node n7 was lost while `--password hunter2-hunter2` ran", began_unix=0.0)
    assert (record.state, record.exit_code, record.launch, record.notes) == (RunState.FAILED, None, "none", ())
    assert record.reason == "the node n7 was lost while `--password <redacted>` ran"
    assert (record.cell, record.attempt, record.seed_used) == (job.cell, 1, 4)
    assert record.started_at.startswith("1970-01-01")
    assert type(record).from_json(record.to_json()) == record
    assert lost_record(job, "cancelled", state=RunState.INTERRUPTED).state is RunState.INTERRUPTED


def test_the_python_that_was_chosen_travels_in_the_job(make_job):
    job = make_job(("python", "x.py"))
    carried = Job.from_json(job.with_python("/opt/python").to_json())
    assert carried.environment.python == "/opt/python"
    assert (carried.cell, job.with_python("")) == (job.cell, job)
    asked = make_job(("python", "x.py"), python="/mine")
    assert asked.with_python("/opt/python") == asked


@pytest.mark.parametrize(("takes", "serves"), [(0.02, 1.0), (3.0, 10.0)])
def test_gits_answer_serves_for_as_long_as_it_is_worth(tmp_path, monkeypatch, takes, serves):
    """Code that is edited between runs is noticed at once where git is quick, and git is not asked all the time."""
    now, answers = [100.0], count()

    def slow(_folder):
        now[0] += takes
        return {"commit": next(answers)}

    monkeypatch.setattr(inputs, "code_version", slow)
    monkeypatch.setattr(inputs, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with closing(CodeVersions()) as versions:
        assert versions.ask(tmp_path).result() == {"commit": 0}
        now[0] = 100.0 + serves * 0.9
        assert versions.ask(tmp_path).result() == {"commit": 0}
        now[0] = 100.0 + serves * 1.1
        assert versions.ask(tmp_path).result() == {"commit": 1}


def test_a_model_file_that_changed_unseen_is_told_only_where_one_run_was_alone(tmp_path):
    (tmp_path / "out").mkdir()
    for name in ("out/model.h5", "notes.txt", "new.h5"):
        if name != "new.h5":
            (tmp_path / name).write_text("before")
            os.utime(tmp_path / name, (1000, 1000))
    files = ChangedFiles()
    look = files.before(tmp_path)
    for name in ("out/model.h5", "notes.txt", "new.h5"):
        (tmp_path / name).write_text("after")
        os.utime(tmp_path / name, (2000, 2000))
    assert files.after(look) == {"out/model.h5": {"found": 1000.0, "wrote": [2000.0], "read": []}}
    first, second = files.before(tmp_path), files.before(tmp_path)
    os.utime(tmp_path / "new.h5", (3000, 3000))
    assert (files.after(first), files.after(second)) == ({}, {})
    assert files.after(files.before(tmp_path)) == {}


def test_who_prints_line_after_line_is_read_in_blocks_and_whole():
    """To wake up for each line took longer than to read it. The end is noticed at once, and nothing is lost."""
    output_fd, printing = os.pipe()
    status_fd, ending = os.pipe()
    read = []

    def training():
        for number in range(200):
            os.write(printing, b"%d\n" % number)
            time.sleep(0.0005)
        os.close(printing)
        os.close(ending)

    running = SimpleNamespace(output_fd=output_fd, status_fd=status_fd, exit=lambda: "ended", see_to_it=lambda: None)
    output = SimpleNamespace(write=lambda data, seconds: read.append((seconds, data)), take_in=lambda: None)
    thread = threading.Thread(target=training)
    thread.start()
    watched = watch(running, output, None, lambda: None)
    thread.join()
    os.close(output_fd)
    os.close(status_fd)
    assert watched.exit == "ended"
    assert b"".join(data for _, data in read).split() == [b"%d" % number for number in range(200)]
    moments = [seconds for seconds, _ in read][:-1]  # the last is read because it has ended
    assert all(later - first > 0.009 for first, later in zip(moments, moments[2:], strict=False))


def test_the_version_of_code_that_cannot_be_asked_for_is_told_to_who_waits_for_it(tmp_path, monkeypatch):
    def fails(_folder):
        raise OSError("no more processes")

    monkeypatch.setattr(inputs, "code_version", fails)
    with closing(CodeVersions()) as versions, pytest.raises(OSError, match="no more processes"):
        versions.ask(tmp_path).result()


def test_what_isorun_itself_prints_into_the_folder_is_no_file_of_a_run(tmp_path):
    """`isorun run … > run.log 2>&1`: the lines there are of all runs."""
    work, runs = tmp_path / "work", tmp_path / "store" / "runs" / "a"
    work.mkdir()
    runs.mkdir(parents=True)
    (work / "metrics.log").write_text("epoch 1 acc: 0.5\n")
    asked = (
        "import sys; from pathlib import Path; from isorun.execution.assemble import written_paths; "
        "print('epoch 1 acc: 0.25', flush=True); "
        f"found = written_paths(Path({str(work)!r}), Path({str(runs)!r}), 0.0, {{}}); "
        f"Path({str(tmp_path / 'found')!r}).write_text(' '.join(path.name for path in found))"
    )
    with (work / "run.log").open("w") as log:
        subprocess.run([sys.executable, "-c", asked], stdout=log, stderr=subprocess.STDOUT, check=True)
    assert (work / "run.log").read_text() == "epoch 1 acc: 0.25\n"
    assert (tmp_path / "found").read_text() == "metrics.log"


def test_what_another_process_prints_into_the_folder_is_no_file_of_a_run(tmp_path):
    """Another worker's `isorun worker … > w2.log`, and `isorun run … | tee run.log`."""
    work, runs = tmp_path / "work", tmp_path / "store" / "runs" / "a"
    work.mkdir()
    runs.mkdir(parents=True)
    (work / "metrics.log").write_text("epoch 1 acc: 0.5\n")
    with (
        (work / "w2.log").open("w") as log,
        subprocess.Popen(["sh", "-c", "echo acc: 0.25; read line"], stdin=subprocess.PIPE, stdout=log) as other,
        subprocess.Popen(["tee", str(work / "run.log")], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as tee,
    ):
        tee.stdin.write(b"acc: 0.75\n")
        tee.stdin.flush()
        until = time.monotonic() + 20
        while not ((work / "w2.log").read_text() and (work / "run.log").exists() and (work / "run.log").read_text()):
            assert time.monotonic() < until
            time.sleep(0.02)
        found = written_paths(work, runs, 0.0, {})
        told = written_paths(work, runs, 0.0, {FILES: {str(work / "run.log"): {}}})
        for process in (other, tee):
            process.stdin.close()
    assert [path.name for path in found] == ["metrics.log"]
    assert sorted(path.name for path in told) == ["metrics.log", "run.log"]  # its own process says that it wrote there


def test_model_files_that_a_run_wrote_are_not_opened_for_metrics(tmp_path):
    """A checkpoint of some megabytes took seconds at the end of a run, to be read as a table."""
    work, runs = tmp_path / "work", tmp_path / "store" / "runs" / "a"
    work.mkdir()
    runs.mkdir(parents=True)
    for name in ("ckpt.pt", "model.bin", "history.json"):
        (work / name).write_text("{}")
    told = {FILES: {str(work / name): {} for name in ("ckpt.pt", "model.bin", "history.json")}}
    assert {path.name for path in written_paths(work, runs, 0.0, told)} == {"history.json"}


def test_the_time_of_a_run_begins_when_it_is_started_and_not_before(make_job, tmp_path, workshop, monkeypatch):
    """By its start and its seconds runs are told apart that wrote to one file; a server may take long to get ready."""
    start = workshop.launcher.start

    def slow(ready):
        time.sleep(1.0)
        return start(ready)

    monkeypatch.setattr(workshop.launcher, "start", slow)
    (tmp_path / "run").mkdir()
    written = tmp_path / "ckpt.pt"
    job = make_job(("sh", "-c", f"sleep 0.2; echo x > {written}"))
    record = carry_out(job, tmp_path / "run", Workbench(workshop, CPUS), lambda _event: None)
    began = datetime.fromisoformat(record.started_at).timestamp()
    assert began < written.stat().st_mtime <= began + record.wall_seconds + 0.05
