"""The examples run, and the README's study is the one in the example."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_runs(name):
    command = [sys.executable, str(ROOT / "examples" / name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.long
def test_the_demo_study_runs_in_short(tmp_path):
    for name in ("study.toml", "train.py"):
        (tmp_path / name).write_bytes((ROOT / "examples" / "digits" / name).read_bytes())
    study = tmp_path / "study.toml"
    shorter = study.read_text().replace("repeats = 8", "repeats = 2").replace("train.py", "train.py --epochs 1")
    study.write_text(shorter.replace('"default", ', ""))

    def isorun(*words):
        command = [sys.executable, "-m", "isorun", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)

    ran = isorun("run", "study.toml")
    assert ran.returncode == 0, ran.stderr
    report = isorun("report", "study.toml", "--html", "report.html")
    assert report.returncode == 0, report.stderr
    assert "all 2 runs ended with the same weights, bit for bit" in " ".join(report.stdout.split())
    assert (tmp_path / "report.html").stat().st_size > 10_000


@pytest.mark.long
def test_the_search_runs_in_short(tmp_path):
    for name in ("search.toml", "train.py"):
        (tmp_path / name).write_bytes((ROOT / "examples" / "search" / name).read_bytes())
    study = tmp_path / "search.toml"
    study.write_text(study.read_text().replace("trials = 20", "trials = 3").replace("repeats = 5", "repeats = 1"))
    command = [sys.executable, "-m", "isorun", "run", "search.toml"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "3 trials (3 finished)" in ran.stdout


def test_the_readme_shows_the_study_of_the_demo():
    shown = re.search(r"```toml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert shown
    declared = tomllib.loads((ROOT / "examples" / "digits" / "study.toml").read_text())
    in_readme = tomllib.loads(shown.group(1))
    for key in ("name", "levels", "repeats", "approaches", "configs"):
        assert in_readme[key] == declared[key]


@pytest.mark.slow
def test_the_streams_example_runs_in_short(tmp_path):
    for name in ("streams.toml", "train.py"):
        (tmp_path / name).write_bytes((ROOT / "examples" / "streams" / name).read_bytes())
    study = tmp_path / "streams.toml"
    shorter = study.read_text().replace(
        '["all", "none", "weights", "order", "dropout", "augmentation"]', '["all", "order"]'
    )
    study.write_text(shorter.replace("4, 5, 6, 7, 8, 9, 10, 11, 12, 13]", "4]").replace("{seed}", "{seed} --epochs 1"))

    def isorun(*words):
        command = [sys.executable, "-m", "isorun", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)

    ran = isorun("run", "streams.toml")
    assert ran.returncode == 0, ran.stderr
    told = isorun("factors", "streams.toml", "--value", "test_loss")
    assert told.returncode == 0, told.stderr
    assert "each alone makes: order" in " ".join(told.stdout.split())
