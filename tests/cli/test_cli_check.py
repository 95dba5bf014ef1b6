"""isorun check as people type it: a real regression, a harmless change, and obvious mistakes."""

import json
import shutil

import pytest

from isorun.cli.main import main
from typed_commands import typed

TRAIN = "import random\nprint('test_acc', round({centre} + random.gauss(0, 0.004), 6))\n"
STUDY = """
name = "small"
repeats = {repeats}
[approaches.net]
command = "python train.py"
[metrics.test_acc]
direction = "higher"
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A folder with a study whose main branch has been run."""
    folder = tmp_path_factory.mktemp("check")
    (folder / "train.py").write_text(TRAIN.format(centre=0.9))
    (folder / "study.toml").write_text(STUDY.format(repeats=5))
    made = typed("run", "study.toml", "--store", "main-store", cwd=folder)
    assert made.returncode == 0, made.stderr
    return folder


@pytest.fixture
def inside(project, monkeypatch):
    monkeypatch.chdir(project)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    return project


def test_a_real_regression_exits_with_3_and_leaves_a_comment_and_a_harmless_change_passes(project, shell):
    shutil.copytree(project, shell.folder, dirs_exist_ok=True)
    shell.write("train.py", TRAIN.format(centre=0.85))
    summary = shell.write("summary.md", "before\n")
    worse = shell(
        *("check", "study.toml", "--baseline", "main-store", "--margin", "0.5"),
        *("--markdown", "comment.md", "--step-summary"),
        env={"GITHUB_STEP_SUMMARY": str(summary)},
    )
    assert worse.returncode == 3, worse.stderr
    assert worse.stdout.startswith("Worse: test_acc of small is worse than that of the baseline main-store by")
    assert "Changed since the baseline: train.py." in worse.stdout
    comment = (shell.folder / "comment.md").read_text()
    assert comment.startswith("<!-- isorun check -->\n\n### ❌ Worse: test\\_acc of small")
    assert "Repeat it: `isorun check study.toml --baseline main-store --margin 0.5`" in comment
    assert summary.read_text() == f"before\n{comment}"

    shell.write("train.py", TRAIN.format(centre=0.9) + "# a comment\n")
    stale = shell("check", "study.toml", "--baseline", "main-store", "--margin", "2")
    assert stale.returncode == 1
    assert "were not made by the code as it is now" in stale.stderr
    fine = shell("check", "study.toml", "--baseline", "main-store", "--margin", "2", "--store", "new", "--json")
    assert fine.returncode == 0, fine.stderr
    told = json.loads(fine.stdout)
    assert (told["verdict"], told["margin_unit"]) == ("not worse", "points")

    itself = shell("check", "study.toml", "--baseline", "new", "--store", "new")
    assert (itself.returncode, "baseline's own" in itself.stderr) == (1, True)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("study.toml",), 2, "--baseline"),
        (("study.toml", "--baseline", "mian-store"), 1, "there is no baseline 'mian-store'"),
        (("study.toml", "--baseline", "."), 1, "a folder without a store"),
        (("study.toml", "--baseline", "train.py"), 1, "a file of no kind that is known"),
        (("study.toml", "--baseline", "main-store", "--margin", "much"), 2, "a number is needed"),
        (("study.toml", "--baseline", "main-store", "--margin", "-1"), 1, "a drop that does not matter"),
        (("study.toml", "--baseline", "main-store", "--metric", "val_acc"), 1, "no run left the metric 'val_acc'"),
        (("study.toml", "--baseline", "main-store", "--metric", "test_acc:lower"), 1, "higher in the baseline"),
        (("study.toml", "--baseline", "main-store", "--where", "level=fixed"), 1, "level = fixed"),
        (("study.toml", "--baseline", "main-store", "--step-summary"), 2, "GITHUB_STEP_SUMMARY is not set"),
        (("study.toml", "--baseline", "main-store", "--baseline-study", "smal"), 1, "did you mean 'small'?"),
        (("study.toml", "--baseline", "main-store", "--no-run"), 1, "nothing has been recorded"),
        (("nothing.toml", "--baseline", "main-store"), 1, "nothing.toml"),
        (("study.toml", "--baseline", "postgresql://lab:secret@127.0.0.1:1/x"), 1, "127.0.0.1"),
    ],
)
def test_obvious_mistakes_are_told_without_a_run(inside, capsys, words, code, said):
    try:
        ended = main(["check", *words])
    except SystemExit as usage:
        ended = usage.code
    told = capsys.readouterr()
    assert (ended, said in told.err, "secret" in told.err + told.out) == (code, True, False), told.err
    assert not (inside / ".isorun").exists()
