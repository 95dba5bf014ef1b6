"""Searches on tables, as users run them: an Optuna study with a sampler; every strategy on the same seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import optuna

import isorun.repair
from isorun.repair.actions import single_edits
from isorun.repair.engines.optuna import RepairSampler
from isorun.repair.policy import RepairPolicy
from isorun.repair.priorities import Prior, Proposal
from isorun.repair.priors import shuffled
from isorun.repair.searches import Search
from repair.kept_searches import interval
from repair.tables import TrainingTable

__all__ = ["STRATEGIES", "TRIALS", "interval", "scores_of", "suggested"]

TRIALS: Final = 25
_BEGIN: Final = 3


def _repaired(prior: Prior | None, seed: int, **options: Any) -> optuna.samplers.BaseSampler:
    sampler = optuna.samplers.TPESampler(seed=seed)
    return isorun.repair.optuna(sampler, **{"begin": _BEGIN, "prior": prior, "seed": seed, **options})


def _wrong(prior: Prior, seed: int) -> Prior:
    return shuffled(prior, np.random.default_rng([seed, 1]))


class UniformEdits(RepairPolicy):
    """A control: any edit of the best trial, each as likely as the others."""

    def propose(self, search: Search, taken: Sequence[Any], rng: np.random.Generator) -> Proposal | None:
        """One edit, drawn without asking what it brings."""
        best = search.best
        tried = {*(trial.configuration for trial in search.trials), *taken}
        actions = [] if best is None else single_edits(search, best, tried, rng)
        if best is None or not actions:
            return None
        return Proposal(actions[int(rng.integers(len(actions)))], best.number, 0.0, with_prior=False)


STRATEGIES: Final[Mapping[str, Callable[[int, Prior], optuna.samplers.BaseSampler]]] = {
    "TPE": lambda seed, _: optuna.samplers.TPESampler(seed=seed),
    "random": lambda seed, _: optuna.samplers.RandomSampler(seed=seed),
    "uniform edits": lambda seed, _: _uniform(seed),
    "no prior": lambda seed, _: _repaired(None, seed),
    "repair": lambda seed, prior: _repaired(prior, seed),
    "repair without guard": lambda seed, prior: _repaired(prior, seed, guard=False),
    "shuffled prior": lambda seed, prior: _repaired(_wrong(prior, seed), seed),
    "shuffled prior without guard": lambda seed, prior: _repaired(_wrong(prior, seed), seed, guard=False),
    "repair from trial 10 on": lambda seed, prior: _repaired(prior, seed, begin=10),
    "repair from a bug on": lambda seed, prior: _repaired(prior, seed, begin="bug"),
}
"""What is compared: the engine, random search and uniform edits as controls; repairing with and without its parts."""


def _uniform(seed: int) -> optuna.samplers.BaseSampler:
    return RepairSampler(optuna.samplers.TPESampler(seed=seed), UniformEdits(_BEGIN, seed=seed))


def scores_of(strategy: str, table: TrainingTable, prior: Prior, seeds: Sequence[int]) -> npt.NDArray[np.float64]:
    """By seed: the mean over training seeds of the configuration that a search of 25 trials calls its best."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return np.array([_found(STRATEGIES[strategy](seed, prior), table, seed) for seed in seeds])


def _found(sampler: optuna.samplers.BaseSampler, table: TrainingTable, seed: int) -> float:
    rng = np.random.default_rng(seed)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(lambda trial: table.drawn(suggested(trial, table), rng), n_trials=TRIALS)
    return table.mean(study.best_params)


def suggested(trial: optuna.Trial, table: TrainingTable) -> dict[str, Any]:
    """The parameters of a table, as an objective asks for them."""
    found: dict[str, Any] = {}
    for one in table.space:
        if one.kind == "category":
            found[one.name] = trial.suggest_categorical(one.name, one.choices)
        elif one.kind == "int":
            found[one.name] = trial.suggest_int(one.name, int(one.low), int(one.high), log=one.log)
        else:
            found[one.name] = trial.suggest_float(one.name, one.low, one.high, log=one.log)
    return found
