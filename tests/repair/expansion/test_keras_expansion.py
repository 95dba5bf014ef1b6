"""KerasTuner hypermodels around users' own, on the backend that KERAS_BACKEND names; where none is named, torch's."""

import os
from types import MappingProxyType

import numpy as np
import pytest

os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras")
keras_tuner = pytest.importorskip("keras_tuner")
from keras import layers  # noqa: E402

import isorun.repair  # noqa: E402
from isorun.errors import InputError  # noqa: E402
from isorun.repair.expansion import OFFERS, STEPS, hypermodel  # noqa: E402
from isorun.repair.expansion.keras import expand_built  # noqa: E402


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Of torch, where that is what computes: threads of small trainings only wait for each other."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


X = np.random.default_rng(0).normal(50, 9, size=(64, 8)).astype("float32")
Y = (X[:, :3]).argmax(1)
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")


def chosen(**answers):
    hp = keras_tuner.HyperParameters()
    hp.values.update({f"isorun.{name}": value for name, value in answers.items()})
    return hp


def dense(activations=("sigmoid", "sigmoid", "softmax"), *, optimizer=None, **compiled):
    def build(hp):
        keras.utils.set_random_seed(1)
        widths = [hp.Int("units", 4, 8), 6, 3]
        parts = [layers.Dense(width, one) for width, one in zip(widths, activations, strict=True)]
        model = keras.Sequential([keras.Input((8,)), *parts])
        compiled.setdefault("loss", "sparse_categorical_crossentropy")
        model.compile(optimizer() if optimizer else keras.optimizers.SGD(0.1), metrics=["accuracy"], **compiled)
        return model

    return build


def convolutional(_hp):
    keras.utils.set_random_seed(1)
    inputs = keras.Input((4, 4, 1))
    hidden = layers.ReLU(6.0)(layers.Conv2D(4, 3, padding="same")(inputs))
    joined = layers.Add()([hidden, layers.Conv2D(4, 1, activation="tanh")(hidden)])
    scores = layers.Dense(3, "softmax")(layers.GlobalAveragePooling2D()(joined))
    model = keras.Model(inputs, scores)
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def fitted(expanded, hp, epochs=2, x=X, **options):
    model = expanded.build(hp)
    options = {"batch_size": 16, "verbose": 0, "shuffle": False, "callbacks": [], **options}
    return model, expanded.fit(hp, model, x, Y, epochs=epochs, **options)


def saved(model, path):
    model.save(path)
    return keras.models.load_model(path)


def test_where_all_is_kept_the_model_is_the_one_that_was_built(tmp_path):
    build = dense()
    model, history = fitted(hypermodel(build), chosen())
    plain = build(keras_tuner.HyperParameters())
    other = plain.fit(X, Y, epochs=2, batch_size=16, verbose=0, shuffle=False)
    assert history.history["loss"] == other.history["loss"]
    assert all(np.array_equal(one, two) for one, two in zip(model.get_weights(), plain.get_weights(), strict=True))
    assert np.array_equal(saved(model, tmp_path / "model.keras").get_weights()[0], model.get_weights()[0])


@pytest.mark.parametrize("build", [dense(), convolutional], ids=["sequential", "functional"])
@pytest.mark.parametrize("name", [name for name in OFFERS if name not in ("pretrained", "fine_tuning", *STEPS)])
def test_each_choice_changes_the_training_and_the_model_can_be_saved(name, build, tmp_path):
    expanded = hypermodel(build)
    data = X if build is not convolutional else np.repeat(X, 2, axis=1).reshape(64, 4, 4, 1)
    _, kept = fitted(expanded, chosen(), x=data)
    if f"isorun.{name}" in expanded.left_out:
        assert (name, build) == ("momentum", convolutional)
        return
    choice = OFFERS[name][-1]
    model, history = fitted(expanded, chosen(**{name: choice}), x=data)
    assert expanded.offered[f"isorun.{name}"] == choice
    assert np.isfinite(history.history["loss"]).all()
    assert history.history["loss"] != kept.history["loss"]
    again = saved(model, tmp_path / "model.keras")
    np.testing.assert_allclose(again.predict(data, verbose=0), model.predict(data, verbose=0), rtol=1e-4, atol=1e-5)
    assert type(again.optimizer) is type(model.optimizer)
    again.fit(data, Y, verbose=0)


def test_activations_between_layers_change_and_outputs_and_gates_stay():
    model = hypermodel(dense(("gelu", "sigmoid", "sigmoid"), loss="mse")).build(chosen(activation="selu"))
    assert [layer.activation.__name__ for layer in model.layers] == ["selu", "sigmoid", "sigmoid"]
    model = hypermodel(convolutional).build(chosen(activation="elu", normalise="true"))
    names = [type(layer).__name__ for layer in model.layers]
    assert "ReLU" not in names
    plain = convolutional(None)
    weights = [one for one in model.get_weights() if one.ndim > 1]
    assert all(
        np.array_equal(a, b) for a, b in zip(weights, [w for w in plain.get_weights() if w.ndim > 1], strict=True)
    )


def test_settings_of_the_optimizer_are_as_chosen_and_the_rest_as_it_was():
    build = dense(optimizer=lambda: keras.optimizers.SGD(0.1, nesterov=True, momentum=0.5))
    answers = {"learning_rate": "1e-3", "momentum": "0.9", "weight_decay": "1e-2", "clip": "1"}
    config = hypermodel(build).build(chosen(**answers)).optimizer.get_config()
    assert config["learning_rate"] == pytest.approx(1e-3)
    told = {key: config[key] for key in ("momentum", "nesterov", "weight_decay", "global_clipnorm")}
    assert told == {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01, "global_clipnorm": 1.0}
    other = hypermodel(build).build(chosen(optimizer="adamw"))
    assert isinstance(other.optimizer, keras.optimizers.AdamW)
    assert other.optimizer.get_config()["learning_rate"] == pytest.approx(0.1)
    without = hypermodel(build).build(chosen(optimizer="adamw", weight_decay="0"))
    assert without.optimizer.get_config()["weight_decay"] == 0.0
    assert [metric.name for metric in other.metrics] == [metric.name for metric in build(chosen()).metrics]


def own_loss(truth, predicted):
    return keras.ops.mean(keras.losses.sparse_categorical_crossentropy(truth, predicted))


class Doubling(layers.Layer):
    def call(self, inputs):
        return 2 * inputs


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.first, self.second = layers.Dense(4, "sigmoid"), layers.Dense(3, "softmax")

    def call(self, inputs):
        return self.second(self.first(inputs))


def test_what_cannot_be_changed_is_left_alone_and_said():
    scheduled = dense(optimizer=lambda: keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.9)))
    expanded = hypermodel(scheduled)
    expanded.build(chosen())
    assert expanded.left_out["isorun.end_learning_rate"] == "the optimizer has a schedule of its own"
    assert expanded.left_out["isorun.momentum"] == "only SGD has a momentum to choose"
    assert isinstance(expanded.build(chosen(optimizer="sgd")).optimizer, keras.optimizers.SGD)

    def own_layer(hp):
        model = keras.Sequential([keras.Input((8,)), layers.Dense(4, "tanh"), Doubling(), layers.Dense(3, "softmax")])
        model.compile("sgd", own_loss)
        return model

    expanded = hypermodel(own_layer)
    model, _ = fitted(expanded, chosen(activation="relu", optimizer="adam", initialiser="he_uniform"))
    assert expanded.left_out["isorun.normalise"] == "Doubling is a layer of the user's own, which cannot be cloned"
    assert model.layers[0].activation.__name__ == "relu"
    assert isinstance(model.optimizer, keras.optimizers.Adam)

    def subclassed(hp):
        model = Subclassed()
        model.compile("sgd", "sparse_categorical_crossentropy")
        return model

    expanded = hypermodel(subclassed)
    model, _ = fitted(expanded, chosen(activation="relu", initialiser="he_uniform", momentum="0.9"))
    assert "Subclassed is a model of the user's own" in expanded.left_out["isorun.standardise"]
    assert model.first.activation.__name__ == "relu"
    assert model.optimizer.momentum == 0.9
    expanded = hypermodel(lambda _: keras.Sequential([keras.Input((8,)), layers.Dense(3)]))
    expanded.build(chosen())
    assert expanded.left_out["isorun.momentum"] == "the model is not compiled where it is built"


def test_what_the_users_space_has_is_not_offered_twice():
    def build(hp):
        model = dense()(hp)
        model.compile(keras.optimizers.SGD(hp.Choice("lr", [0.1, 0.01]), momentum=hp.Float("momentum", 0, 1)), "mse")
        return model

    expanded = hypermodel(build)
    expanded.build(chosen())
    assert expanded.left_out["isorun.learning_rate"] == "the space has it: lr"
    assert expanded.left_out["isorun.momentum"] == "the space has it: momentum"
    assert "isorun.activation" in expanded.offered


@pytest.mark.parametrize("end", ["0", "1e-1"])
def test_the_learning_rate_goes_to_its_end_and_callbacks_see_their_own(end):
    used, seen = [], []

    class Seeing(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 0:
                used.append(float(keras.ops.convert_to_numpy(self.model.optimizer.learning_rate)))

        def on_epoch_end(self, epoch, logs=None):
            seen.append(float(keras.ops.convert_to_numpy(self.model.optimizer.learning_rate)))
            self.model.optimizer.learning_rate = seen[-1] / 2

    fitted(hypermodel(dense()), chosen(end_learning_rate=end), epochs=2, callbacks=[Seeing()])
    assert seen == pytest.approx([0.1, 0.05])
    assert used == pytest.approx([0.1, 0.05 * (float(end) + (1 - float(end)) / 2)])


@pytest.mark.parametrize(
    ("answers", "trained", "rates"),
    [
        ({"fine_tuning": "two-step", "step_ratio": "0.5"}, [2, 2, 6, 6], [0.1, 0.1, 0.01, 0.01]),
        ({"fine_tuning": "three-step", "step_ratio": "0.2", "second_learning_rate": "1"}, [2, 4, 6, 6], [0.1] * 4),
        ({"fine_tuning": "two-step", "freeze": "none"}, [6, 6, 6, 6], [0.1, 0.01, 0.01, 0.01]),
    ],
)
def test_fine_tuning_is_a_fit_a_step_and_one_history(answers, trained, rates):
    seen, used = [], []

    class Seeing(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            seen.append(len(self.model.trainable_variables))

        def on_train_batch_end(self, batch, logs=None):
            if batch == 0:
                used.append(float(keras.ops.convert_to_numpy(self.model.optimizer.learning_rate)))

    _, history = fitted(hypermodel(dense(), pretrained=True), chosen(**answers), epochs=4, callbacks=[Seeing()])
    assert seen == trained
    assert used == pytest.approx(rates)
    assert history.epoch == [0, 1, 2, 3]
    assert len(history.history["loss"]) == 4


def test_pretrained_weights_are_loaded_only_where_that_was_chosen(tmp_path):
    source = dense()(keras_tuner.HyperParameters())
    source.fit(X, Y, verbose=0)
    source.save_weights(tmp_path / "given.weights.h5")
    expanded = hypermodel(dense(), pretrained=tmp_path / "given.weights.h5")
    kept, loaded = expanded.build(chosen()), expanded.build(chosen(pretrained="given"))
    assert not np.array_equal(kept.get_weights()[-2], source.get_weights()[-2])
    assert np.array_equal(loaded.get_weights()[-2], source.get_weights()[-2])
    assert "isorun.fine_tuning" in expanded.offered
    assert "isorun.initialiser" in expanded.left_out


def test_mixed_precision_keeps_its_scaled_losses():
    keras.mixed_precision.set_global_policy("mixed_float16" if keras.backend.backend() != "torch" else "mixed_bfloat16")
    try:
        _, history = fitted(hypermodel(dense()), chosen(activation="relu", momentum="0.9", standardise="true"))
    finally:
        keras.mixed_precision.set_global_policy("float32")
    assert np.isfinite(history.history["loss"]).all()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["RandomSearch", pytest.param("Hyperband", marks=pytest.mark.slow)])
def test_a_tuner_searches_the_expanded_space_by_itself(kind, tmp_path):
    options = {"objective": "val_accuracy", "directory": tmp_path, "seed": 3}
    options |= {"max_trials": 3} if kind == "RandomSearch" else {"max_epochs": 3, "factor": 3}
    tuner = getattr(keras_tuner, kind)(hypermodel(dense()), **options)
    tuner.search(X, Y, epochs=2, validation_split=0.25, verbose=0)
    names = {one.name for one in tuner.oracle.get_space().space}
    assert {"units", "isorun.activation", "isorun.end_learning_rate", "isorun.optimizer"} <= names
    assert "isorun.fine_tuning" not in names
    best = tuner.get_best_models()[0]
    assert best.predict(X, verbose=0).shape == (64, 3)


class Tuned(keras_tuner.HyperModel):
    def build(self, hp):
        return dense()(hp)

    def fit(self, hp, model, *args, **kwargs):
        model.fit(*args, **{**kwargs, "batch_size": hp.Choice("batch_size", [8, 16])})
        return 0.5


def test_a_hypermodel_of_the_users_own_keeps_its_fit_and_is_wrapped_once():
    expanded = hypermodel(Tuned(name="mine"))
    assert hypermodel(expanded) is expanded
    assert expanded.name == "mine"
    hp = chosen(activation="relu")
    _, result = fitted(expanded, hp)
    assert result == 0.5
    assert "batch_size" in hp.values


def test_mistakes_are_said():
    with pytest.raises(InputError, match="a hypermodel is expanded"):
        hypermodel("model")
    with pytest.raises(InputError, match="pretrained is not understood"):
        hypermodel(dense(), pretrained=3).build(chosen())


class Trial:
    params = MappingProxyType({"units": 4})

    def __init__(self, **answers):
        self.answers, self.user_attrs = answers, {}

    def suggest_categorical(self, name, choices):
        return self.answers.get(name.removeprefix("isorun."), choices[0])

    def set_user_attr(self, name, value):
        self.user_attrs[name] = value


def test_a_keras_model_in_an_objective_of_optuna_is_expanded_too():
    given, trial = dense()(keras_tuner.HyperParameters()), Trial()
    kept = isorun.repair.expand(trial, given)
    assert kept.model is given
    assert trial.user_attrs["isorun:left_out"] == kept.left_out
    other = isorun.repair.expand(Trial(normalise="true", end_learning_rate="0"), given).model
    history = other.fit(X, Y, 16, 3, verbose=0)
    assert history.epoch == [0, 1, 2]
    assert other is not given
    assert len(other.weights) == len(given.weights) + 2 * 4


@pytest.mark.long
def test_a_repaired_tuner_offers_by_itself_and_keeps_all_until_its_turn(tmp_path):
    options = {"objective": "val_accuracy", "directory": tmp_path, "seed": 3, "max_trials": 7}
    tuner = isorun.repair.keras_tuner(keras_tuner.RandomSearch(dense(), **options), begin=3, prior=None, seed=1)
    tuner.search(X, Y, epochs=2, validation_split=0.25, verbose=0)
    values = [tuner.oracle.trials[name].hyperparameters.values for name in tuner.oracle.start_order]
    offered = [{name: one for name, one in told.items() if name.startswith("isorun.")} for told in values]
    assert all(one == "keep" for told in offered[:3] for one in told.values())
    assert any(one != "keep" for told in offered[4:] for one in told.values())
    assert not any(one.name.startswith("isorun.") for one in tuner.oracle.get_space().space)


def test_it_is_known_which_choices_are_what_the_user_built():
    plain = dense(("relu", "relu", "softmax"), optimizer=keras.optimizers.Adam)(chosen())
    trial = expand_built(chosen(), plain)
    built = {"initialiser": "glorot_uniform", "activation": "relu", "optimizer": "adam", "learning_rate": "1e-3"}
    assert trial.as_built == {f"isorun.{name}": word for name, word in (built | {"weight_decay": "0"}).items()}
    mixed = expand_built(chosen(optimizer="adamw"), convolutional(chosen()))
    assert "isorun.activation" not in mixed.as_built  # a ReLU of its own limit, and a tanh
    assert "isorun.weight_decay" not in mixed.as_built  # AdamW comes with one
