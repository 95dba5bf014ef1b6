"""Overfitting: what the training still gains, held-out data loses.

The loss on held-out data is 1.3 times its best, at least three epochs later, while the training's own loss went on
falling; where losses can be negative, it has lost 0.3 of what it had gained, and what is a thousandth of that is
noise anywhere; or the training's own examples are known (accuracy 0.9) and others are not (0.2 less).
"""

from __future__ import annotations

from typing import ClassVar, Final

from isorun.diagnose import AbstractDetector, Curve, Problem, Trace

GROWTH: Final = 1.3
NOISE: Final = 1e-3
LEAST_EPOCHS_AFTER: Final = 3
KNOWN: Final = 0.9
GAP: Final = 0.2
SMALL_GAP: Final = 0.05


class Overfitting(AbstractDetector):
    """Compares the training's own loss and accuracy with those on held-out data."""

    kind = "overfitting"
    remedies: ClassVar = (
        "stop at the best epoch on held-out data",
        "dropout, weight decay or augmentation",
        "a smaller model, or more data",
    )

    def lacks(self, trace: Trace) -> str:
        """Both sides of one metric."""
        pairs = ((trace.loss, trace.val_loss), (trace.accuracy, trace.val_accuracy))
        if any(len(own.values) > LEAST_EPOCHS_AFTER and len(other.values) > LEAST_EPOCHS_AFTER for own, other in pairs):
            return ""
        return "no loss or accuracy of both the training's own and held-out data by epoch: val_loss, val_accuracy"

    def examine(self, trace: Trace) -> Problem | None:
        """By the losses, then by the accuracies."""
        gap = _last(trace.accuracy) - _last(trace.val_accuracy)
        return self._by_loss(trace, gap) or self._by_accuracy(trace, gap)

    def _by_loss(self, trace: Trace, gap: float) -> Problem | None:
        own, other = trace.loss, trace.val_loss
        if min(len(own.values), len(other.values)) <= LEAST_EPOCHS_AFTER or not other.finite:
            return None
        best = other.values.index(min(other.finite))
        then = own.values[min(best, len(own.values) - 1)]
        is_late = len(other.values) - 1 - best >= LEAST_EPOCHS_AFTER
        is_worse = other.values[-1] - other.values[best] >= _least_rise(own, other) and own.values[-1] < then
        if not is_late or not is_worse or gap < SMALL_GAP:
            return None
        told = f"the validation loss rose from {other.values[best]:.3g} to {other.values[-1]:.3g}"
        return self.found(other.epochs[best], f"{told} while the loss fell from {then:.3g} to {own.values[-1]:.3g}")

    def _by_accuracy(self, trace: Trace, gap: float) -> Problem | None:
        own, other = _last(trace.accuracy), _last(trace.val_accuracy)
        if not (own >= KNOWN and gap >= GAP):
            return None
        return self.found(trace.accuracy.epochs[-1], f"the accuracy is {own:.3g}, on held-out data {other:.3g}")


def _least_rise(own: Curve, other: Curve) -> float:
    """By how much a loss on held-out data has to rise."""
    best, fall = min(other.finite), max(own.fall, other.fall)
    share = fall if own.is_signed or other.is_signed else best
    return max((GROWTH - 1.0) * share, NOISE * fall)


def _last(curve: Curve) -> float:
    return curve.values[-1] if curve.values else float("nan")
