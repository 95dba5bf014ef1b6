"""Going on in attended processes: only their word is success, and what ended or refused is told."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import isorun.repair
from isorun.errors import InputError, UsageError
from isorun.repair import attending
from isorun.repair.attending import Continuation, attend
from isorun.repair.engines import AbstractEngine
from isorun.repair.searches import Search, Trial

sys.path.append(str(Path(__file__).parents[1] / "plugin_distribution"))

from isorun_example.engine import Ledger


class Mute(Ledger):
    """It cannot write down that a trial was given up."""

    give_up = AbstractEngine.give_up


class Here:
    """A process that is none: what it would do is done at once, and how a trial ends it is its exit code."""

    def __init__(self, words, **options):
        del options
        self.pid, self.returncode = os.getpid(), 0
        try:
            attending._attended(Path(words[-1]))
        except SystemExit as end:
            self.returncode = end.code

    def wait(self, timeout=None):
        del timeout


@pytest.fixture
def book(tmp_path, monkeypatch):
    """The address of a ledger with one trial, whose processes are none."""
    monkeypatch.setattr(attending, "_end_with_attendant", lambda: None)
    monkeypatch.setattr(attending, "_end", lambda _: None)
    monkeypatch.setattr(attending.subprocess, "Popen", Here)
    monkeypatch.setattr(attending, "open_engine", Ledger)
    made = Ledger(f"ledger:{tmp_path}/book")
    made.append("mine", parameters={"lr": 0.1, "units": 8}, score=0.1)
    return made.where


def function_that(monkeypatch, *ends):
    """What a user names: trials one after another end as these say: an exception, or a score."""
    left = list(ends)

    def objective(values):
        del values
        now = left.pop(0)
        if isinstance(now, BaseException):
            raise now
        return now

    monkeypatch.setattr(attending, "named_function", lambda *_: objective)


@pytest.mark.parametrize("code", [0, 3, 9])
def test_a_trial_that_ends_its_process_has_failed_and_the_rest_is_made_whatever_the_exit_code(code, book, monkeypatch):
    function_that(monkeypatch, 0.2, SystemExit(code), 0.3, ValueError("no"), 0.4)
    told = []
    attend(Continuation(book, None, "train.py:objective", 5), told.append)
    trials = Ledger(book).read("mine").trials
    assert [trial.state for trial in trials] == ["finished"] * 2 + ["failed", "finished", "failed", "finished"]
    assert trials[2].why_failed == f"its process ended with exit code {code}"
    assert told == [f"trial 2 has failed: its process ended with exit code {code}"]


def test_a_process_that_ends_and_leaves_nothing_to_give_up_is_told(book, monkeypatch):
    function_that(monkeypatch, SystemExit(9))
    monkeypatch.setattr(attending, "open_engine", Mute)
    with pytest.raises(InputError, match=r"exit code 9[\s\S]*ledger does not give trials up"):
        attend(Continuation(book, None, "train.py:objective", 2), print)
    monkeypatch.setattr(attending, "open_engine", Ledger)
    monkeypatch.setattr(attending.Continuation, "make", lambda _: sys.exit(0))  # as a file may that is imported
    with pytest.raises(InputError, match=r"exit code 0[\s\S]*no trial of that process"):
        attend(Continuation(book, None, "train.py:objective", 2), print)


@pytest.mark.parametrize("kind", [InputError, UsageError])
def test_what_is_refused_there_is_raised_here(kind, book, monkeypatch):
    def refuses(asked):
        raise kind("this cannot be", found="that", allowed="those", hint="do this")

    monkeypatch.setattr(attending.Continuation, "make", refuses)
    with pytest.raises(kind, match="do this") as refused:
        attend(Continuation(book, None, "train.py:objective", 2), print)
    assert (refused.value.found, refused.value.allowed) == ("that", "those")


def test_going_on_from_python_refuses_what_it_cannot_do(tmp_path):
    with pytest.raises(InputError, match=r"isorun\.run\(study\)"):
        isorun.repair.go_on(str(tmp_path), 3, "train.py:objective")
    for trials in (0, True, 1.5):
        with pytest.raises(InputError, match="trials is not understood"):
            isorun.repair.go_on("sqlite:///s.db", trials, "train.py:objective")


@pytest.mark.slow
def test_python_goes_on_attended_and_with_a_function(tmp_path, monkeypatch, capfd):
    optuna = pytest.importorskip("optuna")
    monkeypatch.chdir(tmp_path)
    study = optuna.create_study(storage="sqlite:///s.db", study_name="s", direction="maximize")
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    ends = "{3: lambda: os._exit(0), 4: lambda: os._exit(3), 5: lambda: sys.exit(0)}"
    body = f"    score = trial.suggest_float('x', 0, 1)\n    {ends}.get(trial.number, int)()\n    return score\n"
    Path("train.py").write_text(f"import os, sys\ndef objective(trial):\n{body}")
    told = isorun.repair.go_on("sqlite:///s.db", 5, "train.py:objective")
    states = [trial.state for trial in told.search.trials]
    assert states == ["finished"] * 3 + ["failed"] * 3 + ["finished"] * 2
    assert "isorun: trial 4 has failed: its process ended with exit code 3" in capfd.readouterr().err
    told = isorun.repair.go_on("sqlite:///s.db", 2, lambda trial: trial.suggest_float("x", 0, 1), "s")
    assert len(told.search.scored) == 7


def test_a_process_whose_attendant_went_before_it_could_look_makes_no_trial():
    code = "from isorun.repair.attending import _end_with_attendant as end; end(); import time; time.sleep(60)"
    words = [sys.executable, "-c", f"{code}; print('a trial')"]
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, start_new_session=True
    )
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "")


def attended_child(code):
    """A process as attended ones are: its input is held, and it leads a group of its own."""
    begin = "import os, subprocess, sys, time; from isorun.repair.attending import _end_with_attendant as end; end(); "
    return subprocess.Popen(
        [sys.executable, "-c", begin + code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def is_gone(pid):
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state in "ZX":
            return True
        time.sleep(0.05)
    return False


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("end", [attending._end, lambda child: child.stdin.close()], ids=["ended", "attendant gone"])
def test_what_a_trial_started_ends_with_its_process(end):
    code = "child = subprocess.Popen(['sleep', '60'], stdout=subprocess.DEVNULL); print(child.pid, flush=True); "
    child = attended_child(f"{code}time.sleep(60)")
    started = int(child.stdout.readline())
    end(child)
    assert child.wait(10) == -signal.SIGKILL
    assert is_gone(started)
    child.stdout.close()


def test_a_trial_that_asks_for_input_gets_none():
    child = attended_child("print(repr(sys.stdin.read()), flush=True)")
    assert child.stdout.readline() == "''\n"
    attending._end(child)
    child.stdout.close()


class Lingering:
    """A process that does not end."""

    pid = 1

    def wait(self, timeout=None):
        raise subprocess.TimeoutExpired("python", timeout)


def test_a_process_that_is_done_is_not_waited_for_whatever_thread_it_has(tmp_path, monkeypatch):
    done = tmp_path / "done.json"
    done.touch()
    monkeypatch.setattr(attending, "_GRACE", -1.0)
    assert attending._wait(Lingering(), Continuation("ledger:none", None, "train.py:objective", 2), done) == ""


def test_the_first_trial_of_a_process_may_import_and_load(monkeypatch):
    now, asked = time.time(), Continuation("ledger:none", "mine", "train.py:objective", 2)
    ended = [Trial(number, "finished", 0.1, {"lr": 0.1}, seconds=0.1, process=78) for number in range(9)]
    running = Trial(9, "running", None, {"lr": 0.2}, started=now - 30, process=77)
    search = Search("ledger", "mine", "higher", (), (*ended, running))
    monkeypatch.setattr(attending, "read_search", lambda *_: search)
    monkeypatch.setattr(attending, "open_engine", Ledger)
    assert attending._stalled(77, asked) == ""
    monkeypatch.setattr(attending, "_FIRST_GRACE", 20.0)
    assert attending._stalled(77, asked).startswith("stalled: it took longer than 1 s")
    monkeypatch.setattr(attending, "_FIRST_GRACE", 60.0)
    search = replace(search, trials=(*ended, replace(running, process=78)))
    assert attending._stalled(78, asked).startswith("stalled: it took longer than 1 s")
