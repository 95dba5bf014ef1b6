"""isorun replay and replicate as people type them, and comparing with stored runs."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

TRAIN = """
import random, sys
import isorun
base = float(sys.argv[1])
value = 0.0
for epoch in range(1, 4):
    value = base + random.random() / 20
    isorun.log(epoch=epoch, loss=1 - value, epoch_seconds=random.SystemRandom().random())
isorun.result(test_acc=value)
isorun.digest("weights.final", [value])
"""
STUDY = """
name = "toy"
levels = ["fixed-seed", "default"]
seeds = [1, 2, 3]
repeats = 2
[approaches.toy]
command = "python train.py {config.base}"
[configs.small]
base = 0.8
[metrics.test_acc]
direction = "higher"
"""


def git(folder, *words):
    command = ["git", "-c", "user.name=ann", "-c", "user.email=ann@lab", "-C", str(folder), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A study that was run and packed by somebody: its folder, and the package with and without its files."""
    from cli.conftest import Shell

    shell = Shell(tmp_path_factory.mktemp("lab"))
    shell.write("train.py", TRAIN)
    shell.write("study.toml", STUDY)
    git(shell.folder, "init", "-q")
    git(shell.folder, "add", "-A")
    git(shell.folder, "commit", "-qm", "first")
    assert shell("run", "study.toml").returncode == 0
    for name, words in (("toy.isorun", ("--snapshot",)), ("reference.isorun", ())):
        done = shell("pack", "study.toml", "-o", name, "--no-sign", *words)
        assert done.returncode == 0, done.stderr
    return shell


@pytest.fixture
def own(lab, shell):
    """The study and its store in a folder of the test's own."""
    shutil.copytree(lab.folder, shell.folder, dirs_exist_ok=True, symlinks=True)
    return shell


@pytest.fixture
def other(lab, shell):
    """The packages alone, with somebody else."""
    for name in ("toy.isorun", "reference.isorun"):
        shutil.copy(lab.folder / name, shell.folder)
    return shell


def a_run(shell, level="fixed-seed"):
    from isorun.store.folder import FolderStore

    with FolderStore(shell.folder / ".isorun") as store:
        return next(record.run_id for record in store.records() if record.cell.level == level)


def test_a_run_is_replayed_to_the_last_bit_and_is_a_run_of_no_study(own):
    run = a_run(own)
    before = json.loads(own("report", "study.toml", "--json").stdout)
    told = json.loads(own("replay", run, "--json").stdout)
    assert (told["identical"], told["first_difference"], told["compared"]["weights"]) == (True, None, True)
    after = json.loads(own("report", "study.toml", "--json").stdout)
    assert before["groups"] == after["groups"]
    assert json.loads((own.folder / ".isorun" / "replays" / f"{told['replay']}.json").read_text())["run"] == run


def test_at_level_default_a_replay_differs_and_says_where_first(own):
    run = a_run(own, "default")
    done = own("replay", run)
    assert done.returncode == 3
    text = done.stdout.replace("\n  ", " ")
    assert "differs. First: loss at step 1 (row 1):" in text
    assert "nothing-fixed" in text or "at level default no seed is fixed" in text
    assert "epoch_seconds" not in text


def test_code_that_changed_is_refused_with_how_to_get_it_or_told_as_replaced(own):
    run = a_run(own)
    own.write("train.py", TRAIN.replace("/ 20", "/ 10"))
    done = own("replay", run, "--code", ".")
    assert done.returncode == 1
    assert "its code cannot be had here" in done.stderr
    assert "train.py: sha256" in done.stderr
    assert f"isorun replay {run} --folder NEW puts the commit" in done.stderr
    done = own("replay", run, "--anyway", "--code", ".")
    assert done.returncode == 3
    assert "First: code.sources" in done.stdout.replace("\n  ", " ")
    assert "replaced" in done.stdout
    done = own("replay", run, "--folder", "then", "--code", ".")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"Identical bit by bit: {run} ")
    assert "/ 20" in (own.folder / "then" / "train.py").read_text()


def test_a_run_that_is_not_there_or_did_not_finish_is_a_plain_error(own):
    assert own("replay", "ffff").returncode == 1
    own.write("bad.py", "raise SystemExit(3)\n")
    own("run", "-n", "1", "--", "python", "bad.py")
    from isorun.store.folder import FolderStore

    with FolderStore(own.folder / ".isorun") as store:
        failed = next(record.run_id for record in store.records() if record.state == "failed")
    done = own("replay", failed)
    assert done.returncode == 1
    assert "did not finish" in done.stderr
    assert "Traceback" not in done.stderr


def test_another_interpreter_without_the_packages_is_refused(own):
    run = a_run(own)
    done = own("replay", run, "--python", "/nowhere/python")
    assert done.returncode == 1
    assert "does not answer" in done.stderr


def test_an_interpreter_that_a_command_names_by_its_path_is_replaced_where_it_is_not_there(shell):
    there = shell.folder / "there" / "python3"
    there.parent.mkdir()
    there.symlink_to(sys.executable)
    shell.write("train.py", TRAIN)
    assert shell("run", "-n", "1", "--level", "fixed-seed", "--", str(there), "train.py", "0.8").returncode == 0
    assert shell("pack", "-o", "toy.isorun", "--no-sign").returncode == 0
    there.unlink()
    again = json.loads(shell("replay", a_run(shell), "--json").stdout)
    assert again["identical"]
    asked = shell("replay", a_run(shell), "--python", "/nowhere/python")
    assert "the interpreter /nowhere/python does not answer" in asked.stderr
    seen = shell("replicate", "toy.isorun", "-n", "1")
    assert "command  python train.py 0.8\n" in seen.stderr
    told = replicated(shell, "toy.isorun", "-n", "1", "--python", sys.executable)
    assert told["groups"][0]["outcome"] == "same bits"


def test_a_run_of_a_package_is_replayed_from_it_alone(other, lab):
    run = a_run(lab)
    done = other("replay", run, "--store", "toy.isorun")
    assert done.returncode == 2
    assert "--yes" in done.stderr
    assert "python train.py" in done.stderr
    done = other("replay", run, "--store", "toy.isorun", "--yes")
    assert done.returncode == 0, done.stderr
    assert (other.folder / f"replay-{run}" / "train.py").is_file()
    assert (other.folder / ".isorun").is_dir()


def replicated(shell, *words, code=0):
    done = shell("replicate", *words, "--yes", "--json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def test_a_package_is_repeated_from_it_alone_in_a_fresh_folder(other):
    told = replicated(other, "toy.isorun", "--where", "level=fixed-seed")
    assert (told["verdict"], told["bit_by_bit"], told["runs_made"]) == ("repeated", True, 3)
    assert told["groups"][0]["same_bits"] == {"seeds": 3, "same": 3}
    assert [item["kind"] for item in told["replaced"]] == []
    again = replicated(other, "toy.isorun", "--where", "level=fixed-seed")
    assert (again["verdict"], again["runs_made"]) == ("repeated", 0)
    assert json.loads((other.folder / "toy-replication" / "result.json").read_text())["verdict"] == "repeated"


def test_where_nothing_is_fixed_the_spread_is_asked(other):
    told = replicated(other, "toy.isorun", "--where", "level=default", "-n", "6", "--margin", "5")
    assert (told["verdict"], told["runs_made"]) == ("repeated", 6)
    assert told["groups"][0]["outcome"] == "equivalent"
    assert told["bit_by_bit"] is False
    done = other("replicate", "toy.isorun", "--where", "level=default", "-n", "2", "--folder", "two", "--yes")
    assert done.returncode == 0
    assert done.stdout.startswith("Undecided: ")
    assert "a verdict takes 5" in done.stdout.replace("\n  ", " ")


def test_a_commit_needs_its_repository_and_is_taken_from_it(other, lab):
    done = other("replicate", "reference.isorun", "--yes")
    assert done.returncode == 1
    assert "no repository with it is at hand" in done.stderr
    told = replicated(other, "reference.isorun", "--code", str(lab.folder), "--where", "level=fixed-seed")
    assert told["verdict"] == "repeated"
    assert git(other.folder / "reference-replication" / "code", "rev-parse", "HEAD") == git(
        lab.folder, "rev-parse", "HEAD"
    )


def test_other_code_is_refused_and_with_anyway_its_result_is_judged(other):
    assert replicated(other, "toy.isorun", "--where", "level=default", "-n", "5", "--margin", "1")["runs_made"] == 5
    code = other.folder / "toy-replication" / "code" / "train.py"
    code.write_text(TRAIN.replace("base +", "base - 0.3 +"))
    shutil.rmtree(other.folder / "toy-replication" / ".isorun")
    words = ("toy.isorun", "--where", "level=default", "-n", "5", "--margin", "1")
    done = other("replicate", *words, "--yes")
    assert done.returncode == 1
    assert "its code cannot be had here" in done.stderr
    told = replicated(other, *words, "--anyway", code=3)
    assert told["verdict"] == "not"
    assert told["replaced"][0]["kind"] == "code"
    assert [one["code"] for one in told["warnings"] if one["code"] == "replaced"]


def test_a_package_is_not_run_unless_somebody_says_so(other):
    done = other("replicate", "toy.isorun")
    assert done.returncode == 2
    assert "which may come from anybody" in done.stderr
    assert "python train.py 0.8" in done.stderr
    assert not (other.folder / "toy-replication").exists()


def test_runs_of_the_package_are_not_taken_for_new_ones(lab, other):
    words = ("toy.isorun", "--where", "level=default", "-n", "6", "--folder", "again", "--yes")
    done = other("replicate", *words, "--store", str(lab.folder / ".isorun"))
    assert done.returncode == 1
    assert "holds the runs of the package itself (6 runs)" in done.stderr


def test_another_plan_is_refused_where_one_is_kept(other):
    replicated(other, "toy.isorun", "--where", "level=fixed-seed", "-n", "1")
    done = other("replicate", "toy.isorun", "--where", "level=fixed-seed", "-n", "3", "--yes")
    assert done.returncode == 1
    assert "declared otherwise" in done.stderr
    kept = other.folder / "toy-replication" / "replication.json"
    declared = json.loads(kept.read_text())
    kept.write_text(json.dumps({**declared, "selection": "best-loss"}))
    done = other("replicate", "toy.isorun", "--where", "level=fixed-seed", "-n", "1", "--yes")
    assert "selection best-loss" in done.stderr, "judged at another epoch"
    (other.folder / "used").mkdir()
    other.write("used/mine.txt", "x")
    done = other("replicate", "toy.isorun", "--folder", "used", "--yes")
    assert "used is not empty" in done.stderr


READS = """
import os, random
assert not os.path.exists("left"), "another run worked here"
open("left", "w").close()
print(f"test_acc {0.8 + random.random() / 20 + len(open('data/tiny/x.csv').read()) / 1000:.4f}")
"""


def test_data_are_found_by_the_end_of_their_path_and_a_refusal_leaves_the_folder_free(shell):
    shell.write("train.py", READS)
    shell.write("study.toml", STUDY.replace(', "default"', ""))
    (shell.folder / "data" / "tiny").mkdir(parents=True)
    shell.write("data/tiny/x.csv", "1,2\n")
    assert shell("run", "study.toml", "--isolate").returncode == 0
    assert shell("pack", "study.toml", "-o", "reads.isorun", "--snapshot", "--no-sign").returncode == 0
    (shell.folder / "data").rename(shell.folder / "moved")
    for name, content in (("wrong", "3,4\n"), ("kept", "1,2\n")):
        (shell.folder / name / "tiny").mkdir(parents=True)
        shell.write(f"{name}/tiny/x.csv", content)
    done = shell("replicate", "reads.isorun", "-n", "1", "--yes", "--data", "wrong")
    assert done.returncode == 1
    assert "FOLDER/data/tiny/x.csv or FOLDER/tiny/x.csv or FOLDER/x.csv" in done.stderr
    told = replicated(shell, "reads.isorun", "-n", "2", "--data", "kept")
    assert (told["verdict"], told["runs_made"]) == ("repeated", 2)
    assert told["groups"][0]["why"] == "2 seeds run again gave the same numbers; weights were not seen"
    assert "weights-unknown" in [one["code"] for one in told["warnings"]]


def test_mistakes_are_plain_errors(other):
    for words in (
        ("none.isorun",),
        ("toy.isorun", "--where", "level=none"),
        ("toy.isorun", "--where", "colour=red"),
        ("toy.isorun", "--metric", "none"),
        ("toy.isorun", "-n", "0"),
        ("toy.isorun", "--max-runs", "3"),
        ("toy.isorun", "--selection", "none"),
        ("toy.isorun", "--margin", "0"),
    ):
        done = other("replicate", *words, "--yes")
        assert done.returncode == 1, words
        assert "Traceback" not in done.stderr
        assert "isorun: " in done.stderr
    assert [path.name for path in other.folder.iterdir() if path.is_dir()] == []


def test_stored_runs_enter_a_verdict_as_units(own):
    done = own("compare", "study.toml", "--baseline", "toy.isorun", "--where", "level=default")
    assert done.returncode == 1
    assert "are the baseline's own" in done.stderr
    own.write(
        "study.toml",
        STUDY.replace("base = 0.8", "base = 0.6")
        .replace("[configs.small]", "[configs.less]")
        .replace('"toy"', '"less"', 1),
    )
    assert own("run", "study.toml", "--store", "new").returncode == 0
    words = ("compare", "study.toml", "--store", "new", "--where", "level=default", "--baseline", "toy.isorun")
    told = json.loads(own(*words, "--json").stdout)
    assert told["b"] == "toy small at level default (toy.isorun)"
    assert (told["verdict"], told["units_a"], told["units_b"]) == ("B better", 6, 6)
    done = own("compare", "study.toml", "--store", "new", "--baseline", "toy.isorun")
    assert "which group of" in done.stderr
    done = own(
        "compare",
        "study.toml",
        "--store",
        "new",
        "--where",
        "level=default",
        "--baseline",
        "toy.isorun",
        "--baseline-where",
        "level=fixed-seed",
    )
    assert done.returncode == 1
    assert "different levels" in done.stderr
    done = own(*words, "--baseline-where", "level=fixed-seed", "--anyway", "--json")
    assert "other-level" in [one["code"] for one in json.loads(done.stdout)["warnings"]]
    own.write("base.csv", "level,test_acc\n" + "".join(f"default,{0.8 + k / 100}\n" for k in range(6)))
    told = json.loads(
        own(
            "compare", "study.toml", "--store", "new", "--where", "level=default", "--baseline", "base.csv", "--json"
        ).stdout
    )
    assert told["verdict"] == "B better"
    assert "baseline-unknown" in [one["code"] for one in told["warnings"]]
    assert own("compare", "study.toml", "--anyway").returncode == 2
    done = own(*words, "--value", "nothing")
    assert done.returncode == 1


@pytest.mark.parametrize("path", ["../../evil.py", "/tmp/evil-of-a-package.py", ".git/hooks/post-checkout", "nul.py"])
def test_a_package_that_writes_elsewhere_is_refused_before_anything_of_it_runs(path, lab, shell):
    from isorun.packages.reading import open_package
    from isorun.share.code import Code
    from isorun.share.packing import Content, write_package

    content = b"raise SystemExit"
    with open_package(lab.folder / "toy.isorun") as package:
        study, records = package.study(), list(package.records())
    evil = Code(contents={"code/file-00000": content})
    evil.files.append({"path": path, "sha256": hashlib.sha256(content).hexdigest(), "member": "code/file-00000"})
    write_package(Content(study, records, evil), shell.folder / "evil.isorun")
    done = shell("replicate", "evil.isorun", "--yes", "--folder", "deep/new")
    assert done.returncode == 1
    assert "a path in the package cannot be written to" in done.stderr
    assert sorted(path.name for path in shell.folder.rglob("*") if path.is_file()) == ["evil.isorun"]


@pytest.mark.slow
def test_looks_after_every_run_go_on_until_it_is_clear_or_the_maximum_is_made(other):
    words = ("toy.isorun", "--where", "level=default", "-n", "5", "--max-runs", "8")
    told = replicated(other, *words, "--margin", "0.01", "--folder", "tight")
    assert (told["verdict"], told["runs_made"], told["max_runs"]) == ("undecided", 8, 8)
    assert told["groups"][0]["about_more_runs"] is None
    told = replicated(other, *words, "--margin", "20", "--folder", "wide")
    assert (told["verdict"], told["runs_made"]) == ("repeated", 5)


@pytest.mark.slow
@pytest.mark.alone
def test_a_replication_that_is_killed_goes_on_where_it_was(other, lab):
    slow = other.folder / "slow"
    slow.mkdir()
    (slow / "train.py").write_text(TRAIN + "import time\ntime.sleep(0.4)\n")
    (slow / "study.toml").write_text(STUDY.replace('levels = ["fixed-seed", "default"]', 'levels = ["fixed-seed"]'))
    from cli.conftest import Shell

    maker = Shell(slow)
    assert maker("run", "study.toml").returncode == 0
    assert maker("pack", "study.toml", "-o", str(other.folder / "slow.isorun"), "--no-sign").returncode == 0
    command = [sys.executable, "-m", "isorun", "replicate", "slow.isorun", "--yes", "--json"]
    process = subprocess.Popen(
        command, cwd=other.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    inbox = other.folder / "slow-replication" / ".isorun"
    until = time.monotonic() + 30
    while time.monotonic() < until and not list(inbox.glob("inbox/*")) and process.poll() is None:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    told = replicated(other, "slow.isorun")
    assert told["verdict"] == "repeated"
    assert 0 < told["runs_made"] <= 3
