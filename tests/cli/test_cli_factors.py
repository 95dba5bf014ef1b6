"""isorun factors as people type it."""

import json

import pytest

import isorun
from isorun.analysis.factors import attribution
from isorun.cli.main import main
from isorun.testing.instant_executor import Computed, InstantExecutor

STUDY = """
levels = ["fixed-seed"]
seeds = [1, 2, 3, 4, 5, 6]
[approaches.toy]
command = "python train.py"
[metrics.acc]
direction = "higher"
[factors]
hash = { variable = "PYTHONHASHSEED", values = ["0", "1"] }
mode = { variable = "MODE", values = ["a", "b"] }
"""
SPREAD = [0.0, 0.013, -0.008, 0.004, 0.009, -0.011]


def trained(moved):
    def compute(job):
        seed = job.cell.seed
        by = (0.02 + 0.1 * SPREAD[(seed * 5) % 6]) * ("mode=b" in job.cell.environment) * moved
        return Computed({"acc": 0.9 + SPREAD[seed - 1] + by}, digests={"weights.final": f"{seed}{by}"})

    isorun.run("factors.toml", executor=InstantExecutor(compute))


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(attribution, "variance_shares", lambda _fit: ())  # a second of intervals, tested elsewhere
    (tmp_path / "factors.toml").write_text(STUDY)
    (tmp_path / "train.py").write_text("")
    return tmp_path


def test_the_verdict_comes_first_and_the_exit_code_says_that_a_difference_is_told(here, capsys):
    trained(1)
    capsys.readouterr()
    assert main(["factors", "factors.toml"]) == 3
    told = " ".join(capsys.readouterr().out.split())
    assert told.startswith("acc is moved by mode: mode=b against a changes it by +2.")
    assert "hash=1: the same acc, and the same final weights for all 6 seeds." in told
    assert "Varied one at a time: whether the effects of two factors add up is not known" in told


def test_nothing_told_is_exit_code_0(here, capsys):
    trained(0)
    capsys.readouterr()
    assert main(["factors", "factors.toml", "--metric", "acc"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert told.startswith("Undecided: no factor changed acc in any of 6 seeds, so there is nothing to test.")
    assert "hash=1 and mode=b: the same acc, and the same final weights for all 6 seeds." in told


def test_json_figures_and_a_page(here, capsys):
    trained(1)
    capsys.readouterr()
    words = [
        "factors",
        "factors.toml",
        "--json",
        "--figure",
        "effects.svg",
        "--change",
        "change.svg",
        "--html",
        "page.html",
    ]
    assert main(words) == 3
    found = json.loads(capsys.readouterr().out)
    assert found["baseline"] == {"hash": "0", "mode": "a"}
    assert [item["told"] for item in found["effects"]] == [False, True]
    assert "mode=b" in (here / "effects.svg").read_text()
    assert "acc of the same seeds under mode=a and mode=b" in (here / "change.svg").read_text()
    page = (here / "page.html").read_text()
    assert "acc is moved by mode" in page
    assert page.count("<svg") == 4  # each of two for a window and for a telephone


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["factors", "factors.toml"], "isorun run"),
        (["factors", "nowhere.toml"], "nowhere.toml"),
        (["factors", "plain.toml"], "declares no factors"),
    ],
    ids=["no runs", "no file", "no factors"],
)
def test_mistakes_are_one_message_with_the_next_command(here, capsys, words, message):
    (here / "plain.toml").write_text(STUDY.partition("[factors]")[0])
    assert main(words) == 1
    told = capsys.readouterr().err
    assert message in told
    assert "Traceback" not in told


REFUSED = {
    "--metric loss": "loss",
    "--unit question": "left no value of acc for each test question",
    "--unit nothing": "has no column 'nothing' to count by",
    "--selection none": "no selection 'none'",
    "--where approach=tree": "never is",
    "--unit repeat": "--where seed=1",
}


def test_what_the_runs_do_not_have_is_refused(here, capsys):
    trained(1)
    capsys.readouterr()
    for words, message in REFUSED.items():
        assert main(["factors", "factors.toml", *words.split()]) == 1, words
        told = capsys.readouterr().err
        assert message in told, words
        assert "next:" in told or "allowed:" in told, words


def test_a_study_whose_runs_left_no_metric_is_told_so(here, capsys):
    (here / "factors.toml").write_text(STUDY.replace('[metrics.acc]\ndirection = "higher"\n', ""))
    isorun.run("factors.toml", executor=InstantExecutor(lambda _job: Computed({})))
    capsys.readouterr()
    for more in ([], ["--value", "seed"]):
        assert main(["factors", "factors.toml", *more]) == 1
        told = capsys.readouterr().err
        assert "no run logged a metric, so there is nothing to judge by" in told
        assert "isorun.result(" in told


def test_a_column_that_names_runs_is_no_metric(here, capsys):
    trained(1)
    assert main(["factors", "factors.toml", "--value", "seed"]) == 1
    told = capsys.readouterr().err
    assert "'seed' says which run it is" in told
    assert "allowed: acc" in told
