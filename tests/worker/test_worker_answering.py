"""Settings that a level leaves to the training are told; what it cannot refuse, it gives."""

from __future__ import annotations

import json
import sys
import types

import pytest

from isorun.worker import seeding
from isorun.worker.answering import Answers
from isorun.worker.frameworks import estimators, jax, tensor_flow
from isorun.worker.levels import Settings
from isorun.worker.recorder import Recorder


def test_variables_that_change_what_is_computed_are_told_and_stay(train, tmp_path):
    code = "import os\nos.environ['TF_ENABLE_ONEDNN_OPTS'] = '0'\nos.environ['MY_OWN'] = '1'\n"
    code += "os.environ['XLA_FLAGS'] = '--mine'\nprint(os.environ['TF_ENABLE_ONEDNN_OPTS'], os.environ['XLA_FLAGS'])\n"
    (tmp_path / "train.py").write_text(code)
    trained = train("train.py", level="deterministic", seed=3)
    assert trained.stdout == "0 --mine --xla_gpu_deterministic_ops=true\n"
    notes = [(note["code"], note["message"]) for note in trained.of_kind("note")]
    where = f"at {tmp_path}/train.py:2; it changes what is computed, and stays"
    assert notes[0] == ("setting-told", f"TF_ENABLE_ONEDNN_OPTS is '0' {where}")
    assert [code for code, _ in notes] == ["setting-told", "setting-answered"]
    assert not train("train.py", level="fixed-seed", seed=3).of_kind("note")


@pytest.fixture
def recorder(tmp_path):
    made = Recorder(tmp_path)
    made.begin()
    return made


def test_of_many_settings_only_those_that_matter_are_told(recorder):
    config = types.SimpleNamespace(update=lambda name, value: (name, value))
    Answers(recorder).tell(config, "update", "jax.config", lambda name, *_: name == "jax_enable_x64")
    assert config.update("jax_debug_nans", True) == ("jax_debug_nans", True)
    assert not recorder.has_noted("setting-told")
    assert config.update("jax_enable_x64", True) == ("jax_enable_x64", True)
    assert recorder.has_noted("setting-told")


@pytest.mark.parametrize("words", [{"mode": False}, {"warn_only": False, "mode": False}])
def test_a_setting_that_is_given_by_name_is_answered_as_any_other(recorder, words):
    """`torch.use_deterministic_algorithms(mode=False)` must not end a training for want of a first argument."""
    set_to = []
    torch = types.SimpleNamespace(use=lambda mode, *, warn_only=False: set_to.append((mode, warn_only)))
    Answers(recorder).answer(torch, "use", "torch.use", True, warn_only=True)
    torch.use(**words)
    assert recorder.has_noted("setting-answered")
    torch.use(mode=True)
    assert set_to == [(True, True), (True, False)]


def test_a_setting_that_is_given_by_name_is_told(recorder):
    config = types.SimpleNamespace(update=lambda name, val: (name, val))
    Answers(recorder).tell(config, "update", "jax.config", jax._is_told)
    assert config.update("jax_enable_x64", val=True) == ("jax_enable_x64", True)
    assert config.update(name="jax_debug_nans", val=True) == ("jax_debug_nans", True)
    assert [once[0] for once in recorder._complained] == ["setting-told"]


def test_what_cannot_be_told_does_not_end_the_training(recorder, monkeypatch):
    monkeypatch.setattr(seeding, "_failures", [])

    def fails(*_given):
        raise ValueError("no such thing")

    config = types.SimpleNamespace(update=lambda name: name)
    Answers(recorder).tell(config, "update", "jax.config", fails)
    assert config.update("jax_enable_x64") == "jax_enable_x64"
    assert [(doing, str(error)) for doing, error in seeding._failures] == [("telling jax.config", "no such thing")]


def test_a_global_generator_is_given_where_it_would_be_refused(monkeypatch):
    hidden = types.ModuleType("tensorflow.python.ops.stateful_random_ops")
    hidden.global_generator = None
    hidden.set_global_generator = lambda made: setattr(hidden, "global_generator", made)

    def refusing():
        if hidden.global_generator is None:
            raise RuntimeError("cannot be called if determinism is enabled")
        return hidden.global_generator

    hidden.get_global_generator = refusing
    monkeypatch.setitem(sys.modules, hidden.__name__, hidden)
    generator = types.SimpleNamespace(from_non_deterministic_state=lambda: "answered")
    random = types.SimpleNamespace(Generator=generator, get_global_generator=refusing)
    tensorflow = types.SimpleNamespace(random=random, init_scope=_Scope)
    tensor_flow._give_global_generator(tensorflow)
    assert random.get_global_generator() == "answered"
    hidden.set_global_generator("own")
    assert random.get_global_generator() == hidden.get_global_generator() == "own"


class _Scope:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


class LinearBooster:
    """As XGBoost's Booster answers for `gblinear`; `used` is how many threads each update had."""

    def __init__(self, updater="shotgun", threads=0):
        self.threads, self.used = threads, []
        self.trained_by = {"gblinear_train_param": {"updater": updater}} if updater else {}

    def save_config(self):
        param = {"nthread": str(self.threads)}
        return json.dumps({"learner": {"generic_param": param, "gradient_booster": self.trained_by}})

    def set_param(self, given):
        self.threads = given["nthread"]

    def update(self, *_args):
        self.used.append(self.threads)

    boost = update


@pytest.fixture
def xgboost_at(tmp_path, recorder):
    def prepared(level, threads=2):
        kind = type("Booster", (LinearBooster,), {name: vars(LinearBooster)[name] for name in ("update", "boost")})
        settings = Settings(tmp_path, level, 1, threads, warm=False)
        estimators.XGBoost().prepare("xgboost", types.SimpleNamespace(Booster=kind), settings, recorder)
        return kind

    return prepared


@pytest.mark.parametrize("call", ["update", "boost"])
@pytest.mark.parametrize("threads", [0, 8])
def test_a_linear_booster_whose_threads_race_has_one_at_deterministic(xgboost_at, recorder, call, threads):
    booster = xgboost_at("deterministic")(threads=threads)
    getattr(booster, call)()
    getattr(booster, call)()
    assert booster.used == [1, 1]
    assert recorder.has_noted("setting-answered")


@pytest.mark.parametrize(
    ("level", "made", "allowed"),
    [
        ("fixed-seed", {}, 2),
        ("deterministic", {"updater": "coord_descent", "threads": 4}, 2),
        ("deterministic", {"updater": "", "threads": 4}, 2),
        ("deterministic", {"threads": 1}, 2),
        ("deterministic", {}, 1),
    ],
)
def test_boosters_whose_threads_do_not_race_keep_them(xgboost_at, recorder, level, made, allowed):
    booster = xgboost_at(level, allowed)(**made)
    booster.update()
    assert booster.used == [made.get("threads", 0)]
    assert not recorder.has_noted("setting-answered")


def test_a_booster_that_does_not_say_how_it_trains_trains_as_it_would(xgboost_at):
    booster = xgboost_at("deterministic")()
    booster.save_config = lambda: "no JSON"
    booster.update()
    assert booster.used == [0]
