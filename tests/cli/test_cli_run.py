"""`isorun run`: any command, declared studies, resume, failures and mistakes."""

import io
import json
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

import isorun
from isorun.analysis.evidence import Condition
from isorun.cli.progress import Progress
from isorun.cli.run import _told_ends
from isorun.errors import ExecutionError
from isorun.scheduling import Outcome
from isorun.study.records import RunState
from record_builder import make_cell, make_record


def test_a_study_is_run_and_the_second_time_nothing_is_missing(toy):
    first = toy("run", "study.toml")
    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith("study: 6 finished\n")
    assert "[6/6]" in first.stderr
    assert "left" in first.stderr
    assert "± " in first.stderr
    assert "next: isorun report study.toml" in first.stdout
    second = toy("run", "study.toml")
    assert second.stdout.startswith("study: nothing was missing")


def test_a_damaged_store_that_was_not_asked_for_is_not_opened(shell):
    (shell.folder / ".isorun").mkdir()
    shell.write(".isorun/store.sqlite", "no database")
    words = ("run", "--store", "elsewhere", "--", "python", "-c", "pass", "--token", "sk-1234567890abcdef1234567890")
    for headline in ("1 finished", "nothing was missing, its only run was made before"):
        done = shell(*words)
        assert done.returncode == 0, done.stderr
        assert headline in done.stdout


def test_a_changed_study_runs_only_what_is_new(toy):
    toy("run", "study.toml")
    text = (toy.folder / "study.toml").read_text().replace("repeats = 3", "repeats = 4")
    toy.write("study.toml", text)
    assert json.loads(toy("run", "study.toml", "--json").stdout)["finished"] == 2


def test_fixed_seed_runs_are_equal_and_default_runs_are_not(toy):
    toy("run", "study.toml")
    result = json.loads(toy("report", "study.toml", "--json").stdout)
    text = json.dumps(result)
    assert "fixed-seed" in text
    import isorun

    values = {}
    for record in isorun.records(toy.folder / "study.toml"):
        values.setdefault(str(record.cell.level), set()).add(record.results["test_acc"])
    assert len(values["fixed-seed"]) == 1
    assert len(values["default"]) == 3


def test_any_command_is_a_study_that_can_be_extended_and_reported_on(toy):
    first = toy("run", "-n", 2, "--level", "fixed-seed", "--", "python", "train.py")
    assert first.stdout.splitlines()[0].endswith(": 2 finished")
    second = toy("run", "-n", 3, "--level", "fixed-seed", "--", "python", "train.py")
    assert second.stdout.splitlines()[0].endswith(": 1 finished")
    report = toy("report")
    assert report.returncode == 0, report.stderr
    assert "3 runs" in report.stdout


def test_a_metric_given_without_its_direction_is_guessed_declared_or_asked_about(shell):
    shell.write("t.py", "print('[3]\\teval-merror:0.27556\\teval-foo:0.5')")
    for name, words in {"guess": "eval-merror", "said": "eval-merror:higher", "asked": "eval-foo"}.items():
        assert shell("run", "--name", name, "--metric", words, "--", "python", "t.py").returncode == 0
    found = {name: json.loads(shell("report", name, "--json").stdout) for name in ("guess", "said", "asked")}
    told = {name: report["metrics"][0] for name, report in found.items()}
    assert {name: (item["direction"], item["direction_from"]) for name, item in told.items()} == {
        "guess": ("lower", "guessed from 'merror'"),
        "said": ("higher", "declared"),
        "asked": (None, None),
    }
    codes = {
        name: {w["code"] for w in report["warnings"] if "direction" in w["code"]} for name, report in found.items()
    }
    assert codes == {"guess": {"direction-guessed"}, "said": set(), "asked": {"direction-unknown"}}
    assert "eval-foo 0.5" in shell("report", "asked").stdout


def test_a_command_that_is_no_python_is_run_too(shell):
    shell.write("train.sh", "echo 'val_acc: 0.5'; echo 'val_acc: 0.75'\n")
    done = shell("run", "-n", 2, "--", "bash", "train.sh")
    assert done.returncode == 0, done.stderr
    assert "val_acc" in done.stderr
    assert "metrics found without isorun.log: val_acc" in done.stderr


def test_the_seed_placeholder_is_filled_and_drawn_anew_at_level_default(shell):
    shell.write("t.py", "import sys; print('seed_acc:', sys.argv[1])")
    shell("run", "-n", 3, "--level", "default", "--level", "fixed-seed", "--seed", 5, "--", "python", "t.py", "{seed}")
    runs = sorted((shell.folder / ".isorun" / "runs").iterdir())
    assert len(runs) == 6
    printed = [(run / "output.log").read_text().split(":")[1].strip() for run in runs]
    assert printed.count("5") == 3
    assert len(set(printed)) == 4


def test_failed_runs_are_records_and_are_tried_again_next_time(shell):
    shell.write("t.py", "import os, sys; print('acc: 0.1'); sys.exit(0 if os.path.exists('ok') else 3)")
    failed = shell("run", "-n", 2, "--", "python", "t.py")
    assert failed.returncode == 1
    assert "2 did not finish" in failed.stdout
    assert "exit code 3" in failed.stdout
    (shell.folder / "ok").touch()
    again = shell("run", "-n", 2, "--", "python", "t.py")
    assert again.returncode == 0
    assert "2 finished" in again.stdout


def test_fail_fast_stops_the_study(shell):
    shell.write("t.py", "import sys; sys.exit(1)")
    done = shell("run", "-n", 5, "--fail-fast", "--json", "--", "python", "t.py")
    assert done.returncode == 1
    assert json.loads(done.stdout)["failed"] == 1


def test_a_run_over_its_time_limit_is_stopped(shell):
    shell.write("t.py", "import time; time.sleep(60)")
    began = time.monotonic()
    done = shell("run", "--time-limit", "1s", "--json", "--", "python", "t.py")
    assert time.monotonic() - began < 30
    assert json.loads(done.stdout)["runs"][0]["state"] == "timed-out"


def test_ctrl_c_stops_cleanly_and_nothing_finished_is_lost(shell):
    shell.write("t.py", "import sys, time, os; time.sleep(0 if len(os.listdir('.isorun/runs')) < 3 else 60)")
    words = [sys.executable, "-m", "isorun", "run", "-n", "5", "--", "python", "t.py"]
    process = subprocess.Popen(words, cwd=shell.folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    while len(list(shell.folder.glob(".isorun/runs/*"))) < 3:
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 130, stderr
    assert "2 finished, 1 did not finish; stopped: interrupted" in stdout
    assert "Traceback" not in stderr


def test_two_isoruns_on_one_study_share_the_work(shell):
    shell.write("t.py", "import time; time.sleep(0.3)")
    words = [sys.executable, "-m", "isorun", "run", "-n", "8", "--json", "--", "python", "t.py"]
    both = [subprocess.Popen(words, cwd=shell.folder, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    results = [json.loads(process.communicate(timeout=60)[0]) for process in both]
    assert sum(result["finished"] for result in results) == 8
    assert len(list((shell.folder / ".isorun" / "runs").iterdir())) == 8


def test_a_dry_run_shows_the_cells_and_runs_nothing(toy):
    done = toy("run", "study.toml", "--dry-run")
    assert "6 of 6 runs are missing; nothing was run" in done.stdout
    assert not (toy.folder / ".isorun").exists()


def test_a_dry_run_of_many_cells_shows_the_first_and_json_lists_all(toy):
    toy.write("many.toml", 'repeats = 1500\n[approaches.toy]\ncommand = "python train.py"\n')
    lines = toy("run", "many.toml", "--dry-run").stdout.splitlines()
    assert len(lines) == 1002
    assert lines[-1] == "  … and 500 more; --json lists all"
    cells = json.loads(toy("run", "many.toml", "--dry-run", "--json").stdout)
    assert len({cell["id"] for cell in cells}) == 1500
    assert all(cell["missing"] for cell in cells)


MISTAKES = {
    "nothing": ((), 2, "either a study file or a command"),
    "both": (("study.toml", "--", "python", "t.py"), 2, "either a study file or a command"),
    "forgotten dashes": (("-n", "3", "python", "t.py"), 2, "isorun run [options] -- COMMAND"),
    "no such file": (("none.toml",), 1, "there is no study file none.toml"),
    "no such study": (("nope",), 1, "neither a study file nor an earlier study 'nope'"),
    "unknown level": (("--level", "fixed", "--", "python", "t.py"), 1, "did you mean 'fixed-seed'"),
    "no repeats": (("-n", "0", "--", "python", "t.py"), 1, "repeats: it must be a whole number from 1 to"),
    "repeats in words": (("-n", "two", "--", "python", "t.py"), 2, "a whole number is needed, not 'two'"),
    "variable before the command": (("--", "A=1", "python", "t.py"), 1, "isorun run --env A=1 -- python t.py"),
    "command as one word": (("python t.py",), 1, "isorun run -- python t.py"),
    "nothing like an option": (("--foo", "x"), 2, "isorun run [options] -- COMMAND"),
    "option of a command": (("study.toml", "-n", "4"), 2, "--repeats belongs to a command"),
    "interpreter": (("--python", "/no/such/python", "--", "python", "t.py"), 1, "/no/such/python"),
    "program": (("--", "no-such-program"), 1, "no-such-program"),
    "too many jobs": (("-j", "4000", "--", "python", "t.py"), 1, "4000"),
    "zero jobs": (("-j", "0", "--", "python", "t.py"), 1, "jobs"),
    "bad placeholder": (("--", "python", "t.py", "{sede}"), 1, "no placeholder {sede}"),
    "bad pattern": (("--pattern", "(", "--", "python", "t.py"), 1, "not a regular expression"),
    "bad name": (("--name", "../x", "--", "python", "t.py"), 1, "not a usable name"),
    "bad env": (("--env", "X", "--", "python", "t.py"), 2, "--env needs NAME=VALUE"),
    "bad limit": (("--time-limit", "soon", "--", "python", "t.py"), 1, "not a duration"),
    "unknown option": (("--levle", "x"), 2, "isorun run"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_clear_message(mistake, toy):
    words, code, message = MISTAKES[mistake]
    toy.write("t.py", "print('acc: 0.5')")
    done = toy("run", *words)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout


def test_what_a_training_prints_cannot_steer_the_terminal(shell):
    shell.write("train.py", r"raise ValueError('\x1b[2J\x1b]0;title\x07 gone')")
    done = shell("run", "--", "python", "train.py")
    assert done.returncode == 1
    assert "ValueError" in done.stdout
    assert "ValueError" in done.stderr
    assert not {"\x1b", "\x07"} & set(done.stdout + done.stderr)


@pytest.mark.parametrize("words", [["python"], ["python", "-"], ["python", "-u", "-"]])
def test_a_program_on_standard_input_is_run_by_every_run_and_refused_where_there_is_none(shell, words):
    done = shell("run", "-n", "2", "--", *words, stdin="print('val_acc: 0.5')")
    assert done.returncode == 0, done.stderr
    assert "2 finished" in done.stdout
    assert "val_acc 0.5 (mean 0.5" in done.stderr
    refused = shell("run", "--store", "other", "--", *words, stdin="")
    assert refused.returncode == 1
    assert "standard input, and none was given" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_no_secret_is_in_any_file_of_the_store(shell):
    shell.write("train.py", "import os; print('val_acc: 0.5', os.environ['HUB_TOKEN'], os.environ['AWS_SECRET_KEY'])")
    words = ["--env", "HUB_TOKEN=hidden-value-1", "--env", "DB=postgres://me:hidden-value-2@host/db"]
    command = ["bash", "-c", "WANDB_API_KEY=hidden-value-3 python train.py --password=hidden-value-4 train.py"]
    done = shell("run", *words, "--", *command, env={"AWS_SECRET_KEY": "hidden-value-5"})
    assert done.returncode == 0, done.stderr
    assert "hidden-value" not in done.stdout + done.stderr
    files = [path for path in (shell.folder / ".isorun").rglob("*") if path.is_file()]
    assert [path for path in files if b"hidden-value" in path.read_bytes()] == []


def test_a_diverged_run_is_counted_and_ends_nothing(shell):
    shell.write("t.py", "import isorun, os\nrun = os.environ['ISORUN_RUN_DIR']\nisorun.result(acc=float('nan'))\n")
    done = shell("run", "-n", 3, "--", "python", "t.py")
    assert done.returncode == 0, done.stderr
    assert "n = 0, 3 not finite" in done.stderr
    report = shell("report")
    assert report.returncode == 0
    assert "Traceback" not in report.stderr


def test_a_changed_module_of_the_training_is_noticed_also_outside_git(shell):
    shell.write("helper.py", "V = 0.5\n")
    shell.write("t.py", "import isorun, helper\nisorun.result(acc=helper.V)\n")
    shell("run", "-n", 2, "--", "python", "t.py")
    shell.write("helper.py", "V = 0.9\n")
    shell("run", "-n", 4, "--", "python", "t.py")
    assert "[code-differs]" in shell("report").stdout


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"folder": 3}'])
def test_a_kept_study_that_is_damaged_is_named(content, toy):
    toy("run", "-n", 1, "--name", "kept", "--", "python", "train.py")
    toy.write(".isorun/studies/kept.json", content)
    done = toy("report", "kept")
    assert done.returncode == 1
    assert "kept.json cannot be read" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_runs_say_of_themselves_is_told_when_they_end(shell):
    shell.write("folds.py", "import isorun\nfor e in (1, 2, 1, 2): isorun.log(epoch=e, val_acc=0.5)")
    assert "[epochs-restart]" in shell("run", "-n", 2, "--", "python", "folds.py").stdout
    shell.write("t.py", "print('val_acc: 0.5')")
    assert (
        "[hook-never-started]" in shell("run", "-n", 2, "--level", "deterministic", "--", "python", "-I", "t.py").stdout
    )


def test_a_metric_that_no_run_logged_is_told_with_those_that_were(shell):
    shell.write("t.py", "print('test_acc: 0.5')")
    done = shell("run", "-n", 2, "--metric", "tset_acc", "--", "python", "t.py")
    assert "[metric-not-logged]" in done.stdout
    assert "test_acc" in done.stdout.split("[metric-not-logged]")[1]
    assert "no tset_acc" in done.stderr
    assert "did you mean 'test_acc'?" in done.stdout
    assert done.returncode == 1
    again = shell("run", "-n", 2, "--metric", "tset_acc", "--", "python", "t.py")
    assert "[metric-not-logged]" in again.stdout, "also where nothing was missing"
    assert again.returncode == 1
    assert shell("run", "-n", 2, "--metric", "test_acc", "--", "python", "t.py").returncode == 0


def test_a_script_in_place_of_a_study_gets_the_command_that_runs_it(shell):
    shell.write("t.py", "print('test_acc: 0.5')")
    assert "isorun run -- python t.py" in shell("run", "t.py").stderr


def test_a_column_that_a_study_does_not_have_is_named(shell):
    shell.write("t.py", "import sys; print('test_acc:', sys.argv[1])")
    approaches = "".join(f'[approaches.{name}]\ncommand = "python t.py 0.{place}"\n' for place, name in enumerate("ab"))
    shell.write("two.toml", f'name = "two"\nrepeats = 2\n{approaches}')
    shell("run", "two.toml")
    assert "no column 'aproach'" in shell("compare", "two.toml", "--by", "aproach").stderr


SEARCH = """
[approaches.toy]
command = "python train.py {config.lr} {config.act}"
[metrics]
accuracy = "higher"
[search]
trials = 6
engine = "random"
seed = 4
[search.space]
lr = { float = [1e-5, 1.0], log = true }
act = ["relu", "broken"]
"""
SEARCHED = """
import sys
if sys.argv[2] == "broken":
    raise SystemExit("it is broken")
print("accuracy:", 1 - float(sys.argv[1]))
"""


def test_a_search_that_was_not_begun_says_what_its_first_trial_would_be_and_makes_nothing(shell):
    (shell.folder / "search.toml").write_text(SEARCH)
    dry = shell("run", "search.toml", "--dry-run")
    assert dry.stdout.splitlines()[0] == "search: 0 trials are made, 6 to come, 6 in all; nothing was run"
    assert "trial-0 (by random): lr " in dry.stdout
    assert not (shell.folder / ".isorun").exists()


@pytest.mark.parametrize("refused", [("--devices", "99"), ("--jobs", "5000"), ("--jobs", "0")], ids=" ".join)
def test_nothing_is_kept_of_what_was_refused(shell, refused):
    (shell.folder / "search.toml").write_text(SEARCH)
    for words in (("search.toml",), ("-n", "2", "--", "python", "-c", "print('accuracy: 1')")):
        assert shell("run", *refused, *words).returncode == 1
    assert not list((shell.folder / ".isorun").glob("[ps]*/*.json"))
    assert "search" not in shell("report").stderr.replace("search.toml", "")
    wrong = SEARCH.replace("seed = 4", 'seed = 4\nprior = "none.json"')
    (shell.folder / "other").mkdir()
    (shell.folder / "other" / "wrong.toml").write_text(wrong)
    assert "none.json" in shell("run", "other/wrong.toml").stderr
    assert not (shell.folder / "other" / ".isorun").exists()


@pytest.mark.long
def test_a_search_is_run_told_of_examined_and_extended(shell):
    (shell.folder / "train.py").write_text(SEARCHED)
    (shell.folder / "search.toml").write_text(SEARCH)
    first = shell("run", "search.toml", "-j", 1)
    assert first.returncode == 0, first.stderr
    assert "the best score is" in first.stdout.splitlines()[0]
    assert "best trial: lr" in first.stdout
    assert "next: isorun repair search.toml" in first.stdout
    assert "search: 6 runs to do" in first.stderr
    assert first.stderr.count("to do") == 1
    assert "left" in first.stderr
    assert "nothing was missing" in shell("run", "search.toml").stdout
    dry = shell("run", "search.toml", "--dry-run").stdout
    assert "nothing was run" in dry
    assert "6 trials are made, 0 to come" in dry
    assert "next" not in dry
    assert "trial-5" in dry
    assert "6 in all" in dry
    (shell.folder / "search.toml").write_text(SEARCH.replace("trials = 6", "trials = 8"))
    dry = shell("run", "search.toml", "--dry-run").stdout
    assert "6 trials are made, 2 to come" in dry
    assert "next      trial-6 (by isorun, from trial 1): lr " in dry
    assert ("failed " in dry, "missing" in dry) == (True, False)
    foreseen = json.loads(shell("run", "search.toml", "--dry-run", "--json").stdout)[-1]
    assert (foreseen["config"], foreseen["is_next"]) == ("trial-6", True)
    more = json.loads(shell("run", "search.toml", "--json").stdout)
    assert [run["run"] for run in more["runs"] if foreseen["id"] in run["run"] and not run["reused"]]
    assert more["finished"] + more["failed"] == 2
    assert more["searches"][0]["trials"] == 8
    assert more["next"] == "isorun repair search.toml"
    for name in ("search.toml", "search"):
        told = shell("repair", name, "--json")
        assert told.returncode in {0, 3}, told.stderr
        assert json.loads(told.stdout)["engine"] == "random"
    assert "8 trials" in " ".join(shell("repair", "search").stdout.split())
    assert shell("report", "search.toml").returncode == 0
    assert "of 8 finished" in shell("status", "search.toml").stdout
    said = " ".join(shell("repair", "search.toml", "--patience", 1).stdout.split())
    assert "raise the trials of its search, then: isorun run search.toml" in said
    assert "note(trial" not in said
    assert "isorun repair" not in said
    assert "fit this search" in said
    (shell.folder / "search.toml").write_text(SEARCH.replace("trials = 6", 'trials = 9\nprior = "none"'))
    assert "fit this search" not in " ".join(shell("repair", "search.toml").stdout.split())
    assert "fit this search" in " ".join(shell("repair", "search.toml", "--prior", "shipped").stdout.split())
    assert "isorun run search.toml" in " ".join(shell("repair", "search.toml", "--patience", 1).stdout.split())
    refused = shell("repair", "search", "--tuner", "train.py:tuner")
    assert refused.returncode == 2
    assert "--tuner" in refused.stderr
    wrong = shell("repair", "search", "--continue", "3")
    assert wrong.returncode == 2
    assert "isorun run search" in wrong.stderr


def test_a_search_of_which_no_trial_finished_fails(shell):
    (shell.folder / "train.py").write_text("raise SystemExit('it is broken')")
    (shell.folder / "search.toml").write_text(SEARCH)
    done = shell("run", "search.toml")
    assert done.returncode == 1
    assert "no trial has finished with a score yet" in done.stdout
    assert "repeated-failure" in done.stdout


def test_a_warning_that_was_read_on_the_terminal_is_not_shown_again(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    one, other = Condition("code-changed", "it changed", "look"), Condition("few-runs", "few", "more")
    for stdout, is_read in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stdout", stdout)
        progress = Progress(isorun.Study("plain", approaches={"toy": "python train.py"}), Terminal())
        progress.warned(one)
        assert (progress.is_read(one), progress.is_read(other)) == (is_read, False)


def test_runs_that_ended_alike_are_told_once_and_no_line_twice():
    error = ExecutionError("no image", found="connection refused", allowed="one that is here", hint="podman pull")
    failed = RunState.FAILED
    lost = [
        replace(
            make_record(make_cell(repeat=at)),
            state=failed,
            reason="no image: connection refused",
            log_tail=error.message(),
        )
        for at in range(3)
    ]
    crashed = replace(
        make_record(make_cell(repeat=7)), state=failed, reason="exit code 1", log_tail="1\nfound: 2\nexit code"
    )
    outcome = Outcome((*lost, crashed))
    first, *others = _told_ends(outcome)
    assert first == f"  failed: {lost[0].cell.label} and 2 more: no image: connection refused"
    assert "refused" not in "".join(others)
    assert "    |   next:    podman pull" in others
    assert others[-4:] == [
        f"  failed: {crashed.cell.label}: exit code 1",
        "    | 1",
        "    | found: 2",
        "    | exit code",
    ]


def test_of_a_traceback_the_place_is_told_though_signs_stand_below_it():
    tail = '  File "a.py", line 1\n    f()\n  File "b.py", line 2\n    print(1\n         ^\nSyntaxError: closed'
    crashed = replace(make_record(make_cell()), state=RunState.FAILED, reason="exit code 1", log_tail=tail)
    _, *lines = _told_ends(Outcome((crashed,)))
    assert lines[0] == '    |   File "b.py", line 2'
    assert len(lines) == 4


def test_ends_beyond_those_told_are_counted_and_a_reason_is_told_once_on_the_way():
    lost = [
        replace(make_record(make_cell(repeat=at)), state=RunState.FAILED, reason=f"exit code {at}", log_tail="")
        for at in range(8)
    ]
    assert list(_told_ends(Outcome(tuple(lost))))[-1] == "  3 more ended in other ways: isorun report names them"
    stream = io.StringIO()
    with Progress(isorun.Study("plain", approaches={"toy": "python train.py"}), stream) as progress:
        for record in lost[:3]:
            progress.run_ended(replace(record, reason="no image"))
    assert stream.getvalue().count("failed (no image)") == 1
    assert stream.getvalue().count("failed (as before)") == 2


def test_braces_of_the_training_are_passed_on_as_typed(shell):
    shell.write("t.py", "import sys; print('acc: 0.5'); print(sys.argv[1:])")
    assert shell("run", "--", "python", "t.py", "{x}", "{{y}}", "{{seed}}").returncode == 0
    (log,) = (shell.folder / ".isorun" / "runs").glob("*/output.log")
    assert "['{x}', '{{y}}', '{seed}']" in log.read_text()


@pytest.mark.parametrize("words", [("no-such-program", "x"), ("python", "no_such_script.py"), ("./run.sh",)])
def test_a_command_that_does_not_exist_is_refused_before_anything_is_said_or_kept(shell, words):
    done = shell("run", "-n", 2, "--", *words)
    assert done.returncode == 1
    assert "does not exist" in done.stderr
    assert "to do" not in done.stderr
    assert list(shell.folder.iterdir()) == []
    shell.write("t.py", "print('acc: 0.5')")
    assert shell("run", "--name", "mine", "--", "python", "t.py").returncode == 0
    done = shell("run", "-n", 2, "--", *words)
    assert (done.returncode, "to do" in done.stderr) == (1, False)
    assert [path.name for path in (shell.folder / ".isorun" / "studies").iterdir()] == ["mine.json"]


def test_a_study_file_is_found_by_its_name_too(toy):
    toy.write("study.toml", 'name = "digits"\n' + (toy.folder / "study.toml").read_text())
    assert toy("run", "study.toml").returncode == 0
    assert toy("report", "digits").stdout == toy("report", "study.toml").stdout == toy("report").stdout
    assert "nothing was missing" in toy("run", "digits").stdout
    toy.write("study.toml", (toy.folder / "study.toml").read_text().replace("repeats = 3", "repeats = 4"))
    assert "digits: 2 of 8 runs are missing" in toy("run", "digits", "--dry-run").stdout  # the file as it is now
    (toy.folder / "study.toml").unlink()
    assert "digits: 0 of 6 runs are missing" in toy("run", "digits", "--dry-run").stdout  # as it was when it ran


def test_a_study_whose_name_no_store_keeps_is_told_so_before_its_runs_and_is_not_left_to_workers(shell):
    shell.write("t.py", "print('acc: 0.5')")
    shell.write("study.toml", 'name = "two words"\n[approaches.one]\ncommand = "python t.py"\n')
    asked = shell("run", "study.toml", "--queue")
    assert asked.returncode == 1
    assert "known by its name, and this one cannot be kept" in asked.stderr
    (told,) = json.loads(shell("run", "study.toml", "--json").stdout)["warnings"]
    assert told["code"] == "name-not-kept"
    shell.write("study.toml", 'name = "two-words"\n[approaches.one]\ncommand = "python t.py"\n')
    again = shell("run", "study.toml").stdout
    assert again.startswith("two-words: nothing was missing")
    assert "name-not-kept" not in again


def test_a_study_file_does_not_take_the_name_of_a_command(toy):
    assert toy("run", "-n", 2, "--name", "mine", "--", "python", "train.py").returncode == 0
    toy.write("study.toml", 'name = "mine"\n' + (toy.folder / "study.toml").read_text())
    assert toy("run", "study.toml").returncode == 0
    assert "mine: 0 of 2 runs are missing" in toy("run", "mine", "--dry-run").stdout


RESUMES = """
import json, os
state = json.load(open("state.json")) if os.path.exists("state.json") else {"n": 0}
json.dump({"n": state["n"] + 1}, open("state.json", "w"))
print("acc:", state["n"] + 0.5)
"""


def test_runs_that_meet_in_a_file_are_told_and_with_a_folder_each_they_do_not(shell):
    shell.write("t.py", RESUMES)
    done = json.loads(shell("run", "-n", 2, "--json", "--", "python", "t.py").stdout)
    assert [run["values"]["acc"] for run in done["runs"]] == [0.5, 1.5]
    assert [one["code"] for one in done["warnings"]] == ["read-of-another-run", "shared-write"]
    assert "--isolate" in done["warnings"][1]["next"]
    told = json.loads(shell("report", "--json").stdout)["warnings"]
    assert {"read-of-another-run", "shared-write"} <= {one["code"] for one in told}
    (shell.folder / "state.json").unlink()
    apart = shell("run", "-n", 2, "--isolate", "--store", "apart", "--json", "--", "python", "t.py")
    done = json.loads(apart.stdout)
    assert [run["values"]["acc"] for run in done["runs"]] == [0.5, 0.5]
    assert done["warnings"] == []
    assert not (shell.folder / "state.json").exists()
    left = sorted((shell.folder / "apart" / "runs").glob("*/workspace/*"))
    assert [path.name for path in left] == ["state.json"] * 2


@pytest.mark.alone  # by the times of files, which beside many others were not always those of the runs
def test_a_copy_of_the_folder_keeps_no_runs_apart_in_files_outside_it(shell, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "last.txt"
    shell.write(
        "t.py", "import sys\nfor name in (sys.argv[1], 'own.txt'): open(name, 'w').write('x')\nprint('acc: 0.5')"
    )
    done = shell("run", "-n", 2, "--isolate", "--", "python", "t.py", outside)
    assert "2 runs of 2 wrote to the same file" in done.stdout
    assert "own.txt" not in done.stdout
    assert done.stdout.count("is kept: runs/ID/workspace in the store") == 1


def test_decide_gives_each_run_a_folder_of_its_own_too(shell):
    shell.write("t.py", RESUMES)
    words = ("--isolate", "--max-runs", 5, "--metric", "acc:higher", "--json")
    done = shell("decide", *words, "--", "python", "t.py", "--vs-", "python", "t.py", "more")
    assert done.returncode == 0, done.stderr
    assert not (shell.folder / "state.json").exists()
    assert "read-of-another-run" not in done.stdout
    assert len(sorted(shell.folder.glob("**/runs/*/workspace/state.json"))) == 10
