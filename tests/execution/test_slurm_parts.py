"""The parts of the SLURM executor that need no SLURM: settings, answers of its commands, what its last words mean."""

import os
import stat

import pytest

from isorun.errors import ExecutionError
from isorun.execution import Resources
from isorun.execution.slurm.commands import (
    ArrayElement,
    ControllerSilent,
    JobEnd,
    Partition,
    QueueFull,
    Slurm,
    SubmissionRefused,
)
from isorun.execution.slurm.endings import Left, ending
from isorun.execution.slurm.ledger import Ledger, carried, is_live, latest_begin
from isorun.execution.slurm.settings import settings_of
from isorun.execution.slurm.standing import standing
from isorun.study.records import RunState
from isorun.testing.executor_contract import job_for
from isorun.testing.made_records import make_record

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
        text = f'#!/bin/sh\nenv > {folder}/{name}.env\necho "$@" > {folder}/{name}.words\n'
        (folder / name).write_text(f"{text}cat {folder}/{name}.out\ncat {folder}/{name}.err >&2\nexit {code}\n")
        (folder / name).chmod(0o755)
        return folder

    for name in ("sbatch", "squeue", "scontrol", "scancel", "sinfo"):
        make(name)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
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


def test_a_machine_without_slurm_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ExecutionError, match="there is no SLURM on this machine"):
        Slurm()


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
    from dataclasses import replace

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
