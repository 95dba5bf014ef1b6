"""A real `fit` of Keras, with its callback and without."""

import os
from importlib.util import find_spec

import numpy as np
import pytest

import isorun
from isorun.analysis.studies.class_values import class_values

TRAINING = """
    import os
    os.environ["KERAS_BACKEND"] = "torch"
    import keras, numpy as np
    {imported}

    keras.utils.set_random_seed(0)
    drawn = np.random.default_rng(1)
    x = drawn.normal(size=(120, 4)).astype("float32")
    y = (x[:, 0] > 0).astype(int) + (x[:, 1] > 0)
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(3, activation="softmax")])
    model.compile(keras.optimizers.SGD(0.5), "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x[:80], y[:80], validation_data=(x[80:100], y[80:100]), epochs=2, batch_size=20, verbose=2, {given})
    {after}
"""
IMPORTED = "from isorun.frameworks.keras import IsorunCallback"
WITH = TRAINING.format(imported=IMPORTED, given="callbacks=[IsorunCallback(test=(x[100:], y[100:]))]", after="")
WITHOUT = TRAINING.format(imported="", given="", after="")
EVALUATED = TRAINING.format(
    imported=IMPORTED,
    given="callbacks=[IsorunCallback()]",
    after="model.evaluate(x[100:], y[100:], callbacks=[IsorunCallback()], verbose=0)",
)
LOGGED = ("loss", "accuracy", "val_loss", "val_accuracy")


@pytest.mark.slow
def test_epochs_final_values_predictions_and_classes_are_told(trained):
    record = trained(WITH, "keras", "torch")
    assert {record.origins[name] for name in LOGGED} == {"log"}
    assert list(record.series["val_loss"].steps) == [1.0, 2.0]
    assert set(record.results) == {"test_loss", "test_accuracy"}
    [predicted, labels] = record.predictions
    assert (predicted.name, predicted.kind, predicted.shape, labels.name) == ("test", "class", (20,), "test.labels")
    assert sum(class_values(record, "test_accuracy", None).values()) > 0


@pytest.mark.slow
def test_a_value_that_is_logged_and_printed_is_there_once_and_the_same(trained):
    told, printed = trained(WITH, "keras", "torch"), trained(WITHOUT, "keras", "torch")
    assert set(told.series) == set(LOGGED)
    for name in LOGGED:
        assert list(told.series[name].steps) == list(printed.series[name].steps) == [1.0, 2.0]
        assert list(told.series[name].values) == pytest.approx(list(printed.series[name].values), abs=1e-3)


@pytest.mark.slow
def test_evaluate_gives_final_values_and_no_epoch(trained):
    record = trained(EVALUATED, "keras", "torch")
    assert set(record.results) == {"test_loss", "test_accuracy"}
    assert {name: len(series.values) for name, series in record.series.items()} == dict.fromkeys(LOGGED, 2)
    assert record.results["test_accuracy"] == pytest.approx(trained(WITH, "keras", "torch").results["test_accuracy"])


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # Keras' own, of NumPy 2
@pytest.mark.skipif(not find_spec("keras") or not find_spec("torch"), reason="there is no Keras here")
def test_a_fit_tells_its_epochs_and_its_test_in_a_run_and_nothing_outside(monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", os.environ.get("KERAS_BACKEND", "torch"))
    import keras

    import isorun.frameworks.keras as member

    told = []
    monkeypatch.setattr(isorun, "log", lambda **values: told.append(values))
    monkeypatch.setattr(isorun, "result", lambda **values: told.append(values))
    x, y = np.eye(4, dtype="float32"), np.array([0, 1, 0, 1])
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2, activation="softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x, y, epochs=1, verbose=0, callbacks=[member.IsorunCallback(test=(x, y))])
    assert [set(row) for row in told] == [{"epoch", "loss", "accuracy"}]  # `isorun.log` itself is quiet outside
    monkeypatch.setattr(member, "is_recording", lambda: True)
    model.fit(x, y, epochs=1, verbose=0, callbacks=[member.IsorunCallback(test=(x, y))])
    assert told[1]["epoch"] == 1
    assert set(told[2]) == {"test_loss", "test_accuracy", "predictions", "labels"}
    assert told[2]["labels"]["test"].tolist() == y.tolist()


@pytest.mark.skipif(not find_spec("keras") or not find_spec("torch"), reason="there is no Keras here")
def test_a_test_that_is_no_pair_is_refused_by_name(monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", os.environ.get("KERAS_BACKEND", "torch"))
    from isorun.frameworks.keras import IsorunCallback

    with pytest.raises(TypeError, match=r"a pair \(x, y\)"):
        IsorunCallback(test=np.zeros(3))
