"""What was trained is seen without a line of isorun, by what each framework calls; nothing in a step but a look."""

from __future__ import annotations

import threading
import time
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
from worker_trainings import read_run

from isorun.worker.arrays import digest
from isorun.worker.frameworks import estimators, jax, tensor_flow
from isorun.worker.recorder import Recorder


@pytest.fixture
def recording(tmp_path):
    made = Recorder(tmp_path)
    made.begin()
    return made


def told(recording) -> dict[str, str]:
    return {event["name"]: event["value"] for event in read_run(recording.folder).main if event["kind"] == "digest"}


def notes(recording) -> list[str]:
    return [event["code"] for event in read_run(recording.folder).main if event["kind"] == "note"]


class Model(list):
    """As an estimator: what it holds changes when it is fitted."""

    def fit(self, value, inner=None):
        if value is None:
            raise ValueError("no data")
        if inner is not None:
            inner.fit(0.0)
        self[:] = [np.array([value])]
        return self


@pytest.fixture
def followed(recording, monkeypatch):
    watch = estimators.FittedModels(recording)
    monkeypatch.setattr(estimators, "_fitted", watch)
    monkeypatch.setattr(Model, "fit", Model.fit)
    estimators._wrap(Model, "fit")
    return watch


def test_models_that_were_fitted_are_one_digest_of_all(followed, recording):
    models = [Model().fit(float(place)) for place in range(4)]
    models[3].fit(9.0)
    followed.finish()
    first, second = digest(models[0]), digest(models[1])
    assert told(recording) == {"weights.final": digest([first, second, models[2], models[3]])}


def test_a_part_of_a_model_a_thread_and_a_failure_are_no_models(followed, recording):
    outer, inner = Model(), Model()
    outer.fit(1.0, inner)
    thread = threading.Thread(target=Model().fit, args=(2.0,))
    thread.start()
    thread.join()
    with pytest.raises(ValueError, match="no data"):
        Model().fit(None)
    followed.finish()
    assert told(recording) == {"weights.final": digest([outer])}


def test_models_of_threads_alone_are_said_to_be_unseen(followed, recording):
    thread = threading.Thread(target=Model().fit, args=(2.0,))
    thread.start()
    thread.join()
    followed.finish()
    assert (told(recording), notes(recording)) == ({}, ["no-digest"])


def test_a_model_that_cannot_be_seen_is_said(followed, recording):
    class Hidden(Model):
        def fit(self, value):
            self[:] = [object()]

    estimators._wrap(Hidden, "fit")
    Hidden().fit(1.0)
    followed.finish()
    assert (told(recording), notes(recording)) == ({}, ["no-digest"])


def test_following_costs_a_round_next_to_nothing(followed):
    model = Model()
    plain = Model.fit.__wrapped__

    def seconds(fit) -> float:
        began = time.process_time()
        for _ in range(1000):
            fit(model, 1.0)
        return time.process_time() - began

    assert (min(seconds(Model.fit) for _ in range(9)) - min(seconds(plain) for _ in range(9))) / 1000 < 10e-6


def test_frameworks_that_train_together_are_one_digest_whatever_the_order(tmp_path):
    values = []
    for order in (("a", "b"), ("b", "a")):
        (tmp_path / order[0]).mkdir()
        made = Recorder(tmp_path / order[0])
        made.begin()
        for name in order:
            made.trained(name, [np.array([len(values) * 0.0, ord(name)])])
        values.append(told(made)["weights.final"])
    assert values[0] == values[1]
    assert values[0] != digest([np.array([0.0, ord("a")])])


def test_trees_of_a_booster_are_digested_without_its_settings():
    def booster(trees: str, threads: int) -> object:
        made = type("Booster", (), {"model_to_string": lambda _: f"{trees}\nparameters:\n[num_threads: {threads}]"})
        made.__module__ = "lightgbm.basic"
        return made()

    assert digest(booster("tree", 1)) == digest(booster("tree", 2)) != digest(booster("other", 1))


def test_a_booster_that_a_search_holds_unfitted_is_known_by_its_settings():
    """`GridSearchCV.estimator` is never fitted; the one that it fits is beside it, and has trees."""

    def regressor(**settings: object) -> object:
        methods = {"__sklearn_is_fitted__": lambda _: False, "get_params": lambda _: settings}
        made = type("LGBMRegressor", (), methods)
        made.__module__ = "lightgbm.sklearn"
        return made()

    assert digest([regressor(depth=2, n_jobs=1)]) == digest([regressor(depth=2, n_jobs=4)])
    assert digest([regressor(depth=2)]) != digest([regressor(depth=3)])


def flattened(tree, path=""):
    if isinstance(tree, (tuple, list, dict)):
        items = sorted(tree.items()) if isinstance(tree, dict) else enumerate(tree)
        return [found for key, part in items for found in flattened(part, f"{path}/{key}")]
    return [(path, tree)]


class Tracer:
    shape = (2,)
    dtype = "float32"


@pytest.fixture
def library(recording, monkeypatch):
    """As much of JAX as is followed: `jit` traces at the first call, with no values."""

    def jit(function):
        traced = []

        def compiled(*args):
            if not traced:
                traced.append(function(*args))
            return function.computes(*args)

        compiled.lower = "lowered"
        return compiled

    def flatten(tree):
        found = flattened(tree)
        return [leaf for _, leaf in found], [path for path, _ in found]

    tree_util = SimpleNamespace(
        keystr=str,
        tree_flatten=flatten,
        tree_leaves=lambda tree: flatten(tree)[0],
        tree_flatten_with_path=lambda tree: (flattened(tree), None),
    )
    made = SimpleNamespace(jit=jit, pmap=jit, grad=lambda f: f, value_and_grad=lambda f: f, tree_util=tree_util)
    made.core = SimpleNamespace(Tracer=Tracer)
    monkeypatch.setattr(jax, "_states", None)
    monkeypatch.setattr(jax.atexit, "register", lambda *_: None)
    made.watch = jax._follow(made, recording)
    return made


def step(library, *, updates=True):
    def function(*_):
        if updates:
            library.grad(lambda: None)()

    function.computes = lambda weights, batch: ({"w": weights["w"] + batch}, {"loss": batch.sum()})
    return library.jit(function)


def test_what_a_compiled_step_gave_back_last_is_what_was_trained(library, recording):
    train, evaluate = step(library), step(library, updates=False)
    first = weights = {"w": np.zeros(2)}
    for _ in range(3):
        weights, _ = train(weights, np.ones(2))
    evaluate({"w": np.ones(3)}, np.ones(3))
    library.watch.finish()
    library.watch.finish()
    assert told(recording) == {
        "weights.initial": digest([{"/w": first["w"]}]),
        "weights.final": digest([{"/w": np.full(2, 3.0)}]),
    }
    assert train.lower == "lowered"


def test_steps_that_train_in_turns_are_all_in_the_digest(library, recording):
    steps, states = [step(library) for _ in range(3)], [{"w": np.full(2, float(number))} for number in range(3)]
    for _ in range(2):
        for number in range(3):
            states[number], _ = steps[number](states[number], np.ones(2))
    library.watch.finish()
    assert told(recording)["weights.final"] == digest([{"/w": np.full(2, number + 2.0)} for number in range(3)])


def test_a_step_that_others_have_followed_is_known_by_its_digest_of_then(library, recording):
    for number in range(4):
        step(library)({"w": np.full(2, float(number))}, np.ones(2))
    library.watch.finish()
    before = [digest([{"/w": np.full(2, number + 1.0)}]) for number in range(2)]
    last = [{"/w": np.full(2, number + 1.0)} for number in (2, 3)]
    assert told(recording)["weights.final"] == digest([*before, *last])


def test_with_a_library_of_updates_a_gradient_alone_is_no_training(library, recording):
    optax = SimpleNamespace(apply_updates=lambda weights, by: {name: weights[name] + by for name in weights})
    jax.Optax().prepare("optax", optax, None, recording)
    step(library)({"w": np.zeros(2)}, np.ones(2))
    library.watch.finish()
    assert told(recording) == {}
    library.watch._is_done = False
    optax.apply_updates(optax.apply_updates({"w": np.zeros(2)}, 1.0), 1.0)
    library.watch.finish()
    assert told(recording) == {"weights.final": digest([{"/w": np.full(2, 2.0)}])}


def test_what_was_only_traced_is_not_digested(library, recording):
    optax = SimpleNamespace(apply_updates=lambda weights, _: weights)
    jax.Optax().prepare("optax", optax, None, recording)
    optax.apply_updates({"w": Tracer()}, 1.0)
    library.watch.finish()
    assert told(recording) == {}


def test_a_compiled_function_is_looked_at_in_no_time(library):
    train, weights = step(library), {"w": np.zeros(2)}
    train(weights, np.ones(2))
    empty = jax._telling_step(lambda: None)

    def seconds() -> float:
        began = time.process_time()
        for _ in range(1000):
            empty()
        return time.process_time() - began

    assert min(seconds() for _ in range(9)) / 1000 < 10e-6


class Variable:
    """As TensorFlow's: it can be assigned, and becomes an array."""

    def __init__(self, value):
        self.value = np.array([value])

    def assign(self, value):
        self.value = np.array([value])

    def __array__(self, *_args, **_kwargs):
        return self.value


def test_variables_that_a_tape_is_asked_for_are_digested_at_the_first_and_after_the_last_step(recording, monkeypatch):
    monkeypatch.setattr(tensor_flow, "_followed", {})
    tape = type("Tape", (), {"gradient": lambda *_: 1.0})
    watch = tensor_flow.TrainedVariables("tensorflow", recording)
    tensor_flow._follow_tapes(SimpleNamespace(GradientTape=tape), watch)
    one, two = Variable(1.0), Variable(2.0)
    for _ in range(2):
        tape().gradient(0.0, [one, two])
        tape().gradient(0.0, [np.ones(3)])  # by its input, which is not trained
        one.assign(one.value[0] + 1.0)
    watch.finish()
    assert told(recording) == {
        "weights.initial": digest([np.array([1.0]), np.array([2.0])]),
        "weights.final": digest([np.array([3.0]), np.array([2.0])]),
    }


def test_what_keras_trains_is_told_once(recording, monkeypatch):
    monkeypatch.setattr(tensor_flow, "_followed", {})
    tape, keras = (tensor_flow.TrainedVariables(name, recording) for name in ("tensorflow", "keras"))
    optimizer = type("Optimizer", (), {"build": lambda *_: None})
    tensor_flow._follow_builds(optimizer, keras)
    trained = [Variable(1.0)]
    optimizer().build(trained)
    tape.follow(trained)
    trained[0].assign(5.0)
    tape.finish()
    keras.finish()
    assert told(recording)["weights.final"] == digest([np.array([5.0])])


def test_models_of_keras_that_are_fitted_in_turns_are_all_in_the_digest(recording, monkeypatch):
    monkeypatch.setattr(tensor_flow, "_followed", {})
    watch = tensor_flow.TrainedVariables("keras", recording)
    trainer = type("Trainer", (), {"make_train_function": lambda _: None})
    model = type("Model", (trainer,), {})
    tensor_flow._follow_fits(model, watch)
    models = [model() for _ in range(3)]
    for number, one in enumerate(models):
        one.optimizer = SimpleNamespace(_trainable_variables=[Variable(float(number))])
    for _ in range(2):
        for one in models:
            one.make_train_function()
    models[0].optimizer._trainable_variables[0].assign(7.0)
    watch.finish()
    assert told(recording)["weights.final"] == digest([[np.array([value])] for value in (7.0, 1.0, 2.0)])


def test_words_that_were_counted_are_digested_without_an_address():
    text = pytest.importorskip("sklearn.feature_extraction.text")
    one, other = (text.TfidfVectorizer().fit(["a word and", "another word"]) for _ in range(2))
    same = digest(one)
    one._stop_words_id += 16  # as in another process
    assert digest(one) == same == digest(other)
    other.vocabulary_["more"] = 3
    assert digest(other) != same


SCIKIT_LEARN = """
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

def main():
    x, y = np.arange(120.0).reshape(60, 2) % 7, np.arange(60) % 3 % 2
    RandomForestClassifier(5, n_jobs=2).fit(x, y)
    GridSearchCV(make_pipeline(StandardScaler(), LogisticRegression()), {"logisticregression__C": [0.1, 1]}).fit(x, y)

main()
"""


@pytest.mark.long
def test_fitted_estimators_are_digested_without_a_line_of_isorun(train, tmp_path):
    (tmp_path / "train.py").write_text(SCIKIT_LEARN)
    runs = [train("train.py", level="fixed-seed", seed=seed) for seed in (3, 3, 4)]
    first, again, other = (run.digest("weights.final") for run in runs)
    assert first == again != other
    assert [note for run in runs for note in run.of_kind("note")] == []
    assert not any(run.run.others for run in runs)


KERAS = """
import os
os.environ["KERAS_BACKEND"] = "torch"
import numpy as np, keras

def main():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3), keras.layers.Dropout(0.5)])
    model.compile("adam", "mse")
    model.fit(np.ones((64, 4)), np.ones((64, 3)), epochs=1, verbose=0)

main()
"""


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("keras"), reason="there is no Keras here")
def test_a_keras_model_is_digested_without_a_line_of_isorun(train, tmp_path):
    (tmp_path / "train.py").write_text(KERAS)
    runs = [train("train.py", level="fixed-seed", seed=seed) for seed in (3, 3, 4)]
    for name in ("weights.initial", "weights.final"):
        first, again, other = (run.digest(name) for run in runs)
        assert first == again != other
    assert runs[0].digest("weights.initial") != runs[0].digest("weights.final")
