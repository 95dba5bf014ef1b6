"""A real search that is stuck, repaired: deep networks of sigmoids on digits, 14 trials, then 15 more by each strategy.

The first 14 trials draw all but the activation at random, so nothing trains. In searches that are stuck twice the
learning rate is one that is far too small, too, and no single change helps. What is told by seed: whether 0.9 is
reached, and after how many trials; by parameter: in how many trials it was changed, alone or with others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import optuna
import torch
from sklearn.datasets import load_digits

import isorun
import isorun.repair
from isorun.repair.actions import single_edits
from isorun.repair.engines.optuna import RepairSampler, search_of
from repair.searching import UniformEdits, interval

__all__ = ["measure", "repaired_search"]

_SEEDS: Final = range(10)
_STUCK, _MORE = 14, 15
_TARGET: Final = 0.9
_TRAINED: Final = 1200
_TOO_SMALL: Final = (1e-5, 2e-5)
_ACTIVATIONS: Final = {"sigmoid": torch.nn.Sigmoid, "tanh": torch.nn.Tanh, "relu": torch.nn.ReLU}


def _repaired(seed: int, **options: Any) -> optuna.samplers.BaseSampler:
    return isorun.repair.optuna(optuna.samplers.TPESampler(seed=seed), **{"begin": 0, "seed": seed, **options})


STRATEGIES: Final[Mapping[str, Callable[[int], optuna.samplers.BaseSampler]]] = {
    "TPE": lambda seed: optuna.samplers.TPESampler(seed=seed),
    "random": lambda seed: optuna.samplers.RandomSampler(seed=seed),
    "uniform edits": lambda seed: RepairSampler(optuna.samplers.TPESampler(seed=seed), UniformEdits(0, seed=seed)),
    "no prior": lambda seed: _repaired(seed, prior=None),
    "shuffled prior": lambda seed: _repaired(seed, prior=f"shipped, without digits, shuffled {seed}"),
    "repair": lambda seed: _repaired(seed, prior="shipped, without digits"),
}
"""What goes on with a stuck search. The shipped counts from digits are left out."""


def _objective(seed: int) -> Callable[[optuna.Trial], float]:
    pixels, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    data = torch.tensor((pixels[order] - 4.9) / 6.0, dtype=torch.float32)
    right = torch.tensor(labels[order])

    def objective(trial: optuna.Trial) -> float:
        torch.manual_seed(1000 * seed + trial.number)
        model = _network(trial)
        optimizer = _optimizer(trial, model)
        watcher = isorun.watch(model)
        accuracy = 0.0
        for _ in range(6):
            for start in range(0, _TRAINED, 50):
                optimizer.zero_grad()
                batch = slice(start, start + 50)
                loss = torch.nn.functional.cross_entropy(model(data[batch]), right[batch])
                loss.backward()
                optimizer.step()
            with torch.no_grad():
                accuracy = float((model(data[_TRAINED:]).argmax(1) == right[_TRAINED:]).float().mean())
            watcher.mark(loss=float(loss.detach()), accuracy=accuracy)
        isorun.repair.note(trial, watcher)
        return accuracy

    return objective


def _network(trial: optuna.Trial) -> torch.nn.Module:
    activation = _ACTIVATIONS[trial.suggest_categorical("activation", list(_ACTIVATIONS))]
    width = trial.suggest_int("units", 8, 128, log=True)
    sizes = [64] + [width] * trial.suggest_int("n_layers", 4, 8)
    layers = [part for a, b in pairwise(sizes) for part in (torch.nn.Linear(a, b), activation())]
    return torch.nn.Sequential(*layers, torch.nn.Linear(width, 10))


def _optimizer(trial: optuna.Trial, model: torch.nn.Module) -> torch.optim.Optimizer:
    rate = trial.suggest_float("lr", 1e-5, 1e-1, log=True)
    momentum = trial.suggest_float("momentum", 0.0, 0.95)
    decay = trial.suggest_float("weight_decay", 1e-6, 1e-2, log=True)
    if trial.suggest_categorical("optimizer", ["sgd", "adam"]) == "adam":
        return torch.optim.Adam(model.parameters(), lr=rate, weight_decay=decay)
    return torch.optim.SGD(model.parameters(), lr=rate, momentum=momentum, weight_decay=decay)


@cache
def _stuck(seed: int, *, twice: bool) -> tuple[optuna.trial.FrozenTrial, ...]:
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=seed))
    rng = np.random.default_rng(seed)
    for _ in range(_STUCK):
        study.enqueue_trial({"activation": "sigmoid", **({"lr": rng.uniform(*_TOO_SMALL)} if twice else {})})
    study.optimize(_objective(seed), n_trials=_STUCK)
    return tuple(study.trials)


@dataclass(frozen=True, slots=True)
class Repaired:
    """One search. reached: after how many further trials it had 0.9; one more than there were where it had not."""

    reached: int
    changed: tuple[tuple[str, ...], ...]


def repaired_search(strategy: str, seed: int, *, twice: bool = False) -> Repaired:
    """The stuck search of a seed, gone on with until it has 0.9, for 15 trials at most."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    torch.set_num_threads(1)
    study = optuna.create_study(direction="maximize", sampler=STRATEGIES[strategy](seed))
    study.add_trials(_stuck(seed, twice=twice))
    study.optimize(_objective(seed), n_trials=_MORE, callbacks=[_end])
    scores = [trial.value or 0.0 for trial in study.trials[_STUCK:]]
    return Repaired(len(scores) if scores[-1] >= _TARGET else _MORE + 1, tuple(_changes(study)))


def _end(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
    if (trial.value or 0.0) >= _TARGET:
        study.stop()


def single_changes(seed: int) -> list[float]:
    """What every single change of the best trial of a search that is stuck twice brings."""
    study = optuna.create_study(direction="maximize")
    study.add_trials(_stuck(seed, twice=True))
    search = search_of(study)
    assert search.best is not None
    found = []
    for action in single_edits(search, search.best, (), np.random.default_rng(seed)):
        study.enqueue_trial(dict(action.parameters))
        study.optimize(_objective(seed), n_trials=1)
        found.append(study.trials[-1].value or 0.0)
    return found


def _changes(study: optuna.Study) -> Iterator[tuple[str, ...]]:
    trials = search_of(study).trials
    for trial in trials[_STUCK:]:
        if trial.origin is not None:
            before = trials[trial.origin].parameters
            yield tuple(name for name, value in trial.parameters.items() if before.get(name) != value)


def measure() -> list[dict[str, Any]]:
    rows = []
    for twice in (False, True):
        found = {name: [repaired_search(name, seed, twice=twice) for seed in _SEEDS] for name in STRATEGIES}
        trials = {name: np.array([one.reached for one in searches], dtype=float) for name, searches in found.items()}
        kind = "stuck twice, " if twice else ""
        rows += [_row(f"{kind}{name}", searches, trials["TPE"] - trials[name]) for name, searches in found.items()]
    scores = [score for seed in list(_SEEDS)[:3] for score in single_changes(seed)]
    rows.append(
        {
            "name": f"stuck twice: single changes of the best trial that reach {_TARGET}",
            "measured": sum(score >= _TARGET for score in scores),
            "unit": "",
            "target": 0,
            "ok": max(scores) < _TARGET,
            "detail": f"of {len(scores)} in three searches; the best of them scores {max(scores):.2f}",
        }
    )
    return rows


def _row(name: str, searches: list[Repaired], earlier: npt.NDArray[np.float64]) -> dict[str, Any]:
    reached = [one.reached for one in searches]
    share = sum(trials <= _MORE for trials in reached) / len(reached)
    mean, low, high = interval(earlier)
    changes = [change for one in searches for change in one.changed]
    alone = Counter(change[0] for change in changes if len(change) == 1)
    every = Counter(parameter for change in changes for parameter in change)
    told = ", ".join(f"{parameter} {times} ({alone[parameter]})" for parameter, times in every.most_common())
    detail = f"after a median of {float(np.median(reached)):g} trials; sooner than TPE by {mean:.1f} trials "
    detail += f"({low:.1f} to {high:.1f}); {len(reached)} searches"
    detail += f"; of {len(changes)} changes (alone): {told}" if told else ""
    return {
        "name": f"{_TARGET} reached within {_MORE} trials: {name}",
        "measured": round(100 * share),
        "unit": "%",
        "target": "≥ 80" if name.endswith("repair") else "",
        "ok": not name.endswith("repair") or share >= 0.8,
        "detail": detail,
    }
