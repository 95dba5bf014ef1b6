"""AutoKeras: a class of tuners, for its argument `tuner=`. They are tuners of KerasTuner and are repaired as those."""

from __future__ import annotations

from typing import Any

from autokeras import tuners
from autokeras.engine.tuner import AutoTuner

from isorun.errors import InputError, known_names
from isorun.repair.engines.keras_tuner import attach
from isorun.repair.policy import RepairPolicy

__all__ = ["STRATEGIES", "repaired_tuner"]

STRATEGIES = {
    "greedy": tuners.Greedy,
    "bayesian": tuners.BayesianOptimization,
    "hyperband": tuners.Hyperband,
    "random": tuners.RandomSearch,
}
"""AutoKeras' own words for its strategies."""


def repaired_tuner(strategy: Any, policy: RepairPolicy) -> type:
    """The class of this strategy, or the given one, whose tuners repair."""
    base = STRATEGIES.get(strategy) if isinstance(strategy, str) else strategy
    if not (isinstance(base, type) and issubclass(base, AutoTuner)):
        raise InputError(
            "isorun.repair.autokeras does not know this strategy",
            found=repr(strategy),
            allowed=known_names(str(strategy), STRATEGIES) + ", or a class of tuners",
        )

    class Repaired(base):  # type: ignore[misc, valid-type]  # mypy does not look into AutoKeras
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            attach(self, policy)

    Repaired.__name__ = base.__name__
    return Repaired
