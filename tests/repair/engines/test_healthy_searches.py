"""Optuna as people use it, where nothing is wrong: no bug is told. (How long a search may be silent: test_bugs.py.)"""

import datetime as dt
from dataclasses import replace

import numpy as np
import pytest

optuna = pytest.importorskip("optuna")

from isorun.errors import InputError  # noqa: E402
from isorun.repair.bugs import find_bugs  # noqa: E402
from isorun.repair.engines.optuna import search_of  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.ERROR)
pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")


def plain(trial):
    lr, width = trial.suggest_float("lr", 1e-4, 1.0, log=True), trial.suggest_int("width", 8, 512, log=True)
    return 0.9 - 0.1 * abs(np.log10(lr) + 2) - 0.02 * abs(np.log2(width / 64))


def conditional(trial):
    if trial.suggest_categorical("optimizer", ["sgd", "adam"]) == "sgd":
        return trial.suggest_float("momentum", 0.0, 0.99)
    return 0.5 + 0.5 * trial.suggest_float("beta", 0.5, 0.99)


def pruned(trial):
    score = plain(trial)
    for step in range(4):
        trial.report(score * (step + 1) / 4, step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return score


def on_a_grid(trial):
    return 0.1 * trial.suggest_int("depth", 1, 4) + 0.05 * trial.suggest_categorical("heads", [1, 2, 4])


def sometimes_failing(trial):
    if trial.number in (4, 21, 33):
        raise RuntimeError("out of memory")
    return plain(trial)


GRID = {"depth": [1, 2, 3, 4], "heads": [1, 2, 4]}
USAGES = {
    "conditional space": (conditional, lambda: optuna.samplers.TPESampler(seed=0), 30),
    "pruned trials": (pruned, lambda: optuna.samplers.TPESampler(seed=0), 40),
    "a grid to its end": (on_a_grid, lambda: optuna.samplers.GridSampler(GRID, seed=0), None),
    "quasi-random": (plain, lambda: optuna.samplers.QMCSampler(seed=0, warn_independent_sampling=False), 32),
    "random": (plain, lambda: optuna.samplers.RandomSampler(seed=3), 30),
    "a few failures of many": (sometimes_failing, lambda: optuna.samplers.RandomSampler(seed=3), 40),
    "one trial alone": (plain, lambda: optuna.samplers.TPESampler(seed=0), 1),
}


def kinds(study, now=None, *, timed=False):
    """timed: by the times that trials really took; else by a second each, for a busy machine takes what it takes."""
    found = search_of(study)
    if not timed:
        same = [replace(trial, seconds=1.0) if trial.is_over else trial for trial in found.trials]
        found = replace(found, trials=tuple(same))
    return {bug.kind for bug in find_bugs(found, now=now)} - {"ineffective-search"}


@pytest.mark.parametrize("usage", USAGES)
def test_a_healthy_search_has_no_bug(usage):
    objective, sampler, trials = USAGES[usage]
    study = optuna.create_study(direction="maximize", sampler=sampler())
    study.optimize(objective, n_trials=trials, catch=(RuntimeError,))
    assert len(study.trials) == (trials or 12)
    assert kinds(study) == set()


def test_only_a_grid_is_finished_when_all_was_tried():
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.BruteForceSampler(seed=0))
    study.optimize(on_a_grid)
    assert kinds(study) == {"exhausted-space"}


def test_cma_es_is_no_bug():
    pytest.importorskip("cmaes")
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.CmaEsSampler(seed=0))
    study.optimize(plain, n_trials=40)
    assert kinds(study) == set()


def test_trials_that_were_asked_for_and_those_asked_for_again_at_each_start_are_no_duplicates():
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    for start in range(4):
        study.enqueue_trial({"lr": 0.01, "width": 64})
        study.enqueue_trial({"lr": 0.1 / (start + 1), "width": 64})
        study.optimize(plain, n_trials=6)
    assert kinds(study) == set()


def test_workers_whose_trials_run_still_are_none():
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(plain, n_trials=20)
    asked = [study.ask() for _ in range(8)]
    for trial in asked:
        plain(trial)
    began = max(trial.datetime_start for trial in asked).timestamp()
    assert kinds(study, now=began + 0.5) == set()


def test_a_first_trial_that_compiles_and_trials_of_milliseconds_are_none():
    study = optuna.create_study(direction="maximize")
    for number, seconds in enumerate((90.0, *[2.0] * 15)):
        study.add_trial(taken(number, seconds))
    assert kinds(study, timed=True) == set()
    quick = optuna.create_study(direction="maximize")
    for number, seconds in enumerate((*[0.002] * 15, 0.4)):
        quick.add_trial(taken(number, seconds))
    assert kinds(quick, timed=True) == set()
    quick.add_trial(taken(16, 30.0))
    assert kinds(quick, timed=True) == {"stalled-trial"}


def taken(number, seconds):
    begin = dt.datetime(2026, 1, 1) + dt.timedelta(minutes=5 * number)
    return optuna.trial.FrozenTrial(
        number=number,
        state=optuna.trial.TrialState.COMPLETE,
        value=0.5 + 0.01 * number,
        datetime_start=begin,
        datetime_complete=begin + dt.timedelta(seconds=seconds),
        params={"lr": 0.1 / (number + 1)},
        distributions={"lr": optuna.distributions.FloatDistribution(1e-4, 1.0, log=True)},
        user_attrs={},
        system_attrs={},
        intermediate_values={},
        trial_id=number,
    )


def test_several_objectives_are_refused_by_name():
    study = optuna.create_study(directions=["maximize", "minimize"])
    study.optimize(lambda trial: (plain(trial), 1.0), n_trials=3)
    with pytest.raises(InputError, match="objective"):
        search_of(study)
