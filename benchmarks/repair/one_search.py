"""A search of 16 short trainings in a process of its own, which prints the most memory (MB) that it held.

`alone` is an objective and a sampler of Optuna, and isorun is never imported; `repaired` has isorun's lines, from trial
10 on. The network is the deep one of sigmoids of `faulty_networks.py`, on digits.
"""

from __future__ import annotations

import resource
import sys
from typing import Any, Final

import optuna
import torch
from sklearn.datasets import load_digits
from torch import nn

_TRIALS: Final = 16
_is_repaired = sys.argv[1:] == ["repaired"]
if _is_repaired:
    import isorun
    import isorun.repair


def _objective(trial: optuna.Trial) -> float:
    x, y = (torch.as_tensor(part) for part in load_digits(return_X_y=True))
    x = x.float() / 16
    units, layers = trial.suggest_int("units", 16, 64, log=True), trial.suggest_int("layers", 5, 8)
    hidden: list[nn.Module] = []
    for place in range(layers):
        hidden += [nn.Linear(units if place else 64, units), nn.Sigmoid()]
    model = nn.Sequential(*hidden, nn.Linear(units, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    watcher: Any = None
    if _is_repaired:
        isorun.repair.expand(trial, model, optimizer, epochs=4)
        watcher = isorun.watch(model)
    for _ in range(4):
        for part in torch.randperm(1200).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[part]), y[part]).backward()
            optimizer.step()
    with torch.no_grad():
        score = float((model(x[1200:]).argmax(1) == y[1200:]).float().mean())
    if _is_repaired:
        watcher.stop()
        isorun.repair.note(trial, watcher, val_accuracy=[score])
    return score


def main() -> None:
    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler: Any = optuna.samplers.TPESampler(seed=0)
    if _is_repaired:
        sampler = isorun.repair.optuna(sampler, begin=10, seed=0)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(_objective, n_trials=_TRIALS)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


if __name__ == "__main__":
    main()
