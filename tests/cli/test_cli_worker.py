"""isorun worker as people type it: what a store has left, what is missing here, and what stays with other commands."""

import json
import shutil
import subprocess
import sys
import textwrap

import pytest

import isorun
from isorun.session import open_store
from isorun.store import PLANS, STUDIES
from isorun.study.cells import cells_of

STUDY = """
name = "toy"
repeats = 2
[approaches.a]
command = "sh train.sh"
[approaches.b]
command = "sh train.sh --more"
[metrics.accuracy]
direction = "higher"
"""
TRAIN = "echo accuracy: 0.5$$\n"
"""A shell is a training that starts in no time; most of what a worker does has nothing to do with Python."""


@pytest.fixture
def queued(shell):
    """A study that is kept for workers, and was never run."""
    shell.write("train.sh", TRAIN)
    shell.write("study.toml", STUDY)
    done = shell("run", "study.toml", "--queue")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("toy: kept for workers; 4 cells left to carry out, nothing was run\n")
    assert "next: isorun worker .isorun, on any machine that has " in done.stdout
    return shell


def taken(done, code=0):
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


def codes(told):
    return [warning["code"] for warning in told["warnings"]]


def test_a_worker_makes_what_is_left_and_a_second_one_finds_nothing(queued):
    told = taken(queued("worker", "-j", "2", "--json"))
    assert (told["finished"], told["failed"], told["stopped"], told["warnings"]) == (4, 0, "", [])
    assert told["studies"] == {"toy": {"finished": 4, "did_not_finish": 0, "left": 0}}
    assert {run["study"] for run in told["runs"]} == {"toy"}
    assert "nothing was left to take" in queued("worker").stdout
    status = json.loads(queued("status", "toy", "--json").stdout)
    assert (status["finished"], status["missing"], status["workers"]) == (4, 0, [])
    reported = json.loads(queued("report", "study.toml", "--json").stdout)
    assert "runs-missing" not in [warning["code"] for warning in reported["warnings"]]
    again = taken(queued("run", "study.toml", "--json"))
    assert (again["finished"], again["reused"]) == (0, 4)


def test_what_a_study_begun_by_run_has_left_is_taken_and_records_say_by_whom(queued):
    taken(queued("run", "study.toml", "--json"))
    longer = STUDY.replace("repeats = 2", "repeats = 3")
    queued.write("study.toml", longer)
    assert "2 cells left" in queued("run", "study.toml", "--queue").stdout
    assert taken(queued("worker", "--json"))["finished"] == 2
    from isorun.store.folder import FolderStore

    with FolderStore(queued.folder / ".isorun") as store:
        by = sorted(record.where.get("executor", "local") for record in store.records())
    assert by == ["local"] * 4 + ["worker"] * 2


def test_a_command_is_queued_and_taken_too(shell):
    shell.write("train.sh", TRAIN)
    queue = ("run", "-n", "3", "--name", "mine", "--queue", "--json", "--", "sh", "train.sh")
    assert taken(shell(*queue))["missing"] == 3
    told = taken(shell("worker", "--json"))
    assert told["studies"] == {"mine": {"finished": 3, "did_not_finish": 0, "left": 0}}


def test_status_of_the_store_tells_what_was_left_for_workers_and_what_carries_it_out(queued):
    lines = queued("status").stdout.splitlines()
    assert lines[:2] == ["this store: 0 finished, 0 running, 4 missing", "  toy: 4 of 4 missing"]
    assert lines[2].startswith("next: isorun worker carries out what is missing")
    again = queued("run", "toy", "--queue").stdout
    assert "next: isorun worker .isorun, on any machine" in again
    assert json.loads(queued("run", "toy", "--queue", "--json").stdout)["store"] == ".isorun"
    assert queued("worker", ".isorun").returncode == 0
    assert queued("status").stdout == "this store: 4 finished, 0 running\n"


def test_a_study_is_copied_beside_a_damaged_plan_and_what_goes_on_is_told(queued):
    with open_store(str(queued.folder / ".isorun")) as store:
        store.documents(PLANS).write("0123456789abcdef", {"cells": []})
        claim = store.claim(isorun.cells(queued.folder / "study.toml")[0].id)
        (plan,) = (queued.folder / ".isorun" / "plans").glob("0123456789abcdef*")
        plan.write_text("{")
        done = queued("store", "copy", ".isorun", "there now", "--study", "toy")
        claim.release()
    assert done.returncode == 3
    assert "there now: 0 records and 1 document were copied" in done.stdout
    assert "damaged: plans/0123456789abcdef" in done.stdout
    assert "1 run of it goes on, and is not copied" in done.stdout
    assert queued("worker", "there now").returncode == 0
    done = queued("run", "study.toml", "--store", "there now")
    assert "next: isorun report study.toml --store 'there now'" in done.stdout


def test_only_the_study_that_is_named(queued):
    queued("run", "-n", "1", "--name", "other", "--queue", "--", "sh", "train.sh")
    assert taken(queued("worker", "--json", "--study", "other"))["studies"].keys() == {"other"}
    wrong = queued("worker", "--study", "toi")
    assert wrong.returncode == 1
    assert "the store keeps no study 'toi'" in wrong.stderr
    assert "'toy'" in wrong.stderr or "toy" in wrong.stderr


def test_a_folder_that_lies_elsewhere_here(queued, tmp_path):
    moved = tmp_path.parent / f"{tmp_path.name}-moved"
    shutil.move(tmp_path, moved)
    queued.folder = moved
    missing = queued("worker", "--json")
    told = taken(missing, code=1)
    assert codes(told) == ["folder-missing"]
    assert "--folder toy=PATH" in told["warnings"][0]["next"]
    assert told["finished"] == 0
    for mapped in (f"toy={moved}", f"{tmp_path.parent}={moved}/nowhere"):
        told = taken(queued("worker", "--json", "--folder", mapped), code=0 if mapped.startswith("toy") else 1)
        assert told["finished"] == (4 if mapped.startswith("toy") else 0)
        if mapped.startswith("toy"):
            shutil.rmtree(moved / ".isorun")
            queued("run", "study.toml", "--queue")
            shutil.copytree(moved, tmp_path)
            shutil.rmtree(moved)
            queued.folder = tmp_path
            break
    told = taken(queued("worker", "--json", "--folder", f"{moved}={tmp_path}"))
    assert told["finished"] == 4


def test_other_code_is_refused_before_and_after_the_first_run(queued):
    queued.write("train.sh", TRAIN + "# edited\n")
    told = taken(queued("worker", "--json"), code=1)
    assert codes(told) == ["code-differs-here"]
    assert "train.sh" in told["warnings"][0]["message"]
    queued.write("train.sh", TRAIN)
    assert taken(queued("worker", "--json"))["finished"] == 4
    queued.write("study.toml", STUDY.replace("repeats = 2", "repeats = 3"))
    queued.write("train.sh", TRAIN + "# edited\n")
    taken(queued("run", "study.toml", "--queue", "--json"))
    told = taken(queued("worker", "--json", "--study", "toy"), code=1)
    assert codes(told) == ["code-differs-here"]
    told = taken(queued("worker", "--json", "--study", "toy", "--anyway"))
    assert (told["finished"], codes(told)) == (2, ["code-differs-here"])


def test_data_that_is_another_elsewhere_is_noticed_when_the_first_run_has_finished(shell, tmp_path_factory):
    """Before, nobody knows what a training reads beside its script: a worker holds its own offer against it then."""
    from isorun.execution.local import LocalExecutor
    from isorun.offers import Offers, StudyFolders

    there = tmp_path_factory.mktemp("there")
    for folder, value in ((shell.folder, "0.1"), (there, "0.5")):
        (folder / "train.py").write_text("print('accuracy:', open('data.txt').read())")
        (folder / "data.txt").write_text(value)
        (folder / "study.toml").write_text(STUDY.replace("sh train.sh", "python train.py"))
    assert shell("run", "study.toml", "--queue").returncode == 0
    with open_store(str(shell.folder / ".isorun")) as store:
        executor, folders = LocalExecutor(shell.folder / ".isorun" / "runs"), StudyFolders.of([str(shell.folder)])
        offers = Offers(store, executor, folders=folders)
        (offer,) = offers.look().values()
        assert (len(offer.cells), offer.conditions) == (4, ())
        before = store.documents(STUDIES).read("toy")
        isorun.run(there / "study.toml", store=store, only=lambda cell: cell.repeat == 0)
        store.documents(STUDIES).write("toy", before)
        (offer,) = offers.look().values()
        assert offer.cells == ()
        assert [one.code for one in offer.conditions] == ["code-differs-here"]
        assert "data.txt" in offer.conditions[0].message
        assert offers.look()["toy"] is offer, "once"


def test_nothing_is_asked_of_a_study_that_has_nothing_left(queued):
    assert taken(queued("worker", "--json"))["finished"] == 4
    (queued.folder / "train.sh").unlink()
    told = taken(queued("worker", "--json"))
    assert (told["finished"], told["warnings"]) == (0, [])
    assert "nothing was left to take" in queued("worker").stdout
    queued.write("study.toml", STUDY.replace("repeats = 2", "repeats = 3"))
    taken(queued("run", "study.toml", "--queue", "--json"))
    assert codes(taken(queued("worker", "--json"), code=1)), "now it is"


def test_a_commit_is_held_against_the_one_of_the_queue(shell):
    def git(*words):
        identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        return subprocess.run(["git", *identity, *words], cwd=shell.folder, check=True, capture_output=True, text=True)

    shell.write("train.sh", ". ./part.sh\n" + TRAIN)
    shell.write("part.sh", "x=1\n")
    shell.write("study.toml", STUDY)
    shell.write(".gitignore", ".isorun\n")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    first = git("rev-parse", "HEAD").stdout.strip()
    taken(shell("run", "study.toml", "--queue", "--json"))
    shell.write("part.sh", "x=2\n")
    git("commit", "-qam", "two")
    told = taken(shell("worker", "--json"), code=1)
    assert codes(told) == ["code-differs-here"]
    assert f"checkout {first[:10]}" in told["warnings"][0]["next"]
    git("checkout", "-q", first)
    shell.write("part.sh", "x=3\n")
    told = taken(shell("worker", "--json"), code=1)
    assert told["warnings"][0]["next"].startswith("bring the same code there")  # it is that commit already
    git("checkout", "-q", "part.sh")
    assert taken(shell("worker", "--json"))["finished"] == 4


def test_data_that_the_command_names_or_earlier_runs_read_has_to_be_here(shell):
    shell.write("data.txt", "1\n")
    shell.write("table.csv", "1\n")
    shell.write("train.py", "open('table.csv').read()\nprint('accuracy: 0.5')\n")
    study = STUDY.replace("--more", "--data data.txt").replace("sh train.sh", "python train.py")
    study = study.replace("repeats = 2", "repeats = 1")
    shell.write("study.toml", study)
    taken(shell("run", "study.toml", "--queue", "--json"))
    (shell.folder / "data.txt").unlink()
    told = taken(shell("worker", "--json"), code=1)
    assert codes(told) == ["data-missing"]
    assert "data.txt is not on this machine" in told["warnings"][0]["message"]
    shell.write("data.txt", "1\n")
    assert taken(shell("worker", "--json"))["finished"] == 2
    shell.write("study.toml", study.replace("repeats = 1", "repeats = 2"))
    taken(shell("run", "study.toml", "--queue", "--json"))
    (shell.folder / "table.csv").unlink()
    told = taken(shell("worker", "--json"), code=1)
    assert codes(told) == ["data-missing"]
    assert "table.csv" in told["warnings"][0]["message"]


def test_what_cannot_begin_here_is_told_once_and_the_rest_is_made(queued):
    python = STUDY.replace("sh train.sh", "python train.py").replace("repeats = 2", "repeats = 1")
    queued.write("train.py", "print('accuracy: 0.5')\n")
    queued.write(
        "study.toml", f'{python}[environments.here]\n[environments.elsewhere]\npython = "/opt/nowhere/bin/python"\n'
    )
    taken(queued("run", "study.toml", "--queue", "--json"))
    told = taken(queued("worker", "--json"))
    assert told["finished"] == 2
    assert codes(told) == ["cannot-begin-here", "cannot-begin-here"]  # one an approach
    assert "/opt/nowhere/bin/python" in told["warnings"][0]["message"]


def test_a_secret_that_was_not_kept_is_told_and_one_of_the_file_is_used(shell):
    shell.write("train.sh", TRAIN)
    secret = ("run", "-n", "2", "--name", "mine", "--queue", "--env", "API_TOKEN=hunter2-hunter2", "--")
    taken(shell(*secret[:-1], "--json", "--", "sh", "train.sh"))
    told = taken(shell("worker", "--json"), code=1)
    assert codes(told) == ["secret-not-kept"]
    in_file = STUDY + '[environments.e]\nenv = { API_TOKEN = "hunter2-hunter2" }\n'
    shell.write("study.toml", in_file)
    taken(shell("run", "study.toml", "--queue", "--json"))
    told = taken(shell("worker", "--json", "--study", "toy"))
    assert told["finished"] == 4
    kept = [path.read_bytes() for path in (shell.folder / ".isorun").rglob("*") if path.is_file()]
    assert not any(b"hunter2" in data for data in kept)


def test_a_study_file_that_was_edited_since_is_carried_out_as_it_was_kept(queued):
    queued.write("study.toml", STUDY.replace("repeats = 2", "repeats = 5"))
    told = taken(queued("worker", "--json"))
    assert (told["finished"], codes(told)) == (4, ["study-edited"])


def test_a_training_that_fails_from_the_start_here_is_left_to_others(shell):
    shell.write("train.sh", "there-is-no-such-program\n")
    shell.write("study.toml", STUDY.replace("repeats = 2", "repeats = 10"))
    taken(shell("run", "study.toml", "--queue", "--json"))
    told = taken(shell("worker", "--json"), code=1)
    assert told["failed"] == 3
    assert codes(told) == ["left-after-failures"]
    assert "17 cells left to others: its first 3 runs here all failed" in told["warnings"][0]["message"]
    assert told["studies"]["toy"]["left"] == 17
    assert "exit code 127" in told["warnings"][0]["message"]
    shell.write("train.sh", TRAIN)
    told = taken(shell("worker", "--json", "--anyway"))  # those that failed are left as they are
    assert (told["finished"], codes(told)) == (17, ["code-differs-here", "failed-before"])
    assert taken(shell("worker", "--json", "--failed"))["finished"] == 3


def test_retries_are_those_of_the_study_and_count_for_all_workers_together(shell):
    shell.write("train.sh", "printf x >> tries\nexit 1\n")
    shell.write("study.toml", STUDY.replace("repeats = 2", "repeats = 1") + "[policy]\nretries = 1\n")
    taken(shell("run", "study.toml", "--queue", "--json"))
    told = taken(shell("worker", "--json"), code=1)
    assert told["failed"] <= 4
    taken(shell("worker", "--json"), code=1 if told["failed"] < 4 else 0)
    told = taken(shell("worker", "--json"))
    assert (told["failed"], codes(told)) == (0, ["failed-before"])
    assert (shell.folder / "tries").read_text() == "xxxx"


def test_fail_fast_ends_the_study_and_not_the_worker(queued):
    queued.write("bad.sh", "exit 1\n")
    bad = STUDY.replace('"toy"', '"bad"').replace("train.sh", "bad.sh").replace("repeats = 2", "repeats = 9")
    queued.write("bad.toml", f'{bad}[policy]\non_failure = "fail-fast"\n')
    taken(queued("run", "bad.toml", "--queue", "--json"))
    told = taken(queued("worker", "--json"), code=1)
    assert (told["finished"], told["failed"]) == (4, 1)
    assert "its policy is fail-fast" in told["warnings"][-1]["message"]


def test_searches_and_decisions_stay_with_their_commands(shell):
    pytest.importorskip("optuna")
    shell.write("train.sh", TRAIN)
    search = STUDY.replace('"toy"', '"found"').replace("repeats = 2", "repeats = 1")
    search = search.partition("[approaches.b]")[0].replace("train.sh", "train.sh {config.lr}")
    shell.write(
        "s.toml",
        search
        + textwrap.dedent("""
        [metrics.accuracy]
        direction = "higher"
        [search]
        trials = 2
        space.lr = { float = [0.1, 1.0] }
        """),
    )
    refused = shell("run", "s.toml", "--queue")
    assert refused.returncode == 1
    assert "cannot be left to workers" in refused.stderr
    assert shell("run", "s.toml").returncode == 0, shell("run", "s.toml").stderr
    told = taken(shell("worker", "--json"))
    assert codes(told) == ["left-to-search"]
    shell.write("study.toml", STUDY.replace("repeats = 2", "repeats = 8"))
    assert shell("decide", "study.toml", "--max-runs", "8").returncode in (0, 3)
    shell.write("study.toml", STUDY.replace("repeats = 2", "repeats = 9"))
    taken(shell("run", "study.toml", "--queue", "--json"))
    told = taken(shell("worker", "--json"))
    assert codes(told) == ["left-to-search", "left-to-decision"]
    assert told["finished"] == 0
    assert taken(shell("worker", "--json", "--study", "toy"))["finished"] >= 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("worker", "nowhere"), "there is no store nowhere"),
        (("worker", "--watch", "--idle", "5m"), "one of them"),
        (("worker", "--idle", "soon"), "it is not a duration"),
        (("worker", "--folder", "a", "--folder", "b"), "several folders"),
        (("run", "study.toml", "--queue", "--dry-run"), "--dry-run does not go with it"),
        (("run", "study.toml", "--queue", "--executor", "ray"), "--executor does not go with it"),
    ],
)
def test_words_that_do_not_fit_are_refused(queued, words, said):
    done = queued(*words)
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_an_idle_worker_is_seen_waits_for_more_and_ends_when_asked(queued):
    command = [sys.executable, "-m", "isorun", "worker", "--watch", "--json"]
    worker = subprocess.Popen(command, cwd=queued.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert wait_for(lambda: json.loads(queued("status", "toy", "--json").stdout)["finished"] == 4)
        [seen] = json.loads(queued("status", "--json").stdout)["workers"]
        assert (seen["pid"], seen["runs"]) == (worker.pid, [])
        assert f"worker {worker.pid} on " in queued("status").stdout
        taken(queued("run", "-n", "1", "--name", "late", "--queue", "--json", "--", "sh", "train.sh"))
        assert wait_for(lambda: json.loads(queued("status", "late", "--json").stdout)["finished"] == 1)
    finally:
        worker.terminate()
        told, _ = worker.communicate(timeout=30)
    assert (worker.returncode, json.loads(told)["finished"]) == (130, 5)
    assert json.loads(queued("status", "--json").stdout)["workers"] == []


def wait_for(condition, seconds=30.0):
    import time

    deadline = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < deadline:
        time.sleep(0.2)
    return met


def test_cells_whose_runs_are_in_a_clusters_queue_are_left_to_it(queued):
    study = isorun.Study.load(queued.folder / "study.toml")
    with open_store(str(queued.folder / ".isorun")) as store:
        store.claim(cells_of(study, store.key)[0].id).leave()
    told = taken(queued("worker", "--json"))
    assert (told["finished"], codes(told), told["studies"]["toy"]["left"]) == (3, ["in-slurm"], 1)
    (held,) = json.loads(queued("status", "toy", "--json").stdout)["running"]
    assert held["left"]
    freed = "toy: 0 ended and recorded, 1 in a queue that cannot be seen from here, free to be made again\n"
    assert queued("stop", "study.toml").stdout == freed
    assert taken(queued("worker", "--json"))["finished"] == 1
