"""Exploding weights: weights or loss are no numbers any more, or on their way there.

The paper's rule is NaN or infinite weights; AUTOTRAINER's a loss that is NaN or at least 1000. A loss that was that
large from the beginning may be the scale of the data: without an accuracy it must also be ten times its own best.
"""

from __future__ import annotations

import math
from typing import ClassVar, Final

from isorun.diagnose import NOT_TOLD, AbstractDetector, Problem, Trace

LARGE_LOSS: Final = 1e3
GROWTH: Final = 10.0


class ExplodingWeights(AbstractDetector):
    """Looks at weights and losses."""

    kind = "exploding-weights"
    remedies: ClassVar = (
        "a learning rate a tenth as large",
        "gradient clipping",
        "inputs scaled to about 0 ± 1",
        "no logarithm or division of what can be zero in the loss",
    )

    def lacks(self, trace: Trace) -> str:
        """Weights or a loss."""
        return "" if trace.samples or trace.loss.values or trace.val_loss.values else NOT_TOLD

    def examine(self, trace: Trace) -> Problem | None:
        """The first moment at which something is no number."""
        for row in trace.samples:
            if not row.finite or not all(map(math.isfinite, row.weight)):
                return self.found(row.epoch, f"weights or gradients are NaN or infinite at step {row.step}")
        for name, curve in (("loss", trace.loss), ("validation loss", trace.val_loss)):
            for epoch, value in zip(*curve, strict=True):
                if not math.isfinite(value):
                    return self.found(epoch, f"the {name} is {value} in {trace.clock} {epoch:g}")
                scaled = bool(trace.judged.values) or value >= GROWTH * min(curve.finite)
                if value >= LARGE_LOSS and scaled and not trace.learns:
                    return self.found(epoch, f"the {name} is {value:.3g}")
        return None
