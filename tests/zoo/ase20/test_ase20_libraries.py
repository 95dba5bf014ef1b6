"""Core libraries below Keras: what is carried along, what the script computes, and Figure 4 from known accuracies."""

import importlib.util
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from ase20_records import record_of

from isorun.study.cells import Level, cells_of
from isorun.zoo.paper import Request
from isorun.zoo.studies.ase20 import libraries
from isorun.zoo.studies.ase20 import paper as paper_module
from isorun.zoo.studies.ase20.paper import Ase20
from isorun.zoo.studies.ase20.training.recipes import RECIPES, learning_rate

WIDE = (0.90, 0.94, 0.92, 0.96, 0.88)
NARROW = (0.930, 0.931, 0.929, 0.930, 0.932)


@pytest.fixture
def script(monkeypatch):
    """The training script with nothing behind Keras' name: what it computes by NumPy can be asked without it."""
    keras = types.ModuleType("keras")
    keras.layers = types.ModuleType("keras.layers")
    monkeypatch.setitem(sys.modules, "keras", keras)
    spec = importlib.util.spec_from_file_location("keras_train", Path(libraries.__file__).with_name("keras_train.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("network", ["lenet5", "resnet38"])
def test_the_script_follows_the_recipes(script, network):
    recipe = RECIPES[network]
    assert (script.EPOCHS[network], script.BATCHES[network]) == (recipe.epochs, recipe.batch)
    for epochs in (3, 50, 200):
        for epoch in range(epochs):
            assert script.learning_rate(network, epoch, epochs) == learning_rate(recipe, epoch, epochs)


def test_images_are_read_between_pixels_and_go_on_beyond_the_border(script):
    image = np.arange(4, dtype="float32").reshape(1, 1, 4, 1)
    found = script._between(image, np.array([[-1.0, 0.5, 1.0, 9.0]]), 2)
    assert found[0, 0, :, 0].tolist() == [0.0, 0.5, 1.0, 3.0]


def test_moved_images_stay_what_they_are(script):
    images = np.random.default_rng(0).random((6, 8, 8, 3)).astype("float32")
    moved = script.moved(images, np.random.default_rng(1))
    assert moved.shape == images.shape
    assert moved.min() >= images.min()
    assert moved.max() <= images.max()
    assert np.array_equal(moved, script.moved(images, np.random.default_rng(1)))
    flat = np.full((6, 8, 8, 3), 0.5, dtype="float32")
    assert np.allclose(script.moved(flat, np.random.default_rng(1)), 0.5)


def test_script_and_images_are_carried_beside_the_study(tmp_path, made_data_folder):
    request = Request("smoke", tmp_path, only=("libraries",))
    Ase20().prepare(request)
    for study in Ase20().studies(request):
        [approach] = study.approaches.values()
        words = approach.command
        assert (tmp_path / words[1]).read_text() == Path(libraries.__file__).with_name("keras_train.py").read_text()
        with np.load(tmp_path / words[words.index("--data") + 1], allow_pickle=False) as arrays:
            judged = len(arrays["judged_labels"])
            assert int(arrays["validation"]) * 4 == judged * 3
            assert arrays["train_images"].dtype == np.uint8


def test_every_library_has_an_environment_with_one_keras(tmp_path, made_data_folder):
    for study in Ase20().studies(Request("smoke", tmp_path, only=("libraries",), device="cpu")):
        found = study.environments
        assert [item.env["KERAS_BACKEND"] for item in found.values()] == list(found) == ["tensorflow", "jax", "torch"]
        assert all("keras==3.13.2" in item.settings["requirements"] for item in found.values())
        assert "torch==2.13.0" in found["torch"].settings["requirements"]


def shown(tmp_path, monkeypatch, by_library, level=Level.DEFAULT, *, weights=None):
    monkeypatch.setattr(paper_module, "at_hand", lambda _: True)
    request = Request("cpu", tmp_path, only=("libraries",), device="cpu")
    [study, *_] = Ase20().studies(request)
    cells = [cell for cell in cells_of(study) if cell.level is level]
    records = [
        record_of(cell, accuracy, weights=weights and f"{weights} {library}")
        for library, accuracies in by_library.items()
        for cell, accuracy in zip([one for one in cells if one.environment == library], accuracies, strict=True)
    ]
    return Ase20().present(request, {study.name: records})


def test_like_spreads_are_the_papers_result(tmp_path, monkeypatch, made_data_folder):
    values = {"tensorflow": WIDE, "jax": tuple(one - 0.01 for one in WIDE), "torch": WIDE[::-1]}
    found = shown(tmp_path, monkeypatch, values, Level.FIXED_SEED)
    [item] = found.numbers["libraries"]
    assert item["seen"] is True
    assert item["levene_p"] == pytest.approx(scipy.stats.levene(*values.values()).pvalue)
    assert "as published, they cannot be told apart" in found.verdict[0]
    assert [figure.name for figure in found.figures] == ["figure-4-lenet5-fixed-seed"]


def test_at_another_level_nothing_is_called_published(tmp_path, monkeypatch, made_data_folder):
    line = shown(tmp_path, monkeypatch, dict.fromkeys(("tensorflow", "jax", "torch"), WIDE)).verdict[0]
    assert "at this level, which Figure 4 has not, they cannot be told apart" in line
    assert "as published" not in line


def test_unlike_spreads_are_not(tmp_path, monkeypatch, made_data_folder):
    found = shown(tmp_path, monkeypatch, {"tensorflow": WIDE, "jax": NARROW, "torch": NARROW[::-1]}, Level.FIXED_SEED)
    [item] = found.numbers["libraries"]
    assert item["seen"] is False
    assert "not as published, they differ" in found.verdict[0]


def test_runs_that_are_the_same_bits_say_nothing_about_variances(tmp_path, monkeypatch, made_data_folder):
    same = dict.fromkeys(("tensorflow", "jax", "torch"), (0.93,) * 5)
    found = shown(tmp_path, monkeypatch, same, Level.FIXED_SEED, weights="one")
    [item] = found.numbers["libraries"]
    assert item["seen"] is None
    assert item["why_not"] == "no library's runs differ at all"
    [table] = [table for table in found.tables if table.name == "figure-4"]
    assert table.rows[0][8] == "1 of 5"


def test_a_library_without_runs_is_no_comparison(tmp_path, monkeypatch, made_data_folder):
    found = shown(tmp_path, monkeypatch, {"tensorflow": WIDE, "jax": WIDE})
    assert found.numbers["libraries"][0]["why_not"] == "not every library has runs"


def test_a_network_that_only_guesses_proves_nothing(tmp_path, monkeypatch, made_data_folder):
    low = {name: tuple(one / 8 for one in WIDE) for name in ("tensorflow", "jax", "torch")}
    assert "hardly begun to learn" in shown(tmp_path, monkeypatch, low).verdict[0]
