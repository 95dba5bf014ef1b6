"""isorun audit as people type it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from isorun import workflow
from isorun.cli.main import main
from isorun.errors import StudyError
from isorun.study.cells import cells_of
from isorun.study.design import Study, adhoc_study, only_looked_at
from isorun.worker.levels import AUDIT

TRAIN = """\
import os, random
import time

def main():
    weight = random.gauss(0, 1)
    for epoch in range(1000):
        weight -= 0.1 * weight * random.random()
        time.sleep(0.01)
    print("loss:", weight)

if __name__ == "__main__":
    main()
"""
HELD = TRAIN.replace("def main():\n", "def main():\n    random.seed(0)\n")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(TRAIN)
    return tmp_path


def test_the_verdict_comes_first_and_the_exit_code_says_that_something_is_open(here, capsys):
    assert main(["audit", "--static", "--", "python", "train.py"]) == 3
    told = " ".join(capsys.readouterr().out.split())
    assert told.startswith("train.py leaves 1 source of nondeterminism open, 1 of them for sure: unseeded-generator")
    assert "train.py:5" in told
    assert "1. isorun audit --fix -- python train.py | patch -p1" in told


def test_nothing_open_is_exit_code_0(here, capsys):
    (here / "train.py").write_text(HELD)
    assert main(["audit", "--static", "--", "python", "train.py"]) == 0
    assert "leaves nothing open that could be seen" in capsys.readouterr().out


def test_json_has_the_findings_with_their_keys(here, capsys):
    main(["audit", "--static", "--json", "--", "python", "train.py"])
    told = json.loads(capsys.readouterr().out)
    (finding,) = told["findings"]
    assert set(finding) == {"kind", "file", "line", "why", "fix", "sure"}
    assert (finding["kind"], finding["file"], finding["line"], finding["sure"]) == (
        *("unseeded-generator", "train.py", 5),
        "high",
    )
    assert told["effective"] == {}


def test_a_patch_makes_two_runs_agree(here, capsys):
    main(["audit", "--static", "--fix", "--", "python", "train.py"])
    (here / "train.py").write_text(TRAIN.replace("time.sleep(0.01)", "pass"))
    (here / "fix").write_text(capsys.readouterr().out)
    subprocess.run(["git", "apply", "-p1", "fix"], cwd=here, check=True)
    runs = [subprocess.run([sys.executable, "train.py"], capture_output=True, check=True).stdout for _ in range(2)]
    assert runs[0] == runs[1]
    assert runs[0].startswith(b"loss:")


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ([], 2, "a command is needed"),
        (["--", "python", "missing.py"], 1, "there is no script missing.py"),
        (["--", "sh", "train.sh"], 2, "names no Python script"),
        (["--fix", "--json", "--", "python", "train.py"], 2, "--fix prints a patch"),
        (["--seconds", "0", "--", "python", "train.py"], 2, "above 0"),
    ],
)
def test_what_does_not_fit_is_one_message(here, capsys, words, code, told):
    assert main(["audit", *words]) == code
    assert told in capsys.readouterr().err


@pytest.mark.long
def test_a_real_run_is_stopped_and_confirms_what_the_source_says(shell):
    shell.write("train.py", TRAIN)
    done = shell("audit", "--seconds", "0.5", "--json", "--", "python", "train.py")
    assert done.returncode == 3, done.stderr
    told = json.loads(done.stdout)
    assert [(item["kind"], item["line"], item["sure"]) for item in told["findings"]] == [
        ("unseeded-generator", 5, "high")
    ]
    assert "stopped after 0.5 s" in told["run"]
    assert told["effective"]["audit"]["events"][0]["name"] == "random.gauss"
    assert told["effective"]["python"]["hash_randomization"]
    assert [path.name for path in shell.folder.iterdir()] == ["train.py"]


@pytest.mark.long
def test_a_training_that_fails_leaves_what_the_source_says(shell):
    shell.write("train.py", "import random\nprint(1 / 0)\nrandom.random()\n")
    done = shell("audit", "--", "python", "train.py")
    assert done.returncode == 3
    assert "which failed and so tells nothing" in " ".join(done.stdout.split())
    assert "train.py:3" in done.stdout


EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "words"),
    [("digits", ["--epochs", "1"]), ("search", ["--lr", "0.1", "--units", "8", "--activation", "tanh"])],
)
def test_patched_examples_still_run_and_agree_bit_by_bit(example, words, tmp_path):
    pytest.importorskip("torch")
    shutil.copy(EXAMPLES / example / "train.py", tmp_path)
    command = [sys.executable, "train.py", *words]

    def results(name):
        study = adhoc_study([command], name=name, repeats=2, folder=tmp_path)
        records = workflow.run(study, store=str(tmp_path / name), launch="fresh").records
        assert [str(record.state) for record in records] == ["finished"] * 2
        return [
            (dict(record.digests), {key: list(item.values) for key, item in record.series.items()})
            for record in records
        ]

    before = results("before")
    assert before[0] != before[1]
    patch = workflow.audit(command, static=True, folder=tmp_path).patch
    (tmp_path / "fix").write_text(patch)
    subprocess.run(["git", "apply", "-p1", "fix"], cwd=tmp_path, check=True)
    after = results("after")
    assert after[0] == after[1]


@pytest.mark.slow
def test_a_look_at_torch_sees_draws_loaders_and_operations_and_its_patch_holds_the_weights(shell):
    pytest.importorskip("torch")
    shell.write(
        "train.py",
        """\
import hashlib
import torch
from torch import nn

model = nn.Linear(4, 1)
torch.manual_seed(3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.rand(64, 4), batch_size=8, shuffle=True)
for epoch in range(50):
    for x in loader:
        sums = torch.zeros(8, 4).index_add_(0, torch.arange(8), x)
        optimizer.zero_grad()
        (model(sums) ** 2).mean().backward()
        optimizer.step()
with open("digests", "a") as file:
    print(hashlib.sha256(model.weight.detach().numpy().tobytes()).hexdigest(), file=file)
""",
    )
    done = shell("audit", "--steps", "5", "--json", "--", sys.executable, "train.py")
    told = json.loads(done.stdout)
    assert "5 steps" in told["run"]
    assert {"late-seed"} == {item["kind"] for item in told["findings"] if item["sure"] == "high"}
    events = {(event["what"], event["name"]) for event in told["effective"]["audit"]["events"]}
    assert {("seed", "torch.manual_seed"), ("operation", "index_add_")} <= events
    assert ("loader", "torch.utils.data.DataLoader") in events
    shell.write("fix", shell("audit", "--static", "--fix", "--", "python", "train.py").stdout)
    subprocess.run(["git", "apply", "-p1", "fix"], cwd=shell.folder, check=True)
    assert not (shell.folder / "digests").exists()  # the look was over before the end
    for _ in range(2):
        subprocess.run([sys.executable, "train.py"], cwd=shell.folder, check=True)
    whole = shell("audit", "--steps", "100000", "--seconds", "100", "--json", "--", sys.executable, "train.py")
    assert "to its end" in json.loads(whole.stdout)["run"]
    digests = (shell.folder / "digests").read_text().split()
    assert len(digests) == 3
    assert len(set(digests)) == 1  # also of the run that was looked at


def test_an_audit_is_asked_of_its_own_run_and_not_of_the_whole_process(here, monkeypatch):
    seen = []

    def refused(study, **_):
        seen.append((study, dict(os.environ)))
        raise StudyError("enough was seen")

    monkeypatch.setattr(workflow, "run", refused)
    with pytest.raises(StudyError, match="enough"):
        workflow.audit(["python", "train.py"], seconds=2, steps=5, folder=here)
    ((study, environ),) = seen
    assert AUDIT not in environ
    (looked_at,) = cells_of(study)
    (whole,) = cells_of(adhoc_study([["python", "train.py"]], folder=here))
    assert looked_at.environment_content["look"].startswith("2 5")
    assert looked_at.id != whole.id


def test_a_whole_run_inside_an_audit_is_whole_and_one_that_is_cut_says_so(here, monkeypatch):
    monkeypatch.setenv(AUDIT, "0.2 1")
    (here / "train.py").write_text("import time; time.sleep(0.4); print('loss: 0.5')")
    study = adhoc_study([["python", "train.py"]], folder=here)
    (whole,) = workflow.run(study, store=here / "store", launch="fresh").records
    assert (whole.results, whole.notes) == ({"loss": 0.5}, ())
    (cut,) = workflow.run(only_looked_at(study, "0.1 1"), store=here / "store", launch="fresh").records
    assert [note.code for note in cut.notes] == ["ended-early"]
    assert cut.cell.id != whole.cell.id


def test_no_study_file_asks_to_be_only_looked_at():
    with pytest.raises(StudyError, match="look"):
        Study("s", approaches={"a": "python train.py"}, environments={"default": {"look": "2 20"}})


def test_a_run_that_failed_is_no_run_that_leaves_nothing_open(here, capsys):
    (here / "train.py").write_text("import nosuchmodule\n")
    (here / "requirements.txt").write_text("nosuchmodule==1\n")
    assert main(["audit", "--", sys.executable, "train.py"]) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert told.startswith("What train.py leaves open is not known: its run failed")
    assert "1. mend what ends it: " in told
    assert told.count("--python") == told.count("isorun run --python"), "audit has no such option"
