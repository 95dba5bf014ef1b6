"""Exploding gradient: the error grows on its way to the first layers, or is no number any more.

The paper's rule: the gradient of the first layer is more than 70 times the last one's, or one is NaN or infinite.
Raised only where the training does not converge.
"""

from __future__ import annotations

import math
from typing import ClassVar, Final

from isorun.diagnose import AbstractDetector, Problem, Trace, WatchedRow
from isorun.diagnose.detectors.vanishing_gradient import end_gradients

RATIO: Final = 70.0
LARGE: Final = 1.0
"""A ratio of two small gradients explodes nothing."""


class ExplodingGradient(AbstractDetector):
    """Compares the gradients of the first and the last layer."""

    kind = "exploding-gradient"
    remedies: ClassVar = (
        "gradient clipping",
        "a smaller learning rate",
        "SELU or ReLU, and He or Glorot initialisation",
        "batch normalisation between the layers",
    )

    def lacks(self, trace: Trace) -> str:
        """Samples of the gradients."""
        return self.lacks_samples(trace)

    def examine(self, trace: Trace) -> Problem | None:
        """In most samples; one gradient that is no number is enough."""
        if trace.learns:
            return None
        broken = next((row for row in trace.samples if _is_broken(row)), None)
        if broken is not None:
            return self.found(broken.epoch, f"a gradient is NaN or infinite at step {broken.step}")
        hit = [row for row in trace.samples if _explodes(row)]
        if 2 * len(hit) < len(trace.samples) or not hit:
            return None
        first, last = end_gradients(hit[-1])
        told = (
            f"the gradient of layer {hit[-1].layers[0]} is {first:.2g}, {first / last:.0f} times that of the last layer"
        )
        return self.found(hit[0].epoch, f"{told}, in {len(hit)} of {len(trace.samples)} samples; it does not converge")


def _is_broken(row: WatchedRow) -> bool:
    """A layer without a gradient is NaN, too; then the row is finite."""
    return not row.finite and not all(map(math.isfinite, row.gradient))


def _explodes(row: WatchedRow) -> bool:
    first, last = end_gradients(row)
    return last > 0 and first > LARGE and first > RATIO * last
