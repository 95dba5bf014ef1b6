"""Saturated activation: a sigmoid or tanh whose outputs lie at its limits, where its slope is zero.

70 % of the outputs of a hidden one, in most samples. Raised only where the training does not converge.
"""

from __future__ import annotations

from typing import ClassVar, Final

from isorun.diagnose import AbstractDetector, Problem, Trace, Watched

SHARE: Final = 0.7


class Detector(AbstractDetector):
    """Looks at the outputs of sigmoid and tanh."""

    kind = "saturated-activation"
    remedies: ClassVar = (
        "smaller initial weights (Glorot)",
        "inputs scaled to about 0 ± 1",
        "ReLU or SELU in place of sigmoid or tanh",
        "batch normalisation in front of the activations",
    )

    def lacks(self, trace: Trace) -> str:
        """Activations that were seen; a model without sigmoid and tanh saturates none."""
        missing = self.lacks_samples(trace)
        seen = any(row.saturated or row.dead for row in trace.samples)
        return missing or ("" if seen else "no activations were seen")

    def examine(self, trace: Trace) -> Problem | None:
        """In most samples that show activations."""
        samples = [row for row in trace.samples if row.saturated or row.dead]
        worst = [max(_hidden(row, trace).items(), key=lambda item: item[1], default=("", 0.0)) for row in samples]
        hit = [place for place, (_, share) in enumerate(worst) if share >= SHARE]
        if trace.learns or not hit or 2 * len(hit) < len(samples):
            return None
        name, share = worst[hit[-1]]
        told = f"{share:.0%} of the outputs of {name} lie at its limits, in {len(hit)} of {len(samples)} samples"
        return self.found(samples[hit[0]].epoch, f"{told}; it does not converge")


def _hidden(row: Watched, trace: Trace) -> dict[str, float]:
    """Without the output's own sigmoid, which is meant to say yes or no."""
    looks = next((seen.output.get("looks") for seen in trace.rows if seen.output), "")
    names = list(row.saturated)
    return {name: row.saturated[name] for name in (names[:-1] if looks == "sigmoid" else names)}
