"""Runs watched from another terminal, names that clash, and signals, as people meet them."""

import io
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from isorun import workflow
from isorun.cli.progress import Progress
from isorun.scheduling import Observer
from isorun.store import Holder
from isorun.study.design import Study
from isorun.study.records import Series
from record_builder import make_record

SLOW = """
import time
import isorun
for epoch in range(1, 400):
    isorun.log(epoch=epoch, loss=1 / epoch)
    time.sleep(0.1)
"""


def started(shell, *words):
    return subprocess.Popen(
        [sys.executable, "-m", "isorun", *map(str, words)],
        cwd=shell.folder,
        env={**os.environ, "COLUMNS": "80"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(look, seconds=60):
    """The first answer that is true."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if answer := look():
            return answer
        time.sleep(0.2)
    raise AssertionError("it did not happen")


@pytest.fixture
def running(shell):
    """A study whose only run goes on for long."""
    shell.write("slow.py", SLOW)
    shell.write("study.toml", '[approaches.slow]\ncommand = "python slow.py"\n')
    process = started(shell, "run", "study.toml")
    yield shell, process
    process.kill()
    process.communicate()


def status(shell, *words):
    done = shell("status", *words, "--json")
    return json.loads(done.stdout) if done.returncode == 0 else None


def test_a_run_is_watched_from_another_terminal_and_whoever_waits_is_told_whose_it_is(running):
    shell, process = running

    def with_rows():
        told = status(shell, "study.toml")
        return told if told and told["running"] and told["running"][0]["row"].get("values") else None

    told = wait_for(with_rows)
    assert (told["study"], told["runs"], told["finished"], told["missing"]) == ("study", 1, 0, 0)
    (run,) = told["running"]
    assert (run["label"], run["pid"], run["host"]) == ("slow default #0", process.pid, os.uname().nodename)
    assert run["row"]["values"]["loss"] <= 1
    whole = shell("status").stdout
    assert whole.startswith("this store: 0 finished, 1 running")
    assert "slow default #0, for " in whole
    text = shell("status", "study.toml").stdout
    assert "slow default #0, for " in text
    assert f"by process {process.pid}" in text
    second = started(shell, "run", "study.toml")
    try:
        line = wait_for(lambda: next((line for line in second.stderr if "waiting" in line), None))
        assert f"waiting for slow default #0: process {process.pid} on" in line
    finally:
        second.send_signal(signal.SIGINT)
        second.communicate(timeout=60)
    assert second.returncode == 130


def test_what_a_training_prints_is_seen_while_it_runs(shell):
    script = "import time\nfor e in range(1, 400): print('epoch', e, 'loss:', 1 / e, flush=True); time.sleep(0.1)"
    shell.write("printing.py", script)
    process = started(shell, "run", "--name", "p", "--", "python", "printing.py")

    def with_rows():
        told = status(shell, "p")
        return told["running"][0]["row"] if told and told["running"] else None

    try:
        row = wait_for(with_rows)
        assert row["values"]["loss"] == pytest.approx(1 / row["step"])
        assert f"at {row['step']:g}: loss" in shell("status", "p").stdout or wait_for(with_rows)["step"] > row["step"]
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_a_study_as_ctrl_c_does(running, number):
    shell, process = running
    wait_for(lambda: (status(shell, "study.toml") or {}).get("running"))
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "stopped: interrupted" in out
    told = status(shell, "study.toml")
    assert (told["running"], told["missing"], told["failed"]) == ([], 1, 1)


def test_status_says_when_there_is_nothing_to_say(shell):
    done = shell("status")
    assert done.returncode == 1
    assert "there is no store" in done.stderr
    shell("run", "--name", "quick", "--", "true")
    assert shell("status", "quick", "--watch").stdout.splitlines() == ["quick: 1 of 1 finished, 0 running"]


def test_a_kept_study_wins_over_a_folder_of_its_name(shell):
    (shell.folder / "exp1").mkdir()
    shell.write("train.py", "import random, isorun; isorun.result(acc=random.random())")
    done = shell("run", "-n", 6, "--name", "exp1", "--metric", "acc:higher", "--", "python", "train.py")
    assert done.stdout.endswith("next: isorun report exp1\n")
    assert "acc" in shell("report", "exp1").stdout
    assert json.loads(shell("summarize", "exp1", "--json").stdout)[0]["n"] == 6


@pytest.mark.parametrize("words", [("",), (" ",), ("", "x")])
def test_an_empty_command_is_refused_in_words(shell, words):
    done = shell("run", "--", *words)
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    assert "the command is empty" in done.stderr


@pytest.mark.long
def test_compare_says_that_a_decision_made_runs_beyond_the_study(shell):
    shell.write("two.py", "import random, sys, isorun; isorun.result(acc=random.gauss(float(sys.argv[1]), 0.01))")
    approaches = "".join(
        f'[approaches.{name}]\ncommand = "python two.py {mean}"\n' for name, mean in (("a", 0.5), ("b", 0.9))
    )
    shell.write("study.toml", f'{approaches}[metrics.acc]\ndirection = "higher"\n')
    assert shell("decide", "study.toml").returncode == 0
    told = json.loads(shell("compare", "study.toml", "--json").stdout)
    beyond = next(item for item in told["warnings"] if item["code"] == "beyond-the-study")
    assert "repeats = " in beyond["message"]
    assert "isorun decide" in beyond["next"]


def test_rows_reach_observers_while_the_training_runs(tmp_path):
    (tmp_path / "slow.py").write_text(SLOW.replace("400", "12"))
    told = []

    class Listening(Observer):
        def rows_logged(self, cell, rows):
            told.append(("rows", len(rows)))

        def run_ended(self, record):
            told.append(("ended", len(record.series["loss"].values)))

    study = Study("live", approaches={"slow": "python slow.py"}, folder=tmp_path)
    workflow.run(study, observer=Listening())
    assert told[-1] == ("ended", 11)
    assert len(told) > 2
    assert sum(number for what, number in told if what == "rows") == 11


def test_a_terminal_shows_the_latest_row_and_whom_one_waits_for():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    study = Study("live", approaches={"slow": "python slow.py"})
    (cell,) = workflow.cells(study)
    terminal = Terminal()
    with Progress(study, terminal) as progress:
        progress.work_planned(1)
        progress.rows_logged(cell, [{"step": 2.0, "values": {"loss": 0.25, "note": "NaN"}}])
        holder = Holder(cell.id, 1, "elsewhere", 12, "2026-01-02T03:04:05+00:00")
        progress.waiting_for(cell, holder)
        progress.waiting_for(cell, holder)
        progress.waiting_for(cell, None)
    shown = terminal.getvalue()
    assert "slow default #0: at 2: loss 0.25, note NaN …" in shown
    assert shown.count("process 12 on elsewhere has been running it since 2026-01-02 03:04:05 UTC") == 1
    assert "another isorun has been running it" in shown


class Clock:
    """A clock that stands until it is set."""

    now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    standing = Clock()
    monkeypatch.setattr("isorun.cli.progress.time", standing)
    return standing


class Screen(io.StringIO):
    """What a terminal shows last."""

    def isatty(self):
        return True

    @property
    def line(self):
        return self.getvalue().rpartition("\x1b[K")[2]


def row(step, **values):
    return [{"step": step, "values": values}]


def test_the_line_says_epoch_value_and_time_left_by_the_epochs_of_the_command(clock):
    study = Study("s", approaches={"t": "python t.py --max_epochs={config.n}"}, configs={"c": {"n": 10}}, repeats=3)
    first, *_ = workflow.cells(study)
    screen = Screen()
    with Progress(study, screen) as progress:
        progress.work_planned(3)
        progress.run_started(first)
        clock.now += 5
        progress.rows_logged(first, row(1, loss=0.5))
        assert screen.line.endswith("epoch 1 of 10: loss 0.5 …")
        clock.now += 4
        progress.rows_logged(first, row(3, loss=0.25))
        # 7 epochs of 2 s are left of this run, and two runs of 9 + 14 s
        assert screen.line.endswith("epoch 3 of 10: loss 0.25 …; about 60 s left")


@pytest.mark.parametrize(
    ("steps", "word", "first", "later"),
    [
        (range(10), "epoch", "1 of 10", "4 of 10"),
        (range(1, 11), "epoch", "", "3 of 10"),
        (range(11), "epoch", "1 of 10", "3 of 10"),  # the model is looked at before it is trained
        (range(0, 2500, 250), "at", "1 of 10", "3 of 2250"),
    ],
)
def test_epochs_that_are_counted_from_0_are_told_as_people_count(clock, steps, word, first, later):
    study = Study("s", approaches={"t": "python t.py --epochs 10"}, repeats=3)
    one, other, *_ = workflow.cells(study)
    screen = Screen()
    with Progress(study, screen) as progress:
        progress.work_planned(3)
        progress.run_started(one)
        if first:
            progress.rows_logged(one, row(0, loss=0.5))
            assert f"epoch {first}: loss 0.5" in screen.line
        series = {"loss": Series([*map(float, steps)], [1.0] * len(steps), [0.5] * len(steps))}
        progress.run_ended(make_record(one, series=series, results={}))
        progress.run_started(other)
        progress.rows_logged(other, row(3, loss=0.5))
        assert f"{word} {later}: loss 0.5" in screen.line


@pytest.mark.parametrize(
    ("values", "selections", "shown"),
    [
        ({"val_loss": [0.5, 0.9], "val_acc": [0.7, 0.6]}, {}, "last val_acc 0.6 (mean 0.6, n = 1)"),
        ({"train_loss": [0.5, 0.9]}, {}, "train_loss 0.9 (mean 0.9, n = 1)"),
        ({"val_acc": [0.7]}, {}, "val_acc 0.7 (mean 0.7, n = 1)"),
        (
            {"f1": [0.7, 0.6]},
            {"best": {"metric": "f1", "direction": "higher"}},
            "last f1 0.6 (mean 0.6, n = 1)",
        ),
    ],
)
def test_a_value_that_the_report_does_not_judge_by_is_called_the_last_one(values, selections, shown):
    study = Study("s", approaches={"t": "python t.py"}, selections=selections)
    (cell,) = workflow.cells(study)
    series = {name: Series([*range(1, len(seen) + 1)], [1.0] * len(seen), seen) for name, seen in values.items()}
    log = io.StringIO()
    with Progress(study, log) as progress:
        progress.work_planned(1)
        progress.run_started(cell)
        progress.run_ended(make_record(cell, series=series, results={}, origins={}))
    assert f"t default #0: {shown}" in log.getvalue()
    assert any("judges each run at its best epoch" in line for line in progress.metrics_found()) == ("last" in shown)


def test_runs_that_ended_say_how_long_the_others_take_and_those_made_before_count(clock):
    study = Study("s", approaches={"t": "python t.py"}, repeats=8)
    cells = workflow.cells(study)
    series = {"loss": Series([1.0, 4.0], [1.0, 2.0], [0.5, 0.25])}
    made = [make_record(cell, wall_seconds=20.0, series=series, results={}) for cell in cells]
    screen = Screen()
    with Progress(study, screen) as progress:
        progress.made_before(5, made[:5])
        progress.work_planned(3)
        progress.run_started(cells[5])
        assert "s: 3 runs to do, 5 made before" in screen.getvalue()
        assert screen.line.endswith("[5/8]  t default #5 …; about 60 s left")
        progress.rows_logged(cells[5], row(1, loss=0.5))
        clock.now += 6
        progress.rows_logged(cells[5], row(3, loss=0.5))
        assert screen.line.endswith("at 3 of 4: loss 0.5 …; about 43 s left")
        clock.now += 3
        progress.run_ended(made[5])
        assert screen.line.startswith("[6/8]")
        assert screen.line.endswith("; about 40 s left")


def test_a_run_that_goes_on_is_never_said_to_have_no_time_left(clock):
    study = Study("s", approaches={"t": "python t.py"}, repeats=8)
    cells = workflow.cells(study)
    series = {"loss": Series([1.0, 4.0], [1.0, 2.0], [0.5, 0.25])}
    made = [
        make_record(cell, wall_seconds=seconds, series=series, results={})
        for cell, seconds in zip(cells[:3], (10, 20, 60), strict=True)
    ]
    screen = Screen()
    with Progress(study, screen) as progress:
        progress.made_before(3, made)
        progress.work_planned(2)
        progress.run_started(cells[3])
        progress.run_started(cells[4])
        assert screen.line.endswith("; about 20 s left")
        clock.now += 30
        progress.rows_logged(cells[3], row(1, loss=0.5))
        assert screen.line.endswith("; about 30 s left"), "one of the others took 60 s"
        clock.now += 9
        progress.rows_logged(cells[3], row(4, loss=0.5))
        assert screen.line.endswith("; about 21 s left"), "its last step was told, and it has not ended"
        clock.now += 22
        progress.rows_logged(cells[4], row(1, loss=0.5))
        assert screen.line.endswith("at 1 of 4: loss 0.5 …"), "it took longer than all others: nothing is known"
    quick = [make_record(cell, wall_seconds=0.01, series={}, results={}) for cell in cells]
    with Progress(study, screen) as progress:
        progress.work_planned(8)
        progress.run_started(cells[0])
        progress.run_ended(quick[0])
        assert screen.line.endswith("; less than a second left")


@pytest.mark.parametrize(("read", "shown"), [(2, "mean 0.5 ± 0.25 sd, n = 3"), (1, "mean 0.5, n = 1 of this call")])
def test_the_mean_of_a_resumed_study_is_that_of_all_its_runs_where_they_were_read(read, shown):
    study = Study("s", approaches={"t": "python t.py"}, repeats=3)
    cells = workflow.cells(study)
    values = (0.25, 0.75, 0.5)
    made = [make_record(cell, results={"acc": value}) for cell, value in zip(cells, values, strict=True)]
    log = io.StringIO()
    with Progress(study, log) as progress:
        progress.made_before(2, made[:read])
        progress.work_planned(1)
        progress.run_started(cells[2])
        progress.run_ended(made[2])
    assert f"[3/3]  t default #2: acc 0.5 ({shown})" in log.getvalue()


def test_where_nobody_looks_at_a_terminal_a_long_run_is_told_of_ever_more_seldom(clock):
    study = Study("s", approaches={"t": "python t.py"})
    (cell,) = workflow.cells(study)
    log = io.StringIO()
    with Progress(study, log) as progress:
        progress.work_planned(1)
        progress.run_started(cell)
        for second in range(10, 3600, 10):
            clock.now += 10
            progress.rows_logged(cell, row(second, loss=0.5))
    told = [line for line in log.getvalue().splitlines() if "loss" in line]
    seconds = [30, 90, 210, 450, 930, 1530, 2130, 2730, 3330]
    assert told == [f"[0/1]  t default #0: at {second}: loss 0.5 …" for second in seconds]


def test_lines_that_a_training_prints_without_flushing_are_seen_while_it_runs(tmp_path):
    (tmp_path / "t.py").write_text("import time\nfor e in range(4): print(f'epoch {e} loss {e}.5'); time.sleep(0.8)\n")
    told = []

    class Listening(Observer):
        def rows_logged(self, cell, rows):
            told.append(rows[-1]["step"])

    workflow.run(Study("s", approaches={"t": "python t.py"}, folder=tmp_path), observer=Listening(), launch="fresh")
    assert len(told) > 1
    assert told == sorted(told)


def test_the_python_that_a_wrapper_chose_is_said_once(clock):
    study = Study("s", approaches={"make": "make train"}, repeats=2)
    log = io.StringIO()
    effective = {"python": {"executable": "/elsewhere/bin/python", "version": "3.12.1"}}
    with Progress(study, log) as progress:
        progress.work_planned(2)
        for cell in workflow.cells(study):
            progress.run_started(cell)
            progress.run_ended(make_record(cell, environment={"requested": {}, "effective": effective}))
    assert log.getvalue().count("trained with /elsewhere/bin/python (Python 3.12.1)") == 1
