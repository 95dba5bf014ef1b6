"""The paper's experiments by name: a method with an optimizer, carried out twice; and the controls of Table 5."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from isorun.zoo.studies.fewshot.search_space import METHODS, OPTIMIZERS

__all__ = ["CONTROL", "CONTROLS", "EXPERIMENTS", "ROUNDS", "Control", "Experiment", "approach_name", "experiment_round"]

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
