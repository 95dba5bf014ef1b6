"""The paper's experiments by name: a method with an optimizer, carried out twice; and the controls of Table 5.

With Table 3 of the paper: what is drawn for each method, what is fixed, and how long it trains.

A flag's name is that of the training command. Periods are in training steps; a training that is shortened shortens
them alike, so that the learning rate falls as often as it would have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = [
    "CONTROL",
    "CONTROLS",
    "EXPERIMENTS",
    "METHODS",
    "OPTIMIZERS",
    "ROUNDS",
    "SPACES",
    "Control",
    "Experiment",
    "SearchSpace",
    "approach_name",
    "drawn",
    "experiment_round",
    "fixed",
]

METHODS: Final = ("matching", "prototypical", "tadam")
OPTIMIZERS: Final = ("adam", "sgd")
_PERIOD: Final = "lr_decay_period"
_RATE_PER_STEP: Final = "lr_decay_rate_per_step"

Bounds = tuple[str, float, float]


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """One column of Table 3.

    drawn: flag to kind of distribution and its two numbers. fixed: flag to value. steps: training steps.
    rounds: steps between two validations. patience: rounds without a gain until the training stops, 0 for never.
    """

    drawn: Mapping[str, Bounds]
    fixed: Mapping[str, float]
    steps: int
    rounds: int
    test_episodes: int
    patience: int = 0


SPACES: Final[Mapping[str, SearchSpace]] = {
    "tadam": SearchSpace(
        drawn={
            "learning_rate": ("uniform", 0.02, 0.1),
            "lr_decay_rate": ("normal", 10.0, 1.0),
            "queries": ("integer", 16, 64),
            "pretrain_batch": ("integer", 32, 64),
        },
        fixed={_PERIOD: 2500.0, "tasks_per_batch": 2},
        steps=21_000,
        rounds=100,
        test_episodes=500,
    ),
    "prototypical": SearchSpace(
        drawn={"learning_rate": ("normal", 0.005, 0.0012), _PERIOD: ("uniform", 500.0, 2000.0)},
        fixed={"lr_decay_rate": 0.5, "queries": 15, "tasks_per_batch": 1},
        steps=10_000,
        rounds=100,
        test_episodes=600,
    ),
    "matching": SearchSpace(
        drawn={
            "learning_rate": ("log-uniform", 0.0001, 0.1),
            _RATE_PER_STEP: ("log-uniform", 0.00001, 0.01),
            "queries": ("integer", 5, 30),
        },
        fixed={_PERIOD: 1.0, "tasks_per_batch": 1},
        steps=75_000,
        rounds=500,
        test_episodes=600,
        patience=20,
    ),
}
"""The inverse-time decay of matching networks has a rate for each step, of which a shorter training needs more."""


def drawn(method: str, steps: int, most_queries: int | None, most_images: int | None) -> dict[str, dict[str, Any]]:
    """The distributions for a training of so many steps, as the configs of a study declare them."""
    space = SPACES[method]
    share = steps / space.steps
    caps = {"queries": most_queries, "pretrain_batch": most_images}
    named = {}
    for flag, (kind, low, high) in space.drawn.items():
        factor = share if flag == _PERIOD else 1.0 / share if flag == _RATE_PER_STEP else _capped(high, caps.get(flag))
        bounds: list[float] = [low * factor, high * factor]
        named[_flag(flag)] = {kind: [max(1, round(bound)) for bound in bounds] if kind == "integer" else bounds}
    return named


def fixed(method: str, steps: int, most_queries: int | None) -> dict[str, float]:
    """The flags that Table 3 holds fixed, for a training of so many steps."""
    space = SPACES[method]
    values = dict(space.fixed)
    if method == "tadam":
        values[_PERIOD] *= steps / space.steps
    if "queries" in values and most_queries is not None:
        values["queries"] = min(values["queries"], most_queries)
    return values


def _capped(high: float, cap: int | None) -> float:
    return 1.0 if cap is None or high <= cap else cap / high


def _flag(name: str) -> str:
    return "lr_decay_rate" if name == _RATE_PER_STEP else name


CONTROL: Final = "control"
"""The part of the paper that is Table 5."""

ROUNDS: Final = (1, 2)
"""Every experiment is carried out twice with the same configs and seeds: the second is the rerun of the first."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A method trained by an optimizer."""

    method: str
    optimizer: str

    @property
    def name(self) -> str:
        """As users name it: "matching-adam"."""
        return f"{self.method}-{self.optimizer}"


@dataclass(frozen=True, slots=True)
class Control:
    """A training with default hyper-parameters and one seed, many times over. ways: classes a training episode."""

    name: str
    method: str
    optimizer: str
    backbone: str
    ways: int = 5


EXPERIMENTS: Final = tuple(Experiment(method, optimizer) for method in METHODS for optimizer in OPTIMIZERS)

CONTROLS: Final = (
    Control("matching", "matching", "adam", "conv4"),
    Control("prototypical", "prototypical", "adam", "conv4", ways=20),
    Control("tadam", "tadam", "sgd", "resnet12"),
    Control("prototypical-resnet12", "prototypical", "adam", "resnet12", ways=20),
)
"""The last one stands for the prototypical networks inside TADAM's code, the paper's "Proto nets*"."""

_ROUND_OF: Final = {f"{item.name}-{number}": (item.name, number) for item in EXPERIMENTS for number in ROUNDS}


def approach_name(experiment: str, number: int) -> str:
    """The approach that is one round of an experiment: "matching-adam-2"."""
    return f"{experiment}-{number}"


def experiment_round(approach: str) -> tuple[str, int] | None:
    """The experiment and round an approach stands for, None for an approach of something else."""
    return _ROUND_OF.get(approach)
