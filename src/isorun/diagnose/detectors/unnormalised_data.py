"""Unnormalised data: inputs far from 0 ± 1, as pixels from 0 to 255 are.

A spread of 10 or a mean beyond ± 10. A training that is good all the same (accuracy 0.9) has no problem; nor has one
that normalises first.
"""

from __future__ import annotations

import math
from typing import ClassVar, Final

from isorun.diagnose import AbstractDetector, Problem, Trace

FAR: Final = 10.0
GOOD_ACCURACY: Final = 0.9
GOOD_LOSS_SHARE: Final = 0.1


class UnnormalisedData(AbstractDetector):
    """Looks at the first batch."""

    kind = "unnormalised-data"
    remedies: ClassVar = (
        "inputs scaled to about 0 ± 1: subtract the mean, divide by the standard deviation",
        "a normalising first layer",
    )

    def lacks(self, trace: Trace) -> str:
        """The first batch."""
        if not trace.samples:
            return trace.unwatched
        return "" if _inputs(trace) else "no inputs of floating-point numbers were seen"

    def examine(self, trace: Trace) -> Problem | None:
        """Mean and spread."""
        seen = _inputs(trace)
        mean, spread = seen.get("mean", math.nan), seen.get("spread", math.nan)
        if not (abs(mean) > FAR or spread > FAR) or _is_good(trace) or seen.get("normalised"):
            return None
        told = f"the inputs are {mean:.3g} ± {spread:.3g}, from {seen.get('least', math.nan):.3g} to"
        return self.found(trace.rows[0].epoch, f"{told} {seen.get('largest', math.nan):.3g}")


def _inputs(trace: Trace) -> dict[str, float]:
    return dict(next((row.inputs for row in trace.rows if row.inputs), {}))


def _is_good(trace: Trace) -> bool:
    if trace.judged.values:
        return trace.best_accuracy >= GOOD_ACCURACY
    return len(trace.loss.values) > 1 and trace.loss.values[-1] < GOOD_LOSS_SHARE * trace.loss.values[0]
