"""AutoKeras with tuners that repair, in an environment that has it (with a Keras older than the others use)."""

import os
import warnings

import numpy as np
import pytest

os.environ.setdefault("KERAS_BACKEND", "torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("autokeras", exc_type=ImportError)
    import autokeras

import isorun.repair
from isorun.errors import InputError
from isorun.repair.engines.keras_folders import read_project

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def searched(folder, strategy, trials, **options):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 8, 8, 1)).astype("float32")
    y = (x.mean(axis=(1, 2, 3)) > 0).astype("int64")
    given = autokeras.ImageInput()
    block = autokeras.ImageBlock(block_type="vanilla", normalize=False, augment=False)(given)
    model = autokeras.AutoModel(
        given,
        autokeras.ClassificationHead()(block),
        tuner=isorun.repair.autokeras(strategy, prior=None, seed=0, **options) if options else strategy,
        max_trials=trials,
        directory=folder,
        project_name="p",
        seed=1,
        objective="val_accuracy",
    )
    model.fit(x, y, epochs=4, validation_split=0.25, verbose=0)
    assert model.predict(x, verbose=0).shape == (60, 1)
    return read_project(folder / "p")


@pytest.mark.parametrize("strategy", ["greedy", "bayesian", "hyperband", "random"])
def test_every_strategy_is_repaired_and_watched(strategy, tmp_path):
    search = searched(tmp_path, strategy, 4, begin=2)
    assert [trial.state for trial in search.trials] == ["finished"] * 4
    assert [trial.number for trial in search.trials if trial.proposed_by] == [2, 3]
    assert all(trial.symptoms.gradient != "unknown" for trial in search.trials)
    assert {trial.symptoms.architecture for trial in search.trials} <= {"plain", "depthwise"}


def test_a_class_of_tuners_is_taken_and_a_word_that_is_none_is_told():
    assert issubclass(isorun.repair.autokeras(autokeras.tuners.Greedy), autokeras.tuners.Greedy)
    with pytest.raises(InputError, match="did you mean 'greedy'"):
        isorun.repair.autokeras("gredy")
