"""The paper's own numbers: Tables 1, 2, 4 and 5, and what it concluded from them.

Accuracies in Tables 1, 2 and 4 are fractions, in Table 5 percent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

__all__ = [
    "PLANNED_RUNS",
    "REJECTED",
    "RUNS",
    "TABLE_1",
    "TABLE_2",
    "TABLE_4",
    "TABLE_5",
    "ControlAccuracy",
    "FixedEffectTest",
    "RandomEffectTest",
    "RerunDifference",
]

RUNS: Final = 1074
PLANNED_RUNS: Final = 1500
"""12 experiments of 125 runs; the paper analyses 1,074 and does not say why the others are missing."""


@dataclass(frozen=True, slots=True)
class RandomEffectTest:
    """A row of Table 1: the whole model, or the model without one random effect. None where the table has NA."""

    effect: str
    parameters: int
    loglik: float
    aic: float
    lrt: float | None
    df: int | None
    p: float | None


@dataclass(frozen=True, slots=True)
class RerunDifference:
    """A row of Table 2: how far the two rounds of an experiment lie apart. label: as the paper writes it."""

    label: str
    estimate: float
    se: float
    lower: float
    upper: float
    p: float


@dataclass(frozen=True, slots=True)
class FixedEffectTest:
    """Table 4: do the experiments differ at all?"""

    sum_sq: float
    mean_sq: float
    num_df: int
    den_df: float
    f: float
    p: float


@dataclass(frozen=True, slots=True)
class ControlAccuracy:
    """A column of Table 5, in percent. What the ± stands for is not said in the paper."""

    label: str
    mean: float
    plus_minus: float


TABLE_1: Final = (
    RandomEffectTest("none left out", 15, 1813.832, -3597.664, None, None, None),
    RandomEffectTest("(1 | seed)", 14, 1813.832, -3599.664, 0.0, 1, 1.0),
    RandomEffectTest("(1 | repeat)", 14, 1813.832, -3599.664, 0.0, 1, 1.0),
)

TABLE_2: Final[Mapping[str, RerunDifference]] = {
    "matching-adam": RerunDifference("m-net-adam", -0.010969, 0.005554, -0.021866759, -0.0000707299, 4.853417e-02),
    "matching-sgd": RerunDifference("m-net-sgd", 0.006967, 0.005423, -0.003674030, 0.0176081909, 1.991716e-01),
    "prototypical-adam": RerunDifference("protonet-adam", 0.00278, 0.009015, -0.0149106977, 0.020466783, 7.580161e-01),
    "prototypical-sgd": RerunDifference("protonet-sgd", -0.001042, 0.008971, -0.0186452120, 0.016560948, 9.075433e-01),
    "tadam-adam": RerunDifference("tadam-adam", -0.020189, 0.008699, -0.0372574009, -0.003119772, 2.048393e-02),
    "tadam-sgd": RerunDifference("tadam-sgd", -0.000014, 0.005410, -0.0106336415, 0.010605801, 9.979483e-01),
}

TABLE_4: Final = FixedEffectTest(12.94413, 1.176739, 11, 18.92112, 642.001, 6.497355e-22)

TABLE_5: Final[Mapping[str, ControlAccuracy]] = {
    "matching": ControlAccuracy("Matching Nets", 50.76, 0.54),
    "prototypical": ControlAccuracy("Proto-networks", 56.23, 0.00),
    "tadam": ControlAccuracy("TADAM", 71.96, 2.06),
    "prototypical-resnet12": ControlAccuracy("Proto nets*", 66.68, 0.18),
}

REJECTED: Final[Mapping[str, bool]] = {"H1": False, "H2": False, "H3": True}
"""Which hypotheses the paper rejects."""
