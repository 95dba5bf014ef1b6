"""Versions of JAX as a factor: what is carried along, what the script computes, and the table from known scores."""

import importlib.util
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from tacl18_records import finished

from isorun.study.cells import cells_of
from isorun.zoo.carried import CARRIED
from isorun.zoo.generators import hashed_generator
from isorun.zoo.paper import Request
from isorun.zoo.studies.tacl18 import design, versions
from isorun.zoo.studies.tacl18.paper import Tacl18
from isorun.zoo.studies.tacl18.ranking import effectiveness, judgements
from isorun.zoo.studies.tacl18.scales import JAX_BASELINE, JAX_VERSIONS

QUESTIONS = [f"q{number}" for number in range(20)]


@pytest.fixture
def script(monkeypatch):
    """The training script with NumPy in place of JAX: what it computes by hand can be asked without it."""
    jax = types.ModuleType("jax")
    jax.jit, jax.numpy = lambda function: function, np
    monkeypatch.setitem(sys.modules, "jax", jax)
    monkeypatch.setitem(sys.modules, "jax.numpy", np)
    spec = importlib.util.spec_from_file_location("jax_train", Path(versions.__file__).with_name("jax_train.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_script_ranks_as_isorun_does_ties_among_them(script):
    draws = np.random.default_rng(3)
    qids = [f"q{number}" for number in draws.integers(0, 12, 200)]
    labels = draws.integers(0, 2, 200) * draws.integers(0, 2, 200)
    scores = np.round(draws.random(200), 1).astype(np.float32)
    judged = judgements(qids, labels.tolist())
    split = {"asked": judged.question, "tie_rank": judged.tie_rank, "labels": judged.label, "qids": judged.qids}
    ap, rr = script.effectiveness(split, scores)
    known = effectiveness(judged, scores)
    assert ap == pytest.approx(known.ap)
    assert rr == pytest.approx(known.rr)


def test_the_script_draws_the_numbers_that_isorun_draws(script):
    assert (
        script.generator(7, "order").permutation(50).tolist() == hashed_generator(7, "order").permutation(50).tolist()
    )
    assert sum(value.size for value in script.initial_weights(50, script.generator(1, "weights")).values()) == 92_430


def test_the_windows_are_those_of_a_convolution(script):
    draws = np.random.default_rng(0)
    vectors = draws.normal(size=(1, 3, 2))
    kernel, bias = draws.normal(size=(script.MAPS, 2, 5)), draws.normal(size=script.MAPS)
    padded = np.pad(vectors[0], ((4, 4), (0, 0)))
    windows = [np.einsum("wc,mcw->m", padded[at : at + 5], kernel) + bias for at in range(2 + 4)]
    found = script.pooled(kernel, bias, vectors, np.array([2]))
    assert found[0] == pytest.approx(np.tanh(np.max(windows, axis=0)))


def test_script_and_data_are_carried_beside_the_study(tmp_path, made_data_folder):
    request = Request("smoke", tmp_path, only=("versions",))
    Tacl18().prepare(request)
    [study] = Tacl18().studies(request)
    words = next(iter(study.approaches.values())).command
    assert "--made-data" in words
    assert (tmp_path / words[1]).read_text() == Path(versions.__file__).with_name("jax_train.py").read_text()
    with np.load(tmp_path / words[words.index("--data") + 1], allow_pickle=False) as arrays:
        assert set(arrays["test.labels"].tolist()) == {0, 1}
        assert len(arrays["train.question"]) == len(arrays["train.features"]) == len(arrays["train.labels"])
        assert int(arrays["test.asked"].max()) == len(arrays["test.qids"]) - 1


def test_nothing_is_carried_where_versions_are_not_asked_for(tmp_path, made_data_folder):
    Tacl18().prepare(Request("smoke", tmp_path))
    assert not (tmp_path / CARRIED).exists()


def test_every_version_is_an_environment_of_its_own_with_one_numpy(tmp_path, made_data_folder):
    [study] = Tacl18().studies(Request("smoke", tmp_path, only=("versions",)))
    required = {name: item.settings["requirements"] for name, item in study.environments.items()}
    assert set(required) == {"baseline", *(f"jax={version}" for version in JAX_VERSIONS if version != JAX_BASELINE)}
    assert all("numpy==1.26.4" in packages for packages in required.values())
    assert f"jax=={JAX_BASELINE}" in required["baseline"]


def shown(tmp_path, monkeypatch, moved, *, by_question=True):
    """A presentation where versions before 0.5 move the AP of every question by so much with masks of their own."""
    monkeypatch.setattr(design, "stand_in_for", lambda _data, _scale: False)
    request = Request("cpu", tmp_path, only=("versions",))
    [study] = Tacl18().studies(request)

    def record(cell):
        is_old = "jax=0.4" in cell.environment
        change = moved * (1 + 0.1 * np.sin(cell.seed)) if is_old and "own masks" in cell.approach else 0.0
        values = {qid: 0.5 + 0.01 * place + change for place, qid in enumerate(QUESTIONS)}
        mean = float(np.mean(list(values.values())))
        weights = f"{cell.approach} {cell.seed} {change}"
        kept = {"per_class": {"map": values, "mrr": values}} if by_question else {}
        return finished(cell, mean, mean, weights=weights, **kept)

    return Tacl18().present(request, {study.name: [record(cell) for cell in cells_of(study)]})


def test_versions_are_told_apart_over_seeds_and_over_questions(tmp_path, monkeypatch, made_data_folder):
    found = shown(tmp_path, monkeypatch, -0.02)
    [table] = [table for table in found.tables if table.name == "table-5"]
    rows = {row[:2]: row for row in table.rows}
    assert rows["TrecQA, own masks", "jax 0.4.20"][8:] == ("5 of 5", "5 of 5")
    assert rows["TrecQA", "jax 0.4.20"][8:] == ("0 of 5", "0 of 5")
    assert rows["TrecQA", "published: PyTorch 0.2.0"][2:4] == ("0.7234", "-0.0261†")
    effects = {(item["approach"], item["value"]): item for item in found.numbers["versions"]["seeds"]["AP"]["effects"]}
    assert effects["TrecQA, own masks", "0.4.30"]["difference"] == pytest.approx(-0.02, rel=0.1)
    assert effects["TrecQA, own masks", "0.4.30"]["told"]
    [asked] = [
        item
        for item in found.numbers["versions"]["questions"]["AP"]["effects"]
        if (item["approach"], item["value"]) == ("TrecQA, own masks", "0.4.30")
    ]
    assert asked["units"] == len(QUESTIONS)
    [line] = [line for line in found.verdict if line.startswith("The paper saw")]
    assert "here 0.6.2 keeps every score, 0.4.20 and 0.4.30 not" in line
    assert line.endswith("a difference is told of 0.4.20 and 0.4.30.")


def test_versions_that_change_nothing_are_not_the_papers_result(tmp_path, monkeypatch, made_data_folder):
    found = shown(tmp_path, monkeypatch, 0.0)
    assert any("the same weights as 0.5.3, bit for bit" in line for line in found.verdict)
    assert any("Not as published: here no version changes any score" in line for line in found.verdict)


def test_without_values_by_question_seeds_are_asked_and_it_is_said(tmp_path, monkeypatch, made_data_folder):
    found = shown(tmp_path, monkeypatch, -0.02, by_question=False)
    assert found.numbers["versions"]["questions"] == {}
    assert "left no value of map for each test question" in found.numbers["versions"]["why_not"]


def test_scores_that_move_either_way_are_no_difference_that_is_told(tmp_path, monkeypatch, made_data_folder):
    monkeypatch.setattr(design, "stand_in_for", lambda _data, _scale: False)
    request = Request("cpu", tmp_path, only=("versions",))
    [study] = Tacl18().studies(request)
    order = {seed: place for place, seed in enumerate(study.seeds)}

    def record(cell):
        moved = 0.01 * (-1) ** order[cell.seed] if "jax=0.4" in cell.environment else 0.0
        return finished(cell, 0.7 + moved, 0.8, weights=f"{cell.approach} {cell.seed} {moved}")

    found = Tacl18().present(request, {study.name: [record(cell) for cell in cells_of(study)]})
    [line] = [line for line in found.verdict if line.startswith("The paper saw")]
    assert "As published that versions may change scores" in line
    assert "Not as published: no version is told to be better or worse" in line
    assert not any("WikiQA" in sentence for sentence in found.scaled_down)
