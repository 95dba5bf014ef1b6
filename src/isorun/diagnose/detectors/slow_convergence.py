"""Slow convergence: the training does not get anywhere.

DREAM's and AUTOTRAINER's rule: an accuracy under 0.6 that never rises by 0.01 from one epoch to the next; one that all
the same has risen by 0.2 in many small steps gets somewhere. An accuracy at the level of chance moves by luck, so one
that is not 0.01 better in the second half of the epochs than in the first is slow as well, and so is a loss that has
not come down.
"""

from __future__ import annotations

import math
from typing import ClassVar, Final

from isorun.diagnose import NOT_TOLD, AbstractDetector, Curve, Problem, Trace

LOW_ACCURACY: Final = 0.6
LEAST_RISE: Final = 0.01
LEAST_FALL: Final = 0.02
LEAST_EPOCHS: Final = 3


class SlowConvergence(AbstractDetector):
    """Looks at accuracy and loss epoch by epoch."""

    kind = "slow-convergence"
    remedies: ClassVar = (
        "another optimizer (Adam)",
        "a learning rate ten times as large",
        "another initialisation",
        "longer training",
    )

    def lacks(self, trace: Trace) -> str:
        """Three epochs of something."""
        if max(len(trace.judged.values), len(_loss(trace).values)) >= LEAST_EPOCHS:
            return ""
        return f"fewer than {LEAST_EPOCHS} {trace.points}" if trace.judged.values or _loss(trace).values else NOT_TOLD

    def examine(self, trace: Trace) -> Problem | None:
        """By the accuracy where it was told, else by the loss alone."""
        loss, judged = _loss(trace), trace.judged
        if not all(map(math.isfinite, loss.values)):
            return None  # it went to pieces, which is another problem
        if len(judged.values) < LEAST_EPOCHS:
            return self.found(_since(loss), _flat(loss, trace)) if _is_flat(loss) else None
        if not trace.best_accuracy < LOW_ACCURACY:
            return None
        largest = max(judged.changes)
        if largest < LEAST_RISE and not trace.learns:
            rise = f"the accuracy never rose by {LEAST_RISE:g} from one of the {trace.points} to the next"
            return self.found(_since(judged), f"{rise} and is at most {trace.best_accuracy:.3g}")
        if (gained := _rise(judged)) < LEAST_RISE:
            told = f"the accuracy is {gained:+.2g} from the first half of the {trace.points} to the second"
            return self.found(_since(judged), f"{told} and is at most {trace.best_accuracy:.3g}")
        if _is_flat(loss):
            return self.found(_since(loss), f"{_flat(loss, trace)}; the accuracy is at most {trace.best_accuracy:.3g}")
        return None


def _loss(trace: Trace) -> Curve:
    return trace.loss if len(trace.loss.values) >= LEAST_EPOCHS else trace.val_loss


def _since(curve: Curve) -> float:
    return curve.epochs[LEAST_EPOCHS - 1]


def _rise(curve: Curve) -> float:
    """Of the mean from the first to the second half; infinite where there is too little to say."""
    half = len(curve.values) // 2
    if half < LEAST_EPOCHS:
        return math.inf
    return math.fsum(curve.values[-half:]) / half - math.fsum(curve.values[:half]) / half


def _is_flat(loss: Curve) -> bool:
    enough = len(loss.values) >= LEAST_EPOCHS
    return enough and loss.values[0] - min(loss.values) < LEAST_FALL * abs(loss.values[0])


def _flat(loss: Curve, trace: Trace) -> str:
    return f"the loss fell from {loss.values[0]:.4g} to {min(loss.values):.4g} in {len(loss.values)} {trace.points}"
