"""Project folders of KerasTuner, as it writes them: whole, half-written, of any space. Without Keras."""

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isorun.diagnose import Symptoms
from isorun.errors import InputError
from isorun.repair.actions import single_edits, unknown_parameters
from isorun.repair.diagnosis import diagnose
from isorun.repair.engines.keras_folders import read_project
from isorun.repair.searches import KEEP


def hp(kind, name, **config):
    return {"class_name": kind, "config": {"name": name, "default": None, "conditions": [], **config}}


SPACE = [
    hp("Float", "lr", min_value=1e-4, max_value=1.0, step=None, sampling="log"),
    hp("Int", "units", min_value=8, max_value=64, step=8, sampling="linear"),
    hp("Choice", "activation", values=["relu", "tanh"], ordered=False),
    hp("Boolean", "dropout"),
]
VALUES = {"lr": 0.01, "units": 16, "activation": "relu", "dropout": True}


def trial(number, score=0.5, status="COMPLETED", *, values=VALUES, space=SPACE, message=None, metric="val_accuracy"):
    observations = [] if score is None else [{"value": [score], "step": 0}]
    loss = {"direction": "min", "observations": [{"value": [2.0], "step": 0}]}
    metrics = {metric: {"direction": "max", "observations": observations}, "loss": loss} if observations else {}
    return {
        "trial_id": str(number),
        "hyperparameters": {"space": space, "values": values},
        "metrics": {"metrics": metrics},
        "score": score,
        "best_step": 0,
        "status": status,
        "message": message,
    }


def write(folder, trials, space=SPACE, **more):
    order = [one["trial_id"] for one in trials]
    oracle = {"hyperparameters": {"space": space, "values": {}}, "start_order": order, "ongoing_trials": {}, **more}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "oracle.json").write_text(json.dumps(oracle))
    for one in trials:
        place = folder / f"trial_{one['trial_id']}"
        place.mkdir(exist_ok=True)
        (place / "trial.json").write_text(json.dumps(one))
    return folder


def test_trials_and_space_are_read(tmp_path):
    trials = [
        trial(0, 0.5),
        trial(1, 0.75, values={**VALUES, "activation": "tanh"}),
        trial(2, None, "FAILED", message="Traceback\n  line\nMemoryError: too big"),
        trial(3, float("nan"), "FAILED"),
        trial(4, None, "RUNNING"),
        trial(5, None, "INVALID", message="ValueError: x"),
    ]
    search = read_project(write(tmp_path / "p", trials))
    assert (search.engine, search.name, search.direction) == ("keras-tuner", "p", "higher")
    assert [one.state for one in search.trials] == ["finished", "finished", "failed", "failed", "running", "waiting"]
    assert search.best.number == 1
    assert search.trials[2].why_failed.endswith("MemoryError: too big")
    assert search.trials[3].why_failed == "the score is not a finite number"
    kinds = {one.name: (one.kind, one.size) for one in search.space}
    assert kinds["units"] == ("int", 8)
    assert kinds["activation"] == ("category", 2)
    assert kinds["dropout"] == ("category", 2)
    assert search.parameters["lr"].log


def test_the_objective_is_the_metric_that_the_scores_are(tmp_path):
    assert read_project(write(tmp_path / "a", [trial(0), trial(1)])).direction == "higher"
    told = [trial(0, 2.0, metric="val_accuracy"), trial(1, 0.5)]
    told[1]["score"] = 2.0
    assert read_project(write(tmp_path / "b", told)).direction == "lower"
    assert read_project(write(tmp_path / "c", [trial(0, None, "RUNNING")])).direction == "lower"


def test_steps_of_a_log_scale_are_choices(tmp_path):
    space = [
        hp("Int", "batch", min_value=2, max_value=32, step=2, sampling="log"),
        hp("Float", "alpha", min_value=0.001, max_value=1.0, step=10, sampling="log"),
        hp("Int", "width", min_value=1, max_value=9, step=2, sampling="reverse_log"),
        hp("Int", "units", min_value=8, max_value=64, step=None, sampling="log"),
        hp("Fixed", "epochs", value=3),
        hp("Choice", "loss", values=["mse"], ordered=False),
    ]
    found = read_project(write(tmp_path / "p", [trial(0)], space)).parameters
    assert found["batch"].choices == (2, 4, 8, 16, 32)
    assert found["alpha"].choices == pytest.approx((0.001, 0.01, 0.1, 1.0))
    assert found["width"].choices == (9, 8, 6, 2)
    assert found["units"].size == 57
    assert not {"epochs", "loss"} & set(found)


def test_a_parameter_of_a_kind_that_is_not_understood_is_told_and_left_alone(tmp_path):
    import numpy as np

    space = [*SPACE, hp("Graph", "wiring", nodes=3)]
    values = {**VALUES, "wiring": "a-b-c"}
    search = read_project(write(tmp_path / "p", [trial(0, values=values, space=space)], space))
    assert unknown_parameters(search) == ("wiring",)
    actions = single_edits(search, search.best, (), np.random.default_rng(0))
    assert {action.edits[0].parameter for action in actions} == {"lr", "units", "activation", "dropout"}
    assert all(action.parameters["wiring"] == "a-b-c" for action in actions)


def test_a_name_under_several_conditions_has_the_values_of_all(tmp_path):
    space = [
        hp("Int", "units", min_value=8, max_value=16, step=8, sampling="linear"),
        hp("Int", "units", min_value=4, max_value=32, step=8, sampling="linear"),
        hp("Choice", "kind", values=["a"], ordered=False),
        hp("Choice", "kind", values=["b", "c"], ordered=False),
        hp("Boolean", "mixed"),
        hp("Float", "mixed", min_value=0.0, max_value=1.0, step=None, sampling="linear"),
    ]
    found = read_project(write(tmp_path / "p", [trial(0)], space)).parameters
    assert (found["units"].low, found["units"].high) == (4, 32)
    assert found["kind"].choices == ("a", "b", "c")
    assert found["mixed"].choices == ("?",)


def test_what_isorun_kept_is_read(tmp_path):
    folder = write(tmp_path / "p", [trial(0), trial(1), trial(2, None, "RUNNING")])
    symptoms = {"architecture": "plain", "convergence": "slow", "gradient": "vanishing", "weight": "normal"}
    note = {
        "proposal": {"origin": 0, "trial": "0"},
        "started": 100.0,
        "seconds": 7.0,
        "symptoms": symptoms,
        "offered": {"isorun.activation": [KEEP, "selu"]},
    }
    (folder / "trial_1" / "isorun.json").write_text(json.dumps(note))
    search = read_project(folder)
    one = search.trials[1]
    assert (one.proposed_by, one.origin, one.seconds, one.started) == ("isorun", 0, 7.0, 100.0)
    assert one.symptoms == Symptoms(**symptoms)
    assert search.parameters["isorun.activation"].choices == (KEEP, "selu")
    assert search.trials[0].parameters["isorun.activation"] == KEEP


def test_times_are_told_by_what_keras_tuner_displayed(tmp_path):
    display = {"trial_start": {"0": "2026-01-02T03:04:05"}}
    search = read_project(write(tmp_path / "p", [trial(0), trial(1)], display=display))
    assert search.trials[0].started > 1.7e9
    assert search.trials[0].seconds >= 0
    assert search.trials[1].started is None
    assert search.trials[1].seconds is None


def test_trials_of_hyperband_that_train_longer_are_no_duplicates(tmp_path):
    short, long = (
        {**VALUES, "tuner/epochs": 2, "tuner/bracket": 1},
        {**VALUES, "tuner/epochs": 8, "tuner/trial_id": "0"},
    )
    search = read_project(write(tmp_path / "p", [trial(0, values=short), trial(1, values=long)]))
    assert search.trials[0].configuration != search.trials[1].configuration
    assert "tuner/bracket" not in search.trials[0].parameters
    assert not search.parameters["tuner/epochs"].holds(8)


def test_a_folder_that_is_not_there_lists_those_that_are(tmp_path):
    write(tmp_path / "first", [trial(0)])
    write(tmp_path / "second", [trial(0)])
    for path in (tmp_path / "frist", tmp_path):
        with pytest.raises(InputError, match="first, second"):
            read_project(path)
    with pytest.raises(InputError, match="none"):
        read_project(tmp_path / "no" / "such")


@given(st.data())
def test_a_file_cut_off_anywhere_is_read_as_far_as_it_goes(tmp_path_factory, data):
    folder = write(tmp_path_factory.mktemp("k") / "p", [trial(0, 0.3), trial(1, 0.6), trial(2, None, "RUNNING")])
    for path in (folder / "oracle.json", folder / "trial_1" / "trial.json"):
        text = path.read_text()
        path.write_text(text[: data.draw(st.integers(0, len(text)))])
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    search = read_project(folder)
    assert [one.number for one in search.trials] == [0, 1, 2]
    assert search.trials[0].score == 0.3
    assert search.trials[1].score in (None, 0.6)
    assert {one.name for one in search.space} == set(VALUES)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(list(trial(0))), inner, max_size=4),
    max_leaves=8,
)


@given(json_values, st.sampled_from(["hyperparameters", "metrics", "score", "status", "message"]))
def test_whatever_a_trial_holds_it_is_read(tmp_path_factory, found, key):
    folder = write(tmp_path_factory.mktemp("k") / "p", [trial(0), {**trial(1), key: found}])
    assert diagnose(read_project(folder)).to_json()["trials"] == 2


@given(json_values, st.sampled_from(["hyperparameters", "start_order", "ongoing_trials", "display", "space", "config"]))
def test_whatever_an_oracle_holds_it_is_read(tmp_path_factory, found, key):
    more = {key: found}
    if key == "space":
        more = {"hyperparameters": {"space": found}}
    elif key == "config":
        more = {"hyperparameters": {"space": [{"class_name": "Float", "config": found}]}}
    folder = write(tmp_path_factory.mktemp("k") / "p", [trial(0), trial(1)], **more)
    assert diagnose(read_project(folder)).to_json()["trials"] == 2


def test_examining_imports_neither_keras_nor_its_tuner(tmp_path):
    folder = write(tmp_path / "p", [trial(0)])
    code = (
        "import sys; from isorun.cli.main import main; main(sys.argv[1:]); "
        "print([name for name in ('keras', 'keras_tuner', 'torch', 'tensorflow', 'optuna') if name in sys.modules])"
    )
    command = [sys.executable, "-c", code, "repair", f"keras-tuner:{folder}", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert json.loads("\n".join(done.stdout.splitlines()[:-1]))["engine"] == "keras-tuner"


@pytest.mark.parametrize(
    "values",
    [{"lr": {"a": 1}, "units": [8], "activation": None}, {"lr": "x", "units": float("nan")}, {"units": 10**400}, []],
)
def test_values_that_are_none_of_keras_tuner_are_left_out(tmp_path, values):
    trials = [trial(0, 0.5), trial(1, 0.6, values={**VALUES, "units": 24}), trial(2, 0.4, values=values)]
    search = read_project(write(tmp_path / "p", trials))
    assert [one.state for one in search.trials] == ["finished"] * 3
    assert not {"lr", "units"} & set(search.trials[2].parameters)
    diagnose(search)


@pytest.mark.parametrize(
    "note",
    [
        {"symptoms": 5, "proposal": [1], "times": "x", "started": float("inf"), "left_out": 3},
        {"symptoms": {"architecture": ["x"], "convergence": {}}, "proposal": {"trial": {}, "chance": "b"}},
        {"seconds": -5, "started": "now", "process": "x", "offered": {"a": [[1]], "b": 3}, "answers": {"lr": {}}},
        {"seconds": [1], "started": 10**400, "proposal": {"trial": "0", "chance": {}}, "answers": 7},
    ],
)
def test_an_odd_note_makes_nothing_unreadable(tmp_path, note):
    folder = write(tmp_path / "p", [trial(0, 0.5), trial(1, 0.6, values={**VALUES, "units": 24})])
    (folder / "trial_1" / "isorun.json").write_text(json.dumps(note))
    search = read_project(folder)
    assert search.best.number == 1
    assert search.best.seconds is None or search.best.seconds >= 0
    diagnose(search)


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 100_000, '{"score": ' + "9" * 5000 + "}"])
def test_a_trial_nested_too_deep_is_one_that_failed(tmp_path, text):
    folder = write(tmp_path / "p", [trial(0, 0.5), trial(1, 0.6)])
    (folder / "trial_1" / "trial.json").write_text(text)
    (folder / "trial_0" / "isorun.json").write_text(text)
    assert [one.state for one in read_project(folder).trials] == ["finished", "failed"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names on this system")
def test_a_pipe_in_place_of_a_file_is_not_waited_for(tmp_path):
    folder = write(tmp_path / "p", [trial(0, 0.5), trial(1, 0.6)])
    (folder / "trial_1" / "trial.json").unlink()
    os.mkfifo(folder / "trial_1" / "trial.json")
    os.mkfifo(folder / "trial_1" / "isorun.json")
    assert [one.state for one in read_project(folder).trials] == ["finished", "failed"]


def test_an_odd_space_and_an_odd_order_are_read(tmp_path):
    space = [*SPACE, hp("Choice", "odd", values=[{"a": 1}, [2]]), hp("Int", "far", min_value="a", max_value=None)]
    folder = write(tmp_path / "p", [trial("x", 0.5), trial("y", 10**400)], space, start_order=[{}, ["x"], 5, "y"])
    search = read_project(folder)
    assert [one.state for one in search.trials] == ["failed", "finished"]
    assert search.parameters["odd"].choices == search.parameters["far"].choices == ("?",)
    diagnose(search)
