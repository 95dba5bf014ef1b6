"""What pairing gained or cost: the same runs, judged as pairs and as two sides.

The mean of n differences has the variance s_d² / n; of two sides that are not paired it would be (s_a² + s_b²) / n.
Their ratio says how many unpaired runs a side would be worth as much: runs that move together make it large, runs that
move against each other make it less than one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from isorun.analysis.evidence.condition import Condition
from isorun.analysis.inputs.samples import FloatArray

__all__ = ["PairingEffect", "pairing_effect"]

_COSTS_BELOW = 0.9  # of the runs: what chance does to uncorrelated pairs is not worth a warning


@dataclass(frozen=True, slots=True)
class PairingEffect:
    """correlation: of the two runs of a pair. worth: how many unpaired runs a side say as much.

    Both None where runs do not vary; worth is None for differences that do not.
    """

    pairs: int
    correlation: float | None
    worth: float | None

    @property
    def sentence(self) -> str:
        """In one sentence."""
        if self.worth is None or self.correlation is None:
            return "what pairing gained cannot be told: the runs of a side, or their differences, do not vary"
        verb = "gained" if self.worth >= self.pairs else "cost"
        return (
            f"pairing {verb}: with a correlation of {self.correlation:.2f}, {self.pairs} pairs are worth about "
            f"{self.worth:.3g} unpaired runs a side"
        )

    def conditions(self) -> tuple[Condition, ...]:
        """A warning where pairing cost."""
        if self.worth is None or self.worth >= _COSTS_BELOW * self.pairs:
            return ()
        next_step = "leave the pairing out in the next comparison, or pair by what moves both runs alike"
        return (Condition("pairing-cost", f"{self.sentence}: the runs of a pair go against each other", next_step),)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        values = {"pairs": self.pairs, "correlation": self.correlation, "worth": self.worth}
        return values | {"sentence": self.sentence}


def pairing_effect(first: FloatArray, second: FloatArray) -> PairingEffect:
    """The effect of pairing; both samples in the order of their pairs."""
    pairs = first.size
    if pairs < 2:
        return PairingEffect(pairs, None, None)
    first, second = first - first.mean(), second - second.mean()
    var_a, var_b = float(first @ first) / (pairs - 1), float(second @ second) / (pairs - 1)
    if var_a == 0.0 or var_b == 0.0:
        return PairingEffect(pairs, None, None)
    together = float(first @ second) / (pairs - 1)
    correlation = max(-1.0, min(1.0, together / math.sqrt(var_a * var_b)))
    of_differences = var_a + var_b - 2.0 * together
    varies = of_differences > 1e-12 * (var_a + var_b)
    return PairingEffect(pairs, correlation, pairs * (var_a + var_b) / of_differences if varies else None)
