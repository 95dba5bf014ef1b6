"""The oracle and the tuner around KerasTuner's: every class of tuner, taken over, killed, and with trials that fail."""

import itertools
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

os.environ.setdefault("KERAS_BACKEND", "torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    kt = pytest.importorskip("keras_tuner")
    import keras

import isorun.repair
from isorun.errors import InputError
from isorun.repair.engines.keras_folders import read_project
from isorun.repair.engines.keras_tuner import attach, mend
from isorun.repair.policy import RepairPolicy

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:keras.*"),
    pytest.mark.filterwarnings("ignore:.*optimizer.*:UserWarning"),
    pytest.mark.filterwarnings("ignore:All-NaN:RuntimeWarning"),
]


def scored(hp):
    """A score without a training: the best is a learning rate of 10 ** -2.5, and relu."""
    lr = hp.Float("lr", 1e-5, 1.0, sampling="log")
    units = hp.Int("units", 8, 64, step=8)
    activation = hp.Choice("activation", ["relu", "tanh", "sigmoid"])
    lost = {"relu": 0.0, "tanh": 0.1, "sigmoid": 0.3}[activation]
    return 1.0 - 0.1 * abs(np.log10(lr) + 2.5) - lost - 0.002 * abs(units - 32)


def tuned(base=kt.RandomSearch, score=scored, **options):
    """A tuner of this class whose trials are no trainings."""

    class Tuned(base):
        def run_trial(self, trial, *args, **kwargs):
            return {"val_accuracy": score(trial.hyperparameters)}

    if base is kt.Hyperband:  # it cannot begin with an empty space
        options = {"max_epochs": 4, **{key: value for key, value in options.items() if key != "max_trials"}}
        options["hyperparameters"] = kt.HyperParameters()
        score(options["hyperparameters"])
    return Tuned(objective=kt.Objective("val_accuracy", "max"), seed=1, project_name="p", **options)


def repaired(tuner, **options):
    return isorun.repair.keras_tuner(tuner, **{"prior": None, "seed": 0, **options})


def run(tuner):
    tuner.search(verbose=0)
    return tuner


def values_of(tuner):
    return [trial.hyperparameters.values for trial in tuner.oracle.trials.values()]


def proposed(folder):
    return [trial.number for trial in read_project(folder).trials if trial.proposed_by]


def test_from_its_trial_on_every_trial_changes_the_best_one(tmp_path):
    tuner = tuned(directory=tmp_path, max_trials=20)
    assert repaired(tuner, begin=5) is tuner
    assert isinstance(run(tuner), kt.RandomSearch)
    search = read_project(tmp_path / "p")
    assert (search.engine, search.name, search.direction) == ("keras-tuner", "p", "higher")
    assert proposed(tmp_path / "p") == list(range(5, 20))
    for trial in search.trials[5:]:
        origin = search.trials[trial.origin]
        assert origin.score == max(one.score for one in search.trials[: trial.number])
        assert 1 <= sum(origin.parameters[name] != value for name, value in trial.parameters.items()) <= 3
    assert search.best.score > max(trial.score for trial in search.trials[:5])
    assert tuner.get_best_hyperparameters()[0].values == search.best.parameters


@pytest.mark.parametrize("base", [kt.RandomSearch, kt.BayesianOptimization, kt.GridSearch, kt.Hyperband])
def test_until_a_bug_is_found_the_search_is_the_users_own(base, tmp_path):
    own = run(tuned(base, directory=tmp_path / "a", max_trials=8))
    after = run(repaired(tuned(base, directory=tmp_path / "b", max_trials=8), patience=99))
    assert len(own.oracle.trials) >= 8
    assert values_of(after) == values_of(own)
    assert proposed(tmp_path / "b" / "p") == []


@pytest.mark.parametrize("base", [kt.RandomSearch, kt.BayesianOptimization, kt.GridSearch])
def test_a_search_of_ten_trials_by_another_is_taken_over_at_the_eleventh(base, tmp_path):
    before = run(tuned(base, directory=tmp_path, max_trials=10))
    best = before.oracle.get_best_trials()[0].score
    after = run(repaired(tuned(base, directory=tmp_path, max_trials=15), begin=10))
    assert proposed(tmp_path / "p") == [10, 11, 12, 13, 14]
    assert after.oracle.get_best_trials()[0].score >= best
    assert len(after.oracle.trials) == 15


def test_another_class_of_tuner_goes_on_in_the_folder(tmp_path):
    run(tuned(kt.RandomSearch, directory=tmp_path, max_trials=10))
    run(repaired(tuned(kt.GridSearch, directory=tmp_path, max_trials=13), begin=10))
    assert proposed(tmp_path / "p") == [10, 11, 12]


def test_hyperband_keeps_its_brackets_and_tries_what_is_proposed(tmp_path):
    own = run(tuned(kt.Hyperband, directory=tmp_path / "a"))
    tuner = run(repaired(tuned(kt.Hyperband, directory=tmp_path / "b"), begin=3))
    assert len(tuner.oracle.trials) == len(own.oracle.trials)
    search = read_project(tmp_path / "b" / "p")
    made = [trial for trial in search.trials if trial.proposed_by]
    assert made
    lengths = [one.hyperparameters.values["tuner/epochs"] for one in own.oracle.trials.values()]
    assert [trial.parameters["tuner/epochs"] for trial in search.trials] == lengths
    origins = {trial.number: trial.parameters for trial in search.trials}
    changed = {name for one in made for name, value in one.parameters.items() if origins[one.origin].get(name) != value}
    assert changed <= {"lr", "units", "activation", "tuner/epochs"}


def test_without_a_number_of_trials_the_users_own_strategy_ends_the_search(tmp_path):
    def score(hp):
        return float(hp.Choice("x", [1, 2, 3]) + hp.Choice("y", [1, 2]))

    tuner = run(repaired(tuned(kt.GridSearch, score=score, directory=tmp_path), begin=0))
    assert 6 <= len(tuner.oracle.trials) <= 12


def test_a_bug_begins_it_and_a_reached_target_hands_back(tmp_path):
    values = iter([0.5, *[0.1] * 200])
    tuner = repaired(tuned(score=lambda hp: scored(hp) * 0 + next(values), directory=tmp_path, max_trials=16))
    run(tuner)
    assert proposed(tmp_path / "p")[0] == 12
    done = tuned(score=lambda hp: scored(hp) * 0, directory=tmp_path / "b", max_trials=16)
    run(repaired(done, target=-1.0))
    assert proposed(tmp_path / "b" / "p") == []


def test_conditions_are_kept(tmp_path):
    def score(hp):
        kind = hp.Choice("optimizer", ["sgd", "adam"])
        with hp.conditional_scope("optimizer", ["sgd"]):
            momentum = hp.Float("momentum", 0.0, 0.9)
        with hp.conditional_scope("optimizer", ["adam"]):
            beta = hp.Float("beta", 0.5, 0.9)
        return momentum if kind == "sgd" else 1 + beta

    tuner = run(repaired(tuned(score=score, directory=tmp_path, max_trials=25), begin=4))
    for trial in tuner.oracle.trials.values():
        other = {"sgd": "momentum", "adam": "beta"}[trial.hyperparameters.values["optimizer"]]
        assert set(trial.hyperparameters.values) == {"optimizer", other}
    assert tuner.get_best_hyperparameters()[0].values["optimizer"] == "adam"


@pytest.mark.parametrize("error", [RuntimeError("no such layer"), MemoryError("out of memory")], ids=repr)
def test_trials_that_fail_end_nothing_and_are_diagnosed(error, tmp_path):
    def score(hp):
        value = scored(hp)
        if hp.get("activation") != "relu":
            raise error
        return float("nan") if hp.get("lr") > 0.1 else value

    search = read_project(run_all(tmp_path, score, 25))
    assert len(search.trials) == 25
    failed = [trial for trial in search.trials if trial.state == "failed"]
    assert {trial.why_failed.strip().splitlines()[-1] for trial in failed} <= {
        f"{type(error).__name__}: {error}",
        "the score is not a finite number",
    }
    assert len(failed) >= 3
    assert search.best.parameters["activation"] == "relu"


def run_all(folder, score, trials):
    run(repaired(tuned(score=score, directory=folder, max_trials=trials), begin=3))
    return folder / "p"


def test_a_search_in_which_nothing_ever_succeeds_ends_as_its_tuner_says(tmp_path):
    def score(hp):
        scored(hp)
        raise RuntimeError("wrong shape")

    with pytest.raises(RuntimeError, match="consecutive failures"):
        run(repaired(tuned(score=score, directory=tmp_path, max_trials=25)))
    search = read_project(tmp_path / "p")
    assert {trial.state for trial in search.trials} <= {"failed", "running", "waiting"}
    assert search.best is None


def test_a_file_that_was_half_written_is_set_aside_and_no_trial_is_lost(tmp_path):
    run(tuned(directory=tmp_path, max_trials=6))
    folder = tmp_path / "p"
    whole = (folder / "oracle.json").read_text()
    (folder / "oracle.json").write_text(whole[: len(whole) // 2])
    (folder / "trial_3" / "trial.json").write_text('{"trial_id": "3", "hyperp')
    before = {trial.number: trial.score for trial in read_project(folder).trials if trial.has_score}
    assert sorted(before) == [0, 1, 2, 4, 5]
    assert read_project(folder).trials[3].why_failed == "its trial.json is half-written"
    mend(folder)
    tuner = run(repaired(tuned(directory=tmp_path, max_trials=9), begin=6))
    after = {trial.number: trial.score for trial in read_project(folder).trials if trial.has_score}
    assert before.items() <= after.items()
    assert len(tuner.oracle.trials) == 9
    assert proposed(folder) == [6, 7, 8]
    assert (folder / "trial_3" / "trial.json.half-written").is_file()
    mend(folder)
    assert read_project(folder).trials[3].state == "failed"


def test_a_trial_that_was_written_down_and_never_run_is_tried_again(tmp_path):
    run(tuned(directory=tmp_path, max_trials=4))
    folder = tmp_path / "p"
    left = json.loads((folder / "trial_3" / "trial.json").read_text())
    oracle = json.loads((folder / "oracle.json").read_text())
    left.update(status="RUNNING", score=None, metrics={"metrics": {}})
    oracle["start_order"].remove("3")
    oracle["end_order"].remove("3")
    (folder / "trial_3" / "trial.json").write_text(json.dumps(left))
    (folder / "oracle.json").write_text(json.dumps(oracle))
    run(repaired(tuned(directory=tmp_path, max_trials=6), begin=99))
    trials = read_project(folder).trials
    assert (trials[3].state, trials[4].state) == ("failed", "finished")
    assert trials[4].parameters == trials[3].parameters
    assert "tried again as trial 4" in trials[3].why_failed


def test_a_trial_that_ends_the_process_again_and_again_is_given_up(tmp_path):
    space = kt.HyperParameters()
    scored(space)
    tuner = repaired(tuned(directory=tmp_path, max_trials=3, hyperparameters=space), begin=99)
    trial = tuner.oracle.create_trial("tuner0")
    for _ in range(2):
        tuner.isorun.begin(trial.trial_id)
    search = read_project(run_in(tmp_path, 3))
    assert search.trials[0].state == "failed"
    assert "the process ended in this trial 2 times" in search.trials[0].why_failed
    assert [one.state for one in search.trials[1:]] == ["finished"] * 2


def run_in(folder, trials):
    run(repaired(tuned(directory=folder, max_trials=trials), begin=99))
    return folder / "p"


def test_what_is_no_tuner_and_arguments_that_make_no_sense_are_refused(tmp_path):
    with pytest.raises(InputError, match="goes around a tuner"):
        isorun.repair.keras_tuner(kt.RandomSearch)
    with pytest.raises(InputError, match="begin"):
        repaired(tuned(directory=tmp_path, max_trials=3), begin="never")


def test_a_tuner_may_be_repaired_twice(tmp_path):
    tuner = repaired(repaired(tuned(directory=tmp_path, max_trials=8), begin=2), begin=99)
    assert type(tuner).__mro__.count(type(tuner).__mro__[1]) == 1
    run(tuner)
    assert proposed(tmp_path / "p") == []


def test_a_tuner_of_scikit_learn_is_repaired(tmp_path):
    svm = pytest.importorskip("sklearn.svm")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3))
    tuner = kt.tuners.SklearnTuner(
        oracle=kt.oracles.RandomSearchOracle(objective=kt.Objective("score", "max"), max_trials=8, seed=1),
        hypermodel=lambda hp: svm.SVC(C=hp.Float("alpha", 1e-3, 1e3, sampling="log")),
        directory=tmp_path,
        project_name="p",
    )
    repaired(tuner, begin=4).search(x, (x[:, 0] > 0).astype(int))
    assert proposed(tmp_path / "p") == [4, 5, 6, 7]


def build(hp):
    activation = hp.Choice("activation", ["sigmoid", "relu"])
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(4, activation), keras.layers.Dense(2, "softmax")])
    model.compile(
        keras.optimizers.SGD(hp.Float("lr", 1e-3, 1.0, sampling="log")),
        "sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    return model


def data():
    x = np.random.default_rng(0).normal(size=(32, 4)).astype("float32")
    y = (x[:, 0] > 0).astype("int32")
    return {"x": x, "y": y, "validation_data": (x, y), "epochs": 4, "verbose": 0}


@pytest.mark.long
def test_trainings_are_watched_and_their_symptoms_lie_beside_them(tmp_path):
    tuner = kt.RandomSearch(build, "val_accuracy", max_trials=4, directory=tmp_path, project_name="p", seed=1)
    repaired(tuner, begin=2).search(**data())
    search = read_project(tmp_path / "p")
    assert [trial.state for trial in search.trials] == ["finished"] * 4
    for trial in search.trials:
        assert trial.seconds > 0
        assert trial.started > 1e9
        assert trial.symptoms.gradient in ("normal", "vanishing", "exploding", "dying")
        assert trial.symptoms.convergence != "unknown"
    assert tuner.get_best_models()[0].predict(data()["x"], verbose=0).shape == (32, 2)
    assert sorted(path.name for path in (tmp_path / "p").glob("**/*.new")) == []


def test_what_is_offered_is_kept_in_the_engines_trials_tried_in_isoruns_and_rebuilt_with_the_best(tmp_path):
    tuner = kt.RandomSearch(build, "val_accuracy", max_trials=2, directory=tmp_path, project_name="p", seed=1)
    repaired(tuner, begin=2).search(**data())
    search = read_project(tmp_path / "p")
    offered = {one.name: one.choices for one in search.space if one.name.startswith("isorun.")}
    assert offered["isorun.momentum"][0] == "keep"
    assert "isorun.activation" not in offered  # the space has one
    assert all(trial.parameters["isorun.momentum"] == "keep" for trial in search.trials)
    assert {one.name for one in tuner.oracle.get_space().space} == {"activation", "lr"}
    tuner.oracle.max_trials = 3
    plan = RepairPolicy(0, seed=0).plan(search, 2)
    # The optimizer among them: the one that a plan draws may have no momentum.
    edits = {"isorun.optimizer": "sgd", "isorun.momentum": "0.9", "isorun.initialiser": "he_uniform"}
    edits["isorun.end_learning_rate"] = "1e-1"
    action = replace(plan.action, parameters={**plan.action.parameters, **edits})
    attach(tuner, Planned(2, plan=replace(plan, action=action))).search(**data())
    last = read_project(tmp_path / "p").trials[2]
    assert last.state == "finished"
    assert last.symptoms.gradient != "unknown"
    assert edits.items() <= last.parameters.items()
    model = tuner.hypermodel.build(tuner.oracle.trials["2"].hyperparameters)
    assert model.optimizer.momentum == 0.9
    assert {one.name for one in tuner.oracle.get_space().space} == {"activation", "lr"}


@dataclass(frozen=True)
class Planned(RepairPolicy):
    """Proposes one thing."""

    plan_made: object = None

    def __init__(self, begin, plan):
        super().__init__(begin)
        object.__setattr__(self, "plan_made", plan)

    def propose(self, search, taken, rng):
        return self.plan_made


def test_a_hypermodel_that_was_expanded_by_hand_is_expanded_once(tmp_path):
    from isorun.repair.expansion import hypermodel

    expanded = hypermodel(build)
    tuner = kt.RandomSearch(expanded, "val_accuracy", max_trials=2, directory=tmp_path, project_name="p", seed=1)
    assert any(one.name.startswith("isorun.") for one in tuner.oracle.get_space().space)
    repaired(tuner, begin=99).search(**data())
    assert {one.name for one in tuner.oracle.get_space().space} == {"activation", "lr"}
    assert {trial.parameters["isorun.momentum"] for trial in read_project(tmp_path / "p").trials} == {"keep"}


@pytest.mark.long
def test_a_training_that_takes_far_too_long_is_ended_and_the_search_goes_on(tmp_path):
    class Slow(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            time.sleep(1.2)

    tuner = kt.RandomSearch(build, "val_accuracy", max_trials=2, directory=tmp_path, project_name="p", seed=1)
    repaired(tuner, begin=9)
    fill(tuner)
    given = data()
    slow = attach(tuner, RepairPolicy(99))
    slow.oracle.max_trials = 8
    slow.search(**given, callbacks=[Slow()])
    search = read_project(tmp_path / "p")
    assert search.trials[-1].why_failed.strip().splitlines()[-1].endswith("far longer than others did")
    assert len(search.trials) == 8


def fill(tuner):
    """The folder of a tuner filled with six trials of 5 ms."""
    tuner.oracle.max_trials = 8
    for number in range(6):
        trial = tuner.oracle.create_trial("t")
        tuner.isorun.note(trial.trial_id, started=time.time(), seconds=0.005)
        tuner.oracle.update_trial(trial.trial_id, {"val_accuracy": 0.1 * number})
        trial.status = "COMPLETED"
        tuner.oracle.end_trial(trial)


def test_half_a_trial_is_written_anew_from_what_was_kept_beside_it(tmp_path):
    run(repaired(tuned(directory=tmp_path, max_trials=4), begin=9))
    before = scores(tmp_path / "p")
    path = tmp_path / "p" / "trial_2" / "trial.json"
    path.write_text(path.read_text()[:50])
    assert scores(tmp_path / "p") == before
    mend(tmp_path / "p")
    assert json.loads(path.read_text())["status"] == "COMPLETED"
    again = repaired(tuned(directory=tmp_path, max_trials=6), begin=9)
    run(again)
    assert before.items() <= scores(tmp_path / "p").items()
    assert len(scores(tmp_path / "p")) == 6


def test_the_tuner_and_its_oracle_stay_of_their_classes_and_no_private_name_is_touched(tmp_path):
    tuner = tuned(directory=tmp_path, max_trials=3)
    classes, before = (type(tuner), type(tuner.oracle)), (dict(vars(tuner)), dict(vars(tuner.oracle)))
    repaired(tuner)
    repaired(tuner)
    assert (type(tuner), type(tuner.oracle)) == classes
    changed = [set(vars(one)) - set(was) for one, was in zip((tuner, tuner.oracle), before, strict=True)]
    assert changed[0] == {"run_trial", "save", "isorun"}
    assert changed[1] == {"populate_space", "score_trial", "end_trial", "save", "isorun"}
    assert len(run(tuner).oracle.trials) == 3


def test_a_keras_tuner_that_lacks_what_is_needed_is_told(tmp_path, monkeypatch):
    tuner = tuned(directory=tmp_path, max_trials=3)
    monkeypatch.delattr(kt.Oracle, "score_trial")
    with pytest.raises(InputError, match=r"without Oracle.score_trial[\s\S]*keras-tuner==1.4"):
        repaired(tuner)


CHILD = """
    import os, sys, time, warnings
    warnings.simplefilter("ignore")
    os.environ["KERAS_BACKEND"] = "torch"
    import keras_tuner as kt
    import isorun.repair

    class Tuned(kt.RandomSearch):
        def run_trial(self, trial, **_):
            hp = trial.hyperparameters
            time.sleep(0.02)
            return {"score": hp.Float("lr", 1e-5, 1.0, sampling="log") + hp.Int("units", 1, 1000)}

    made = Tuned(objective=kt.Objective("score", "max"), max_trials=500, directory=sys.argv[1], project_name="p")
    isorun.repair.keras_tuner(made, begin=3, prior=None).search(verbose=0)
"""


@pytest.mark.parametrize("writing", [1, 2, 3])  # it is created, told a score, ended
def test_a_kill_while_a_trial_is_written_leaves_a_folder_that_its_tuner_opens(writing, tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    def replace(draft, target, replaces=Path.replace, writings=itertools.count(1)):  # noqa: B008 - one for all calls
        if target.name == "trial.json" and next(writings) == writing:
            raise Killed
        return replaces(draft, target)

    run(repaired(tuned(directory=tmp_path, max_trials=4), begin=2))
    before = scores(tmp_path / "p")
    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", replace)
        with pytest.raises(Killed):
            run(repaired(tuned(directory=tmp_path, max_trials=9), begin=2))
    run(repaired(tuned(directory=tmp_path, max_trials=9), begin=2))
    assert before.items() < scores(tmp_path / "p").items()
    assert len(scores(tmp_path / "p")) == 9


@pytest.mark.slow
@pytest.mark.chaos
def test_killed_at_any_moment_and_attached_again_no_finished_trial_is_lost(tmp_path):
    script = tmp_path / "child.py"
    script.write_text(textwrap.dedent(CHILD))
    finished = {}
    rng = np.random.default_rng()
    for _ in range(3):
        child = subprocess.Popen([sys.executable, str(script), str(tmp_path)], stdout=subprocess.DEVNULL)
        worked, moved = 0.0, time.monotonic()
        while len(scores(tmp_path / "p")) < len(finished) + 4:  # however long that takes on a loaded machine
            assert child.poll() is None, "the search ended by itself"
            if cpu_seconds(child.pid) > worked:
                worked, moved = cpu_seconds(child.pid), time.monotonic()
            assert worked < 60, "it works and makes no trials"
            assert time.monotonic() - moved < 300, "it waits for something"
            time.sleep(float(rng.uniform(0.0, 0.05)))
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        now = scores(tmp_path / "p")
        assert finished.items() <= now.items()
        assert len(now) >= len(finished) + 4
        finished = now
    search = read_project(tmp_path / "p")
    assert sum(trial.state == "running" for trial in search.trials) <= 1
    assert len({trial.configuration for trial in search.trials if trial.proposed_by}) >= len(search.trials) - 6


def cpu_seconds(process):
    """What a process has computed so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def scores(folder):
    if not (folder / "oracle.json").exists():
        return {}
    return {trial.number: trial.score for trial in read_project(folder).trials if trial.has_score}
