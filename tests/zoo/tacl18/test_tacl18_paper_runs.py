"""What the paper's parts compute beside trainings: the baseline as a run, tests over questions, light imports."""

import base64
import subprocess
import sys
import zlib

import numpy as np
import pytest
from scipy import stats
from tacl18_records import finished

from isorun.study.cells import cells_of
from isorun.study.records import Predictions
from isorun.zoo.models.sm_cnn import sm_cnn
from isorun.zoo.paper import Request
from isorun.zoo.studies.tacl18 import design, idf_run
from isorun.zoo.studies.tacl18.findings import question_note, question_tests
from isorun.zoo.studies.tacl18.measured import runs_of, settings
from isorun.zoo.studies.tacl18.paper import Tacl18

QUESTIONS, CANDIDATES = 12, 5


def packed(scores):
    data = base64.b64encode(zlib.compress(np.asarray(scores, dtype="<f4").tobytes())).decode()
    return (Predictions("predictions", None, "score", "float32", (len(scores),), data),)


@pytest.fixture
def small_trecqa(made_data_folder):
    """Twelve questions; the second of five candidates answers."""
    lines = [
        f"q{question}\t{candidate}\t{int(candidate == 1)}\twho\tanswer {candidate}"
        for question in range(QUESTIONS)
        for candidate in range(CANDIDATES)
    ]
    for split in ("train", "raw-dev", "raw-test", "clean-dev", "clean-test"):
        (made_data_folder / "trecqa" / split).mkdir(parents=True)
        (made_data_folder / "trecqa" / split / "pairs.tsv").write_text("\n".join(lines) + "\n")
    return made_data_folder


def thread_runs(tmp_path, monkeypatch, scores_by_environment):
    monkeypatch.setattr(design, "stand_in_for", lambda _data, _scale: False)
    monkeypatch.setattr(design, "thread_counts", lambda _most: (1, 2))
    (study,) = Tacl18().studies(Request("smoke", tmp_path, only=("threads",)))
    return runs_of(
        finished(cell, 0.7, 0.8, predictions=packed(scores_by_environment[cell.environment]))
        for cell in cells_of(study)
    )


def places(rank_of_answer):
    """Scores that put the answer of each question at the given place."""
    scores = []
    for rank in rank_of_answer:
        others = [10.0 - place for place in range(CANDIDATES) if place != rank - 1]
        scores += [others[0], 10.0 - (rank - 1), *others[1:]]
    return scores


def test_settings_are_tested_over_the_questions_as_scipy_does(small_trecqa, tmp_path, monkeypatch):
    first, second = [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2], [2, 3, 1, 5, 4, 3, 4, 5, 5, 3, 2, 4]
    runs = thread_runs(tmp_path, monkeypatch, {"1 thread": places(first), "2 threads": places(second)})
    tests = question_tests(settings(runs))
    (test,) = tests.values()
    change = 1 / np.array(second) - 1 / np.array(first)
    expected = stats.wilcoxon(change, zero_method="wilcox", method=stats.PermutationMethod(n_resamples=np.inf)).pvalue
    assert test["AP"] == pytest.approx(expected)
    assert test["RR"] == test["AP"]
    assert "Wilcoxon" in question_note(tests)


def test_settings_without_a_different_question_are_said_to_be_so(small_trecqa, tmp_path, monkeypatch):
    scores = places([1, 2, 3] * 4)
    tests = question_tests(
        settings(thread_runs(tmp_path, monkeypatch, dict.fromkeys(("1 thread", "2 threads"), scores)))
    )
    assert list(tests.values()) == [{"AP": None, "RR": None}]
    assert question_note(tests).startswith("No question")


@pytest.mark.parametrize("scores", [[0.5] * 3, []])
def test_scores_of_other_data_are_not_tested(scores, small_trecqa, tmp_path, monkeypatch):
    runs = thread_runs(tmp_path, monkeypatch, dict.fromkeys(("1 thread", "2 threads"), scores))
    assert question_tests(settings(runs)) == {}
    assert question_note({}) == ""


def test_without_data_nothing_is_tested(made_data_folder, tmp_path, monkeypatch):
    runs = thread_runs(tmp_path, monkeypatch, dict.fromkeys(("1 thread", "2 threads"), places([1] * QUESTIONS)))
    assert question_tests(settings(runs)) == {}


def test_the_baseline_runs_on_made_data_without_any_folder(made_data_folder, capsys):
    assert idf_run.main(["--data", "wikiqa", "--made-data"]) == 0
    assert "MAP" in capsys.readouterr().out


def test_the_baseline_says_how_to_get_missing_data(made_data_folder, capsys):
    assert idf_run.main(["--data", "wikiqa"]) == 1
    assert "isorun data get wikiqa" in capsys.readouterr().err


def test_the_baseline_meets_the_published_one(shared_data_folder, monkeypatch):
    recorded = {}
    monkeypatch.setattr("isorun.result", lambda **values: recorded.update(values))
    assert idf_run.main(["--data", "trecqa-raw", "--train", "train-all"]) == 0
    assert recorded["map"] == pytest.approx(0.701, abs=5e-4)
    assert recorded["mrr"] == pytest.approx(0.769, abs=1.5e-3)
    assert (recorded["train_questions"], recorded["train_positive"], recorded["train_negative"]) == (1229, 6403, 47014)
    assert (recorded["test_positive"], recorded["test_negative"]) == (284, 1233)


def test_the_network_is_as_large_as_the_paper_module_says():
    network = sm_cnn(50, np.random.default_rng(1))
    assert sum(parameter.numel() for parameter in network.parameters()) == Tacl18.networks[0].parameters


def test_the_paper_is_listed_without_arrays_or_frameworks():
    code = "import sys; import isorun.zoo.studies.tacl18.paper; print({'numpy', 'scipy', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
