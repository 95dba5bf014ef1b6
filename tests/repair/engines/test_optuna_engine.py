"""The sampler around Optuna's: as users run it, in every storage, in parallel, killed, and with spaces of any kind."""

import datetime as dt
import json
import math
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

optuna = pytest.importorskip("optuna")

import isorun.repair  # noqa: E402
from isorun.diagnose import Symptoms  # noqa: E402
from isorun.errors import InputError, MissingExtra  # noqa: E402
from isorun.repair.bugs import find_bugs  # noqa: E402
from isorun.repair.engines.optuna import continue_study, open_study, requeue, search_of  # noqa: E402
from isorun.repair.priorities import Prior  # noqa: E402
from isorun.repair.searches import with_noise  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.ERROR)


def good(trial):
    lr = trial.suggest_float("lr", 1e-5, 1.0, log=True)
    units = trial.suggest_int("units", 8, 256, log=True)
    activation = trial.suggest_categorical("activation", ["relu", "tanh", "sigmoid"])
    lost = {"relu": 0.0, "tanh": 0.1, "sigmoid": 0.3}[activation]
    return 1.0 - 0.1 * abs(np.log10(lr) + 2.5) - lost - 0.02 * abs(np.log2(units / 64))


def conditional(trial):
    kind = trial.suggest_categorical("optimizer", ["sgd", "adam"])
    lr = trial.suggest_float("lr", 1e-4, 1.0, log=True)
    if kind == "sgd":
        return trial.suggest_float("momentum", 0.0, 0.99) - abs(np.log10(lr))
    return 1.0 + trial.suggest_float("beta1", 0.5, 0.99) - abs(np.log10(lr) + 2)


def sampler(inner=None, **options):
    options = {"prior": None, "seed": 0, **options}
    return isorun.repair.optuna(inner or optuna.samplers.RandomSampler(seed=1), **options)


def repaired(objective, trials, storage=None, direction="maximize", **options):
    study = optuna.create_study(storage=storage, study_name="s", direction=direction, sampler=sampler(**options))
    study.optimize(objective, n_trials=trials, catch=(RuntimeError,))
    return study


def proposed(study):
    return [trial for trial in search_of(study).trials if trial.proposed_by]


def test_from_its_trial_on_every_trial_changes_the_best_one():
    study = repaired(good, 25, begin=5)
    trials = {trial.number: trial for trial in search_of(study).trials}
    made = proposed(study)
    assert [trial.number for trial in made] == list(range(5, 25))
    for trial in made:
        before = [one for number, one in trials.items() if number < trial.number]
        assert trial.origin == max(before, key=lambda one: one.score).number
        changed = sum(trials[trial.origin].parameters[name] != value for name, value in trial.parameters.items())
        assert 1 <= changed <= 3
    assert len({trial.configuration for trial in trials.values()}) == 25


@pytest.mark.parametrize(
    "inner", [optuna.samplers.TPESampler, optuna.samplers.RandomSampler], ids=lambda one: one.__name__
)
def test_until_a_bug_is_found_the_search_is_the_users_own(inner):
    alone = optuna.create_study(direction="maximize", sampler=inner(seed=3))
    alone.optimize(good, n_trials=8)
    study = optuna.create_study(direction="maximize", sampler=sampler(inner(seed=3)))
    study.optimize(good, n_trials=8)
    assert [trial.params for trial in study.trials] == [trial.params for trial in alone.trials]
    assert proposed(study) == []


def test_a_bug_is_repaired_and_a_reached_target_hands_back():
    stuck = iter([0.5, *[0.1] * 200])

    def objective(trial):
        value = good(trial)
        return next(stuck) if trial.number < 12 else value

    study = repaired(objective, 40, begin="bug")
    assert proposed(study)
    assert proposed(study)[0].number == 12
    reached = repaired(objective, 20, begin="bug", target=-10.0)
    assert proposed(reached) == []


def test_repairing_helps_a_search_that_is_stuck():
    alone, helped = [], []
    for seed in range(6):
        inner = optuna.samplers.RandomSampler(seed=seed)
        study = optuna.create_study(direction="maximize", sampler=inner)
        study.optimize(good, n_trials=25)
        alone.append(study.best_value)
        study = optuna.create_study(
            direction="maximize", sampler=sampler(optuna.samplers.RandomSampler(seed=seed), begin=5)
        )
        study.optimize(good, n_trials=25)
        helped.append(study.best_value)
    assert np.mean(helped) > np.mean(alone) + 0.02


def test_a_loss_is_made_smaller():
    study = repaired(lambda trial: -good(trial), 25, direction="minimize", begin=5)
    search = search_of(study)
    assert search.direction == "lower"
    assert search.best.score == study.best_value
    assert search.best.number >= 5


def test_branches_of_a_space_are_opened_and_left():
    study = repaired(conditional, 40, begin=4)
    for trial in study.trials:
        assert set(trial.params) in ({"optimizer", "lr", "momentum"}, {"optimizer", "lr", "beta1"})
    assert study.best_params["optimizer"] == "adam"
    assert len(proposed(study)) == 36


def test_a_space_that_changes_between_trials_is_followed():
    def objective(trial):
        low = 1e-3 if trial.number > 6 else 1e-5
        return -abs(np.log10(trial.suggest_float("lr", low, 1.0, log=True)) + 4)

    study = repaired(objective, 15, begin=3)
    assert all(trial.params["lr"] >= 1e-3 for trial in study.trials if trial.number > 6)


def test_failed_and_pruned_trials_are_no_candidates_and_end_nothing():
    def objective(trial):
        value = good(trial)
        if trial.params["activation"] == "tanh":
            raise RuntimeError("no memory")
        if trial.params["units"] > 200:
            raise optuna.TrialPruned
        return float("nan") if trial.params["lr"] > 0.5 else value

    study = repaired(objective, 40, begin=5)
    states = {trial.state for trial in search_of(study).trials}
    assert "failed" in states
    assert len(study.trials) == 40
    assert search_of(study).best.parameters["activation"] != "tanh"


def test_a_space_that_is_used_up_is_left_to_the_users_sampler():
    study = repaired(lambda trial: trial.suggest_int("x", 1, 3), 12, begin=0)
    assert {trial.params["x"] for trial in study.trials} == {1, 2, 3}
    assert len(study.trials) == 12


def test_several_objectives_are_refused():
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler(begin=0))
    with pytest.raises(InputError, match="several objectives"):
        study.optimize(lambda trial: (trial.suggest_float("x", 0, 1), 1.0), n_trials=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"begin": -1}, "begin"), ({"begin": True}, "begin"), ({"prior": "/no/file"}, "cannot be read")],
)
def test_arguments_that_make_no_sense_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        sampler(**options)


def test_what_is_no_sampler_is_refused():
    with pytest.raises(InputError, match="goes around a sampler"):
        isorun.repair.optuna("TPE")


def test_constraints_keep_a_trial_from_being_the_best():
    def objective(trial):
        value = good(trial)
        trial.set_constraint("small", trial.params["units"] - 32.0)
        return value

    if not hasattr(optuna.Trial, "set_constraint"):
        pytest.skip("Optuna 5 has them")
    study = repaired(objective, 25, begin=5)
    assert search_of(study).best.parameters["units"] <= 32


def test_under_hyperband_nothing_can_be_remembered_and_the_search_goes_on():
    def objective(trial):
        for step in range(3):
            trial.report(good(trial) * step, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return good(trial)

    study = optuna.create_study(
        direction="maximize", sampler=sampler(begin=3), pruner=optuna.pruners.HyperbandPruner(max_resource=3)
    )
    study.optimize(objective, n_trials=20)
    assert len(study.trials) == 20


def test_threads_never_try_the_same_at_the_same_time():
    def objective(trial):
        value = sum(trial.suggest_categorical(f"op{place}", ["a", "b", "c"]) == "b" for place in range(4))
        time.sleep(0.002)
        return value

    study = optuna.create_study(direction="maximize", sampler=sampler(begin=4))
    study.optimize(objective, n_trials=30, n_jobs=4)
    made = [trial.configuration for trial in proposed(study)]
    assert len(made) >= 20
    assert len(set(made)) == len(made)


def test_two_that_claim_the_same_do_not_both_get_it(tmp_path):
    """Two samplers with the same seed, as in two processes, at the same study at the same moment."""
    url = f"sqlite:///{tmp_path}/s.db"
    repaired(good_choice, 4, storage=url, begin=99)
    barrier = threading.Barrier(2)
    studies = [optuna.load_study(study_name="s", storage=url, sampler=sampler(begin=0)) for _ in range(2)]
    found = []

    def ask(study):
        barrier.wait()
        trial = study.ask()
        good_choice(trial)
        found.append(tuple(sorted(trial.params.items())))

    threads = [threading.Thread(target=ask, args=(study,)) for study in studies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 2


def good_choice(trial):
    return sum(trial.suggest_categorical(f"op{place}", ["a", "b", "c"]) == "b" for place in range(3))


STORAGES = {
    "memory": lambda _: optuna.storages.InMemoryStorage(),
    "sqlite": lambda folder: f"sqlite:///{folder}/study.db",
    "journal": lambda folder: optuna.storages.JournalStorage(
        optuna.storages.journal.JournalFileBackend(str(folder / "study.log"))
    ),
}


@pytest.mark.parametrize("kind", STORAGES)
def test_a_search_of_ten_trials_by_another_is_taken_over_at_the_eleventh(kind, tmp_path):
    storage = STORAGES[kind](tmp_path)
    before = optuna.create_study(
        storage=storage, study_name="s", direction="maximize", sampler=optuna.samplers.TPESampler(seed=0)
    )
    before.optimize(good, n_trials=10)
    after = optuna.load_study(study_name="s", storage=storage, sampler=sampler(begin=10))
    after.optimize(good, n_trials=5)
    assert [trial.number for trial in proposed(after)] == [10, 11, 12, 13, 14]
    assert after.best_value >= before.best_value


def test_symptoms_are_noted_with_a_trial_or_told_by_its_curve():
    def objective(trial):
        trial.suggest_categorical("block", ["resnet18", "vanilla"])
        isorun.repair.note(trial, [], loss=[2.3, 2.3, 2.3, 2.3], accuracy=[0.1, 0.1, 0.1, 0.1])
        return 0.1

    study = repaired(objective, 3, begin=99)
    for trial in search_of(study).trials:
        assert trial.symptoms.architecture in ("residual", "plain")
        assert trial.symptoms.convergence == "slow"

    def reporting(trial):
        trial.suggest_float("lr", 0, 1)
        for step in range(6):
            trial.report(0.1, step)
        return 0.1

    assert search_of(repaired(reporting, 1, begin=99)).trials[0].symptoms == Symptoms(convergence="slow")


def test_noise_comes_from_trials_that_were_repeated_else_from_the_prior():
    study = repaired(lambda trial: trial.suggest_float("x", 0, 1), 3, begin=99)
    assert with_noise(search_of(study), 0.3).noise == 0.3
    study.enqueue_trial({"x": study.trials[0].params["x"]})
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1) + 0.1, n_trials=1)
    assert with_noise(search_of(study), 0.3).noise == pytest.approx(0.1 / np.sqrt(2))
    assert Prior(()).noise == 0


def test_a_trial_that_fails_leaves_its_last_words(tmp_path):
    url = f"sqlite:///{tmp_path}/s.db"
    repaired(good, 3, storage=url, begin=99)

    def failing(trial):
        good(trial)
        raise ValueError("no such layer")

    continue_study(open_study(url, "s"), failing, 3)
    search = search_of(open_study(url, "s"))
    assert [trial.why_failed for trial in search.trials[3:]] == ["ValueError: no such layer"] * 3


def test_an_objective_that_returns_no_score_says_so():
    """Optuna tells it in its log alone, and ends the search at a number that is a text."""
    study, given = optuna.create_study(), iter([None, "0.5", (0.1, 0.2), {}, math.nan, (0.1,), 1, np.float32(2.0)])
    continue_study(study, lambda _: next(given), 8)
    trials = search_of(study).trials
    assert [trial.state for trial in trials] == ["failed"] * 5 + ["finished"] * 3
    assert [trial.why_failed for trial in trials[:5]] == [
        "the objective returned no number (NoneType)",
        "the objective returned a text ('0.5')",
        "the objective returned 2 values, where the study has one",
        "the objective returned no number (dict)",
        "the score is not a number (NaN)",
    ]


CHILD = """
    import sys, time
    import optuna
    import isorun.repair

    def objective(trial):
        value = trial.suggest_float("lr", 1e-5, 1.0, log=True)
        trial.suggest_categorical("activation", ["relu", "tanh"])
        time.sleep(0.05)
        return value

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = isorun.repair.optuna(optuna.samplers.RandomSampler(), begin=3, prior=None)
    study = optuna.create_study(
        storage=sys.argv[1], study_name="s", direction="maximize", sampler=sampler, load_if_exists=True
    )
    study.optimize(objective, n_trials=int(sys.argv[2]))
"""


@pytest.mark.long
def test_killed_at_any_moment_and_attached_again_no_finished_trial_is_lost(tmp_path):
    url = f"sqlite:///{tmp_path}/s.db"
    script = tmp_path / "child.py"
    script.write_text(textwrap.dedent(CHILD))
    finished = {}
    for _ in range(2):
        child = subprocess.Popen([sys.executable, str(script), url, "200"])
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and _finished(tmp_path) < len(finished) + 4:
            time.sleep(0.05)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        now = {one.number: one.value for one in open_study(url, "s").trials if one.state.is_finished()}
        assert finished.items() <= now.items()
        assert len(now) >= len(finished) + 4
        finished = now
    study = open_study(url, "s", sampler(begin=0))
    left = requeue(study)
    continue_study(study, lambda trial: trial.suggest_float("lr", 1e-5, 1.0, log=True), 4)
    again = [one for one in study.trials if "isorun:tried-before-as" in one.user_attrs]
    assert {one.user_attrs["isorun:tried-before-as"] for one in again} <= set(left)
    assert not [one for one in study.trials if one.state == optuna.trial.TrialState.RUNNING]


def _finished(folder: Path) -> int:
    """Only read: who opens a storage that is being made makes its tables, too, and Optuna does not allow for that."""
    if not (folder / "s.db").exists():
        return 0
    try:
        with closing(sqlite3.connect(f"file:{folder}/s.db?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT COUNT(*) FROM trials WHERE state = 'COMPLETE'").fetchone()[0]
    except sqlite3.OperationalError:  # no table yet
        return 0


def test_a_database_that_was_killed_in_the_middle_of_writing_is_read(tmp_path):
    study = optuna.create_study(storage=f"sqlite:///{tmp_path}/s.db", study_name="s")
    study.optimize(lambda trial: trial.suggest_float("lr", 0.0, 1.0), n_trials=2)
    script = f"""
        import os, signal, sqlite3
        held = sqlite3.connect("{tmp_path}/s.db", isolation_level=None)
        held.execute("pragma cache_size = 1")
        held.execute("begin immediate")
        held.execute("create table more (text)")
        held.executemany("insert into more values (?)", [("x" * 3000,)] * 200)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False)
    assert (tmp_path / "s.db-journal").stat().st_size > 0
    assert len(open_study(f"sqlite:///{tmp_path}/s.db", "s").trials) == 2


@pytest.mark.long
def test_processes_on_one_storage_share_the_search(tmp_path):
    url = f"sqlite:///{tmp_path}/s.db"
    script = tmp_path / "child.py"
    script.write_text(textwrap.dedent(CHILD))
    subprocess.run([sys.executable, str(script), url, "1"], check=True)
    children = [subprocess.Popen([sys.executable, str(script), url, "8"]) for _ in range(2)]
    assert [child.wait(timeout=120) for child in children] == [0, 0]
    search = search_of(open_study(url, "s"))
    assert len(search.trials) == 17
    made = [trial.configuration for trial in search.trials if trial.proposed_by]
    assert len(made) >= 10
    assert len(set(made)) == len(made)


def offering(trial):
    value = good(trial)
    offered = trial.suggest_categorical("isorun.activation", ["keep", "selu"])
    return value + (0.2 if offered == "selu" else 0.0)


OWN = {
    "random": lambda: optuna.samplers.RandomSampler(seed=1),
    "TPE": lambda: optuna.samplers.TPESampler(seed=1, n_startup_trials=3),
    "multivariate": lambda: optuna.samplers.TPESampler(seed=1, n_startup_trials=3, multivariate=True),
    "group": lambda: optuna.samplers.TPESampler(seed=1, n_startup_trials=3, multivariate=True, group=True),
    "QMC": lambda: optuna.samplers.QMCSampler(seed=1),
    "NSGA-II": lambda: optuna.samplers.NSGAIISampler(seed=1, population_size=4),
}


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("kind", OWN)
def test_what_is_offered_is_kept_in_the_engines_own_trials_and_is_no_part_of_its_space(kind):
    alone = optuna.create_study(direction="maximize", sampler=OWN[kind]())
    alone.optimize(good, n_trials=10)
    study = optuna.create_study(direction="maximize", sampler=sampler(OWN[kind](), begin=10))
    study.optimize(offering, n_trials=10)
    assert {trial.params["isorun.activation"] for trial in study.trials} == {"keep"}
    own = [{name: value for name, value in one.params.items() if name != "isorun.activation"} for one in study.trials]
    assert own == [one.params for one in alone.trials]
    study.optimize(offering, n_trials=30)
    assert study.best_params["isorun.activation"] == "selu"


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_a_sampler_that_tries_every_configuration_goes_through_its_own_space():
    def objective(trial):
        offered = trial.suggest_categorical("isorun.activation", ["keep", "selu"])
        return trial.suggest_int("x", 1, 4) + trial.suggest_int("y", 1, 2) + (offered == "selu")

    inner = optuna.samplers.BruteForceSampler(seed=1)
    study = optuna.create_study(direction="maximize", sampler=sampler(inner, begin=8))
    study.optimize(objective, n_trials=8)
    assert len({(trial.params["x"], trial.params["y"]) for trial in study.trials}) == 8
    study.optimize(objective, n_trials=4)
    assert len(study.trials) == 12


def test_a_search_taken_over_is_changed_where_its_trials_were_never_asked():
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=1))
    study.optimize(good, n_trials=10)
    study.sampler = sampler(begin=10)
    study.optimize(offering, n_trials=30)
    trials = search_of(study).trials
    made = [(trial.parameters, trials[trial.origin].parameters) for trial in trials if trial.proposed_by]
    assert any(new["isorun.activation"] != old["isorun.activation"] for new, old in made)
    assert study.trials[10].params["isorun.activation"] == "keep"


@pytest.mark.parametrize("seed", range(4))
def test_a_branch_that_is_opened_is_no_trial_that_was_made_before(seed):
    def branches(trial):
        if trial.suggest_categorical("classifier", ["machine", "forest"]) == "machine":
            return 0.98 - 0.002 * abs(np.log10(trial.suggest_float("c", 1e-10, 1e10, log=True)) - 2)
        return 0.9 + 0.002 * trial.suggest_int("depth", 2, 32, log=True)

    inner = optuna.samplers.TPESampler(seed=seed)
    study = optuna.create_study(direction="maximize", sampler=sampler(inner, begin=0, prior="shipped", seed=seed))
    study.optimize(branches, n_trials=30)
    own = [study.trials[int(key.rpartition(":")[2])] for key in study.user_attrs if key.startswith("isorun:proposal:")]
    assert len(own) > 20
    made = [tuple(sorted(trial.params.items())) for trial in study.trials]
    assert max(map(made.count, (tuple(sorted(trial.params.items())) for trial in own))) <= 3


def test_the_time_in_which_nobody_was_there_is_no_part_of_a_trial_that_is_tried_again():
    now = dt.datetime.now()
    study = optuna.create_study(direction="maximize")
    lr = optuna.distributions.FloatDistribution(0.0, 1.0)
    for number in range(12):
        one = optuna.trial.create_trial(params={"lr": number / 20}, distributions={"lr": lr}, values=[number])
        one.datetime_start = now - dt.timedelta(seconds=60 + 2 * number)
        one.datetime_complete = one.datetime_start + dt.timedelta(seconds=1)
        study.add_trial(one)
    left = optuna.trial.create_trial(
        state=optuna.trial.TrialState.RUNNING, params={"lr": 0.9}, distributions={"lr": lr}
    )
    left.datetime_start = now - dt.timedelta(seconds=40)
    study.add_trial(left)
    assert [bug.kind for bug in find_bugs(search_of(study), now=time.time())] == ["stalled-trial"]
    requeue(study)
    assert study.trials[12].duration.total_seconds() > 30
    assert "stalled-trial" not in [bug.kind for bug in find_bugs(search_of(study), now=time.time())]
    assert search_of(study).trials[12].why_failed == "its process was gone before it ended"


def test_the_values_of_a_trial_come_from_one_plan_whatever_was_found_since(monkeypatch):
    from isorun.repair.engines import optuna as engine

    def objective(trial):
        return trial.suggest_float("x", 0, 1) + trial.suggest_float("y", 0, 1)

    study, heard = repaired(objective, 4, begin=4), []
    own = engine.values_for
    monkeypatch.setattr(engine, "values_for", lambda plan, *rest: heard.append(plan) or own(plan, *rest))
    first = study.ask()
    first.suggest_float("x", 0, 1)
    study.optimize(objective, n_trials=2)  # as another thread may
    first.suggest_float("y", 0, 1)
    assert [heard.index(plan) for plan in heard] == [0, 1, 1, 3, 3, 0]
    assert study.trials[4].params == heard[0].action.parameters


def sizes_of(trial):
    layers = trial.suggest_int("layers", 1, 5)
    return -abs(layers - 3) - sum(abs(trial.suggest_float(f"size_{at}", 0, 1) - 0.6) for at in range(layers))


def several_branches(trial):
    """What one parameter opens is not what another one opens, though they meet in few trials."""
    optimizer = trial.suggest_categorical("optimizer", ["sgd", "adam", "rmsprop"])
    activation = trial.suggest_categorical("activation", ["relu", "tanh", "elu", "selu"])
    opened = {"sgd": ("momentum", 0.9), "adam": ("beta2", 0.95)}.get(optimizer)
    away = abs(trial.suggest_float(opened[0], 0, 1) - opened[1]) if opened else 0.0
    return sizes_of(trial) - away + (activation == "elu")


@pytest.mark.parametrize(("objective", "seed"), [*((sizes_of, seed) for seed in range(4)), (several_branches, 0)])
def test_a_trial_has_what_was_proposed_and_what_was_not_foreseen_is_the_samplers(objective, seed):
    study = repaired(objective, 40, begin=6, seed=seed)
    whole = 0
    claims = {key: dict(json.loads(one["configuration"])) for key, one in study.user_attrs.items() if "proposal" in key}
    for key, planned in claims.items():
        made = {name: repr(value) for name, value in study.trials[int(key.rpartition(":")[2])].params.items()}
        assert all(made[name] == value for name, value in planned.items() if name in made)
        whole += made == planned
    assert whole >= 0.9 * len(claims) > 20


def test_without_optuna_what_keeps_symptoms_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "isorun.repair.engines.optuna")
    with pytest.raises(MissingExtra, match=r"isorun\[optuna\]"):
        isorun.repair.note(None, ())
    with pytest.raises(MissingExtra, match=r"isorun\[torch\]"):
        isorun.repair.lightning(None)


def test_every_name_is_seen_before_it_is_used():
    assert set(isorun.repair.__all__) <= set(dir(isorun.repair))


def test_what_a_database_says_is_told_and_not_what_optuna_takes_it_for(monkeypatch):
    """Of half a file Optuna says that a commit failed, for instance because a text was too long."""
    monkeypatch.setattr("isorun.repair.engines.optuna._check_sqlite", lambda *_: None)

    def opened(_):
        broken = sqlite3.DatabaseError("database disk image is malformed")
        cause = pytest.importorskip("sqlalchemy").exc.DatabaseError("select 1", {}, broken)
        raise optuna.exceptions.StorageInternalError("An exception is raised during the commit.") from cause

    monkeypatch.setattr(optuna.storages, "get_storage", opened)
    with pytest.raises(InputError, match="cannot be read") as told:
        open_study("sqlite:///half.db", "s")
    assert told.value.found == "database disk image is malformed"


def test_half_a_line_of_a_journal_is_set_aside_before_anything_is_written_behind_it(tmp_path):
    path = tmp_path / "study.log"
    backend = optuna.storages.journal.JournalFileBackend(str(path))
    study = optuna.create_study(storage=optuna.storages.JournalStorage(backend), study_name="s", direction="maximize")
    study.optimize(lambda trial: trial.suggest_float("lr", 1e-3, 1.0), n_trials=3)
    path.write_bytes(path.read_bytes() + b'{"op_code": 6, "tri')  # as a kill leaves it
    found = isorun.repair.go_on(f"journal:{path}", 2, lambda trial: trial.suggest_float("lr", 1e-3, 1.0))
    assert len(found.search.trials) == 5
    assert all(trial.has_score for trial in found.search.trials)
    assert (tmp_path / "study.log.half-written").read_bytes() == b'{"op_code": 6, "tri'
