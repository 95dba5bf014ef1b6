"""Dying ReLU: units that give nothing for any example, and so never learn again.

The paper's rule: 70 % of a layer's gradient is exactly zero; the first layer's does not count, because inputs have
zeros of their own. Where the activations were seen, the units are counted themselves as well. Raised only where the
training does not converge.
"""

from __future__ import annotations

import math
from typing import ClassVar, Final

from isorun.diagnose import AbstractDetector, Problem, Trace, WatchedRow

SHARE: Final = 0.7


class DyingRelu(AbstractDetector):
    """Counts units that are dead, or gradients that are zero."""

    kind = "dying-relu"
    remedies: ClassVar = (
        "a smaller learning rate",
        "leaky ReLU, ELU or SELU in place of ReLU",
        "He initialisation, and biases that begin at zero",
        "batch normalisation in front of the activations",
    )

    def lacks(self, trace: Trace) -> str:
        """Samples of the inside."""
        return self.lacks_samples(trace)

    def examine(self, trace: Trace) -> Problem | None:
        """In the newest sample and since an earlier one."""
        samples = trace.samples
        told = [_worst(row) for row in samples]
        if trace.learns or told[-1][0] < SHARE:
            return None
        since = len(told)
        while since and told[since - 1][0] >= SHARE:
            since -= 1
        share, where = told[-1]
        evidence = f"{share:.0%} of {where}, since step {samples[since].step}; it does not converge"
        return self.found(samples[since].epoch, evidence)


def _worst(row: WatchedRow) -> tuple[float, str]:
    """The largest share, and of what: of units where they were seen, of gradients in all layers but the first."""
    units = [(share, f"the units of {name} give nothing for a whole batch") for name, share in row.dead.items()]
    later = [
        (share, f"the gradient of layer {name} is zero") for name, share in zip(row.layers, row.zero, strict=False)
    ][1:]
    return max((item for item in (*units, *later) if not math.isnan(item[0])), default=(0.0, ""))
