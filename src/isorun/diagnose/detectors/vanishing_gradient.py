"""Vanishing gradient: nothing of the error reaches the first layers.

The paper's rule: the gradient of the first layer is less than a thousandth of the last one's; with the bound of its
code, less than 1e-4 by itself. Raised only where the training does not converge.
"""

from __future__ import annotations

import math
from typing import ClassVar, Final

from isorun.diagnose import AbstractDetector, Problem, Trace, WatchedRow

RATIO: Final = 1e-3
SMALL: Final = 1e-4


class VanishingGradient(AbstractDetector):
    """Compares the gradients of the first and the last layer."""

    kind = "vanishing-gradient"
    remedies: ClassVar = (
        "ReLU or SELU in place of sigmoid or tanh, where there is one",
        "batch normalisation between the layers",
        "residual connections, or fewer layers",
        "He or Glorot initialisation",
    )

    def lacks(self, trace: Trace) -> str:
        """Samples of the gradients."""
        return self.lacks_samples(trace)

    def examine(self, trace: Trace) -> Problem | None:
        """In most samples, and the newest."""
        hit = [row for row in trace.samples if _vanishes(row)]
        if trace.learns or 2 * len(hit) < len(trace.samples) or not hit:
            return None
        first, last = end_gradients(hit[-1])
        layers = hit[-1].layers
        told = f"the gradient of layer {layers[0]} is {first:.2g}, that of layer {layers[-1]} {last:.2g}"
        return self.found(hit[0].epoch, f"{told}, in {len(hit)} of {len(trace.samples)} samples; it does not converge")


def _vanishes(row: WatchedRow) -> bool:
    first, last = end_gradients(row)
    return first < SMALL and first < RATIO * last


def end_gradients(row: WatchedRow) -> tuple[float, float]:
    """The gradients of the first and the last layer that have one; NaN where fewer than two have."""
    known = [norm for norm in row.gradient if not math.isnan(norm)]
    return (known[0], known[-1]) if len(known) > 1 else (math.nan, math.nan)
