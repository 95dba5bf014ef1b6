"""The parts of the SLURM executor that need no SLURM: settings, answers of its commands, what its last words mean."""

import json
import os
import signal
import socket
import stat
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from isorun import stopping
from isorun.errors import ExecutionError
from isorun.execution import Resources, RowsLogged, event_to_json
from isorun.execution.slurm import SlurmExecutor, commands, element, ledger
from isorun.execution.slurm.commands import (
    AccountingSilent,
    ArrayElement,
    ControllerSilent,
    JobEnd,
    Partition,
    QueueFull,
    Slurm,
    SubmissionRefused,
)
from isorun.execution.slurm.endings import Left, ending
from isorun.execution.slurm.entries import AwaitedRun
from isorun.execution.slurm.ledger import Ledger, RunPlace, carried, is_live, latest_begin
from isorun.execution.slurm.settings import settings_of
from isorun.execution.slurm.standing import standing
from isorun.execution.slurm.watching import EventTail
from isorun.session import open_store
from isorun.store import Holder
from isorun.store.checking import share
from isorun.study.cells import cells_of
from isorun.study.design import load_study
from isorun.study.records import RunState
from isorun.testing.executor_contract import job_for
from isorun.testing.made_records import make_record
from isorun.testing.memory_store import MemoryStore
from isorun.worker.runfolder import write_own
from isorun.workflow import known_to

SQUEUE = """\
12|3|RUNNING|n1|isorun-0123456789ab|None
12|4|PENDING||isorun-0123456789ab|Nodes required for job are DOWN, DRAINED|or worse
13|N/A|RUNNING|n2|jupyter|None
14|0|CANCELLED|n2|isorun-ba9876543210|0
garbage
"""
PARTITIONS = """\
PartitionName=cpu AllowGroups=ALL Default=NO MaxTime=UNLIMITED State=UP Nodes=c[1-9]
PartitionName=gpu AllowGroups=ALL Default=YES MaxTime=2-00:00:00 State=UP Nodes=g[1-2]
PartitionName=old Default=NO MaxTime=30:00 State=DOWN Nodes=o1
"""
SINFO = """\
cpu|64|256000|(null)
gpu|32+|128000+|gpu:a100:4(S:0-1),mps:400
gpu|16|64000|gpu:2
old|4|8000|(null)
"""


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A function that puts a program of SLURM's name into PATH: what it prints, says and ends with."""
    folder = tmp_path / "programs"
    folder.mkdir()

    def make(name, output="", said="", code=0):
        (folder / f"{name}.out").write_text(output)
        (folder / f"{name}.err").write_text(said)
        text = f'#!/bin/sh\n/usr/bin/env > {folder}/{name}.env\necho "$@" > {folder}/{name}.words\n'
        (folder / name).write_text(
            f"{text}/bin/cat {folder}/{name}.out\n/bin/cat {folder}/{name}.err >&2\nexit {code}\n"
        )
        (folder / name).chmod(0o755)
        return folder

    for name in ("sbatch", "squeue", "scontrol", "scancel", "sinfo"):
        make(name)
    monkeypatch.setenv("PATH", str(folder))  # a SLURM of this machine's own has no part in it
    return make


def test_elements_of_arrays_are_read_whatever_the_reason_says(programs):
    programs("squeue", SQUEUE)
    assert Slurm().elements() == [
        ArrayElement("isorun-0123456789ab", "12", 3, "RUNNING", "n1", "None"),
        ArrayElement(
            "isorun-0123456789ab", "12", 4, "PENDING", "", "Nodes required for job are DOWN, DRAINED|or worse"
        ),
        ArrayElement("isorun-ba9876543210", "14", 0, "CANCELLED", "n2", "0"),
    ]


def test_partitions_are_read_with_what_their_largest_node_has(programs):
    programs("scontrol", PARTITIONS)
    programs("sinfo", SINFO)
    assert Slurm().partitions() == [
        Partition("gpu", True, True, 172_800, 32, 128_000 << 20, 4),
        Partition("cpu", False, True, None, 64, 256_000 << 20, 0),
        Partition("old", False, False, 1800, 4, 8000 << 20, 0),
    ]


@pytest.mark.parametrize(
    ("said", "raised"),
    [
        ("sbatch: error: Batch job submission failed: Socket timed out on send/recv operation", ControllerSilent),
        ("sbatch: error: Unable to contact slurm controller (connect failure)", ControllerSilent),
        ("sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: Job violates …", QueueFull),
        ("sbatch: error: AssocMaxSubmitJobLimit", QueueFull),
        ("sbatch: error: Batch job submission failed: Invalid account or account/partition", SubmissionRefused),
    ],
)
def test_what_sbatch_says_is_a_lost_answer_a_full_queue_or_a_no(programs, tmp_path, said, raised):
    programs("sbatch", said=said, code=1)
    with pytest.raises(raised):
        Slurm().submit([], tmp_path / "batch.sh", [])


def test_the_number_is_read_also_where_the_cluster_stands_behind_it(programs, tmp_path):
    programs("sbatch", "4711;cluster\n")
    assert Slurm().submit([], tmp_path / "batch.sh", []) == "4711"


def test_slurms_commands_get_none_of_the_shells_secrets(programs, tmp_path, monkeypatch):
    for name in ("WANDB_API_KEY", "SLURM_JOB_ID", "SLURM_MEM_PER_CPU"):
        monkeypatch.setenv(name, "12345")
    monkeypatch.setenv("SBATCH_ACCOUNT", "lab")
    folder = programs("sbatch", "1\n")
    Slurm().submit([], tmp_path / "batch.sh", [])
    given = (folder / "sbatch.env").read_text()
    assert "SBATCH_ACCOUNT=lab" in given
    assert "12345" not in given


def test_the_end_of_a_job_whose_number_was_given_out_again_is_not_taken_for_ours(programs):
    programs(
        "scontrol", "JobId=7 JobName=isorun-a JobState=FAILED Reason=NonZeroExitCode ExitCode=66:0 NodeList=n1 x=y\n"
    )
    assert Slurm().end_of("7_0", "isorun-a") == JobEnd("FAILED", 66, 0, "n1", "NonZeroExitCode")
    assert Slurm().end_of("7_0", "isorun-b") is None


def test_where_squeue_has_forgotten_a_job_the_accounting_is_asked(programs):
    programs("scontrol", said="slurm_load_jobs error: Invalid job id specified", code=1)
    assert Slurm().end_of("7_0", "isorun-a") is None
    programs("sacct", "7_0|CANCELLED by 1000|0:9|n1|isorun-a\n")
    assert Slurm().end_of("7_0", "isorun-a") == JobEnd("CANCELLED", 0, 9, "n1", "by 1000")
    programs("sacct", said="Slurm accounting storage is disabled", code=1)
    assert Slurm().end_of("7_0", "isorun-a") is None


@pytest.mark.parametrize("said", ["sacct: error: slurmdbd: Connection refused", "sacct: error: Problem talking", ""])
def test_an_accounting_that_was_away_for_a_moment_is_asked_again(programs, monkeypatch, said):
    programs("scontrol", said="slurm_load_jobs error: Invalid job id specified", code=1)
    programs("sacct", said=said, code=1)
    slurm = Slurm()
    with pytest.raises(AccountingSilent):
        slurm.end_of("7_0", "isorun-a")
    programs("sacct", "7_0|FAILED|1:0|n1|isorun-a\n")
    with pytest.raises(AccountingSilent):
        slurm.end_of("7_0", "isorun-a")
    now = time.monotonic()
    monkeypatch.setattr(commands.time, "monotonic", lambda: now + 61)
    assert slurm.end_of("7_0", "isorun-a") == JobEnd("FAILED", 1, 0, "n1", "")


def test_an_accounting_that_stays_away_is_not_waited_for_without_end(programs, monkeypatch):
    programs("scontrol", said="slurm_load_jobs error: Invalid job id specified", code=1)
    programs("sacct", said="sacct: error: slurmdbd: Connection refused", code=1)
    slurm, now = Slurm(), time.monotonic()
    with pytest.raises(AccountingSilent):
        slurm.end_of("7_0", "isorun-a")
    monkeypatch.setattr(commands.time, "monotonic", lambda: now + 400)
    assert slurm.end_of("7_0", "isorun-a") is None


def test_a_machine_without_slurm_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ExecutionError, match="there is no SLURM on this machine"):
        Slurm()


def test_commands_that_belong_to_no_cluster_are_not_taken_for_a_silent_controller(programs, tmp_path):
    said = "scontrol: error: fetch_config: DNS SRV lookup failed\nfatal: Could not establish a configuration source"
    programs("scontrol", said=said, code=1)
    with pytest.raises(ExecutionError, match="belong to no cluster") as raised:
        SlurmExecutor(tmp_path / "runs")
    assert "SLURM_CONF" in raised.value.hint
    programs("scontrol", said="slurm_load_partitions: Unable to contact slurm controller", code=1)
    with pytest.raises(ExecutionError, match="controller does not answer"):
        SlurmExecutor(tmp_path / "runs")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2h", 7200), ("90m", 5400), ("1.5h", 5400), ("1d", 86400), ("02:30:00", 9000), ("1-12:00", 129600)],
)
def test_times_are_isoruns_or_slurms(text, seconds):
    assert settings_of({"time": text}).seconds == seconds


@pytest.mark.parametrize("text", ["30", "10:30", "2 hours", "", "0s", "-1h"])
def test_a_time_that_means_two_things_or_none_is_refused(text):
    with pytest.raises(ExecutionError):
        settings_of({"time": text})


def test_settings_are_options_of_sbatch_each_one_word():
    given = {"time": "2h", "gpus-per-run": "a100:2", "memory-per-run": "16G", "account": "my lab; rm -rf /"}
    settings = settings_of(given, "slurm://gpu?x", jobs=1)
    assert settings.options(Resources()) == [
        "--partition=gpu",
        "--time=120",
        "--signal=B:USR1@60",
        "--mem=16384M",
        "--gres=gpu:a100:2",
        "--account=my lab; rm -rf /",
        "--ntasks=1",
        "--cpus-per-task=1",
    ]
    asked = settings.options(Resources(cpus=4, devices=0, memory_bytes=1 << 20))
    assert asked[3:] == ["--mem=1M", "--account=my lab; rm -rf /", "--ntasks=1", "--cpus-per-task=4"]


def test_so_many_runs_at_once_are_what_is_asked_for_and_else_what_the_queue_takes():
    assert (settings_of({}).at_once, settings_of({}).throttle) == (5000, None)
    assert (settings_of({}, jobs=8).at_once, settings_of({}, jobs=8).throttle) == (8, 8)
    assert (settings_of({}, jobs=1).at_once, settings_of({}, jobs=1).throttle) == (1, 1)
    assert settings_of({"at-once": "1"}, jobs=8).throttle == 1


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ({"acount": "x"}, ""),
        ({"account": ""}, ""),
        ({"account": "a\nb"}, ""),
        ({"partition": "a"}, "slurm://b"),
        ({"gpus-per-run": "two"}, ""),
        ({"cpus-per-run": "0"}, ""),
        ({"memory-per-run": "16"}, ""),
        ({"prelude": "/no/such/file"}, ""),
    ],
)
def test_settings_that_say_nothing_are_refused(given, url):
    with pytest.raises(ExecutionError):
        settings_of(given, url)


def test_what_no_node_has_names_a_partition_that_has_it():
    partitions = [
        Partition("cpu", True, True, 3600, 64, 1 << 38, 0),
        Partition("gpu", False, True, None, 8, 1 << 36, 4),
    ]
    with pytest.raises(ExecutionError) as raised:
        settings_of({"gpus-per-run": "1"}).check(partitions)
    assert raised.value.hint == "--partition gpu"
    with pytest.raises(ExecutionError) as raised:
        settings_of({"time": "2h"}).check(partitions)
    assert (raised.value.allowed, raised.value.hint) == ("up to 1h", "--partition gpu")
    settings_of({"partition": "gpu,cpu", "time": "9d"}).check(partitions)  # SLURM takes one that fits


@pytest.mark.parametrize(
    ("end", "state", "lost", "said"),
    [
        (JobEnd("OUT_OF_MEMORY", node="n1"), RunState.FAILED, False, "SLURM: OUT_OF_MEMORY on n1"),
        (JobEnd("TIMEOUT"), RunState.TIMED_OUT, False, "SLURM: TIMEOUT"),
        (JobEnd("NODE_FAIL", node="n1"), RunState.INTERRUPTED, True, "SLURM: NODE_FAIL on n1"),
        (JobEnd("PREEMPTED"), RunState.INTERRUPTED, True, "SLURM: PREEMPTED"),
        (JobEnd("CANCELLED", reason="by 1000"), RunState.INTERRUPTED, False, "SLURM: CANCELLED by 1000"),
        (JobEnd("COMPLETED"), RunState.INTERRUPTED, True, "left no record"),
        (JobEnd("FAILED", signal=9), RunState.INTERRUPTED, True, "signal 9"),
        (None, RunState.INTERRUPTED, True, "SLURM no longer knows the job"),
    ],
)
def test_slurms_last_word_is_the_reason_of_the_record(tmp_path, end, state, lost, said):
    told = ending(job_for("", tmp_path), end, Left(True, None, "", "its log"), stop_asked=False)
    assert (told.record.state, told.lost, told.error) == (state, lost, None)
    assert said in told.record.reason
    assert told.record.log_tail == "its log"


@pytest.mark.parametrize(
    ("state", "node_lost"), [("NODE_FAIL", True), ("BOOT_FAIL", True), ("PREEMPTED", False), ("FAILED", False)]
)
def test_a_run_that_was_lost_with_its_node_is_told_as_such(watched, programs, state, node_lost):
    executor, submission = watched()
    (entry,) = executor._entries.values()
    entry.over_since = time.monotonic() - 60
    programs("scontrol", f"JobId=7 JobName={submission.name} JobState={state} NodeList=n1 ExitCode=0:9\n")
    executor._hear(entry, ArrayElement(submission.name, "7", 0, state, "n1", "None"))
    (told,) = watched.told
    assert (told.lost, told.with_its_place) == (True, node_lost)
    assert state in told.record.reason


def test_what_was_stopped_here_is_interrupted_whatever_slurm_calls_it(tmp_path):
    for end in (None, JobEnd("COMPLETED"), JobEnd("CANCELLED"), JobEnd("FAILED", 66)):
        told = ending(job_for("", tmp_path), end, Left(False, None, "", ""), stop_asked=True)
        assert (told.record.state, told.record.reason, told.lost) == (RunState.INTERRUPTED, "stopped on request", False)


def test_what_cannot_begin_says_why_and_is_lost_where_others_could(tmp_path):
    left = Left(False, None, "", "isorun: the folder /x cannot be read on n1\n")
    told = ending(job_for("", tmp_path), JobEnd("FAILED", 66, node="n1"), left, stop_asked=False)
    assert told.error.what == "SLURM's nodes do not see the folder of runs on n1"
    assert told.error.found == "isorun: the folder /x cannot be read on n1"
    assert told.lost
    assert "do not see the folder" in told.record.reason


def test_a_run_has_one_record_and_begins_are_numbered(tmp_path):
    ledger = Ledger(tmp_path / "runs")
    job = job_for("", tmp_path)
    place = ledger.write([job], {}, {}).place(0)
    assert [place.begin({"pid": 1}), place.begin({"pid": 2})] == [0, 1]
    assert (latest_begin(place.names()), place.began(1)) == (1, {"pid": 2})
    assert place.record() is None
    assert place.keep(make_record(accuracy=0.1))
    assert not place.keep(make_record(accuracy=0.2))
    assert place.record().results == {"accuracy": 0.1}
    assert not [name for name in place.names() if name.endswith(".tmp")]


def test_the_ledger_of_another_process_is_found_and_its_latest_attempt_first(tmp_path):
    ours, theirs = Ledger(tmp_path / "runs"), Ledger(tmp_path / "runs")
    assert ours.of_cell("none") == []
    first = job_for("", tmp_path)
    theirs.write([first, job_for("", tmp_path, 1)], {}, {"A": "b"})
    theirs.write([replace(first, attempt=2)], {}, {})
    found = [submission.runs[index] for submission, index in ours.of_cell(first.cell.id)]
    assert found == [f"{first.cell.id}-2", f"{first.cell.id}-1"]
    assert len(list(ours.entries())) == 3


def test_what_is_submitted_is_for_its_owner_alone_also_in_a_shared_store(tmp_path):
    runs = tmp_path / "runs"
    runs.mkdir()
    runs.chmod(0o2770)
    submission = Ledger(runs).write([job_for("", tmp_path)], {}, {"TOKEN": "secret"})
    paths = [submission.folder, *submission.folder.rglob("*")]
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in paths} == {0}


def test_a_run_is_live_until_it_is_fenced_or_over(tmp_path):
    submission = Ledger(tmp_path / "runs").write([job_for("", tmp_path, number) for number in range(3)], {}, {})
    submission.place(1).mark("fenced")
    submission.place(2).mark("over")
    assert [is_live(submission.place(index)) for index in range(3)] == [True, False, False]


def test_how_runs_stand_is_told_also_where_slurm_does_not_answer(tmp_path, programs):
    jobs = [job_for("", tmp_path, number) for number in range(3)]
    assert standing(tmp_path / "runs", ()) == []
    submission = Ledger(tmp_path / "runs").write(jobs, {}, {})
    programs("squeue", f"7|0|RUNNING|n1|{submission.name}|None\n7|1|PENDING||{submission.name}|Priority\n")
    told = standing(tmp_path / "runs", {jobs[2].run_id})
    assert [(one.state, one.number, one.node, one.reason) for one in told] == [
        ("running", "7_0", "n1", ""),
        ("queued", "7_1", "", "Priority"),
    ]
    submission.place(0).keep(make_record())
    programs("squeue", said="slurm_load_jobs error: Unable to contact slurm controller", code=1)
    assert [one.state for one in standing(tmp_path / "runs", ())] == ["ended", "unknown", "unknown"]


def test_variables_of_a_terminal_a_machine_or_another_job_do_not_travel():
    kept = {"PATH": "x", "CUDA_HOME": "y", "WANDB_API_KEY": "z", "TERMINFO": "t"}
    other = dict.fromkeys(
        ["SLURM_JOB_ID", "CUDA_VISIBLE_DEVICES", "SSH_TTY", "DISPLAY", "TMPDIR", "PWD", "_", "HOSTNAME"], "1"
    )
    assert carried({**kept, **other}) == kept
    assert "PATH" in carried(os.environ)


PARTITION = "PartitionName=cpu Default=YES MaxTime=UNLIMITED State=UP Nodes=c1\nMaxArraySize = 1001\n"


@pytest.fixture
def watched(programs, tmp_path):
    """A function that makes an executor which waits for runs that have begun; what they tell is in its `told`."""
    made = []

    def make(count=1):
        programs("scontrol", PARTITION)
        programs("sinfo", "cpu|64|256000|(null)\n")
        executor = SlurmExecutor(tmp_path / "runs")
        made.append(executor)
        jobs = [job_for("", tmp_path, number) for number in range(count)]
        submission = executor._ledger.write(jobs, {}, {"TOKEN": "secret"})
        submission.queued("7")
        for index, job in enumerate(jobs):
            submission.place(index).begin({})
            submission.place(index).mark("events-0.jsonl")
            entry = AwaitedRun(job, make.told.append, time.monotonic(), submission, index, state="RUNNING")
            executor._entries[job.run_id] = entry
        return executor, submission

    make.told = []
    yield make
    for executor in made:
        executor._entries.clear()


def test_no_file_stays_open_for_a_run_that_is_watched(watched):
    executor, submission = watched(30)
    for number in range(2):
        before = len(list(Path("/proc/self/fd").iterdir()))
        executor._ask_at = time.monotonic() + 60
        executor._step()
        assert len(list(Path("/proc/self/fd").iterdir())) <= before, number
    assert executor._troubles == []
    assert executor._entries.keys() == set(submission.runs)


def test_events_are_read_from_where_the_last_look_ended(tmp_path):
    place = Ledger(tmp_path / "runs").write([job_for("", tmp_path)], {}, {}).place(0)
    place.begin({})
    path, tail = place.folder / "events-0.jsonl", EventTail()
    text = "".join(json.dumps(event_to_json(RowsLogged("r", ({"step": step},)))) + "\n" for step in range(3))
    seen = []
    for end in (10, len(text) - 5, len(text)):
        path.write_text(text[:end])
        seen.append([dict(event.rows[0])["step"] for event in tail.new(place, "r", place.names())])
    assert seen == [[], [0, 1], [2]]


def test_trouble_of_any_kind_ends_no_run_and_is_told_after_a_minute(watched, monkeypatch):
    executor, submission = watched(2)
    monkeypatch.setattr(RunPlace, "record", lambda _: 1 / 0)
    submission.place(0).keep(make_record())
    refused = OSError(24, "Too many open files")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: (_ for _ in ()).throw(refused))
    executor._step()
    assert (watched.told, len(executor._entries)) == ([], 2)
    executor._silent_since -= 61
    executor._ask_at = 0.0
    executor._step()
    executor._step()
    (told,) = watched.told
    assert "ZeroDivisionError" in told.message
    assert "is waited for" in told.message
    assert len(executor._entries) == 2


def test_a_command_that_cannot_be_started_is_a_controller_that_does_not_answer(programs, monkeypatch, tmp_path):
    slurm, refused = Slurm(), OSError(24, "Too many open files")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: (_ for _ in ()).throw(refused))
    for ask in (slurm.elements, lambda: slurm.submit([], tmp_path / "batch.sh", [])):
        with pytest.raises(ControllerSilent, match="Too many open files"):
            ask()


def test_a_record_that_is_left_while_a_stop_is_asked_is_the_end(watched, monkeypatch):
    executor, submission = watched()
    (entry,) = executor._entries.values()
    entry.stop_asked = True
    mark = RunPlace.mark

    def marked(place, name, text=""):
        mark(place, name, text)
        if name == "over":
            place.keep(make_record(accuracy=0.5))

    monkeypatch.setattr(RunPlace, "mark", marked)
    executor._end_by(entry, JobEnd("CANCELLED"))
    (told,) = watched.told
    assert (told.record.state, told.record.results) == (RunState.FINISHED, {"accuracy": 0.5})
    assert is_live(submission.place(0))  # told once more to who comes back, if it was not recorded


def test_an_element_says_that_it_has_ended_when_its_record_is_kept(tmp_path, monkeypatch):
    place = Ledger(tmp_path / "runs").write([job_for("", tmp_path)], {}, {}).place(0)
    begin = element._Begin(place, place.job(), 0, 1)
    seen = []
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(begin, "_made", make_record)
    monkeypatch.setattr(begin, "_keep", lambda _: seen.append("ended-0" in place.names()))
    assert begin.carry_out() == 0
    assert (seen, "ended-0" in place.names()) == ([False], True)


def test_a_submission_is_seen_when_it_is_whole_and_one_that_is_not_is_tried_again(tmp_path, monkeypatch):
    runs = tmp_path / "runs"
    ours, theirs = Ledger(runs), Ledger(runs)
    job = job_for("", tmp_path)
    seen = []
    monkeypatch.setattr(ledger, "write_own", lambda *given: (seen.append(ours.of_cell(job.cell.id)), write_own(*given)))
    made = theirs.write([job], {}, {})
    assert (len(seen), any(seen)) == (5, False)
    assert [submission.token for submission, _ in ours.of_cell(job.cell.id)] == [made.token]
    half = runs / "slurm" / "0123456789ab"
    half.mkdir(mode=0o700)
    os.utime(runs / "slurm", (1, 1))
    assert len(ours.of_cell(job.cell.id)) == 1
    (half / "submission.json").write_bytes((made.folder / "submission.json").read_bytes())
    os.utime(runs / "slurm", (1, 1))
    assert len(ours.of_cell(job.cell.id)) == 2


def test_a_submission_that_could_not_be_written_leaves_nothing(tmp_path, monkeypatch):
    made = Ledger(tmp_path / "runs")

    def full(path, text, flags=0):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(ledger, "write_own", full)
    with pytest.raises(OSError, match="No space"):
        made.write([job_for("", tmp_path)], {}, {})
    assert list((tmp_path / "runs" / "slurm").iterdir()) == []


def test_nobody_can_put_something_in_the_place_of_what_another_submitted(tmp_path, monkeypatch, capsys):
    runs = tmp_path / "runs"
    runs.mkdir()
    runs.chmod(0o2770)
    job = job_for("", tmp_path)
    submission = Ledger(runs).write([job], {}, {})
    assert stat.S_IMODE((runs / "slurm").stat().st_mode) == 0o3770
    (submission.folder / "submission.json").chmod(0o660)
    with pytest.raises(ExecutionError, match="may have been changed by others") as raised:
        Ledger(runs).of_cell(job.cell.id)
    assert "others may write" in raised.value.found
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "0")
    assert element.main([str(submission.folder)]) == ledger.NOT_OWN
    assert "others may write" in capsys.readouterr().err
    (submission.folder / "submission.json").chmod(0o600)
    mine = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: mine + 1)
    assert Ledger(runs).of_cell(job.cell.id) == []  # another's: not attached to
    assert element.main([str(submission.folder)]) == ledger.NOT_OWN
    assert f"belongs to the user {mine}" in capsys.readouterr().err
    assert not list(submission.place(0).folder.glob("began-*"))


def test_a_store_that_is_shared_leaves_submissions_to_their_user(tmp_path):
    submission = Ledger(tmp_path / "runs").write([job_for("", tmp_path)], {}, {"TOKEN": "secret"})
    share(tmp_path)
    assert stat.S_IMODE(submission.folder.parent.stat().st_mode) == 0o3770
    paths = [submission.folder, *submission.folder.rglob("*")]
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in paths} == {0}


def test_the_shells_variables_go_with_the_last_run_whoever_ends_it(tmp_path, watched):
    submission = Ledger(tmp_path / "other").write([job_for("", tmp_path, n) for n in range(2)], {}, {"TOKEN": "secret"})
    variables = submission.folder / "environment.json"
    submission.place(1).keep(make_record())
    Ledger(tmp_path / "other").sweep()
    assert variables.exists()
    executor, _ = watched()
    executor._fence(submission, 0, "a later attempt was made")
    assert not variables.exists()
    variables.write_text("{}")
    unfinished = submission.folder.parent / ".0123456789ab.tmp"
    unfinished.mkdir()
    Ledger(tmp_path / "other").sweep()
    assert (variables.exists(), unfinished.exists()) == (False, True)
    os.utime(unfinished, (1, 1))
    Ledger(tmp_path / "other").sweep()
    assert not unfinished.exists()


def test_what_is_requeued_just_when_it_ended_is_waited_for(watched, programs, tmp_path):
    executor, submission = watched()
    (entry,) = executor._entries.values()
    entry.over_since = time.monotonic() - 60
    programs("scontrol", f"JobId=7 JobName={submission.name} JobState=PENDING Reason=BeginTime ExitCode=0:0\n")
    executor._hear(entry, ArrayElement(submission.name, "7", 0, "NODE_FAIL", "n1", "None"))
    assert (watched.told, entry.over_since, len(executor._entries)) == ([], None, 1)
    told = ending(entry.job, JobEnd("PENDING"), Left(True, None, "", ""), stop_asked=False)
    assert (told.record.state, told.lost) == (RunState.INTERRUPTED, True)


def test_only_runs_that_slurm_has_taken_are_said_to_go_on(watched):
    executor, submission = watched(2)
    other = AwaitedRun(replace(executor._entries[submission.runs[0]].job, attempt=9), print, 0.0)
    executor._entries["unsubmitted"] = other
    executor._entries["unanswered"] = replace(other, submission=replace(submission, number=""))
    assert executor.leave() == submission.runs


def secret_job(folder, number=0):
    job = job_for("", folder, number)
    return replace(job, environment=replace(job.environment, env={"API_TOKEN": "hunter2-and-more"}))


def texts_of(submission):
    return "".join(path.read_text() for path in submission.folder.rglob("job.json"))


def test_secrets_of_jobs_that_nobody_saw_end_go_with_the_variables(tmp_path):
    submission = Ledger(tmp_path / "runs").write([secret_job(tmp_path, n) for n in range(2)], {}, {})
    submission.place(0).mark("over", "CANCELLED")
    Ledger(tmp_path / "runs").sweep()
    assert texts_of(submission).count("hunter2-and-more") == 2, "one may still begin"
    submission.place(1).mark("fenced")
    Ledger(tmp_path / "runs").sweep()
    assert "hunter2-and-more" not in texts_of(submission)


def test_a_run_that_is_submitted_anew_leaves_no_secret_where_it_was(watched, programs):
    executor, submission = watched()
    (entry,) = executor._entries.values()
    place = submission.place(0)
    write_own(place.folder / "job.json", json.dumps(secret_job(place.folder).to_json()))
    place.unmark("began-0")
    programs("scontrol", said="slurm_load_jobs error: Invalid job id specified", code=1)
    programs("sacct", said="Slurm accounting storage is disabled", code=1)
    executor._gone(entry)
    assert (executor._waiting, entry.submission) == ([entry], None)
    assert "hunter2-and-more" not in texts_of(submission)


def test_a_run_that_only_a_silent_accounting_knows_is_waited_for_and_holds_up_no_other(watched, programs):
    executor, _ = watched()
    (entry,) = executor._entries.values()
    programs("scontrol", said="slurm_load_jobs error: Invalid job id specified", code=1)
    programs("sacct", said="sacct: error: Unable to connect to slurmdbd", code=1)
    assert executor._attempt(executor._gone, entry)
    assert [type(trouble) for trouble in executor._troubles] == [AccountingSilent]
    assert executor._is_open(entry)
    assert not entry.fenced


def test_a_run_does_not_begin_without_the_variables_of_its_shell(tmp_path, monkeypatch, capsys):
    submission = Ledger(tmp_path / "runs").write([job_for("", tmp_path)], {}, {"CUDA_HOME": "/opt/cuda"})
    (submission.folder / "environment.json").unlink()
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "0")
    assert element.main([str(submission.folder)]) == ledger.NOT_SHARED
    assert "the variables of" in capsys.readouterr().err
    assert not list(submission.place(0).folder.glob("began-*"))
    submission.place(0).mark("fenced")
    assert element.main([str(submission.folder)]) == 0


def test_arrays_grow_again_when_the_queue_is_no_longer_full(watched, monkeypatch, tmp_path):
    executor, submission = watched()
    executor._entries.clear()
    room = iter([False, False, False, True, True, True])
    sizes = []

    def submitted(jobs):
        sizes.append(len(jobs))
        if not next(room):
            raise QueueFull("full")
        return submission

    monkeypatch.setattr(executor._submitter, "submitted", submitted)
    jobs = [job_for("", tmp_path, number) for number in range(8)]
    executor._waiting = [AwaitedRun(job, lambda _: None, 0.0) for job in jobs]
    for _ in range(6):
        executor._submit_gathered()
    assert sizes == [8, 4, 2, 1, 2, 4]


class HeldByAnother(MemoryStore):
    """A store in which another process has the claim of a cell."""

    def __init__(self, cell, pid, host):
        super().__init__()
        self._holder = Holder(cell, 1, host or socket.gethostname(), pid, "2026-01-01T00:00:00+00:00")

    def claim_again(self, cell_id, attempt):
        return None

    def holders(self):
        return [self._holder]


class Canceller:
    def __init__(self):
        self.cancelled = []

    def cancel(self, run_id):
        self.cancelled.append(run_id)


@pytest.mark.parametrize(
    ("is_alive", "host", "told"),
    [
        (True, None, "1 asked to end, recorded by the isorun that waits for them"),
        (False, None, "1 asked to end, of an isorun that is gone: not recorded before its claims have lapsed"),
        (False, "another", "1 asked to end, recorded by process PID on another, if it is still there"),
    ],
)
def test_who_stops_runs_is_not_told_that_an_isorun_waits_which_is_gone(tmp_path, is_alive, host, told):
    process = subprocess.Popen(["sleep", "60"])
    if not is_alive:
        process.kill()
        process.wait()
    try:
        job, executor = job_for("", tmp_path), Canceller()
        one = SimpleNamespace(job=job, run_id=job.run_id)
        done = stopping._ended([one], executor, HeldByAnother(job.cell.id, process.pid, host), "away")
    finally:
        process.kill()
        process.wait()
    assert executor.cancelled == [one.run_id]
    assert str(done) == f"away: 0 ended and recorded, {told.replace('PID', str(process.pid))}"
    assert (done.to_json()["orphaned"], done.to_json()["by_others"]) == ((0, 1) if is_alive or host else (1, 0))


def test_who_stops_runs_is_told_of_those_that_end_with_their_own_process(tmp_path):
    (tmp_path / "study.toml").write_text('name = "own"\n[approaches.a]\ncommand = "true"\n', encoding="utf-8")
    study = load_study(tmp_path / "study.toml")
    with open_store(str(tmp_path / ".isorun")) as store:
        claim = store.claim(cells_of(known_to(study, store))[0].id)
        told = stopping.stop(study, store=store)
        claim.release()
        assert str(stopping.stop(study, store=store)) == "own: no run is in a cluster's queue"
    assert f"runs go on in process {os.getpid()} on " in str(told)
    assert told.to_json()["at_work"] == list(told.at_work)
