"""Withholding: a claim whose error rate does not hold is not made, in the verdict and not only in a footnote.

Nor is a claim that rests on a guess made without saying so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from isorun.analysis.evidence.condition import Condition, voided
from isorun.analysis.inputs.samples import FloatArray, oriented
from isorun.analysis.sequential.decision import Decision, Verdict

__all__ = ["skewed_pairs", "withheld"]


def skewed_pairs(decision: Decision, first: FloatArray, second: FloatArray) -> tuple[Condition, ...]:
    """A paired claim for the side that wins no more pairs than it loses: the differences are not symmetric."""
    if decision.verdict not in {Verdict.A_BETTER, Verdict.B_BETTER}:
        return ()
    gains = oriented(first - second, decision.direction)
    balance = float(np.sign(gains).mean()) * (1.0 if decision.verdict is Verdict.A_BETTER else -1.0)
    if balance > 0.0:
        return ()
    message = (
        "the signed rank test takes differences for symmetric, and they are not: few large ones go one way, many small "
        "ones the other"
    )
    return (Condition("skewed-differences", message, "compare without --pair, or look at the pairs", voids=True),)


def withheld(decision: Decision, conditions: Sequence[Condition]) -> Decision:
    """The decision with the guess it rests on, or "undecided" with the condition that voids its error rate."""
    reason = voided(conditions)
    if reason is None:
        guessed = next((item for item in conditions if item.code == "direction-guessed"), None)
        return replace(decision, why=f"{decision.why} ({guessed.message})") if guessed else decision
    return replace(
        decision,
        verdict=Verdict.UNDECIDED,
        why=f"{Verdict.UNDECIDED}: {reason.message}; next: {reason.next_step}",
        about_more_runs=None,
        chance=None,
        warnings=(),
    )
