"""Watching trainings with Keras, on the backend that KERAS_BACKEND names; in the environment of the tests, torch's."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")
TRAINING = """
import copy, json, os, pickle, sys
os.environ.setdefault("KERAS_BACKEND", "torch")
import numpy as np, keras, isorun
if keras.backend.backend() == "torch":
    import torch
    torch.set_num_threads(1)

def trained(watched, layers=("relu", "tanh", "softmax"), loss="sparse_categorical_crossentropy"):
    keras.utils.set_random_seed(1)
    widths = (16, 12, 4)
    model = keras.Sequential([keras.Input((8,)), *[keras.layers.Dense(w, a) for w, a in zip(widths, layers)]])
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), loss, metrics=["accuracy"])
    watcher = isorun.watch(model) if watched else None
    x = np.random.default_rng(0).normal(size=(128, 8)).astype("float32")
    model.fit(x, x[:, :4].argmax(1), epochs=3, batch_size=32, verbose=0, validation_split=0.25)
    return model, watcher

model, watcher = trained(True)
plain, _ = trained(False)
model.save(sys.argv[1])
loaded = keras.models.load_model(sys.argv[1])
saved = len(loaded.optimizer.variables)
told_before = len(watcher.rows)
copies = [copy.deepcopy(model), pickle.loads(pickle.dumps(model)), keras.models.clone_model(model), loaded]
for one in copies:
    one.compile("sgd", "sparse_categorical_crossentropy")
    one.fit(np.zeros((32, 8), "float32"), np.zeros(32, "int32"), epochs=1, verbose=0)
copied = [len(watcher.rows) == told_before, not any("fit" in one.__dict__ for one in copies)]
copied.append(b"isorun" not in pickle.dumps(model))
_, linear = trained(True, ("relu", "relu", None))
watcher.stop()
own, _ = trained(False)
calls = []
def its_own_fit(*args, **kwargs):
    calls.append(len(kwargs["callbacks"]))
    return type(own).fit(own, *args, **kwargs)
own.fit = its_own_fit
with isorun.watch(own) as watching:
    own.fit(np.zeros((32, 8), "float32"), np.zeros(32, "int32"), epochs=2, verbose=0)
print(json.dumps({
    "rows": watcher.rows, "problem": watcher.problem, "wrong": linear.rows[0]["output"],
    "same": all(np.array_equal(a, b) for a, b in zip(model.get_weights(), plain.get_weights())),
    "saved": saved == len(plain.optimizer.variables),
    "copied": copied,
    "own_fit": "fit" not in model.__dict__,
    "given_fit": [calls, len(watching.rows), own.fit is its_own_fit],
}))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keras")
    (folder / "train.py").write_text(TRAINING)
    command = [sys.executable, "-W", "ignore", "train.py", "model.keras"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, check=False)
    if "No module named 'keras'" in done.stderr:
        pytest.skip("Keras is not installed")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.long
def test_a_row_an_epoch_holds_what_was_sampled_and_told(told):
    rows = told["rows"]
    assert told["problem"] == ""
    assert [row["epoch"] for row in rows] == [0, 1, 2]
    assert len(rows[0]["layers"]) == len(rows[0]["gradient"]) == len(rows[0]["weight"]) == len(rows[0]["zero"]) == 3
    assert rows[0]["inputs"]["spread"] == pytest.approx(1.0, abs=0.2)
    assert len(rows[0]["dead"]) == len(rows[0]["saturated"]) == 1
    assert set(rows[-1]) >= {"loss", "accuracy", "val_loss", "val_accuracy"}


@pytest.mark.long
def test_output_and_loss_are_told_as_declared(told):
    assert told["rows"][0]["output"] == {
        "looks": "probabilities",
        "width": 4,
        "loss": "log-likelihood-of-probabilities",
    }
    assert told["wrong"]["looks"] == "numbers"


@pytest.mark.long
def test_the_training_computes_the_same_bits_and_saves_what_anybody_can_load(told):
    assert told["same"]
    assert told["saved"]
    assert told["own_fit"]


@pytest.mark.long
def test_copies_of_a_watched_model_are_not_watched(told):
    assert told["copied"] == [True, True, True]


@pytest.mark.long
def test_a_fit_that_somebody_gave_the_model_is_called_and_left_as_it_was(told):
    assert told["given_fit"] == [[1], 2, True]
