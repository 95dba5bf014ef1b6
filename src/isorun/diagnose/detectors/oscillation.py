"""Oscillation: the training throws away what it learned, again and again.

AUTOTRAINER's rule: the accuracy swings by 0.03 or more in a fifth of the epochs. Only swings down count, for going up
is what a training is for. Without an accuracy: a loss that rises by a fifth; of its whole range where it can be
negative. What is a thousandth of the way it came down is noise: a loss at 1e-7 may double.
"""

from __future__ import annotations

from typing import ClassVar, Final

from isorun.diagnose import NOT_TOLD, AbstractDetector, Curve, Problem, Trace

SWING: Final = 0.03
LOSS_SWING: Final = 0.2
NOISE: Final = 1e-3
SHARE_OF_EPOCHS: Final = 0.2
LEAST_EPOCHS: Final = 6


class Oscillation(AbstractDetector):
    """Looks at accuracy, or loss, epoch by epoch."""

    kind = "oscillation"
    remedies: ClassVar = (
        "Adam in place of plain SGD",
        "a learning rate a tenth as large, or one that falls with time",
        "a larger batch",
        "less momentum",
    )

    def lacks(self, trace: Trace) -> str:
        """Enough epochs to tell a swing from a start."""
        if max(len(trace.judged.values), len(trace.loss.values)) >= LEAST_EPOCHS:
            return ""
        return f"fewer than {LEAST_EPOCHS} {trace.points}" if trace.judged.values or trace.loss.values else NOT_TOLD

    def examine(self, trace: Trace) -> Problem | None:
        """Count the epochs that ended clearly worse than they began."""
        judged = trace.judged
        if len(judged.values) >= LEAST_EPOCHS:
            falls = [place for place, change in enumerate(judged.changes) if change <= -SWING]
            return self._told(judged, falls, f"the accuracy fell by {SWING:g} or more", trace.points)
        loss = trace.loss
        pairs = zip(loss.values, loss.changes, strict=False)
        rises = [place for place, (value, change) in enumerate(pairs) if change >= _least_rise(loss, value)]
        of = " of its range" if loss.is_signed else ""
        return self._told(loss, rises, f"the loss rose by a fifth{of} or more", trace.points)

    def _told(self, curve: Curve, places: list[int], what: str, points: str) -> Problem | None:
        if len(places) < SHARE_OF_EPOCHS * len(curve.changes):
            return None
        return self.found(curve.epochs[places[0] + 1], f"{what} in {len(places)} of {len(curve.changes)} {points}")


def _least_rise(loss: Curve, value: float) -> float:
    """By how much a loss has to rise from a value."""
    whole = max(loss.finite) - min(loss.finite) if loss.is_signed else abs(value)
    return max(LOSS_SWING * whole, NOISE * loss.fall)
