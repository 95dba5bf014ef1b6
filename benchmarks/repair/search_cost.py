"""What repairing adds to a search: CPU time of watching, expanding and choosing by their own account, and memory.

A search of ten short trainings is taken over, and the next ones are long: what is added to each is set against the CPU
time of the whole trial. The account holds the watcher's samples, `expand`, `note` and all that the sampler does; not in
it is the hook that remains on every step between samples, which only pairs of blocks can show (`watching`). Where
isorun proposes, the engine's own sampler is not asked: what that takes for the same trials of a search of its own is
told beside, and taken off in a row of its own. Memory is the highest of a process that searches with the engine alone,
without importing isorun, and of one that is repaired.
"""

from __future__ import annotations

import functools
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

__all__ = ["measure"]

_SHORT: Final = 10
_LONG: Final = 3
_EPOCHS: Final = 200
_MOST_PERCENT: Final = 0.2
_MOST_MEGABYTES: Final = 50
_MEMORY_PAIRS: Final = 1
_CHOOSING: Final = (
    "before_trial",
    "infer_relative_search_space",
    "sample_relative",
    "sample_independent",
    "after_trial",
)


class Account:
    """CPU seconds within the outermost of all functions that are booked on it."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0

    def booked(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*args: Any, **options: Any) -> Any:
            self._depth += 1
            began = time.process_time()
            try:
                return function(*args, **options)
            finally:
                self._depth -= 1
                if not self._depth:
                    self.seconds += time.process_time() - began

        return timed


def measure() -> list[dict[str, Any]]:
    return [*_time_rows(), _memory_row()]


def _time_rows() -> list[dict[str, Any]]:
    trials, watched, chosen = _own_account()
    alone = _engine_alone()
    share = 100 * (sum(watched) + sum(chosen)) / sum(trials)
    net = 100 * (sum(watched) + sum(chosen) - alone * len(trials)) / sum(trials)
    detail = f"{_LONG} trainings of {statistics.fmean(trials):.1f} s of CPU time each, after {_SHORT} short ones: "
    detail += f"watching {1000 * statistics.fmean(watched):.1f} ms and expanding, choosing and noting "
    detail += f"{1000 * statistics.fmean(chosen):.1f} ms a trial"
    spared = f"the engine's own sampler, which is not asked then, takes {1000 * alone:.1f} ms a trial"
    return [
        _row("CPU time that watching and choosing take of an Optuna search", share, "%", _MOST_PERCENT, detail),
        _row("the same, over what the engine takes to choose by itself", net, "%", _MOST_PERCENT, spared),
    ]


def _engine_alone() -> float:
    """CPU seconds that TPE takes to choose one trial of the same search where nobody repairs it."""
    import optuna

    account = Account()
    methods = {name: account.booked(getattr(optuna.samplers.TPESampler, name)) for name in _CHOOSING}
    study = optuna.create_study(
        direction="maximize", sampler=type("Booked", (optuna.samplers.TPESampler,), methods)(seed=0)
    )

    def asked(trial: Any) -> float:
        layers, units = trial.suggest_int("layers", 5, 8), trial.suggest_int("units", 16, 64, log=True)
        return float(layers * units * trial.suggest_float("dropout", 0.0, 0.3))

    study.optimize(asked, n_trials=_SHORT)
    before = account.seconds
    study.optimize(asked, n_trials=_LONG)
    return (account.seconds - before) / _LONG


def _own_account() -> tuple[list[float], list[float], list[float]]:
    """By long trial: CPU seconds of all of it, of the watcher, and of the rest that isorun does."""
    import optuna
    import torch

    import isorun
    import isorun.repair
    from isorun.repair.engines.optuna import RepairSampler
    from repair.real_searches import Case, objective

    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    case = Case("optuna", "digits", "deep sigmoid", 0)
    account, watchers, trials, chosen = Account(), [], [], []
    watch = isorun.watch

    def watched(model: Any) -> Any:
        watchers.append(watch(model))
        return watchers[-1]

    methods = {name: account.booked(getattr(RepairSampler, name)) for name in _CHOOSING}
    sampler = type("Booked", (RepairSampler,), methods)(optuna.samplers.TPESampler(seed=0), case.policy("repair"))
    study = optuna.create_study(direction="maximize", sampler=sampler)
    expand, note = (account.booked(one) for one in (isorun.repair.expand, isorun.repair.note))
    with (
        patch.object(isorun, "watch", watched),
        patch.object(isorun.repair, "expand", expand, create=True),
        patch.object(isorun.repair, "note", note),
    ):
        study.optimize(lambda trial: objective(trial, case), n_trials=_SHORT)
        for _ in range(_LONG):
            began, before = time.process_time(), account.seconds
            study.optimize(lambda trial: objective(trial, case, _EPOCHS), n_trials=1)
            trials.append(time.process_time() - began)
            chosen.append(account.seconds - before)
    return trials, [one.spent for one in watchers[-_LONG:]], chosen


def _memory_row() -> dict[str, Any]:
    alone, repaired = ([_peak(arm) for _ in range(_MEMORY_PAIRS)] for arm in ("alone", "repaired"))
    more = statistics.fmean(repaired) - statistics.fmean(alone)
    detail = (
        f"highest of a process: {statistics.fmean(alone):.0f} MB alone, {statistics.fmean(repaired):.0f} MB repaired, "
    )
    detail += f"means of {_MEMORY_PAIRS}; searches of 16 short trainings"
    return _row("memory over the engine alone", more, "MB", _MOST_MEGABYTES, detail)


def _peak(arm: str) -> float:
    """The most memory (MB) that a search in a process of its own held."""
    command = [sys.executable, str(Path(__file__).with_name("one_search.py")), arm]
    told = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(json.loads(told.stdout.splitlines()[-1]))


def _row(name: str, measured: float, unit: str, most: float, detail: str) -> dict[str, Any]:
    ok = measured <= most
    return {"name": name, "measured": round(measured, 3), "unit": unit, "target": most, "ok": ok, "detail": detail}
